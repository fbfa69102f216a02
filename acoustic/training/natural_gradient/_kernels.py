"""The online natural gradient of a layer, compiled, for float32 on the CPU: see compiled.py, and online.py for the same
in plain matrix products.

A layer is a table of int64: sizes, flags, and where its matrices lie, all in Fortran order.  Two functions do a step:
`look_at_frames` some frames, in the thread of each worker, and when all have, `change` some columns of the weights.
What _calls.py calls stands at the end, in this file: numba's cache sees changes of that alone.
"""

import numpy as np
from numba import int32, njit, uint16, uint32

from acoustic._addresses import call_with_pointers, doubles, frames, half_words, singles, whole_numbers, words
from acoustic._gemm import PLAIN, TRANSPOSED, call, call_wide
from acoustic._kernels import LOOSE

# Fields of the table.  OUT and IN are one after the other, so that OUT + side names one of both.
GEMM, WIDE, EIGEN, WEIGHT, BIAS, SUMS, NUMBERS = range(7)
ROWS, RANK, W, SCALES, H, J, UPDATES, DOUBTFUL, SCRATCH = range(8, 26, 2)
REDUCED, REDUCED_ONE = 26, 27  # the inputs after `look_at_frames`, and the 1 that the bias is multiplied by
HALF, HALF_MEMORY = 28, 29  # a product of bfloat16, or 0; where each worker's memory for it lies
FIELDS = 30
OUT, IN = 0, 1
RATE, KEEP, LIMIT, ALPHA, HISTORY = range(5)  # of NUMBERS
AFTER, TAKEN, BOUND = 0, 2, 4  # of the sums of each worker: squares that are left, and were taken, of either side
NUM_SUMS = 8
ALIGNMENT = 64
SMALLEST, LARGEST_CONDITION, LARGEST_DEVIATION = 1e-10, 1e6, 1e-3  # as in online.py

loop = njit(cache=True, nogil=True, fastmath=LOOSE, error_model="numpy")


@loop
def multiply(table, first, second, m, n, k, scale, a, lda, b, ldb, keep, c, ldc):
    """c = scale a b + keep c; as cblas_sgemm."""
    if m == 0 or n == 0:
        return
    if table[WIDE]:
        call_wide(table[GEMM], int32(first), int32(second), m, n, k, scale, a, lda, b, ldb, keep, c, ldc)
    else:
        call(
            table[GEMM], int32(first), int32(second), int32(m), int32(n), int32(k),
            scale, a, int32(lda), b, int32(ldb), keep, c, int32(ldc),
        )  # fmt: skip


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
def dimension(table, side):
    """Of the vectors on a side; the inputs have a 1 more where there is a bias."""
    return table[ROWS + side] + (1 if side == IN and table[BIAS] else 0)


@loop
def multiply_half(table, first, second, m, n, k, scale, a, lda, b, ldb, keep, c, ldc):
    """The same of matrices of bfloat16, c being float32."""
    if m and n:
        call(
            table[HALF], int32(first), int32(second), int32(m), int32(n), int32(k),
            scale, a, int32(lda), b, int32(ldb), keep, c, int32(ldc),
        )  # fmt: skip


@loop
def taken_squares(table, side, h):
    """The sum over frames of h' (2 I - E) h: how much less the squared norm of x is than it was.  [eq. 73]"""
    factors = 2 - reduction(table, side)
    sums, total = np.zeros(h.shape[1], np.float32), 0.0
    for t in range(h.shape[0]):
        row = h[t]
        for r in range(row.shape[0]):
            sums[r] += row[r] * row[r]
    for r in range(sums.shape[0]):
        total += factors[r] * sums[r]
    return total


@loop
def squared_norms(x, norms):
    """Of every frame; returns their sum."""
    total = 0.0
    for t in range(x.shape[0]):
        one, row = np.float32(0), x[t]
        for d in range(row.shape[0]):
            one += row[d] * row[d]
        norms[t] = one
        total += one
    return total


