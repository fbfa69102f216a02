"""Every registered node type inside a recurrent loop: gradients in double precision, or refused by name.

The loop goes from a PastValue through the node, whose operands are made fit by what its examples are filled with.
Sequences of different lengths lie side by side, whole and cut, and alone.
"""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from readers.errors import ModelError, ShapeError
from tests.acoustic.nodes.examples.base import add_image, normal
from tests.acoustic.nodes.examples.every_node import EXAMPLES
from tests.acoustic.nodes.test_every_node import WITHOUT_FRAMES, computed_types
from tests.acoustic.recurrence.recurrent_networks import (
    CLASSES,
    INPUTS,
    check_numerically,
    check_part_numerically,
    cut,
    data,
    gradients,
    randomise,
    whole,
)

SIZE, LENGTHS = 3, (5, 3, 4)


# What an operand is filled with -> (scale, shift) of a sigmoid that gives the like.
RANGES = {
    "positive": (1.5, 0.5),
    "probability": (0.8, 0.1),
    "zero_or_one": (0.8, 0.1),
    "away_from_zero": (1.3, 0.2),
    "clear_of_whole_numbers": (0.8, 0.1),
    "clear_of_limits": (0.6, 0.1),
}
CLASSES_LIKE = ("distribution", "one_hot", "two_words")


def squash(network, name, below, fill):
    """A node that brings any matrix into the range that operands are filled with."""
    if fill.__name__ not in RANGES:
        return network.add("Softmax" if fill.__name__ in CLASSES_LIKE else "Tanh", name, below)
    network.add("Sigmoid", f"{name}.sigmoid", below)
    scale, shift = RANGES[fill.__name__]
    network.add("Scale", f"{name}.scaled", network.add("Constant", f"{name}.scale", value=scale), f"{name}.sigmoid")
    return network.add("Plus", name, f"{name}.scaled", network.add("Constant", f"{name}.shift", value=shift))


class InALoop:
    """The network around a node; fed: matrices for operands that have no gradient, one column per column of x."""

    def __init__(self, example):
        rng = np.random.default_rng(4)
        network = self.network = Network("double", threads=1)
        network.add("Input", "x", rows=INPUTS)
        network.add("Input", "labels", rows=CLASSES)
        network.add_node("PastValue", "past", [None], {"rows": SIZE})
        values, fills = example.operands(rng), example.fill or (normal,) * len(example.shapes)
        self.fed, self.given, names = {}, {}, []
        for k, (rows, cols) in enumerate(example.shapes):
            name = f"operand{k}"
            if k not in example.frames:
                network.add("Parameter", name, rows=rows, cols=cols, needGradient=k not in example.fixed)
                self.given[name] = values[k]
            elif k in example.fixed:
                network.add("Input", name, rows=rows)
                self.fed[name] = (fills[k], rows)
            else:
                from_loop = self._product(f"{name}.h", rows, SIZE, "past")
                total = network.add("Plus", f"{name}.sum", from_loop, self._product(f"{name}.x", rows, INPUTS, "x"))
                squash(network, name, total, fills[k])
            names.append(add_image(network, example, k, name))
        network.add(example.type_name, "v", *names, **example.options)
        network.add("Tanh", "top", network.add("Plus", "all", self._value(), self._product("xs", SIZE, INPUTS, "x")))
        network.connect("past", "top")
        z = network.add(
            "Plus", "z", self._product("out", CLASSES, SIZE, "top"), network.add("Parameter", "b", rows=CLASSES)
        )
        network.add("CrossEntropyWithSoftmax", "J", "labels", z)
        randomise(network)
        for name, value in self.given.items():
            network.set_value(name, value)

    def _product(self, name, rows, cols, below):
        return self.network.add("Times", name, self.network.add("Parameter", f"{name}.W", rows=rows, cols=cols), below)

    def _value(self):
        """SIZE rows and a column per frame that follow from v."""
        rows, cols = self.network.shapes["v"]
        if cols is None:
            return self._product("vs", SIZE, rows, "v")
        column = self._product("vs", SIZE, rows, "v")
        return self.network.add("Plus", "spread", column, self._product("spread.x", SIZE, INPUTS, "x"))

    def batch(self, batch):
        """The same minibatch with the other inputs."""
        matrices, layout = batch
        rng = np.random.default_rng(layout.num_columns)
        fed = {
            name: np.asfortranarray(fill(rng, (rows, layout.num_columns))) for name, (fill, rows) in self.fed.items()
        }
        return {**matrices, **fed}, layout


def one_column_per_frame(example):
    try:
        return InALoop(example).network.shapes["v"].cols in (None, 1)
    except ShapeError:
        return False


CHOSEN = {}  # type: the example with most operands that are frames
for one in EXAMPLES:
    fewer = len(CHOSEN[one.type_name].frames) if one.type_name in CHOSEN else 0
    if len(one.frames) > fewer and one_column_per_frame(one):
        CHOSEN[one.type_name] = one


def takes_more_than_one_frame(example):
    node = InALoop(example).network["v"]
    return example.whole or node.sums_frames or node.keeps_statistics


WITHOUT_GRADIENT = {name for name, example in CHOSEN.items() if set(example.frames) <= set(example.fixed)}
REFUSED = {name for name in set(CHOSEN) - WITHOUT_GRADIENT if takes_more_than_one_frame(CHOSEN[name])}
CHECKED = sorted(set(CHOSEN) - REFUSED - WITHOUT_GRADIENT)


def test_every_type_is_here():
    assert set(CHOSEN) == computed_types() - WITHOUT_FRAMES
    assert len(CHECKED) > 40


@pytest.mark.parametrize("name", CHECKED)
def test_gradients(name):
    around = InALoop(CHOSEN[name])
    settings = CHOSEN[name].settings
    sequences = data(LENGTHS)
    loops = Engine(around.network, ["J"]).graph.order
    assert any(getattr(node, "inside", None) and "v" in node.inside for node in loops)
    check_numerically(around.network, *around.batch(whole(*sequences)), **settings)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CHECKED if name != "Dropout"])
def test_sequences_cut_and_side_by_side(name):
    around = InALoop(CHOSEN[name])
    sequences = data(LENGTHS)
    check_part_numerically(around.network, [around.batch(part) for part in cut(*sequences, (2, 3))])
    if not around.fed:
        alone = gradients(around.network, [whole([x], [y]) for x, y in zip(*sequences)])
        together = gradients(around.network, [whole(*sequences)])
        assert together[0] == pytest.approx(alone[0], rel=1e-12)
        for parameter, gradient in alone[1].items():
            np.testing.assert_allclose(together[1][parameter], gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_takes_more_than_one_frame_is_refused(name):
    with pytest.raises(
        ModelError, match=rf"node '\S+' \({name}\): .*in the loop of .*; expected nodes there that take"
    ):
        Engine(InALoop(CHOSEN[name]).network, ["J"])
