"""Checks of arrays that compiled kernels read without bounds checks."""

import numpy as np

from readers.errors import GraphError

MAX_COST = 1e30  # sums of costs up to this stay finite in float32


def check_range(numbers: np.ndarray, bound: int, name: str, where: object) -> None:
    """Raise GraphError unless all numbers are from 0 to bound - 1."""
    if numbers.size and (numbers.min() < 0 or numbers.max() >= bound):
        raise GraphError(f"{where}: {name} from {numbers.min()} to {numbers.max()}; expected 0 to {bound - 1}")


def check_offsets(first: np.ndarray, end: int, name: str, where: object) -> None:
    """Raise GraphError unless the offsets begin with 0, never fall and end with `end`."""
    # Neighbours are compared, since differences of integers may overflow.
    if not first.size or first[0] != 0 or first[-1] != end or np.any(first[1:] < first[:-1]):
        raise GraphError(f"{where}: offsets in {name} do not rise from 0 to {end}")


def check_costs(costs: np.ndarray, name: str, where: object, infinite: bool = True) -> None:
    """Raise GraphError unless all costs are from -MAX_COST to MAX_COST, or inf if `infinite`."""
    if not costs.size:
        return
    least = costs.min()
    most = costs.max()  # both are NaN if any cost is
    if infinite and most == np.inf:
        most = costs.max(initial=-np.inf, where=costs < np.inf)
    if not (least >= -MAX_COST and most <= MAX_COST):
        wrong = least if not least >= -MAX_COST else most
        raise GraphError(
            f"{where}: {name} contains {wrong:g}; expected costs from {-MAX_COST:g} to {MAX_COST:g}"
            + (" or inf" if infinite else "")
        )
