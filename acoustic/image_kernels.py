"""Compiled operations on images in columns, for float32 on the CPU."""

from typing import Any

import numpy as np

from acoustic import _image_kernels
from acoustic.array_image_kernels import ArrayImageKernels
from acoustic.images import Windows


class CompiledImageKernels(ArrayImageKernels):
    """The operations of ArrayImageKernels, which says what each does."""

    packed_elements = 1 << 17  # 512 KiB: the product reads what packing wrote from the second-level cache

    def pack(self, windows: Windows, x: Any, out: Any) -> None:
        _image_kernels.pack(_rows(x), *_places(windows), *windows.image, _rows(out))

    def unpack(self, windows: Windows, packed: Any, out: Any) -> None:
        _image_kernels.unpack(_rows(packed), *_places(windows), *windows.image, _rows(out))

    def max_pool(self, windows: Windows, x: Any, out: Any, winner: Any) -> None:
        _image_kernels.max_pool(_rows(x), *_places(windows), *windows.image[1:], _rows(out), _rows(winner))

    def max_pool_gradient(self, grad: Any, winner: Any, out: Any) -> None:
        _image_kernels.max_pool_gradient(_rows(grad), _rows(winner), _rows(out))

    def average_pool(self, windows: Windows, x: Any, out: Any) -> None:
        _image_kernels.average_pool(_rows(x), *_places(windows), *windows.image[1:], _rows(out))

    def average_pool_gradient(self, windows: Windows, grad: Any, out: Any) -> None:
        _image_kernels.average_pool_gradient(_rows(grad), *_places(windows), *windows.image[1:], _rows(out))


def _places(windows: Windows) -> tuple[Any, ...]:
    rows, cols, offsets = windows.arrays
    return rows, cols, windows.height, offsets


def _rows(matrix: Any) -> Any:
    """The transposed view (T, rows), C order, of a float32 matrix in Fortran order; anything else is a ValueError."""
    if not matrix.flags.f_contiguous or matrix.dtype != np.float32:
        raise ValueError(f"{matrix.dtype} matrix of {matrix.shape}; expected float32 in Fortran order")
    return matrix.T
