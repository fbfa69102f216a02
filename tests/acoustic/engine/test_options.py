"""Every optimisation of the engine switched off, and all of them: training gives the same parameters."""

from functools import cache

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.descriptions.ndl.evaluate import Scope
from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.recurrence.loop_node import Loop
from acoustic.runtime.engine_options import VARIABLE, EngineOptions, engines_with
from acoustic.runtime.operations import Table
from acoustic.training.natural_gradient import make_updater
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdaGrad, Momentum, NaturalGradient
from readers.config.syntax import Source
from readers.errors import ConfigError
from readers.minibatches.sequence_layout import SequenceLayout

SWITCHES = ["noTables", "noCompiledLoops", "noWeightPanels", "noFusion", "noBufferSharing", "plain"]
STEPS, INPUTS, OUTPUTS = 16, 5, 4
LSTM = """
gate(rows, x, h) = [
    W = Parameter(8, rows)
    R = Parameter(8, 8)
    B = Parameter(8)
    V = Plus(Plus(Times(W, x), B), Times(R, h))
]
lstm(rows, x) = [
    hPast = PastValue(8, 1, H, defaultHiddenActivity=0)
    cPast = PastValue(8, 1, C, defaultHiddenActivity=0)
    C = Plus(ElementTimes(Sigmoid(gate(rows, x, hPast)), cPast), ElementTimes(Sigmoid(gate(rows, x, hPast)), \
Tanh(gate(rows, x, hPast))))
    H = ElementTimes(Sigmoid(gate(rows, x, hPast)), Tanh(C))
]
features = Input(5)
labels = Input(4)
L1 = lstm(5, features)
L2 = lstm(8, L1)
V = Parameter(4, 8)
CE = CrossEntropyWithSoftmax(labels, Times(V, L2), tag=criterion)
"""
CNN = """
features = ImageInput(6, 6, 1)
labels = Input(4)
W = Parameter(3, 9)
B = Parameter(3)
C = Convolution(W, features, 3, 3, 3, 1, 1, zeroPadding=false)
P = MaxPooling(RectifiedLinear(Plus(C, B)), 2, 2, 2, 2)
V = Parameter(4, 12)
CE = CrossEntropyWithSoftmax(labels, Times(V, P), tag=criterion)
"""


def described(text):
    network = Network(seed=3)
    Scope(network).evaluate(Source.from_text(text, "test.ndl"))
    network.validate()
    return network


def simple(kind, **options):
    return build_simple_network(SimpleNetworkOptions((INPUTS, 9, 9, OUTPUTS), (kind,), **options))


# Network, update rule, rows of features, number of sequences (0: frames).
SYSTEMS = {
    "sigmoid": (lambda: simple("Sigmoid"), Momentum(), INPUTS, 0),
    "relu with dropout": (lambda: simple("RectifiedLinear", with_dropout=True), AdaGrad(normalise=False), INPUTS, 0),
    "p-norm, natural gradient": (lambda: simple("PNorm", group_size=3), NaturalGradient(), INPUTS, 0),
    "cnn": (lambda: described(CNN), Momentum(), 36, 0),
    "lstm": (lambda: described(LSTM), Momentum(), INPUTS, 9),
    "lstm, few sequences": (lambda: described(LSTM), Momentum(nesterov=True), INPUTS, 2),
}


