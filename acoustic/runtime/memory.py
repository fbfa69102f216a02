"""Memory for matrices, aligned to cache lines, and the storage order of matrices as BLAS describes it."""

from collections.abc import Callable
from typing import Any

import numpy as np

LINE_BYTES = 64  # of a cache line
COLUMN_MAJOR, PLAIN, TRANSPOSED = 102, 111, 112  # codes of CBLAS


def aligned_empty(size: int, dtype: Any) -> np.ndarray:
    """An uninitialised vector (size,) that begins at the start of a cache line.

    Otherwise every vector register of 64 bytes would touch two lines, and products of MKL could differ in the last bit.
    """
    return _aligned(np.empty, size, dtype)


def aligned_zeros(size: int, dtype: Any) -> np.ndarray:
    """A vector (size,) of zeros that begins at the start of a cache line."""
    return _aligned(np.zeros, size, dtype)


def _aligned(make: Callable[..., np.ndarray], size: int, dtype: Any) -> np.ndarray:
    num_bytes = size * np.dtype(dtype).itemsize
    memory = make(num_bytes + LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % LINE_BYTES
    return memory[start : start + num_bytes].view(dtype)


def storage(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> tuple[int, int]:
    """(PLAIN or TRANSPOSED, elements from one column or row to the next) of a matrix, or zeros; strides in bytes."""
    (rows, cols), (down, across) = shape, strides
    if (down == size or rows == 1) and (cols == 1 or (across >= size * rows and across % size == 0)):
        return PLAIN, rows if cols == 1 else across // size
    if (across == size or cols == 1) and (rows == 1 or (down >= size * cols and down % size == 0)):
        return TRANSPOSED, cols if rows == 1 else down // size
    return 0, 0
