"""The engine over many passes: what is computed again, what trained parameters are told, updates in parts."""

import threading

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.execution.gradient_sink import GradientSink
from acoustic.runtime.engine_options import EngineOptions
from tests.acoustic.engine.engine_networks import Calls, branching, by_hand, data, layered, recurring


def test_what_depends_on_no_input_is_computed_when_a_stored_value_has_changed(monkeypatch):
    network = layered(prior=True)
    calls = Calls(network, monkeypatch)
    engine = Engine(network, ["CE", "Err", "ScaledLogLikelihood"], options=EngineOptions(fusion=False))
    computed = sorted(node.name for node in network.nodes.values() if not node.is_leaf)
    engine.forward(data(9))
    assert calls.taken() == computed
    value = engine.value("ScaledLogLikelihood").copy()
    engine.forward(data(9))
    assert calls.taken() == [name for name in computed if name != "LogOfPrior"]
    np.testing.assert_array_equal(engine.value("ScaledLogLikelihood"), value)
    network.set_value("Prior", np.array([[0.1], [0.2], [0.3], [0.4]]))
    engine.forward()  # of the last inputs
    assert calls.taken() == computed
    assert (engine.value("ScaledLogLikelihood") != value).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("make", [lambda: layered(dropout=True, prior=True), branching], ids=["layered", "branching"])
def test_any_sequence_of_changes_gives_what_a_new_engine_gives(seed, share, make):
    """Feeding some inputs, changing parameters, training and evaluating in any order, with recycled memory."""
    rng = np.random.default_rng(seed)
    network = make()
    roots = ["CE", "Err", "ScaledLogLikelihood", "D2"] if "CE" in network.nodes else ["J", "h2"]
    inputs = {"features": (7, 4), "labels": (7, 4)} if "CE" in network.nodes else {"x": (4, 4)}

    def draw(num_frames, step):
        pool = data(num_frames, step, *next(iter(inputs.values())))
        return {name: pool["labels" if name == "labels" else "features"] for name in inputs}

    engine = Engine(network, roots, options=EngineOptions(buffer_sharing=share))
    matrices = draw(40, 0)
    engine.forward(matrices)
    for step in range(60):
        fed = {}
        change = rng.integers(8)
        if change == 0:
            matrices = fed = draw(int(rng.choice([1, 40, 70, 90])), step)
        elif change == 1:
            name = rng.choice(list(inputs))
            fed = {name: draw(next(iter(matrices.values())).shape[1], step)[name]}
            matrices = {**matrices, **fed}
        elif change == 2:
            stored = rng.choice([node.name for node in network.stored()])
            network.set_value(stored, rng.uniform(0.1, 1, network[stored].value.shape))
        settings = {"training": bool(rng.integers(3)), "dropout_rate": 0.5, "seed": int(rng.integers(2))}
        engine.forward(fed, **settings)
        fresh = Engine(network, roots, options=EngineOptions(buffer_sharing=False))
        fresh.forward(matrices, **settings)
        for name in roots:
            np.testing.assert_array_equal(engine.value(name), fresh.value(name), err_msg=f"{name} at step {step}")
        if settings["training"] and rng.integers(2):
            engine.backward()
            fresh.backward()
            for node in network.parameters():
                np.testing.assert_array_equal(engine.gradient(node.name), fresh.gradient(node.name))


def test_training_marks_parameters_as_changed():
    """An engine that evaluates sees what another one trained in place."""
    network = layered()
    training, evaluation = Engine(network, ["CE"]), Engine(network, ["CE"])
    matrices = data(9)
    evaluation.forward(matrices)
    before = float(evaluation.value("CE")[0, 0])
    training.forward(matrices, training=True)

    def update(node, gradient):
        node.value[...] -= 0.1 * gradient

    training.backward(on_gradient=update)
    evaluation.forward()
    assert float(evaluation.value("CE")[0, 0]) == pytest.approx(by_hand(network, matrices)[0])
    assert float(evaluation.value("CE")[0, 0]) < before


@pytest.mark.parametrize("threads", [1, 3])
def test_on_gradient_gets_every_parameter_once_when_it_may_be_changed(threads):
    """Overwriting each parameter in the callback changes no gradient."""
    network, matrices = layered(), data(90)
    expected = by_hand(network, matrices)[2]
    engine, got = Engine(network, ["CE"], threads=threads), {}
    engine.forward(matrices, training=True)

    def spoil(node, gradient):
        assert node.name not in got
        got[node.name] = gradient.copy()
        node.value[...] = np.nan
        gradient[...] = np.nan

    engine.backward("CE", on_gradient=spoil)
    assert set(got) == set(expected)
    for name, gradient in expected.items():
        np.testing.assert_allclose(got[name], gradient, rtol=1e-10, atol=1e-12)


def step(weight, gradient, smoothed):
    smoothed *= 0.9
    smoothed += 0.001 * gradient
    weight -= smoothed


class Momentum(GradientSink):
    """An update that may be done in parts; notes which columns of what it was given, in which thread."""

    def __init__(self, network):
        self.smoothed = {node.name: np.zeros_like(node.value, order="F") for node in network.parameters()}
        self.seen = []

    def __call__(self, node, gradient):
        self.update(node, gradient, slice(0, gradient.shape[1]))

    def update(self, node, gradient, columns):
        self.seen.append((node.name, columns.start, columns.stop, threading.get_ident()))
        step(node.value[:, columns], gradient, self.smoothed[node.name][:, columns])


class MomentumInParts(Momentum):
    takes_parts = True

    def part(self, node, gradient, columns):
        self.update(node, gradient, columns)


@pytest.mark.parametrize("make", [layered, recurring])
@pytest.mark.parametrize("threads", [1, 3])
def test_updates_in_parts_are_those_of_the_whole(make, threads):
    """The same numbers to the last bit; every column once; products in the threads that made them."""
    weights = []
    for kind in (Momentum, MomentumInParts):
        network = make()
        engine, update = Engine(network, network.criteria or ["J"], threads=threads), kind(network)
        for number in range(3):
            matrices = data(100, number)
            engine.forward(matrices if make is layered else {"x": matrices["features"][:5]}, training=True)
            engine.backward(on_gradient=update)
        weights.append([node.value for node in network.parameters()])
        for node in network.parameters():
            given = [range(start, stop) for name, start, stop, _ in update.seen if name == node.name]
            assert sorted(column for part in given for column in part) == sorted(3 * list(range(node.value.shape[1])))
        in_parts = kind is MomentumInParts and threads > 1
        assert len({thread for *_, thread in update.seen}) == (threads if in_parts else 1)
    for first, other in zip(*weights):
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_two_trainings_are_equal_bit_for_bit(threads):
    weights = []
    for _ in range(2):
        network = layered((40, 64, 64, 4), precision="float", dropout=True, threads=threads)
        engine = Engine(network, ["CE", "Err"])
        smoothed = {node.name: np.zeros_like(node.value) for node in network.parameters()}

        def update(node, gradient, smoothed=smoothed):
            step(node.value, gradient, smoothed[node.name])

        for number in range(20):
            matrices = data(100 + number % 3, seed=number, rows=40, dtype=np.float32)
            engine.forward(matrices, training=True, dropout_rate=0.2, seed=(1, number))
            engine.backward(on_gradient=update)
        weights.append([node.value for node in network.parameters()])
    for first, other in zip(*weights):
        assert np.isfinite(first).all()
        np.testing.assert_array_equal(first, other)
