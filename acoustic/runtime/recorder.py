"""Records calls of compiled code as rows of a table, so that they can be replayed without Python; see replay.py.

A row holds the address of a function in call_registry.py and its arguments: addresses, shapes and numbers.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from acoustic.runtime import blas

Call = tuple[str, list[int]]  # the name of a function in call_registry.py, and its arguments
_open = threading.local()  # `recording`: that of the calling thread


def current() -> "Recording | None":
    """The open recording of the calling thread, or None."""
    return getattr(_open, "recording", None)


def call(kernel: Callable[..., Any], *arrays: Any, numbers: Sequence[Any] = ()) -> None:
    """Call a compiled kernel as kernel(*arrays, *numbers); while a recording is open, record the call.

    The kernel returns nothing. arrays: in C order, or tuples of such arrays; numbers: float32.
    """
    if (recording := current()) is not None:
        each = [one for array in arrays for one in (array if isinstance(array, tuple) else (array,))]
        if recording.call(kernel.__name__, each, numbers):
            return
    kernel(*arrays, *numbers)


def call_by_address(name: str, arrays: Sequence[Any], numbers: Sequence[int]) -> None:
    """Call a function of call_registry.py with the addresses of arrays and with integers; record it as `call` does.

    The function reads the arrays when it is called: their contents may change from pass to pass.
    """
    if (recording := current()) is not None:
        recording.call_by_address(name, arrays, numbers)
    else:
        play(table_of(name, [*map(address_of, arrays), *numbers]))


class Recording:
    """Makes and records the calls of its thread while it is open.

    inputs: matrices, by name, that have other addresses in the next pass; is_complete: whether every call could be
    recorded. A recording keeps alive every array that its calls read or write, except the inputs.
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self._rows: list[np.ndarray] = []
        self._table: Any = None
        self._inputs = [(name, address_of(matrix), matrix.nbytes) for name, matrix in inputs.items()]
        self._moving: list[tuple[int, int, str, int]] = []  # row and column of an address, input, offset in it
        self._tied: set[tuple[str, str, int]] = set()  # inputs with common memory, and the distance of their starts
        self._names: list[str] = []  # of the inputs that calls read, and their addresses
        self._places: list[int] = []
        self._keep_alive: list[Any] = []
        self.is_complete = True

    def __enter__(self) -> "Recording":
        _open.recording = self
        return self

    def __exit__(self, *exception: object) -> None:
        _open.recording = None
        self._table = np.concatenate(self._rows) if self._rows else empty_table(0)
        self._names = sorted({name for _, _, name, _ in self._moving})

    def call(self, name: str, arrays: Sequence[Any], numbers: Sequence[Any] = ()) -> bool:
        """Call a function of call_registry.py; return False if it is not registered."""
        if not is_registered(name):
            self.is_complete = False
            return False
        words: list[int] = []
        for array in arrays:
            words += [self._place(array, len(words)), *array.shape]
        self._make(name, words + np.array(numbers, np.float32).view(np.int32).tolist())
        return True

    def product(self, a: Any, b: Any, out: Any, scale: float, keep: float) -> bool:
        """Compute out = scale a b + keep out; return False if a table cannot hold the product."""
        found = product_call(a, b, out, scale, keep)
        if found is None:
            self.is_complete = False
            return False
        for k, matrix in enumerate((a, b, out)):
            self._place(matrix, 6 + 3 * k)
        self._make(*found)
        return True

    def call_by_address(self, name: str, arrays: Sequence[Any], numbers: Sequence[int]) -> None:
        """See the function of that name."""
        self._make(name, [*(self._place(array, k) for k, array in enumerate(arrays)), *numbers])

    def _place(self, array: Any, position: int) -> int:
        """The address of an array that is an argument, at a position, of the call being recorded."""
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
        """Whether inputs with common memory still have it: otherwise it is unknown which of them a call reads."""
        return not self._tied or all(
            address_of(inputs[other]) - address_of(inputs[name]) == distance for name, other, distance in self._tied
        )

    def table(self, inputs: Mapping[str, Any]) -> np.ndarray:
        """The calls for other inputs of the same shapes; valid until the next call."""
        places = [address_of(inputs[name]) for name in self._names]
        if places != self._places:
            self._places, now = places, dict(zip(self._names, places))
            for row, column, name, offset in self._moving:
                self._table[row, column] = now[name] + offset
        return self._table


def product_call(a: Any, b: Any, out: Any, scale: float, keep: float) -> Call | None:
    """The call that computes a product; None if a table cannot hold it."""
    found = blas.general_product(a, b, out)
    if found is None:
        return None
    function, places = found[:2], zip((a, b, out), found[2:])
    matrices = [word for matrix, (how, distance) in places for word in (how, address_of(matrix), distance)]
    return "product", [*function, *out.shape, a.shape[1], *matrices, bits_of(scale), bits_of(keep)]


def is_registered(name: str) -> bool:
    """Whether call_registry.py has a function of this name."""
    from acoustic.runtime import call_registry  # numba: only a job that computes loads it

    return name in call_registry.FUNCTIONS


def empty_table(num_calls: int) -> np.ndarray:
    """A table of zeros for so many calls."""
    from acoustic.runtime.call_table import WIDTH  # numba: only a job that computes loads it

    return np.zeros((num_calls, WIDTH), np.int64)


def table_of(name: str, words: Sequence[int]) -> np.ndarray:
    """A table of one call."""
    from acoustic.runtime import call_registry  # numba: only a job that computes loads it

    table = empty_table(1)
    table[0, : len(words) + 1] = call_registry.address_of(name), *words
    return table


def play(table: np.ndarray) -> None:
    """Make the calls of a table."""
    from acoustic.runtime import call_table  # numba: only a job that computes loads it

    call_table.play(table)


def bits_of(number: float) -> int:
    """The bits of a number as float32."""
    return int(np.float32(number).view(np.int32))


def address_of(array: Any) -> int:
    """The address of an array's first element."""
    return array.__array_interface__["data"][0]


@cache
def is_compiled() -> bool:
    """Whether numba compiles: NUMBA_DISABLE_JIT is not set."""
    from numba import config

    return not config.DISABLE_JIT
