"""Matrix products on the CPU: recorded, divided among threads, or computed by the calling thread."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from acoustic.runtime import blas
from acoustic.runtime.recorder import current, is_compiled, product_call, table_of
from acoustic.runtime.thread_team import ThreadTeam
from readers.common.environment import one_blas_thread

SHARE_FROM = 1 << 21  # multiplications, about 25 us: for fewer, waking another thread costs more than it saves
ALONE = ThreadTeam(1)
_sharing = threading.local()


@contextlib.contextmanager
def products_by(team: ThreadTeam | None) -> Iterator[None]:
    """While the body runs, a team divides the large products of the calling thread; None: no team does.

    Each thread then uses one BLAS thread, because the library's own threads would compete with the team's.
    """
    before, _sharing.team = getattr(_sharing, "team", ALONE), team or ALONE
    try:
        with one_blas_thread if _sharing.team.size > 1 else contextlib.nullcontext():
            yield
    finally:
        _sharing.team = before


def sharing_team() -> ThreadTeam:
    """The team that divides the calling thread's large products; a team of one if there is none."""
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
    """Compute out = scale a b + keep out in the calling thread alone."""
    if (recording := current()) is not None and recording.product(a, b, out, scale, keep):
        return
    if not blas.multiply(a, b, out, scale, keep):
        np.add(scale * np.dot(b.T, a.T).T, keep * out if keep else 0, out=out)


def _play_product(team: ThreadTeam, a: Any, b: Any, out: Any, scale: float, keep: float) -> bool:
    """Compute out = scale a b + keep out, columns divided among a team; return False if that is not possible."""

    def make() -> list[np.ndarray] | None:
        shares = [team.share(worker, out.shape[1]) for worker in range(team.size)] if is_compiled() else []
        calls = [product_call(a, b[:, share], out[:, share], scale, keep) for share in shares]
        return [table_of(*call) for call in calls] if calls and None not in calls else None

    # Making tables takes half as long as a product of a minibatch.
    places = [(matrix.__array_interface__["data"][0], matrix.shape, matrix.strides) for matrix in (a, b, out)]
    tables = team.known((scale, keep, *places), make)
    if tables is not None:
        team.play(tables)
    return tables is not None
