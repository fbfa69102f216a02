"""Calls of cblas_sgemm from compiled code; see blas.py.

Through ctypes such a call costs 10 us and more, most of it for finding out where three matrices lie, with the
interpreter lock held.  A step of training makes a dozen of them in every thread.
"""

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

COLUMN_MAJOR, PLAIN, TRANSPOSED = 102, 111, 112
CHOICE, REAL, PLACE = types.int32, types.float32, types.uint64


def caller(number, width):
    """Makes a function that calls cblas_sgemm, column-major, at an address; number: the type of dimensions."""

    @intrinsic
    def call(typing_context, address, first, second, m, n, k, scale, a, lda, b, ldb, keep, c, ldc):
        signature = types.void(
            PLACE, CHOICE, CHOICE, number, number, number, REAL, PLACE, number, PLACE, number, REAL, PLACE, number
        )

        def codegen(context, builder, signature, arguments):
            choice, place, real, size = ir.IntType(32), ir.IntType(64), ir.FloatType(), ir.IntType(width)
            kinds = [choice, choice, choice, size, size, size, real, place, size, place, size, real, place, size]
            function = builder.inttoptr(arguments[0], ir.FunctionType(ir.VoidType(), kinds).as_pointer())
            builder.call(function, [ir.Constant(choice, COLUMN_MAJOR), *arguments[1:]])
            return context.get_dummy_value()

        return signature, codegen

    return call


call, call_wide = caller(types.int32, 32), caller(types.int64, 64)


@njit(cache=True, nogil=True, inline="always")
def storage(rows, cols, down, across):
    """(PLAIN or TRANSPOSED, elements from one column or row to the next) of a float32 matrix, or zeros; strides in
    bytes.
    """
    if (down == 4 or rows == 1) and (cols == 1 or (across >= 4 * rows and across % 4 == 0)):
        return PLAIN, rows if cols == 1 else across // 4
    if (across == 4 or cols == 1) and (rows == 1 or (down >= 4 * cols and down % 4 == 0)):
        return TRANSPOSED, cols if rows == 1 else down // 4
    return 0, 0


ANY = types.Array(types.float32, 2, "A")


@njit(types.boolean(PLACE, types.boolean, ANY, ANY, ANY, REAL, REAL), cache=True, nogil=True)
def multiply(address, wide, a, b, out, scale, keep):
    """out = scale a b + keep out by cblas_sgemm at an address; wide: its dimensions have 64 bits.

    Returns False, with nothing done, for strides that the function does not take.
    """
    if a.size == 0 or b.size == 0 or out.size == 0:
        return False
    first, lda = storage(a.shape[0], a.shape[1], a.strides[0], a.strides[1])
    second, ldb = storage(b.shape[0], b.shape[1], b.strides[0], b.strides[1])
    third, ldc = storage(out.shape[0], out.shape[1], out.strides[0], out.strides[1])
    if first == 0 or second == 0 or third != PLAIN:
        return False
    m, n, k = out.shape[0], out.shape[1], a.shape[1]
    if wide:
        call_wide(
            address, first, second, m, n, k, scale, a.ctypes.data, lda, b.ctypes.data, ldb, keep, out.ctypes.data, ldc
        )
    else:
        call(address, first, second, m, n, k, scale, a.ctypes.data, lda, b.ctypes.data, ldb, keep, out.ctypes.data, ldc)
    return True
