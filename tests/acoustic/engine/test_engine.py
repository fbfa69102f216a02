"""The engine: values and gradients through graphs, in any number of threads."""

import subprocess
import sys

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from acoustic.runtime.engine_options import EngineOptions
from readers.errors import ModelError, ShapeError
from tests.acoustic.engine.engine_networks import VARIANTS, branching, by_hand, data, layered, recurring

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
            engine = Engine(network, roots, options=EngineOptions(buffer_sharing=share, fusion=fusion), threads=threads)
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


@pytest.mark.parametrize("variant", VARIANTS)
def test_numeric_gradients_of_a_weight_used_twice(variant):
    network = recurring()
    engine = Engine(network, ["J"], **variant)
    comparisons = check_gradients(network, "J", {"x": data(80, rows=5)["features"]}, engine=engine)
    assert max(comparison.error for comparison in comparisons) < 1e-6, comparisons


def test_importing_the_engine_compiles_and_loads_nothing_slow():
    modules = "acoustic.engine.engine, acoustic.scoring.scorer, acoustic.network.network"
    code = f"import sys, {modules}; print({{'numba', 'scipy'}} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
