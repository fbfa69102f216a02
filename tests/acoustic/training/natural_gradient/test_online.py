"""The online method against a dense implementation of the equations it comes from."""

import numpy as np
import pytest

from acoustic.training.natural_gradient.online import OnlineFisher, top_eigenvectors
from acoustic.training.natural_gradient.simple import precondition
from acoustic.training.rules import NaturalGradient


class Dense:
    """Equations 18 to 30 and 69, 70 with full matrices; rows of x are frames, as in the paper."""

    def __init__(self, dim, rank, alpha=4.0, history=2000.0, period=4):
        self.dim, self.rank, self.alpha, self.history, self.period = dim, rank, alpha, history, period
        self.t = 0

    def step(self, x):
        count, dim, rank = *x.shape, self.rank
        covariance = x.T @ x / count
        if self.t == 0:
            values, vectors = np.linalg.eigh(covariance)
            top = values[::-1][:rank]
            self.r = vectors[:, ::-1][:, :rank].T
            self.rho = max((np.trace(covariance) - top.sum()) / (dim - rank), 1e-10)
            self.d = np.maximum(1e-10, top - self.rho)
        f = self.r.T @ np.diag(self.d) @ self.r + self.rho * np.eye(dim)
        g = f + self.alpha * np.trace(f) / dim * np.eye(dim)
        out = x @ np.linalg.inv(g)
        norm = np.sqrt(np.trace(out @ out.T))
        out *= np.sqrt(np.trace(x @ x.T)) / norm if norm else 1
        if self.t < 10 or self.t % self.period == 0:
            eta = 1 - np.exp(-count / self.history)
            t = eta * covariance + (1 - eta) * f
            y = self.r @ t
            c, u = np.linalg.eigh(y @ y.T)
            c, u = np.maximum(c[::-1], ((1 - eta) * self.rho) ** 2), u[:, ::-1]
            rho = (np.trace(t) - np.sqrt(c).sum()) / (dim - rank)
            self.r = np.diag(c**-0.5) @ u.T @ y
            self.d = np.maximum(np.sqrt(c) - rho, 1e-10)
            self.rho = max(1e-10, rho)
        self.t += 1
        return out


def correlated(rng, dim, scale=1.0):
    """Draws frames (n, dim) whose covariance has a falling spectrum."""
    mix = np.linalg.qr(rng.standard_normal((dim, dim)))[0] * (scale * np.arange(1, dim + 1) ** -0.7)
    return lambda count: rng.standard_normal((count, dim)) @ mix.T


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("dim", "rank"), [(30, 8), (12, 11), (50, 1), (40, 20)])
@pytest.mark.parametrize("counts", [(64,), (20,), (64, 7, 33)])
def test_every_step_is_that_of_the_dense_equations(dim, rank, counts, seed):
    rng = np.random.default_rng(seed)
    draw = correlated(rng, dim)
    ours, dense = OnlineFisher(np, np.float64, dim, rank, NaturalGradient()), Dense(dim, rank)
    for step in range(40):
        x = draw(counts[step % len(counts)])
        expected = dense.step(x)
        mine = x.T.copy(order="F")
        factor, norms = ours.precondition(mine)
        np.testing.assert_allclose(factor * mine.T, expected, atol=1e-8, rtol=1e-8)
        np.testing.assert_allclose(factor**2 * norms, (expected**2).sum(axis=1), rtol=1e-8)
        np.testing.assert_allclose(ours.d, dense.d, rtol=1e-8)
        assert ours.rho == pytest.approx(dense.rho, rel=1e-8)
        np.testing.assert_allclose(
            ours.r.T @ np.diag(ours.d) @ ours.r, dense.r.T @ np.diag(dense.d) @ dense.r, atol=1e-8
        )


@pytest.mark.parametrize(
    "settings", [NaturalGradient(alpha=1.0), NaturalGradient(history=100.0), NaturalGradient(period=1)]
)
def test_settings_mean_what_they_mean_in_the_equations(settings):
    rng = np.random.default_rng(0)
    draw = correlated(rng, 20)
    ours = OnlineFisher(np, np.float64, 20, 5, settings)
    dense = Dense(20, 5, settings.alpha, settings.history, settings.period)
    for _ in range(25):
        x = draw(32)
        mine = x.T.copy(order="F")
        factor, _ = ours.precondition(mine)
        np.testing.assert_allclose(factor * mine.T, dense.step(x), atol=1e-8)


def test_rows_stay_orthonormal_in_single_precision_and_the_norm_stays():
    rng = np.random.default_rng(5)
    fisher = OnlineFisher(np, np.float32, 60, 20, NaturalGradient(period=1))
    draw = correlated(rng, 60)
    for step in range(1000):
        x = (draw(48) * np.exp(2 * np.sin(step / 50))).T.astype(np.float32, order="F")
        before = np.linalg.norm(x)
        factor, norms = fisher.precondition(x)
        assert factor * np.linalg.norm(x) == pytest.approx(before, rel=1e-4)
        np.testing.assert_allclose(norms, (x**2).sum(axis=0), rtol=1e-4)
        assert np.abs(fisher.r @ fisher.r.T - np.eye(20)).max() < 2e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [4, 11, 12, 80])
