"""Compiled online natural gradient of a layer for float32 on the CPU; online.py has the same in array operations.

A minibatch takes two calls: each worker preconditions its frames (`reduce_layer`); when all have finished, each updates
a part of the weights (`change_layer`). Both stand at the end of this file, because numba's cache notices changes only
in the file of the called function.
"""

from typing import Any

import numpy as np
from numba import float32

from acoustic.kernels.compiled.elementwise_loops import loop
from acoustic.runtime.call_registry import table_call
from acoustic.runtime.pointers import frames, singles
from acoustic.training.natural_gradient.layer_table import (
    IN,
    OUT,
    aligned,
    dimension,
    layer_at,
    matrix,
    multiply,
    reduction,
    squares_of,
    sums_of,
)
from readers.common.arrays import Array

BLOCK = 1 << 18  # elements processed at a time, so that they stay in the cache


@loop
def reduce_frames(layer: Any, x: int, y: int, first: int, count: int, worker: int) -> None:
    """Multiply frames by the inverse Fisher factors of both sides.

    x, y: addresses of the derivatives with respect to the outputs, changed in place, and of the inputs, whose result
    goes to REDUCED. first: index of the first frame in the minibatch.
    """
    sums = sums_of(layer, worker)
    sums.after[:] = 0
    sums.taken[:] = 0
    norms = np.empty((2, count), np.float32)
    reduce_inputs(layer, y, first, count, worker, sums, norms[IN])
    reduce_outputs(layer, x, first, count, worker, sums, norms[OUT])
    bound = 0.0
    for t in range(count):
        bound += np.sqrt(norms[OUT, t] * norms[IN, t])
    sums.bound = bound


@loop
def reduce_outputs(layer: Any, x: int, first: int, count: int, worker: int, sums: Any, norms: Array) -> None:
    """Precondition the output derivatives; norms (count,) receives their squared norms."""
    rows = layer.rows[OUT]
    rank = layer.rank[OUT]
    reduced_ones = singles(layer.reduced_one + 4 * first, count)
    change = bias_change(layer, worker)
    change[:] = 0
    block = block_of(rows)
    for start in range(0, count, block):
        size = min(block, count - start)
        address = x + 4 * rows * start
        if rank:
            project(layer, OUT, address, first + start, size)
            gather(layer, OUT, address, first + start, size, worker, start)
            take_away(layer, OUT, address, first + start, size, float32(1))
        stop = start + size
        sums.after[OUT] += squares_and_sum(
            frames(address, size, rows), norms[start:stop], reduced_ones[start:stop], change
        )
        sums.taken[OUT] += taken_squares(layer, OUT, first + start, size)


@loop
def reduce_inputs(layer: Any, y: int, first: int, count: int, worker: int, sums: Any, norms: Array) -> None:
    """Precondition the inputs; norms (count,) receives their squared norms, the constant 1 of the bias included."""
    rows = layer.rows[IN]
    rank = layer.rank[IN]
    bias = layer.bias != 0
    reduced_ones = singles(layer.reduced_one + 4 * first, count)
    reduced_ones[:] = 1
    norms[:] = 1 if bias else 0
    if rank == 0:
        sums.after[IN] = add_squares(frames(y, count, rows), norms)
        return
    column = singles(layer.w[IN] + 4 * rank * rows, rank if bias else 0)
    last = singles(layer.j[IN] + 4 * rank * (dimension(layer, IN) * worker + rows), rank if bias else 0)
    last[:] = 0
    block = block_of(rows)
    for start in range(0, count, block):
        size = min(block, count - start)
        address = y + 4 * rows * start
        stop = start + min(block, count - start)
        project(layer, IN, address, first + start, size)
        if bias:
            add_bias(column, last, projections(layer, IN, first + start, size), reduced_ones[start:stop])
            for t in range(start, stop):
                norms[t] = reduced_ones[t] * reduced_ones[t]
        gather(layer, IN, address, first + start, size, worker, start)
        reduced = layer.reduced + 4 * rows * (first + start)
        take_away(layer, IN, reduced, first + start, size, float32(0))
        sums.after[IN] += add_and_square(frames(address, size, rows), frames(reduced, size, rows), norms[start:stop])
        sums.taken[IN] += taken_squares(layer, IN, first + start, size)


