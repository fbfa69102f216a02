"""What Engine.backward gives gradients to may change from pass to pass."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.training.natural_gradient import make_updater
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdaGrad, Momentum, NaturalGradient
from acoustic.training.update import Updater
from readers.minibatches.indicators import Indicators
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


def trained(threads, in_parts, **options):
    """(parameters, smoothed gradients) after some updates, of parts of parameters or of whole ones."""
    net = recurrent_network(threads)
    updater = Updater(net, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01, **options))
    engine, rng = Engine(net, ["J"]), np.random.default_rng(0)
    for rate, momentum in ((0.02, 0.0), (0.02, 0.9), (0.02, 0.9), (0.0, 0.9), (0.01, 0.5), (0.01, 0.5)):
        layout = SequenceLayout.of_lengths([9, 9])
        x, y = (np.asfortranarray(rng.standard_normal((6, 18), dtype=np.float32)) for _ in range(2))
        engine.forward({"x": x, "y": y}, training=True, layout=layout)
        updater.begin(rate, momentum, 18)
        engine.backward(on_gradient=updater if in_parts else lambda node, gradient: updater(node, gradient))
    return {node.name: node.value for node in net.parameters()}, updater.tensors()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"clipping_threshold": 0.001},
        {"clipping_threshold": 0.001, "clip_by_truncation": False},
        {"l2_weight": 0.01},
        {"l1_weight": 0.001},
        {"rule": Momentum(nesterov=True)},
    ],
    ids=str,
)
def test_updates_of_parts_give_what_updates_of_whole_parameters_give(options, threads):
    parts, whole = trained(threads, True, **options), trained(threads, False, **options)
    for found, expected in zip(parts, whole, strict=True):
        for name, matrix in expected.items():
            np.testing.assert_allclose(found[name], matrix, rtol=1e-4, atol=1e-6, err_msg=name)


def learn(engine, updater, seed):
    """One update of the recurrent network."""
    rng = np.random.default_rng(seed)
    x, y = (np.asfortranarray(rng.standard_normal((6, 18), dtype=np.float32)) for _ in range(2))
    engine.forward({"x": x, "y": y}, training=True, layout=SequenceLayout.of_lengths([9, 9]))
    updater.begin(0.01, 0.9, 18)
    engine.backward(on_gradient=updater)


@pytest.mark.parametrize("nesterov", [False, True])
def test_a_multiplier_that_changes_between_passes_takes_effect(nesterov):
    def trained_by(num_engines):
        net = recurrent_network(1)
        options = TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01, rule=Momentum(nesterov=nesterov))
        updater, engines = Updater(net, options), [Engine(net, ["J"]) for _ in range(num_engines)]
        for seed in range(3):  # the third pass is replayed
            learn(engines[0], updater, seed)
        net["R"].settings["learningRateMultiplier"] = 5.0
        learn(engines[-1], updater, 3)
        return net["R"].value

    np.testing.assert_allclose(trained_by(1), trained_by(2), rtol=1e-5, atol=1e-6)


def test_the_bias_of_a_layer_in_a_loop_is_not_updated_by_an_earlier_sink():
    def taking_turns(shares_engine):
        net = recurrent_network(1)
        net["B"].settings["learningRateMultiplier"] = 0.5  # like that of R
        rules = Momentum(), NaturalGradient(rank_in=2, rank_out=1)
        updaters = [
            make_updater(net, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01, rule=rule))
            for rule in rules
        ]
        assert updaters[1].layers["R"].bias == "B"
        engine = Engine(net, ["J"])
        for seed in range(6):
            engine = engine if shares_engine else Engine(net, ["J"])
            learn(engine, updaters[seed % 2], seed)
        return {node.name: node.value for node in net.parameters()}

    shared, own = taking_turns(True), taking_turns(False)
    for name, matrix in own.items():
        np.testing.assert_allclose(shared[name], matrix, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("node", ["Times", "LookupTable"])
@pytest.mark.parametrize("rule", [Momentum(), AdaGrad()], ids=str)
def test_words_that_do_not_occur_keep_their_columns_with_any_number_of_threads(node, rule):
    def trained_with(threads):
        net = Network("double", seed=1, threads=threads)
        net.backend.__dict__["team"] = type(net.backend.team)(threads)
        net.add("Input", "words", rows=30)
        net.add("Input", "y", rows=4)
        net.add("Parameter", "E", rows=4, cols=30, initValueScale=10)
        net.add("SquareError", "J", "y", net.add("Tanh", "h", net.add(node, "e", "E", "words")))
        updater, engine = (
            Updater(net, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01, rule=rule)),
            Engine(net, ["J"]),
        )
        rng = np.random.default_rng(0)
        for turn in range(4):
            words = Indicators(rng.integers(0, 10, (1, FRAMES)) + 10 * (turn % 2), 30)
            before = net["E"].value.copy()
            engine.forward({"words": words, "y": rng.standard_normal((4, FRAMES))}, training=True)
            updater.begin(0.01, 0.9, FRAMES)
            engine.backward(on_gradient=updater)
            there = np.isin(np.arange(30), words.numbers)
            np.testing.assert_array_equal((net["E"].value != before).all(axis=0), there)
        return net["E"].value

    one = trained_with(1)
    for threads in (2, 3):
        np.testing.assert_allclose(trained_with(threads), one, rtol=1e-12)
