"""What follows from sums over frames, weighted criteria for one, while the frames are shared out among threads."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients, compare_with_forward_mode
from acoustic.network.network import Network
from acoustic.runtime.engine_options import EngineOptions
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.engine.test_engine_passes import Momentum, MomentumInParts

VARIANTS = [
    {"threads": threads, "options": EngineOptions(buffer_sharing=share, fusion=share)}
    for threads in (1, 2, 3)
    for share in (False, True)
]


def two_tasks(precision="double"):
    """Two criteria over shared layers, weighted by parameters that the layers use as well, and penalties."""
    network = Network(precision, seed=3, threads=3)
    network.add("Input", "x", rows=5)
    for name in ("states", "regions"):
        network.add("Input", name, rows=4)
        network.add("Parameter", f"W{name}", rows=4, cols=6, init="gaussian", initValueScale=4)
    network.add("Parameter", "W", rows=6, cols=5, init="gaussian", initValueScale=4)
    network.add("Parameter", "b", rows=6, init="gaussian")
    network.add("Parameter", "s", rows=1, init="fixedValue", value=0.7)
    network.add("Plus", "p", network.add("Times", "t", "W", "x"), "b")
    network.add("Scale", "h", "s", network.add("Sigmoid", "a", "p"))
    for name in ("states", "regions"):
        network.add("CrossEntropyWithSoftmax", f"ce.{name}", name, network.add("Times", f"z.{name}", f"W{name}", "h"))
    network.add("Scale", "first", "s", "ce.states")
    network.add("Constant", "half", value=0.5)
    network.add("Scale", "second", "half", "ce.regions")
    network.add("Plus", "both", "first", "second")
    network.add("ElementTimes", "product", "both", "both")
    network.add("Plus", "J", "product", "both")
    network.add("L2Reg", "norm", "W")
    network.add("L1Reg", "size", "h")  # a sum over frames of what learns
    network.add("Plus", "penalties", "norm", "size")
    network.add("Plus", "total", "J", "penalties")
    return network


def data(num_frames):
    rng = np.random.default_rng(num_frames)
    matrices = {"x": np.asfortranarray(rng.standard_normal((5, num_frames)))}
    for name in ("states", "regions"):
        matrices[name] = np.zeros((4, num_frames), order="F")
        matrices[name][rng.integers(0, 4, num_frames), np.arange(num_frames)] = 1
    return matrices


@pytest.mark.parametrize("criterion", ["J", "total", "both"])
@pytest.mark.parametrize("num_frames", [1, 96, 101])
def test_gradients_do_not_depend_on_threads_or_memory(criterion, num_frames):
    network, matrices = two_tasks(), data(num_frames)
    results = []
    for variant in VARIANTS:
        engine = Engine(network, [criterion, "ce.states"], **variant)
        assert engine.max_workers == variant["threads"]
        for _ in range(2):
            engine.forward(matrices, training=True, criterion=criterion)
            values = [engine.value(name).copy() for name in engine.roots]
            engine.backward()
        learn = [node.name for node in engine.graph.order if node.needs_gradient]
        results.append(values + [engine.gradient(name).copy() for name in sorted(learn)])
    for result in results[1:]:
        for first, other in zip(results[0], result, strict=True):
            np.testing.assert_allclose(first, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
def test_gradients_are_right(threads):
    network, matrices = two_tasks(), data(96)
    engine = Engine(network, ["total"], threads=threads)
    comparisons = [*check_gradients(network, "total", matrices, engine=engine)]
    comparisons += compare_with_forward_mode(network, "total", matrices)
    assert {comparison.parameter for comparison in comparisons} == {"W", "Wstates", "Wregions", "b", "s"}
    for comparison in comparisons:
        assert comparison.error < 1e-6, comparison


def test_a_parameter_is_finished_once_and_after_its_last_use():
    network, matrices = two_tasks(), data(96)
    expected = {}
    for threads in (1, 3):
        engine = Engine(network, ["total"], threads=threads)
        engine.forward(matrices, training=True)
        finished = {}

        def take(node, gradient, finished=finished):
            assert node.name not in finished
            finished[node.name] = gradient.copy()

        engine.backward(on_gradient=take)
        for name, gradient in (expected or finished).items():
            np.testing.assert_allclose(finished[name], gradient, rtol=1e-11, atol=1e-12)
        expected = finished
    assert set(expected) == {"W", "Wstates", "Wregions", "b", "s"}


@pytest.mark.parametrize("shared", [True, False])
def test_a_parameter_that_is_multiplied_and_added(shared):
    """Its gradient is one product over all frames and a sum of the workers' parts; the parts alone can wait."""
    rng = np.random.default_rng(4)
    network = Network("double", seed=1, threads=3)
    network.add("Input", "x", rows=1)
    network.add("Input", "y", rows=4)
    for name in "wb":
        network.add("Parameter", name, rows=4, cols=1, initValueScale=10)
    network.add("Plus", "z", network.add("Times", "wx", "w", "x"), "w" if shared else "b")
    network.add("SquareError", "J", "z", "y")
    matrices = {name: np.asfortranarray(rng.standard_normal((rows, 120))) for name, rows in (("x", 1), ("y", 4))}
    gradients = []
    for threads in (1, 3):
        engine = Engine(network, ["J"], threads=threads)
        assert engine.max_workers == threads
        engine.forward(matrices, training=True)
        engine.backward()
        assert threads == 1 or len(engine._program._backward.phases) == 3 + shared
        gradients.append([engine.gradient(name).copy() for name in ("w" if shared else "wb")])
    (x, y), w = matrices.values(), network["w"].value
    error = w @ x + (w if shared else network["b"].value) - y
    products, sums = error @ x.T, error.sum(axis=1, keepdims=True)
    for found in gradients:
        for gradient, expected in zip(found, [products + sums] if shared else [products, sums]):
            np.testing.assert_allclose(gradient, expected, rtol=1e-10)


