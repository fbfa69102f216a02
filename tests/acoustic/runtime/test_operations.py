"""Operations listed before a pass runs: one after the other, as tables, and what makes a list out of date."""

import numpy as np
import pytest
from numba import config as numba_config

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.kernels.backend import Backend
from acoustic.kernels.compiled.elementwise import CompiledKernels
from acoustic.network.network import Network
from acoustic.runtime import blas, tables
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.operations import Emitter, Moving, Operation, Pass, PythonCall, Table, joined
from acoustic.runtime.tables import NotInTable
from acoustic.runtime.thread_team import ThreadTeam
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdaGrad, AdamW, Momentum
from acoustic.training.update import Updater

FRAMES = 96
pytestmark = pytest.mark.skipif(
    bool(numba_config.DISABLE_JIT) or blas.general_function() is None, reason="tables are not possible here"
)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    """Two threads share passes, whatever the machine has."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")


def network(kind="Sigmoid", **options):
    options = {"normalise_features": True, "eval_criterion": "ErrorPrediction"} | options
    net = build_simple_network(SimpleNetworkOptions((7, 12, 9, 5), (kind,), **options))
    rng = np.random.default_rng(5)
    for node in net.nodes.values():
        if node.is_precomputed:
            node.value = net.backend.asarray(rng.random((7, 1)) + 0.5)
    return net


def residual():
    """x -> f(W x + b) + W x, both of one product, a criterion on top of a second one."""
    net = Network()
    net.add("InputValue", "features", rows=7)
    net.add("InputValue", "labels", rows=5)
    for name, shape in {"W": (9, 7), "b": (9, 1), "V": (5, 9)}.items():
        net.add("LearnableParameter", name, rows=shape[0], cols=shape[1], initValueScale=5)
    net.add("Times", "Wx", "W", "features")
    net.add("Plus", "z", "Wx", "b")
    net.add("Tanh", "h", "z")
    net.add("Plus", "r", "h", "Wx")
    net.add("Times", "o", "V", "r")
    net.add("CrossEntropyWithSoftmax", "ce", "labels", "o")
    net.criteria.append("ce")
    net.validate()
    return net


NETWORKS = {
    "sigmoid": network,
    "tanh": lambda: network("Tanh"),
    "relu": lambda: network("RectifiedLinear"),
    "p-norm": lambda: network("PNorm", group_size=3),
    "dropout": lambda: network(with_dropout=True),
    "residual": residual,
}


def minibatch(seed, frames=FRAMES):
    rng = np.random.default_rng(seed)
    labels = np.zeros((5, frames), np.float32, order="F")
    labels[rng.integers(0, 5, frames), np.arange(frames)] = 1
    return {"features": np.asfortranarray(rng.standard_normal((7, frames), dtype=np.float32)), "labels": labels}


def segments(listed):
    return [one for group in listed.groups for phase in group.phases for each in phase for one in each]


def called(listed):
    """The names of the operations that Python calls."""
    return {one.kernel for one in segments(listed) if not isinstance(one, Table)}


def results(net, seeds=range(5), options=None, threads=2):
    """(criterion, gradients) of some minibatches, every one with slightly changed weights."""
    roots = [*net.criteria, *net.evaluations]
    engine, passes = Engine(net, roots, threads=threads, options=options), []
    for seed in seeds:
        engine.forward(minibatch(seed), training=True, dropout_rate=0.2, seed=seed)
        values = [float(engine.value(root)[0, 0]) for root in roots]
        engine.backward()
        passes.append((values, {node.name: engine.gradient(node.name).copy() for node in net.parameters()}))
        for node in net.parameters():
            node.value *= np.float32(0.9)
            node.touch()
    return engine, passes


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", NETWORKS)
def test_tables_give_what_nodes_give(kind, threads):
    engine, passes = results(NETWORKS[kind](), threads=threads)
    program = engine._program
    python = {"update"} | ({"Dropout.forward", "Dropout.backward"} if kind == "dropout" else set())
    for listed in (program._forward, program._backward):
        assert called(listed) <= python
        assert any(isinstance(one, Table) for one in segments(listed))
    other, expected = results(NETWORKS[kind](), options=EngineOptions(tables=False), threads=threads)
    assert not any(isinstance(one, Table) for one in segments(other._program._forward))
    for (values, gradients), (right, right_gradients) in zip(passes, expected):
        np.testing.assert_allclose(values, right, rtol=2e-6)
        for name, gradient in gradients.items():
            np.testing.assert_allclose(gradient, right_gradients[name], rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", NETWORKS)
def test_operations_one_after_the_other_give_the_bits_of_tables(kind, threads, monkeypatch):
    expected = results(NETWORKS[kind](), threads=threads)[1]

    def run(self):
        for operation in self:
            operation.run()

    monkeypatch.setattr(Pass, "run", run)
    for (values, gradients), (right, right_gradients) in zip(results(NETWORKS[kind](), threads=threads)[1], expected):
        assert values == right
        for name, gradient in gradients.items():
            np.testing.assert_array_equal(gradient, right_gradients[name])


RULES = {
    "momentum": Momentum(),
    "nesterov": Momentum(nesterov=True),
    "adagrad": AdaGrad(normalise=False),
    "adamw": AdamW(),
}


def trained(rule, options=None, **settings):
    """Engine and parameters after some updates, the learning rate falling in between."""
    net = network()
    engine = Engine(net, net.criteria, threads=2, options=options)
    updater = Updater(
        net,
        TrainingOptions(max_epochs=1, learning_rates_per_sample=0.1, minibatch_size=FRAMES, rule=rule, **settings),
    )
    for seed in range(8):
        engine.forward(minibatch(seed), training=True)
        updater.begin(0.01 if seed < 5 else 0.003, 0.9, FRAMES, (seed,))
        engine.backward(on_gradient=updater)
    return engine, [node.value for node in net.parameters() if node.needs_gradient]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"l2_weight": 0.01}, {"noise_deviation": 0.01}, {"clipping_threshold": 0.01}])
@pytest.mark.parametrize("rule", RULES)
def test_updates_in_tables_give_what_python_gives(rule, settings):
    engine, values = trained(RULES[rule], **settings)
    is_possible = rule != "adamw" and "noise_deviation" not in settings
    assert ("update" in called(engine._program._backward)) != is_possible
    _, expected = trained(RULES[rule], EngineOptions(tables=False), **settings)
    for value, right in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("kind", NETWORKS)
def test_every_pass_gives_the_same_bits(kind):
    net = NETWORKS[kind]()
    engine, passes = Engine(net, net.criteria, threads=2), []
    for _ in range(3):
        engine.forward(minibatch(1), training=True)
        value = engine.value(net.criteria[0]).copy()
        engine.backward()
        passes.append((value, *(engine.gradient(node.name).copy() for node in net.parameters())))
    for other in passes[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(passes[0], other))


def test_nothing_but_tables_goes_to_the_threads(monkeypatch):
    net = network(normalise_features=False)
    engine = Engine(net, net.criteria)
    updater = Updater(net, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.1))

    def run(*arguments):
        raise AssertionError("Python in a thread")

    monkeypatch.setattr(engine.backend.team, "_run", run)
    forward, backward = [], []
    for seed, rate in enumerate((0.1, 0.1, 0.2)):  # another rate: the backward pass is listed again
        engine.forward(minibatch(seed), training=True)
        updater.begin(rate, 0.9, FRAMES)
        engine.backward(on_gradient=updater)
        forward.append(engine._program._forward)
        backward.append(engine._program._backward)
    assert forward[0] is forward[1] is forward[2]
    assert backward[0] is backward[1] is not backward[2]


def test_a_matrix_put_in_place_of_another_is_found():
    net = network()
    engine = Engine(net, net.criteria, threads=2)
    engine.forward(minibatch(1), training=True)
    before = float(engine.value(net.criteria[0])[0, 0])
    for node in net.parameters():
        node.value = np.asfortranarray(node.value * np.float32(0.5))
    engine.forward(minibatch(1), training=True)
    changed = float(engine.value(net.criteria[0])[0, 0])
    expected = Engine(net, net.criteria, threads=1)
    expected.forward(minibatch(1), training=True)
    assert changed != before
    assert changed == pytest.approx(float(expected.value(net.criteria[0])[0, 0]), rel=1e-6)


def test_fed_matrices_are_not_kept():
    import gc
    import weakref

    net = network()
    engine = Engine(net, net.criteria, threads=2)
    matrices = minibatch(1)
    kept = weakref.ref(matrices["features"])
    engine.forward(matrices, training=True)
    del matrices
    engine.forward(minibatch(2), training=True)
    gc.collect()
    assert kept() is None


def test_no_tables_in_double_precision():
    assert tables.is_possible(Backend("float"))
    assert not tables.is_possible(Backend("double"))


@pytest.mark.parametrize(("scale", "keep"), [(1.0, 0.0), (-0.25, 1.0), (2.0, 0.5)])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1)])
def test_products_follow_what_is_fed(shape, scale, keep):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a = np.asfortranarray(rng.standard_normal((m, k), dtype=np.float32))
    out = np.zeros((m, n), np.float32, order="F")
    fed = {"x": np.zeros((k, n), np.float32, order="F")}
    moving = Moving(fed, "x", fed["x"])
    emitter = Emitter(CompiledKernels(), moving=[moving])
    emitter.matmul(a, moving.stand_in, out, scale, keep)
    (segment,) = joined(emitter.operations)
    expected = np.zeros((m, n))
    for number in range(4):
        fed["x"] = np.asfortranarray(rng.standard_normal((k, n), dtype=np.float32))
        (segment if number % 2 else emitter.operations[0]).run()
        expected = scale * (a @ fed["x"]) + keep * expected
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def test_inputs_may_share_their_memory_and_part():
    rng = np.random.default_rng(0)
    a, b = (np.asfortranarray(rng.standard_normal((3, 8), dtype=np.float32)) for _ in range(2))
    sums = [np.zeros((3, 6), np.float32, order="F") for _ in range(2)]
    fed = {"x": a[:, :6], "y": a[:, :6]}
    moving = [Moving(fed, name, fed[name]) for name in fed]
    emitter = Emitter(CompiledKernels(), moving=moving)
    for total, each in zip(sums, moving):
        emitter.accumulate(total, each.stand_in)
    (table,) = joined(emitter.operations)
    expected = np.zeros((2, 3, 6))
    for x, y in ((a[:, :6], a[:, :6]), (a[:, 2:], b[:, :6]), (a[:, :6], a[:, 1:7]), (b[:, 2:], b[:, 2:])):
        fed.update(x=x, y=y)
        table.run()
        expected += [x, y]
        np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-5)


def test_what_a_table_cannot_hold_is_left_to_python():
    a = np.ones((4, 6), np.float32, order="F")[::2, ::2]  # strides that no library takes
    b, out = np.ones((3, 2), np.float32, order="F"), np.zeros((2, 2), np.float32, order="F")
    emitter = Emitter(CompiledKernels(), "z")
    emitter.matmul(a, b, out, 1.0, 0.0)
    emitter.relu(out, out)
    product, table = joined(emitter.operations)
    assert isinstance(product, Operation)
    assert (product.kernel, product.node) == ("matmul", "z")
    assert isinstance(table, Table)
    with pytest.raises(NotInTable):
        Table([product])
    for _ in range(2):
        out.fill(0)
        product.run()
        assert np.array_equal(out, np.full((2, 2), 3))


def test_an_operation_that_fails_ends_the_pass():
    seen = []

    def fail():
        raise ValueError("here")

    lists = [[PythonCall("first", seen.append, 1), PythonCall("second", fail), PythonCall("third", seen.append, 3)]]
    for compiled in (False, True):
        with pytest.raises(ValueError, match="here"):
            Pass(ThreadTeam(1), [lists], compiled).run()
    assert seen == [1, 1]


@pytest.mark.parametrize("compiled", [False, True])
def test_no_phase_begins_before_all_have_ended_the_one_before(compiled):
    """Each of two threads copies what the other one has, with Python in between or not, or the caller does so alone."""
    team, x = ThreadTeam(2), [np.zeros((50, 20), np.float32, order="F") for _ in range(2)]
    y, z = ([np.zeros_like(x[0]) for _ in range(2)] for _ in range(2))
    for python in (False, True):
        phases = []
        for source, target in ((x, y), (y, z)):
            lists = []
            for worker in range(2):
                emitter = Emitter(CompiledKernels())
                emitter.copy(source[1 - worker], target[worker])
                lists.append(emitter.operations)
            phases.append(lists)
        if python:
            phases[0][1].append(PythonCall("nothing", lambda: None))
        listed = Pass(team, [[[]], *phases], compiled)
        for number in range(10):
            x[0][...], x[1][...] = number, -number
            team._alone_until = np.inf if number % 3 == 2 else 0.0
            listed.run()
            assert (z[0] == number).all()
            assert (z[1] == -number).all()


def test_while_a_list_is_made_nothing_is_computed():
    x = np.full((3, 4), 2, np.float32, order="F")
    emitter = Emitter(CompiledKernels(), "h")
    emitter.sigmoid(x, x)
    assert (x == 2).all()
    assert [(one.kernel, one.node) for one in emitter.operations] == [("sigmoid", "h")]
