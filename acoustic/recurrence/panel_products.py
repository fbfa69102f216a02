"""Compiled thin products with a matrix in panels, for the steps of loops; see weight_layout.py.

A panel holds as many rows of the matrix as fit in three vector registers, or in two or one at the end, column after
column, with zeros below the last row. For every four columns of the second operand, a product reads a panel from start
to end while the results stay in registers. The result of a column does not depend on the other columns.
"""

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import float32, int64, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from acoustic.runtime.call_registry import table_call
from acoustic.runtime.pointers import frames
from readers.common.arrays import Array
from readers.common.kernels import njit

_features = getattr(cpu_target.target_context.codegen(), "_tm_features", "").split(",")
LANES = 16 if "+avx512f" in _features else 8 if "+avx" in _features else 4  # numbers in a register
HIGH, LOW = 3, 2  # registers of a panel
COLUMNS = 4  # of the second operand at a time: with panels of three registers they use all of sixteen
BLOCK = 16  # columns of a matrix that are copied together: a cache line of numbers
NUMBER_BYTES = 4
REGISTER_BYTES = NUMBER_BYTES * LANES

ZERO = float32(0)

compiled = njit(cache=True, nogil=True)
_REAL, _LONG, _SHORT = ir.FloatType(), ir.IntType(64), ir.IntType(32)
_REGISTER = ir.VectorType(_REAL, LANES)
_NUMBERS = ir.VectorType(_SHORT, LANES)


@intrinsic(prefer_literal=True)
def multiply_tile(
    typing_context: Any, registers: Any, columns: Any, rows: Any, panel: Any, k: Any, b: Any, c: Any, keep: Any
) -> tuple[Any, Any]:
    """c = panel b + keep c, for literal registers of rows and columns.

    rows: of c; panel: its address; b, c: address, and bytes from one column to the next.
    """
    matrix_type = types.UniTuple(types.int64, 2)
    signature = types.void(
        registers, columns, types.int64, types.int64, types.int64, matrix_type, matrix_type, types.boolean
    )

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, rows, panel, k, *matrices, keep = arguments
        (b, ldb), (c, ldc) = ([builder.extract_value(matrix, part) for part in range(2)] for matrix in matrices)
        high, wide = (kind.literal_value for kind in signature.args[:2])
        tile = _Tile(builder, high, wide)
        is_full = builder.icmp_signed(">=", rows, _number(LANES * high))
        with builder.if_then(builder.and_(is_full, keep)):  # first, so that it is loaded while the sums are computed
            tile.take(c, ldc)
        tile.add_products(panel, k, b, ldb)
        with builder.if_else(is_full) as (then, otherwise):
            with then:
                tile.put(c, ldc)
            with otherwise:
                tile.put_rows(c, ldc, keep, rows)
        return context.get_dummy_value()

    return signature, codegen


class _Tile:
    """Emits code for a tile of a product, `high` registers by `wide` columns, whose sums begin at zero."""

    def __init__(self, builder: Any, high: int, wide: int) -> None:
        self.builder = builder
        self.high = high
        self.wide = wide
        self.sums = [[cgutils.alloca_once(builder, _REGISTER) for _ in range(high)] for _ in range(wide)]
        for column in self.sums:
            for register in column:
                builder.store(ir.Constant(_REGISTER, [0.0] * LANES), register)

    def at(self, kind: Any, base: Any, *steps: Any) -> Any:
        """A pointer to a kind at an address plus steps of (count, bytes)."""
        for count, size in steps:
            base = self.builder.add(base, self.builder.mul(count, size))
        return self.builder.inttoptr(base, kind.as_pointer())

    def load(self, kind: Any, *place: Any) -> Any:
        return self.builder.load(self.at(kind, *place), align=NUMBER_BYTES)

    def add_products(self, panel: Any, k: Any, b: Any, ldb: Any) -> None:
        """sums += panel b."""
        builder = self.builder
        empty = ir.Constant(_REGISTER, ir.Undefined)
        name = f"llvm.fmuladd.v{LANES}f32"
        kind = ir.FunctionType(_REGISTER, [_REGISTER] * 3)
        add = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
        with cgutils.for_range(builder, k, intp=_LONG) as loop:
            across = builder.mul(loop.index, _number(self.high))
            pieces = [
                self.load(_REGISTER, panel, (builder.add(across, _number(row)), _number(REGISTER_BYTES)))
                for row in range(self.high)
            ]
            for number, column in enumerate(self.sums):
                factor = self.load(_REAL, b, (loop.index, _number(NUMBER_BYTES)), (_number(number), ldb))
                factor = builder.insert_element(empty, factor, ir.Constant(_SHORT, 0))
                factor = builder.shuffle_vector(factor, empty, ir.Constant(_NUMBERS, [0] * LANES))
                for piece, register in zip(pieces, column):
                    builder.store(builder.call(add, [piece, factor, builder.load(register)]), register)

    def take(self, c: Any, ldc: Any) -> None:
        """sums = c."""
        for register, out in self._whole_places(c, ldc):
            self.builder.store(self.builder.load(out, align=NUMBER_BYTES), register)

    def put(self, c: Any, ldc: Any) -> None:
        """c = sums."""
        for register, out in self._whole_places(c, ldc):
            self.builder.store(self.builder.load(register), out, align=NUMBER_BYTES)

    def put_rows(self, c: Any, ldc: Any, keep: Any, rows: Any) -> None:
        """c = sums + keep c for the first rows, one by one."""
        builder = self.builder
        memory = cgutils.alloca_once(builder, ir.ArrayType(_REGISTER, self.wide * self.high))
        start = builder.ptrtoint(memory, _LONG)
        for register, out in self._whole_places(start, _number(self.high * REGISTER_BYTES)):
            builder.store(builder.load(register), out)
        for number in range(self.wide):
            first = builder.add(start, _number(number * self.high * REGISTER_BYTES))
            with cgutils.for_range(builder, rows, intp=_LONG) as loop:
                step = loop.index, _number(NUMBER_BYTES)
                total = self.load(_REAL, first, step)
                out = self.at(_REAL, c, (_number(number), ldc), step)
                previous = builder.select(keep, builder.load(out, align=NUMBER_BYTES), ir.Constant(_REAL, 0.0))
                builder.store(builder.fadd(total, previous), out, align=NUMBER_BYTES)

    def _whole_places(self, c: Any, ldc: Any) -> Iterator[tuple[Any, Any]]:
        """For every register of the sums, its place and that of the result."""
        for number, column in enumerate(self.sums):
            for row, register in enumerate(column):
                yield register, self.at(_REGISTER, c, (_number(number), ldc), (_number(row), _number(REGISTER_BYTES)))


