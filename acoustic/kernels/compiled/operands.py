"""Matrices as operands of compiled loops, and loops divided among the threads of a team."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from acoustic.runtime.thread_team import ThreadTeam

SPLIT_FROM = 1 << 15  # elements: below this, waking another thread costs more than it saves


def frames(matrix: Any) -> Any:
    """The transposed view (T, rows), in C order, of a float32 matrix in Fortran order; ValueError for any other."""
    if not matrix.flags.f_contiguous or matrix.dtype != np.float32:
        raise ValueError(f"{matrix.dtype} matrix of {matrix.shape}; expected float32 in Fortran order")
    return matrix.T


def flat(matrix: Any) -> Any:
    """A view of the elements, column by column."""
    return frames(matrix).reshape(-1)


def share_rows(team: ThreadTeam | None, loop: Callable[..., Any], arrays: Sequence[Any], *settings: Any) -> list[Any]:
    """Run a loop over the rows of arrays, all of one number, divided among the team if there are many elements.

    settings: further arguments of the loop. Returns the results of the calls in the order of the rows.
    """

    def take(rows: slice) -> Any:
        return loop(*(array[rows] for array in arrays), *settings)

    return in_shares(team, len(arrays[0]), max(array.size for array in arrays), take)


def in_shares(team: ThreadTeam | None, count: int, num_elements: int, take: Callable[[slice], Any]) -> list[Any]:
    """Call take(share) for shares of `count` items, divided among the team if there are many elements.

    Returns the results of the calls in the order of the shares.
    """
    if team is None or team.size == 1 or num_elements < SPLIT_FROM:
        return [take(slice(0, count))]
    results: list[Any] = [None] * team.size

    def work(worker: int) -> None:
        results[worker] = take(team.share(worker, count))

    team.run(work)
    return results
