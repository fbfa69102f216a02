"""The engine: values and gradients through graphs, in any number of threads, and what is computed again."""

import subprocess
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest

from acoustic.engine import Engine
from acoustic.fusion import BiasActivation
from acoustic.gradient_check import check_gradients
from acoustic.network import Network
from readers.errors import ModelError, ShapeError

VARIANTS = [
    pytest.param(
        {"share_buffers": share, "fusion": fusion, "threads": threads}, id=f"share{share}-fuse{fusion}-{threads}"
    )
    for share in (False, True)
    for fusion in (False, True)
    for threads in (1, 3)
]


def layered(sizes=(7, 5, 6, 4), kind="Sigmoid", precision="double", dropout=False, prior=False, threads=3):
    """A feed-forward network with criterion CE, error count Err and, with prior, scaled log-likelihoods."""
    network = Network(precision, seed=5, threads=threads)
    top = network.add("InputValue", "features", rows=sizes[0], tag="feature")
    network.add("InputValue", "labels", rows=sizes[-1], tag="label")
    for k, (cols, rows) in enumerate(pairwise(sizes)):
        network.add("Parameter", f"W{k}", rows=rows, cols=cols, init="gaussian", initValueScale=5)
        network.add("Parameter", f"B{k}", rows=rows, init="gaussian", initValueScale=2)
        top = network.add("Plus", f"P{k}", network.add("Times", f"T{k}", f"W{k}", top), f"B{k}")
        if k < len(sizes) - 2:
            top = network.add(kind, f"H{k + 1}", top)
            top = network.add("Dropout", f"D{k + 1}", top) if dropout else top
    network.add("CrossEntropyWithSoftmax", "CE", "labels", top)
    network.add("ErrorPrediction", "Err", "labels", top)
    network.criteria.append("CE")
    network.evaluations.append("Err")
    if prior:
        network.add("Log", "LogOfPrior", network.add("Mean", "Prior", "labels"))
        network.add("Minus", "ScaledLogLikelihood", top, "LogOfPrior")
        network.set_value("Prior", np.full((sizes[-1], 1), 1 / sizes[-1]))
    network.validate()
    return network


def data(num_frames, seed=0, rows=7, classes=4, dtype=np.float64):
    rng = np.random.default_rng((seed, num_frames))
    labels = np.zeros((classes, num_frames), dtype, order="F")
    labels[rng.integers(0, classes, num_frames), np.arange(num_frames)] = 1
    return {"features": np.asfortranarray(rng.standard_normal((rows, num_frames)).astype(dtype)), "labels": labels}


def by_hand(network, matrices):
    """(cross-entropy, errors, gradients of all parameters) of a sigmoid network, layer by layer."""
    value = {name: node.value for name, node in network.nodes.items() if node.is_stored}
    count = sum(name.startswith("W") for name in value)
    hidden = [matrices["features"]]
    for k in range(count):
        z = value[f"W{k}"] @ hidden[-1] + value[f"B{k}"]
        hidden.append(1 / (1 + np.exp(-z)) if k < count - 1 else z)
    p = np.exp(z) / np.exp(z).sum(axis=0)
    labels, delta, gradients = matrices["labels"], p - matrices["labels"], {}
    for k in reversed(range(count)):
        gradients[f"W{k}"], gradients[f"B{k}"] = delta @ hidden[k].T, delta.sum(axis=1, keepdims=True)
        delta = (value[f"W{k}"].T @ delta) * hidden[k] * (1 - hidden[k])
    return -np.log((p * labels).sum(axis=0)).sum(), (z.argmax(0) != labels.argmax(0)).sum(), gradients


class Calls:
    """Counts how often nodes compute their values."""

    def __init__(self, network, monkeypatch):
        self.names = []
        for node in network.nodes.values():
            if not node.is_leaf:
                monkeypatch.setattr(node, "forward", self.counting(node))

    def counting(self, node):
        original = node.forward

        def forward(*arguments, **buffers):
            self.names.append(node.name)
            return original(*arguments, **buffers)

        return forward

    def taken(self):
        names, self.names = sorted(set(self.names)), []
        return names


