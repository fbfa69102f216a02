"""What `engine=trace` prints for a convolutional, a recurrent and a lattice-free network stands in engine.md."""

import re
import sys

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.tables import is_possible
from acoustic.training.options import TrainingOptions
from acoustic.training.update import Updater
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.engine.execution.test_listing import in_tables
from tests.acoustic.engine.test_options import described
from tests.acoustic.nodes import test_lattice_free
from tests.docs.pages import page_text

CNN = """
x = ImageInput(6, 6, 1)
y = Input(4)
W = Parameter(3, 9)
b = Parameter(3)
p = MaxPooling(RectifiedLinear(Plus(Convolution(W, x, 3, 3, 3, 1, 1, zeroPadding=false), b)), 2, 2, 2, 2)
V = Parameter(4, 12)
z = Times(V, p)
ce = CrossEntropyWithSoftmax(y, z, tag=criterion)
"""
LAYER = """
x = Input(3)
y = Input(4)
W = Parameter(4, 3)
ce = CrossEntropyWithSoftmax(y, Times(W, x), tag=criterion)
"""
LSTM = """
gate(x, h) = [
    W = Parameter(8, 3)
    R = Parameter(8, 8)
    b = Parameter(8)
    z = Plus(Plus(Times(W, x), b), Times(R, h))
]
x = Input(3)
y = Input(4)
hPast = PastValue(8, 1, h)
cPast = PastValue(8, 1, c)
i = gate(x, hPast)
f = gate(x, hPast)
g = gate(x, hPast)
o = gate(x, hPast)
c = Plus(ElementTimes(Sigmoid(f), cPast), ElementTimes(Sigmoid(i), Tanh(g)))
h = ElementTimes(Sigmoid(o), Tanh(c))
V = Parameter(4, 8)
z = Times(V, h)
ce = CrossEntropyWithSoftmax(y, z, tag=criterion)
"""


def inputs(**rows):
    rng = np.random.default_rng(0)
    return {name: np.asfortranarray(rng.random((count, 64), np.float32)) for name, count in rows.items()}


def lattice_free():
    matrices, layout = test_lattice_free.minibatch((6, 6), 2)
    matrices = {name: matrix.astype(np.float32) for name, matrix in matrices.items()}
    return test_lattice_free.network_of("float"), "both", matrices, layout


# Of each network: itself, the criterion, the matrices of a minibatch and their layout; and the number of threads.
NETWORKS = {
    "cnn": (lambda: (described(CNN), "ce", inputs(x=36, y=4), None), 2),
    "lstm": (lambda: (described(LSTM), "ce", inputs(x=3, y=4), SequenceLayout.of_lengths([8] * 8)), 1),
    "lattice-free": (lattice_free, 1),
}


def shown_of(page):
    """For each network the traces of the page, as expressions: a line `...` stands for any lines."""
    blocks = re.findall(r"```\n(forward, .*?)```", page, re.DOTALL)[1:]
    escaped = (re.escape(block).replace(re.escape("    ...\n"), "(?:.*\n)+") for block in blocks)
    return dict(zip(NETWORKS, escaped, strict=True))


@in_tables
@pytest.mark.parametrize("name", NETWORKS)
def test_traces_of_the_page(name, capsys):
    make, threads = NETWORKS[name]
    network, criterion, matrices, layout = make()
    engine = Engine(network, [criterion], options=EngineOptions.from_text("trace"), threads=threads)
    updater = Updater(network, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.1))
    engine.forward(matrices, training=True, layout=layout)
    updater.begin(0.1, 0.9, 64)
    engine.backward(criterion, on_gradient=updater)
    printed = re.sub("compiling kernels.*\n", "", capsys.readouterr().err)
    assert re.fullmatch(shown_of(page_text("engine"))[name], printed), printed


def test_ways_of_a_frame_on_the_page():
    """The functions from Engine.forward to the product, in tables and node by node, and back to the update rule."""
    blocks = re.findall(r"```\n(Engine\..*?)```", page_text("engine"), re.DOTALL)
    ways = [[line.split()[0] for line in block.splitlines() if not line.startswith(" ")] for block in blocks]
    cases = [(["play"], "full"), (["multiply", "multiply"], "plain"), (["Momentum.update"], "plain")]
    first = 0 if is_possible(described(LAYER).backend) else 1
    assert ways[first:] == [way_to(*case) for case in cases[first:]]


def way_to(last, options):
    """The functions that lead from the engine to some that call each other."""
    network = described(LAYER)
    engine = Engine(network, ["ce"], options=EngineOptions.from_text(options), threads=1)
    updater = Updater(network, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.1))
    matrices = inputs(x=3, y=4)
    ways = []

    def look(frame, event, argument):
        names = []
        while frame is not None and (not names or not names[-1].startswith("Engine.")):
            names.append(frame.f_code.co_qualname)
            frame = frame.f_back
        if frame is not None and names[: len(last)] == last:
            ways.append([name for name in reversed(names) if "<" not in name])

    for minibatch in range(2):
        sys.setprofile(look if minibatch else None)
        try:
            engine.forward(matrices, training=True)
            updater.begin(0.1, 0.9, 64)
            engine.backward("ce", on_gradient=updater)
        finally:
            sys.setprofile(None)
    return ways[0]
