"""Tables of calls of compiled code, which are made without Python; operations.py makes them from operations.

A row holds the address of a function in call_registry.py and its arguments: addresses, shapes and numbers. Kernels make
their calls through an object with the methods `call`, `by_address` and `product`: DIRECT of products.py makes them at
once, Rows writes them down.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from acoustic.runtime import blas


class NotInTable(Exception):
    """Raised for a call that a table cannot hold."""


class Rows:
    """Writes calls down: `rows` are names of functions in call_registry.py with their arguments, `places` row, column,
    array and address of each array.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[str, list[int]]] = []
        self.places: list[tuple[int, int, Any, int]] = []

    def call(self, kernel: Callable[..., Any], *arrays: Any, numbers: Sequence[Any] = ()) -> None:
        if not is_registered(kernel.__name__):
            raise NotInTable(kernel.__name__)
        words: list[int] = []
        for array in arrays:
            for each in array if isinstance(array, tuple) else (array,):
                words += [self._place(each, len(words)), *each.shape]
        self.rows.append((kernel.__name__, words + bits_of(*numbers)))

    def by_address(self, name: str, arrays: Sequence[Any], numbers: Sequence[int]) -> None:
        self.rows.append((name, [*map(self._place, arrays, range(len(arrays))), *numbers]))

    def product(self, a: Any, b: Any, out: Any, scale: float, keep: float, team: Any = None) -> None:
        arguments = blas.general_product(a, b, out)
        if arguments is None:
            raise NotInTable("product")
        words = [*arguments[:2], *out.shape, a.shape[1]]
        for matrix, (how, distance) in zip((a, b, out), arguments[2:]):
            words += [how, self._place(matrix, len(words) + 1), distance]
        self.rows.append(("product", words + bits_of(scale, keep)))

    def meet(self, flags: np.ndarray, worker: int, count: int) -> None:
        """Let the threads of a team meet."""
        self.by_address("meet", [flags], [flags.size, 0, 2, worker, count])

    def _place(self, array: Any, position: int) -> int:
        """The address of an array, which is an argument at a position of the next row."""
        address = address_of(array)
        self.places.append((len(self.rows), position + 1, array, address))
        return address

    def table(self) -> np.ndarray:
        """The calls (calls, WIDTH) int64."""
        from acoustic.runtime.call_table import WIDTH  # numba: only a job that computes loads it

        table = np.zeros((len(self.rows), WIDTH), np.int64)
        for row, (name, words) in zip(table, self.rows):
            row[: len(words) + 1] = _function(name), *words
            if name == "meet":
                row[3] = address_of(row[5:])  # the two numbers stand in the row itself, and live as long
        return table


def is_registered(name: str) -> bool:
    """Whether call_registry.py has a function of this name, and it can be compiled."""
    from acoustic.runtime import call_registry  # numba: only a job that computes loads it

    return is_compiled() and name in call_registry.FUNCTIONS


@cache
def _function(name: str) -> int:
    from acoustic.runtime import call_registry  # numba: only a job that computes loads it

    return call_registry.address_of(name)


def play(table: np.ndarray) -> None:
    """Make the calls of a table."""
    from acoustic.runtime import call_table  # numba: only a job that computes loads it

    call_table.play(table)


def bits_of(*numbers: float) -> list[int]:
    """The bits of numbers as float32."""
    return np.array(numbers, np.float32).view(np.int32).tolist()


def address_of(array: Any) -> int:
    """The address of an array's first element."""
    return array.__array_interface__["data"][0]


def same(arrays: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether these are the very same objects."""
    return len(arrays) == len(others) and all(one is other for one, other in zip(arrays, others))


def is_possible(backend: Any) -> bool:
    """Whether a backend's kernels can be called by tables: float32, on the CPU, with a known BLAS library, compiled."""
    if backend.xp is not np or backend.dtype is not np.float32 or blas.general_function() is None:
        return False
    return is_compiled()


@cache
def is_compiled() -> bool:
    """Whether numba compiles: NUMBA_DISABLE_JIT is not set."""
    from numba import config

    return not config.DISABLE_JIT
