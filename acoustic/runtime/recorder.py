"""Passes that are written down while Python makes them, and then repeated without it, as CUDA graphs are.

A minibatch of 256 frames takes each of two threads some ten products and as many elementwise loops.  Between two of
them Python needs a few microseconds, but only one thread may run Python, and one that has to wait for the other sleeps,
for longer than that takes.  What the steps of a program call does not depend on the minibatch, only where its inputs
lie: so the calls, with the addresses of what they read and write, are kept in a table, and from the second pass on one
compiled loop makes them.  The first pass makes them in the same way, one by one, so that every pass gives the same
numbers to the last bit.

Steps take part whose node says so (Node.repeats_calls): those that do all they do by `run.kernels` and products.  So
do updates, as long as learning rate and momentum stay.

A table holds addresses: whatever they name must outlive every play.  A Recording keeps what its calls read and write,
but for what is fed, which `table` is given each time; calls that are looked up by address are looked up for matrices
that the caller has; a call that needs numbers of its own in memory has them in its row.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np

from acoustic.nodes.base import Node
from acoustic.runtime import blas
from acoustic.runtime.thread_team import Team

CALLS_KEPT = 256  # of a team: those that products and copies come down to
Call = tuple[str, list[int]]  # the name of a function in call_registry.py, and its arguments


def current() -> "Recording | None":
    """What the calling thread's calls are written into, if anything."""
    return getattr(blas.recordings, "now", None)


