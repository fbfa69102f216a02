"""Frames multiplied by the inverse of the Fisher matrix's factor in the registers of
acoustic/runtime/tile_instructions.py: what `project`
and `take_away` of layer_kernels.py do in two products of a library, which write and read everything in between.

Sixteen frames after the other: x' = x - W' W x, x (16, dim), frames being rows.  Sizes are rounded up to whole tiles:
of W (rank, dim) there are two copies, tile after tile, as the second operands of both products.  What is rounded to
bfloat16, and where sums are float32, is as there.

Of 512 frames that takes 0.71 ms a thread instead of 1.05 for the layers of a 792-512x3-183 network, 2.3 instead of 3.8
for five p-norm layers of 2000; what is left is traffic of memory.  To correct the product of both factors instead of
the frames, W' (W x y') and so on, saves that traffic, but takes more products: no gain for square layers.
"""

import numpy as np
from numba import uint16, uint32

from acoustic.kernels.compiled.elementwise_loops import inline
from acoustic.runtime.pointers import frames, half_words, prefetch, singles, whole_numbers, words
from acoustic.runtime.tile_instructions import add_product, clear, configure, load, release, store
from acoustic.training.natural_gradient.frame_kernels import add_bias, rounded, squares_and_sum
from acoustic.training.natural_gradient.layer_table import (
    BIAS,
    HALF_MEMORY,
    HALF_W,
    IN,
    RANK,
    ROWS,
    UPDATES,
    J,
    W,
    aligned,
    dimension,
    is_current,
    loop,
    set_current,
)

FRAMES = 16  # of a tile
TILE = 1024  # bytes of one
MOST_RANK = 96  # all of a frame's H, as first operands of a product, fit into three tiles
SHAPE = 64  # bytes that say of what shape tiles are


@inline
def whole(size, part):
    """size, rounded up."""
    return (size + part - 1) // part * part


@loop
def places(table, side, worker, count):
    """Where a worker has x and H in bfloat16, H, the shapes of tiles, and the padded frames of a group."""
    rows, rank = whole(table[ROWS + side], 32), whole(table[RANK + side], 32)
    shape = whole_numbers(table[HALF_MEMORY], worker + 1)[worker]
    padded = shape + 2 * SHAPE
    h = padded + 4 * FRAMES * rows
    half_h = h + 4 * FRAMES * rank
    half_x = half_h + 2 * rank * whole(count, FRAMES)
    return half_x, half_h, h, shape, padded


@loop
def memory_size(rows, rank, count):
    """Bytes of all that."""
    rows, rank, count = whole(rows, 32), whole(rank, 32), whole(count, FRAMES)
    return 2 * SHAPE + FRAMES * 4 * (rows + rank) + 2 * count * (rows + rank)


@loop
def reduce_frames(table, side, x, to, count, worker, norms, ones, summed):
    """to = x - W' (W x) of some frames; both may be the same.  [eq. 75, 76]

    norms: the squared norms of what is left, plus ones^2 where there is a bias; ones: on the side of the inputs, the 1
    that the bias is multiplied by, as it is left; on the other what frames are multiplied by when they are added to
    `summed`.  Returns the sums of squares after and before.
    """
    rows, rank, updates = table[ROWS + side], table[RANK + side], table[UPDATES + side]
    deep, wide = whole(rows, 32), whole(rank, 32)
    half_x, half_h, h, shape, padded = places(table, side, worker, count)
    for_h, for_x = copies(table, side)
    has_bias = side == IN and table[BIAS] != 0
    column = singles(table[W + side] + 4 * rank * rows, rank if has_bias else 0)
    last = singles(table[J + side] + 4 * rank * (dimension(table, side) * worker + rows), rank if has_bias else 0)
    last[:] = 0
    before, after = 0.0, 0.0
    set_shape(shape, FRAMES)
    set_shape(shape + SHAPE, rows % FRAMES)
    configure(shape)
    for start in range(0, count, FRAMES):
        size = min(FRAMES, count - start)
        # All of the minibatch's are kept for J.
        my_x, my_h = (half_x + 2 * deep * start, half_h + 2 * wide * start) if updates else (half_x, half_h)
        offset = 4 * rows * start
        before += halve(x + offset, to + offset, size, rows, deep, my_x)
        project(my_x, deep, for_h, whole(rank, FRAMES), h, x + offset + 4 * rows * FRAMES, to - x)
        if has_bias:
            before += size
            add_bias(column, last, frames(h, size, whole(rank, FRAMES)), ones[start : start + size])
        halve_negative(h, whole(rank, FRAMES), wide, my_h)
        if size == FRAMES:
            take_away(my_h, wide, for_x, to + offset, rows, rows, shape)
        else:
            pad(to + offset, size, rows, deep, padded)
            take_away(my_h, wide, for_x, padded, deep, deep, shape)
            unpad(padded, size, rows, deep, to + offset)
        left, mine = frames(to + offset, size, rows), slice(start, start + size)
        if side == IN:
            after += squares(left, norms[mine], ones[mine], has_bias)
        else:
            after += squares_and_sum(left, norms[mine], ones[mine], summed)
    release()
    return after, before


