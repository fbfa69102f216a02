"""Memory for matrices, aligned to cache lines."""

from collections.abc import Callable
from typing import Any

import numpy as np

LINE_BYTES = 64  # of a cache line


def aligned_empty(size: int, dtype: Any) -> np.ndarray:
    """An uninitialised vector (size,) whose first element lies at the start of a cache line.

    Elsewhere every vector register of 64 bytes would touch two lines, and MKL's products may differ in the last bit.
    """
    return _aligned(np.empty, size, dtype)


def aligned_zeros(size: int, dtype: Any) -> np.ndarray:
    """A vector (size,) of zeros whose first element lies at the start of a cache line."""
    return _aligned(np.zeros, size, dtype)


def _aligned(make: Callable[..., np.ndarray], size: int, dtype: Any) -> np.ndarray:
    num_bytes = size * np.dtype(dtype).itemsize
    memory = make(num_bytes + LINE_BYTES, np.uint8)
    start = -memory.ctypes.data % LINE_BYTES
    return memory[start : start + num_bytes].view(dtype)