class Recording:
    """The calls that its thread makes while the recording is open, made and written down.

    inputs: name -> matrix of what is fed, which lies elsewhere in the next pass.
    is_complete: everything could be written down.
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        from acoustic.runtime import call_registry, call_table  # numba: only a job that computes loads it

        self._calls, self._playing = call_registry, call_table
        self._rows: list[np.ndarray] = []
        self._table: Any = None
        self._inputs = [(name, address_of(matrix), matrix.nbytes) for name, matrix in inputs.items()]
        self._moving: list[tuple[int, int, str, int]] = []  # row, column of an address in an input, and how far inside
        self._tied: set[tuple[str, str, int]] = set()  # inputs with an address in both, and how far apart
        self._names: list[str] = []  # of the inputs that are there, and where they were
        self._places: list[int] = []
        self._keep_alive: list[Any] = []
        self.is_complete = True

    def __enter__(self) -> "Recording":
        blas.recordings.now = self
        return self

    def __exit__(self, *exception: object) -> None:
        blas.recordings.now = None
        self._table = np.concatenate(self._rows) if self._rows else np.zeros((0, self._playing.WIDTH), np.int64)
        self._names = sorted({name for _, _, name, _ in self._moving})

    def call(self, name: str, *arrays: Any) -> None:
        """Call a loop of call_registry.py with arrays in C order."""
        self.call_with(name, arrays, ())

    def call_with(self, name: str, arrays: Sequence[Any], numbers: Sequence[Any]) -> bool:
        """The same with numbers, as float32, after the arrays; False, with nothing done, for a loop not known there."""
        if name not in self._calls.BY_NAME:
            self.is_complete = False
            return False
        words: list[int] = []
        for array in arrays:
            words += [self._place(array, len(words)), *array.shape]
        self._make(name, words + np.array(numbers, np.float32).view(np.int32).tolist())
        return True

    def product(self, a: Any, b: Any, out: Any, scale: float, keep: float) -> bool:
        """out = scale a b + keep out; False, having done nothing, when the product cannot be made here."""
        found = product_call(a, b, out, scale, keep)
        if found is None:
            self.is_complete = False
            return False
        for k, matrix in enumerate((a, b, out)):
            self._place(matrix, 6 + 2 * k)
        self._make(*found)
        return True

    def lay_out(self, name: str, before: Sequence[int], matrix: Any, after: Sequence[int], out: Any) -> None:
        """Call a loop that lays a matrix out in the memory of `out`; its numbers before and after the address."""
        self._keep_alive.append(out)
        self._make(name, [*before, self._place(matrix, len(before)), *after])

    def work(self, name: str, table: Any, arrays: Sequence[Any], numbers: Sequence[int]) -> None:
        """Call a loop with the addresses of a table and of arrays, and with whole numbers.

        The table is read when the loop runs: what it holds may change from pass to pass.
        """
        self._keep_alive.append(table)
        places = [self._place(array, 1 + k) for k, array in enumerate(arrays)]
        self._make(name, [address_of(table), *places, *numbers])

    def _place(self, array: Any, position: int) -> int:
        """Its address, the argument at a position of the call that is being made."""
        address = address_of(array)
        homes = [(name, start) for name, start, size in self._inputs if start <= address < start + size]
        if not homes:
            self._keep_alive.append(array)
            return address
        (name, start), *others = homes
        self._moving.append((len(self._rows), position + 1, name, address - start))
        self._tied |= {(name, other, its_start - start) for other, its_start in others}
        return address

    def _make(self, name: str, words: list[int]) -> None:
        row = table_of(name, words)
        play(row)
        self._rows.append(row)

    def fits(self, inputs: Mapping[str, Any]) -> bool:
        """Whether inputs that lay in one place do so again: which of them a call is to read cannot be told."""
        return not self._tied or all(
            address_of(inputs[other]) - address_of(inputs[name]) == distance for name, other, distance in self._tied
        )

    def play(self, inputs: Mapping[str, Any]) -> None:
        """Make all calls again, with other matrices of the same shapes fed, which `fits`."""
        play(self.table(inputs))

    def table(self, inputs: Mapping[str, Any]) -> np.ndarray:
        """The calls, with other matrices of the same shapes fed; valid until the next one is asked for."""
        places = [address_of(inputs[name]) for name in self._names]
        if places != self._places:
            self._places, now = places, dict(zip(self._names, places))
            for row, column, name, offset in self._moving:
                self._table[row, column] = now[name] + offset
        return self._table


def product_call(a: Any, b: Any, out: Any, scale: float, keep: float) -> Call | None:
    """The call that makes a product, and its arguments; None when it cannot be made so."""
    found = blas.general_product(a, b, out)
    if found is None:
        return None
    address, wide, (first, lda), (second, ldb), (_, ldc) = found
    words = [address, first, second, *out.shape, a.shape[1]]
    words += [address_of(a), lda, address_of(b), ldb, address_of(out), ldc, bits_of(scale), bits_of(keep)]
    return "wide_product" if wide else "product", words


def play_product(team: Team, a: Any, b: Any, out: Any, scale: float, keep: float) -> bool:
    """out = scale a b + keep out, columns shared out among a team; False, having done nothing, when it cannot be."""

    def calls() -> list[Call | None]:
        shares = [team.share(worker, out.shape[1]) for worker in range(team.size)]
        return [product_call(a, b[:, share], out[:, share], scale, keep) for share in shares]

    return _play_known(team, (scale, keep), (a, b, out), calls)


def play_copy(team: Team, x: Any, out: Any) -> bool:
    """out = x, matrices in Fortran order whose columns may lie apart; False, having done nothing, when it cannot be."""

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
    """Let each thread of a team make a call; False, having done nothing, when one of them is None.

    What was worked out for the same memory before is looked up: working it out takes half as long as a product of a
    minibatch.
    """
    places = tuple([(matrix.__array_interface__["data"][0], matrix.shape, matrix.strides) for matrix in matrices])
    tables = team.known_calls.get((what, places))
    if tables is None:
        found = calls() if is_compiled() else [None]
        if None in found:
            return False
        if len(team.known_calls) >= CALLS_KEPT:  # threads may share a team
            team.known_calls.clear()
        tables = team.known_calls[what, places] = [table_of(*call) for call in found]
    team.play(tables)
    return True


def table_of(name: str, words: Sequence[int]) -> np.ndarray:
    """A table of one call."""
    from acoustic.runtime import call_registry, call_table  # numba: only a job that computes loads it

    table = np.zeros((1, call_table.WIDTH), np.int64)
    table[0, : len(words) + 1] = call_registry.address_of(name), *words
    return table


def in_turn(team: Team, worker: int, count: int, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The calls of a table, a meeting of `count` threads of a team, which the caller holds, and those of another table.

    Both must outlive what is given back, which the caller keeps until it has been played.
    """
    places = (worker, count, address_of(team.flags), address_of(before), len(before), address_of(after), len(after))
    known = team.known_calls.get(places)
    if known is None:
        rows = [
            table_of("play_table", places[3:5]),
            table_of("meet", [places[2], team.flags.size, 0, 2, worker, count]),
            table_of("play_table", places[5:]),
        ]
        known = np.concatenate(rows)
        known[1, 3] = address_of(known[1, 5:])  # the two numbers: in the row itself, so that they live as long
        if len(team.known_calls) >= CALLS_KEPT:  # threads may share a team
            team.known_calls.clear()
        team.known_calls[places] = known
    return known


def play(table: np.ndarray) -> None:
    """Make the calls of a table."""
    from acoustic.runtime import call_table  # numba: only a job that computes loads it

    call_table.play(table)


def bits_of(number: float) -> int:
    """A number's representation as float32."""
    return int(np.float32(number).view(np.int32))


class Playback:
    """A worker's steps of one pass, forward or backward; those that stand together and can be repeated are.

    steps: those of bound_pass.py; repeats(step): whether a step takes part.
    """

    def __init__(self, steps: Sequence[Any], repeats: Callable[[Any], bool]) -> None:
        groups = groupby(steps, repeats)
        self.parts = [Repeated(list(part)) if takes_part else Plain(list(part)) for takes_part, part in groups]

    def run(self, told: Any, inputs: Mapping[str, Any], key: Hashable | None = ()) -> None:
        """Make the pass.

        told: for the steps; inputs: the worker's columns of what is fed; key: what the calls depend on besides both,
        None where that cannot be said.
        """
        for part in self.parts:
            part.run(told, inputs, key)

    def calls(self, inputs: Mapping[str, Any], key: Hashable | None = ()) -> np.ndarray | None:
        """What `run` would repeat, if that is all it would do; valid until it is asked for again."""
        return self.parts[0].calls(inputs, key) if len(self.parts) == 1 else None


