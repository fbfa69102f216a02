"""Compiled online natural gradient of a layer for float32 on the CPU; online.py has the same in array operations.

A minibatch takes two calls: each worker preconditions its frames (`reduce_layer`); when all have finished, each updates
a part of the weights (`change_layer`). Both stand at the end of this file, because numba's cache notices changes only
in the file of the called function.
"""

import numpy as np
from numba import float32

from acoustic.runtime.call_registry import table_call
from acoustic.runtime.pointers import doubles, frames, singles, whole_numbers
from acoustic.training.natural_gradient.layer_table import (
    AFTER,
    BIAS,
    BIAS_CHANGE,
    BOUND,
    FIELDS,
    HISTORY,
    IN,
    KEEP,
    LIMIT,
    NUM_SUMS,
    NUMBERS,
    OUT,
    RANK,
    RATE,
    REDUCED,
    REDUCED_ONE,
    ROWS,
    SUMS,
    TAKEN,
    UPDATES,
    WEIGHT,
    H,
    J,
    W,
    aligned,
    dimension,
    loop,
    matrix,
    multiply,
    reduction,
    total,
)

BLOCK = 1 << 18  # elements processed at a time, so that they stay in the cache


@loop
def reduce_frames(table, x, y, first, count, worker):
    """Multiply frames by the inverse Fisher factors of both sides.

    x, y: addresses of the derivatives with respect to the outputs, changed in place, and of the inputs, whose result
    goes to REDUCED. first: index of the first frame in the minibatch.
    """
    sums = doubles(table[SUMS] + 8 * NUM_SUMS * worker, NUM_SUMS)
    sums[:] = 0
    norms = np.empty((2, count), np.float32)
    reduce_inputs(table, y, first, count, worker, sums, norms[IN])
    reduce_outputs(table, x, first, count, worker, sums, norms[OUT])
    bound = 0.0
    for t in range(count):
        bound += np.sqrt(norms[OUT, t] * norms[IN, t])
    sums[BOUND] = bound


@loop
def reduce_outputs(table, x, first, count, worker, sums, norms):
    """Precondition the output derivatives; norms (count,) receives their squared norms."""
    rows, rank = table[ROWS + OUT], table[RANK + OUT]
    ones, change = singles(table[REDUCED_ONE] + 4 * first, count), bias_change(table, worker)
    change[:] = 0
    block = block_of(rows)
    for start in range(0, count, block):
        size, place = min(block, count - start), x + 4 * rows * start
        if rank:
            project(table, OUT, place, first + start, size)
            gather(table, OUT, place, first + start, size, worker, start)
            take_away(table, OUT, place, first + start, size, np.float32(1))
        stop = start + size
        sums[AFTER + OUT] += squares_and_sum(frames(place, size, rows), norms[start:stop], ones[start:stop], change)
        sums[TAKEN + OUT] += taken_squares(table, OUT, first + start, size)


@loop
def reduce_inputs(table, y, first, count, worker, sums, norms):
    """Precondition the inputs; norms (count,) receives their squared norms, the constant 1 of the bias included."""
    rows, rank, bias = table[ROWS + IN], table[RANK + IN], table[BIAS] != 0
    ones = singles(table[REDUCED_ONE] + 4 * first, count)
    ones[:] = 1
    norms[:] = 1 if bias else 0
    if rank == 0:
        sums[AFTER + IN] = add_squares(frames(y, count, rows), norms)
        return
    column = singles(table[W + IN] + 4 * rank * rows, rank if bias else 0)
    last = singles(table[J + IN] + 4 * rank * (dimension(table, IN) * worker + rows), rank if bias else 0)
    last[:] = 0
    block = block_of(rows)
    for start in range(0, count, block):
        size, place, stop = min(block, count - start), y + 4 * rows * start, start + min(block, count - start)
        project(table, IN, place, first + start, size)
        if bias:
            add_bias(column, last, frames(table[H + IN] + 4 * rank * (first + start), size, rank), ones[start:stop])
            for t in range(start, stop):
                norms[t] = ones[t] * ones[t]
        gather(table, IN, place, first + start, size, worker, start)
        reduced = table[REDUCED] + 4 * rows * (first + start)
        take_away(table, IN, reduced, first + start, size, np.float32(0))
        sums[AFTER + IN] += add_and_square(frames(place, size, rows), frames(reduced, size, rows), norms[start:stop])
        sums[TAKEN + IN] += taken_squares(table, IN, first + start, size)


