"""Exported networks give in onnxruntime what the engine gives: every node type that says it can, and whole models."""

import inspect

import numpy as np
import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.export import onnx_export
from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.registry import registered_nodes
from acoustic.nodes.sums import BroadcastNode
from readers.config.config import Config
from readers.errors import ConfigError, ModelError
from tests.acoustic.nodes.examples.base import FRAMES, build_with_frames
from tests.acoustic.nodes.examples.every_node import EXAMPLES

onnxruntime = pytest.importorskip("onnxruntime")

TOLERANCE = 1e-5
CRITERIA = {"SquareError", "CrossEntropy", "CrossEntropyWithSoftmax", "Logistic", "ErrorPrediction"}


def has_form(type_name):
    node = next(node for node in registered_nodes() if node.type_name == type_name)
    return bool(node.onnx_operator) or node.to_onnx is not Node.to_onnx


def run_onnx(model, feeds):
    """The outputs of a model, (rows, frames), of inputs (rows, frames)."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    content = model if isinstance(model, bytes) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    wanted = {one.name for one in session.get_inputs()}
    values = session.run(None, {name: np.ascontiguousarray(feeds[name].T) for name in wanted})
    return {output.name: value.T for output, value in zip(session.get_outputs(), values)}


def compare(network, outputs, feeds, tolerance=TOLERANCE):
    engine = Engine(network, outputs)
    engine.forward({name: feeds[name] for name in engine.inputs})
    given = run_onnx(onnx_export.to_onnx(network, outputs), feeds)
    for name in outputs:
        wanted = network.backend.to_host(engine.value(name))
        np.testing.assert_allclose(given[name], wanted, rtol=tolerance, atol=tolerance)


def randomise(network, rng, scale=0.5):
    for node in network.stored():
        shape = network.shapes[node.name]
        spread = scale / np.sqrt(shape.cols)
        values = rng.uniform(0.5, 1.5, shape) if node.is_precomputed else rng.normal(0, spread, shape)
        network.set_value(node, values.astype(network.backend.dtype))


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.frames and has_form(e.type_name)], ids=str)
def test_every_node_with_a_form_gives_the_same(example):
    operands = example.operands(np.random.default_rng(3), FRAMES)
    network, feeds, _ = build_with_frames(example, operands, precision="float")
    feeds = {name: np.asfortranarray(matrix.astype(np.float32)) for name, matrix in feeds.items()}
    if repeats_several_columns(network, network["v"]):
        with pytest.raises(ModelError, match=r"node 'v' .*: repeats several columns; expected a single one"):
            onnx_export.to_onnx(network, ["v"])
    else:
        compare(network, ["v"], feeds)


def repeats_several_columns(network, node):
    cols = {network.shapes[operand.name].cols for operand in node.operands}
    return isinstance(node, BroadcastNode) and len(cols - {1}) > 1


def test_types_without_a_form_are_few_and_refused_by_name():
    """A new type either says what it is in ONNX or stands here, so that nobody forgets."""
    without = {
        node.type_name
        for node in registered_nodes()
        if not node.is_input and not node.is_stored and not has_form(node.type_name)
    }
    assert without <= CRITERIA | {
        *("SumElements", "MatrixL1Reg", "MatrixL2Reg", "CosDistance", "CosDistanceWithNegativeSamples"),
        *("GMMLogLikelihood", "KhatriRaoProduct", "ClassBasedCrossEntropyWithSoftmax", "PairNetwork"),
        "NCEBasedCrossEntropyWithSoftmax",
        "DummyCriterion",
        *("ForwardBackward", "LabelsToGraph", "EditDistanceError"),
        *("CRF", "SequenceDecoder", "LFMMI", "LFMMICrossEntropy", "SequenceWithSoftmax"),
    }
    network = Network()
    network.add("InputValue", "x", rows=3)
    network.add("SumElements", "s", "x")
    with pytest.raises(ModelError, match=r"node 's' \(SumElements\): has no form in ONNX"):
        onnx_export.to_onnx(network, ["s"])


def test_the_fully_connected_network_with_normalisation_and_prior():
    options = SimpleNetworkOptions(
        (33, 64, 64, 20),
        ("Sigmoid", "RectifiedLinear"),
        eval_criterion="ErrorPrediction",
        normalise_features=True,
        with_prior=True,
        with_dropout=True,
    )
    network = build_simple_network(options)
    rng = np.random.default_rng(0)
    randomise(network, rng)
    outputs = ["ScaledLogLikelihood", "PosteriorProb"]
    for frames in (1, 17):
        features = np.asfortranarray(rng.normal(size=(33, frames)).astype(np.float32))
        compare(network, outputs, {"features": features})


def test_a_convolutional_network():
    network = Network(seed=1)
    network.add("ImageInput", "image", width=11, height=24, channels=1)
    network.add("LearnableParameter", "w1", rows=16, cols=5 * 5, init="gaussian", initValueScale=5)
    network.add(
        "Convolution",
        "c1",
        "w1",
        "image",
        kernelWidth=5,
        kernelHeight=5,
        outputChannels=16,
        horizontalSubsample=1,
        verticalSubsample=2,
        zeroPadding=True,
    )
    network.add("LearnableParameter", "b1", rows=16, init="gaussian")
    network.add("RectifiedLinear", "r1", network.add("Plus", "p1", "c1", "b1"))
    network.add("MaxPooling", "m1", "r1", windowWidth=2, windowHeight=2, stepW=2, stepH=2)
    rows = network.shapes["m1"].rows
    network.add("LearnableParameter", "w2", rows=30, cols=rows, init="gaussian", initValueScale=5)
    network.add("Softmax", "out", network.add("Times", "t2", "w2", "m1"))
    images = np.asfortranarray(np.random.default_rng(2).normal(size=(11 * 24, 9)).astype(np.float32))
    compare(network, ["out", "m1"], {"image": images})


def test_a_network_of_two_inputs():
    network = Network(seed=2)
    network.add("InputValue", "fbank", rows=40, tag="feature")
    network.add("InputValue", "mfcc", rows=13, tag="feature")
    for name, rows in (("fbank", 40), ("mfcc", 13)):
        network.add("LearnableParameter", f"W_{name}", rows=32, cols=rows, init="gaussian", initValueScale=5)
        network.add("Times", f"T_{name}", f"W_{name}", name)
    network.add("Sigmoid", "h", network.add("Plus", "sum", "T_fbank", "T_mfcc"))
    network.add("RowStack", "both", "h", "mfcc")
    network.add("LearnableParameter", "W", rows=10, cols=45, init="gaussian", initValueScale=5)
    network.add("LogSoftmax", "out", network.add("Times", "T", "W", "both"))
    rng = np.random.default_rng(0)
    feeds = {
        name: np.asfortranarray(rng.normal(size=(rows, 21)).astype(np.float32))
        for name, rows in (("fbank", 40), ("mfcc", 13))
    }
    compare(network, ["out"], feeds)


def test_an_output_may_be_an_input_or_a_parameter():
    network = Network()
    network.add("InputValue", "x", rows=3)
    values = run_onnx(onnx_export.to_onnx(network, ["x"]), {"x": np.ones((3, 2), np.float32)})
    assert values["x/output"].shape == (3, 2)


def test_a_statistic_that_is_not_computed_is_refused():
    network = Network()
    network.add("Mean", "m", network.add("InputValue", "x", rows=3))
    network.add("Minus", "d", "x", "m")
    with pytest.raises(ModelError, match=r"node 'm' \(Mean\): not computed; expected a trained model"):
        onnx_export.to_onnx(network, ["d"])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(onnx_export.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"the onnx package is missing; .*pip install '\.\[onnx\]'"):
        onnx_export.to_onnx(Network(), [])


# The action


@pytest.fixture
def model(tmp_path):
    network = build_simple_network(SimpleNetworkOptions((6, 8, 4), with_prior=True))
    randomise(network, np.random.default_rng(0))
    save_model(network, tmp_path / "net")
    return tmp_path / "net", network


def export(text):
    action = make_action("export", Config.from_text(f"e=[\n{text}\n]", "a.cntk").block("e"), CommonSettings())
    return action.run(lambda line: None, lambda *arguments, **figures: None)


@pytest.mark.parametrize("key", ["outputPath", "outputFile"])
def test_the_action_writes_what_the_model_computes(model, tmp_path, key):
    path, network = model
    export(f"modelPath={path}\n{key}={tmp_path}/out/net.onnx\noutputNodeNames=PosteriorProb:HLast")
    features = np.asfortranarray(np.random.default_rng(1).normal(size=(6, 5)).astype(np.float32))
    given = run_onnx((tmp_path / "out/net.onnx").read_bytes(), {"features": features})
    assert set(given) == {"PosteriorProb", "HLast"}
    engine = Engine(network, ["HLast"])
    engine.forward({"features": features})
    np.testing.assert_allclose(given["HLast"], engine.value("HLast"), atol=TOLERANCE)


def test_without_names_the_output_nodes_are_written_beside_the_model(model, tmp_path):
    export(f"modelPath={model[0]}")
    features = np.zeros((6, 1), np.float32)
    assert set(run_onnx((tmp_path / "net.onnx").read_bytes(), {"features": features})) == {"ScaledLogLikelihood"}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("format=keras", ConfigError, r"a.cntk:3: e.format is 'keras'; expected onnx"),
        ("outputNodeNames=Posterior", ModelError, r"node 'Posterior': not in the network; did you mean PosteriorProb"),
        ("outputNodeNames=CrossEntropyWithSoftmax", ModelError, r"has no form in ONNX"),
    ],
)
def test_what_cannot_be_exported_is_refused(model, tmp_path, text, error, message):
    with pytest.raises(error, match=message):
        export(f"modelPath={model[0]}\n{text}")
    assert not list(tmp_path.glob("*.onnx"))


def test_base_class_documents_its_layout():
    assert "transposed" in inspect.getdoc(Node.to_onnx)
