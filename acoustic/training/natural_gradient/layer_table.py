"""The table through which Python passes a layer to the compiled loops, and helpers of these loops.

The table (int64) holds sizes, flags and addresses of matrices in Fortran order. A side is the outputs or the inputs of
the layer; its Fisher factor has rank 0 if it is not estimated. Numba's cache does not notice changes of this file:
after one, remove __pycache__ of the files that import it.
"""

import numpy as np
from numba import float32

from acoustic.kernels.compiled.elementwise_loops import loop
from acoustic.runtime import gemm_calls
from acoustic.runtime.memory import LINE_BYTES
from acoustic.runtime.pointers import doubles, frames

# Fields of the table. A field with one value per side occupies two places: FIELD + OUT and FIELD + IN.
GEMM, WIDE, EIGEN, WEIGHT, BIAS, SUMS, NUMBERS = range(7)
ROWS, RANK, W, SCALES, H, J, UPDATES, DOUBTFUL, SCRATCH = range(8, 26, 2)
REDUCED, REDUCED_ONE = 26, 27  # preconditioned inputs, and the preconditioned constant 1 of the bias
BIAS_CHANGE = 28  # per worker: the gradient of the bias
FIELDS = 29
OUT, IN = 0, 1
RATE, KEEP, LIMIT, ALPHA, HISTORY = range(5)  # places in NUMBERS
# Places in the sums of a worker: squared norm after preconditioning and the decrease, per side; bound of the change.
AFTER, TAKEN, BOUND = 0, 2, 4
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
    """Return the dimension of a side: that of its vectors, plus 1 for the inputs of a layer with a bias."""
    return table[ROWS + side] + (1 if side == IN and table[BIAS] else 0)


@loop
def reduction(table, side):
    """Return the diagonal of E. [eq. 34, 40]"""
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
    """Return one of the sums, over all workers."""
    found = 0.0
    for worker in range(workers):
        found += doubles(table[SUMS] + 8 * NUM_SUMS * worker, NUM_SUMS)[which]
    return found


@loop
def aligned(size):
    """Round a size in bytes up to cache lines: BLAS gives the same bits in every run only for aligned matrices."""
    return (size + LINE_BYTES - 1) // LINE_BYTES * LINE_BYTES
