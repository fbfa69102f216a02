"""The semi-orthogonal constraint: its formula, that it converges, and when training applies it."""

import numpy as np
import pytest

from acoustic.training.rules.semi_orthogonal import constrain


def distance(m):
    """Norm of P - a^2 I for the floating norm a, over that of a^2 I."""
    m = m.T if m.shape[0] > m.shape[1] else m
    p = m @ m.T
    target = np.trace(p @ p) / np.trace(p)
    return np.linalg.norm(p - target * np.eye(len(p))) / (target * np.sqrt(len(p)))


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (4, 4)])
@pytest.mark.parametrize("spread", [0.01, 0.1, 0.6])
@pytest.mark.parametrize("norm", [-1.0, 0.5, 2.0])
def test_one_step_by_the_formula(shape, spread, norm):
    rng = np.random.default_rng(0)
    rows, cols = sorted(shape)
    m = np.linalg.qr(rng.standard_normal((cols, rows)))[0].T + spread * rng.standard_normal((rows, cols))
    weight = np.array(m if shape[0] <= shape[1] else m.T, order="F")
    constrain(np, weight, norm)
    p = m @ m.T
    target = norm**2 if norm > 0 else np.trace(p @ p) / np.trace(p)
    ratio = np.trace(p @ p) * rows / np.trace(p) ** 2
    speed = 0.125 if norm > 0 or ratio <= 1.02 else 0.0625 if ratio <= 1.1 else 0.03125
    expected = m - 4 * speed / target * (p - target * np.eye(rows)) @ m
    np.testing.assert_allclose(weight if shape[0] <= shape[1] else weight.T, expected, rtol=1e-12, atol=1e-14)


def test_a_step_with_a_floating_norm_is_orthogonal_to_the_matrix():
    m = np.random.default_rng(1).standard_normal((5, 9)) / 3
    changed = m.copy()
    constrain(np, changed, -1.0)
    assert np.vdot(changed - m, m) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_converges(dtype):
    weight = (np.random.default_rng(2).standard_normal((16, 64)) / 8).astype(dtype)
    distances = []
    for _ in range(40):
        distances.append(distance(weight.astype(float)))
        constrain(np, weight, -1.0)
    assert (np.diff(distances[:8]) < 0).all()
    assert distances[-1] < 1e-5 < 0.1 < distances[0]


def test_what_has_no_norm_stays():
    for weight in (np.zeros((2, 3)), np.full((2, 3), np.nan), np.full((2, 3), np.inf)):
        before = weight.copy()
        constrain(np, weight, -1.0)
        np.testing.assert_array_equal(weight, before)
