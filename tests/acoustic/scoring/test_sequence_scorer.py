"""Scores of ONNX models of whole utterances in the forms of other toolkits, and models of other forms."""

import numpy as np
import pytest

from readers.common.file_part import part_of
from readers.errors import ModelError, ShapeError

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

import onnx

from acoustic.scoring.opening import open_scorer
from acoustic.scoring.sequence_scorer import SequenceScorer
from tests.acoustic.scoring.sequence_models import OUTPUTS, ROWS, weights, write_model, write_samples_model

FRAMES = np.random.default_rng(1).normal(size=(ROWS, 21)).astype(np.float32)


def log_softmax(values):
    return values - np.log(np.exp(values).sum(axis=0))


@pytest.mark.parametrize(
    "form",
    [
        {"rows_first": True, "subsampling": 4},
        {"subsampling": 3},
        {"counts": False, "normalised": False},
        {"counts": False, "rows_first": True},
    ],
    ids=["NeMo", "icefall", "logits", "without lengths"],
)
def test_scores(tmp_path, form):
    write_model(tmp_path / "ctc.onnx", **form)
    for model in (tmp_path / "ctc.onnx", part_of(tmp_path / "ctc.onnx")):
        scorer = open_scorer(model)
        assert isinstance(scorer, SequenceScorer)
        step = form.get("subsampling", 1)
        assert (scorer.dim, scorer.num_outputs, scorer.subsampling) == (ROWS, OUTPUTS, step)
        scores = scorer.score(FRAMES)
        assert scores.shape == (OUTPUTS, scorer.num_columns(21))
        assert scores.dtype == np.float32
        assert scores.flags.f_contiguous
        np.testing.assert_allclose(scores, log_softmax(weights() @ FRAMES[:, ::step]), atol=1e-5)


@pytest.mark.parametrize("counts", [None, ["B"], ["B", "N"]], ids=["torchaudio", "lengths", "Hugging Face"])
def test_scores_of_samples(tmp_path, counts):
    write_samples_model(tmp_path / "ctc.onnx", weights(), 320, counts)
    scorer = open_scorer(tmp_path / "ctc.onnx")
    assert (scorer.dim, scorer.num_outputs, scorer.subsampling) == (1, OUTPUTS, 320)
    samples = np.random.default_rng(1).normal(size=(1, 3200)).astype(np.float32)
    expected = log_softmax(weights() @ samples.reshape(10, 320)[:, :ROWS].T)
    np.testing.assert_allclose(scorer.score(samples), expected, atol=1e-5)


def test_priors_are_subtracted(tmp_path):
    write_model(tmp_path / "ctc.onnx")
    priors = np.arange(1, OUTPUTS + 1)
    np.savetxt(tmp_path / "priors", priors)
    scaled = open_scorer(tmp_path / "ctc.onnx", priors=tmp_path / "priors").score(FRAMES)
    plain = open_scorer(tmp_path / "ctc.onnx").score(FRAMES)
    expected = np.repeat(np.log(priors / priors.sum())[:, None], 21, axis=1)
    np.testing.assert_allclose(plain - scaled, expected, atol=1e-5)


def test_faults(tmp_path):
    path = tmp_path / "ctc.onnx"
    write_model(path)
    scorer = open_scorer(path)
    with pytest.raises(ShapeError, match="a matrix of 3x9; expected 4 rows"):
        scorer.score(np.zeros((3, 9)))
    with pytest.raises(ShapeError, match="at least one column"):
        scorer.score(np.zeros((ROWS, 0)))
    with pytest.raises(ModelError, match="scores whole utterances; expected another model, for audio as it arrives"):
        scorer.part_scorer(10)
    with pytest.raises(ModelError, match="no output 'x'; expected one of logprobs, encoded"):
        open_scorer(path, "x")
    with pytest.raises(ModelError, match="-dnn_window_size 3; expected 1"):
        open_scorer(path, window=3)


def test_whole_numbers_are_no_scores(tmp_path):
    write_model(tmp_path / "ctc.onnx")
    model = onnx.load(tmp_path / "ctc.onnx")
    model.graph.node.append(onnx.helper.make_node("Cast", ["logprobs"], ["classes"], to=onnx.TensorProto.INT64))
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("classes", onnx.TensorProto.INT64, ["B", "S", 5]))
    onnx.save(model, tmp_path / "ctc.onnx")
    with pytest.raises(ModelError, match=r"'classes' of 400 frames is int64; expected floating-point numbers"):
        open_scorer(tmp_path / "ctc.onnx", "classes")
