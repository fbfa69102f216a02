"""Images in columns: their memory order, shapes that carry their size, and windows on them.

An image is one column of a matrix, [channel, row, column] in column-major order: channel fastest, then row, then column
of the picture (CNTK book 4.1.4.2; the 2016 tool calls it HWC). Element (c, r, q) of an image of C channels and height H
is in row c + C (r + H q). A 2-channel image of width 3 and height 2, where numbers are rows of the matrix:

              column 0    column 1    column 2
    row 0    [ 0   1 ]   [ 4   5 ]   [  8   9 ]
    row 1    [ 2   3 ]   [ 6   7 ]   [ 10  11 ]
               |   |
       channel 0   channel 1

A context window of n frames of d filterbank outputs each, frame after frame in a column, is an image of width n, height
d and one channel: time runs to the right, frequency downwards. The weights of a kernel have the same order.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from acoustic.kernels.shape import Shape


class Image(NamedTuple):
    """Size of an image.

    Attributes
    ----------
    width, height, channels : int
    """

    width: int
    height: int
    channels: int

    def __str__(self) -> str:
        return f"{self.width}x{self.height}x{self.channels}"

    @property
    def size(self) -> int:
        """Number of elements: the rows of the matrix that holds it."""
        return self.width * self.height * self.channels


class ImageShape(Shape):
    """A shape whose columns are images; equal to any shape with the same rows and columns.

    A node whose shape is that of an operand passes the image on.
    """

    image: Image

    def __new__(cls, image: Image, cols: Any) -> "ImageShape":
        shape = super().__new__(cls, image.size, cols)
        shape.image = image
        return shape

    def __str__(self) -> str:
        return f"{super().__str__()} (image {self.image})"

    def with_columns(self, num_columns: int) -> "ImageShape":
        return ImageShape(self.image, super().with_columns(num_columns).cols)


def image_of(shape: Shape) -> Image | None:
    """The image in a column of this shape; None if it is no image."""
    return getattr(shape, "image", None)


def keep_image(shape: Shape, *operands: Shape) -> Shape:
    """The shape with the image of the first operand that has one, if the image has as many rows."""
    image = next(filter(None, map(image_of, operands)), None)
    return ImageShape(image, shape.cols) if image is not None and image.size == shape.rows else shape


@dataclass(frozen=True)
class ImageWindows:
    """The positions of windows on an image: one window for each of `rows` and each of `cols`, rows fastest.

    Elements outside the image count as 0. A packed window is a column in the order of an image: channel, row, column.

    Attributes
    ----------
    image : Image
    rows, cols : sequence of int
        First row and first column of the windows; negative if they begin outside the image.
    height : int
        Number of consecutive rows of a window.
    offsets : sequence of int
        The columns of a window, relative to its first column.
    """

    image: Image
    rows: Sequence[int]
    cols: Sequence[int]
    height: int
    offsets: Sequence[int]

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.rows) * len(self.cols)

    @property
    def size(self) -> int:
        """Number of elements of a window."""
        return self.image.channels * self.height * len(self.offsets)

    def output(self, channels: int) -> Image:
        """The image with one pixel per window."""
        return Image(len(self.cols), len(self.rows), channels)

    @property
    def contiguous(self) -> bool:
        """Whether a window's columns are neighbours."""
        return all(map(operator.eq, self.offsets, range(len(self.offsets))))

    def in_onnx(self) -> dict[str, list[int]]:
        """The attributes of ONNX's Conv and pools over (images, channels, width, height), of contiguous windows."""
        sides = [(self.cols, len(self.offsets), self.image.width), (self.rows, self.height, self.image.height)]
        return {
            "kernel_shape": [window for _, window, _ in sides],
            "strides": [starts[1] - starts[0] if len(starts) > 1 else 1 for starts, _, _ in sides],
            "pads": [-starts[0] for starts, _, _ in sides]
            + [max(0, starts[-1] + window - size) for starts, window, size in sides],
        }

    @cached_property
    def strips(self) -> "ImageWindows":
        """For contiguous windows: one strip for each of `rows`, which covers the windows of all `cols`.

        The elements of a window are consecutive in its strip, from strip_starts on.
        """
        first = min(self.cols)
        last = max(self.cols) + len(self.offsets)
        return ImageWindows(self.image, self.rows, (first,), self.height, range(last - first))

    @property
    def strip_starts(self) -> tuple[int, ...]:
        """For each column of windows, their first element in a strip."""
        return tuple((col - min(self.cols)) * self.height * self.image.channels for col in self.cols)

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """rows, cols and offsets, int64."""
        return np.array(self.rows, np.int64), np.array(self.cols, np.int64), np.array(self.offsets, np.int64)

    @cached_property
    def index(self) -> np.ndarray:
        """(size, count) int64: the row of the matrix for each element of each window; -1 outside the image."""
        width, height, channels = self.image
        c = np.arange(channels)[:, None, None, None, None]
        r = np.arange(self.height)[:, None, None, None] + np.array(self.rows)[:, None]
        q = np.array(self.offsets)[:, None, None] + np.array(self.cols)
        index = c + channels * (r + height * q)  # (channel, row in window, column in window, row, column)
        in_image = (r >= 0) & (r < height) & (q >= 0) & (q < width) & (c >= 0)
        return np.where(in_image, index, -1).reshape((self.size, self.count), order="F")


def spread(size: int, window: int, step: int, padded: bool = False) -> range:
    """The starts of windows along one side of an image; empty if the window is larger than the side.

    Without padding all (size - window) / step + 1 windows are inside. With padding there are
    (size - window mod 2) / step + 1 windows; the centre of window i, element window / 2, is at i * step. Divisions
    round down. [CNTK book, eq. 2.163, 2.164]
    """
    if padded:
        first = -(window // 2)
        count = max(0, (size - window % 2) // step + 1)
        return range(first, first + count * step, step)
    return range(0, size - window + 1, step)
