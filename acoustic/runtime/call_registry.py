"""The functions that tables of calls can name, and the layout of their arguments in a row; see tables.py.

A row holds the address of a function and its arguments: for an array its address and shape, for a product the arguments
of cblas_sgemm. Other packages register their kernels with `table_call` and `table_calls`.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import boolean, carray, float32, int64, types

from acoustic.runtime import thread_sync
from acoustic.runtime.call_table import play_at
from acoustic.runtime.gemm_calls import sgemm
from acoustic.runtime.pointers import pointer
from readers.common.arrays import Array
from readers.common.kernels import cfunc, njit

Registered = TypeVar("Registered", bound=Callable[[Array], Any])

SIGNATURE = types.void(types.CPointer(types.int64))
LOOSE = {"contract", "reassoc", "nsz", "arcp"}  # fast-math flags; without nnan and ninf, so that divergence shows
FUNCTIONS: dict[str, Any] = {}
_compiled: dict[str, Any] = {}
_compiling = threading.Lock()


def table_call(function: Registered) -> Registered:
    """Decorator: register a function of a pointer to its arguments under its name."""
    FUNCTIONS[function.__name__] = function
    return function


def table_calls(**functions: Callable[[Array], Any]) -> None:
    """Register functions of a pointer to their arguments by name.

    A function belongs in the file of the kernel that it calls: numba renews its cached form when that file changes, but
    not when another file does.
    """
    FUNCTIONS.update(functions)


def address_of(name: str) -> int:
    """The address of a registered function, which is compiled on the first call."""
    with _compiling:  # else two threads would compile it, and one of the two results would be freed
        if name not in _compiled:
            _compiled[name] = cfunc(SIGNATURE, cache=True, fastmath=LOOSE, error_model="numpy")(FUNCTIONS[name])
    return _compiled[name].address


@njit(inline="always")
def vector(p: Array, k: int) -> Array:
    return carray(pointer(p[k]), (p[k + 1],), float32)


@njit(inline="always")
def matrix(p: Array, k: int) -> Array:
    return carray(pointer(p[k]), (p[k + 1], p[k + 2]), float32)


@njit(inline="always")
def numbers(p: Array, k: int) -> Array:
    return carray(pointer(p[k]), (p[k + 1],), int64)


@njit(inline="always")
def table(p: Array, k: int) -> Array:
    return carray(pointer(p[k]), (p[k + 1], p[k + 2]), int64)


@njit(inline="always")
def usable_steps(p: Array, k: int) -> Array:
    return carray(pointer(p[k]), (p[k + 1], p[k + 2], p[k + 3]), boolean)


@njit(inline="always")
def real(bits: int) -> Any:
    return np.int32(bits).view(np.float32)


@table_call
def product(p: Array) -> None:
    """c = scale a b + keep c; p: the arguments of `sgemm`, one after the other."""
    a, b, c = (p[5], p[6], p[7]), (p[8], p[9], p[10]), (p[11], p[12], p[13])
    sgemm((p[0], p[1]), (p[2], p[3], p[4]), a, b, c, (real(p[14]), real(p[15])))


@table_call
def meet(p: Array) -> None:
    """Wait for other threads; p: the flags of a team, and an array of this thread and the number of threads."""
    place = numbers(p, 2)
    thread_sync.meet(numbers(p, 0), place[0], place[1])


@table_call
def play_table(p: Array) -> None:
    """Make the calls of another table; p: its address and number of rows."""
    play_at(p[0], p[1])
