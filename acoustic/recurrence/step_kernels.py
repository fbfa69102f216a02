"""Compiled kernels of the steps of a loop; see loop_plan.py and compiled_loop.py.

values and gradients (columns, rows) float32 in C order: column t * S + s holds the values of all nodes at step t of
slot s. constants: operands without frames, one after another. Threads divide the slots. Tables of a pass:

    segments (n, 3)    PRODUCTS or OPERATIONS, first and end of their rows in that table
    products (2 n, 8)  address of the parameter, its storage (PANELS, PLAIN or TRANSPOSED), distance of its columns,
                       rows, columns, first row of operand and result, whether to add to the result; the second half is
                       for every second step, in the opposite order: parameters read last are then still in the cache
    operations (n, 7)  forward: code, first row of result and operands, number of rows, whether to add, 0
                       backward: code, the same rows, SKIP, ADD or WRITE for the gradient of either operand
    delays (n, 7)      first row of the delayed node and of the delay, number of rows, steps (negative: ahead), offset
                       in `before` of the values before the first step, distance of columns there, index in `usable`
    zeroed (n, 2)      backward: first row and number of rows of gradients that nothing outside has written
    place (3)          number of slots, first slot of this thread and end
    functions (2)      address of sgemm, and 1 if its dimensions have 64 bits
"""

from typing import NamedTuple

import numpy as np
from numba import float32

from acoustic.kernels.compiled.elementwise_loops import ONE, ZERO, inline, loop, relu, sigmoid, tanh
from acoustic.recurrence.codes import (
    ADD,
    COLUMN,
    COPY,
    NEGATE,
    OPERATIONS,
    PANELS,
    SIGMOID,
    SKIP,
    TANH,
    TIMES,
    TIMES_COLUMN,
)  # fmt: skip
from acoustic.recurrence.panel_products import multiply_panels
from acoustic.runtime.call_registry import matrix, numbers, table, table_calls, usable_steps, vector
from acoustic.runtime.gemm_calls import sgemm
from acoustic.runtime.memory import PLAIN
from readers.common.arrays import Array
from readers.common.kernels import njit

NUMBER_BYTES = 4

compiled = njit(cache=True, nogil=True)


class LoopTables(NamedTuple):
    """What a thread computes in each step; see the head of this file for the columns."""

    segments: np.ndarray
    products: np.ndarray
    operations: np.ndarray
    delays: np.ndarray


@inline
def copy(out: Array, x: Array) -> None:
    """out[:] = x, which numba would compile with a check of shapes that takes two seconds to compile."""
    for i in range(out.shape[0]):
        out[i] = x[i]


# With `keep` the following add to `out` instead of writing it. The compiler makes a loop for either case.


@inline
def add(out: Array, x: Array, keep: bool) -> None:
    for i in range(out.shape[0]):
        out[i] = x[i] + (out[i] if keep else ZERO)


@inline
def subtract(out: Array, x: Array, keep: bool) -> None:
    for i in range(out.shape[0]):
        out[i] = (out[i] if keep else ZERO) - x[i]


@inline
def add_product(out: Array, x: Array, y: Array, keep: bool) -> None:
    for i in range(out.shape[0]):
        out[i] = x[i] * y[i] + (out[i] if keep else ZERO)


@loop
def operate(values: Array, constants: Array, operations: Array, first: int, last: int) -> None:
    """Apply the operations to some columns."""
    for column in range(first, last):
        frame = values[column]
        for k in range(operations.shape[0]):
            code = operations[k, 0]
            rows = operations[k, 4]
            keep = operations[k, 5]
            out = frame[operations[k, 1] : operations[k, 1] + rows]
            source = constants if code == COLUMN else frame
            x = source[operations[k, 2] : operations[k, 2] + rows]
            if code in (COPY, COLUMN):
                add(out, x, keep)
            elif code in (TIMES, TIMES_COLUMN):
                source = constants if code == TIMES_COLUMN else frame
                add_product(out, x, source[operations[k, 3] : operations[k, 3] + rows], keep)
            elif code == NEGATE:
                subtract(out, x, keep)
            else:
                if operations[k, 1] != operations[k, 2]:
                    copy(out, x)
                if code == SIGMOID:
                    sigmoid(out)
                elif code == TANH:
                    tanh(out)
                else:
                    relu(out)