@loop
def set_shape(address, columns):
    """All tiles have 16 rows of 64 bytes, but those that `take_away` uses for W and x so many columns."""
    numbers = whole_numbers(address, 8)
    numbers[:] = 0
    numbers[0] = 1  # which of the processor's ways to say it
    numbers[2] = (0x0040 << 48) | (4 * columns << 32) | (4 * columns << 16) | 4 * columns
    numbers[3] = 0x0040004000400040
    numbers[6] = 0x1010101010101010


@loop
def halve(x, to, count, rows, deep, half_x):
    """Sixteen frames in bfloat16, with zeros around them, and as they are, if that is elsewhere; returns the sum of
    their squares.
    """
    bits, copy, halves, total = words(x, count, rows), words(to, count, rows), half_words(half_x, FRAMES, deep), 0.0
    for t in range(FRAMES):
        out = halves[t]
        start = 0
        if t < count:
            start = rows
            total += halve_frame(bits[t], out)
            if x != to:
                own, given = copy[t], bits[t]
                for d in range(rows):
                    own[d] = given[d]
        for d in range(start, deep):
            out[d] = uint16(0)
    return total


@loop
def halve_frame(bits, halves):
    total = np.float32(0)
    for d in range(bits.shape[0]):
        word = bits[d]
        number = np.uint32(word).view(np.float32)
        total += number * number
        halves[d] = uint16(rounded(word))
    return total


@loop
def halve_negative(h, rank, wide, to):
    bits, halves = words(h, FRAMES, rank), half_words(to, FRAMES, wide)
    for t in range(FRAMES):
        row, out = bits[t], halves[t]
        for r in range(rank):
            out[r] = uint16(rounded(uint32(row[r] ^ uint32(0x80000000))))
        for r in range(rank, wide):
            out[r] = uint16(0)


@loop
def pad(x, count, rows, deep, to):
    given, out = frames(x, count, rows), frames(to, FRAMES, deep)
    out[:] = 0
    for t in range(count):
        for d in range(rows):
            out[t, d] = given[t, d]


@loop
def unpad(x, count, rows, deep, to):
    given, out = frames(x, FRAMES, deep), frames(to, count, rows)
    for t in range(count):
        for d in range(rows):
            out[t, d] = given[t, d]


@loop
def project(x, deep, w, rank, h, upcoming, further):
    """h (16, rank) = x w'; meanwhile the frames to come are fetched, and, so far from there, what they will go to."""
    across, steps = rank // 16, deep // 32
    for first in range(0, across, 5):
        many = min(5, across - first)
        clear(0)
        clear(1)
        clear(2)
        clear(3)
        clear(4)
        for k in range(steps):
            place = w + TILE * (k * across + first)
            if first == 0:
                for line in range(2048 * k, 2048 * k + 2048, 64):
                    prefetch(upcoming + line, 0)
                if further:
                    for line in range(2048 * k, 2048 * k + 2048, 64):
                        prefetch(upcoming + further + line, 1)
            load(5, x + 64 * k, 2 * deep)
            load(6, place, 64)
            add_product(0, 5, 6)
            if many > 1:
                load(7, place + TILE, 64)
                add_product(1, 5, 7)
            if many > 2:
                load(6, place + 2 * TILE, 64)
                add_product(2, 5, 6)
            if many > 3:
                load(7, place + 3 * TILE, 64)
                add_product(3, 5, 7)
            if many > 4:
                load(6, place + 4 * TILE, 64)
                add_product(4, 5, 6)
        out = h + 64 * first
        store(0, out, 4 * rank)
        if many > 1:
            store(1, out + 64, 4 * rank)
        if many > 2:
            store(2, out + 128, 4 * rank)
        if many > 3:
            store(3, out + 192, 4 * rank)
        if many > 4:
            store(4, out + 256, 4 * rank)


