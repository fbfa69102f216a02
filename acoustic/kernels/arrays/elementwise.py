"""The elementwise operations of the nodes in terms of `xp`.

They run on the GPU and in double precision, and are the references for tests of the compiled kernels. Every function
fills buffers (rows, cols) in Fortran order that it receives.
"""

from typing import Any

import numpy as np

from acoustic.kernels.arrays.group import ArrayGroupKernels
from acoustic.kernels.arrays.image import ArrayImageKernels
from acoustic.kernels.arrays.sequence import ArraySequenceKernels
from acoustic.kernels.arrays.word import ArrayWordKernels
from acoustic.runtime.products import multiply
from acoustic.runtime.thread_team import ThreadTeam

LOG_FLOOR = 1e-37  # below this the logarithm is the constant LOG_OF_FLOOR
LOG_OF_FLOOR = -85.1


class ArrayKernels(ArrayImageKernels, ArrayWordKernels, ArraySequenceKernels, ArrayGroupKernels):
    """Kernels on arrays of any module.

    Parameters
    ----------
    xp : module
        numpy or cupy.
    product_team : ThreadTeam, optional
        Threads that divide large products on the CPU; by default the calling thread computes them.
    """

    def __init__(self, xp: Any, product_team: ThreadTeam | None = None) -> None:
        self.xp = xp
        self.product_team = product_team

    def of(self, owner: Any) -> Any:
        """The object through which the methods of another one are called; an Emitter returns an emitter."""
        return owner

    def matmul(self, a: Any, b: Any, out: Any, scale: float = 1.0, keep: float = 0.0) -> None:
        """out = scale a b + keep out, (m, n) in Fortran order.

        `out[...] = a @ b` would compute in C order and copy.
        """
        if self.xp is np:
            multiply(a, b, out, scale, keep, self.product_team)
        elif scale == 1 and keep == 0:
            self.xp.dot(b.T, a.T, out=out.T)
        else:
            self.xp.add(keep * out if keep else 0, scale * self.xp.dot(b.T, a.T).T, out=out)

    def copy(self, x: Any, out: Any) -> None:
        """out = x."""
        self.xp.copyto(out, x)

    def accumulate(self, total: Any, x: Any) -> None:
        """total += x."""
        self.xp.add(total, x, out=total)

    def add(self, x: Any, y: Any, out: Any) -> None:
        """out = x + y; out may be either."""
        self.xp.add(x, y, out=out)

    def scale(self, x: Any, factor: Any, out: Any) -> None:
        """out = x * factor, (1, 1); out may be x."""
        self.xp.multiply(x, factor, out=out)

    def add_column(self, x: Any, column: Any, out: Any) -> None:
        """out = x + column, (rows, 1); out may be x."""
        self.xp.add(x, column, out=out)

    def normalise(self, x: Any, mean: Any, factor: Any, out: Any) -> None:
        """out = (x - mean) * factor, columns (rows, 1); out may be x."""
        self.xp.subtract(x, mean, out=out)
        self.xp.multiply(out, factor, out=out)

    def sigmoid(self, x: Any, out: Any) -> None:
        """out = 1 / (1 + exp(-x)), as (1 + tanh(x/2)) / 2, which cannot overflow."""
        self.xp.multiply(x, 0.5, out=out)
        self.xp.tanh(out, out=out)
        self.xp.add(out, 1, out=out)
        self.xp.multiply(out, 0.5, out=out)

    def sigmoid_gradient(self, grad: Any, value: Any, out: Any) -> None:
        """out = grad * value * (1 - value); out may be grad."""
        self.xp.multiply(grad, value * (1 - value), out=out)

    def tanh(self, x: Any, out: Any) -> None:
        """out = tanh(x)."""
        self.xp.tanh(x, out=out)

    def tanh_gradient(self, grad: Any, value: Any, out: Any) -> None:
        """out = grad * (1 - value^2); out may be grad."""
        self.xp.multiply(grad, 1 - value * value, out=out)

    def relu(self, x: Any, out: Any) -> None:
        """out = max(x, 0)."""
        self.xp.maximum(x, 0, out=out)

    def relu_gradient(self, grad: Any, value: Any, out: Any) -> None:
        """out = grad where value > 0, else 0; out may be grad."""
        self.xp.multiply(grad, value > 0, out=out)

    def sum_columns(self, x: Any, out: Any) -> None:
        """out (rows, 1) = sum of the columns of x."""
        x.sum(axis=1, keepdims=True, out=out)

    def moments(self, x: Any) -> tuple[Any, Any]:
        """Mean and variance of each row, (rows, 1) float64."""
        mean = x.mean(axis=1, keepdims=True, dtype="float64")
        return mean, self.xp.square(x - mean).mean(axis=1, keepdims=True)

    def batch_statistics(
        self, x: Any, mean: Any, invstd: Any, num_frames: int, blend: float, epsilon: float, work: Any
    ) -> None:
        """work (rows, 5) = m, s, m_b, v_b and w of BatchNormalization for x (rows, N); mean, invstd (rows, 1)."""
        batch_mean, variance = (column[:, 0] for column in self.moments(x))
        weight = self.xp.where(invstd[:, 0] > 0, 1 - blend / (blend + num_frames), 1.0)
        blended = weight * variance + (1 - weight) * stored_variance(self.xp, invstd[:, 0], epsilon)
        work[:, 0] = weight * batch_mean + (1 - weight) * mean[:, 0]
        work[:, 1] = 1 / self.xp.sqrt(blended + epsilon)
        work[:, 2] = batch_mean
        work[:, 3] = variance
        work[:, 4] = weight

    def batch_gradient(
        self, grad: Any, x: Any, scale: Any, num_columns: int, num_values: int, work: Any
    ) -> tuple[Any, ...]:
        """Gradients of bias and scale of BatchNormalization and, unless scale is None, columns for centred_gradient.

        num_columns: with and without a frame; num_values: N of each row; work: see batch_statistics. All are (rows, 1).
        """
        centre, inverse, _, _, weight = (work[:, k : k + 1] for k in range(5))
        total, match = self.gradient_moments(grad, x, centre)
        match = match * inverse  # the sum of G x^
        if scale is None:
            return total, match
        share = weight * num_columns / num_values
        return total, match, scale * inverse, share * total, share * match * inverse

    def scale_shift(self, x: Any, centre: Any, factor: Any, bias: Any, out: Any) -> None:
        """out = (x - centre) * factor + bias, columns (rows, 1); out may be x."""
        self.xp.subtract(x, centre, out=out)
        self.xp.multiply(out, factor, out=out)
        self.xp.add(out, bias, out=out)

    def gradient_moments(self, grad: Any, x: Any, centre: Any) -> tuple[Any, Any]:
        """The sums over each row of grad and of grad * (x - centre), (rows, 1)."""
        return grad.sum(axis=1, keepdims=True), (grad * (x - centre)).sum(axis=1, keepdims=True)

    def centred_gradient(self, grad: Any, x: Any, centre: Any, factor: Any, shift: Any, slope: Any, out: Any) -> None:
        """out = factor * (grad - shift - slope * (x - centre)), columns (rows, 1); out may be grad."""
        out[...] = factor * (grad - shift - slope * (x - centre))

    def softmax(self, x: Any, out: Any) -> None:
        """out = exp(x) over its sum, per column."""
        self.xp.subtract(x, x.max(axis=0, keepdims=True), out=out)
        self.xp.exp(out, out=out)
        self.xp.divide(out, out.sum(axis=0, keepdims=True), out=out)

    def log_softmax(self, x: Any, out: Any) -> None:
        """out = x - log of the sum of exp(x), per column."""
        self.xp.subtract(x, x.max(axis=0, keepdims=True), out=out)
        total = self.xp.exp(out).sum(axis=0, keepdims=True)
        self.xp.subtract(out, self.xp.log(total), out=out)

    def cross_entropy_softmax(self, labels: Any, z: Any, out: Any, error: Any) -> None:
        """out (1, 1) = -sum of labels * log softmax(z).

        error, unless None, = softmax(z) * (column sum of labels) - labels.
        """
        xp = self.xp
        shifted = z - z.max(axis=0, keepdims=True)
        exponential = xp.exp(shifted)
        total = exponential.sum(axis=0, keepdims=True)
        mass = labels.sum(axis=0, keepdims=True)
        out[...] = (mass * xp.log(total)).sum() - (labels * shifted).sum()
        if error is not None:
            xp.multiply(exponential, mass / total, out=error)
            xp.subtract(error, labels, out=error)

    def count_errors(self, labels: Any, z: Any, out: Any) -> None:
        """out (1, 1) = number of columns whose largest elements (the first of equals) are in different rows."""
        out[...] = (labels.argmax(axis=0) != z.argmax(axis=0)).sum()

    def log(self, x: Any, out: Any) -> None:
        """out = ln x, or LOG_OF_FLOOR if x is below LOG_FLOOR."""
        xp = self.xp
        low = x < LOG_FLOOR
        xp.log(xp.where(low, 1, x), out=out)
        out[low] = LOG_OF_FLOOR

    def dropout(self, x: Any, key: int, rate: float, out: Any, first: int = 0) -> None:
        """out = 0 with probability `rate`, else x / (1 - rate); out may be x.

        A hash of (key, first + i), 64 and 32 bits, decides on element i, counted column by column.
        """
        xp = self.xp
        words = hashed(xp, xp.arange(first, first + x.size, dtype=xp.uint32), key)
        keep = (words >= xp.uint32(int(rate * 2**32))).reshape(x.shape, order="F")
        xp.multiply(x, keep * x.dtype.type(1 / (1 - rate)), out=out)


def stored_variance(xp: Any, invstd: Any, epsilon: float) -> Any:
    """The variance that `invstd` of BatchNormalization stands for, float64; 0 where nothing is known."""
    positive_invstd = xp.where(invstd > 0, invstd, 1).astype("float64")
    return xp.where(invstd > 0, xp.maximum(positive_invstd**-2 - epsilon, 0), 0.0)


def hashed(xp: Any, counter: Any, key: int) -> Any:
    """A hash of 32 bits of each (key, counter), of 64 and 32 bits."""
    words = _mix(xp, counter * xp.uint32(0x9E3779B9) ^ xp.uint32(key & 0xFFFFFFFF))
    return _mix(xp, words + xp.uint32(key >> 32))


def _mix(xp: Any, words: Any) -> Any:
    """A 32-bit finaliser, in place: every bit of the input affects every bit of the output."""
    words ^= words >> xp.uint32(16)
    words *= xp.uint32(0x21F0AAAD)
    words ^= words >> xp.uint32(15)
    words *= xp.uint32(0x735A2D97)
    words ^= words >> xp.uint32(15)
    return words
