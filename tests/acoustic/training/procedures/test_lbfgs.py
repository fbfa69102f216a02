"""L-BFGS on functions whose minimum is known."""

import numpy as np
import pytest

from acoustic.training.procedures.lbfgs import minimise


def quadratic(seed, n):
    """(function, its minimum): a random convex quadratic whose curvatures differ by a factor of 1000."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(n, n)))
    matrix, minimum = (axes * np.geomspace(0.1, 100, n)) @ axes.T, rng.normal(size=n)
    return lambda x: (0.5 * (x - minimum) @ matrix @ (x - minimum), matrix @ (x - minimum)), minimum


def rosenbrock(x):
    a, b = x
    value = (1 - a) ** 2 + 100 * (b - a * a) ** 2
    return value, np.array([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)])


@pytest.mark.parametrize(("seed", "n"), [(0, 1), (1, 5), (2, 30)])
def test_a_quadratic(seed, n):
    function, minimum = quadratic(seed, n)
    found = minimise(function, np.zeros(n), 500, tolerance=0)
    np.testing.assert_allclose(found.point, minimum, atol=1e-5)
    assert found.value == pytest.approx(0, abs=1e-9)


def test_a_curved_valley():
    found = minimise(rosenbrock, np.array([-1.2, 1.0]), 200, tolerance=0)
    np.testing.assert_allclose(found.point, [1, 1], atol=1e-6)
    assert found.evaluations < 100


def test_it_needs_far_fewer_evaluations_than_steps_along_the_gradient():
    function, _ = quadratic(3, 20)
    start = np.zeros(20)
    assert minimise(function, start, 60, tolerance=0).value < 1e-3 * minimise(function, start, 60, 0, 0).value


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_no_more_evaluations_than_allowed_and_the_best_point_comes_back(limit):
    seen = []

    def counted(x):
        value, gradient = rosenbrock(x)
        seen.append((value, x.copy()))
        return value, gradient

    found = minimise(counted, np.array([-1.2, 1.0]), limit)
    assert found.evaluations == len(seen) == limit
    value, point = min(seen, key=lambda one: one[0])
    assert found.value == value
    np.testing.assert_array_equal(found.point, point)


def test_where_the_function_is_no_number_the_steps_become_shorter():
    """-log x + x, infinite and NaN left of 0; the first step goes there."""

    def function(x):
        with np.errstate(invalid="ignore"):
            return float(x[0] - np.log(x[0])), np.array([1 - 1 / x[0]])

    found = minimise(function, np.array([4.0]), 60, tolerance=0, first_length=100)
    assert found.point[0] == pytest.approx(1, abs=1e-5)


def test_a_point_whose_slope_is_partly_no_number_is_never_the_best():
    """Of (x - 3)^2 + y^2; beyond x = 2 the slope along y is missing, though the values are smaller there."""

    def function(x):
        return float((x[0] - 3) ** 2 + x[1] ** 2), np.array([2 * (x[0] - 3), 2 * x[1] if x[0] < 2 else np.nan])

    found = minimise(function, np.array([0.0, 1.0]), 60, tolerance=0)
    assert found.point[0] < 2
    assert found.value == function(found.point)[0]


def test_it_ends_at_a_minimum_and_when_steps_gain_too_little():
    function, minimum = quadratic(4, 6)
    assert minimise(function, minimum, 50).evaluations == 1
    few = minimise(function, np.zeros(6), 500, tolerance=0.5).evaluations
    assert few < minimise(function, np.zeros(6), 500, tolerance=1e-12).evaluations
