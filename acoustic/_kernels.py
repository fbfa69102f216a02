"""Loops of the compiled kernels: flat float32 arrays (a matrix column by column), scalars, no checks; see kernels.py.

Everything works in place: a kernel that reads one array and writes another must prove to itself that they do not
overlap before it can use vector instructions, and in-place use, the common case, then ran four times slower.
Sums may be reordered and products fused with sums, but NaN and infinity keep their meaning.
"""

import numpy as np
from numba import float32, int32, njit, uint32

LOOSE = {"contract", "reassoc", "nsz", "arcp"}  # not nnan, ninf: a diverged network must show
loop = njit(cache=True, nogil=True, fastmath=LOOSE, error_model="numpy")
inline = njit(cache=True, nogil=True, fastmath=LOOSE, error_model="numpy", inline="always")

SIGMOID, TANH, RELU = 0, 1, 2
ONE, TWO = float32(1), float32(2)


@inline
def exp32(x):
    """exp x to about 1e-7, relative; arguments beyond +-87 are taken as +-87, NaN stays NaN.

    2^n times a polynomial on [-ln 2 / 2, ln 2 / 2], the coefficients of Cephes' expf; plain arithmetic, so that the
    loop around it becomes vector instructions, which a call of the mathematics library does not.
    """
    if x < float32(-87):
        x = float32(-87)
    if x > float32(87):
        x = float32(87)
    n = np.floor(x * float32(1.44269504) + float32(0.5))
    r = x - n * float32(0.693359375)
    r = r + n * float32(2.12194440e-4)
    p = float32(1.9875691500e-4)
    p = p * r + float32(1.3981999507e-3)
    p = p * r + float32(8.3334519073e-3)
    p = p * r + float32(4.1665795894e-2)
    p = p * r + float32(1.6666665459e-1)
    p = p * r + float32(5.0000001201e-1)
    p = p * r * r + r + ONE
    return p * np.int32((np.int32(n) + int32(127)) << int32(23)).view(np.float32)


@loop
def sigmoid(x):
    for i in range(x.shape[0]):
        x[i] = ONE / (ONE + exp32(-x[i]))


@loop
def tanh(x):
    for i in range(x.shape[0]):
        x[i] = TWO / (ONE + exp32(-TWO * x[i])) - ONE


@loop
def sigmoid_gradient(grad, value):
    for i in range(grad.shape[0]):
        grad[i] *= value[i] * (ONE - value[i])


@loop
def tanh_gradient(grad, value):
    for i in range(grad.shape[0]):
        grad[i] *= ONE - value[i] * value[i]


@loop
def bias_sigmoid(x, bias):
    """x = sigmoid(x + bias) for every column of bias.shape[0] elements."""
    rows = bias.shape[0]
    for start in range(0, x.shape[0], rows):
        for i in range(rows):
            x[start + i] = ONE / (ONE + exp32(-(x[start + i] + bias[i])))


@loop
def bias_tanh(x, bias):
    rows = bias.shape[0]
    for start in range(0, x.shape[0], rows):
        for i in range(rows):
            x[start + i] = TWO / (ONE + exp32(-TWO * (x[start + i] + bias[i]))) - ONE


@loop
def bias_relu(x, bias):
    rows = bias.shape[0]
    for start in range(0, x.shape[0], rows):
        for i in range(rows):
            total = x[start + i] + bias[i]
            x[start + i] = float32(0) if total < float32(0) else total


@loop
def bias_sigmoid_gradient(grad, value, bias_grad):
    """grad *= derivative at value; bias_grad = the sum of its columns."""
    rows = bias_grad.shape[0]
    bias_grad[:] = float32(0)
    for start in range(0, grad.shape[0], rows):
        for i in range(rows):
            v = value[start + i]
            d = grad[start + i] * v * (ONE - v)
            grad[start + i] = d
            bias_grad[i] += d


@loop
def bias_tanh_gradient(grad, value, bias_grad):
    rows = bias_grad.shape[0]
    bias_grad[:] = float32(0)
    for start in range(0, grad.shape[0], rows):
        for i in range(rows):
            v = value[start + i]
            d = grad[start + i] * (ONE - v * v)
            grad[start + i] = d
            bias_grad[i] += d