@inline
def activation_gradient(code: int, out: Array, grad: Array, value: Array, keep: bool) -> None:
    """out (+)= grad f'(x), computed from the value f(x); out may be grad."""
    for i in range(out.shape[0]):
        if code == SIGMOID:
            new = grad[i] * (value[i] * (ONE - value[i]))
        elif code == TANH:
            new = grad[i] * (ONE - value[i] * value[i])
        else:
            new = grad[i] if value[i] > ZERO else ZERO
        out[i] = new + (out[i] if keep else ZERO)


@loop
def operate_backward(
    gradients: Array, values: Array, constants: Array, sums: Array, operations: Array, first: int, last: int
) -> None:
    """Compute the gradients of some columns, and add to those of the constants, sums."""
    for column in range(first, last):
        frame = values[column]
        grads = gradients[column]
        for k in range(operations.shape[0]):
            code = operations[k, 0]
            rows = operations[k, 4]
            grad = grads[operations[k, 1] : operations[k, 1] + rows]
            a = operations[k, 2]
            b = operations[k, 3]
            if code == COLUMN:
                add(sums[a : a + rows], grad, True)
                continue
            if code == TIMES_COLUMN:
                add_product(sums[b : b + rows], grad, frame[a : a + rows], True)
            elif code == TIMES and operations[k, 6] != SKIP:
                add_product(grads[b : b + rows], grad, frame[a : a + rows], operations[k, 6] == ADD)
            if operations[k, 5] == SKIP:
                continue
            out = grads[a : a + rows]
            keep = operations[k, 5] == ADD
            if code == COPY:
                add(out, grad, keep)
            elif code == NEGATE:
                subtract(out, grad, keep)
            elif code == TIMES:
                add_product(out, grad, frame[b : b + rows], keep)
            elif code == TIMES_COLUMN:
                add_product(out, grad, constants[b : b + rows], keep)
            elif a == operations[k, 1]:
                activation_gradient(code, grad, grad, frame[a : a + rows], False)
            else:
                activation_gradient(code, out, grad, frame[operations[k, 1] : operations[k, 1] + rows], keep)


@loop
def read_delays(
    values: Array,
    before: Array,
    delays: Array,
    defaults: Array,
    usable: Array,
    step: int,
    slots: int,
    first: int,
    last: int,
) -> None:
    """Fill the values of the delays at one step; usable (D, T, S): whether there is a value."""
    for k in range(delays.shape[0]):
        source, row, rows, delay, start, distance, usable_index = delays[k]
        past = step - delay
        for slot in range(first, last):
            out = values[step * slots + slot, row : row + rows]
            # No value is known before the beginning of a sequence; before that of the minibatch it is held.
            if not usable[usable_index, step, slot]:
                out[:] = defaults[k]
            elif past >= 0:
                copy(out, values[past * slots + slot, source : source + rows])
            else:
                offset = start + (step * slots + slot) * distance
                copy(out, before[offset : offset + rows])


@loop
def add_delayed(gradients: Array, delays: Array, usable: Array, step: int, slots: int, first: int, last: int) -> None:
    """Add the gradients of the delays at one step to those of the steps that they were read from."""
    for k in range(delays.shape[0]):
        source, row, rows, delay, _, _, usable_index = delays[k]
        past = step - delay
        for slot in range(first, last):
            if past >= 0 and usable[usable_index, step, slot]:
                grad = gradients[step * slots + slot, row : row + rows]
                add(gradients[past * slots + slot, source : source + rows], grad, True)