@loop
def add_and_square(x, y, norms):
    """y += x, both of frames, and the squared norms of y are added to what stands there; returns their sum."""
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
def look_at_frames(table, x, y, first, count, worker):
    """Multiply frames by the inverse of the Fisher matrix's factors.

    x, y: where the derivatives of the layer's outputs, and its inputs, of these frames lie; x is changed in place, y to
    REDUCED.  first: their number in the minibatch.
    """
    sums = doubles(table[SUMS] + 8 * NUM_SUMS * worker, NUM_SUMS)
    sums[:] = 0
    norms = np.empty((2, count), np.float32)
    reduce_outputs(table, x, first, count, worker, sums, norms[OUT])
    reduce_inputs(table, y, first, count, worker, sums, norms[IN])
    bound = 0.0
    for t in range(count):
        bound += np.sqrt(norms[OUT, t] * norms[IN, t])
    sums[BOUND] = bound


@loop
def reduce_outputs(table, x, first, count, worker, sums, norms):
    rows, rank = table[ROWS + OUT], table[RANK + OUT]
    before = project(table, OUT, x, first, count, worker)
    gather(table, OUT, x, first, count, worker)
    take_away(table, OUT, x, first, count, worker, np.float32(1))
    sums[AFTER + OUT] = after = squared_norms(frames(x, count, rows), norms)
    found = frames(table[H + OUT] + 4 * rank * first, count, rank)
    sums[TAKEN + OUT] = before - after if before >= 0 else taken_squares(table, OUT, found)


@loop
def reduce_inputs(table, y, first, count, worker, sums, norms):
    rows, rank, w = table[ROWS + IN], table[RANK + IN], table[W + IN]
    reduced = table[REDUCED] + 4 * rows * first
    before = project(table, IN, y, first, count, worker)
    found = frames(table[H + IN] + 4 * rank * first, count, rank)
    norms[:] = 0
    if table[BIAS]:
        column, ones = singles(w + 4 * rank * rows, rank), singles(table[REDUCED_ONE] + 4 * first, count)
        for t in range(count):
            row, left = found[t], np.float32(1)
            for r in range(rank):
                row[r] += column[r]
                left -= row[r] * column[r]
            ones[t] = left
            norms[t] = left * left
        before += count
    gather(table, IN, y, first, count, worker)
    if table[BIAS] and table[UPDATES + IN]:
        last = singles(table[J + IN] + 4 * rank * (dimension(table, IN) * worker + rows), rank)
        last[:] = 0
        for t in range(count):
            for r in range(rank):
                last[r] += found[t, r]
    take_away(table, IN, reduced, first, count, worker, np.float32(0))
    sums[AFTER + IN] = after = add_and_square(frames(y, count, rows), frames(reduced, count, rows), norms)
    sums[TAKEN + IN] = before - after if table[HALF] else taken_squares(table, IN, found)


@loop
def project(table, side, x, first, count, worker):
    """H = W x, without the bias's share; returns the sum of x's squares, -1 where it was not looked at.  [eq. 75]"""
    rows, rank, w = table[ROWS + side], table[RANK + side], table[W + side]
    h, one, zero = table[H + side] + 4 * rank * first, np.float32(1), np.float32(0)
    if not table[HALF]:
        multiply(table, PLAIN, PLAIN, rank, count, rows, one, w, rank, x, rows, zero, h, rank)
        return -1.0
    half_x, half_w, _ = half_places(table, side, count, worker)
    before = to_half(x, count, rows, half_x)
    to_half(w, rows, rank, half_w)
    multiply_half(table, PLAIN, PLAIN, rank, count, rows, one, half_w, rank, half_x, rows, zero, h, rank)
    return before


