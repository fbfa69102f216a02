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
    if team is None or team.size == 1 or max(array.size for array in arrays) < SPLIT_FROM:
        return [loop(*arrays, *settings)]
    results: list[Any] = [None] * team.size

    def part(worker: int) -> None:
        rows = team.share(worker, len(arrays[0]))
        results[worker] = loop(*(array[rows] for array in arrays), *settings)

    team.run(part)
    return results
