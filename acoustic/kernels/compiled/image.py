"""Compiled operations on images in columns, for float32 on the CPU."""

from typing import Any

from acoustic.kernels.arrays.image import ArrayImageKernels
from acoustic.kernels.compiled import image_loops
from acoustic.kernels.compiled.operands import frames
from acoustic.kernels.image_geometry import Windows


class CompiledImageKernels(ArrayImageKernels):
    """Mixed into the compiled kernels; ArrayImageKernels describes each operation."""

    # 2 MiB. Fewer make products too narrow: with 13 x 12 windows, 5 images at a time took 1.2 times as long as 22.
    packed_elements = 1 << 19

    def pack(self, windows: Windows, x: Any, out: Any) -> None:
        image_loops.pack(frames(x), *_places(windows), *windows.image, frames(out))

    def unpack(self, windows: Windows, packed: Any, out: Any) -> None:
        image_loops.unpack(frames(packed), *_places(windows), *windows.image, frames(out))

    def max_pool(self, windows: Windows, x: Any, out: Any, winner: Any) -> None:
        places = *_steps(windows), *_places(windows)
        image_loops.max_pool(_pixels(windows, x), *places, frames(out), frames(winner))

    def max_pool_gradient(self, windows: Windows, grad: Any, winner: Any, out: Any) -> None:
        places = *_steps(windows), *_places(windows)
        image_loops.max_pool_gradient(frames(grad), frames(winner), *places, _pixels(windows, out))

    def max_pool_strips(self, windows: Windows, products: Any, out: Any, winner: Any) -> None:
        places = *_strip_steps(windows, out), *_places(windows)
        image_loops.max_pool(frames(products), *places, frames(out), frames(winner))

    def max_pool_strips_gradient(self, windows: Windows, grad: Any, winner: Any, products: Any) -> None:
        places = *_strip_steps(windows, grad), *_places(windows)
        image_loops.max_pool_gradient(frames(grad), frames(winner), *places, frames(products))

    def average_pool(self, windows: Windows, x: Any, out: Any) -> None:
        places = *_steps(windows), *_places(windows)
        image_loops.average_pool(_pixels(windows, x), *places, frames(out))

    def average_pool_gradient(self, windows: Windows, grad: Any, out: Any) -> None:
        places = *_steps(windows), *_places(windows)
        image_loops.average_pool_gradient(frames(grad), *places, _pixels(windows, out))


def _steps(windows: Windows) -> tuple[int, int]:
    """Pixels from one column, and from one image, to the next."""
    return windows.image.height, windows.image.height * windows.image.width


def _strip_steps(windows: Windows, pooled: Any) -> tuple[int, int]:
    """The same for images in strips."""
    return windows.image.height * pooled.shape[1], windows.image.height


def _pixels(windows: Windows, x: Any) -> Any:
    """The pixels of all images, one channel per column."""
    return frames(x).reshape(-1, windows.image.channels)


def _places(windows: Windows) -> tuple[Any, ...]:
    rows, cols, offsets = windows.arrays
    return rows, cols, windows.height, offsets
