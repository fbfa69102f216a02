"""The operations of the nodes on a GPU, each in one launch where its arrays allow it."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.kernels.cuda.module import MOST_BLOCKS, CudaModule
from acoustic.kernels.cuda.source import ELEMENTWISE, REDUCTIONS, source
from acoustic.kernels.image_geometry import ImageWindows


def by_element(name: str) -> Callable[..., None]:
    """A method of ArrayKernels as an elementwise kernel with the same parameters, the last one the result."""

    def method(self: "CudaKernels", *arrays: Any) -> None:
        if self.module.takes(*arrays):
            self.module.elementwise(name, arrays[-1], *arrays)
        else:
            getattr(ArrayKernels, name)(self, *arrays)

    method.__doc__ = getattr(ArrayKernels, name).__doc__
    return method


def by_column(name: str) -> Callable[..., None]:
    """A method of ArrayKernels as a kernel with the same parameters that reads whole columns."""

    def method(self: "CudaKernels", x: Any, out: Any) -> None:
        if self.module.takes(x, out) and x.size:
            self.module.launch(name, x.shape[1], *x.shape, x, out)
        else:
            getattr(ArrayKernels, name)(self, x, out)

    method.__doc__ = getattr(ArrayKernels, name).__doc__
    return method


class CudaKernels(ArrayKernels):
    """Kernels on arrays of cupy; ArrayKernels describes each operation, and makes those that have no kernel here.

    Parameters
    ----------
    xp : module
        cupy.
    dtype : type
        numpy.float32 or numpy.float64.
    """

    def __init__(self, xp: Any, dtype: type) -> None:
        super().__init__(xp)
        self.real = dtype
        self.module = CudaModule(xp, dtype, source(dtype, ELEMENTWISE, REDUCTIONS))
        self._blas = getattr(xp, "cublas", None) or import_module(f"{xp.__name__}.cublas")
        self._parts = xp.zeros(MOST_BLOCKS, np.float64)  # sums of blocks
        self._ended = xp.zeros(1, np.int32)  # blocks that have ended; a kernel leaves 0
        self._of_windows: dict[tuple[str, ImageWindows], Any] = {}

    sigmoid = by_element("sigmoid")
    sigmoid_gradient = by_element("sigmoid_gradient")
    tanh_gradient = by_element("tanh_gradient")
    relu_gradient = by_element("relu_gradient")
    log = by_element("log")
    normalise = by_element("normalise")
    scale_shift = by_element("scale_shift")
    centred_gradient = by_element("centred_gradient")
    softmax = by_column("softmax")
    log_softmax = by_column("log_softmax")

    def matmul(self, a: Any, b: Any, out: Any, scale: float = 1.0, keep: float = 0.0) -> None:
        """out = scale a b + keep out, by the BLAS of cupy."""
        if not (a.size and b.size and out.flags.f_contiguous and a.dtype == b.dtype == out.dtype):
            super().matmul(a, b, out, scale, keep)
        elif scale == 1 and keep == 0:
            self.xp.dot(b.T, a.T, out=out.T)
        else:
            self._blas.gemm("N", "N", a, b, out=out, alpha=scale, beta=keep)

    def cross_entropy_softmax(self, labels: Any, z: Any, out: Any, error: Any) -> None:
        if self.module.takes(labels, z, out, *self._given(error)) and z.size:
            self._add_columns("cross_entropy", labels, None, z, out, error)
        else:
            super().cross_entropy_softmax(labels, z, out, error)

    def cross_entropy_numbers(self, numbers: np.ndarray, z: Any, out: Any, error: Any) -> None:
        if self.module.takes(z, out, *self._given(error)) and z.size:
            self._add_columns("cross_entropy", None, self.xp.asarray(numbers, dtype="int64"), z, out, error)
        else:
            super().cross_entropy_numbers(numbers, z, out, error)

    def count_errors(self, labels: Any, z: Any, out: Any) -> None:
        if self.module.takes(labels, z, out) and z.size:
            self._add_columns("count_errors", labels, None, z, out)
        else:
            super().count_errors(labels, z, out)

    def count_errors_numbers(self, numbers: np.ndarray, z: Any, out: Any) -> None:
        if self.module.takes(z, out) and z.size:
            self._add_columns("count_errors", None, self.xp.asarray(numbers, dtype="int64"), z, out)
        else:
            super().count_errors_numbers(numbers, z, out)

    def _given(self, matrix: Any) -> list[Any]:
        return [] if matrix is None else [matrix]

    def _add_columns(self, name: str, labels: Any, numbers: Any, z: Any, *results: Any) -> None:
        """Launch a kernel that adds up a number of each column."""
        self.module.launch(name, z.shape[1], *z.shape, labels, numbers, z, self._parts, self._ended, *results)

    def batch_statistics(
        self, x: Any, mean: Any, invstd: Any, num_frames: int, blend: float, epsilon: float, work: Any
    ) -> None:
        if self.module.takes(x, mean, invstd, work) and x.size:
            constants = float(num_frames), float(blend), float(epsilon)
            self.module.launch("batch_statistics", x.shape[0], *x.shape, x, mean, invstd, *constants, work)
        else:
            super().batch_statistics(x, mean, invstd, num_frames, blend, epsilon, work)

    def batch_gradient(
        self, grad: Any, x: Any, scale: Any, num_columns: int, num_values: int, work: Any
    ) -> tuple[Any, ...]:
        if not self.module.takes(grad, x, work, *self._given(scale)):
            return super().batch_gradient(grad, x, scale, num_columns, num_values, work)
        count = 2 if scale is None else 5
        results = self.xp.empty((x.shape[0], count), self.real, order="F")
        share = num_columns / num_values
        self.module.launch("batch_gradient", x.shape[0], *x.shape, grad, x, scale, share, work, results)
        return tuple(results[:, k : k + 1] for k in range(count))

    def dropout(self, x: Any, key: int, rate: float, out: Any, first: int = 0) -> None:
        if not self.module.takes(x, out):
            super().dropout(x, key, rate, out, first)
            return
        words = np.array([key & 0xFFFFFFFF, key >> 32, int(rate * 2**32), first & 0xFFFFFFFF], np.uint32)
        self.module.elementwise("dropout", out, x, *words, self.real(1 / (1 - rate)), out)

    def delay(self, x: Any, before: Any, usable: Any, shift: int, default: float, out: Any) -> None:
        if self.module.takes(x, out, *self._given(before)):
            self.module.elementwise("delay", out, x, before, usable, shift, self.real(default), out)
        else:
            super().delay(x, before, usable, shift, default, out)

    def delay_gradient(self, grad: Any, usable: Any, shift: int, out: Any) -> None:
        if self.module.takes(grad, out):
            self.module.elementwise("delay_gradient", out, grad, usable, shift, out)
        else:
            super().delay_gradient(grad, usable, shift, out)

    def pack(self, windows: ImageWindows, x: Any, out: Any) -> None:
        if not self.module.takes(x, out):
            super().pack(windows, x, out)
            return
        index = self._kept("rows", windows, lambda: self.xp.asarray(windows.index.reshape(-1, order="F")))
        self.module.elementwise("pack", out, index, index.size, x, x.shape[0], out)

    def max_pool_strips(self, windows: ImageWindows, products: Any, out: Any, winner: Any) -> None:
        if not self.module.takes(products, out, winner):
            super().max_pool_strips(windows, products, out, winner)
            return
        index = self.rows_per_channel(windows)
        strip = windows.image.channels * windows.image.height
        self.module.elementwise("max_pool_strips", out, index, len(index), strip, products, out, winner)

    def max_pool_strips_gradient(self, windows: ImageWindows, grad: Any, winner: Any, products: Any) -> None:
        overlap = self._kept("overlap", windows, lambda: len(np.unique(windows.index)) < windows.index.size)
        if overlap or not self.module.takes(grad, winner, products):  # else one window at most writes an element
            super().max_pool_strips_gradient(windows, grad, winner, products)
            return
        index = self.rows_per_channel(windows)
        strip = windows.image.channels * windows.image.height
        products.fill(0)
        self.module.elementwise("max_pool_strips_gradient", grad, index, strip, winner, grad, products)

    def rows_per_channel(self, windows: ImageWindows) -> Any:
        return self._kept(
            "rows per channel", windows, lambda: self.xp.ascontiguousarray(ArrayKernels.rows_per_channel(self, windows))
        )

    def _kept(self, name: str, windows: ImageWindows, make: Callable[[], Any]) -> Any:
        """What was made of windows once: an index, which is copied to the device, or a property."""
        key = name, windows
        if key not in self._of_windows:
            self._of_windows[key] = make()
        return self._of_windows[key]
