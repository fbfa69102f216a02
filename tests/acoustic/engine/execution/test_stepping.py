"""Operations one after the other, and node by node, give the bits of tables: objectives, gradients and weights.

So they do when the caller works alone now and then. `plain` also switches off fused convolutions and compiled loops,
which add in another order. Updates node by node round a few of the many weights of the benchmarks in another way.
"""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.execution import backward
from acoustic.kernels.compiled import operands
from acoustic.recurrence.loop_node import Loop
from acoustic.runtime import products
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.operations import Pass
from acoustic.training.natural_gradient import make_updater
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import Momentum
from benchmarks import ablation
from readers.common.environment import one_blas_thread
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.engine.execution.test_listing import in_tables
from tests.acoustic.engine.execution.test_traces import NETWORKS
from tests.acoustic.engine.test_options import INPUTS, OUTPUTS, SYSTEMS
from tests.acoustic.nodes.examples.base import FRAMES, build_with_frames
from tests.acoustic.nodes.examples.every_node import EXAMPLES
from tests.acoustic.nodes.test_words_docs import networks as networks_of_words

FULL, WITHOUT_TABLES, PLAIN = (EngineOptions.from_text(text) for text in ("full", "noTables", "plain"))


class Trained:
    """What some updates give: objectives, gradients of a pass without update, and weights."""

    def __init__(self, network, criterion, minibatches, options=FULL, rule=None, settings=None):
        self.engine = Engine(network, [criterion], options=options)
        training = TrainingOptions(max_epochs=1, learning_rates_per_sample=0.01, rule=rule or Momentum())
        updater, results = make_updater(network, training), []
        for number, (matrices, layout) in enumerate(minibatches):
            for update in (None, updater):
                run = {"training": True, "seed": number, "dropout_rate": 0.2, **(settings or {}), "layout": layout}
                self.engine.forward(matrices, criterion=criterion, **run)
                results.append(self.engine.value(criterion).copy())
                if update is not None:
                    update.begin(0.02, 0.5, FRAMES)
                self.engine.backward(criterion, on_gradient=update)
                if update is None:
                    learning = [node for node in network.parameters() if node.needs_gradient]
                    results += [self.engine.gradient(node.name).copy() for node in learning]
        self.results = [*results, *(node.value.copy() for node in network.parameters())]


@pytest.fixture
def assert_same(monkeypatch):
    """assert_same(make, ways): what make(options) trains has the same results in each way, and with other options."""

    def step(self):
        with one_blas_thread:
            for operation in self:
                operation.run()

    def alone_now_and_then(self):
        self.team._alone_until = np.inf if self.team._alone_until == 0 else 0.0
        run(self)

    def check(make, *others):
        expected = make(FULL)
        for options, way in ((FULL, step), (FULL, alone_now_and_then), *((each, run) for each in others)):
            with monkeypatch.context() as patch:
                patch.setattr(Pass, "run", way)
                results = make(options)
            assert len(results) == len(expected) > 1
            for result, value in zip(results, expected):
                np.testing.assert_array_equal(result, value, err_msg=f"{options} {way.__name__}")

    run = Pass.run
    return check


def trained_system(system, options):
    make, rule, rows, num_sequences = SYSTEMS[system]

    def minibatches():
        rng = np.random.default_rng(0)
        for frames in (144, 144, 72, 144):
            labels = np.zeros((OUTPUTS, frames), np.float32, order="F")
            labels[rng.integers(0, OUTPUTS, frames), np.arange(frames)] = 1
            features = np.asfortranarray(rng.standard_normal((rows or INPUTS, frames), dtype=np.float32))
            layout = SequenceLayout.of_lengths([frames // num_sequences] * num_sequences) if num_sequences else None
            yield {"features": features, "labels": labels}, layout

    network = make()
    return Trained(network, network.criteria[0], minibatches(), options, rule)


@in_tables
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_systems(system, threads, assert_same, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    others = () if system in ("cnn", "lstm", "lstm, few sequences") else (PLAIN,)
    assert_same(lambda options: trained_system(system, options).results, WITHOUT_TABLES, *others)


@in_tables
def test_products_and_updates_beside_a_loop_which_threads_divide(assert_same, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setattr(products, "SHARE_FROM", 1)
    for module in (backward, operands):
        monkeypatch.setattr(module, "SPLIT_FROM", 1)
    program = trained_system("lstm", FULL).engine.program
    of_two = {
        (operation.kernel, operation.node)
        for listed in (program._forward, program._backward)
        for phase in listed.phases
        if len(phase) == 2 and all(phase)
        for operation in phase[1]
    }
    (above,) = (node.name for node in program.graph.order if node.operands and node.operands[0].name == "V")
    assert {("matmul", above), ("momentum", "V")} <= of_two
    assert_same(lambda options: trained_system("lstm", options).results, WITHOUT_TABLES)


@in_tables
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("name", NETWORKS)
def test_traced_networks(name, threads, assert_same, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)

    def train(options):
        network, criterion, matrices, layout = NETWORKS[name][0]()
        return Trained(network, criterion, [(matrices, layout)] * 3, options).results

    assert_same(train, WITHOUT_TABLES, *[PLAIN] * (name == "lattice-free"))


@in_tables
@pytest.mark.parametrize("number", range(3))
def test_networks_of_words(number, assert_same, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    def train(options):
        network, rng, layout = list(networks_of_words(tmp_path))[number], np.random.default_rng(0), [3, 2]
        rows = {name: network.shapes[name].rows for name in ("features", "labels")}
        size = 944 if rows["features"] == 2832 else 10000
        words = rng.integers(0, size, (rows["features"] // size, 6)).astype(np.int32)
        labels = Indicators(rng.integers(0, 127, (1, 6)).astype(np.int32), 127)
        if rows["labels"] == 4:
            labels = np.tile(np.float32([[105], [1], [100], [200]]), 6)
        matrices = {"features": Indicators(words, size), "labels": labels}
        minibatches = [(matrices, SequenceLayout.of_lengths(layout))] * 3
        training = Trained(network, network.criteria[0], minibatches, options)
        recurrent.append(any(isinstance(node, Loop) for node in training.engine.graph.order))
        return training.results

    recurrent = []
    train(FULL)
    assert_same(train, WITHOUT_TABLES, *[PLAIN] * (not recurrent[0]))


@in_tables
@pytest.mark.parametrize("example", [each for each in EXAMPLES if each.frames and each.differentiable], ids=str)
def test_every_node(example, assert_same, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    def train(options):
        operands = example.operands(np.random.default_rng(6), FRAMES)
        network, matrices, criterion = build_with_frames(example, operands, precision="float", threads=None)
        matrices = {name: np.asfortranarray(matrix, np.float32) for name, matrix in matrices.items()}
        return Trained(network, criterion, [(matrices, None)] * 2, options, settings=example.settings).results

    assert_same(train, WITHOUT_TABLES, PLAIN)


@pytest.mark.slow
@in_tables
@pytest.mark.parametrize("network", ablation.networks(), ids=lambda network: network.title)
def test_networks_of_the_benchmarks(network, assert_same, monkeypatch):
    """Weights after each update, the first of which is the gradient times the learning rate."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    def noted(self, *arguments, **settings):
        make_engine(self, *arguments, **settings)
        engines.append(self)

    def train(options):
        monkeypatch.setattr(EngineOptions, "default", lambda: options)
        step, results = network.make(), []
        for _ in range(3):
            results += [step(), *(node.value.copy() for node in engines[-1].network.parameters())]
        return results

    engines, make_engine = [], Engine.__init__
    monkeypatch.setattr(Engine, "__init__", noted)
    assert_same(train)
