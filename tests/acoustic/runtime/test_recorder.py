"""Passes repeated without Python: the same numbers as when Python makes every step."""

from functools import partial

import numpy as np
import pytest
from numba import config as numba_config

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.engine.engine import Engine
from acoustic.kernels.backend import Backend
from acoustic.kernels.compiled.elementwise import CompiledKernels
from acoustic.network.network import Network
from acoustic.runtime import blas, recorder, replay
from acoustic.runtime.products import multiply_alone
from acoustic.runtime.recorder import Recording
from acoustic.runtime.replay import Replay, ReplayedSteps
from acoustic.runtime.thread_team import ThreadTeam
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import AdaGrad, AdamW, Momentum
from acoustic.training.update import Updater

FRAMES = 96
pytestmark = pytest.mark.skipif(
    bool(numba_config.DISABLE_JIT) or blas.general_function() is None, reason="nothing is repeated here"
)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    """Passes are shared out, and repeated, by two threads, whatever the machine has."""
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


def parts(engine):
    passes = [p for worker in engine._program.workers for p in (worker.forward_pass, worker.backward_pass)]
    return [part for one in passes for part in one.parts]


def results(net, seeds=range(5), roots=None):
    """(criterion, gradients) of some minibatches, every one with slightly changed weights."""
    roots = roots or [*net.criteria, *net.evaluations]
    engine, found = Engine(net, roots, threads=2), []
    for seed in seeds:
        engine.forward(minibatch(seed), training=True, dropout_rate=0.2, seed=seed)
        values = [float(engine.value(root)[0, 0]) for root in roots]
        engine.backward()
        found.append((values, {node.name: engine.gradient(node.name).copy() for node in net.parameters()}))
        for node in net.parameters():
            node.value *= np.float32(0.9)
            node.touch()
    return engine, found


@pytest.mark.parametrize("kind", NETWORKS)
def test_repeated_passes_give_what_python_gives(kind, monkeypatch):
    engine, found = results(NETWORKS[kind]())
    assert any(one is not None and one._recording for _, _, one in parts(engine))
    monkeypatch.setattr(replay, "is_possible", lambda backend: False)
    other, expected = results(NETWORKS[kind]())
    assert all(one is None for _, _, one in parts(other))
    for (values, gradients), (right, right_gradients) in zip(found, expected):
        np.testing.assert_allclose(values, right, rtol=2e-6)
        for name, gradient in gradients.items():
            np.testing.assert_allclose(gradient, right_gradients[name], rtol=1e-4, atol=2e-5)


RULES = {
    "momentum": Momentum(),
    "nesterov": Momentum(nesterov=True),
    "adagrad": AdaGrad(normalise=False),
    "adamw": AdamW(),
}


def trained(rule, **options):
    """Engine and parameters after some updates, the learning rate falling in between."""
    net = network()
    engine = Engine(net, net.criteria, threads=2)
    settings = TrainingOptions(max_epochs=1, learning_rates_per_sample=0.1, minibatch_size=FRAMES, rule=rule, **options)
    updater = Updater(net, settings)
    for seed in range(8):
        engine.forward(minibatch(seed), training=True)
        updater.begin(0.01 if seed < 5 else 0.003, 0.9, FRAMES, (seed,))
        engine.backward(on_gradient=updater)
    return engine, [node.value for node in net.parameters() if node.needs_gradient]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"l2_weight": 0.01}, {"noise_deviation": 0.01}, {"clipping_threshold": 0.01}])
@pytest.mark.parametrize("rule", RULES)
def test_repeated_updates_give_what_python_gives(rule, options, monkeypatch):
    engine, found = trained(RULES[rule], **options)
    parts = [part for worker in engine._program.workers for part in worker.late_pass.parts]
    is_possible = rule != "adamw" and "noise_deviation" not in options
    assert all(one is not None and bool(one._recording) == is_possible for _, _, one in parts)
    monkeypatch.setattr(replay, "is_possible", lambda backend: False)
    _, expected = trained(RULES[rule], **options)
    for value, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, right, rtol=2e-4, atol=2e-5)


def test_everything_but_dropout_is_repeated():
    for kind in NETWORKS:
        engine, _ = results(NETWORKS[kind]())
        plain = {step.node.type_name for steps, _, one in parts(engine) if one is None for step in steps}
        assert plain == ({"Dropout"} if kind == "dropout" else set())


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


