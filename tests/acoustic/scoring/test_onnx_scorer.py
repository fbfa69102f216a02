"""Scores of ONNX models against those of the networks that they were written from."""

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.export.onnx_export import export_onnx
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.network.unseen_classes import UNSEEN
from acoustic.scoring.score_stream import ScoreStream
from acoustic.scoring.scorer import AcousticScorer
from readers.errors import ModelError, ShapeError
from tests.acoustic.scoring.test_score_stream import in_parts, recurrent

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from acoustic.scoring.onnx_scorer import OnnxScorer

DIM, WINDOW, CLASSES = 3, 5, 4
PRIORS = [0.1, 0.2, 0.3, 0.4]


@pytest.fixture(scope="module")
def network():
    made = build_simple_network(
        SimpleNetworkOptions((DIM * WINDOW, 8, CLASSES), with_prior=True, init_scale=20), seed=3
    )
    made.set_value("Prior", np.array(PRIORS)[:, None])
    made.add("LogSoftmax", "LogPosterior", "HLast")
    return made


@pytest.fixture(scope="module")
def paths(network, tmp_path_factory):
    directory = tmp_path_factory.mktemp("models")
    save_model(network, directory / "model")
    export_onnx(network, ["ScaledLogLikelihood"], directory / "model.onnx")
    export_onnx(network, ["ScaledLogLikelihood", "LogPosterior"], directory / "two.onnx")
    return directory


def frames_of(num_frames):
    return np.random.default_rng(num_frames).normal(size=(DIM, num_frames))


@pytest.mark.parametrize("num_frames", [1, 2, 64, 130])
def test_scores_are_those_of_the_network(paths, num_frames):
    scorer, expected = OnnxScorer(paths / "model.onnx", window=WINDOW), AcousticScorer(paths / "model", window=WINDOW)
    assert (scorer.dim, scorer.num_outputs, scorer.output) == (DIM, CLASSES, "ScaledLogLikelihood")
    scores = scorer.score(frames_of(num_frames))
    assert scores.dtype == np.float32
    assert scores.flags.f_contiguous
    np.testing.assert_allclose(scores, expected.score(frames_of(num_frames)), rtol=1e-4, atol=1e-5)
    parts, _ = in_parts(ScoreStream(scorer, 4), frames_of(num_frames), np.random.default_rng(0), 9)
    np.testing.assert_allclose(parts, scores, rtol=1e-5, atol=1e-6)


def test_priors_make_likelihoods_of_posteriors(paths):
    frames = frames_of(20)
    scorer = OnnxScorer(paths / "two.onnx", "LogPosterior", WINDOW, priors=np.array(PRIORS) * 1000)
    scaled = OnnxScorer(paths / "two.onnx", "ScaledLogLikelihood", WINDOW).score(frames)
    scores = scorer.score(frames)
    np.testing.assert_allclose(scores - scores[:1], scaled - scaled[:1], atol=1e-4)
    scores = OnnxScorer(paths / "two.onnx", "LogPosterior", WINDOW, priors=[1, 0, 2, 3]).score(frames)
    assert (scores[1] == UNSEEN).all()
    assert np.abs(np.delete(scores, 1, axis=0)).max() < 1e3


def test_classes_never_seen_in_training_are_those_of_the_network(tmp_path):
    made = build_simple_network(
        SimpleNetworkOptions((DIM * WINDOW, 8, CLASSES), with_prior=True, init_scale=20), seed=3
    )
    made.set_value("Prior", np.array([[0.5], [0.0], [0.5], [0.0]]))
    save_model(made, tmp_path / "model")
    frames = frames_of(9)
    for output in ("ScaledLogLikelihood", "HLast", "PosteriorProb"):
        export_onnx(made, [output], tmp_path / "model.onnx")
        scores = OnnxScorer(tmp_path / "model.onnx", window=WINDOW).score(frames)
        expected = AcousticScorer(tmp_path / "model", output, WINDOW).score(frames)
        np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5)
        assert (scores[[1, 3]] == UNSEEN).all() == (output == "ScaledLogLikelihood")


def test_a_recurrent_model_takes_whole_utterances_alone(tmp_path):
    from acoustic.network.model_file import load_model

    output = recurrent(tmp_path / "model", "PastValue")
    export_onnx(load_model(tmp_path / "model"), [output], tmp_path / "model.onnx")
    scorer = OnnxScorer(tmp_path / "model.onnx", window=WINDOW)
    expected = AcousticScorer(tmp_path / "model", output, WINDOW).score(frames_of(30))
    np.testing.assert_allclose(scorer.score(frames_of(30)), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ModelError, match=r"scores of a frame depend on the frames around it; expected a network that"):
        ScoreStream(scorer)


