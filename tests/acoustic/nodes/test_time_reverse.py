"""TimeReverse: each sequence by itself, gaps where they are; bidirectional networks by it and by FutureValue."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from readers.errors import ModelError, ShapeError
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.recurrence.recurrent_networks import (
    check_numerically,
    check_parallel_is_the_sum,
    cut,
    data,
    gradients,
    of_ndl,
    packed,
    values,
    whole,
)

BY_REVERSING = "F=LSTM(x, 3)\nB=TimeReverse(LSTM(TimeReverse(x), 3))\ntop=RowStack(F, B)"
BY_FUTURE = "top=BLSTM(x, 3)"


def reversing():
    network = Network("double", threads=1)
    network.add("Input", "x", rows=4)
    network.add("TimeReverse", "back", "x")
    return network


@pytest.mark.parametrize("lengths", [(1,), (6,), (5, 7, 2)])
def test_each_sequence_is_reversed(lengths):
    xs, _ = data(lengths)
    layout = SequenceLayout.of_lengths(lengths)
    found = values(reversing(), "back", [({"x": packed(xs)}, layout)])
    np.testing.assert_array_equal(found, packed([x[:, ::-1] for x in xs]))


def test_several_sequences_in_one_slot_and_gaps_stay():
    """Slot 0: steps 0 to 2, 3, 4 to 5 and a gap; slot 1: a gap, then steps 1 to 6."""
    starts, ends, gaps = (np.zeros((7, 2), bool) for _ in range(3))
    starts[[0, 3, 4], 0] = ends[[2, 3, 5], 0] = gaps[6, 0] = gaps[0, 1] = starts[1, 1] = ends[6, 1] = True
    layout = SequenceLayout(2, 7, starts, ends, gaps)
    x = np.asfortranarray(np.arange(14.0).reshape(1, 14).repeat(4, axis=0))
    found = values(reversing(), "back", [({"x": x}, layout)])[0].reshape(7, 2)
    np.testing.assert_array_equal(found[:, 0] / 2, [2, 1, 0, 3, 5, 4, 6])
    np.testing.assert_array_equal((found[:, 1] - 1) / 2, [0, 6, 5, 4, 3, 2, 1])


def test_bidirectional_networks_both_ways_are_one():
    reverse, future, lengths = of_ndl(BY_REVERSING), of_ndl(BY_FUTURE), (5, 7, 1, 4)
    learned = [node.name for node in reverse.parameters()]
    other = [node.name for node in future.parameters()]
    assert len(learned) == len(other)  # in the same order
    for name, twin in zip(learned, other):
        future.set_value(twin, reverse[name].value)
    batch = [whole(*data(lengths))]
    (total, mine), (same, theirs) = gradients(reverse, batch), gradients(future, batch)
    assert total == pytest.approx(same, rel=1e-12)
    for name, twin in zip(learned, other):
        np.testing.assert_allclose(mine[name], theirs[twin], rtol=1e-9, atol=1e-12)


def test_gradients():
    network = of_ndl(BY_REVERSING)
    check_numerically(network, *whole(*data((5, 7, 2))))
    check_parallel_is_the_sum(network)


def test_parts_of_sequences_are_refused():
    """The first part of two sequences, and, of one that began alone, the second."""
    message = r"node '\S+' \(TimeReverse\): a minibatch with a part of a sequence; expected whole sequences"
    (first, layout), _ = cut(*data((5, 7)), (3, 4))
    with pytest.raises(ModelError, match=message):
        Engine(of_ndl(BY_REVERSING), ["J"]).forward(first, layout=layout)
    engine, no, yes = Engine(of_ndl("top=RowStack(TimeReverse(x), PastValue(4, x))"), ["z"]), [[False]], [[True]]
    engine.forward({"x": np.zeros((4, 1))}, layout=SequenceLayout(1, 1, *map(np.array, (yes, yes, no))))
    with pytest.raises(ModelError, match="part of a sequence"):
        engine.forward({"x": np.zeros((4, 1))}, layout=SequenceLayout(1, 1, *map(np.array, (yes, no, no))))


def test_frames_on_their_own_and_matrices_without_frames_are_refused():
    with pytest.raises(ModelError, match=r"node 'back' \(TimeReverse\): independent frames; expected whole sequences"):
        Engine(reversing(), ["back"]).forward({"x": np.zeros((4, 3))})
    network = Network("double", threads=1)
    network.add("Parameter", "W", rows=4, cols=5)
    with pytest.raises(ShapeError, match=r"node 'v' \(TimeReverse\): X '.*' is 4x5; expected one column per frame"):
        network.add("TimeReverse", "v", "W")


def test_no_step_of_a_loop_can_look_at_the_whole_sequence():
    with pytest.raises(
        ModelError, match=r"\(TimeReverse\): in the loop of .*; expected nodes there that take frames one"
    ):
        network = of_ndl("past=PastValue(4, top)\ntop=TimeReverse(Plus(x, past))")
        Engine(network, ["J"])


def test_it_makes_a_network_recurrent_and_is_saved(tmp_path):
    network = reversing()
    assert [node.name for node in network.delays()] == ["back"]
    save_model(network, tmp_path / "model")
    assert load_model(tmp_path / "model")["back"].type_name == "TimeReverse"
