"""Operations: the calls of a pass, listed before anything runs, and run one by one or as tables of calls.

For a minibatch of 256 frames each of two threads calls some ten products and as many elementwise loops. Python needs a
few microseconds between two calls, but only one thread can run Python, and a thread that waits for another sleeps for
longer than that. The calls of a pass do not depend on the minibatch; only the addresses of its inputs do. The calls are
therefore made from a list: a node that is given an Emitter instead of kernels adds operations to it. A list runs
operation after operation in Python, or as a table in one compiled loop, which calls the same functions and gives the
same numbers to the last bit.

Operations keep alive every array that they read or write. Arrays that have another address in the next pass are
Moving: operations have a stand-in of their shape, whose memory is never touched, and tables are given the present
address.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from acoustic.runtime.products import DIRECT
from acoustic.runtime.tables import NotInTable, Rows, address_of, play
from acoustic.runtime.thread_team import ThreadTeam
from readers.common.environment import one_blas_thread


class Moving:
    """An array that has another address in every pass.

    `arrays[key]` is the present one, of the type, the shape and the order of `array`; it is contiguous.
    """

    def __init__(self, arrays: Mapping[str, Any], key: str, array: Any) -> None:
        self.arrays, self.key = arrays, key
        self.stand_in = np.empty_like(array)
        self.start = address_of(self.stand_in)

    def offset(self, array: Any) -> int | None:
        """The bytes from the beginning of the stand-in to that of a view of it; None for another array."""
        offset = address_of(array) - self.start
        return offset if 0 <= offset < self.stand_in.nbytes else None

    def present(self, view: Any) -> Any:
        """The part of the present array that a view is of the stand-in."""
        whole = self.arrays[self.key]
        buffer = whole if whole.flags.c_contiguous else whole.T
        return np.ndarray(view.shape, view.dtype, buffer, address_of(view) - self.start, view.strides)


@dataclass(eq=False)
class Operation:
    """A call that a pass makes.

    Parameters
    ----------
    kernel : str
        Name of what is called.
    make : callable
        ``make(calls, *arguments)`` makes the call through DIRECT or Rows (see tables.py).
    arguments : sequence
        Arrays, numbers and settings.
    node : str
        Name of the node, or of the parameter, that the call belongs to.
    moving : sequence of Moving
        The arrays whose address changes.
    owner : optional
        The object whose method `kernel` is called.
    """

    kernel: str
    make: Callable[..., Any]
    arguments: Sequence[Any]
    node: str = ""
    moving: Sequence[Any] = ()
    owner: Any = None

    def run(self) -> None:
        """Make the call: the function that a table calls or, where a table cannot hold the call, in Python."""
        try:
            table = Table([self])
        except NotInTable:
            self.make(DIRECT, *self.present)
        else:
            table.run()

    def write(self, rows: Any) -> None:
        """Write the call down in Rows. Raises NotInTable."""
        self.make(rows, *self.arguments)

    @property
    def present(self) -> list[Any]:
        """The arguments, with present arrays instead of stand-ins."""
        return [self._present(argument) for argument in self.arguments]

    def _present(self, argument: Any) -> Any:
        if isinstance(argument, list):
            return [self._present(each) for each in argument]
        if isinstance(argument, np.ndarray):
            for moving in self.moving:
                if moving.offset(argument) is not None:
                    return moving.present(argument)
        return argument


class PythonCall(Operation):
    """An operation that no table can hold, such as the call of a node."""

    def __init__(self, kernel: str, function: Callable[..., Any], *arguments: Any, node: str = "") -> None:
        super().__init__(kernel, function, arguments, node)

    def run(self) -> None:
        self.make(*self.arguments)

    def write(self, rows: Any) -> None:
        raise NotInTable(self.kernel)


class Emitter:
    """Takes the place of kernels while a list is made: every call of a method becomes an operation.

    kernels: an object whose `through(calls)` returns one that makes its calls through an object of tables.py.
    """

    def __init__(self, kernels: Any, node: str = "", moving: Sequence[Moving] = (), operations: Any = None) -> None:
        self._kernels, self._node, self._moving = kernels, node, moving
        self.operations: list[Operation] = [] if operations is None else operations

    def __getattr__(self, name: str) -> Callable[..., None]:
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> None:
        make = partial(_call_kernel, self._kernels, name)
        self.operations.append(Operation(name, make, arguments, self._node, self._moving, self._kernels))

    def of(self, owner: Any) -> "Emitter":
        """An emitter to the same list for another object with methods."""
        return Emitter(owner, self._node, self._moving, self.operations)

    def apart(self) -> "Emitter":
        """An emitter to a list of its own for the same object."""
        return Emitter(self._kernels, self._node, self._moving)


def _call_kernel(kernels: Any, name: str, calls: Any, *arguments: Any) -> None:
    if calls is not DIRECT:
        if not hasattr(kernels, "through"):
            raise NotInTable(name)
        kernels = kernels.through(calls)
    getattr(kernels, name)(*arguments)


class Table:
    """Some operations as a table of calls."""

    def __init__(self, operations: Sequence[Operation], rows: Rows | None = None) -> None:
        if rows is None:
            rows = Rows()
            for operation in operations:
                operation.write(rows)
        self.operations = operations
        self._table = rows.table()
        self._kept = [array for _, _, array, _ in rows.places]
        moving = {id(each): each for operation in operations for each in operation.moving}.values()
        self._moving = []
        for each in moving:
            end = each.start + each.stand_in.nbytes
            places = [(row, column, at - each.start) for row, column, _, at in rows.places if each.start <= at < end]
            if places:
                self._moving.append((each, *(np.array(numbers) for numbers in zip(*places))))
        self._starts = [0] * len(self._moving)

    def rows(self) -> np.ndarray:
        """The calls with the present addresses; valid until the next call."""
        for k, (moving, rows, columns, offsets) in enumerate(self._moving):
            start = address_of(moving.arrays[moving.key])
            if start != self._starts[k]:
                self._table[rows, columns] = start + offsets
                self._starts[k] = start
        return self._table

    def run(self) -> None:
        """Make the calls."""
        play(self.rows())


class Phase(list[list[Operation]]):
    """Operations in a list for each of several threads; it may stand among those of one thread."""


def in_phases(operations: Sequence[Operation | Phase]) -> list[list[list[Operation]]]:
    """The phases of a list of operations of one thread, and of several."""
    phases: list[list[list[Operation]]] = [[[]]]
    for each in operations:
        if isinstance(each, Phase):
            phases += [each, [[]]]
        else:
            phases[-1][0].append(each)
    return phases


Segments = Sequence[Table | Operation]


def joined(operations: Sequence[Operation]) -> Segments:
    """Join operations that follow each other into tables, except those that a table cannot hold."""
    segments: list[Table | Operation] = []
    rows = Rows()
    written: list[Operation] = []
    for operation in operations:
        before = len(rows.rows), len(rows.places)
        try:
            operation.write(rows)
            written.append(operation)
        except NotInTable:
            del rows.rows[before[0] :], rows.places[before[1] :]
            if written:
                segments.append(Table(written, rows))
            segments.append(operation)
            rows, written = Rows(), []
    if written:
        segments.append(Table(written, rows))
    return segments


class Pass:
    """Lists of operations, which a team runs phase by phase.

    Parameters
    ----------
    team : ThreadTeam
    phases : sequence of sequences of lists
        For each phase a list for each thread; a phase of one list is run by the caller. No thread begins a phase before
        all have ended the previous one.
    compiled : bool
        Whether operations are joined into tables.
    """

    def __init__(self, team: ThreadTeam, phases: Sequence[Sequence[Sequence[Operation]]], compiled: bool) -> None:
        self.team, self.phases = team, [phase for phase in phases if any(phase)]
        join = joined if compiled else list
        joined_phases = [[join(operations) for operations in phase] for phase in self.phases]
        self.groups = [_Group(team, list(phases)) for _, phases in groupby(joined_phases, len)]

    def __iter__(self) -> Iterator[Operation]:
        """The operations in an order in which they may run one after the other."""
        return (operation for phase in self.phases for operations in phase for operation in operations)

    def run(self) -> None:
        """Run all phases."""
        for group in self.groups:
            group.run()


class _Group:
    """Phases that follow each other in the same number of threads."""

    def __init__(self, team: ThreadTeam, phases: list[list[Segments]]) -> None:
        self.team, self.phases, self.count = team, phases, len(phases[0])
        joined_lists = [segments for phase in phases for segments in phase]
        self._in_tables = all(isinstance(segment, Table) for segments in joined_lists for segment in segments)
        self._flags: Any = None  # of the team, for which the tables are
        self._tables: list[np.ndarray] = []  # for each thread one that plays its own, with meetings in between
        self._in_one_thread: Any = None  # one that plays those of all threads

    def run(self) -> None:
        if self.count == 1:
            for phase in self.phases:
                for segment in phase[0]:
                    segment.run()
        elif not self._in_tables:
            self.team.run_phases([partial(_run_list, phase) for phase in self.phases], self.count)
        else:
            with self.team.hold() as size, one_blas_thread:
                self._update_tables()
                # Threads that meet must all run: without them, the work has one share.
                self.team.play(self._tables if size >= self.count else [self._in_one_thread], self._in_one_thread)

    def _update_tables(self) -> None:
        """Write present addresses into the tables."""
        tables = [
            [[table.rows() for table in segments if isinstance(table, Table)] for segments in phase]
            for phase in self.phases
        ]
        if self._flags is self.team.flags:
            return
        self._flags, self._tables = self.team.flags, []
        for worker in range(self.count):
            rows = Rows()
            for k, phase in enumerate(tables):
                if k:
                    rows.meet(self._flags, worker, self.count)
                for table in phase[worker]:
                    rows.by_address("play_table", [table], [len(table)])
            if not rows.rows:  # a thread gets at least one call
                rows.by_address("play_table", [self._flags], [0])
            self._tables.append(rows.table())
        rows = Rows()
        for table in (table for phase in tables for segments in phase for table in segments):
            rows.by_address("play_table", [table], [len(table)])
        self._in_one_thread = rows.table()


def _run_list(phase: list[Segments], worker: int) -> None:
    for segment in phase[worker]:
        segment.run()
