"""The elementwise operations of the nodes, written once in terms of `xp`.

They run on the GPU and in double precision, and are the plain twins that the compiled kernels are tested against.
Every function fills buffers it is given: (rows, cols), Fortran order.
"""

from typing import Any

LOG_FLOOR = 1e-37  # below this the logarithm is the constant LOG_OF_FLOOR
LOG_OF_FLOOR = -85.1


class ArrayKernels:
    """Elementwise operations on arrays of the module `xp` (numpy or cupy)."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

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
        self.xp.tanh(x, out=out)

    def tanh_gradient(self, grad: Any, value: Any, out: Any) -> None:
        """out = grad * (1 - value^2); out may be grad."""
        self.xp.multiply(grad, 1 - value * value, out=out)

    def relu(self, x: Any, out: Any) -> None:
        self.xp.maximum(x, 0, out=out)

    def relu_gradient(self, grad: Any, value: Any, out: Any) -> None:
        """out = grad where value > 0, else 0; out may be grad."""
        self.xp.multiply(grad, value > 0, out=out)

    def add_bias(self, x: Any, bias: Any, out: Any) -> None:
        """out = x + bias, a column; out may be x."""
        self.xp.add(x, bias, out=out)

    def sum_columns(self, x: Any, out: Any) -> None:
        """out (rows, 1) = sum of the columns of x."""
        x.sum(axis=1, keepdims=True, out=out)

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
        """out (1, 1) = number of columns whose largest elements stand in different rows; of equals the first counts."""
        out[...] = (labels.argmax(axis=0) != z.argmax(axis=0)).sum()

    def log(self, x: Any, out: Any) -> None:
        """out = ln x, and LOG_OF_FLOOR below LOG_FLOOR."""
        xp = self.xp
        low = x < LOG_FLOOR
        xp.log(xp.where(low, 1, x), out=out)
        out[low] = LOG_OF_FLOOR

    def dropout_mask(self, shape: tuple[int, int], key: int, rate: float, out: Any) -> None:
        """out = 0 with probability `rate`, else 1/(1 - rate): element i by a hash of (key, i)."""
        xp = self.xp
        count = shape[0] * shape[1]
        mixed = (xp.arange(count, dtype=xp.uint32) * xp.uint32(0x9E3779B9)) ^ xp.uint32(key & 0xFFFFFFFF)
        for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
            mixed ^= mixed >> xp.uint32(shift)
            mixed *= xp.uint32(factor)
        mixed ^= mixed >> xp.uint32(15)
        mixed += xp.uint32((key >> 32) & 0xFFFFFFFF)
        for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
            mixed ^= mixed >> xp.uint32(shift)
            mixed *= xp.uint32(factor)
        mixed ^= mixed >> xp.uint32(15)
        keep = (mixed >= xp.uint32(int(rate * 2**32))).reshape(shape, order="F")
        xp.multiply(keep, 1 / (1 - rate), out=out)

    def dropout(self, x: Any, key: int, rate: float, out: Any) -> None:
        """out = x times the mask of (key, rate); out may be x."""
        mask = self.xp.empty_like(x)
        self.dropout_mask(x.shape, key, rate, mask)
        self.xp.multiply(x, mask, out=out)

    def affine_activation(self, kind: str, x: Any, bias: Any, out: Any) -> None:
        """out = activation of (x + bias, a column); kind is sigmoid, tanh or relu; out may be x."""
        self.xp.add(x, bias, out=out)
        getattr(self, kind)(out, out)

    def affine_activation_gradient(self, kind: str, grad: Any, value: Any, out: Any, bias_out: Any) -> None:
        """out = gradient before the activation; bias_out (rows, 1), unless None, = the sum of its columns."""
        getattr(self, kind + "_gradient")(grad, value, out)
        if bias_out is not None:
            self.sum_columns(out, bias_out)
