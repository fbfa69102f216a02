"""L-BFGS for functions of a few hundred variables, with a line search for the weak Wolfe conditions.

Sources: J. Nocedal, S. Wright, "Numerical Optimization", algorithms 7.4 and 7.5; A. Lewis, M. Overton, "Nonsmooth
optimization via quasi-Newton methods", 2013, algorithm 2.6 (line search by bisection).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
DECREASE, CURVATURE = 1e-4, 0.9  # constants of the Wolfe conditions
LONGEST_SEARCH = 20  # evaluations along one line


@dataclass
class Minimum:
    """The best point found, the function value there, and the number of evaluations."""

    point: np.ndarray
    value: float
    evaluations: int


def minimise(
    function: Function,
    start: np.ndarray,
    max_evaluations: int = 50,
    memory: int = 10,
    tolerance: float = 1e-7,
    first_length: float = 1.0,
) -> Minimum:
    """Minimise a function.

    Parameters
    ----------
    function : callable
        Returns value and gradient (n,) at a point.
    start : array, shape (n,)
        Where the search starts.
    max_evaluations : int
        Limit of function evaluations.
    memory : int
        Number of steps whose curvature is used.
    tolerance : float
        The search ends if a step decreases the value by less than this fraction of it, or if no step decreases it.
    first_length : float
        Length of the first step in units of the gradient. Steps to points without a finite value are shortened.

    Returns
    -------
    Minimum
    """
    search = _Search(function, max_evaluations)
    x = np.array(start, float)
    value, gradient = search.evaluate(x)
    pairs: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=memory)
    while search.left > 0 and np.linalg.norm(gradient) > 0:
        direction = -_inverse_hessian_times(gradient, pairs)
        if not direction @ gradient < 0:
            pairs.clear()
            direction = -gradient
        improvement = search.along(x, value, gradient, direction, 1.0 if pairs else first_length)
        if improvement is None:
            if not pairs:
                break
            pairs.clear()  # try again along the gradient itself
            continue
        point, lower, slope = improvement
        step = point - x
        change = slope - gradient
        if step @ change > 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
            pairs.append((step, change))
        gained = value - lower
        x = point
        value = lower
        gradient = slope
        if gained <= tolerance * max(abs(value), 1e-12):
            break
    return Minimum(search.best[1], search.best[0], search.evaluations)


def _inverse_hessian_times(gradient: np.ndarray, pairs: deque[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return the product of inverse Hessian and gradient from pairs (step, change of gradient). [algorithm 7.4]"""
    q = gradient.copy()
    factors = []
    for step, change in reversed(pairs):
        factor = (step @ q) / (step @ change)
        factors.append(factor)
        q -= factor * change
    if pairs:
        step, change = pairs[-1]
        q *= (step @ change) / (change @ change)
    for (step, change), factor in zip(pairs, reversed(factors)):
        q += (factor - (change @ q) / (step @ change)) * step
    return q


class _Search:
    """Counts the evaluations and keeps the best point."""

    def __init__(self, function: Function, max_evaluations: int) -> None:
        self.function = function
        self.max_evaluations = max_evaluations
        self.evaluations = 0
        self.best: tuple[float, np.ndarray] = (np.inf, np.zeros(0))

    @property
    def left(self) -> int:
        return self.max_evaluations - self.evaluations

    def evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        value, gradient = self.function(x)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            value = np.inf
        if value < self.best[0] or not self.best[1].size:
            self.best = value, x.copy()
        return value, gradient

    def along(
        self, x: np.ndarray, value: float, gradient: np.ndarray, direction: np.ndarray, length: float
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Return point, value and gradient at a length that meets both conditions, else the best decrease, if any."""
        slope = direction @ gradient
        shortest = 0.0
        longest = np.inf
        lower = None
        for _ in range(min(LONGEST_SEARCH, self.left)):
            point = x + length * direction
            new, at = self.evaluate(point)
            if not new <= value + DECREASE * length * slope:
                longest = length
            else:
                if lower is None or new < lower[1]:
                    lower = point, new, at
                if at @ direction >= CURVATURE * slope:
                    return point, new, at
                shortest = length
            length = 2 * length if np.isinf(longest) else (shortest + longest) / 2
        return lower
