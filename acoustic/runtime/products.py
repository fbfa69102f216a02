"""Calls of compiled code that are made at once: matrix products, divided among threads or not, and loops."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from acoustic.runtime import blas
from acoustic.runtime.tables import NotInTable, Rows, is_compiled, play
from acoustic.runtime.thread_team import ThreadTeam

SHARE_FROM = 1 << 21  # multiplications, about 25 us: for fewer, waking another thread costs more than it saves


def multiply(
    a: np.ndarray,
    b: np.ndarray,
    out: np.ndarray,
    scale: float = 1.0,
    keep: float = 0.0,
    team: ThreadTeam | None = None,
) -> None:
    """Compute out = scale a b + keep out.

    Parameters
    ----------
    a, b : (m, k), (k, n), of the type of `out`, any strides
    out : (m, n), Fortran order, overlapping neither operand; its contents do not matter when `keep` is 0
    scale, keep : factors
    team : threads that divide the columns of a large product; None: the calling thread computes it
    """
    if team is None or not is_divided(team, a, out):
        if not blas.multiply(a, b, out, scale, keep):
            np.add(scale * np.dot(b.T, a.T).T, keep * out if keep else 0, out=out)
    elif not (is_compiled() and _play_product(team, a, b, out, scale, keep)):

        def part(worker: int) -> None:
            columns = team.share(worker, out.shape[1])
            multiply(a, b[:, columns], out[:, columns], scale, keep)

        team.run(part)


def is_divided(team: ThreadTeam, a: np.ndarray, out: np.ndarray) -> bool:
    """Whether a team divides the columns of a product a b."""
    return team.size > 1 and out.size * a.shape[1] >= SHARE_FROM and out.shape[1] >= team.size


def _play_product(team: ThreadTeam, a: Any, b: Any, out: Any, scale: float, keep: float) -> bool:
    """Compute out = scale a b + keep out, columns divided among a team; return False if that is not possible."""

    def make() -> list[np.ndarray] | None:
        tables = []
        for worker in range(team.size):
            share = team.share(worker, out.shape[1])
            rows = Rows()
            try:
                rows.product(a, b[:, share], out[:, share], scale, keep)
            except NotInTable:
                return None
            tables.append(rows.table())
        return tables

    # Making tables takes half as long as a product of a minibatch.
    places = [(matrix.__array_interface__["data"][0], matrix.shape, matrix.strides) for matrix in (a, b, out)]
    tables = team.known((scale, keep, *places), make)
    if tables is not None:
        team.play(tables)
    return tables is not None


class DirectCalls:
    """Makes calls at once."""

    def call(self, kernel: Callable[..., Any], *arrays: Any, numbers: Sequence[Any] = ()) -> None:
        """Call a compiled kernel as kernel(*arrays, *numbers).

        It returns nothing. arrays: in C order, or tuples of such arrays; numbers: float32.
        """
        kernel(*arrays, *numbers)

    def by_address(self, name: str, arrays: Sequence[Any], numbers: Sequence[int]) -> None:
        """Call a function of call_registry.py with the addresses of arrays and with integers."""
        rows = Rows()
        rows.by_address(name, arrays, numbers)
        play(rows.table())

    product = staticmethod(multiply)


DIRECT = DirectCalls()


class Caller:
    """Base of what calls compiled code: at once, or through an object that writes the calls down (see tables.py)."""

    calls: Any = DIRECT

    def through(self, calls: Any) -> Self:
        """Return a copy that makes its calls through another object."""
        caller = object.__new__(type(self))  # copy.copy takes several times as long, for each operation of a list
        vars(caller).update(vars(self), calls=calls)
        return caller
