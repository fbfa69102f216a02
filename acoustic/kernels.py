"""Compiled elementwise kernels for float32 on the CPU: the hot operations of training in one pass over memory each.

Measured on one core of a Xeon (AVX-512, 2.6 GHz): on 512x256, bias + sigmoid 52 us, its gradient with the bias gradient
18 us; on 183x256, softmax + cross-entropy + error 79 us; momentum update 0.35 ns a weight.
"""

from typing import Any

import numpy as np

from acoustic import _kernels
from acoustic.array_kernels import ArrayKernels
from acoustic.team import Team

SPLIT_FROM = 1 << 15  # weights: below this, waking another thread costs more than it saves


def flat(matrix: Any) -> Any:
    """The elements column by column: a view, the matrix being in Fortran order (and float32), else ValueError.

    Flat arrays have one type for numba, matrices of one row or column another than the rest.
    """
    if not matrix.flags.f_contiguous or matrix.dtype != np.float32:
        raise ValueError(f"{matrix.dtype} matrix of {matrix.shape}; expected float32 in Fortran order")
    return matrix.reshape(-1, order="F")


def prepared(x: Any, out: Any) -> Any:
    """out, holding x, flat: kernels work in place."""
    if out is not x:
        np.copyto(out, x)
    return flat(out)


class CompiledKernels(ArrayKernels):
    """The operations of ArrayKernels, which says what each does; team: threads that share long updates."""

    def __init__(self, team: Team | None = None) -> None:
        super().__init__(np)
        self.team = team

    def sigmoid(self, x: Any, out: Any) -> None:
        _kernels.sigmoid(prepared(x, out))

    def tanh(self, x: Any, out: Any) -> None:
        _kernels.tanh(prepared(x, out))

    def sigmoid_gradient(self, grad: Any, value: Any, out: Any) -> None:
        _kernels.sigmoid_gradient(prepared(grad, out), flat(value))

    def tanh_gradient(self, grad: Any, value: Any, out: Any) -> None:
        _kernels.tanh_gradient(prepared(grad, out), flat(value))

    def bias_activation(self, kind: str, x: Any, bias: Any) -> None:
        getattr(_kernels, f"bias_{kind}")(flat(x), flat(bias))

    def bias_activation_gradient(self, kind: str, grad: Any, value: Any, bias_grad: Any) -> None:
        if bias_grad is None:
            getattr(self, f"{kind}_gradient")(grad, value, grad)
        else:
            getattr(_kernels, f"bias_{kind}_gradient")(flat(grad), flat(value), flat(bias_grad))

    def sum_columns(self, x: Any, out: Any) -> None:
        _kernels.sum_columns(flat(x), flat(out))

    def softmax(self, x: Any, out: Any) -> None:
        _kernels.softmax(prepared(x, out), x.shape[0])

    def log_softmax(self, x: Any, out: Any) -> None:
        _kernels.log_softmax(prepared(x, out), x.shape[0])

    def cross_entropy_softmax(self, labels: Any, z: Any, out: Any, error: Any) -> None:
        if error is None:
            out[0, 0] = _kernels.cross_entropy_softmax(flat(labels), flat(z), z.shape[0])
        else:
            out[0, 0] = _kernels.cross_entropy_softmax_error(flat(labels), flat(z), z.shape[0], flat(error))

    def count_errors(self, labels: Any, z: Any, out: Any) -> None:
        out[0, 0] = _kernels.count_errors(flat(labels), flat(z), z.shape[0])

    def dropout(self, x: Any, key: int, rate: float, out: Any, first: int = 0) -> None:
        low, high = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
        limit, scale = np.uint32(int(rate * 2**32)), np.float32(1 / (1 - rate))
        _kernels.dropout(prepared(x, out), first, low, high, limit, scale)

    def momentum_step(self, weight: Any, gradient: Any, smoothed: Any, learning_rate: float, momentum: float) -> None:
        rate, decay = np.float32((1 - momentum) * learning_rate), np.float32(momentum)
        arrays = flat(weight), flat(gradient), flat(smoothed)
        if self.team is None or weight.size < SPLIT_FROM:
            _kernels.momentum(*arrays, rate, decay)
            return

        def part(worker: int) -> None:
            piece = self.team.share(worker, weight.size)
            _kernels.momentum(*(array[piece] for array in arrays), rate, decay)

        self.team.run(part)


def momentum_step(weight: Any, gradient: Any, smoothed: Any, learning_rate: float, momentum: float) -> None:
    """v <- m v + (1 - m) l g; w <- w - v; in one pass, in place.

    weight w, gradient g (a sum over frames), smoothed v: (rows, cols) float32 in Fortran order; learning_rate l per
    frame; momentum m of this minibatch.  Networks offer it as `network.backend.kernels.momentum_step`.
    """
    CompiledKernels().momentum_step(weight, gradient, smoothed, learning_rate, momentum)
