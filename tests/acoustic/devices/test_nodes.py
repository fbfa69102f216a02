"""Every node type and every criterion on a device: values and gradients are those of the CPU."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import compare_with_forward_mode
from acoustic.kernels.backend import Backend
from acoustic.network.network import Network
from readers.minibatches.indicators import Indicators
from tests.acoustic.devices.cupy_on_host import cupy
from tests.acoustic.nodes import test_lattice_free as lattice_free
from tests.acoustic.nodes import test_sequence_criterion as lattice
from tests.acoustic.nodes.examples.base import FRAMES, build, build_with_frames
from tests.acoustic.nodes.examples.every_node import EXAMPLES
from tests.acoustic.recurrence import recurrent_networks as recurrent

TOLERANCE = {"float": 3e-5, "double": 1e-12}  # of the largest element
LSTM = "top = LSTM(x, 3)\n"
BLSTM = "top = BLSTM(x, 2)\n"

both_precisions = pytest.mark.parametrize("precision", TOLERANCE)


def passes(network, criterion, batches=(({}, None),), **settings):
    """Values of the criterion and gradients of all parameters, on the host, by name and minibatch."""
    engine, found = Engine(network, [criterion]), {}
    to_host = network.backend.to_host
    for index, (matrices, layout) in enumerate(batches):
        engine.forward(matrices, training=True, criterion=criterion, layout=layout, **settings)
        found["value", index] = np.array(to_host(engine.value(criterion)))
        engine.backward(criterion)
        for node in engine.learnable(criterion):
            gradient = engine.gradient(node.name)
            assert gradient.dtype == network.backend.dtype
            found[node.name, index] = np.array(to_host(gradient))
    return found


def assert_equal_on(device, make, precision="double", **settings):
    """make(): (network, criterion, minibatches); compares what `passes` finds on the CPU and on the device."""
    here = passes(*make(), **settings)
    with device() as module:
        network, *rest = make()
        assert network.backend.xp is module
        there = passes(network, *rest, **settings)
    assert here.keys() == there.keys()
    for key, mine in here.items():
        atol = TOLERANCE[precision] * max(1.0, np.abs(mine).max())
        np.testing.assert_allclose(there[key], mine, rtol=TOLERANCE[precision], atol=atol, err_msg=str(key))


@both_precisions
@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.differentiable], ids=str)
def test_nodes(device, example, precision):
    operands = example.operands(np.random.default_rng(5))
    assert_equal_on(device, lambda: build(example, operands, precision=precision), precision, **example.settings)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.frames], ids=str)
def test_nodes_on_frames(device, example):
    operands = example.operands(np.random.default_rng(6), FRAMES)

    def make():
        network, matrices, criterion = build_with_frames(example, operands, precision="float")
        return network, criterion, [(matrices, None)]

    assert_equal_on(device, make, "float", **example.settings)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if not e.differentiable], ids=str)
def test_nodes_without_a_gradient(device, example):
    operands = example.operands(np.random.default_rng(7))

    def value():
        network, _ = build(example, operands)
        engine = Engine(network, ["v"])
        engine.forward(**example.settings)
        return np.array(network.backend.to_host(engine.value("v")))

    here = value()
    with device():
        np.testing.assert_allclose(value(), here, rtol=1e-12)


@both_precisions
@pytest.mark.parametrize("script", [LSTM, BLSTM, "top = TimeReverse(x)\n"])
@pytest.mark.parametrize("indicators", [False, True])
def test_sequences_of_unequal_lengths(device, script, indicators, precision):
    matrices, layout = recurrent.whole(*recurrent.data((5, 7, 1, 4)))
    if indicators:
        numbers = np.where(layout.gaps.reshape(-1), -1, matrices["labels"].argmax(axis=0)).astype(np.int32)
        matrices["labels"] = Indicators(numbers[None], recurrent.CLASSES)
    assert_equal_on(device, lambda: (recurrent.of_ndl(script, precision), "J", [(matrices, layout)]), precision)


def test_sequences_in_parts(device):
    parts = list(recurrent.cut(*recurrent.data((6, 4, 7)), (3, 4)))
    assert_equal_on(device, lambda: (recurrent.of_ndl(LSTM), "J", parts))


@both_precisions
@pytest.mark.parametrize("options", lattice.ALL_OPTIONS, ids=str)
@pytest.mark.filterwarnings("ignore::readers.errors.SequenceWarning")
def test_sequence_criterion(device, options, precision):
    layout = lattice.make_layout()
    matrices = lattice.make_data(layout)
    shared = matrices | {
        "labels": Indicators(matrices["labels"].argmax(axis=0).astype(np.int32)[None], lattice.SENONES)
    }
    for one in (matrices, shared):
        assert_equal_on(device, lambda: (lattice.make_network(options, precision), "J", [(one, layout)]), precision)  # noqa: B023


@both_precisions
@pytest.mark.parametrize("criterion", ["J", "C", "both"])
@pytest.mark.parametrize(("counts", "num_slots", "frames"), lattice_free.CASES)
def test_lattice_free_mmi(device, counts, num_slots, frames, criterion, precision):
    batch = lattice_free.minibatch(counts, num_slots, frames)
    assert_equal_on(device, lambda: (lattice_free.network_of(precision), criterion, [batch]), precision)


@pytest.mark.parametrize("criterion", ["J", "C"])
def test_gradients_of_lattice_free_mmi_in_forward_mode(device, criterion):
    matrices, layout = lattice_free.minibatch((4, 6, 3), 3)
    with device():
        network = lattice_free.network_of()
        for name in ("W.y", "H") if criterion == "C" else ():  # the posteriors of C have no derivative
            network[name].settings["needGradient"] = False
        for comparison in compare_with_forward_mode(network, criterion, matrices, layout=layout):
            assert comparison.error < 1e-9, comparison


def test_gradients_of_a_sequence_criterion_in_forward_mode(device):
    layout = lattice.make_layout()
    matrices = lattice.make_data(layout)
    with device():
        network = lattice.make_network(lattice.ALL_OPTIONS[0])
        for comparison in compare_with_forward_mode(network, "J", matrices, layout=layout):
            assert comparison.error < 1e-9, comparison


def test_lattices_are_computed_by_several_threads_of_the_host(device):
    with device():
        backend = Backend(threads=3)
    assert (backend.team.size, backend.host_team.size) == (1, 3)
    assert Backend(threads=1).host_team.size == 1


def test_a_device_is_chosen_by_its_number(monkeypatch):
    chosen = []
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(cupy.cuda, "Device", lambda number: SimpleNamespace(use=lambda: chosen.append(number)))
    assert Network(device="gpu").backend.xp is Network(device="gpu:2").backend.xp is cupy
    assert chosen == [2]
