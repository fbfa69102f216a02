"""The recurrent macros that come with the program: gradients in double precision, sequences side by side and cut."""

import numpy as np
import pytest

from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.descriptions.ndl.macros import shipped_macros
from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.recurrence.loop_node import Loop
from readers.config.syntax import Source
from readers.minibatches.sequence_packing import pack_truncated
from tests.acoustic.recurrence.recurrent_networks import (
    check_numerically,
    check_parallel_is_the_sum,
    check_part_numerically,
    cut,
    data,
    filled,
    gradients,
    of_ndl,
    values,
    whole,
)

LAYERS = {
    "RNN": "top=RNN(x, 3)",
    "LSTM": "top=LSTM(x, 3, forgetBias=1)",
    "LSTMPlain": "top=LSTMPlain(x, 3)",
    "LSTMP": "top=LSTMP(x, 4, 2)",
    "RNNBack": "top=RNNBack(x, 3)",
    "LSTMBack": "top=LSTMBack(x, 3, defaultHiddenActivity=0.1)",
    "LSTMPlainBack": "top=LSTMPlainBack(x, 3)",
    "LSTMPBack": "top=LSTMPBack(x, 4, 2)",
    "BRNN": "top=BRNN(x, 3)",
    "BLSTM": "top=BLSTM(x, 3)",
    "BLSTMPlain": "top=BLSTMPlain(x, 3)",
    "BLSTMP": "top=BLSTMP(x, 4, 2)",
}
STACKS = {
    "two LSTMs": "L1=LSTM(x, 3)\ntop=LSTM(L1, 4)",
    "two BLSTMs": "L1=BLSTM(x, 2)\ntop=BLSTM(L1, 3)",
    "LSTMP below LSTM": "L1=LSTMP(x, 4, 2)\ntop=LSTM(L1, 3)",
}
ALL = LAYERS | STACKS
FORWARD = [title for title in ALL if "B" not in title]


def test_every_layer_is_here():
    assert set(LAYERS) == {
        name for name in shipped_macros().names() if ("RNN" in name or "LSTM" in name) and not name.endswith("Step")
    }


@pytest.mark.slow
@pytest.mark.parametrize("title", ALL)
def test_gradients_of_ragged_sequences_are_the_numeric_ones(title):
    check_numerically(of_ndl(ALL[title]), *whole(*data((5, 7, 2))))


@pytest.mark.slow
@pytest.mark.parametrize("title", ALL)
def test_sequences_in_parallel_give_the_sum_of_each_alone(title):
    check_parallel_is_the_sum(of_ndl(ALL[title]))


@pytest.mark.slow
@pytest.mark.parametrize("title", FORWARD)
def test_parts_of_sequences_go_on(title):
    network, sequences = of_ndl(ALL[title]), data((5, 7, 1))
    batch = whole(*sequences)
    real = ~batch[1].gap_columns
    parts = list(cut(*sequences, (3, 4)))
    np.testing.assert_allclose(values(network, "z", parts)[:, real], values(network, "z", [batch])[:, real], rtol=1e-12)
    check_part_numerically(network, parts)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("macro", ["LSTM", "LSTMPlain", "LSTMP"])
def test_values_follow_the_formula(macro):
    """Eqs. 2.178 to 2.182, and a projection where there is one."""
    network = of_ndl(f"top={macro}(x, 4, 2)" if macro == "LSTMP" else f"top={macro}(x, 4)")
    xs, labels = data((6,))

    def p(name):
        node = network.nodes.get(f"top.{name}")
        return 0 if node is None else node.value

    c, r, expected = np.zeros((4, 1)), np.zeros((2 if macro == "LSTMP" else 4, 1)), []
    for t in range(6):
        x = xs[0][:, t : t + 1]
        total = {g: p(f"Cell.Wx{g}") @ x + p(f"Cell.b{g}") + p(f"Cell.Wh{g}") @ r for g in "ifco"}
        i, f = (sigmoid(total[g] + p(f"Cell.Wc{g}") * c) for g in "if")
        c = f * c + i * np.tanh(total["c"])
        h = sigmoid(total["o"] + p("Cell.Wco") * c) * np.tanh(c)
        r = p("Wp") @ h if macro == "LSTMP" else h
        expected.append(r)
    top = "top.R" if macro == "LSTMP" else "top.Cell.h"
    np.testing.assert_allclose(values(network, top, [whole(xs, labels)]), np.hstack(expected), rtol=1e-12)


def test_initial_values_and_states_can_be_said():
    network = Network("double")
    Scope(network).evaluate(Source.from_text("x=Input(4)\ntop=BLSTM(x, 30, forgetBias=2.5, initValueScale=10)\n", "n"))
    fresh = {node.name: node.value for node in network.parameters()}
    for side in "FB":
        assert (fresh[f"top.{side}.Cell.bf"] == 2.5).all()
        assert (fresh[f"top.{side}.Cell.bi"] == 0).all()
        assert 0.4 < abs(fresh[f"top.{side}.Cell.Whi"]).max() <= 0.5
    made = Scope(network)
    made.evaluate(Source.from_text("z=LSTM(x, 3, forgetGateInitVal=1)", "m"))
    assert made.notes == ["m:1: macro LSTM does not use forgetGateInitVal"]


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("title", ALL)
def test_the_compiled_loops_of_single_precision_agree(title, threads):
    """Whole, cut, and in chunks with frames ahead; as many slots as threads share."""
    lengths = (5, 7, 2, 9, 1, 4, 8, 3)
    double, single = of_ndl(ALL[title]), of_ndl(ALL[title], "float", threads)
    sequences = data(lengths)
    assert all(loop.compiled for loop in Engine(single, ["J"]).graph.order if isinstance(loop, Loop))
    packings = {
        "whole": [whole(*sequences)],
        "cut": list(cut(*sequences, (4, 5))),
        "chunks": list(filled(*sequences, pack_truncated(lengths, 8, 3, 2))),
    }
    for how, batches in packings.items():
        narrow = [({name: one.astype(np.float32) for name, one in given.items()}, layout) for given, layout in batches]
        (expected, sums), (found, others) = gradients(double, batches), gradients(single, narrow)
        assert found == pytest.approx(expected, rel=1e-4), how
        for name, gradient in sums.items():
            np.testing.assert_allclose(others[name], gradient, rtol=2e-3, atol=2e-4, err_msg=how)
