"""What compiled loops are told of a layer: a table of int64, and where everything stands there.

Sizes, flags, and where the layer's matrices lie, all in Fortran order.  A side is that of the layer's outputs or of its
inputs; one whose Fisher matrix's factor is not estimated has rank 0.  When this file changes, what numba keeps in
__pycache__ of those that call it has to go.
"""

import numpy as np
from numba import float32

from acoustic.kernels.compiled.elementwise_loops import loop
from acoustic.runtime import gemm_calls
from acoustic.runtime.memory import LINE_BYTES
from acoustic.runtime.pointers import doubles, frames

# Fields of the table.  OUT and IN are one after the other, so that OUT + side names one of both.
GEMM, WIDE, EIGEN, WEIGHT, BIAS, SUMS, NUMBERS = range(7)
ROWS, RANK, W, SCALES, H, J, UPDATES, DOUBTFUL, SCRATCH = range(8, 26, 2)
REDUCED, REDUCED_ONE = 26, 27  # the inputs as `reduce_layer` leaves them, and the 1 that the bias is multiplied by
BIAS_CHANGE = 28  # of each worker: the product with that 1
FIELDS = 29
OUT, IN = 0, 1
RATE, KEEP, LIMIT, ALPHA, HISTORY = range(5)  # of NUMBERS
AFTER, TAKEN, BOUND = 0, 2, 4  # of the sums of each worker: squares that are left, and were taken, of either side
NUM_SUMS = 8


@loop
def matrix(address, rows, cols):
    """float32 (rows, cols) in Fortran order at an address."""
    return frames(address, cols, rows).T


@loop
def multiply(table, a, b, out, scale=1.0, keep=0.0):
    """out = scale a b + keep out."""
    gemm_calls.multiply(table[GEMM], table[WIDE] != 0, a, b, out, float32(scale), float32(keep))


@loop
def dimension(table, side):
    """Of the vectors on a side; the inputs have a 1 more where there is a bias."""
    return table[ROWS + side] + (1 if side == IN and table[BIAS] else 0)


@loop
def reduction(table, side):
    """The diagonal of E, float32.  [eq. 34, 40]"""
    rank, dim = table[RANK + side], dimension(table, side)
    scales, numbers = doubles(table[SCALES + side], rank + 2), doubles(table[NUMBERS], HISTORY + 1)
    total = 0.0
    for r in range(rank):
        total += scales[r]
    beta = scales[rank] * (1 + numbers[ALPHA]) + numbers[ALPHA] / dim * total
    e = np.empty(rank)
    for r in range(rank):
        e[r] = 1 / (beta / scales[r] + 1)
    return e


@loop
def total(table, which, workers):
    found = 0.0
    for worker in range(workers):
        found += doubles(table[SUMS] + 8 * NUM_SUMS * worker, NUM_SUMS)[which]
    return found


@loop
def aligned(size):
    """Bytes, a multiple of those that libraries want matrices to begin at, to give the same bits in every run."""
    return (size + LINE_BYTES - 1) // LINE_BYTES * LINE_BYTES
