"""Calls of compiled loops and products by address, one after the other, from numbers in a table; see playback.py.

A row of the table: the address of a function below, then what it takes: of an array its address and shape, of a product
what cblas_sgemm takes.
"""

import threading

import numpy as np
from numba import boolean, carray, cfunc, float32, int32, int64, njit, types

from acoustic import _group_kernels, _handover, _kernels, _loop_kernels
from acoustic._addresses import pointer
from acoustic._gemm import call, call_pack, call_wide
from acoustic._panels import lay_panels
from acoustic._playing import play_at
from acoustic.training.natural_gradient._estimates import estimate_layer
from acoustic.training.natural_gradient._kernels import change_layer, reduce_layer
from acoustic.training.rules import _loops

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
    _handover.meet(numbers(p, 0), place[0], place[1])


def play_table(p):
    """Make the calls of another table; p: its address, its rows."""
    play_at(p[0], p[1])


def loop_forward(p):
    """The steps of a loop: see _loop_kernels.forward, whose arrays p has in its order."""
    _loop_kernels.forward(
        numbers(p, 0), matrix(p, 2), vector(p, 5), table(p, 7), table(p, 10), table(p, 13), table(p, 16), vector(p, 19),
        usable(p, 21), vector(p, 25), numbers(p, 27), numbers(p, 29),
    )  # fmt: skip


def loop_backward(p):
    _loop_kernels.backward(
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
    _kernels.scale(vector(p, 0), vector(p, 2))


def add_column(p):
    _kernels.add_column(matrix(p, 0), vector(p, 3))


def normalise(p):
    _kernels.normalise(matrix(p, 0), vector(p, 3), vector(p, 5))


def sigmoid(p):
    _kernels.sigmoid(vector(p, 0))


def tanh(p):
    _kernels.tanh(vector(p, 0))


def relu(p):
    _kernels.relu(vector(p, 0))


def relu_gradient(p):
    _kernels.relu_gradient(vector(p, 0), vector(p, 2))


def sigmoid_gradient(p):
    _kernels.sigmoid_gradient(vector(p, 0), vector(p, 2))


def tanh_gradient(p):
    _kernels.tanh_gradient(vector(p, 0), vector(p, 2))


def bias_sigmoid(p):
    _kernels.bias_sigmoid(matrix(p, 0), vector(p, 3))


def bias_tanh(p):
    _kernels.bias_tanh(matrix(p, 0), vector(p, 3))


def bias_relu(p):
    _kernels.bias_relu(matrix(p, 0), vector(p, 3))


def bias_sigmoid_gradient(p):
    _kernels.bias_sigmoid_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


def bias_tanh_gradient(p):
    _kernels.bias_tanh_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


def bias_relu_gradient(p):
    _kernels.bias_relu_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


def sum_frames(p):
    _kernels.sum_frames(matrix(p, 0), vector(p, 3))


def softmax(p):
    _kernels.softmax(matrix(p, 0))


def log_softmax(p):
    _kernels.log_softmax(matrix(p, 0))


def cross_entropy_softmax(p):
    vector(p, 6)[0] = _kernels.cross_entropy_softmax(matrix(p, 0), matrix(p, 3))


def cross_entropy_softmax_error(p):
    vector(p, 9)[0] = _kernels.cross_entropy_softmax_error(matrix(p, 0), matrix(p, 3), matrix(p, 6))


def count_errors(p):
    vector(p, 6)[0] = _kernels.count_errors(matrix(p, 0), matrix(p, 3))


def group_norms(p):
    _group_kernels.group_norms(matrix(p, 0), matrix(p, 3))


def group_norms_gradient(p):
    _group_kernels.group_norms_gradient(matrix(p, 0), matrix(p, 3), matrix(p, 6), matrix(p, 9))


def root_mean_square_one(p):
    _group_kernels.root_mean_square_one(matrix(p, 0), vector(p, 3))


def root_mean_square_one_gradient(p):
    _group_kernels.root_mean_square_one_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


def subtract(p):
    _loops.subtract(vector(p, 0), vector(p, 2))


def momentum(p):
    _kernels.momentum(vector(p, 0), vector(p, 2), vector(p, 4), real(p[6]), real(p[7]))


def regularised_momentum(p):
    numbers = real(p[6]), real(p[7]), real(p[8]), real(p[9]), real(p[10])
    _kernels.regularised_momentum(vector(p, 0), vector(p, 2), vector(p, 4), *numbers, real(p[11]) > 0)


def adagrad(p):
    numbers = real(p[6]), real(p[7]), real(p[8]), real(p[9])
    _loops.adagrad(vector(p, 0), vector(p, 2), vector(p, 4), *numbers)


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
            _compiled[name] = cfunc(SIGNATURE, cache=True, fastmath=_kernels.LOOSE, error_model="numpy")(BY_NAME[name])
    return _compiled[name].address
