"""The simple method against its definition: explicit sums over the other frames, explicit inverses."""

import numpy as np
import pytest

from acoustic.training.natural_gradient.simple import precondition


def by_definition(x, alpha=4.0):
    """Equations 8 to 12; rows of x are frames, as in the paper."""
    count, dim = x.shape
    smoothing = alpha * max(np.trace(x.T @ x), 1e-20) / (count * dim)
    out = np.empty_like(x)
    for i in range(count):
        others = sum((np.outer(x[j], x[j]) for j in range(count) if j != i), np.zeros((dim, dim)))
        out[i] = np.linalg.inv(smoothing * np.eye(dim) + others / max(1, count - 1)) @ x[i]
    norm = np.sqrt(np.trace(out.T @ out))
    return out * (np.sqrt(np.trace(x.T @ x)) / norm if norm else 1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(25, 8), (8, 25), (9, 9), (2, 5), (1, 4), (5, 1), (40, 3)])
@pytest.mark.parametrize("alpha", [4.0, 0.1])
def test_every_frame_gets_the_inverse_of_the_others(shape, alpha, seed):
    x = np.random.default_rng(seed).standard_normal(shape)
    mine = x.T.copy(order="F")
    factor, norms = precondition(np, mine, alpha)
    expected = by_definition(x, alpha)
    np.testing.assert_allclose(factor * mine.T, expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(factor**2 * norms, (expected**2).sum(axis=1), rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(6, 40), (40, 6), (5, 1)])
@pytest.mark.parametrize("scale", [0, 1e-15, 1, 1e8])
@pytest.mark.parametrize("rank", [1, None])
def test_degenerate_minibatches_are_finite_and_keep_their_norm(rank, scale, shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    x = np.outer(x[:, 0], np.arange(1, shape[1] + 1)) if rank else x
    x = (x * scale).astype(dtype, order="F")
    before = np.linalg.norm(x.astype(float))
    factor, norms = precondition(np, x, 4.0)
    assert np.isfinite(x).all()
    assert np.isfinite(factor)
    assert np.isfinite(norms).all()
    assert factor * np.linalg.norm(x.astype(float)) == pytest.approx(before, rel=1e-4)
