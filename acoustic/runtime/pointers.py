"""Arrays at addresses, for compiled code that receives the addresses of its matrices as numbers."""

from typing import Any

from llvmlite import ir
from numba import carray, float32, float64, int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from readers.common.arrays import Array
from readers.common.kernels import njit


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """A pointer to an address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), codegen


@njit(inline="always")
def singles(address: int, size: int) -> Array:
    """float32 (size,) at an address."""
    return carray(pointer(address), (size,), float32)


@njit(inline="always")
def frames(address: int, count: int, rows: int) -> Array:
    """float32 (count, rows) in C order: the columns of a matrix in Fortran order."""
    return carray(pointer(address), (count, rows), float32)


@njit(inline="always")
def doubles(address: int, size: int) -> Array:
    return carray(pointer(address), (size,), float64)


@njit(inline="always")
def whole_numbers(address: int, size: int) -> Array:
    return carray(pointer(address), (size,), int64)


@intrinsic
def call_with_pointers(typing_context: Any, function: Any, places: Any) -> Any:
    """Call the function at an address, which returns nothing, with the addresses of a tuple."""
    count = len(places)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [place] * count)
        given = [builder.extract_value(arguments[1], k) for k in range(count)]
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), given)
        return context.get_dummy_value()

    return types.void(types.int64, types.UniTuple(types.int64, count)), codegen
