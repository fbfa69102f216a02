"""Weights inside recurrent loops are layers, too."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.runtime.engine_options import EngineOptions
from acoustic.training.natural_gradient import make_updater
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import Momentum, NaturalGradient
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.recurrence.loop_networks import INPUTS, SIZE, lstm, simple_rnn
from tests.acoustic.recurrence.recurrent_networks import randomise

RATE, LENGTHS = 0.01, (7, 9, 9, 5)


def network(kind, precision):
    net = Network(precision, threads=1)
    net.add("Input", "x", rows=INPUTS)
    net.add("Input", "labels", rows=SIZE)
    top = lstm(net, "c", "x", INPUTS) if kind == "lstm" else simple_rnn(net, "c", "x", INPUTS)
    net.add("SquareError", "J", "labels", top)
    net.criteria.append("J")
    net.validate()
    randomise(net, 0)
    return net


def trained(kind, precision, rule, fusion=True, count=15):
    net = network(kind, precision)
    options = TrainingOptions(max_epochs=1, learning_rates_per_sample=RATE, rule=rule)
    updater, engine = (
        make_updater(net, options),
        Engine(net, ["J"], options=EngineOptions(fusion=fusion, compiled_loops=fusion)),
    )
    rng = np.random.default_rng(0)
    layout = SequenceLayout.of_lengths(LENGTHS)
    real = ~layout.gaps.ravel()
    for _ in range(count):
        x, labels = (np.asfortranarray(rng.standard_normal((rows, len(real))) * real) for rows in (INPUTS, SIZE))
        engine.forward({"x": x, "labels": labels}, training=True, layout=layout)
        updater.begin(RATE, 0.0, int(real.sum()))
        engine.backward(on_gradient=updater)
    return net, updater


@pytest.mark.parametrize("precision", ["float", "double"])
@pytest.mark.parametrize("kind", ["lstm", "simple"])
def test_without_scaling_it_is_gradient_descent(kind, precision):
    plain, _ = trained(kind, precision, NaturalGradient(method="plain", max_change=np.inf))
    expected, _ = trained(kind, precision, Momentum())
    tolerance = {"rtol": 1e-9, "atol": 1e-11} if precision == "double" else {"rtol": 1e-4, "atol": 1e-5}
    for node in plain.parameters():
        np.testing.assert_allclose(node.value, expected[node.name].value, err_msg=node.name, **tolerance)


@pytest.mark.parametrize("kind", ["lstm", "simple"])
def test_compiled_loops_give_what_others_give(kind):
    rule = NaturalGradient(rank_in=2, rank_out=1)
    compiled, updater = trained(kind, "float", rule)
    plain, _ = trained(kind, "double", rule)
    unscaled, _ = trained(kind, "double", NaturalGradient(method="plain"))
    counts = {name: layer.fishers["output"].count for name, layer in updater.layers.items()}
    assert set(counts.values()) == {15}
    assert {"c.Wi", "c.Rf"} <= counts.keys() if kind == "lstm" else counts.keys() == {"c.W", "c.R"}
    for node in plain.parameters():
        np.testing.assert_allclose(compiled[node.name].value, node.value, rtol=1e-3, atol=2e-5, err_msg=node.name)
    name = next(iter(counts))
    assert not np.allclose(unscaled[name].value, plain[name].value, rtol=1e-2, atol=1e-5)