@loop
def gather(table, side, x, first, count, worker):
    """A worker's part of J = H x', if it is time for it.  [eq. 77]"""
    rows, rank = table[ROWS + side], table[RANK + side]
    h, one, zero = table[H + side] + 4 * rank * first, np.float32(1), np.float32(0)
    j = table[J + side] + 4 * rank * dimension(table, side) * worker
    if table[HALF]:
        half_x, _, half_h = half_places(table, side, count, worker)
        to_half(h, count, rank, half_h)
        if table[UPDATES + side]:
            multiply_half(table, PLAIN, TRANSPOSED, rank, rows, count, one, half_h, rank, half_x, rows, zero, j, rank)
    elif table[UPDATES + side]:
        multiply(table, PLAIN, TRANSPOSED, rank, rows, count, one, h, rank, x, rows, zero, j, rank)


@loop
def take_away(table, side, to, first, count, worker, keep):
    """to = keep to - W' H.  [eq. 76]"""
    rows, rank, w = table[ROWS + side], table[RANK + side], table[W + side]
    h, one = table[H + side] + 4 * rank * first, np.float32(1)
    if table[HALF]:
        _, half_w, half_h = half_places(table, side, count, worker)
        multiply_half(table, TRANSPOSED, PLAIN, rows, count, rank, -one, half_w, rank, half_h, rank, keep, to, rows)
    else:
        multiply(table, TRANSPOSED, PLAIN, rows, count, rank, -one, w, rank, h, rank, keep, to, rows)


@loop
def half_places(table, side, count, worker):
    """Where a worker has x, W and H in half as many bits."""
    rows, rank = table[ROWS + side], table[RANK + side]
    memory = whole_numbers(table[HALF_MEMORY], worker + 1)[worker]
    w = memory + aligned(2 * rows * count)
    return memory, w, w + aligned(2 * rank * rows)


def half_size(rows, rank, count):
    """Bytes of that."""
    return aligned(2 * rows * count) + aligned(2 * rank * rows) + aligned(2 * rank * count)


@loop
def to_half(source, count, rows, to):
    """Round to bfloat16, to nearest, float32 frames at an address; returns the sum of their squares."""
    bits, halves, total = words(source, count, rows), half_words(to, count, rows), 0.0
    for t in range(count):
        row, out, one = bits[t], halves[t], np.float32(0)
        for d in range(row.shape[0]):
            word = row[d]
            number = np.uint32(word).view(np.float32)
            one += number * number
            even = uint32(uint32(word >> uint32(16)) & uint32(1))
            out[d] = uint16(uint32(uint32(word + uint32(0x7FFF)) + even) >> uint32(16))
        total += one
    return total


@loop
def total(table, which, workers):
    found = 0.0
    for worker in range(workers):
        found += doubles(table[SUMS] + 8 * NUM_SUMS * worker, NUM_SUMS)[which]
    return found


@loop
def norm_factor(table, side, workers):
    """gamma.  [eq. 37]"""
    after = total(table, AFTER + side, workers)
    before = after + total(table, TAKEN + side, workers)
    return np.sqrt(before / after) if after > 0 else 1.0


@loop
def change(table, x, count, worker, workers, turn):
    """One worker's columns of the weights, and its share of what else there is.

    x: where the derivatives of the outputs lie, as `look_at_frames` left them; count: frames of the minibatch; turn:
    layers take turns in who does what cannot be shared.
    """
    rows, cols = table[ROWS + OUT], table[ROWS + IN]
    numbers = doubles(table[NUMBERS], HISTORY + 1)
    scale = norm_factor(table, OUT, workers) * norm_factor(table, IN, workers)
    bound, rate = scale * total(table, BOUND, workers), numbers[RATE]
    if bound * rate > numbers[LIMIT]:  # [eq. 85]
        rate = numbers[LIMIT] / bound if np.isfinite(bound) else 0.0
    step, keep = np.float32(-rate * scale), np.float32(numbers[KEEP])
    start, stop = cols * worker // workers, cols * (worker + 1) // workers
    multiply(
        table, PLAIN, TRANSPOSED, rows, stop - start, count, step, x, rows, table[REDUCED] + 4 * start, cols,
        keep, table[WEIGHT] + 4 * rows * start, rows,
    )  # fmt: skip
    if table[BIAS] and worker == (turn + 1) % workers:
        multiply(table, PLAIN, PLAIN, rows, 1, count, step, x, rows, table[REDUCED_ONE], count, keep, table[BIAS], rows)
    for side in range(2):
        if table[UPDATES + side] and worker == (turn + side) % workers:
            update_estimate(table, side, count, workers)