@loop
def block_of(rows: int) -> int:
    """Return the number of frames to process at a time."""
    return max(32, BLOCK // rows // 32 * 32)


@loop
def bias_change(layer: Any, worker: int) -> Array:
    """Return a worker's sum of the gradient of the bias, in cache lines of its own."""
    rows = layer.rows[OUT]
    return singles(layer.bias_change + aligned(4 * rows) * worker, rows)


@loop
def add_bias(column: Array, last: Array, h: Array, ones: Array) -> None:
    """Add the constant 1 of the bias to H = W x and J = H x'; ones (count,) receives its preconditioned value."""
    for t in range(h.shape[0]):
        row = h[t]
        reduced_one = float32(1)
        for r in range(column.shape[0]):  # rows may be longer
            row[r] += column[r]
            reduced_one -= row[r] * column[r]
            last[r] += row[r]
        ones[t] = reduced_one


@loop
def squares_and_sum(x: Array, norms: Array, weights: Array, summed: Array) -> float:
    """Compute squared norms, add the weighted frames to `summed`, and return the sum of the norms."""
    total = 0.0
    for t in range(x.shape[0]):
        squared_norm = float32(0)
        row = x[t]
        weight = weights[t]
        for d in range(row.shape[0]):
            squared_norm += row[d] * row[d]
            summed[d] += weight * row[d]
        norms[t] = squared_norm
        total += squared_norm
    return total


@loop
def add_squares(x: Array, norms: Array) -> float:
    """Add the squared norms of frames to norms (count,), and return the sum of these."""
    total = 0.0
    for t in range(x.shape[0]):
        squared_norm = float32(0)
        row = x[t]
        for d in range(row.shape[0]):
            squared_norm += row[d] * row[d]
        norms[t] += squared_norm
        total += norms[t]
    return total


@loop
def add_and_square(x: Array, y: Array, norms: Array) -> float:
    """y += x; add the squared norms of y to norms (count,), and return the sum of these."""
    total = 0.0
    for t in range(x.shape[0]):
        squared_norm = float32(0)
        row = y[t]
        added = x[t]
        for d in range(row.shape[0]):
            new = row[d] + added[d]
            row[d] = new
            squared_norm += new * new
        norms[t] += squared_norm
        total += norms[t]
    return total


@loop
def taken_squares(layer: Any, side: int, first: int, count: int) -> float:
    """Return by how much preconditioning decreases the sum of squares: the sum of h' (2 I - E) h. [eq. 73]"""
    rank = layer.rank[side]
    if rank == 0:
        return 0.0
    h = projections(layer, side, first, count)
    factors = 2 - reduction(layer, side)
    sums = np.zeros(rank, np.float32)
    total = 0.0
    for t in range(count):
        row = h[t]
        for r in range(rank):
            sums[r] += row[r] * row[r]
    for r in range(rank):
        total += factors[r] * sums[r]
    return total


@loop
def projections(layer: Any, side: int, first: int, count: int) -> Array:
    """Frames of H' (count, rank)."""
    rank = layer.rank[side]
    return frames(layer.h[side] + 4 * rank * first, count, rank)


@loop
def project(layer: Any, side: int, x: int, first: int, count: int) -> None:
    """H = W x without the bias. [eq. 75]"""
    w = matrix(layer.w[side], layer.rank[side], layer.rows[side])
    h = projections(layer, side, first, count)
    multiply(layer, w, matrix(x, layer.rows[side], count), h.T)


@loop
def gather(layer: Any, side: int, x: int, first: int, count: int, worker: int, start: int) -> None:
    """Add to a worker's part of J = H x', if the estimate is updated; start: frames of this worker so far. [eq. 77]"""
    if layer.updates[side]:
        rows = layer.rows[side]
        rank = layer.rank[side]
        h = projections(layer, side, first, count)
        j = matrix(layer.j[side] + 4 * rank * dimension(layer, side) * worker, rank, rows)
        multiply(layer, h.T, matrix(x, rows, count).T, j, 1.0, float32(start > 0))


@loop
def take_away(layer: Any, side: int, to: int, first: int, count: int, keep: float) -> None:
    """to = keep to - W' H. [eq. 76]"""
    w = matrix(layer.w[side], layer.rank[side], layer.rows[side])
    h = projections(layer, side, first, count)
    multiply(layer, w.T, h.T, matrix(to, layer.rows[side], count), -1.0, keep)


@loop
def norm_factor(layer: Any, side: int, workers: int) -> float:
    """Return gamma. [eq. 37]"""
    before, after = squares_of(layer, side, workers)
    return np.sqrt(before / after) if after > 0 else 1.0


@loop
def change(layer: Any, x: int, y: int, count: int, worker: int, workers: int) -> None:
    """Update one worker's part of the weights, which are divided along their longer side, and its rows of the bias.

    x, y: addresses of the preconditioned output derivatives and of the inputs; count: frames of the minibatch.
    """
    rows = layer.rows[OUT]
    cols = layer.rows[IN]
    scale = norm_factor(layer, OUT, workers) * norm_factor(layer, IN, workers)
    bound = 0.0
    rate = layer.rate
    for source_worker in range(workers):
        bound += scale * sums_of(layer, source_worker).bound
    if bound * rate > layer.limit:  # [eq. 85]
        rate = layer.limit / bound if np.isfinite(bound) else 0.0
    step = float32(-rate * scale)
    keep = float32(layer.keep)
    weight = matrix(layer.weight, rows, cols)
    outputs = matrix(x, rows, count)
    inputs = matrix(layer.reduced if layer.rank[IN] else y, cols, count)
    if rows > cols:
        parts = rows // 16  # whole lines of the cache, but for the last worker
        start = 16 * (parts * worker // workers)
        stop = rows if worker == workers - 1 else 16 * (parts * (worker + 1) // workers)
        multiply(layer, outputs[start:stop], inputs.T, weight[start:stop], step, keep)
    else:
        start = cols * worker // workers
        stop = cols * (worker + 1) // workers
        multiply(layer, outputs, inputs[start:stop].T, weight[:, start:stop], step, keep)
    if layer.bias:
        bias = singles(layer.bias, rows)
        for r in range(rows * worker // workers, rows * (worker + 1) // workers):
            bias[r] *= keep
        for source_worker in range(workers):
            part = bias_change(layer, source_worker)
            for r in range(rows * worker // workers, rows * (worker + 1) // workers):
                bias[r] += step * part[r]


@table_call
def reduce_layer(p: Array) -> None:
    """p: record of the layer, derivatives of its outputs, inputs, first frame, frames, worker."""
    reduce_frames(layer_at(p[0]), p[1], p[2], p[3], p[4], p[5])


@table_call
def change_layer(p: Array) -> None:
    """p: record of the layer, derivatives of its outputs, inputs, frames, worker, workers."""
    change(layer_at(p[0]), p[1], p[2], p[3], p[4], p[5])