def test_faults_of_the_model_are_named(paths, tmp_path):
    with pytest.raises(
        ModelError, match=r"two.onnx: outputs ScaledLogLikelihood, LogPosterior; expected one, or a name"
    ):
        OnnxScorer(paths / "two.onnx", window=WINDOW)
    with pytest.raises(ModelError, match=r"two.onnx: no output 'x'; expected one of ScaledLogLikelihood, LogPosterior"):
        OnnxScorer(paths / "two.onnx", "x", WINDOW)
    with pytest.raises(
        ModelError, match=r"model.onnx: input 'features' has 15 rows; expected a multiple of the window"
    ):
        OnnxScorer(paths / "model.onnx")
    with pytest.raises(
        ModelError, match=r"priors of shape \(3,\), sum 3; expected 4 of at least 0, one for each output"
    ):
        OnnxScorer(paths / "model.onnx", window=WINDOW, priors=[1, 1, 1])
    with pytest.raises(ModelError, match=r"absent.onnx: no such file; expected an ONNX model"):
        OnnxScorer(tmp_path / "absent.onnx")
    (tmp_path / "odd.onnx").write_bytes(b"no model at all")
    with pytest.raises(ModelError, match=r"odd.onnx: .*; expected an ONNX model"):
        OnnxScorer(tmp_path / "odd.onnx")


def test_models_of_other_forms_are_refused(tmp_path):
    two = Network()
    two.add("InputValue", "x", rows=5)
    two.add("InputValue", "y", rows=5)
    export_onnx(two_sum(two), ["sum"], tmp_path / "two.onnx")
    with pytest.raises(ModelError, match=r"inputs \S+, \S+; expected one"):
        OnnxScorer(tmp_path / "two.onnx", window=5)


def two_sum(network):
    network.add("Plus", "sum", "x", "y")
    return network


def test_faults_of_features_are_named(paths):
    scorer = OnnxScorer(paths / "model.onnx", window=WINDOW)
    with pytest.raises(ShapeError, match=r"features: a matrix of 4x9; expected 3 rows"):
        scorer.score(np.zeros((4, 9)))


@pytest.mark.parametrize("name", [b"features", b"ScaledLogLikelihood", b"frames"])
def test_names_that_are_not_utf8_are_refused(paths, tmp_path, name):
    raw = (paths / "model.onnx").read_bytes()
    assert name in raw
    (tmp_path / "odd.onnx").write_bytes(raw.replace(name, name[:-1] + b"\xca"))
    with pytest.raises(ModelError, match=r"odd\.onnx: .*; expected an ONNX model"):
        OnnxScorer(tmp_path / "odd.onnx", window=WINDOW)


def test_a_model_without_outputs_is_refused(paths, tmp_path):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(paths / "model.onnx")
    del model.graph.output[:]
    onnx.save(model, tmp_path / "odd.onnx")
    with pytest.raises(ModelError, match=r"odd\.onnx: (outputs none; expected one|.*expected an ONNX model)"):
        OnnxScorer(tmp_path / "odd.onnx", window=WINDOW)


@pytest.mark.parametrize(
    ("make_output", "message"),
    [
        (lambda h: h.make_node("Shape", ["x"], ["y"]), r"'y' of 4 frames is int64; expected floating-point numbers"),
        (lambda h: h.make_node("SequenceConstruct", ["x"], ["y"]), r"'y' of 4 frames is list; expected floating"),
        (
            lambda h: h.make_node("Transpose", ["x"], ["y"]),
            r"'y' of 4 frames is \(5, 4\); expected \(frames",
        ),
    ],
)
def test_outputs_that_are_no_scores_are_refused(tmp_path, make_output, message):
    onnx = pytest.importorskip("onnx")
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    x, y = helper.make_tensor_value_info("x", floats, ["n", 5]), helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([make_output(helper)], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match=message):
        OnnxScorer(tmp_path / "m.onnx", window=5)


@pytest.mark.filterwarnings("error")
def test_scores_may_be_infinite(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    x, y = (helper.make_tensor_value_info(name, floats, ["n", 5]) for name in "xy")
    nodes = [helper.make_node("Constant", [], ["zero"], value_float=0.0), helper.make_node("Div", ["x", "zero"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    assert np.isinf(OnnxScorer(tmp_path / "m.onnx", window=5).score(np.ones((1, 7)))).all()