def _number(value: int) -> Any:
    return ir.Constant(_LONG, value)


@njit(inline="always")
def registers_from(row: int, m: int) -> int:
    """The height, in registers, of the panel that begins at a row of m."""
    count = (m - row + LANES - 1) // LANES
    return HIGH if count >= HIGH and count != 2 * LOW else min(count, LOW)


def _multiplier(high: int) -> Any:
    """Make a function that multiplies a panel of this height with all columns of the second operand."""

    @njit(inline="always")
    def multiply_panel(rows: Any, panel: Any, k: Any, b: Any, ldb: Any, n: Any, keep: Any, c: Any, ldc: Any) -> None:
        done = int64(0)
        while n - done >= COLUMNS:
            multiply_tile(high, COLUMNS, rows, panel, k, (b + done * ldb, ldb), (c + done * ldc, ldc), keep)
            done += COLUMNS
        second = (b + done * ldb, ldb)
        out = (c + done * ldc, ldc)
        if n - done == 3:
            multiply_tile(high, 3, rows, panel, k, second, out, keep)
        elif n - done == 2:
            multiply_tile(high, 2, rows, panel, k, second, out, keep)
        elif n - done == 1:
            multiply_tile(high, 1, rows, panel, k, second, out, keep)

    return multiply_panel


multiply_high, multiply_low, multiply_lowest = (_multiplier(high) for high in (HIGH, LOW, 1))


@compiled
def multiply_panels(m: int, n: int, k: int, panels: int, b: int, ldb: int, keep: bool, c: int, ldc: int) -> None:
    """c = a b + keep c, column-major, at addresses: a (m, k) in panels, b (k, n); ldb, ldc in elements."""
    ldb_bytes = NUMBER_BYTES * ldb
    ldc_bytes = NUMBER_BYTES * ldc
    row = int64(0)
    while row < m:
        registers = registers_from(row, m)
        panel = panels + NUMBER_BYTES * row * k
        out = c + NUMBER_BYTES * row
        rows = m - row
        if registers == HIGH:
            multiply_high(rows, panel, k, b, ldb_bytes, n, keep, out, ldc_bytes)
        elif registers == LOW:
            multiply_low(rows, panel, k, b, ldb_bytes, n, keep, out, ldc_bytes)
        else:
            multiply_lowest(rows, panel, k, b, ldb_bytes, n, keep, out, ldc_bytes)
        row += registers * LANES


def panels_size(m: int, k: int) -> int:
    """The number of elements of the panels of an (m, k) matrix."""
    return -(-m // LANES) * LANES * k


@compiled
def lay_panels(transposed: bool, m: int, k: int, matrix: int, distance: int, panels: int) -> None:
    """Copy a matrix (m, k), or the transpose of one (k, m), to panels.

    matrix, panels: addresses; the matrix is in Fortran order, its columns `distance` elements apart.
    """
    # Read the matrix in the order of its memory: after a minibatch nothing of it is in the cache.
    if transposed:
        row = int64(0)
        while row < m:
            high = LANES * registers_from(row, m)
            rows = min(high, m - row)
            for first in range(0, k, BLOCK):
                columns = min(BLOCK, k - first)
                source = frames(matrix + NUMBER_BYTES * (row * distance + first), rows, distance)
                out = frames(panels + NUMBER_BYTES * (row * k + first * high), columns, high)
                turn_block(source, out, columns, rows)
            row += high
        return
    for first in range(0, k, BLOCK):
        columns = min(BLOCK, k - first)
        row = int64(0)
        while row < m:
            high = LANES * registers_from(row, m)
            source = frames(matrix + NUMBER_BYTES * (first * distance + row), columns, distance)
            out = frames(panels + NUMBER_BYTES * (row * k + first * high), columns, high)
            copy_block(source, out, columns, min(high, m - row))
            row += high


@table_call
def panels(p: Array) -> None:
    """`lay_panels` for tables of calls; p: matrix and panels, then the other arguments in order."""
    lay_panels(p[2], p[3], p[4], p[0], p[5], p[1])


@njit(inline="always")
def copy_block(source: Array, out: Array, columns: int, rows: int) -> None:
    for column in range(columns):
        source_column = source[column]
        target = out[column]
        for i in range(rows):
            target[i] = source_column[i]
        for i in range(rows, target.shape[0]):
            target[i] = ZERO


@njit(inline="always")
def turn_block(source: Array, out: Array, columns: int, rows: int) -> None:
    for i in range(rows):
        source_row = source[i]
        for column in range(columns):
            out[column, i] = source_row[column]
    for column in range(columns):
        target = out[column]
        for i in range(rows, target.shape[0]):
            target[i] = ZERO
