"""A compiled layer by itself, over many minibatches."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.training.natural_gradient import make_updater
from acoustic.training.natural_gradient.compiled import CompiledLayer
from acoustic.training.natural_gradient.layers import Step
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient

ROWS, COLS = 50, 40


def updater_of(rule):
    net = Network("float", threads=1)
    net.add("Input", "x", rows=COLS)
    net.add("Input", "y", rows=ROWS)
    for name, cols in (("W", COLS), ("B", 1)):
        net.add("Parameter", name, rows=ROWS, cols=cols)
    net.add("SquareError", "J", "y", net.add("Plus", "z", net.add("Times", "t", "W", "x"), "B"))
    net.criteria.append("J")
    return make_updater(net, TrainingOptions(max_epochs=1, learning_rates_per_sample=1.0, rule=rule))


def compiled_layer(updater, draw):
    """One whose Fisher matrix has its first estimate."""
    layer = updater.layers["W"]
    if not CompiledLayer.fits(layer, updater_backend(updater)):
        pytest.skip("nothing is compiled here")
    for fisher, rows in zip(layer.fishers.values(), (ROWS, COLS + 1)):
        fisher.precondition(np.asfortranarray(draw(rows, 64)))
    return next(iter(updater._compiled.values()))


def updater_backend(updater):
    return Network("float", threads=1).backend


def drawing(seed):
    rng = np.random.default_rng(seed)
    return lambda rows, count: np.asfortranarray(
        rng.standard_normal((rows, count)) * np.arange(1, rows + 1)[:, None] ** -0.7, np.float32
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_rows_stay_orthonormal_over_a_thousand_minibatches(workers):
    draw = drawing(0)
    updater = updater_of(NaturalGradient(rank_in=15, rank_out=20, period=1))
    compiled = compiled_layer(updater, draw)
    weights = updater.layers["W"].plan.weight.value
    for step in range(1000):
        compiled.begin(Step(1e-6, 1.0, np.inf))
        a, b = (draw(rows, 48) * np.float32(np.exp(3 * np.sin(step / 50))) for rows in (ROWS, COLS))
        for worker in range(workers):
            mine = slice(48 * worker // workers, 48 * (worker + 1) // workers)
            compiled.frames(a[:, mine], b[:, mine], mine.start, 48, worker, workers)
        for worker in range(workers):
            compiled.update(a, b, worker, workers)
    compiled.settle()
    assert np.isfinite(weights).all()
    for fisher in updater.layers["W"].fishers.values():
        assert fisher.count == 1001
        assert np.abs(fisher.r @ fisher.r.T - np.eye(fisher.rank)).max() < 1e-3
        assert (np.diff(fisher.d) <= 0).all()


@pytest.mark.slow
def test_minibatches_of_more_frames_than_are_processed_at_a_time():
    """6000 frames of 50 rows: a block of 5216, and the rest."""
    changes = []
    for precision in ("float", "double"):
        net = Network(precision, threads=1)
        net.add("Input", "x", rows=COLS)
        net.add("Input", "y", rows=ROWS)
        for name, cols in (("W", COLS), ("B", 1)):
            net.add("Parameter", name, rows=ROWS, cols=cols, init="fixedValue", value=0.1)
        net.add("SquareError", "J", "y", net.add("Plus", "z", net.add("Times", "t", "W", "x"), "B"))
        net.criteria.append("J")
        net.validate()
        rule = NaturalGradient(rank_in=15, rank_out=20, period=1)
        updater = make_updater(net, TrainingOptions(max_epochs=1, learning_rates_per_sample=1.0, rule=rule))
        engine, draw, before = Engine(net, ["J"]), drawing(2), net["W"].value.copy()
        for _ in range(4):
            x, y = draw(COLS, 6000), draw(ROWS, 6000)
            engine.forward({"x": net.backend.asarray(x), "y": net.backend.asarray(y)}, training=True)
            updater.begin(1e-5, 0.0, 6000)
            engine.backward("J", updater)
        assert bool(updater._compiled) == (precision == "float")
        changes.append(net["W"].value - before)
    np.testing.assert_allclose(*changes, rtol=0, atol=2e-3 * np.abs(changes[1]).max())


@pytest.mark.parametrize("kind", ["zeros", "one frame", "one direction", "tiny", "not finite"])
def test_degenerate_minibatches_do_no_harm(kind):
    draw = drawing(1)
    updater = updater_of(NaturalGradient())
    compiled = compiled_layer(updater, draw)
    weights = updater.layers["W"].plan.weight.value
    before = weights.copy(order="F")
    for step in range(25):
        compiled.begin(Step(1e-3, 1.0, np.inf))
        a, b = (draw(rows, 1 if kind == "one frame" else 32) for rows in (ROWS, COLS))
        if kind == "one direction":
            a[:], b[:] = a[:, :1], b[:, :1]
        a *= np.float32({"zeros": 0, "tiny": 1e-15, "not finite": np.nan if step == 3 else 1}.get(kind, 1))
        compiled.frames(a, b, 0, a.shape[1], 0, 1)
        compiled.update(a, b, 0, 1)
    assert np.isfinite(weights).all() == (kind != "not finite")
    assert (weights == before).all() == (kind in ("zeros", "tiny"))  # such changes are beyond single precision
    for fisher in updater.layers["W"].fishers.values():
        assert np.isfinite(fisher.w).all()
        assert np.isfinite(fisher.scales).all()
        assert fisher.rho > 0
