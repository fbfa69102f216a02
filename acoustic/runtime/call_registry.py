"""Calls of compiled loops and products by address, one after the other, from numbers in a table; see recorder.py.

A row of the table: the address of a function below, then what it takes: of an array its address and shape, of a product
what cblas_sgemm takes.
"""

import threading

import numpy as np
from numba import boolean, carray, cfunc, float32, int32, int64, njit, types

from acoustic.kernels.compiled import elementwise_loops, group_loops
from acoustic.recurrence import step_kernels
from acoustic.recurrence.panel_products import lay_panels
from acoustic.runtime import thread_sync
from acoustic.runtime.call_table import play_at
from acoustic.runtime.gemm_calls import call, call_pack, call_wide
from acoustic.runtime.pointers import pointer
from acoustic.training.natural_gradient.estimate_kernels import estimate_layer
from acoustic.training.natural_gradient.layer_kernels import change_layer, reduce_layer
from acoustic.training.rules import compiled_loops

PLACE = types.CPointer(types.int64)
SIGNATURE = types.void(PLACE)


@njit(inline="always")
def vector(p, k):
    return carray(pointer(p[k]), (p[k + 1],), float32)


@njit(inline="always")
def matrix(p, k):
    return carray(pointer(p[k]), (p[k + 1], p[k + 2]), float32)


@njit(inline="always")
def numbers(p, k):
    return carray(pointer(p[k]), (p[k + 1],), int64)


@njit(inline="always")
def table(p, k):
    return carray(pointer(p[k]), (p[k + 1], p[k + 2]), int64)


@njit(inline="always")
def usable(p, k):
    return carray(pointer(p[k]), (p[k + 1], p[k + 2], p[k + 3]), boolean)


@njit(inline="always")
def real(bits):
    return np.int32(bits).view(np.float32)


def product(p):
    """scale a b + keep c; p: function, first, second, m, n, k, a, lda, b, ldb, c, ldc, scale, keep."""
    call(
        p[0], int32(p[1]), int32(p[2]), int32(p[3]), int32(p[4]), int32(p[5]),
        real(p[12]), p[6], int32(p[7]), p[8], int32(p[9]), real(p[13]), p[10], int32(p[11]),
    )  # fmt: skip


def wide_product(p):
    """The same for a function whose dimensions have 64 bits."""
    call_wide(
        p[0], int32(p[1]), int32(p[2]), p[3], p[4], p[5],
        real(p[12]), p[6], p[7], p[8], p[9], real(p[13]), p[10], p[11],
    )  # fmt: skip


def pack(p):
    """p: function, PLAIN or TRANSPOSED, m, n, k, the matrix, its columns' distance, and where to."""
    call_pack(p[0], int32(p[1]), int32(p[2]), int32(p[3]), int32(p[4]), p[5], int32(p[6]), p[7])


def panels(p):
    """p: whether to transpose, m, k, the matrix, its columns' distance, and where to."""
    lay_panels(p[0], p[1], p[2], p[3], p[4], p[5])


def meet(p):
    """Wait for other threads; p: the flags of a team, this thread and how many there are."""
    place = numbers(p, 2)
    thread_sync.meet(numbers(p, 0), place[0], place[1])


def play_table(p):
    """Make the calls of another table; p: its address, its rows."""
    play_at(p[0], p[1])


def loop_forward(p):
    """The steps of a loop: see _loop_kernels.forward, whose arrays p has in its order."""
    step_kernels.forward(
        numbers(p, 0), matrix(p, 2), vector(p, 5), table(p, 7), table(p, 10), table(p, 13), table(p, 16), vector(p, 19),
        usable(p, 21), vector(p, 25), numbers(p, 27), numbers(p, 29),
    )  # fmt: skip


def loop_backward(p):
    step_kernels.backward(
        numbers(p, 0), matrix(p, 2), matrix(p, 5), vector(p, 8), vector(p, 10), table(p, 12), table(p, 15),
        table(p, 18), table(p, 21), usable(p, 24), table(p, 28), numbers(p, 31), numbers(p, 33),
    )  # fmt: skip


def copy(p):
    x, out = vector(p, 0), vector(p, 2)
    for i in range(out.shape[0]):
        out[i] = x[i]


def copy_block(p):
    """Some columns of a matrix to another; p: first, its columns' distance, second, its distance, rows, columns."""
    rows, columns = p[4], p[5]
    x, out = carray(pointer(p[0]), (columns, p[1]), float32), carray(pointer(p[2]), (columns, p[3]), float32)
    for column in range(columns):
        source, target = x[column], out[column]
        for row in range(rows):
            target[row] = source[row]


def add(p):
    """total += x."""
    total, x = vector(p, 0), vector(p, 2)
    for i in range(total.shape[0]):
        total[i] += x[i]


