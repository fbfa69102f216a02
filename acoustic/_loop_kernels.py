"""The elementwise nodes of one step of a loop in one compiled pass; see fused_loop.py.

values and gradients (columns, rows of all nodes) float32 in C order: a column holds what all nodes of the loop have for
one frame.  operations (n, 7): what to do, the first row of the result, of both operands, how many rows, and what to do
with the gradient of either operand: SKIP, ADD, WRITE.  constants: columns one after the other.
"""

from numba import float32

from acoustic._kernels import ONE, TWO, exp32, loop

PLUS, MINUS, TIMES, SIGMOID, TANH, RELU, NEGATE, PLUS_COLUMN, TIMES_COLUMN = range(9)
SKIP, ADD, WRITE = range(3)
ZERO = float32(0)
SQUARE = 32


@loop
def forward(values, constants, operations, first, last):
    for column in range(first, last):
        for k in range(operations.shape[0]):
            code, rows = operations[k, 0], operations[k, 4]
            out = values[column, operations[k, 1] : operations[k, 1] + rows]
            x = values[column, operations[k, 2] : operations[k, 2] + rows]
            if code >= PLUS_COLUMN:
                y = constants[operations[k, 3] : operations[k, 3] + rows]
            else:
                y = values[column, operations[k, 3] : operations[k, 3] + rows]
            if code in (PLUS, PLUS_COLUMN):
                for i in range(rows):
                    out[i] = x[i] + y[i]
            elif code in (TIMES, TIMES_COLUMN):
                for i in range(rows):
                    out[i] = x[i] * y[i]
            elif code == SIGMOID:
                for i in range(rows):
                    out[i] = ONE / (ONE + exp32(-x[i]))
            elif code == TANH:
                for i in range(rows):
                    out[i] = TWO / (ONE + exp32(-TWO * x[i])) - ONE
            elif code == RELU:
                for i in range(rows):
                    out[i] = ZERO if x[i] < ZERO else x[i]  # NaN stays NaN
            elif code == MINUS:
                for i in range(rows):
                    out[i] = x[i] - y[i]
            else:
                for i in range(rows):
                    out[i] = -x[i]


@loop
def backward(gradients, values, constants, operations, first, last):
    for column in range(first, last):
        for k in range(operations.shape[0]):
            code, rows = operations[k, 0], operations[k, 4]
            grad = gradients[column, operations[k, 1] : operations[k, 1] + rows]
            value = values[column, operations[k, 1] : operations[k, 1] + rows]
            for side in range(2):
                what = operations[k, 5 + side]
                if what == SKIP:
                    continue
                out = gradients[column, operations[k, 2 + side] : operations[k, 2 + side] + rows]
                if code == TIMES_COLUMN:
                    other = constants[operations[k, 3] : operations[k, 3] + rows]
                else:
                    other = values[column, operations[k, 3 - side] : operations[k, 3 - side] + rows]
                if what == WRITE:
                    for i in range(rows):
                        out[i] = ZERO
                if code in (PLUS, PLUS_COLUMN) or (code == MINUS and side == 0):
                    for i in range(rows):
                        out[i] += grad[i]
                elif code in (TIMES, TIMES_COLUMN):
                    for i in range(rows):
                        out[i] += grad[i] * other[i]
                elif code == SIGMOID:
                    for i in range(rows):
                        out[i] += grad[i] * (value[i] * (ONE - value[i]))
                elif code == TANH:
                    for i in range(rows):
                        out[i] += grad[i] * (ONE - value[i] * value[i])
                elif code == RELU:
                    for i in range(rows):
                        out[i] += grad[i] if value[i] > ZERO else ZERO
                else:
                    for i in range(rows):
                        out[i] -= grad[i]


@loop
def turn(matrix, out):
    """out = the transpose of a matrix, a square of both at a time, which stays in the cache."""
    rows, cols = matrix.shape
    for row in range(0, rows, SQUARE):
        for column in range(0, cols, SQUARE):
            for i in range(row, min(row + SQUARE, rows)):
                for j in range(column, min(column + SQUARE, cols)):
                    out[j, i] = matrix[i, j]
