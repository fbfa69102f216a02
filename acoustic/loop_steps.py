"""The steps of a loop: their columns, the threads that take some slots through them, and delays from step to step."""

from collections.abc import Callable
from typing import Any

from acoustic.blas import products_by, sharing_team
from acoustic.node import Run
from acoustic.sequences import Sequences
from acoustic.team import share_of

MIN_SLOTS = 4  # of a thread: with fewer its products are too thin


def steps_of(sequences: Sequences, share: slice | None = None) -> list[slice]:
    """The columns of each step, or of some slots in each."""
    slots = sequences.num_slots
    first, last = (share.start, share.stop) if share is not None else (0, slots)
    return [slice(t * slots + first, t * slots + last) for t in range(sequences.num_steps)]


def shares_of(sequences: Sequences) -> list[slice]:
    """The slots, shared out among the threads that share products."""
    team, slots = sharing_team(), sequences.num_slots
    workers = max(1, min(team.size, slots // MIN_SLOTS)) if team is not None else 1
    return [share_of(worker, workers, slots) for worker in range(workers)]


def by_all(work: Callable[[int], None], count: int) -> None:
    """Call work(0) to work(count - 1), in as many threads of the team that shares products."""
    team = sharing_team()
    if team is None:
        work(0)
        return

    def alone(worker: int) -> None:
        with products_by(None):
            work(worker)

    team.run(alone, count)


class DelayReader:
    """A delay inside a loop during one pass, in some of the slots.

    source, member: what it delays and itself, with `value` and `gradient` of all steps; slots: a part of them.
    """

    def __init__(self, source: Any, member: Any, sequences: Sequences, run: Run, slots: slice) -> None:
        self.xp, self.sequences, self.member, self.node = run.xp, sequences, member, member.node
        self.source = source
        self.delay = member.node.delay
        self.columns = steps_of(sequences, slots)
        self.usable = sequences.usable(self.delay)[:, slots]
        self.all, self.any = (flags.tolist() for flags in (self.usable.all(axis=1), self.usable.any(axis=1)))
        self.default = member.node.settings["defaultHiddenActivity"]
        rows = member.shape.rows
        self.before = sequences.held(self.node.name, rows, self.delay, member.value) if self.delay > 0 else None

    def read(self, t: int) -> None:
        """Fill the delay's value of step t."""
        out = self.member.value[:, self.columns[t]]
        if not self.any[t]:
            out.fill(self.default)
            return
        past = t - self.delay
        values = self.source.value[:, self.columns[past]] if past >= 0 else self.before[:, self.columns[t]]
        self.xp.copyto(out, values)
        if not self.all[t]:
            self.xp.copyto(out, self.default, where=~self.usable[t])

    def hold(self) -> None:
        """Keep the last values for the minibatch that follows."""
        if self.delay > 0:
            self.sequences.hold(self.node.name, self.delay, self.before, self.source.value)

    def add_gradient(self, t: int) -> None:
        """Add the gradient of the delay's value of step t to that of the step where it came from."""
        past = t - self.delay
        if past < 0 or not self.any[t]:
            return
        gradient, target = self.member.gradient[:, self.columns[t]], self.source.gradient[:, self.columns[past]]
        if not self.all[t]:
            gradient = gradient * self.usable[t]
        self.xp.add(target, gradient, out=target)
