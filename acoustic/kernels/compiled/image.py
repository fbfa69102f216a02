"""Compiled operations on images in columns, for float32 on the CPU."""

from functools import lru_cache
from typing import Any

import numpy as np

from acoustic.kernels.arrays.image import ArrayImageKernels
from acoustic.kernels.compiled import image_loops
from acoustic.kernels.compiled.operands import frames
from acoustic.kernels.image_geometry import ImageWindows


class CompiledImageKernels(ArrayImageKernels):
    """Mixed into the compiled kernels; ArrayImageKernels describes each operation."""

    # 2 MiB. Fewer make products too narrow: with 13 x 12 windows, 5 images at a time took 1.2 times as long as 22.
    packed_elements = 1 << 19

    def pack(self, windows: ImageWindows, x: Any, out: Any) -> None:
        image_loops.pack(frames(x), *_places(windows), *windows.image, frames(out))

    def unpack(self, windows: ImageWindows, packed: Any, out: Any) -> None:
        image_loops.unpack(frames(packed), *_places(windows), *windows.image, frames(out))

    def max_pool(self, windows: ImageWindows, x: Any, out: Any, winner: Any) -> None:
        image_loops.max_pool(_pixels(windows, x), *_in_image(windows), frames(out), frames(winner))

    def max_pool_gradient(self, windows: ImageWindows, grad: Any, winner: Any, out: Any) -> None:
        image_loops.max_pool_gradient(frames(grad), frames(winner), *_in_image(windows), _pixels(windows, out))

    def max_pool_strips(self, windows: ImageWindows, products: Any, out: Any, winner: Any) -> None:
        image_loops.max_pool(frames(products), *_in_strips(windows, out), frames(out), frames(winner))

    def max_pool_strips_gradient(self, windows: ImageWindows, grad: Any, winner: Any, products: Any) -> None:
        image_loops.max_pool_gradient(frames(grad), frames(winner), *_in_strips(windows, grad), frames(products))

    def average_pool(self, windows: ImageWindows, x: Any, out: Any) -> None:
        image_loops.average_pool(_pixels(windows, x), *_in_image(windows), frames(out))

    def average_pool_gradient(self, windows: ImageWindows, grad: Any, out: Any) -> None:
        image_loops.average_pool_gradient(frames(grad), *_in_image(windows), _pixels(windows, out))


def _pixels(windows: ImageWindows, x: Any) -> Any:
    """The pixels of all images, one channel per column."""
    return frames(x).reshape(-1, windows.image.channels)


def _in_image(windows: ImageWindows) -> tuple[int, np.ndarray, np.ndarray]:
    """Pixels from one image to the next, and the pixels of its windows; see image_loops.py."""
    return windows.image.height * windows.image.width, *_window_pixels(windows, windows.image.height)


def _in_strips(windows: ImageWindows, pooled: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """The same for images in strips."""
    return windows.image.height, *_window_pixels(windows, windows.image.height * pooled.shape[1])


@lru_cache
def _window_pixels(windows: ImageWindows, col_step: int) -> tuple[np.ndarray, np.ndarray]:
    """The first pixel of each window, and where its pixels are from there; col_step: pixels between two columns."""
    rows, cols, offsets = windows.arrays
    return np.add.outer(cols * col_step, rows).ravel(), np.add.outer(offsets * col_step, range(windows.height)).ravel()


def _places(windows: ImageWindows) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    rows, cols, offsets = windows.arrays
    return rows, cols, windows.height, offsets
