"""Loops over the frames of a layer that layer_kernels.py and tile_kernels.py have in common."""

import numpy as np
from numba import uint32

from acoustic.kernels.compiled.elementwise_loops import inline
from acoustic.training.natural_gradient.layer_table import loop


@inline
def rounded(word):
    """The bits of a float32 as those of the nearest bfloat16."""
    return uint32(uint32(word + uint32(0x7FFF)) + uint32(uint32(word >> uint32(16)) & uint32(1))) >> uint32(16)


@loop
def add_bias(column, last, h, ones):
    """The 1 that the bias is multiplied by: its share of H = W x and of J = H x', and what is left of it."""
    for t in range(h.shape[0]):
        row, left = h[t], np.float32(1)
        for r in range(column.shape[0]):  # rows may be longer
            row[r] += column[r]
            left -= row[r] * column[r]
            last[r] += row[r]
        ones[t] = left


@loop
def squares_and_sum(x, norms, weights, summed):
    """The squared norms of frames, and the frames, each multiplied by its weight, added to `summed`; returns the sum of
    the norms.
    """
    total = 0.0
    for t in range(x.shape[0]):
        one, row, weight = np.float32(0), x[t], weights[t]
        for d in range(row.shape[0]):
            one += row[d] * row[d]
            summed[d] += weight * row[d]
        norms[t] = one
        total += one
    return total
