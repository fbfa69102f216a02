"""Compiled update of the Fisher factors of the online natural gradient; online.py has the same in array operations."""

from typing import Any

import numpy as np

from acoustic.kernels.compiled.elementwise_loops import loop
from acoustic.runtime.call_registry import table_call
from acoustic.runtime.pointers import call_with_pointers, doubles, frames, whole_numbers
from acoustic.training.natural_gradient.layer_table import (
    aligned,
    dimension,
    layer_at,
    multiply,
    reduction,
    scales_of,
    squares_of,
)
from acoustic.training.natural_gradient.online import LARGEST_CONDITION, LARGEST_DEVIATION, SMALLEST
from readers.common.arrays import Array


@loop
def update_estimate(layer: Any, side: int, count: int, workers: int) -> None:
    """Compute the estimate of one side for the next minibatch. [eq. 54 to 66; see OnlineFisher in online.py]"""
    rank = layer.rank[side]
    dim = dimension(layer, side)
    w = layer.w[side]
    j = layer.j[side]
    scales = scales_of(layer, side)
    before, _ = squares_of(layer, side, workers)
    eta = -np.expm1(-count / layer.history)
    old = np.empty(rank, np.float32)
    for r in range(rank):
        old[r] = (scales[r] + scales[rank]) * (1 - eta) / eta * count
    b = frames(j, dim, rank)
    estimate = frames(w, dim, rank)
    for d in range(dim):
        to = b[d]
        estimate_column = estimate[d]
        for r in range(rank):
            to[r] += old[r] * estimate_column[r]  # [eq. 66]
        for worker in range(1, workers):
            part = frames(j + 4 * rank * (dim * worker + d), 1, rank)[0]
            for r in range(rank):
                to[r] += part[r]
    scratch = layer.scratch[side]
    squares = frames(scratch, rank, rank)
    factor = frames(scratch + aligned(4 * rank * rank), rank, rank)
    multiply(layer, b.T, b, squares.T)
    doubtful = next_estimate(layer, side, squares, factor, scratch + 2 * aligned(4 * rank * rank), before, eta, count)
    if doubtful < 0:
        return
    multiply(layer, factor, b.T, estimate.T)  # [eq. 64]
    if doubtful:
        check_orthogonality(layer, side)


@loop
def check_orthogonality(layer: Any, side: int) -> None:
    """Set DOUBTFUL if the rows of R are no longer orthonormal. [B.3.1]"""
    rank = layer.rank[side]
    w = frames(layer.w[side], dimension(layer, side), rank)
    products = frames(layer.scratch[side], rank, rank)
    multiply(layer, w.T, w, products.T)
    root = np.sqrt(reduction(layer, side))
    for r in range(rank):
        for s in range(rank):
            deviation = products[r, s] / (root[r] * root[s]) - (1.0 if r == s else 0.0)
            if not abs(deviation) <= LARGEST_DEVIATION:
                layer.doubtful[side] = 1


@loop
def next_estimate(
    layer: Any, side: int, squares: Array, factor: Array, scratch: int, before: float, eta: float, count: int
) -> int:
    """Write D and rho to the scales and A' [eq. 65] to `factor`.

    squares: B B', of which Z [eq. 54] is a multiple as long as the rows of R are orthonormal, and which brings them
    back to that if they are not quite. scratch: address of memory for Z and what follows it. Returns 1 if orthogonality
    is in doubt, -1 if nothing was changed because something is not finite, else 0.
    """
    rank = layer.rank[side]
    dim = dimension(layer, side)
    alpha = layer.alpha
    scales = scales_of(layer, side)
    e = reduction(layer, side)
    new = eta / count
    retained = 1 - eta
    rho = scales[rank]
    inverse = 1 / np.sqrt(e)
    sum_d = 0.0
    for r in range(rank):
        sum_d += scales[r]
    z = doubles(scratch, rank * rank).reshape((rank, rank))
    c = doubles(scratch + aligned(8 * rank * rank), rank)
    checked = before
    for r in range(rank):
        row = z[r]
        square_row = squares[r]
        scale = new * new * inverse[r]
        for s in range(rank):
            row[s] = scale * inverse[s] * square_row[s]
            checked += row[s]
    if not np.isfinite(checked):
        return -1
    if not eigenvectors(layer.eigen, scratch, rank):
        return -1
    floor = (retained * rho) ** 2
    doubtful = 0
    sum_root = 0.0
    for r in range(rank):
        if c[r] < floor:
            c[r] = floor
            doubtful = 1
        sum_root += np.sqrt(c[r])
    if c[rank - 1] > LARGEST_CONDITION * c[0]:
        doubtful = 1
    unfloored_rho = (new * before + retained * (dim * rho + sum_d) - sum_root) / (dim - rank)  # [eq. 56]
    next_rho = max(SMALLEST, unfloored_rho)
    sum_d = 0.0
    for r in range(rank):
        scales[r] = max(np.sqrt(c[rank - 1 - r]) - unfloored_rho, SMALLEST)  # [eq. 57]
        sum_d += scales[r]
    scales[rank] = next_rho  # [eq. 58]
    beta = next_rho * (1 + alpha) + alpha / dim * sum_d
    for r in range(rank):
        scale = new * np.sqrt(1 / (beta / scales[r] + 1) / c[rank - 1 - r])
        row = factor[r]
        vector = z[rank - 1 - r]
        for s in range(rank):
            row[s] = scale * vector[s] * inverse[s]  # [eq. 65]
    return doubtful


@loop
def eigenvectors(function: int, scratch: int, rank: int) -> bool:
    """Replace a symmetric matrix by its eigenvectors, one per row, followed by its eigenvalues in ascending order.

    Uses dsyevd of LAPACK; returns whether it succeeded.
    """
    values = scratch + aligned(8 * rank * rank)
    integers = values + aligned(8 * rank)
    work = integers + aligned(8 * (5 * rank + 16))
    numbers = whole_numbers(integers, 8)  # libraries with 32-bit integers read the low half
    numbers[0] = rank
    numbers[1] = 1 + 6 * rank + 2 * rank * rank
    numbers[2] = 3 + 5 * rank
    numbers[3] = 0
    numbers[4] = ord("V")
    numbers[5] = ord("L")
    call_with_pointers(
        function,
        (
            integers + 32, integers + 40, integers, scratch, integers, values,
            work, integers + 8, integers + 64, integers + 16, integers + 24,
        ),
    )  # fmt: skip
    return numbers[3] == 0


def scratch_size(rank: int) -> int:
    """Return the bytes of scratch memory that `update_estimate` needs."""
    doubles = aligned(8 * rank * rank) + aligned(8 * rank)
    return 2 * aligned(4 * rank * rank) + doubles + aligned(8 * (5 * rank + 16)) + 8 * (1 + 6 * rank + 2 * rank * rank)


@table_call
def estimate_layer(p: Array) -> None:
    """p: record of the layer, frames, worker, workers, turn."""
    layer = layer_at(p[0])
    workers = p[3]
    for side in range(2):
        if layer.updates[side] and p[2] == (p[4] + side) % workers:
            update_estimate(layer, side, p[1], workers)
