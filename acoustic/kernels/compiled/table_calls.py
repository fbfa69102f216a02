"""Elementwise and group kernels as functions that a table of calls can name; see call_registry.py.

Each takes a pointer to its arguments and has the name of its kernel.
"""

from acoustic.kernels.compiled import elementwise_loops, group_loops
from acoustic.runtime.call_registry import matrix, real, table_call, vector


@table_call
def copy(p):
    elementwise_loops.copy(vector(p, 0), vector(p, 2))


@table_call
def add(p):
    """total += x."""
    elementwise_loops.add(vector(p, 0), vector(p, 2))


@table_call
def scale(p):
    """x *= the one element of factor."""
    elementwise_loops.scale(vector(p, 0), vector(p, 2))


@table_call
def add_column(p):
    elementwise_loops.add_column(matrix(p, 0), vector(p, 3))


@table_call
def normalise(p):
    elementwise_loops.normalise(matrix(p, 0), vector(p, 3), vector(p, 5))


@table_call
def sigmoid(p):
    elementwise_loops.sigmoid(vector(p, 0))


@table_call
def tanh(p):
    elementwise_loops.tanh(vector(p, 0))


@table_call
def relu(p):
    elementwise_loops.relu(vector(p, 0))


@table_call
def relu_gradient(p):
    elementwise_loops.relu_gradient(vector(p, 0), vector(p, 2))


@table_call
def sigmoid_gradient(p):
    elementwise_loops.sigmoid_gradient(vector(p, 0), vector(p, 2))


@table_call
def tanh_gradient(p):
    elementwise_loops.tanh_gradient(vector(p, 0), vector(p, 2))


@table_call
def bias_sigmoid(p):
    elementwise_loops.bias_sigmoid(matrix(p, 0), vector(p, 3))


@table_call
def bias_tanh(p):
    elementwise_loops.bias_tanh(matrix(p, 0), vector(p, 3))


@table_call
def bias_relu(p):
    elementwise_loops.bias_relu(matrix(p, 0), vector(p, 3))


@table_call
def bias_sigmoid_gradient(p):
    elementwise_loops.bias_sigmoid_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


@table_call
def bias_tanh_gradient(p):
    elementwise_loops.bias_tanh_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


@table_call
def bias_relu_gradient(p):
    elementwise_loops.bias_relu_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


@table_call
def sum_frames(p):
    elementwise_loops.sum_frames(matrix(p, 0), vector(p, 3))


@table_call
def softmax(p):
    elementwise_loops.softmax(matrix(p, 0))


@table_call
def log_softmax(p):
    elementwise_loops.log_softmax(matrix(p, 0))


@table_call
def cross_entropy_softmax(p):
    elementwise_loops.cross_entropy_softmax(matrix(p, 0), matrix(p, 3), vector(p, 6))


@table_call
def cross_entropy_softmax_error(p):
    elementwise_loops.cross_entropy_softmax_error(matrix(p, 0), matrix(p, 3), matrix(p, 6), vector(p, 9))


@table_call
def count_errors(p):
    elementwise_loops.count_errors(matrix(p, 0), matrix(p, 3), vector(p, 6))


@table_call
def group_norms(p):
    group_loops.group_norms(matrix(p, 0), matrix(p, 3))


@table_call
def group_norms_gradient(p):
    group_loops.group_norms_gradient(matrix(p, 0), matrix(p, 3), matrix(p, 6), matrix(p, 9))


@table_call
def root_mean_square_one(p):
    group_loops.root_mean_square_one(matrix(p, 0), vector(p, 3))


@table_call
def root_mean_square_one_gradient(p):
    group_loops.root_mean_square_one_gradient(matrix(p, 0), matrix(p, 3), vector(p, 6))


@table_call
def momentum(p):
    elementwise_loops.momentum(vector(p, 0), vector(p, 2), vector(p, 4), real(p[6]), real(p[7]))


@table_call
def regularised_momentum(p):
    numbers = real(p[6]), real(p[7]), real(p[8]), real(p[9]), real(p[10])
    elementwise_loops.regularised_momentum(vector(p, 0), vector(p, 2), vector(p, 4), *numbers, real(p[11]) > 0)