@loop
def update_estimate(table, side, count, workers):
    """The estimate of the next minibatch, on one side.  [eq. 54 to 66; see next_scales in online.py]"""
    rank, dim, w, j = table[RANK + side], dimension(table, side), table[W + side], table[J + side]
    one, zero = np.float32(1), np.float32(0)
    gathered = singles(j, rank * dim)
    for other in range(1, workers):
        part = singles(j + 4 * rank * dim * other, rank * dim)
        for i in range(rank * dim):
            gathered[i] += part[i]
    size = aligned(4 * rank * rank)
    k = table[SCRATCH + side]
    l, factor, z = k + size, k + 2 * size, k + 3 * size
    multiply(table, PLAIN, TRANSPOSED, rank, rank, dim, one, j, rank, j, rank, zero, k, rank)  # [eq. 79]
    multiply(table, PLAIN, TRANSPOSED, rank, rank, dim, one, w, rank, j, rank, zero, l, rank)  # [eq. 78]
    scales, numbers = doubles(table[SCALES + side], rank + 2), doubles(table[NUMBERS], HISTORY + 1)
    before = total(table, AFTER + side, workers) + total(table, TAKEN + side, workers)
    eta = -np.expm1(-count / numbers[HISTORY])
    old = np.empty(rank, np.float32)
    doubtful = next_estimate(
        scales, reduction(table, side), frames(k, rank, rank), frames(l, rank, rank), before, eta, count, dim,
        numbers[ALPHA], table[EIGEN], z, frames(factor, rank, rank), old,
    )  # fmt: skip
    if doubtful < 0:
        return
    matrix, estimate = frames(j, dim, rank), frames(w, dim, rank)
    for d in range(dim):
        to, own = matrix[d], estimate[d]
        for r in range(rank):
            to[r] += old[r] * own[r]  # [eq. 66]
    multiply(table, PLAIN, PLAIN, rank, dim, rank, one, factor, rank, j, rank, zero, w, rank)  # [eq. 64]
    if doubtful:
        check_orthogonality(table, side)


@loop
def check_orthogonality(table, side):
    """Say in DOUBTFUL whether R's rows have ceased to be orthonormal.  [B.3.1]"""
    rank, w, to, dim = table[RANK + side], table[W + side], table[SCRATCH + side], dimension(table, side)
    multiply(table, PLAIN, TRANSPOSED, rank, rank, dim, np.float32(1), w, rank, w, rank, np.float32(0), to, rank)
    products = frames(to, rank, rank)
    root = np.sqrt(reduction(table, side))
    for r in range(rank):
        for s in range(rank):
            deviation = products[r, s] / (root[r] * root[s]) - (1.0 if r == s else 0.0)
            if not abs(deviation) <= LARGEST_DEVIATION:
                table[DOUBTFUL + side] = 1


