"""Matrix products on the CPU: recorded, shared out among threads, or made by the calling thread."""

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from acoustic.runtime import blas
from acoustic.runtime.recorder import Call, address_of, current, is_compiled, product_call, table_of
from acoustic.runtime.thread_team import Team

SHARE_FROM = 1 << 21  # multiplications, about 25 us: a smaller product is not worth waking another thread
CALLS_KEPT = 256  # tables that a team keeps for products and copies
ALONE = Team(1)
_sharing = threading.local()


@contextlib.contextmanager
def products_by(team: Team | None) -> Iterator[None]:
    """While the calling thread is inside, the threads of a team share its large products; None: no others do.

    Each thread then uses one thread of the BLAS library, whose own threads would compete with the team's.
    """
    before, _sharing.team = getattr(_sharing, "team", ALONE), team or ALONE
    try:
        with blas.one_thread if _sharing.team.size > 1 else contextlib.nullcontext():
            yield
    finally:
        _sharing.team = before


def sharing_team() -> Team:
    """The team that shares the calling thread's large products; a team of one when none does."""
    return getattr(_sharing, "team", ALONE)


def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray, scale: float = 1.0, keep: float = 0.0) -> None:
    """Compute out = scale a b + keep out.

    Parameters
    ----------
    a, b : (m, k), (k, n), of the type of `out`, any strides
    out : (m, n), Fortran order, overlapping neither operand; its contents do not matter when `keep` is 0
    scale, keep : factors
    """
    team = sharing_team()
    if team.size == 1 or out.size * a.shape[1] < SHARE_FROM or out.shape[1] < team.size:
        multiply_alone(a, b, out, scale, keep)
    elif not _play_product(team, a, b, out, scale, keep):

        def part(worker: int) -> None:
            columns = team.share(worker, out.shape[1])
            multiply_alone(a, b[:, columns], out[:, columns], scale, keep)

        team.run(part)


def multiply_alone(a: np.ndarray, b: np.ndarray, out: np.ndarray, scale: float, keep: float) -> None:
    """The same by the calling thread alone."""
    if (recording := current()) is not None and recording.product(a, b, out, scale, keep):
        return
    if out.dtype == np.float32 and (single := blas.single_product()) is not None and single(a, b, out, scale, keep):
        return
    if scale == 1 and keep == 0 and out.flags.f_contiguous:
        np.dot(b.T, a.T, out=out.T)  # out' = b' a' is in C order, which numpy writes without a copy
        return
    if blas.multiply_doubles(a, b, out, scale, keep):
        return
    product = np.empty(out.shape, out.dtype, order="F")
    np.dot(b.T, a.T, out=product.T)
    product *= out.dtype.type(scale)
    if keep == 0:
        out[...] = product
    else:
        out *= out.dtype.type(keep)
        out += product


def _play_product(team: Team, a: Any, b: Any, out: Any, scale: float, keep: float) -> bool:
    """out = scale a b + keep out, columns shared out among a team; False, with nothing done, when it cannot be."""

    def calls() -> list[Call | None]:
        shares = [team.share(worker, out.shape[1]) for worker in range(team.size)]
        return [product_call(a, b[:, share], out[:, share], scale, keep) for share in shares]

    return _play_known(team, (scale, keep), (a, b, out), calls)


def play_copy(team: Team, x: Any, out: Any) -> bool:
    """out = x, float32 in Fortran order whose columns may lie apart; False, with nothing done, when it cannot be."""

    def calls() -> list[Call | None]:
        if any(matrix.dtype != np.float32 or matrix.strides[0] != 4 for matrix in (x, out)):
            return [None]
        found: list[Call | None] = []
        for worker in range(team.size):
            columns = team.share(worker, out.shape[1])
            first, second = x[:, columns], out[:, columns]
            distances = [matrix.strides[1] // matrix.itemsize for matrix in (first, second)]
            words = [address_of(first), distances[0], address_of(second), distances[1], *first.shape]
            found.append(("copy_block", words))
        return found

    return _play_known(team, "copy", (x, out), calls)


def _play_known(team: Team, what: Hashable, matrices: Sequence[Any], calls: Callable[[], list[Call | None]]) -> bool:
    """Let each thread of a team make a call; False, with nothing done, when one of the calls is None.

    Tables for the same memory are looked up: making them takes half as long as a product of a minibatch.
    """
    places = tuple([(matrix.__array_interface__["data"][0], matrix.shape, matrix.strides) for matrix in matrices])
    tables = team.known_tables.get((what, places))
    if tables is None:
        found = calls() if is_compiled() else [None]
        if None in found:
            return False
        if len(team.known_tables) >= CALLS_KEPT:  # threads may share a team
            team.known_tables.clear()
        tables = team.known_tables[what, places] = [table_of(*call) for call in found]
    team.play(tables)
    return True
