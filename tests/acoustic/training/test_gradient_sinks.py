"""What Engine.backward gives gradients to may change from pass to pass."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.update import Updater

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