@compiled
def multiply(functions: Array, product: Array, matrix: Array, first: int, last: int) -> None:
    """Compute one product of a step, from rows of some columns to other rows."""
    address, storage, distance, m, k, row, out, keep = product
    width = matrix.shape[1]
    start = matrix.ctypes.data + NUMBER_BYTES * width * first
    b = start + NUMBER_BYTES * row
    c = start + NUMBER_BYTES * out
    n = last - first
    if m == 0:
        return
    if storage == PANELS:
        multiply_panels(m, n, k, address, b, width, keep != 0, c, width)
        return
    sgemm(
        (functions[0], functions[1]),
        (m, n, k),
        (storage, address, distance),
        (PLAIN, b, width),
        (PLAIN, c, width),
        (ONE, float32(keep)),
    )


@compiled
def loop_forward(
    functions: Array,
    values: Array,
    constants: Array,
    tables: LoopTables,
    defaults: Array,
    usable: Array,
    before: Array,
    place: Array,
) -> None:
    """Compute this thread's share of all steps, the last step first if the delays look ahead."""
    segments, products, operations, delays = tables
    slots, first, last = place
    steps = values.shape[0] // slots
    half = products.shape[0] // 2
    for number in range(steps):
        step = number if delays[0, 3] > 0 else steps - 1 - number
        turn = products[half:] if number % 2 else products[:half]
        read_delays(values, before, delays, defaults, usable, step, slots, first, last)
        begin = step * slots + first
        end = step * slots + last
        for k in range(segments.shape[0]):
            if segments[k, 0] == OPERATIONS:
                operate(values, constants, operations[segments[k, 1] : segments[k, 2]], begin, end)
                continue
            for position in range(segments[k, 1], segments[k, 2]):
                multiply(functions, turn[position], values, begin, end)


@compiled
def loop_backward(
    functions: Array,
    gradients: Array,
    values: Array,
    constants: Array,
    sums: Array,
    tables: LoopTables,
    usable: Array,
    zeroed: Array,
    place: Array,
) -> None:
    """Compute this thread's share of the gradients inside, in the opposite order; sums: those of the constants."""
    segments, products, operations, delays = tables
    slots, first, last = place
    steps = values.shape[0] // slots
    half = products.shape[0] // 2
    for k in range(operations.shape[0]):
        code = operations[k, 0]
        a = operations[k, 2]
        b = operations[k, 3]
        rows = operations[k, 4]
        if code == COLUMN:
            sums[a : a + rows] = ZERO
        elif code == TIMES_COLUMN:
            sums[b : b + rows] = ZERO
    for k in range(zeroed.shape[0]):
        for column in range(gradients.shape[0]):
            if first <= column % slots < last:
                gradients[column, zeroed[k, 0] : zeroed[k, 0] + zeroed[k, 1]] = ZERO
    for number in range(steps):
        step = steps - 1 - number if delays[0, 3] > 0 else number
        turn = products[half:] if number % 2 else products[:half]
        begin = step * slots + first
        end = step * slots + last
        for k in range(segments.shape[0]):
            if segments[k, 0] == OPERATIONS:
                part = operations[segments[k, 1] : segments[k, 2]]
                operate_backward(gradients, values, constants, sums, part, begin, end)
                continue
            for position in range(segments[k, 1], segments[k, 2]):
                multiply(functions, turn[position], gradients, begin, end)
        add_delayed(gradients, delays, usable, step, slots, first, last)


table_calls(
    loop_forward=lambda p: loop_forward(
        numbers(p, 0), matrix(p, 2), vector(p, 5),
        LoopTables(table(p, 7), table(p, 10), table(p, 13), table(p, 16)),
        vector(p, 19), usable_steps(p, 21), vector(p, 25), numbers(p, 27),
    ),
    loop_backward=lambda p: loop_backward(
        numbers(p, 0), matrix(p, 2), matrix(p, 5), vector(p, 8), vector(p, 10),
        LoopTables(table(p, 12), table(p, 15), table(p, 18), table(p, 21)),
        usable_steps(p, 24), table(p, 28), numbers(p, 31),
    ),
)  # fmt: skip
