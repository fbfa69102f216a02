"""Every feed-forward function of the book's section 4.1.4, called as printed there, by each of its names."""

import numpy as np
import pytest

from acoustic.descriptions.ndl import Scope
from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.config.syntax import Source
from readers.errors import ArgonautError
from readers.minibatches.sequence_layout import SequenceLayout

OPERANDS = """
m = Input(4, tag=feature)
m2 = Input(4, tag=feature)
labels = Input(4, tag=label)
picture = ImageInput(5, 6, 2, tag=feature)
row = RowSlice(0, 1, m)
W = Parameter(3, 4)
V = Parameter(4, 3)
vcol = Parameter(4)
prior = Parameter(2, 1)
means = Parameter(8, 1)
logstd = Parameter(2, 1)
xMean = Mean(m)
invstd = InvStdDev(m)
kernels = Parameter(0, 0)
"""
# Section and its calls; the result is called f.
CALLS = {
    "4.1.4.1": "InputValue(3), InputValue(3, 1), Input(3, tag=feature), Input(3, 1, tag=label)",
    "4.1.4.2": "ImageInput(4, 3, 2), ImageInput(4, 3, 2, 1, tag=feature), Image(4, 3, 2, tag=label)",
    "4.1.4.3": "LearnableParameter(3), Parameter(3, 2, needGradient=false, init=fixedValue, value=2), "
    "Parameter(3, 2, init=Uniform, initValueScale=2), Parameter(3, 2, init=Gaussian), Parameter(3, init=fromFile)",
    "4.1.4.4": "Constant(2), Constant(2, 3, 4), Const(2, rows=3, cols=4)",
    "4.1.4.5": "RectifiedLinear(m), ReLU(m), Sigmoid(m), Tanh(m), Log(m)",
    "4.1.4.6": "Softmax(m)",
    "4.1.4.7": "LogSoftmax(m)",
    "4.1.4.8": "SumElements(m)",
    "4.1.4.9": "SumColumnElements(m)",
    "4.1.4.10": "Negate(m)",
    "4.1.4.11": "Reshape(m, 2), Reshape(m, 4, imageWidth=2, imageHeight=2, imageChannels=1)",
    "4.1.4.12": "RowSlice(1, 2, m)",
    "4.1.4.13": "RowStack(m, m2), RowStack(m, m2, labels, row)",
    "4.1.4.14": "Scale(0.5, m), Scale(Constant(2), m)",
    "4.1.4.15": "Times(W, m)",
    "4.1.4.16": "TransposeTimes(V, m)",
    "4.1.4.17": "DiagTimes(vcol, m)",
    "4.1.4.18": "Plus(m, m2), Minus(m, m2), Plus(m, vcol), Minus(vcol, m)",
    "4.1.4.19": "ElementTimes(m, m2), RowElementTimes(m, row), ColumnElementTimes(m, vcol)",
    "4.1.4.20": "KhatriRaoProduct(m, m2), ColumnwiseCrossProduct(m, m2)",
    "4.1.4.21": "GMMLogLikelihood(prior, means, logstd, m), GMMLL(prior, means, logstd, m)",
    "4.1.4.22": "SquareError(m, m2), SE(m, m2)",
    "4.1.4.23": "CrossEntropyWithSoftmax(labels, m), CEWithSM(labels, m)",
    "4.1.4.24": "ClassBasedCrossEntropyWithSoftmax(labels, m, V, Times(W, m)), CBCEWithSM(labels, m, V, Times(W, m))",
    "4.1.4.25": "ErrorPrediction(labels, m), ClassificationError(labels, m)",
    "4.1.4.26": "CosDistance(m, m2), CosDist(m, m2)",
    "4.1.4.27": "CosDistanceWithNegativeSamples(m, m2, 1, 2), CosWithNegSamples(m, m2, 1, 2), "
    "CosWithNegSamples(m, m2, Constant(1), Constant(2))",
    "4.1.4.28": "MatrixL1Reg(m), L1Reg(m), MatrixL2Reg(m), L2Reg(m)",
    "4.1.4.29": "Mean(m)",
    "4.1.4.30": "InvStdDev(m)",
    "4.1.4.31": "PerDimMeanVarNormalization(m, xMean, invstd), PerDimMVNorm(m, xMean, invstd)",
    "4.1.4.32": "PerDimMeanVarDeNormalization(m, xMean, invstd), PerDimMVDeNorm(m, xMean, invstd)",
    "4.1.4.33": "Dropout(m)",
    "4.1.4.34": "Convolution(kernels, picture, 2, 3, 7, 1, 2), "
    "Convolve(Parameter(7, 12), picture, 2, 3, 7, 1, 1, zeroPadding=true, maxTempMemSizeInSamples=2)",
    "4.1.4.35": "MaxPooling(picture, 2, 2, 1, 2), AveragePooling(picture, 2, 2, 2, 1)",
    "4.1.4.36": "PastValue(4, m), PastValue(4, 1, m, timeStep=1, defaultHiddenActivity=0.1), "
    "Delay(4, m, delayTime=1), FutureValue(4, m)",
}


