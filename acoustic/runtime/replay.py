"""Passes that are recorded while Python makes them, and then replayed without it, as CUDA graphs are.

A minibatch of 256 frames takes each of two threads some ten products and as many elementwise loops.  Between two of
them Python needs a few microseconds, but only one thread may run Python, and a thread that waits for the other sleeps
for longer than that.  The calls of a pass do not depend on the minibatch, only the addresses of its inputs do.  So the
calls are recorded in a table (recorder.py), and one compiled loop makes them from then on.  Products and kernels are
the same functions either way: a replayed pass gives the same numbers to the last bit.

Steps take part whose node says so (Node.repeats_calls): those that do everything by `run.kernels` and products.
Updates take part as long as learning rate and momentum stay as they are.

A table holds addresses: whatever they name must outlive every replay.  A Recording keeps what its calls read and write,
except the inputs, which `table` is given each time; calls that are looked up by address are looked up for matrices that
the caller holds; a call that needs numbers of its own in memory has them in its row.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Protocol

import numpy as np

from acoustic.runtime import blas
from acoustic.runtime.products import products_by
from acoustic.runtime.recorder import Recording, address_of, is_compiled, play, table_of
from acoustic.runtime.thread_team import Team


class Stored(Protocol):
    """A node that holds a matrix between passes."""

    name: str
    value: Any


class Step(Protocol):
    """A step of a pass; stored: the nodes whose matrices it reads or changes."""

    @property
    def stored(self) -> Sequence[Stored]: ...

    def run(self, told: Any, inputs: Mapping[str, Any]) -> None: ...

    def forget(self) -> None:
        """Let go of the inputs of the last pass."""


class Replay:
    """A piece of work of one thread that is recorded when it comes for the second time, and replayed from then on.

    Work in memory that changes from one minibatch to the next is never recorded: recording it would be in vain.
    """

    def __init__(self) -> None:
        self._arrays: list[Any] = []
        self._key: Hashable = None
        self._recording: Recording | None = None
        self._is_possible = True

    def table(self, key: Hashable | None, arrays: Sequence[Any], moving: Mapping[str, Any]) -> np.ndarray | None:
        """The calls that `run` would replay, valid until the method is called again; None if it would call the work."""
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
        work : products and calls of `run.kernels`, nothing else
        key : what the work depends on besides matrices; None when that is unknown
        arrays : the matrices that it reads and writes
        moving : other matrices, which lie elsewhere in the next pass; all numpy arrays, or nothing is recorded
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
    """A worker's steps of one pass, forward or backward; runs of steps that can be replayed are.

    replays(step): whether a step takes part.
    """

    def __init__(self, steps: Sequence[Step], replays: Callable[[Step], bool]) -> None:
        self.parts: list[tuple[list[Step], list[Stored], Replay | None]] = []
        for takes_part, group in groupby(steps, replays):
            part = list(group)
            stored = list({node.name: node for step in part for node in step.stored}.values())
            self.parts.append((part, stored, Replay() if takes_part else None))

    def run(self, told: Any, inputs: Mapping[str, Any], key: Hashable | None = ()) -> None:
        """Make the pass.

        told: for the steps; inputs: the worker's columns of the inputs; key: what the calls depend on besides both,
        None when that is unknown.
        """
        for steps, stored, replay in self.parts:
            work = partial(_run_all, steps, told, inputs)
            if replay is None:
                work()
            else:
                replay.run(work, key, [node.value for node in stored], inputs)

    def table(self, inputs: Mapping[str, Any], key: Hashable | None = ()) -> np.ndarray | None:
        """The calls that `run` would replay if it would do nothing else; valid until the method is called again."""
        if len(self.parts) != 1:
            return None
        _, stored, replay = self.parts[0]
        return None if replay is None else replay.table(key, [node.value for node in stored], inputs)


def _run_all(steps: Sequence[Step], told: Any, inputs: Mapping[str, Any]) -> None:
    for step in steps:
        step.run(told, inputs)
    for step in steps:
        step.forget()


def replay_together(
    team: Team,
    count: int,
    work: Callable[[int], None],
    replays: Sequence[Replay],
    key: Hashable | None,
    arrays: Sequence[Any],
    moving: Mapping[str, Any],
) -> None:
    """Call work(worker) in each of `count` threads of a team, or replay its calls; see Replay.run for the rest."""
    tables = [replay.table(key, arrays, moving) for replay in replays]
    if all(table is not None for table in tables):
        team.play(tables)
        return

    def one(worker: int) -> None:
        with products_by(None):
            replays[worker].run(partial(work, worker), key, arrays, moving)

    team.run(one, count)


def joined_by_meeting(team: Team, worker: int, count: int, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The calls of a table, a meeting of `count` threads of a team, which the caller holds, and those of another table.

    Both tables must outlive the result, which the caller keeps until it has been played.
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
        known[1, 3] = address_of(known[1, 5:])  # the two numbers: in the row itself, so that they live as long
        return known

    return team.known(places, make)


def is_possible(backend: Any) -> bool:
    """Whether passes of networks on a backend can be replayed: float32, on the CPU, compiled."""
    if backend.xp is not np or backend.dtype is not np.float32 or blas.general_function() is None:
        return False
    return is_compiled()


def same(arrays: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether these are the very same objects."""
    return len(arrays) == len(others) and all(one is other for one, other in zip(arrays, others))