@pytest.mark.parametrize("kind", [Momentum, MomentumInParts])
def test_a_parameter_that_is_multiplied_and_added_is_updated_by_its_whole_gradient(kind):
    weights = []
    for threads in (1, 3):
        network, rng = Network("double", seed=1, threads=3), np.random.default_rng(4)
        network.add("Input", "x", rows=1)
        network.add("Input", "y", rows=4)
        network.add("Parameter", "w", rows=4, cols=1, initValueScale=10)
        network.add("Plus", "z", network.add("Times", "wx", "w", "x"), "w")
        network.add("SquareError", "J", "z", "y")
        engine, update = Engine(network, ["J"], threads=threads), kind(network)
        for _ in range(3):
            matrices = {name: np.asfortranarray(rng.standard_normal((k, 120))) for name, k in (("x", 1), ("y", 4))}
            engine.forward(matrices, training=True)
            engine.backward(on_gradient=update)
        weights.append(network["w"].value)
    np.testing.assert_allclose(*weights, rtol=1e-10)


@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_of_a_parameter_that_is_a_factor_and_a_term(threads, monkeypatch):
    """Of W, the threads add up their frames' parts in Plus, and Times computes a product over all frames."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    network = Network("float", threads=threads)
    network.add("Input", "x", rows=1)
    network.add("Input", "y", rows=30)
    network.add("Parameter", "W", rows=30, cols=1, init="gaussian", initValueScale=2)
    network.add("Tanh", "h", network.add("Plus", "z", network.add("Times", "p", "W", "x"), "W"))
    network.add("CrossEntropyWithSoftmax", "J", "y", "h")
    network.validate()
    rng, gradients = np.random.default_rng(0), []
    batches = [
        {
            "x": np.asfortranarray(rng.standard_normal((1, 80)), np.float32),
            "y": np.asfortranarray(np.eye(30)[:, rng.integers(0, 30, 80)], np.float32),
        }
        for _ in range(6)
    ]
    for options in (EngineOptions(), EngineOptions.plain()):
        engine = Engine(network, ["J"], options=options)
        found = []
        for matrices in batches:  # the later ones are replayed
            engine.forward(matrices, training=True)
            engine.backward()
            found.append(engine.gradient("W").copy())
        gradients.append(found)
    np.testing.assert_allclose(*gradients, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("type_name", ["SquareError", "CrossEntropyWithSoftmax", "SumElements", "ErrorPrediction"])
def test_sums_over_frames_are_those_of_the_sequences_alone(type_name, threads, monkeypatch):
    """Gaps hold zeros at first, but a bias makes them count unless they are left out."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    network = Network("double", threads=threads)
    network.add("Input", "x", rows=4)
    network.add("Input", "y", rows=3)
    for name, cols in (("W", 4), ("b", 1)):
        network.add("Parameter", name, rows=3, cols=cols, init="gaussian", initValueScale=5)
    network.add("Sigmoid", "h", network.add("Plus", "z", network.add("Times", "p", "W", "x"), "b"))
    network.add(type_name, "J", *(["h"] if type_name == "SumElements" else ["y", "h"]))
    network.validate()
    lengths, rng = (5, 2, 4), np.random.default_rng(0)
    layout, found = SequenceLayout.of_lengths(lengths), []
    real = ~layout.gaps.ravel()
    x = np.asfortranarray(rng.standard_normal((4, len(real))) * real)
    y = np.asfortranarray(np.eye(3)[:, rng.integers(0, 3, len(real))] * real)
    slots = np.arange(len(real)) % len(lengths)
    parts = [(slice(None), layout)]
    parts += [((slots == slot) & real, SequenceLayout.of_lengths([n])) for slot, n in enumerate(lengths)]
    for columns, marks in parts:
        engine = Engine(network, ["J"])
        matrices = {"x": np.asfortranarray(x[:, columns]), "y": np.asfortranarray(y[:, columns])}
        learns = type_name != "ErrorPrediction"  # which has no gradient
        engine.forward(matrices, training=learns, layout=marks)
        gradients = []
        if learns:
            engine.backward()
            gradients = [engine.gradient(name).ravel().copy() for name in ("W", "b")]
        found.append(np.concatenate([engine.value("J").ravel(), *gradients]))
    np.testing.assert_allclose(found[0], sum(found[1:]), rtol=1e-10)