# ---- values and gradients


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("sizes", [(7, 5, 6, 4), (4, 4, 4, 4, 4, 4)], ids=["different", "equal"])
@pytest.mark.parametrize("num_frames", [1, 9, 101])
def test_layered_network_against_its_formulas(variant, num_frames, sizes):
    network, matrices = layered(sizes), data(num_frames, rows=sizes[0])
    engine = Engine(network, ["CE", "Err"], **variant)
    engine.forward(matrices, training=True)
    loss, errors, gradients = by_hand(network, matrices)
    assert engine.value("CE")[0, 0] == pytest.approx(loss, rel=1e-12)
    assert engine.value("Err")[0, 0] == errors
    engine.backward()
    for name, gradient in gradients.items():
        assert engine.gradient(name).flags.f_contiguous
        np.testing.assert_allclose(engine.gradient(name), gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kind", ["Sigmoid", "Tanh", "RectifiedLinear", "Softmax", "Negate"])
def test_numeric_gradients_with_dropout(variant, kind):
    network = layered(kind=kind, dropout=True)
    engine = Engine(network, ["CE", "Err"], **variant)
    comparisons = check_gradients(network, "CE", data(70), engine=engine, dropout_rate=0.3, seed=(1, 2))
    assert len(comparisons) == 6
    assert max(comparison.error for comparison in comparisons) < 1e-6, comparisons


def branching():
    """Shared weights, a value used three times, sums that repeat columns, a normalisation, weights made of weights."""
    network = Network("double", seed=2, threads=3)
    network.add("Input", "x", rows=4)
    for name, rows, cols in (("W", 4, 4), ("b", 4, 1), ("s", 1, 1), ("r", 4, 1)):
        network.add("Parameter", name, rows=rows, cols=cols, init="gaussian", initValueScale=4)
    network.add("Constant", "mean", value=0.1, rows=4)
    network.add("Constant", "inverse", value=1.3, rows=4)
    network.add("PerDimMVNorm", "n", "x", "mean", "inverse")
    network.add("Scale", "sW", "s", "W")
    network.add("Plus", "h1", network.add("Times", "t1", "sW", "n"), "b")
    network.add("Tanh", "a1", "h1")
    network.add("Times", "t2", "sW", "a1")
    network.add("Minus", "h2", "b", "t2")
    network.add("Sigmoid", "a2", "h2")
    network.add("ElementTimes", "gate", "a1", "a2")
    network.add("Plus", "all", network.add("Plus", "some", "gate", "a1"), "r")
    network.add("Plus", "double", "all", "all")
    network.add("Plus", "nothing new", "double", network.add("Minus", "nothing", "a2", "a2"))
    network.add("Exp", "e", network.add("Negate", "minus", "nothing new"))
    network.add("SquareError", "J", "e", network.add("Sigmoid", "target", "n"))
    network.add("SumElements", "penalty", network.add("ElementTimes", "W2", "W", "W"))
    network.add("Plus", "total", "J", "penalty")
    return network


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("criterion", ["J", "total"])
@pytest.mark.parametrize("num_frames", [1, 70])
def test_numeric_gradients_of_a_branching_network(variant, criterion, num_frames):
    network = branching()
    x = {"x": data(num_frames, rows=4)["features"]}
    comparisons = check_gradients(network, criterion, x, engine=Engine(network, [criterion, "e"], **variant))
    assert len(comparisons) == 4
    assert max(comparison.error for comparison in comparisons) < 1e-6, comparisons


@pytest.mark.parametrize("make", [lambda: layered(dropout=True, prior=True), branching], ids=["layered", "branching"])
@pytest.mark.parametrize("threads", [1, 3])
def test_sharing_and_fusion_change_no_bit(make, threads):
    network = make()
    matrices = data(80) if "labels" in network.nodes else {"x": data(80, rows=4)["features"]}
    roots = ["CE", "Err", "ScaledLogLikelihood", "D1"] if "CE" in network.nodes else ["J", "e", "h2"]
    results = []
    for share in (False, True):
        for fusion in (False, True):
            engine = Engine(network, roots, share_buffers=share, fusion=fusion, threads=threads)
            engine.forward(matrices, training=True, dropout_rate=0.2, seed=4)
            values = [engine.value(name).copy() for name in roots]
            engine.backward()
            learnable = [node.name for node in network.parameters()]
            results.append(values + [engine.gradient(name).copy() for name in learnable])
    for result in results[1:]:
        for first, other in zip(results[0], result):
            np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("num_frames", [33, 64, 65, 200])
def test_threads_change_only_the_rounding(num_frames):
    network, matrices = layered(dropout=True, prior=True), data(num_frames)
    results = []
    for threads in (1, 2, 3):
        engine = Engine(network, ["CE", "Err", "ScaledLogLikelihood"], threads=threads)
        engine.forward(matrices, training=True, dropout_rate=0.3, seed=1)
        results.append([engine.value(name).copy() for name in engine.roots])
        engine.backward()
        results[-1] += [engine.gradient(f"W{k}").copy() for k in range(3)]
    for result in results[1:]:
        for first, other in zip(results[0], result):
            np.testing.assert_allclose(first, other, rtol=1e-10, atol=1e-12)


def test_frames_are_shared_out_only_where_that_is_right():
    """A sum over frames that frames need, and columns repeated across frames, need all frames in one place."""
    network = branching()
    assert Engine(network, ["J", "e"]).max_workers == 3
    assert Engine(network, ["total"]).max_workers == 3
    network.add("Scale", "scaled by a sum", "J", "e")
    assert Engine(network, ["scaled by a sum"]).max_workers == 1
    network.add("Parameter", "pair", rows=4, cols=2)
    network.add("Plus", "tiled", "x", "pair")
    engine = Engine(network, ["tiled"])
    assert engine.max_workers == 1
    x = data(70, rows=4)["features"]
    engine.forward({"x": x})
    np.testing.assert_array_equal(engine.value("tiled"), x + np.tile(network["pair"].value, (1, 35)))
    with pytest.raises(ShapeError, match=r"X \S+ is 4x71, Y \S+ is 4x2; expected .* multiple"):
        engine.forward({"x": data(71, rows=4)["features"]})


@pytest.mark.parametrize("threads", [1, 3])
def test_single_precision_agrees_with_double(threads):
    """The compiled kernels against the plain ones, through a whole network."""
    single, double = layered(precision="float"), layered(precision="double")
    matrices = data(150)
    results = []
    for network in (single, double):
        engine = Engine(network, ["CE", "Err"], threads=threads)
        engine.forward(matrices, training=True)
        results.append([float(engine.value("CE")[0, 0]), float(engine.value("Err")[0, 0])])
        engine.backward()
        assert engine.gradient("W0").dtype == network.backend.dtype
        results[-1] += [engine.gradient(name).copy() for name in ("W0", "B0", "W2", "B2")]
    assert results[0][:2] == pytest.approx(results[1][:2], rel=1e-5)
    for first, other in zip(results[0][2:], results[1][2:]):
        np.testing.assert_allclose(first, other, rtol=1e-3, atol=1e-4)


def test_gradient_is_not_computed_for_inputs_and_frozen_parameters(monkeypatch):
    network = layered()
    network["W0"].settings["needGradient"] = False
    engine = Engine(network, ["CE"], threads=1)
    engine.forward(data(9), training=True)
    monkeypatch.setattr(network["T0"], "backward", lambda *a, **k: pytest.fail("T0 needs no gradient"))
    engine.backward()
    with pytest.raises(ModelError, match="node 'W0': has no gradient here"):
        engine.gradient("W0")
    np.testing.assert_allclose(engine.gradient("B0"), by_hand(network, data(9))[2]["B0"])


def test_fusion_replaces_bias_and_activation_alone():
    network = layered()
    fused = Engine(network, ["CE"]).graph
    assert [node.name for node in fused.order if isinstance(node, BiasActivation)] == ["H1", "H2"]
    assert "P0" not in {node.name for node in fused.order}
    asked = Engine(network, ["CE", "P0"]).graph
    assert [node.name for node in asked.order if isinstance(node, BiasActivation)] == ["H2"]


# ---- time stamps


def test_nothing_new_is_not_computed_again(monkeypatch):
    network = layered(prior=True)
    calls = Calls(network, monkeypatch)
    engine = Engine(network, ["CE", "Err", "ScaledLogLikelihood"], fusion=False)
    matrices = data(9)
    engine.forward(matrices)
    assert calls.taken() == sorted(node.name for node in network.nodes.values() if not node.is_leaf)
    engine.forward()
    assert calls.taken() == []
    engine.forward({"labels": matrices["labels"]})


def test_only_what_depends_on_a_new_value_is_computed(monkeypatch):
    network = layered(prior=True)
    calls = Calls(network, monkeypatch)
    engine = Engine(network, ["CE", "Err", "ScaledLogLikelihood"], fusion=False, share_buffers=False)
    matrices = data(9)
    engine.forward(matrices)
    calls.taken()
    engine.forward({"labels": matrices["labels"]})
    assert calls.taken() == ["CE", "Err"]
    network.set_value("Prior", np.array([[0.1], [0.2], [0.3], [0.4]]))
    engine.forward()
    assert calls.taken() == ["LogOfPrior", "ScaledLogLikelihood"]
    network["W2"].value[0, 0] += 1
    network["W2"].touch()
    engine.forward()
    assert calls.taken() == ["CE", "Err", "P2", "ScaledLogLikelihood", "T2"]
    engine.forward({"features": matrices["features"]})
    assert "LogOfPrior" not in calls.taken()


@pytest.mark.parametrize("seed", range(6))
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

    engine = Engine(network, roots, share_buffers=share)
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
        fresh = Engine(network, roots, share_buffers=False)
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


def recurring():
    """One weight matrix in two products."""
    network = Network("double", seed=4, threads=3)
    network.add("Input", "x", rows=5)
    network.add("Parameter", "W", rows=5, cols=5, initValueScale=10)
    network.add("Parameter", "b", rows=5)
    network.add("Tanh", "h", network.add("Plus", "p", network.add("Times", "t1", "W", "x"), "b"))
    network.add("SquareError", "J", network.add("Times", "t2", "W", "h"), "x")
    return network


class Momentum:
    """An update that may be done in parts; notes which columns of what it was given, in which thread."""

    def __init__(self, network):
        self.kernels = network.backend.kernels
        self.smoothed = {node.name: np.zeros_like(node.value, order="F") for node in network.parameters()}
        self.seen = []

    def __call__(self, node, gradient):
        self.update(node, gradient, slice(0, gradient.shape[1]))

    def update(self, node, gradient, columns):
        self.seen.append((node.name, columns.start, columns.stop, threading.get_ident()))
        self.kernels.momentum_step(node.value[:, columns], gradient, self.smoothed[node.name][:, columns], 0.01, 0.9)


class MomentumInParts(Momentum):
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
        for step in range(3):
            matrices = data(100, step)
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


@pytest.mark.parametrize("variant", VARIANTS)
def test_numeric_gradients_of_a_weight_used_twice(variant):
    network = recurring()
    engine = Engine(network, ["J"], **variant)
    comparisons = check_gradients(network, "J", {"x": data(80, rows=5)["features"]}, engine=engine)
    assert max(comparison.error for comparison in comparisons) < 1e-6, comparisons


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_two_trainings_are_equal_bit_for_bit(threads):
    weights = []
    for _ in range(2):
        network = layered((40, 64, 64, 4), precision="float", dropout=True, threads=threads)
        engine = Engine(network, ["CE", "Err"])
        smoothed = {node.name: np.zeros_like(node.value) for node in network.parameters()}

        def update(node, gradient, smoothed=smoothed, kernels=network.backend.kernels):
            kernels.momentum_step(node.value, gradient, smoothed[node.name], 0.01, 0.9)

        for step in range(20):
            matrices = data(100 + step % 3, seed=step, rows=40, dtype=np.float32)
            engine.forward(matrices, training=True, dropout_rate=0.2, seed=(1, step))
            engine.backward(on_gradient=update)
        weights.append([node.value for node in network.parameters()])
    for first, other in zip(*weights):
        assert np.isfinite(first).all()
        np.testing.assert_array_equal(first, other)


def test_importing_the_engine_compiles_and_loads_nothing_slow():
    code = (
        "import sys, acoustic.engine, acoustic.scorer, acoustic.network; print({'numba', 'scipy'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