@loop
def block_of(rows):
    """Return the number of frames to process at a time."""
    return max(32, BLOCK // rows // 32 * 32)


@loop
def bias_change(table, worker):
    """Return a worker's sum of the gradient of the bias, in cache lines of its own."""
    rows = table[ROWS + OUT]
    return singles(table[BIAS_CHANGE] + aligned(4 * rows) * worker, rows)


@loop
def add_bias(column, last, h, ones):
    """Add the constant 1 of the bias to H = W x and J = H x'; ones (count,) receives its preconditioned value."""
    for t in range(h.shape[0]):
        row, left = h[t], np.float32(1)
        for r in range(column.shape[0]):  # rows may be longer
            row[r] += column[r]
            left -= row[r] * column[r]
            last[r] += row[r]
        ones[t] = left


@loop
def squares_and_sum(x, norms, weights, summed):
    """Compute squared norms, add the weighted frames to `summed`, and return the sum of the norms."""
    total = 0.0
    for t in range(x.shape[0]):
        one, row, weight = np.float32(0), x[t], weights[t]
        for d in range(row.shape[0]):
            one += row[d] * row[d]
            summed[d] += weight * row[d]
        norms[t] = one
        total += one
    return total


@loop
def add_squares(x, norms):
    """Add the squared norms of frames to norms (count,), and return the sum of these."""
    total = 0.0
    for t in range(x.shape[0]):
        one, row = np.float32(0), x[t]
        for d in range(row.shape[0]):
            one += row[d] * row[d]
        norms[t] += one
        total += norms[t]
    return total


@loop
def add_and_square(x, y, norms):
    """y += x; add the squared norms of y to norms (count,), and return the sum of these."""
    total = 0.0
    for t in range(x.shape[0]):
        one, row, added = np.float32(0), y[t], x[t]
        for d in range(row.shape[0]):
            new = row[d] + added[d]
            row[d] = new
            one += new * new
        norms[t] += one
        total += norms[t]
    return total


@loop
def taken_squares(table, side, first, count):
    """Return by how much preconditioning decreases the sum of squares: the sum of h' (2 I - E) h. [eq. 73]"""
    rank = table[RANK + side]
    if rank == 0:
        return 0.0
    h = frames(table[H + side] + 4 * rank * first, count, rank)
    factors = 2 - reduction(table, side)
    sums, total = np.zeros(rank, np.float32), 0.0
    for t in range(count):
        row = h[t]
        for r in range(rank):
            sums[r] += row[r] * row[r]
    for r in range(rank):
        total += factors[r] * sums[r]
    return total


@loop
def project(table, side, x, first, count):
    """H = W x without the bias. [eq. 75]"""
    rows, rank = table[ROWS + side], table[RANK + side]
    h = table[H + side] + 4 * rank * first
    multiply(table, matrix(table[W + side], rank, rows), matrix(x, rows, count), matrix(h, rank, count))


@loop
def gather(table, side, x, first, count, worker, start):
    """Add to a worker's part of J = H x', if the estimate is updated; start: frames of this worker so far. [eq. 77]"""
    if table[UPDATES + side]:
        rows, rank = table[ROWS + side], table[RANK + side]
        h = matrix(table[H + side] + 4 * rank * first, rank, count)
        j = matrix(table[J + side] + 4 * rank * dimension(table, side) * worker, rank, rows)
        multiply(table, h, matrix(x, rows, count).T, j, 1.0, float32(start > 0))


@loop
def take_away(table, side, to, first, count, keep):
    """to = keep to - W' H. [eq. 76]"""
    rows, rank = table[ROWS + side], table[RANK + side]
    w, h = matrix(table[W + side], rank, rows), matrix(table[H + side] + 4 * rank * first, rank, count)
    multiply(table, w.T, h, matrix(to, rows, count), -1.0, keep)


@loop
def norm_factor(table, side, workers):
    """Return gamma. [eq. 37]"""
    after = total(table, AFTER + side, workers)
    before = after + total(table, TAKEN + side, workers)
    return np.sqrt(before / after) if after > 0 else 1.0


@loop
def change(table, x, y, count, worker, workers):
    """Update one worker's part of the weights, which are divided along their longer side, and its rows of the bias.

    x, y: addresses of the preconditioned output derivatives and of the inputs; count: frames of the minibatch.
    """
    rows, cols = table[ROWS + OUT], table[ROWS + IN]
    numbers = doubles(table[NUMBERS], HISTORY + 1)
    scale = norm_factor(table, OUT, workers) * norm_factor(table, IN, workers)
    bound, rate = scale * total(table, BOUND, workers), numbers[RATE]
    if bound * rate > numbers[LIMIT]:  # [eq. 85]
        rate = numbers[LIMIT] / bound if np.isfinite(bound) else 0.0
    step, keep = np.float32(-rate * scale), np.float32(numbers[KEEP])
    weight, outputs = matrix(table[WEIGHT], rows, cols), matrix(x, rows, count)
    inputs = matrix(table[REDUCED] if table[RANK + IN] else y, cols, count)
    if rows > cols:
        parts = rows // 16  # whole lines of the cache, but for the last worker
        start = 16 * (parts * worker // workers)
        stop = rows if worker == workers - 1 else 16 * (parts * (worker + 1) // workers)
        multiply(table, outputs[start:stop], inputs.T, weight[start:stop], step, keep)
    else:
        start, stop = cols * worker // workers, cols * (worker + 1) // workers
        multiply(table, outputs, inputs[start:stop].T, weight[:, start:stop], step, keep)
    if table[BIAS]:
        bias = singles(table[BIAS], rows)
        for r in range(rows * worker // workers, rows * (worker + 1) // workers):
            bias[r] *= keep
        for other in range(workers):
            part = bias_change(table, other)
            for r in range(rows * worker // workers, rows * (worker + 1) // workers):
                bias[r] += step * part[r]


@table_call
def reduce_layer(p):
    """p: table of the layer, derivatives of its outputs, inputs, first frame, frames, worker."""
    reduce_frames(whole_numbers(p[0], FIELDS), p[1], p[2], p[3], p[4], p[5])


@table_call
def change_layer(p):
    """p: table of the layer, derivatives of its outputs, inputs, frames, worker, workers."""
    change(whole_numbers(p[0], FIELDS), p[1], p[2], p[3], p[4], p[5])