@loop
def bias_relu_gradient(grad, value, bias_grad):
    rows = bias_grad.shape[0]
    bias_grad[:] = float32(0)
    for start in range(0, grad.shape[0], rows):
        for i in range(rows):
            d = grad[start + i] if value[start + i] > float32(0) else float32(0)
            grad[start + i] = d
            bias_grad[i] += d


@loop
def sum_columns(x, total):
    """total = the sum of the columns of x."""
    rows = total.shape[0]
    total[:] = float32(0)
    for start in range(0, x.shape[0], rows):
        for i in range(rows):
            total[i] += x[start + i]


@loop
def softmax(x, rows):
    for start in range(0, x.shape[0], rows):
        top = x[start]
        for i in range(start, start + rows):
            top = x[i] if x[i] > top else top
        total = float32(0)
        for i in range(start, start + rows):
            e = exp32(x[i] - top)
            x[i] = e
            total += e
        scale = ONE / total
        for i in range(start, start + rows):
            x[i] *= scale


@loop
def log_softmax(x, rows):
    for start in range(0, x.shape[0], rows):
        top = x[start]
        for i in range(start, start + rows):
            top = x[i] if x[i] > top else top
        total = float32(0)
        for i in range(start, start + rows):
            total += exp32(x[i] - top)
        shift = top + np.log(total)
        for i in range(start, start + rows):
            x[i] -= shift


@loop
def cross_entropy_softmax(labels, z, rows):
    """-sum of labels * log softmax(z), summed in double over the columns."""
    loss = 0.0
    for start in range(0, z.shape[0], rows):
        top = z[start]
        for i in range(start, start + rows):
            top = z[i] if z[i] > top else top
        total, mass, match = float32(0), float32(0), float32(0)
        for i in range(start, start + rows):
            shifted = z[i] - top
            total += exp32(shifted)
            mass += labels[i]
            match += labels[i] * shifted
        loss += mass * np.log(total) - match
    return loss


@loop
def cross_entropy_softmax_error(labels, z, rows, error):
    """The same, and error = softmax(z) * (column sum of labels) - labels."""
    loss = 0.0
    for start in range(0, z.shape[0], rows):
        top = z[start]
        for i in range(start, start + rows):
            top = z[i] if z[i] > top else top
        total, mass, match = float32(0), float32(0), float32(0)
        for i in range(start, start + rows):
            shifted = z[i] - top
            e = exp32(shifted)
            error[i] = e
            total += e
            mass += labels[i]
            match += labels[i] * shifted
        loss += mass * np.log(total) - match
        scale = mass / total
        for i in range(start, start + rows):
            error[i] = error[i] * scale - labels[i]
    return loss


@loop
def count_errors(labels, z, rows):
    """Columns whose largest elements stand in different rows; of equals the first counts."""
    errors = 0
    for start in range(0, z.shape[0], rows):
        first, second = start, start
        for i in range(start + 1, start + rows):
            if labels[i] > labels[first]:
                first = i
            if z[i] > z[second]:
                second = i
        errors += first != second
    return errors


@inline
def mix(word):
    """A 32-bit finaliser (two rounds of multiply and shift) that spreads every input bit over every output bit."""
    word ^= word >> uint32(16)
    word = uint32(word * uint32(0x21F0AAAD))
    word ^= word >> uint32(15)
    word = uint32(word * uint32(0x735A2D97))
    word ^= word >> uint32(15)
    return word


@loop
def dropout(x, first, low, high, limit, scale):
    """Element i becomes 0 when the hash of (key, first + i) is below limit, else x[i] * scale."""
    for i in range(x.shape[0]):
        word = mix(uint32(uint32(uint32(first + i) * uint32(0x9E3779B9)) ^ low))
        word = mix(uint32(word + high))
        x[i] = float32(0) if word < limit else x[i] * scale


@loop
def momentum(weight, gradient, smoothed, rate, decay):
    """smoothed = decay * smoothed + rate * gradient; weight -= smoothed."""
    for i in range(weight.shape[0]):
        step = decay * smoothed[i] + rate * gradient[i]
        smoothed[i] = step
        weight[i] -= step
