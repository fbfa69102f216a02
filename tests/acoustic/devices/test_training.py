"""Trainings on a device: every update rule, statistics, checkpoints and models are those of the CPU."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model
from acoustic.training.natural_gradient import make_updater
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdaGrad, AdamW, FsAdaGrad, Momentum, NaturalGradient, RmsProp
from acoustic.training.sgd import train
from readers.minibatches.indicators import Indicators
from tests.acoustic.recurrence import recurrent_networks as recurrent
from tests.acoustic.training.ring import ring_network, ring_options

NATURAL = {
    f"natural gradient, {method}": {"rule": NaturalGradient(method=method, rank_in=3, rank_out=4)}
    for method in ("online", "simple", "plain")
}
WAYS = NATURAL | {
    "momentum": {},
    "Nesterov": {"rule": Momentum(nesterov=True)},
    "AdaGrad": {"rule": AdaGrad(), "learning_rates_per_minibatch": 0.05},
    "FsAdaGrad": {"rule": FsAdaGrad(), "learning_rates_per_minibatch": 0.05},
    "RmsProp": {"rule": RmsProp(), "learning_rates_per_minibatch": 0.05},
    "AdamW": {"rule": AdamW(), "learning_rates_per_minibatch": 0.05},
    "regularised": {"l2_weight": 1e-4, "l1_weight": 1e-5, "noise_deviation": 1e-3},
    "clipped": {"clipping_threshold": 0.01},
    "clipped by the norm": {"clipping_threshold": 0.01, "clip_by_truncation": False},
}


def parameters(network):
    return {node.name: np.array(network.backend.to_host(node.value)) for node in network.parameters()}


def assert_close(here, there, tolerance):
    assert here.keys() == there.keys()
    for name, value in here.items():
        np.testing.assert_allclose(there[name], value, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(("precision", "tolerance"), [("float", 2e-3), ("double", 1e-9)])
@pytest.mark.parametrize("way", WAYS)
def test_a_training(device, ring_reader, way, precision, tolerance):
    def trained():
        network = ring_network(dropout=True, precision=precision)
        options = ring_options(2, **({"dropout_rate": 0.1} | WAYS[way]))
        result = train(network, ring_reader(200), options, ring_reader(100, seed=1))
        return parameters(result.network), result.history[-1]["validation"]

    here = trained()
    with device():
        there = trained()
    assert_close(here[0], there[0], tolerance)
    assert there[1] == pytest.approx(here[1], rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("rule", [Momentum(), NaturalGradient(rank_in=3, rank_out=4)], ids=["momentum", "natural"])
def test_a_training_goes_on_from_a_checkpoint(device, ring_reader, tmp_path, rule):
    with device():
        whole = train(ring_network(), ring_reader(200), ring_options(3, rule=rule))
        for epochs in (1, 3):
            options = ring_options(epochs, rule=rule, extend=True)
            train(ring_network(), ring_reader(200), options, model_path=tmp_path / "net")
        goes_on = load_model(tmp_path / "net")
        assert_close(parameters(whole.network), parameters(goes_on), 0)
    on_cpu = load_model(tmp_path / "net")
    assert isinstance(on_cpu.parameters()[0].value, np.ndarray)
    assert_close(parameters(whole.network), parameters(on_cpu), 0)


@pytest.mark.parametrize("rule", [Momentum(), AdaGrad(), NaturalGradient(rank_in=2, rank_out=2)], ids=type)
def test_recurrent_networks_with_gaps(device, rule):
    lengths = (9, 5, 7, 2)

    def trained():
        network = recurrent.of_ndl("top = LSTM(x, 3)\n", "double")
        options = TrainingOptions(1, learning_rates_per_sample=0.01, minibatch_size=9, rule=rule)
        updater, engine = make_updater(network, options), Engine(network, ["J"])
        for seed in range(12):
            matrices, layout = recurrent.whole(*recurrent.data(lengths, seed))
            numbers = np.where(layout.gaps.reshape(-1), -1, matrices["labels"].argmax(axis=0)).astype(np.int32)
            matrices["labels"] = Indicators(numbers[None], recurrent.CLASSES)
            engine.forward(matrices, training=True, layout=layout)
            updater.begin(0.01, 0.5, layout.num_frames)
            engine.backward(on_gradient=updater)
        return parameters(network)

    here = trained()
    with device():
        assert_close(here, trained(), 1e-8)


@pytest.mark.parametrize("rule", [Momentum(), AdaGrad(normalise=False), NaturalGradient()], ids=type)
def test_tables_of_words(device, rule):
    """The updates of a table are those of the columns that a minibatch reads."""

    def trained():
        network = recurrent.Network("double", threads=1)
        network.add("Input", "word", rows=11)
        network.add("Input", "y", rows=3)
        network.add("Parameter", "T", rows=4, cols=11)
        network.add("Parameter", "W", rows=3, cols=4)
        network.add("LookupTable", "t", "T", "word")
        network.add("SquareError", "J", "y", network.add("Times", "z", "W", "t"))
        recurrent.randomise(network)
        options = TrainingOptions(1, learning_rates_per_sample=0.01, minibatch_size=6, rule=rule)
        updater, engine, rng = make_updater(network, options), Engine(network, ["J"]), np.random.default_rng(2)
        for _ in range(4):
            chosen = rng.integers(0, 11, 6).astype(np.int32)
            matrices = {"word": Indicators(chosen[None], 11), "y": rng.standard_normal((3, 6))}
            engine.forward(matrices, training=True)
            updater.begin(0.05, 0.5, 6)
            engine.backward("J", updater)
        return parameters(network)

    here = trained()
    with device():
        assert_close(here, trained(), 1e-9)
