"""Forward mode against reverse mode along sequences: delays in loops and out of them, gaps, TimeReverse, dropout."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.forward_mode import jacobian_vector_product
from acoustic.engine.gradient_check import compare_with_forward_mode
from readers.errors import ModelError
from readers.minibatches.sequence_packing import pack_truncated
from tests.acoustic.recurrence.recurrent_networks import data, filled, of_ndl, whole

SCRIPTS = {
    "LSTM": "top=LSTM(x, 3, defaultHiddenActivity=0.3)",
    "stack": "L1=LSTMP(x, 4, 2)\ntop=BLSTM(L1, 3)",
    "reversed": "top=RowStack(LSTM(x, 3), TimeReverse(RNN(TimeReverse(x), 3)))",
    "two steps": "old=PastValue(3, top, timeStep=2)\nW=Parameter(3,4)\nR=Parameter(3,3)\n"
    "top=Tanh(Plus(Times(W, x), Times(R, old)))",
    "outside": "W=Parameter(3,4)\ny=Times(W,x)\ntop=RowStack(PastValue(3,y,timeStep=2), FutureValue(3,y,timeStep=3))",
    "dropout": "old=PastValue(3, top)\nW=Parameter(3,4)\nR=Parameter(3,3)\n"
    "top=Tanh(Plus(Times(W, x), Times(R, Dropout(old))))",
    "nothing moves inside": "c=Constant(1, rows=4)\nold=PastValue(4, s)\ns=Plus(x, Scale(0.5, old))\ntop=s",
}


@pytest.mark.slow
@pytest.mark.parametrize("title", SCRIPTS)
@pytest.mark.parametrize("lengths", [(6,), (5, 7, 1)])
def test_the_two_modes_agree(title, lengths):
    network = of_ndl(SCRIPTS[title])
    matrices, layout = whole(*data(lengths))
    settings = {"dropout_rate": 0.4, "seed": 3} if title == "dropout" else {}
    for comparison in compare_with_forward_mode(network, "J", matrices, layout=layout, **settings):
        assert comparison.error < 1e-10, comparison


@pytest.mark.slow
def test_chunks_with_context():
    network = of_ndl(SCRIPTS["stack"])
    matrices, layout = next(filled(*data((9, 4, 12)), pack_truncated((9, 4, 12), 2, 4, 2)))
    assert layout.num_context
    for comparison in compare_with_forward_mode(network, "J", matrices, layout=layout):
        assert comparison.error < 1e-10, comparison


def test_values_are_those_of_the_engine():
    network = of_ndl(SCRIPTS["stack"])
    matrices, layout = whole(*data((5, 7)))
    engine = Engine(network, ["z", "J"])
    engine.forward(matrices, layout=layout)
    direction = np.ones_like(matrices["x"])
    duals = jacobian_vector_product(network, ["z", "J"], matrices, {"x": direction}, layout=layout)
    for name, dual in duals.items():
        np.testing.assert_allclose(dual.value, engine.value(name), rtol=1e-12)
    moved = {**matrices, "x": matrices["x"] + 1e-6 * direction}
    engine.forward(moved, layout=layout)
    np.testing.assert_allclose((engine.value("z") - duals["z"].value) / 1e-6, duals["z"].tangent, atol=1e-5)


def test_what_has_no_derivative_in_a_loop_is_named():
    network = of_ndl("old=PastValue(4, s)\ns=Plus(x, Hardmax(old))\ntop=s")
    matrices, layout = whole(*data((5,)))
    with pytest.raises(ModelError, match=r"\(Hardmax\): has no derivative with respect to 'old'"):
        jacobian_vector_product(network, ["z"], matrices, {"x": matrices["x"]}, layout=layout)