@loop
def next_estimate(scales, e, k_squares, l_squares, before, eta, count, dim, alpha, eigen, scratch, factor, old_scales):
    """D and rho in scales, and A' in factor; 1 where orthogonality is in doubt, -1 where nothing was changed.

    scratch: where memory for Z and all that follows lies.
    """
    rank = e.shape[0]
    new, kept, rho = eta / count, 1 - eta, scales[rank]
    old, inverse = np.empty(rank), np.empty(rank)
    sum_d = 0.0
    for r in range(rank):
        sum_d += scales[r]
        old[r], inverse[r] = scales[r] + rho, 1 / np.sqrt(e[r])
    z = doubles(scratch, rank * rank).reshape((rank, rank))
    c = doubles(scratch + aligned(8 * rank * rank), rank)
    for r in range(rank):
        for s in range(rank):
            k = 0.5 * (float(k_squares[r, s]) + float(k_squares[s, r]))
            # W J' and J W' apart: R stays orthonormal even where rounding made them differ.
            l = float(l_squares[r, s]) * old[s] + float(l_squares[s, r]) * old[r]
            z[r, s] = inverse[r] * inverse[s] * (new * new * k + new * kept * l)  # [eq. 54]
            if not np.isfinite(z[r, s]):
                return -1
        z[r, r] += (kept * old[r]) ** 2
    if not np.isfinite(before):
        return -1
    if not eigenvectors(eigen, scratch, rank):
        return -1
    floor, doubtful, sum_root = (kept * rho) ** 2, 0, 0.0
    for r in range(rank):
        if c[r] < floor:
            c[r], doubtful = floor, 1
        sum_root += np.sqrt(c[r])
    if c[rank - 1] > LARGEST_CONDITION * c[0]:
        doubtful = 1
    found = (new * before + kept * (dim * rho + sum_d) - sum_root) / (dim - rank)  # [eq. 56]
    next_rho = max(SMALLEST, found)
    sum_d = 0.0
    for r in range(rank):
        old_scales[r] = old[r] * (kept / new)
        scales[r] = max(np.sqrt(c[rank - 1 - r]) - found, SMALLEST)  # [eq. 57]
        sum_d += scales[r]
    scales[rank] = next_rho  # [eq. 58]
    beta = next_rho * (1 + alpha) + alpha / dim * sum_d
    for r in range(rank):
        scale = new * np.sqrt(1 / (beta / scales[r] + 1) / c[rank - 1 - r])
        for s in range(rank):
            factor[s, r] = scale * z[rank - 1 - r, s] * inverse[s]  # [eq. 65]
    return doubtful


@loop
def eigenvectors(function, scratch, rank):
    """Overwrite a symmetric matrix by its eigenvectors, a row each, values rising behind it, by LAPACK's dsyevd."""
    values = scratch + aligned(8 * rank * rank)
    whole = values + aligned(8 * rank)
    work = whole + aligned(8 * (5 * rank + 16))
    numbers = whole_numbers(whole, 8)  # read as 32 bits by libraries that have no more
    numbers[0], numbers[1], numbers[2], numbers[3] = rank, 1 + 6 * rank + 2 * rank * rank, 3 + 5 * rank, 0
    numbers[4], numbers[5] = ord("V"), ord("L")
    call_with_pointers(
        function,
        (
            whole + 32, whole + 40, whole, scratch, whole, values,
            work, whole + 8, whole + 64, whole + 16, whole + 24,
        ),
    )  # fmt: skip
    return numbers[3] == 0


@loop
def aligned(size):
    """Bytes, a multiple of those that libraries want matrices to begin at, to give the same bits in every run."""
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def scratch_size(rank):
    """Bytes that `update_estimate` needs."""
    doubles = aligned(8 * rank * rank) + aligned(8 * rank)
    return 3 * aligned(4 * rank * rank) + doubles + aligned(8 * (5 * rank + 16)) + 8 * (1 + 6 * rank + 2 * rank * rank)


def reduce_layer(p):
    """p: the layer's table, derivatives of its outputs, its inputs, first frame, frames, worker."""
    look_at_frames(whole_numbers(p[0], FIELDS), p[1], p[2], p[3], p[4], p[5])


def change_layer(p):
    """p: the layer's table, derivatives of its outputs, frames, worker, workers, turn."""
    change(whole_numbers(p[0], FIELDS), p[1], p[2], p[3], p[4], p[5])
