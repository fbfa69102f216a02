"""Products of 8-bit weights and 8-bit values, for processors with AVX-512 VNNI.

VPDPBUSD multiplies four unsigned by four signed bytes in each of 16 lanes and adds the products to 32-bit integers,
exactly: 64 multiplications and additions per instruction, four times as many as with float32.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import config
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from readers.common.arrays import ByteArray, Float32Array, Int32Array
from readers.common.kernels import njit

PANEL = 64  # rows of weights whose sums are kept in registers
QUAD = 4  # bytes that an instruction multiplies in each lane
WIDE, HALF = 6, 3  # columns whose sums are kept in registers: 6 x 64 sums take 24 of the 32 registers
LANES = 16
LARGEST = np.float32(255)
SMALLEST = np.float32(1e-30)  # scale; its reciprocal is finite

_BYTES, _INDEX = ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_BYTES, LANES)


def has_vnni() -> bool:
    """Whether compiled code may use AVX-512 VNNI."""
    if config.DISABLE_JIT:
        return False
    _, _, features = cpu_target.target_context.codegen().magic_tuple()
    return {"+avx512f", "+avx512vnni"} <= set(features.split(","))


def _tile(num_columns: int) -> Any:
    """An intrinsic that computes the sums of a panel and so many columns."""

    @intrinsic
    def tile(typing_context: Any, weights: Any, values: Any, stride: Any, num_quads: Any, sums: Any) -> tuple[Any, Any]:
        """sums (columns, 64) int32 = products of a panel and of columns `stride` bytes apart; all are addresses."""
        signature = types.void(types.int64, types.int64, types.int64, types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            weights, values, stride, num_quads, sums = arguments
            name = "llvm.x86.avx512.vpdpbusd.512"
            kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
            multiply = builder.module.globals.get(name) or ir.Function(builder.module, kind, name=name)

            def at(start: Any, step: Any, number: Any) -> Any:
                return builder.add(start, builder.mul(number, _index(step) if isinstance(step, int) else step))

            before = builder.block
            loop = builder.append_basic_block("quads")
            after = builder.append_basic_block("end")
            builder.branch(loop)
            builder.position_at_end(loop)
            quad = builder.phi(_INDEX)
            quad.add_incoming(_index(0), before)
            old = [builder.phi(_VECTOR) for _ in range(num_columns * PANEL // LANES)]
            for accumulator in old:
                accumulator.add_incoming(ir.Constant(_VECTOR, [0] * LANES), before)
            row = at(weights, PANEL * QUAD, quad)
            panel = [
                builder.load(builder.inttoptr(at(row, LANES * QUAD, _index(k)), _VECTOR.as_pointer()), align=64)
                for k in range(PANEL // LANES)
            ]
            quad_address = at(values, QUAD, quad)
            new: list[Any] = []
            for column in range(num_columns):
                address = builder.inttoptr(at(quad_address, stride, _index(column)), _BYTES.as_pointer())
                four = builder.insert_element(_VECTOR(ir.Undefined), builder.load(address, align=1), _BYTES(0))
                four = builder.shuffle_vector(four, _VECTOR(ir.Undefined), ir.Constant(_VECTOR, [0] * LANES))
                new += [builder.call(multiply, [old[len(new) + k], four, panel[k]]) for k in range(len(panel))]
            following = builder.add(quad, _index(1))
            quad.add_incoming(following, loop)
            for accumulator, value in zip(old, new):
                accumulator.add_incoming(value, loop)
            builder.cbranch(builder.icmp_signed("<", following, num_quads), loop, after)
            builder.position_at_end(after)
            for k, value in enumerate(new):
                address = builder.inttoptr(at(sums, LANES * 4, _index(k)), _VECTOR.as_pointer())
                builder.store(value, address, align=64)
            return context.get_dummy_value()

        return signature, codegen

    return tile


def _index(number: int) -> ir.Constant:
    return ir.Constant(_INDEX, number)


_tile_wide, _tile_half, _tile_one = _tile(WIDE), _tile(HALF), _tile(1)


@njit(cache=True, nogil=True)
def quantise(values: Float32Array, found: ByteArray, scales: Float32Array, lowest: Float32Array) -> None:
    """For every row of values (T, k): lowest + scale * found = values; found (T, >= k) uint8, zeros beyond k.

    A row that is not finite gets the scale NaN.
    """
    low = np.empty(LANES, np.float32)
    high = np.empty(LANES, np.float32)
    zero = np.empty(LANES, np.float32)
    size = values.shape[1]
    for t in range(values.shape[0]):
        row = values[t]
        bytes_of_row = found[t]
        low[:] = np.inf
        high[:] = -np.inf
        zero[:] = 0
        lanes_end = size // LANES * LANES
        for start in range(0, lanes_end, LANES):
            for k in range(LANES):
                value = row[start + k]
                low[k] = value if value < low[k] else low[k]
                high[k] = value if value > high[k] else high[k]
                zero[k] += value - value  # NaN, which comparisons pass over, stays NaN
        for k in range(lanes_end, size):
            low[0] = row[k] if row[k] < low[0] else low[0]
            high[0] = row[k] if row[k] > high[0] else high[0]
            zero[0] += row[k] - row[k]
        least = low.min()
        scale = (high.max() - low.min()) / LARGEST + zero.sum()
        bytes_of_row[size:] = 0
        if not np.isfinite(scale):
            scales[t] = lowest[t] = np.nan
            bytes_of_row[:size] = 0
            continue
        scales[t] = scale
        lowest[t] = least
        factor = np.float32(1) / scale if scale > SMALLEST else np.float32(0)
        for k in range(size):
            bytes_of_row[k] = np.uint8(min(np.int32((row[k] - least) * factor + np.float32(0.5)), np.int32(255)))


@njit(cache=True, nogil=True)
def multiply(
    weights: npt.NDArray[np.int8],
    row_scales: Float32Array,
    row_sums: Float32Array,
    found: ByteArray,
    scales: Float32Array,
    lowest: Float32Array,
    sums: Int32Array,
    out: Float32Array,
) -> None:
    """out (T, m) = products of the quantised rows found (T, 4 q) and of weights.

    weights: (panels, q, 64, 4) int8, its memory aligned to 64 bytes; row_scales, row_sums: (m,), scale and sum of the
    integers of each row of weights; sums: (6, 64) int32, temporary, aligned likewise.
    """
    num_panels = weights.shape[0]
    num_quads = weights.shape[1]
    num_columns = found.shape[0]
    num_rows = out.shape[1]
    stride = found.strides[0]
    for panel in range(num_panels):
        first = panel * PANEL
        rows = min(PANEL, num_rows - first)
        address = weights.ctypes.data + panel * num_quads * PANEL * QUAD
        column = 0
        while column < num_columns:
            values = found.ctypes.data + column * stride
            if num_columns - column >= WIDE:
                count = WIDE
                _tile_wide(address, values, stride, num_quads, sums.ctypes.data)
            elif num_columns - column >= HALF:
                count = HALF
                _tile_half(address, values, stride, num_quads, sums.ctypes.data)
            else:
                count = 1
                _tile_one(address, values, stride, num_quads, sums.ctypes.data)
            for k in range(count):
                scale = scales[column + k]
                least = lowest[column + k]
                target = out[column + k]
                for row in range(rows):
                    total = scale * np.float32(sums[k, row]) + least * row_sums[first + row]
                    target[first + row] = row_scales[first + row] * total
            column += count