class Plain:
    """Steps that Python makes every time."""

    def __init__(self, steps: Sequence[Any]) -> None:
        self.steps = steps

    def run(self, told: Any, inputs: Mapping[str, Any], key: Hashable | None) -> None:
        for step in self.steps:
            step.run(told, inputs)

    def calls(self, inputs: Mapping[str, Any], key: Hashable | None) -> np.ndarray | None:
        return None


class Repeated(Plain):
    """Steps that Python makes once, and again when the key or a stored matrix has become another one, or inputs that
    lay in one place no longer do.
    """

    def __init__(self, steps: Sequence[Any]) -> None:
        super().__init__(steps)
        self._stored = list({node.name: node for step in steps for node in step.stored}.values())
        self._values: list[tuple[Node, Any]] = []  # of these when the recording was made
        self._key: Hashable = None
        self._recording: Recording | None = None
        self._is_possible = True

    def run(self, told: Any, inputs: Mapping[str, Any], key: Hashable | None) -> None:
        if key is None or not self._is_possible or not all(type(matrix) is np.ndarray for matrix in inputs.values()):
            super().run(told, inputs, key)  # words as numbers take other ways through the nodes
        elif self._holds(key, inputs):
            self._recording.play(inputs)
        else:
            self._record(told, inputs, key)

    def calls(self, inputs: Mapping[str, Any], key: Hashable | None) -> np.ndarray | None:
        moving = key is None or not all(type(matrix) is np.ndarray for matrix in inputs.values())
        return None if moving or not self._holds(key, inputs) else self._recording.table(inputs)

    def _holds(self, key: Hashable, inputs: Mapping[str, Any]) -> bool:
        same = self._recording is not None and key == self._key and self._recording.fits(inputs)
        return same and all(node.value is value for node, value in self._values)

    def _record(self, told: Any, inputs: Mapping[str, Any], key: Hashable) -> None:
        self._recording, self._key, self._values = None, key, [(node, node.value) for node in self._stored]
        with Recording(inputs) as recording:
            super().run(told, inputs, key)
        for step in self.steps:
            step.forget()  # a minibatch that nobody reads any more
        if recording.is_complete:
            self._recording = recording
        else:
            self._is_possible = False


class Repeat:
    """A piece of work of one thread that is written down when it comes for the second time, and repeated from then on.

    Memory that changes from one minibatch to the next would be written down in vain.
    """

    def __init__(self) -> None:
        self._arrays: list[Any] = []
        self._key: Hashable = None
        self._recording: Recording | None = None
        self._is_possible = True

    def holds(self, key: Hashable | None, arrays: Sequence[Any], moving: Mapping[str, Any]) -> bool:
        """Whether `run` will repeat what was written down, instead of calling the work."""
        known = self._recording is not None and key is not None and key == self._key and same(arrays, self._arrays)
        return known and all(type(matrix) is np.ndarray for matrix in moving.values()) and self._recording.fits(moving)

    def table(self, moving: Mapping[str, Any]) -> np.ndarray:
        """What was written down, if it `holds`."""
        return self._recording.table(moving)

    def run(
        self, work: Callable[[], None], key: Hashable | None, arrays: Sequence[Any], moving: Mapping[str, Any]
    ) -> None:
        """Do the work, all of it products and `run.kernels`.

        key: what it depends on besides matrices, None where that cannot be said; arrays: those it reads and writes;
        moving: others, which lie elsewhere in the next pass.
        """
        moved = all(type(matrix) is np.ndarray for matrix in moving.values())
        if self.holds(key, arrays, moving):
            self._recording.play(moving)
        elif key is None or not moved or not self._is_possible:
            work()
        elif key != self._key or not same(arrays, self._arrays):
            self._key, self._arrays, self._recording = key, list(arrays), None
            work()
        else:
            with Recording(moving) as recording:
                work()
            self._recording, self._is_possible = recording if recording.is_complete else None, recording.is_complete


def same(arrays: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether these are the very same objects."""
    return len(arrays) == len(others) and all(one is other for one, other in zip(arrays, others))


def address_of(array: Any) -> int:
    return array.__array_interface__["data"][0]


def is_possible(backend: Any) -> bool:
    """Whether passes of networks there can be repeated: float32, on the CPU, compiled."""
    if backend.xp is not np or backend.dtype is not np.float32 or blas.general_function() is None:
        return False
    return is_compiled()


@cache
def is_compiled() -> bool:
    from numba import config

    return not config.DISABLE_JIT
