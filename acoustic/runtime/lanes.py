"""Vectors of numbers in compiled loops: the same operation for several sequences, the lanes, in one instruction.

numba does not vectorise a loop over a few lanes inside a loop over arcs, whose sums then stay in memory instead of
registers. In interpreted code a vector is an array.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

LANES = 16


class LanesType(types.Type):
    """numba's type of a vector of LANES numbers."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """A vector register, or several."""

    def __init__(self, manager: Any, kind: LanesType) -> None:
        super().__init__(manager, kind, ir.VectorType(manager.lookup(kind.dtype).get_value_type(), LANES))


def load(matrix: np.ndarray, row: int) -> Any:
    """Return a row of a matrix (rows, LANES) in C order."""
    return matrix[row].copy()


def store(matrix: np.ndarray, row: int, lanes: Any) -> None:
    """Write a row of a matrix (rows, LANES) in C order."""
    matrix[row] = lanes


def spread(number: Any) -> Any:
    """Return a vector with a number in every lane."""
    return np.full(LANES, number)


def double(lanes: Any) -> Any:
    """Return a vector in double precision."""
    return lanes.astype(np.float64)


def _address(context: Any, builder: Any, array_type: Any, array: Any, row: Any) -> tuple[Any, int]:
    """Pointer to the vector in a row, and its alignment in bytes."""
    data = context.make_array(array_type)(context, builder, array).data
    kind = context.get_data_type(array_type.dtype)
    first = builder.mul(row, ir.Constant(row.type, LANES))
    address = builder.bitcast(builder.gep(data, [first]), ir.VectorType(kind, LANES).as_pointer())
    return address, context.get_abi_sizeof(kind)


def _is_matrix(array: Any) -> bool:
    return isinstance(array, types.Array) and array.ndim == 2 and array.layout == "C"


@intrinsic
def _load(typing: Any, matrix: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, align = _address(context, builder, matrix, *arguments)
        return builder.load(address, align=align)

    return LanesType(matrix.dtype)(matrix, types.intp), generate


@intrinsic
def _store(typing: Any, matrix: Any, row: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, align = _address(context, builder, matrix, *arguments[:2])
        builder.store(arguments[2], address, align=align)
        return context.get_dummy_value()

    return types.void(matrix, types.intp, lanes), generate


@intrinsic
def _spread(typing: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        first = builder.insert_element(ir.Constant(kind, ir.Undefined), arguments[0], cgutils.int32_t(0))
        everywhere = ir.Constant(ir.VectorType(cgutils.int32_t, LANES), [0] * LANES)
        return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), everywhere)

    return LanesType(number)(number), generate


@intrinsic
def _double(typing: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if lanes.dtype == types.float64:
            return arguments[0]
        return builder.fpext(arguments[0], context.get_value_type(signature.return_type))

    return LanesType(types.float64)(lanes), generate


@intrinsic
def _add(typing: Any, a: Any, b: Any) -> Any:
    return a(a, b), lambda context, builder, signature, arguments: builder.fadd(*arguments)


@intrinsic
def _multiply(typing: Any, a: Any, b: Any) -> Any:
    return a(a, b), lambda context, builder, signature, arguments: builder.fmul(*arguments)


# Numba wants the implementation of an overload to have the signature of its typing, annotations included.


@overload(load)
def _overload_load(matrix: Any, row: Any) -> Any:
    def implementation(matrix: Any, row: Any) -> Any:
        return _load(matrix, row)

    return implementation if _is_matrix(matrix) else None


@overload(store)
def _overload_store(matrix: Any, row: Any, lanes: Any) -> Any:
    def implementation(matrix: Any, row: Any, lanes: Any) -> Any:
        return _store(matrix, row, lanes)

    return implementation if _is_matrix(matrix) and lanes == LanesType(matrix.dtype) else None


@overload(spread)
def _overload_spread(number: Any) -> Any:
    def implementation(number: Any) -> Any:
        return _spread(number)

    return implementation if isinstance(number, types.Float) else None


@overload(double)
def _overload_double(lanes: Any) -> Any:
    def implementation(lanes: Any) -> Any:
        return _double(lanes)

    return implementation if isinstance(lanes, LanesType) else None


@overload(operator.add)
def _overload_add(a: Any, b: Any) -> Any:
    def implementation(a: Any, b: Any) -> Any:
        return _add(a, b)

    return implementation if isinstance(a, LanesType) and a == b else None


@overload(operator.mul)
def _overload_multiply(a: Any, b: Any) -> Any:
    def implementation(a: Any, b: Any) -> Any:
        return _multiply(a, b)

    return implementation if isinstance(a, LanesType) and a == b else None
