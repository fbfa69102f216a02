"""Passes that are recorded while Python makes them, and then replayed without Python, like CUDA graphs.

For a minibatch of 256 frames each of two threads calls some ten products and as many elementwise loops. Python needs a
few microseconds between two calls, but only one thread can run Python, and a thread that waits for another sleeps for
longer than that. The calls of a pass do not depend on the minibatch; only the addresses of its inputs do. The calls are
therefore recorded in a table (recorder.py), and later passes are one compiled loop over the table. It calls the same
functions: a replayed pass gives the same numbers to the last bit.

A step can be replayed if its node computes by `run.kernels` and products only (Node.repeats_calls). Updates can be
replayed while learning rate and momentum do not change.

A table holds addresses, and the memory behind them must outlive every replay. A Recording keeps the arrays that its
calls read and write, except the inputs, which are passed to `table` each time. A table that is found by the addresses
of matrices is used only while the caller holds them. Numbers that a call needs in memory are stored in its row.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Protocol

import numpy as np

from acoustic.runtime import blas
from acoustic.runtime.products import products_by
from acoustic.runtime.recorder import Recording, address_of, is_compiled, play, table_of
from acoustic.runtime.thread_team import ThreadTeam


class Stored(Protocol):
    """A node that holds a matrix between passes."""

    name: str
    value: Any


class Step(Protocol):
    """A step of a pass; stored: the nodes whose stored matrices it reads or changes."""

    @property
    def stored(self) -> Sequence[Stored]: ...

    def run(self, context: Any, inputs: Mapping[str, Any]) -> None: ...

    def forget(self) -> None:
        """Drop the inputs of the last pass."""


class Replay:
    """The work of one thread, which is recorded the second time it is done, and replayed from then on.

    Work in memory that moves from one minibatch to the next is never recorded.
    """

    def __init__(self) -> None:
        self._arrays: list[Any] = []
        self._key: Hashable = None
        self._recording: Recording | None = None
        self._is_possible = True

    def table(self, key: Hashable | None, arrays: Sequence[Any], moving: Mapping[str, Any]) -> np.ndarray | None:
        """The calls that `run` would replay, valid until the next call; None if it would do the work itself."""
        known = self._recording is not None and key is not None and key == self._key and same(arrays, self._arrays)
        if known and all(type(matrix) is np.ndarray for matrix in moving.values()) and self._recording.fits(moving):
            return self._recording.table(moving)
        return None

    def run(
        self, work: Callable[[], None], key: Hashable | None, arrays: Sequence[Any], moving: Mapping[str, Any]
    ) -> None:
        """Do the work, or replay its calls.

        Parameters
        ----------
        work : callable that makes products and calls of `run.kernels` only
        key : equal for works that make the same calls; None if that is unknown
        arrays : the matrices that the work reads and writes
        moving : further matrices, which have other addresses in the next pass; recorded only if all are numpy arrays
        """
        if (table := self.table(key, arrays, moving)) is not None:
            play(table)
        elif key is None or not self._is_possible or any(type(matrix) is not np.ndarray for matrix in moving.values()):
            work()
        elif key != self._key or not same(arrays, self._arrays):
            self._key, self._arrays, self._recording = key, list(arrays), None
            work()
        else:
            with Recording(moving) as recording:
                work()
            self._recording, self._is_possible = recording if recording.is_complete else None, recording.is_complete


class ReplayedSteps:
    """A worker's steps of one pass, forward or backward; steps for which replays(step) is true are replayed."""

    def __init__(self, steps: Sequence[Step], replays: Callable[[Step], bool]) -> None:
        self.parts: list[tuple[list[Step], list[Stored], Replay | None]] = []
        for takes_part, group in groupby(steps, replays):
            part = list(group)
            stored = list({node.name: node for step in part for node in step.stored}.values())
            self.parts.append((part, stored, Replay() if takes_part else None))

    def run(self, context: Any, inputs: Mapping[str, Any], key: Hashable | None = ()) -> None:
        """Make the pass.

        context: first argument of the steps; inputs: the worker's columns of the inputs; key: equal in passes that make
        the same calls, None if that is unknown.
        """
        for steps, stored, replay in self.parts:
            work = partial(_run_all, steps, context, inputs)
            if replay is None:
                work()
            else:
                replay.run(work, key, [node.value for node in stored], inputs)

    def table(self, inputs: Mapping[str, Any], key: Hashable | None = ()) -> np.ndarray | None:
        """The calls that `run` would replay, if it replays all steps; valid until the next call."""
        if len(self.parts) != 1:
            return None
        _, stored, replay = self.parts[0]
        return None if replay is None else replay.table(key, [node.value for node in stored], inputs)


def _run_all(steps: Sequence[Step], context: Any, inputs: Mapping[str, Any]) -> None:
    for step in steps:
        step.run(context, inputs)
    for step in steps:
        step.forget()


def replay_together(
    team: ThreadTeam,
    count: int,
    work: Callable[[int], None],
    replays: Sequence[Replay],
    key: Hashable | None,
    arrays: Sequence[Any],
    moving: Mapping[str, Any],
) -> None:
    """Call work(worker) in each of `count` threads of a team, or replay its calls; see Replay.run."""
    tables = [replay.table(key, arrays, moving) for replay in replays]
    if all(table is not None for table in tables):
        team.play(tables)
        return

    def one(worker: int) -> None:
        with products_by(None):
            replays[worker].run(partial(work, worker), key, arrays, moving)

    team.run(one, count)


def joined_by_meeting(team: ThreadTeam, worker: int, count: int, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """A table that makes the calls of one table, lets `count` threads of a team meet, and makes those of another table.

    The caller holds the team's threads. Both tables must outlive the result.
    """
    places = (worker, count, address_of(team.flags), address_of(before), len(before), address_of(after), len(after))

    def make() -> np.ndarray:
        known = np.concatenate(
            [
                table_of("play_table", places[3:5]),
                table_of("meet", [places[2], team.flags.size, 0, 2, worker, count]),
                table_of("play_table", places[5:]),
            ]
        )
        known[1, 3] = address_of(known[1, 5:])  # the two numbers stand in the row itself, and live as long
        return known

    return team.known(places, make)


def is_possible(backend: Any) -> bool:
    """Whether passes on a backend can be replayed: float32, on the CPU, with a known BLAS library, compiled."""
    if backend.xp is not np or backend.dtype is not np.float32 or blas.general_function() is None:
        return False
    return is_compiled()


def same(arrays: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether these are the very same objects."""
    return len(arrays) == len(others) and all(one is other for one, other in zip(arrays, others))