@loop
def take_away(h, wide, w, x, distance, rows, shape):
    """x (16, rows) += h w; distance: of its frames."""
    steps = wide // 32
    load(5, h, 2 * wide)
    load(6, h + 64 * (steps > 1), 2 * wide)
    load(7, h + 128 * (steps > 2), 2 * wide)
    stride, step = 4 * distance, TILE * steps
    full = rows // 16
    for d in range(0, full - 1, 2):
        load(0, x + 64 * d, stride)
        load(1, x + 64 * d + 64, stride)
        place = w + step * d
        load(2, place, 64)
        add_product(0, 5, 2)
        load(3, place + step, 64)
        add_product(1, 5, 3)
        if steps > 1:
            load(2, place + TILE, 64)
            add_product(0, 6, 2)
            load(3, place + step + TILE, 64)
            add_product(1, 6, 3)
        if steps > 2:
            load(2, place + 2 * TILE, 64)
            add_product(0, 7, 2)
            load(3, place + step + 2 * TILE, 64)
            add_product(1, 7, 3)
        store(0, x + 64 * d, stride)
        store(1, x + 64 * d + 64, stride)
    for d in range(full // 2 * 2, (rows + 15) // 16):
        if d == full:
            configure(shape + SHAPE)
            load(5, h, 2 * wide)
            load(6, h + 64 * (steps > 1), 2 * wide)
            load(7, h + 128 * (steps > 2), 2 * wide)
        place = w + step * d
        load(0, x + 64 * d, stride)
        load(2, place, 64)
        add_product(0, 5, 2)
        if steps > 1:
            load(2, place + TILE, 64)
            add_product(0, 6, 2)
        if steps > 2:
            load(2, place + 2 * TILE, 64)
            add_product(0, 7, 2)
        store(0, x + 64 * d, stride)
        if d == full:
            configure(shape)


@loop
def squares(x, norms, ones, has_bias):
    total = 0.0
    for t in range(x.shape[0]):
        one, row = np.float32(0), x[t]
        for d in range(row.shape[0]):
            one += row[d] * row[d]
        norms[t] = one + ones[t] * ones[t] if has_bias else one
        total += norms[t]
    return total


@loop
def copies(table, side):
    """Where both copies of W lie, made again when W is no longer that of the scales before them.

    Workers that find them old at the same time write the same.
    """
    rows, rank = table[ROWS + side], table[RANK + side]
    place = table[HALF_W + side]
    for_h = place + aligned(8 * (rank + 2))
    for_x = for_h + 2 * whole(rows, 32) * whole(rank, 16)
    if not is_current(table, side, place):
        lay_out(table[W + side], rows, rank, for_h, for_x)
        set_current(table, side, place)
    return for_h, for_x


def estimate_size(rows, rank, workers):
    """Bytes of that."""
    return aligned(8 * (rank + 2)) + 2 * whole(rows, 32) * (whole(rank, 16) + whole(rank, 32))


@loop
def lay_out(w, rows, rank, for_h, for_x):
    """Tiles of W' (dim, rank), one row of tiles after the other, and of W (rank, dim), one column after the other."""
    bits, wide = words(w, rows, rank), whole(rank, 32)
    halves = np.zeros((2, wide), np.uint16)
    pairs = halves.view(np.uint32)
    across = whole(rank, 16) // 16
    columns = words(for_x, whole(rows, 32) // 16, 8 * wide)  # (pairs of rows, 16) in each
    for d in range(0, whole(rows, 32), 2):
        for k in range(2):
            out = halves[k]
            if d + k < rows:
                row = bits[d + k]
                for r in range(rank):
                    out[r] = uint16(rounded(row[r]))
            else:
                out[:] = 0
        place = for_h + TILE * across * (d // 32) + 2 * FRAMES * (d % 32)
        for k in range(across):
            tile = words(place + TILE * k, 1, FRAMES)[0]
            for r in range(FRAMES):
                tile[r] = uint32(halves[0, FRAMES * k + r]) | uint32(uint32(halves[1, FRAMES * k + r]) << uint32(16))
        for k in range(2):
            column, given, at = columns[d // FRAMES], pairs[k], (d + k) % FRAMES
            for r in range(wide // 2):
                column[FRAMES * r + at] = given[r]
