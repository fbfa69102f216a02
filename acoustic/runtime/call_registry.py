"""Functions that a table of calls can name, and how their arguments stand in a row; see recorder.py.

A row holds the address of a function and its arguments: of an array its address and shape, of a product the arguments
of cblas_sgemm.  Rooms above register their kernels here with `table_call`.
"""

import threading

import numpy as np
from numba import boolean, carray, cfunc, float32, int64, njit, types

from acoustic.runtime import thread_sync
from acoustic.runtime.call_table import play_at
from acoustic.runtime.gemm_calls import sgemm
from acoustic.runtime.pointers import pointer

SIGNATURE = types.void(types.CPointer(types.int64))
LOOSE = {"contract", "reassoc", "nsz", "arcp"}  # fast-math flags; not nnan, ninf: a diverged network must show
FUNCTIONS = {}
_compiled = {}
_compiling = threading.Lock()


def table_call(function):
    """Register a function of a pointer to its arguments, under its name, for tables of calls."""
    FUNCTIONS[function.__name__] = function
    return function


def table_calls(**functions):
    """Register functions under names.  They belong into the file of the kernels that they call: what numba keeps of
    them in __pycache__ is renewed when that file changes, not when another does.
    """
    FUNCTIONS.update(functions)


def address_of(name):
    """The address of the compiled form of a registered function; it is compiled when it is first asked for."""
    with _compiling:  # else two threads would compile one each, and the one that nobody keeps is freed
        if name not in _compiled:
            _compiled[name] = cfunc(SIGNATURE, cache=True, fastmath=LOOSE, error_model="numpy")(FUNCTIONS[name])
    return _compiled[name].address


@njit(inline="always")
def vector(p, k):
    return carray(pointer(p[k]), (p[k + 1],), float32)


@njit(inline="always")
def matrix(p, k):
    return carray(pointer(p[k]), (p[k + 1], p[k + 2]), float32)


@njit(inline="always")
def numbers(p, k):
    return carray(pointer(p[k]), (p[k + 1],), int64)


@njit(inline="always")
def table(p, k):
    return carray(pointer(p[k]), (p[k + 1], p[k + 2]), int64)


@njit(inline="always")
def usable_steps(p, k):
    return carray(pointer(p[k]), (p[k + 1], p[k + 2], p[k + 3]), boolean)


@njit(inline="always")
def real(bits):
    return np.int32(bits).view(np.float32)


@table_call
def product(p):
    """c = scale a b + keep c; p: the arguments of `sgemm`, one after the other."""
    a, b, c = (p[5], p[6], p[7]), (p[8], p[9], p[10]), (p[11], p[12], p[13])
    sgemm((p[0], p[1]), (p[2], p[3], p[4]), a, b, c, (real(p[14]), real(p[15])))


@table_call
def meet(p):
    """Wait for other threads; p: the flags of a team, this thread and how many there are."""
    place = numbers(p, 2)
    thread_sync.meet(numbers(p, 0), place[0], place[1])


@table_call
def play_table(p):
    """Make the calls of another table; p: its address, its rows."""
    play_at(p[0], p[1])
