"""Recurrent networks in onnxruntime: loops as Scan operators, delays outside them, against the engine."""

import numpy as np
import pytest

from acoustic.descriptions.builders.recurrent import LstmOptions
from acoustic.engine.engine import Engine
from acoustic.export.onnx_export import to_onnx
from readers.errors import ModelError
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.export.test_onnx_export import run_onnx
from tests.acoustic.recurrence.recurrent_networks import of_ndl, randomise

pytest.importorskip("onnxruntime")
SCRIPTS = {
    "RNN": "top=RNN(x, 3)",
    "LSTM": "top=LSTM(x, 3, defaultHiddenActivity=0.3)",
    "stack": "L1=LSTMP(x, 4, 2)\ntop=BLSTM(L1, 3)",
    "reversed": "top=RowStack(LSTM(x, 3), TimeReverse(LSTM(TimeReverse(x), 3)))",
    "three steps": "old=PastValue(3, top, timeStep=3)\nW=Parameter(3,4)\nR=Parameter(3,3)\n"
    "top=Tanh(Plus(Times(W, x), Times(R, old)))",
    "two delays": "old=FutureValue(3, top, timeStep=2)\nnew=FutureValue(3, top)\nW=Parameter(3,4)\nR=Parameter(3,3)\n"
    "top=Tanh(Plus(Times(W, x), Plus(new, Times(R, old))))",
    "outside": "W=Parameter(3,4)\ny=Times(W,x)\ntop=RowStack(PastValue(3,y,timeStep=2), FutureValue(3,y,timeStep=3))",
    "the delay is seen": "top=PastValue(3, h)\nW=Parameter(3,4)\nR=Parameter(3,3)\n"
    "h=Tanh(Plus(Times(W, x), Times(R, top)))",
    "spliced": 'top=TDNNF(TimeSplice(x, "-2:0:1"), 12, 3, past="-3:0", future="0:2")',
    "normalised": "old=PastValue(3, top)\nW=Parameter(3,4)\ns=Softmax(Plus(Times(W, x), old))\n"
    "top=RowStack(RowSlice(1, 2, s), RowSlice(0, 1, old))",
}


def compare(network, name, num_frames, x=None):
    if x is None:
        x = np.asfortranarray(np.random.default_rng(1).standard_normal((4, num_frames)).astype(np.float32))
    (given,) = network.features or ["x"]
    engine = Engine(network, [name])
    engine.forward({given: x}, layout=SequenceLayout.of_lengths([num_frames]))
    found = run_onnx(to_onnx(network, [name]), {given: x})[name]
    np.testing.assert_allclose(found, engine.value(name), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("title", SCRIPTS)
@pytest.mark.parametrize("num_frames", [1, 2, 9])
def test_the_same_values(title, num_frames):
    compare(of_ndl(SCRIPTS[title], "float"), "z", num_frames)


def test_a_network_of_the_builder_with_statistics():
    options = LstmOptions((4, 5, 6, 3), recurrent_layers=(1, 2), normalise_features=True, with_prior=True)
    network = options.build("float", "cpu", 0)
    for name in ("MeanOfFeatures", "InvStdOfFeatures", "Prior"):
        network.set_value(name, np.full(tuple(network.shapes[name]), 0.4, np.float32))
    randomise(network)
    compare(network, "ScaledLogLikelihood", 7)


def test_words_are_looked_up():
    network = randomise(LstmOptions((12, 5, 6, 3), recurrent_layers=(2,), words=3).build("float", "cpu", 0))
    x = np.zeros((12, 7), np.float32)
    words = np.random.default_rng(0).integers([[0], [4], [8]], [[4], [8], [12]], (3, 7))
    x[words, np.arange(7)] = 1
    compare(network, "outputs", 7, np.asfortranarray(x))


def test_what_has_no_form_in_a_loop_is_named():
    network = of_ndl("old=PastValue(4, top)\ntop=KhatriRaoProduct(RowSlice(0, 1, old), x)", "float")
    with pytest.raises(ModelError, match=r"\(KhatriRaoProduct\): has no form in ONNX"):
        to_onnx(network, ["z"])