def scale(p):
    """x *= the one element of factor."""
    elementwise_loops.scale(vector(p, 0), vector(p, 2))


def add_column(p):
    elementwise_loops.add_column(matrix(p, 0), vector(p, 3))


def normalise(p):
    elementwise_loops.normalise(matrix(p, 0), vector(p, 3), vector(p, 5))


def sigmoid(p):
    elementwise_loops.sigmoid(vector(p, 0))


def tanh(p):
    elementwise_loops.tanh(vector(p, 0))


def relu(p):
    elementwise_loops.relu(vector(p, 0))


def relu_gradient(p):
    elementwise_loops.relu_gradient(vector(p, 0), vector(p, 2))


def sigmoid_gradient(p):
    elementwise_loops.sigmoid_gradient(vector(p, 0), vector(p, 2))


def tanh_gradient(p):
    elementwise_loops.tanh_gradient(vector(p, 0), vector(p, 2))


def bias_sigmoid(p):
    elementwise_loops.bias_sigmoid(matrix(p, 0), vector(p, 3))


def bias_tanh(p):
    elementwise_loops.bias_tanh(matrix(p, 0), vector(p, 3))


def bias_relu(p):
    elementwise_loops.bias_relu(matrix(p, 0), vector(p, 3))


def bias_sigmoid_gradient(p):
    elementwise_loops.bias_sigmoid_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


def bias_tanh_gradient(p):
    elementwise_loops.bias_tanh_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


def bias_relu_gradient(p):
    elementwise_loops.bias_relu_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


def sum_frames(p):
    elementwise_loops.sum_frames(matrix(p, 0), vector(p, 3))


def softmax(p):
    elementwise_loops.softmax(matrix(p, 0))


def log_softmax(p):
    elementwise_loops.log_softmax(matrix(p, 0))


def cross_entropy_softmax(p):
    vector(p, 6)[0] = elementwise_loops.cross_entropy_softmax(matrix(p, 0), matrix(p, 3))


def cross_entropy_softmax_error(p):
    vector(p, 9)[0] = elementwise_loops.cross_entropy_softmax_error(matrix(p, 0), matrix(p, 3), matrix(p, 6))


def count_errors(p):
    vector(p, 6)[0] = elementwise_loops.count_errors(matrix(p, 0), matrix(p, 3))


def group_norms(p):
    group_loops.group_norms(matrix(p, 0), matrix(p, 3))


def group_norms_gradient(p):
    group_loops.group_norms_gradient(matrix(p, 0), matrix(p, 3), matrix(p, 6), matrix(p, 9))


def root_mean_square_one(p):
    group_loops.root_mean_square_one(matrix(p, 0), vector(p, 3))


def root_mean_square_one_gradient(p):
    group_loops.root_mean_square_one_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


def subtract(p):
    compiled_loops.subtract(vector(p, 0), vector(p, 2))


def momentum(p):
    elementwise_loops.momentum(vector(p, 0), vector(p, 2), vector(p, 4), real(p[6]), real(p[7]))


def regularised_momentum(p):
    numbers = real(p[6]), real(p[7]), real(p[8]), real(p[9]), real(p[10])
    elementwise_loops.regularised_momentum(vector(p, 0), vector(p, 2), vector(p, 4), *numbers, real(p[11]) > 0)


def adagrad(p):
    numbers = real(p[6]), real(p[7]), real(p[8]), real(p[9])
    compiled_loops.adagrad(vector(p, 0), vector(p, 2), vector(p, 4), *numbers)


FUNCTIONS = (
    *(product, wide_product, pack, panels, meet, play_table, loop_forward, loop_backward),
    *(copy, copy_block, add, scale, add_column, normalise, sum_frames),
    *(sigmoid, tanh, relu, sigmoid_gradient, tanh_gradient, relu_gradient),
    *(bias_sigmoid, bias_tanh, bias_relu, bias_sigmoid_gradient, bias_tanh_gradient, bias_relu_gradient),
    *(softmax, log_softmax, cross_entropy_softmax, cross_entropy_softmax_error, count_errors),
    *(group_norms, group_norms_gradient, root_mean_square_one, root_mean_square_one_gradient),
    *(subtract, momentum, regularised_momentum, adagrad),
    *(reduce_layer, change_layer, estimate_layer),
)
BY_NAME = {function.__name__: function for function in FUNCTIONS}
_compiled = {}
_compiling = threading.Lock()


def address_of(name):
    """Where the compiled form of a function above lies; compiled when it is first asked for."""
    with _compiling:  # else two threads would make one each, and the one that nobody keeps is freed
        if name not in _compiled:
            _compiled[name] = cfunc(SIGNATURE, cache=True, fastmath=elementwise_loops.LOOSE, error_model="numpy")(
                BY_NAME[name]
            )
    return _compiled[name].address
