"""Threads of a team at one piece of work from its beginning to its end, without Python where that is possible."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from acoustic.runtime.blas import products_by, sharing_team
from acoustic.runtime.recorder import Repeat, current, play
from acoustic.runtime.thread_team import Team

NO_FLAGS = np.zeros(0, np.int64)


class Together:
    """`count` threads that work at the same time; flags: by which they meet in compiled code, see thread_sync.py."""

    def __init__(self, team: Team | None, count: int) -> None:
        self.team, self.count = team, count
        self.flags = NO_FLAGS if team is None else team.flags

    def meet(self, worker: int) -> None:
        """Called by each of them: wait until all have come here."""
        if self.count == 1:
            return
        if (recording := current()) is not None:
            recording.call("meet", self.flags, np.array([worker, self.count], np.int64))
        else:
            self.team.meet(worker, self.count)

    def run(
        self,
        work: Callable[[int], None],
        repeats: Sequence[Repeat],
        key: Hashable | None,
        arrays: Sequence[Any],
        moving: Mapping[str, Any],
    ) -> None:
        """Call work(worker) in each thread, or repeat what it did; see Repeat for the other arguments."""
        if all(repeat.holds(key, arrays, moving) for repeat in repeats):
            tables = [repeat.table(moving) for repeat in repeats]
            self.team.play(tables) if self.team is not None else play(tables[0])
            return

        def one(worker: int) -> None:
            with products_by(None):
                repeats[worker].run(partial(work, worker), key, arrays, moving)

        self.team.run(one, self.count) if self.team is not None else one(0)


@contextmanager
def working_together() -> Iterator[Together]:
    """The threads that share the calling thread's products, as many of them as can work at the same time."""
    team = sharing_team()
    if team is None:
        yield Together(None, 1)
        return
    with team.hold() as count:
        yield Together(team if count > 1 else None, count)
