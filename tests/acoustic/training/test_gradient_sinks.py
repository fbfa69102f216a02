"""What Engine.backward gives gradients to may change from pass to pass."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.rules.momentum import Momentum
from acoustic.training.update import Updater
from readers.minibatches.sequence_layout import SequenceLayout

FRAMES = 150


def network(precision, threads):
    """Two layers; the second weight matrix is used twice, so its gradient is no single product."""
    result = Network(precision, seed=1, threads=threads)
    result.add("Input", "x", rows=5)
    result.add("Input", "labels", rows=6)
    for name, rows, cols in (("W1", 6, 5), ("W2", 6, 6), ("B1", 6, 1)):
        result.add("Parameter", name, rows=rows, cols=cols, initValueScale=10)
    result["W1"].settings["learningRateMultiplier"] = 0.5
    result.add("Sigmoid", "h1", result.add("Plus", "z1", result.add("Times", "t1", "W1", "x"), "B1"))
    result.add("Tanh", "h2", result.add("Times", "t2", "W2", "h1"))
    result.add("Times", "z", "W2", "h2")
    result.add("CrossEntropyWithSoftmax", "J", "labels", "z")
    result.criteria.append("J")
    return result


def test_a_pass_without_updates_after_one_with_them_gives_gradients():
    net = network("double", 1)
    updater = Updater(net, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01))
    updater.begin(0.0, 0.9, FRAMES)
    rng = np.random.default_rng(0)
    matrices = {"x": rng.standard_normal((5, FRAMES)), "labels": rng.uniform(size=(6, FRAMES))}
    engine, fresh = Engine(net, ["J"]), Engine(net, ["J"])
    engine.forward(matrices, training=True)
    engine.backward(on_gradient=updater)
    velocity = updater.tensors()["velocity:W1"].copy()
    for one in (engine, fresh):
        one.forward(matrices, training=True)
        one.backward()
    np.testing.assert_array_equal(engine.gradient("W1"), fresh.gradient("W1"))
    np.testing.assert_array_equal(updater.tensors()["velocity:W1"], velocity)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_takes_gradients_may_change_from_pass_to_pass(threads):
    """Rates, other updaters, functions in turn over one engine: as with an engine of its own each time."""

    def taking_turns(engines):
        net = network("double", threads)
        net.backend.__dict__["team"] = type(net.backend.team)(threads)
        options = TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01)
        first, second = Updater(net, options), Updater(net, options)
        engine, rng, seen = Engine(net, ["J"]), np.random.default_rng(0), []
        turns = [(first, 0.9), (first, 0.9), (first, 0.5), (second, 0.5), (second, 0.5), (first, 0.5), (None, 0.0)]
        for updater, momentum in turns * 2:
            labels = np.zeros((6, FRAMES), order="F")
            labels[rng.integers(0, 6, FRAMES), np.arange(FRAMES)] = 1
            engine = engine if engines == 1 else Engine(net, ["J"])
            engine.forward({"x": np.asfortranarray(rng.standard_normal((5, FRAMES))), "labels": labels}, training=True)
            for one in (first, second):
                one.begin(0.01, momentum, FRAMES)
            if updater is None:
                engine.backward(on_gradient=lambda node, gradient: seen.append(gradient.copy()))
            else:
                engine.backward(on_gradient=updater)
        return {n.name: n.value for n in net.parameters()}, first.tensors(), second.tensors(), dict(enumerate(seen))

    for shared, own in zip(taking_turns(1), taking_turns(2), strict=True):
        assert shared.keys() == own.keys()
        for name, matrix in own.items():
            np.testing.assert_array_equal(shared[name], matrix, err_msg=str(name))


def recurrent_network(threads):
    """h(t) = tanh(W x(t) + b + R h(t-1) + W2 tanh(W2 x(t))): W2's gradient is a sum of two products."""
    result = Network("float", seed=1, threads=threads)
    result.backend.__dict__["team"] = type(result.backend.team)(threads)
    result.add("Input", "x", rows=6)
    result.add("Input", "y", rows=6)
    for name, cols in (("W", 6), ("W2", 6), ("R", 6), ("B", 1)):
        result.add("Parameter", name, rows=6, cols=cols, initValueScale=5)
    result["R"].settings["learningRateMultiplier"] = 0.5
    result.add_node("PastValue", "past", [None], {"rows": 6})
    result.add("Plus", "r", result.add("Times", "r1", "R", "past"), "B")
    result.add("Plus", "w", result.add("Times", "w1", "W", "x"), result.add("Times", "w2", "W2", "past"))
    result.add("Times", "again", "W2", result.add("Tanh", "inner", "w"))
    result.add("Tanh", "h", result.add("Plus", "sum", result.add("Plus", "both", "r", "w"), "again"))
    result.connect("past", "h")
    result.add("SquareError", "J", "y", "h")
    result.criteria.append("J")
    result.validate()
    return result


def trained(threads, accumulate, **options):
    """(parameters, smoothed gradients, names of the parameters whose products were accumulated) after some updates."""
    net, found = recurrent_network(threads), set()
    updater = Updater(net, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01, **options))
    take = updater.part_accumulated
    updater.part_accumulated = lambda node, columns: (found.add(node.name), take(node, columns))
    engine, rng = Engine(net, ["J"]), np.random.default_rng(0)
    for rate, momentum in ((0.02, 0.0), (0.02, 0.9), (0.02, 0.9), (0.0, 0.9), (0.01, 0.5), (0.01, 0.5)):
        layout = SequenceLayout.of_lengths([9, 9])
        x, y = (np.asfortranarray(rng.standard_normal((6, 18), dtype=np.float32)) for _ in range(2))
        engine.forward({"x": x, "y": y}, training=True, layout=layout)
        updater.begin(rate, momentum, 18)
        engine.backward(on_gradient=updater if accumulate else lambda node, gradient: updater(node, gradient))
    return {node.name: node.value for node in net.parameters()}, updater.tensors(), found


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_accumulated_products_give_the_same_update(threads):
    accumulated, apart = trained(threads, True), trained(threads, False)
    assert accumulated[2] == {"W", "W2", "R", "B"}
    assert not apart[2]
    for k in (0, 1):
        for name, matrix in apart[k].items():
            np.testing.assert_allclose(accumulated[k][name], matrix, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {"clipping_threshold": 0.001},
        {"clipping_threshold": 0.001, "clip_by_truncation": False},
        {"l2_weight": 0.01},
        {"l1_weight": 0.001},
        {"rule": Momentum(nesterov=True)},
    ],
    ids=str,
)
def test_rules_that_need_the_gradient_get_it(options, threads):
    accumulated, apart = trained(threads, True, **options), trained(threads, False, **options)
    assert not accumulated[2]
    for name, matrix in apart[0].items():
        np.testing.assert_allclose(accumulated[0][name], matrix, rtol=1e-4, atol=1e-6, err_msg=name)
