"""L-BFGS for functions of a few hundred numbers: each step by the last curvatures, of a length by the weak Wolfe rules.

Sources: J. Nocedal, S. Wright, "Numerical Optimization", algorithms 7.4 and 7.5; the search for the length is the
bisection of A. Lewis and M. Overton, "Nonsmooth optimization via quasi-Newton methods", 2013, algorithm 2.6.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
DECREASE, CURVATURE = 1e-4, 0.9  # of the Wolfe rules
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
    """Minimise a function, which answers (value, gradient), from a point (n,) float64.

    It ends after max_evaluations, when a step lowers the value by less than tolerance times its size, or when no step
    does.  first_length: of the first step, along the gradient, in units of its length; a value that is not finite
    makes the step shorter.
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
        found = search.along(x, value, gradient, direction, 1.0 if pairs else first_length)
        if found is None:
            if not pairs:
                break
            pairs.clear()  # once more along the gradient itself
            continue
        point, lower, slope = found
        step, change = point - x, slope - gradient
        if step @ change > 1e-10 * np.linalg.norm(step) * np.linalg.norm(change):
            pairs.append((step, change))
        gained = value - lower
        x, value, gradient = point, lower, slope
        if gained <= tolerance * max(abs(value), 1e-12):
            break
    return Minimum(search.best[1], search.best[0], search.evaluations)


def _inverse_hessian_times(gradient: np.ndarray, pairs: deque) -> np.ndarray:
    """Algorithm 7.4: the two loops over (step, change of gradient)."""
    q, factors = gradient.copy(), []
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
        self.function, self.max_evaluations = function, max_evaluations
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
        """(point, value, gradient) at a length that obeys both rules, or the best that lowers the value at all."""
        slope, shortest, longest = direction @ gradient, 0.0, np.inf
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
