"""Factored time-delay networks of the macros: gradients, chunks as parts of utterances, the constraint in training."""

from dataclasses import replace

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient
from acoustic.training.rules.semi_orthogonal import constrain
from acoustic.training.sgd import train
from readers.minibatches.base import Minibatch
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.recurrence.recurrent_networks import (
    check_numerically,
    data,
    gradients,
    of_ndl,
    packed,
    whole,
)

MACROS = """
first = RBN(TimeSplice(x, "-1:0:1"), 8)
second = TDNNF(first, 8, 3)
third = TDNNF(second, 8, 3, past="-3:0", future="0:3", bypass=0.5)
top = Prefinal(third, 8, 5)
"""
# Without batch normalisation, whose statistics depend on the division into minibatches.
PLAIN = """
h = Tanh(Times(Parameter(6, 0), TimeSplice(x, "-1:0:2")))
top = Plus(Tanh(Times(Parameter(6, 0), TimeSplice(h, "-2:1"))), Plus(h, PastValue(6, h)))
"""
REACH = 3, 3


def test_the_macros():
    network = of_ndl(MACROS)
    check_numerically(network, *whole(*data((5, 7, 2))))
    constrained = {node.name: node.value.shape for node in network.parameters() if node.settings["orthonormal"]}
    assert constrained == {"second.L.W": (3, 16), "third.L.W": (3, 16), "top.L.W": (5, 8), "top.L2.W": (5, 8)}
    assert network["third.S"].operands[0].value == 0.5


def test_chunks_with_their_context_are_the_utterance():
    """Criterion and gradients of three chunks with enough context are those of the utterance with repeated edges."""
    network, (left, right) = of_ndl(PLAIN), REACH
    (x,), (labels,) = data((20,))
    edges = [np.repeat(x[:, :1], left, axis=1), x, np.repeat(x[:, -1:], right, axis=1)]
    padded = np.concatenate(edges, axis=1)
    given = np.concatenate([labels[:, :left] * 0, labels, labels[:, :right] * 0], axis=1)

    def part(pieces):
        slots = [slice(first, first + left + count + right) for first, count in pieces]
        layout = SequenceLayout.of_lengths([slot.stop - slot.start for slot in slots])
        counted = np.zeros_like(layout.gaps)
        for slot, (_, count) in enumerate(pieces):
            counted[left : left + count, slot] = True
        matrices = {"x": packed([padded[:, s] for s in slots]), "labels": packed([given[:, s] for s in slots])}
        return matrices, replace(layout, uncounted=~counted & ~layout.gaps)

    total, expected = gradients(network, [part([(0, 20)])])
    for pieces in ([(0, 7), (7, 6), (13, 7)], [(0, 3), (3, 17)]):
        found, sums = gradients(network, [part(pieces)])
        assert found == pytest.approx(total, rel=1e-12)
        for name, gradient in expected.items():
            np.testing.assert_allclose(sums[name], gradient, rtol=1e-9, atol=1e-12)


class Sequences:
    """A reader of one minibatch of sequences, again and again."""

    in_sequence, num_frames = True, 14

    def __init__(self):
        matrices, self.layout = whole(*data((5, 7, 2)))
        self.matrices = {name: matrix.astype(np.float32, order="F") for name, matrix in matrices.items()}

    def dims(self):
        return {name: len(matrix) for name, matrix in self.matrices.items()}

    def minibatches(self, epoch=0, minibatch_size=256, epoch_size=0):
        for _ in range(3):
            matrices = {name: matrix.copy(order="F") for name, matrix in self.matrices.items()}
            yield Minibatch(matrices, {}, self.layout.num_frames, self.layout)


def options(epochs, **more):
    values = {"learning_rates_per_minibatch": 1e-9, "keep_checkpoints": True, "dropout_rate": 0.1}
    return TrainingOptions(max_epochs=epochs, **(values | {"min_learning_rate": 1e-30} | more))


def network():
    return of_ndl(MACROS, "float")


@pytest.mark.parametrize("more", [{}, {"rule": NaturalGradient()}])
def test_every_fourth_update_is_followed_by_a_step(more):
    """The learning rate is so small that nothing else moves the matrices."""
    expected = {node.name: node.value.copy() for node in network().parameters()}
    steps = {"second.L.W": 0}
    for epochs, count in ((1, 0), (2, 1), (3, 2)):  # 3 updates in an epoch
        trained = train(network(), Sequences(), options(epochs, **more)).network
        while steps["second.L.W"] < count:
            constrain(np, expected["second.L.W"], -1.0)
            steps["second.L.W"] += 1
        for name in ("second.L.W", "second.RBN.W"):
            np.testing.assert_allclose(trained[name].value, expected[name], rtol=1e-4, atol=1e-5)


def test_a_resumed_training_is_the_same_bit_for_bit(tmp_path):
    more = {"learning_rates_per_minibatch": 0.1}
    expected = train(network(), Sequences(), options(5, **more), model_path=tmp_path / "whole").network
    train(network(), Sequences(), options(2, **more), model_path=tmp_path / "parts")
    for path in [*tmp_path.glob("parts"), *tmp_path.glob("parts.ckp")]:
        path.rename(path.with_name(path.name.replace("parts", "parts.2")))
    parts = train(network(), Sequences(), options(5, **more), model_path=tmp_path / "parts")
    assert parts.start_epoch == 2
    for node in expected.stored():
        np.testing.assert_array_equal(node.value, parts.network[node.name].value)


def test_training_keeps_the_constraint():
    trained = train(network(), Sequences(), options(30, learning_rates_per_minibatch=0.1)).network
    w = trained["second.L.W"].value.astype(float)
    p = w @ w.T
    target = np.trace(p @ p) / np.trace(p)
    assert np.linalg.norm(p - target * np.eye(3)) < 0.05 * target
    engine = Engine(trained, ["J"])
    engine.forward(Sequences().matrices, layout=Sequences().layout)
    assert np.isfinite(engine.value("J")).all()