def trained(system, options):
    """The parameters after some updates, three with each learning rate and size of minibatch."""
    make, rule, rows, num_sequences = SYSTEMS[system]
    network = make()
    engine = Engine(network, network.criteria, options=options)
    settings = TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01, minibatch_size=96, rule=rule)
    updater = make_updater(network, settings)
    for number in range(9):
        rng = np.random.default_rng(number)
        layout = SequenceLayout.of_lengths([STEPS - number // 3 % 2] * num_sequences) if num_sequences else None
        frames = (STEPS - number // 3 % 2) * num_sequences or 96 - 16 * (number // 3 % 2)
        labels = np.zeros((OUTPUTS, frames), np.float32, order="F")
        labels[rng.integers(0, OUTPUTS, frames), np.arange(frames)] = 1
        features = np.asfortranarray(rng.standard_normal((rows, frames), dtype=np.float32))
        matrices = {"features": features, "labels": labels}
        engine.forward(matrices, training=True, dropout_rate=0.2, seed=number, layout=layout)
        updater.begin(0.02 / (1 + number // 3), 0.5, frames)
        engine.backward(on_gradient=updater)
    return engine, {node.name: node.value.copy() for node in network.parameters()}


@cache
def with_everything_on(system):
    """The parameters as all optimisations together train them; the same for every switch."""
    return trained(system, EngineOptions())[1]


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")


@pytest.mark.slow
@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_training_is_the_same_with_an_optimisation_off(system, switch, two_threads):
    expected = with_everything_on(system)
    _, found = trained(system, EngineOptions.from_text(switch))
    start = {node.name: node.value for node in SYSTEMS[system][0]().parameters()}
    for name, value in expected.items():
        moved = np.abs(value - start[name]).max()
        np.testing.assert_allclose(found[name], value, rtol=0, atol=2e-3 * moved + 1e-7, err_msg=name)


def has_tables(listed):
    segments = [one for group in listed.groups for phase in group.phases for each in phase for one in each]
    return any(isinstance(one, Table) for one in segments)


@pytest.mark.slow
def test_each_switch_turns_its_optimisation_off(two_threads):
    def what_acts(options, system="lstm"):
        engine, _ = trained(system, options)
        loops = [node for node in engine.graph.order if isinstance(node, Loop)]
        splits = [split for loop in loops if loop.compiled for split in loop.compiled._splits.values()]
        factors = [factor for split in splits for way in split.factors for factor in way]
        passes = [engine._program._forward, engine._program._backward]
        return {
            "noTables": any(has_tables(each) for each in passes),
            "noCompiledLoops": any(loop.compiled for loop in loops),
            "noWeightPanels": any(factor.in_panels for factor in factors),
        }

    def what_acts_on_frames(options):
        (engine, _), (images, _) = trained("sigmoid", options), trained("cnn", options)
        return {
            "noFusion": any(node.type_name == "ConvolutionPooling" for node in images.graph.order),
            "noBufferSharing": engine.options.buffer_sharing,
            "noTables": has_tables(engine._program._forward),
        }

    for acts in (what_acts, what_acts_on_frames):
        assert all(acts(EngineOptions()).values())
        assert not any(acts(EngineOptions.plain()).values())
        for switch in acts(EngineOptions()):
            assert not acts(EngineOptions.from_text(switch))[switch]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("full", EngineOptions()),
        ("", EngineOptions()),
        ("Plain", EngineOptions.plain()),
        ("notables:NoFusion", EngineOptions(tables=False, fusion=False)),
        ("noReplay:noFusion", EngineOptions(tables=False, fusion=False)),  # names of version 0.1
        ("noRowSplit", EngineOptions()),
    ],
)
def test_texts(text, expected):
    assert EngineOptions.from_text(text) == expected


@pytest.mark.parametrize("text", ["fast", "noTables:", "noBranches", "tables", "plain:noFusion"])
def test_unknown_texts_are_refused(text):
    with pytest.raises(
        ConfigError, match=r"a.cntk:3: engine=.*; expected full, plain or names out of noTables, noCompiledLoops, "
    ):
        EngineOptions.from_text(text, "a.cntk:3")


def test_engines_without_options_use_those_of_the_environment(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    network = simple("Sigmoid")
    with engines_with("noFusion"):
        assert Engine(network, network.criteria).options == EngineOptions(fusion=False)
        with engines_with("plain"):
            assert Engine(network, network.criteria).options == EngineOptions.plain()
        assert not Engine(network, network.criteria).options.fusion
    assert Engine(network, network.criteria).options == EngineOptions()
    monkeypatch.setenv(VARIABLE, "nonsense")
    with pytest.raises(ConfigError, match="ARGONAUT_ENGINE: engine=nonsense"):
        Engine(network, network.criteria)