def test_nothing_but_tables_goes_to_the_threads_once_all_is_written_down(monkeypatch):
    net = network(normalise_features=False)
    engine = Engine(net, net.criteria)
    updater = Updater(net, TrainingOptions(max_epochs=1, learning_rates_per_sample=0.1))

    def learn(seed):
        engine.forward(minibatch(seed), training=True)
        updater.begin(0.1, 0.9, FRAMES)
        engine.backward(on_gradient=updater)

    for seed in range(3):
        learn(seed)

    def run(*arguments):
        raise AssertionError("Python in a thread")

    monkeypatch.setattr(engine.backend.team, "_run", run)
    learn(3)
    with pytest.raises(AssertionError, match="Python in a thread"):
        updater.begin(0.2, 0.9, FRAMES)  # another rate: the update is recorded again
        engine.forward(minibatch(2), training=True)
        engine.backward(on_gradient=updater)


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


def test_nothing_is_repeated_in_double_precision():
    assert replay.is_possible(Backend("float"))
    assert not replay.is_possible(Backend("double"))


class Step:
    """A step as ReplayedSteps wants it that does `work`."""

    def __init__(self, work):
        self.work, self.count = work, 0
        self.stored = []

    def forget(self):
        pass

    def run(self, run, inputs):
        self.count += 1
        self.work(inputs)


@pytest.mark.parametrize(("scale", "keep"), [(1.0, 0.0), (-0.25, 1.0), (2.0, 0.5)])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1)])
def test_products_follow_what_is_fed(shape, scale, keep):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a = np.asfortranarray(rng.standard_normal((m, k), dtype=np.float32))
    out = np.zeros((m, n), np.float32, order="F")
    step = Step(lambda inputs: multiply_alone(a, inputs["x"], out, scale, keep))
    passes = ReplayedSteps([step], lambda step: True)
    expected = np.zeros((m, n))
    for _ in range(3):
        x = np.asfortranarray(rng.standard_normal((k, n), dtype=np.float32))
        passes.run(None, {"x": x})
        expected = scale * (a @ x) + keep * expected
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    assert step.count == 2


def places():
    """Pairs of matrices: twice the same, parts of one that overlap, apart; the last ones come again."""
    rng = np.random.default_rng(0)
    a, b, c = (np.asfortranarray(rng.standard_normal((3, 8), dtype=np.float32)) for _ in range(3))
    return [*[(a, a)] * 3, (b, c), (a, c), *[(c[:, :6], c[:, 2:])] * 3, (c[:, :6], c[:, 1:7]), *[(a, b)] * 3, (b, b)]


@pytest.mark.parametrize("kind", ["steps", "work"])
def test_inputs_that_lay_in_one_place_may_part(kind):
    sums = [np.zeros((3, 8), np.float32, order="F") for _ in range(2)]
    counts = []

    def work(inputs):
        counts.append(None)
        for total, name in zip(sums, "xy"):
            columns = inputs[name].shape[1]
            CompiledKernels().accumulate(total[:, :columns], inputs[name])

    passes, repeat, expected = ReplayedSteps([Step(work)], lambda step: True), Replay(), np.zeros((2, 3, 8))
    for x, y in places():
        inputs = {"x": x, "y": y}
        if kind == "steps":
            passes.run(None, inputs, x.shape)
        else:
            repeat.run(partial(work, inputs), x.shape, sums, inputs)
        for total, matrix in zip(expected, (x, y)):
            total[:, : matrix.shape[1]] += matrix
        np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-5)
    assert len(counts) < len(places())


def test_what_cannot_be_written_down_is_left_to_python():
    a = np.ones((4, 6), np.float32, order="F")[::2, ::2]  # strides that no library takes
    b, out = np.ones((3, 2), np.float32, order="F"), np.zeros((2, 2), np.float32, order="F")
    step = Step(lambda inputs: multiply_alone(a, b, out, 1.0, 0.0))
    passes = ReplayedSteps([step], lambda step: True)
    for _ in range(3):
        out.fill(0)
        passes.run(None, {})
        assert np.array_equal(out, np.full((2, 2), 3))
    assert step.count == 3


def test_a_pass_that_fails_leaves_no_recording():
    x = np.ones((4, 3), np.float32, order="F")

    def work(inputs):
        CompiledKernels().sigmoid(x, x)
        if step.count == 2:
            raise ValueError("once")

    step = Step(work)
    passes = ReplayedSteps([step], lambda step: True)
    passes.run(None, {})
    with pytest.raises(ValueError, match="once"):
        passes.run(None, {})
    assert recorder.current() is None
    passes.run(None, {})
    passes.run(None, {})
    assert step.count == 3


def test_other_threads_are_not_written_down():

    x = np.ones((4, 64), np.float32, order="F")
    with Recording({}) as recording:
        ThreadTeam(2).run(lambda worker: worker and CompiledKernels().sigmoid(x, x))
    assert len(recording._table) == 0


def test_copies_and_sums():
    a, b = (np.arange(6, dtype=np.float32).reshape(2, 3, order="F") for _ in range(2))
    with Recording({}):
        CompiledKernels().copy(a + 1, b)
        CompiledKernels().accumulate(b, a)
    np.testing.assert_array_equal(b, 2 * a + 1)
