"""A table of calls by address, and the loop that makes them; call_registry.py holds the functions to call."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from readers.common.arrays import Array
from readers.common.kernels import njit

WIDTH = 40  # of a row: the address of a function, then its arguments


@intrinsic
def invoke(typing_context: Any, function: Any, arguments: Any) -> Any:
    """Call the function at an address with a pointer to its arguments."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = ir.IntType(64).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [place])
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), [builder.inttoptr(values[1], place)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def number_at(typing_context: Any, address: Any) -> Any:
    """The int64 at an address."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.inttoptr(values[0], ir.IntType(64).as_pointer()))

    return types.int64(types.int64), codegen


@njit(cache=True, nogil=True)
def play_at(start: int, count: int) -> None:
    """Make the calls of the table at an address, (count, WIDTH) int64 in C order."""
    for k in range(count):
        row = start + 8 * k * WIDTH
        invoke(number_at(row), row + 8)


@njit(cache=True, nogil=True)
def play(table: Array) -> None:
    """Make the calls of a table (calls, WIDTH) int64 in C order."""
    play_at(table.ctypes.data, table.shape[0])