def split(calls: str) -> list[str]:
    """The calls of a list with commas between them."""
    depth, parts = 0, [""]
    for character in calls:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


@pytest.mark.parametrize(
    ("section", "call"), [(section, call) for section, calls in CALLS.items() for call in split(calls)]
)
def test_functions_of_the_book(section, call, tmp_path):
    network = Network(seed=1)
    scope = Scope(network)
    unused = "" if section == "4.1.4.34" and "kernels" in call else "kernels = Parameter(0, 0)\n"
    scope.evaluate(Source.from_text(OPERANDS.replace(unused or "\0", "") + f"f = {call}", "book.ndl"))
    network.validate()
    node = scope.find("f")
    assert call.partition("(")[0] in (node.type_name, *node.aliases)
    save_model(network, tmp_path / "model")
    again = load_model(tmp_path / "model")["f"]
    assert (again.type_name, again.settings) == (node.type_name, node.settings)
    if not node.is_leaf:
        assert np.isfinite(value(network)).all()


def value(network: Network) -> np.ndarray:
    rng = np.random.default_rng(2)
    data = {}
    for node in network.nodes.values():
        if node.is_input:
            matrix = rng.uniform(0.5, 1, size=(network.shapes[node.name].rows, 6))
            data[node.name] = np.asfortranarray(matrix, dtype=np.float32)
    if network["f"].type_name == "ClassBasedCrossEntropyWithSoftmax":
        data["labels"] = np.tile(np.float32([[1], [0], [0], [3]]), 6)  # word 1 of 3, all in class 0
    for node in network.precomputed():
        network.set_value(node, np.full((network.shapes[node.name].rows, 1), 0.5, dtype=np.float32))
    engine = Engine(network, ["f"])
    engine.forward(data, layout=SequenceLayout.of_lengths([6]))
    return np.asarray(engine.value("f"))


# Sizes that a description leaves open with 0 (4.1.4.34)


def test_sizes_left_open_are_settled_by_the_node_that_uses_them():
    network = Network()
    text = "p=ImageInput(5,6,2)\nW=Parameter(0,0)\nc=Convolution(W,p,2,3,7,1,2)\nV=Parameter(3,0)\nt=Times(V,c)"
    Scope(network).evaluate(Source.from_text(text, "book.ndl"))
    assert network["W"].value.shape == (7, 12)
    assert network["V"].value.shape == (3, network.shapes["c"].rows)
    network.validate()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "W=Parameter(0,0)",
            r"book.ndl:2: node 'W' \(LearnableParameter\): shape 0x0; expected at least one row and one",
        ),
        ("W=Parameter(0,0)\ny=Times(W,x)", "book.ndl:3: node 'y' .*: shape 0x\\*; expected at least one row"),
        ("W=Parameter(-1,0)", "book.ndl:2: node 'W' .*: shape -1x0; expected at least one row"),
        ("W=Parameter(3,0)\ny=Sigmoid(W)", "book.ndl:3: node 'y' .*: shape 3x0; expected at least one row"),
    ],
)
def test_sizes_that_nobody_settles_are_faults(text, message):
    with pytest.raises(ArgonautError, match=message):
        Scope(Network()).evaluate(Source.from_text(f"x=Input(4)\n{text}", "book.ndl"))
