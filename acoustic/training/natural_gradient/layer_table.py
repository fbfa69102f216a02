"""The record through which Python passes a layer to the compiled loops, and helpers of these loops.

A side is the outputs or the inputs of the layer; its Fisher factor has rank 0 if it is not estimated. Numba's cache
does not notice changes of this file: after one, remove __pycache__ of the files that import it.
"""

from typing import Any

import numpy as np
from numba import carray, float32

from acoustic.kernels.compiled.elementwise_loops import loop
from acoustic.runtime import gemm_calls
from acoustic.runtime.memory import LINE_BYTES
from acoustic.runtime.pointers import doubles, frames, pointer
from readers.common.arrays import Array

OUT, IN = 0, 1  # sides
ADDRESSES = "gemm eigen weight bias sums reduced reduced_one bias_change"
OF_BOTH_SIDES = "rows rank w scales h j updates doubtful scratch"
# Addresses of functions and of matrices in Fortran order, sizes, flags, and numbers of the update. wide: whether gemm
# takes dimensions of 64 bits; reduced, reduced_one: the preconditioned inputs and constant 1 of the bias; bias_change:
# per worker, the gradient of the bias.
LAYER = np.dtype(
    [(name, np.int64) for name in ("wide", *ADDRESSES.split())]
    + [(name, np.int64, 2) for name in OF_BOTH_SIDES.split()]
    + [(name, np.float64) for name in ("rate", "keep", "limit", "alpha", "history")]
)
# Sums of a worker: squared norms after preconditioning, their decrease by it, and a bound of the change.
SUMS = np.dtype([("after", np.float64, 2), ("taken", np.float64, 2), ("bound", np.float64), ("line", np.float64, 3)])


@loop
def layer_at(address: int) -> Any:
    """The record at an address."""
    return carray(pointer(address), (1,), LAYER)[0]


@loop
def sums_of(layer: Any, worker: int) -> Any:
    """The sums of a worker."""
    return carray(pointer(layer.sums), (worker + 1,), SUMS)[worker]


@loop
def squares_of(layer: Any, side: int, workers: int) -> tuple[float, float]:
    """Sums of the squared norms of all workers' vectors, before and after preconditioning."""
    after = 0.0
    removed = 0.0
    for worker in range(workers):
        sums = sums_of(layer, worker)
        after += sums.after[side]
        removed += sums.taken[side]
    return after + removed, after


@loop
def matrix(address: int, rows: int, cols: int) -> Array:
    """float32 (rows, cols) in Fortran order at an address."""
    return frames(address, cols, rows).T


@loop
def multiply(layer: Any, a: Array, b: Array, out: Array, scale: float = 1.0, keep: float = 0.0) -> None:
    """out = scale a b + keep out."""
    gemm_calls.multiply(layer.gemm, layer.wide != 0, a, b, out, float32(scale), float32(keep))


@loop
def dimension(layer: Any, side: int) -> int:
    """Return the dimension of a side: that of its vectors, plus 1 for the inputs of a layer with a bias."""
    return layer.rows[side] + (1 if side == IN and layer.bias else 0)


@loop
def scales_of(layer: Any, side: int) -> Array:
    """The scales of a Fisher factor: D, rho and the number of minibatches."""
    return doubles(layer.scales[side], layer.rank[side] + 2)


@loop
def reduction(layer: Any, side: int) -> Array:
    """Return the diagonal of E. [eq. 34, 40]"""
    rank = layer.rank[side]
    scales = scales_of(layer, side)
    total = 0.0
    for r in range(rank):
        total += scales[r]
    beta = scales[rank] * (1 + layer.alpha) + layer.alpha / dimension(layer, side) * total
    e = np.empty(rank)
    for r in range(rank):
        e[r] = 1 / (beta / scales[r] + 1)
    return e


@loop
def aligned(size: int) -> int:
    """Round a size in bytes up to cache lines: BLAS gives the same bits in every run only for aligned matrices."""
    return (size + LINE_BYTES - 1) // LINE_BYTES * LINE_BYTES