@pytest.mark.parametrize("kind", ["zeros", "one frame", "few frames", "one direction", "tiny", "huge", "zeros first"])
def test_degenerate_minibatches_are_finite_and_keep_their_norm(kind, rank, dtype):
    rng = np.random.default_rng(1)
    fisher = OnlineFisher(np, dtype, 12, rank, NaturalGradient())
    assert fisher.rank <= 11
    for step in range(30):
        count = {"one frame": 1, "few frames": 3}.get(kind, 32)
        x = rng.standard_normal((12, count))
        if kind == "one direction":
            x = np.outer(np.arange(12.0), x[0])
        x *= {"zeros": 0, "tiny": 1e-12, "huge": 1e8, "zeros first": step > 5}.get(kind, 1)
        x = x.astype(dtype, order="F")
        before = np.linalg.norm(x.astype(float))
        factor, _ = fisher.precondition(x)
        assert np.isfinite(factor)
        assert np.isfinite(x).all()
        assert np.isfinite(fisher.w).all()
        assert np.isfinite(fisher.scales).all()
        assert fisher.rho > 0
        assert factor * np.linalg.norm(x.astype(float)) == pytest.approx(
            before, rel=2e-3 if dtype is np.float32 else 1e-6
        )


def test_a_side_of_one_row_has_nothing_to_scale_apart():
    x = np.ones((1, 5), order="F")
    factor, norms = OnlineFisher(np, np.float64, 1, 20, NaturalGradient()).precondition(x)
    assert factor == 1
    assert (x == 1).all()
    assert (norms == 1).all()


def test_what_is_not_finite_leaves_the_estimate_alone():
    rng = np.random.default_rng(0)
    fisher = OnlineFisher(np, np.float64, 6, 2, NaturalGradient())
    fisher.precondition(rng.standard_normal((6, 9)))
    w, scales = fisher.w.copy(), fisher.scales.copy()
    with np.errstate(invalid="ignore"):
        fisher.precondition(np.full((6, 9), np.nan))
        fisher.precondition(np.full((6, 9), np.inf))
    assert (fisher.w == w).all()
    assert (fisher.scales[0, :3] == scales[0, :3]).all()
    with np.errstate(invalid="ignore"):
        first = OnlineFisher(np, np.float64, 6, 2, NaturalGradient())
        first.precondition(np.full((6, 9), np.nan))
    assert np.isfinite(first.w).all()


def test_rows_that_ceased_to_be_orthonormal_are_made_so_again():
    fisher = OnlineFisher(np, np.float64, 10, 3, NaturalGradient())
    fisher.precondition(np.random.default_rng(2).standard_normal((10, 40)))
    before = fisher.r
    fisher.w[0] += 0.3 * fisher.w[1]
    fisher.reorthogonalise()
    np.testing.assert_allclose(fisher.r @ fisher.r.T, np.eye(3), atol=1e-12)
    span = before.T @ before
    np.testing.assert_allclose(fisher.r @ span, fisher.r, atol=1e-12)
    fisher.w[1] = fisher.w[0]
    fisher.reorthogonalise()
    np.testing.assert_allclose(fisher.r @ fisher.r.T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("shape", [(8, 30), (30, 8), (30, 2)])
def test_top_eigenvectors_are_those_of_the_covariance(shape):
    x = np.random.default_rng(4).standard_normal(shape)
    values, rows, total = top_eigenvectors(x, 5)
    covariance = x @ x.T / shape[1]
    assert total == pytest.approx(np.trace(covariance))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(covariance)[::-1][:5], atol=1e-12)
    np.testing.assert_allclose(rows @ rows.T, np.eye(5), atol=1e-12)
    np.testing.assert_allclose((rows @ covariance @ rows.T)[:2, :2], np.diag(values)[:2, :2], atol=1e-10)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_on_the_gpu_it_does_what_it_does_on_the_cpu(dtype):
    cupy = pytest.importorskip("cupy")
    rng = np.random.default_rng(0)
    draw = correlated(rng, 30)
    here, there = (OnlineFisher(xp, dtype, 30, 8, NaturalGradient()) for xp in (np, cupy))
    tolerance = 1e-8 if dtype is np.float64 else 1e-3
    for _ in range(15):
        x = draw(40).T.astype(dtype, order="F")
        for method in (lambda xp, fisher, m: fisher.precondition(m), lambda xp, fisher, m: precondition(xp, m, 4.0)):
            mine, other = x.copy(order="F"), cupy.asarray(x, order="F")
            scaled = method(np, here, mine)[0] * mine
            np.testing.assert_allclose((method(cupy, there, other)[0] * other).get(), scaled, rtol=0, atol=tolerance)
