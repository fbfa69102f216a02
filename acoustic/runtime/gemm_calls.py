"""Calls of cblas_sgemm from compiled code; see blas.py.

Through ctypes such a call takes 10 us and more, most of them to find the addresses of three matrices, with the
interpreter lock held. A training step makes a dozen calls in every thread.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from acoustic.runtime import memory
from acoustic.runtime.memory import COLUMN_MAJOR, PLAIN
from readers.common.arrays import Array
from readers.common.kernels import njit

storage = njit(cache=True, nogil=True, inline="always")(memory.storage)


@intrinsic
def sgemm(typing_context: Any, function: Any, size: Any, a: Any, b: Any, c: Any, factors: Any) -> Any:
    """c = scale a b + keep c by cblas_sgemm, column-major.

    All arguments are tuples. function: address, and whether dimensions have 64 bits; size: m, n, k; a, b, c: PLAIN or
    TRANSPOSED, address, and elements from one column (or row) to the next; factors: scale, keep.
    """
    pair, triple = types.UniTuple(types.int64, 2), types.UniTuple(types.int64, 3)
    signature = types.void(pair, triple, triple, triple, triple, types.UniTuple(types.float32, 2))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        long, choice, real = ir.IntType(64), ir.IntType(32), ir.FloatType()
        (address, wide), (m, n, k), a, b, c, (scale, keep) = (
            [builder.extract_value(one, index) for index in range(len(kind))]
            for one, kind in zip(arguments, signature.args)
        )

        def call(size: Any) -> None:
            kinds = [choice] * 3 + [size] * 3 + [real, long, size, long, size, real, long, size]
            kind = ir.FunctionType(ir.VoidType(), kinds)
            given = [ir.Constant(choice, COLUMN_MAJOR), a[0], b[0], m, n, k, scale, *a[1:], *b[1:], keep, *c[1:]]
            narrow = [one if one.type == to else builder.trunc(one, to) for one, to in zip(given, kinds)]
            builder.call(builder.inttoptr(address, kind.as_pointer()), narrow)

        with builder.if_else(builder.icmp_signed("!=", wide, ir.Constant(long, 0))) as (then, otherwise):
            with then:
                call(long)
            with otherwise:
                call(choice)
        return context.get_dummy_value()

    return signature, codegen


ANY = types.Array(types.float32, 2, "A")
REAL = types.float32


@njit(types.boolean(types.uint64, types.boolean, ANY, ANY, ANY, REAL, REAL), cache=True, nogil=True)
def multiply(address: int, wide: bool, a: Array, b: Array, out: Array, scale: float, keep: float) -> bool:
    """out = scale a b + keep out by the cblas_sgemm at an address; wide: whether its dimensions have 64 bits.

    Returns False, and does nothing, for strides that cblas_sgemm does not support.
    """
    if a.size == 0 or b.size == 0 or out.size == 0:
        return False
    first, lda = storage(a.shape, a.strides, 4)
    second, ldb = storage(b.shape, b.strides, 4)
    third, ldc = storage(out.shape, out.strides, 4)
    if first == 0 or second == 0 or third != PLAIN:
        return False
    sgemm(
        (address, wide),
        (out.shape[0], out.shape[1], a.shape[1]),
        (first, a.ctypes.data, lda),
        (second, b.ctypes.data, ldb),
        (third, out.ctypes.data, ldc),
        (scale, keep),
    )
    return True
