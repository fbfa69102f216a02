"""Matrices laid out once for the many thin products of a loop's steps.

MKL packs a matrix in the order in which a product reads it, transposed if need be: thin products with matrices larger
than the nearest caches take 2/3 of the time (512x512 by 512x16 on a Xeon, 63 us against 93), and packing costs less
than a product of the whole minibatch.  Other libraries read matrices in Fortran order fastest, so transposes are made.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from acoustic.backend import aligned_empty
from acoustic.blas import COLUMN_MAJOR, PLAIN, TRANSPOSED, address_of, mkl_library
from acoustic.playback import current

FIRST = 161  # the operand of a product that is packed


@cache
def _calls() -> tuple[Any, Any, int] | None:
    """MKL's size of a packed matrix, its packing, and the address of its product; None without MKL."""
    library = mkl_library()
    if library is None or not hasattr(library, "cblas_sgemm_compute"):
        return None
    number, choice, place = ctypes.c_int, ctypes.c_int, ctypes.c_void_p
    size, pack = library.cblas_sgemm_pack_get_size, library.cblas_sgemm_pack
    size.argtypes, size.restype = [choice, number, number, number], ctypes.c_size_t
    pack.argtypes = [choice, choice, choice, number, number, number, ctypes.c_float, place, number, place]
    pack.restype = None
    return size, pack, address_of(library.cblas_sgemm_compute)


def packed_product_address() -> int:
    """Of the function that multiplies with packed matrices; 0 when nothing packs them."""
    calls = _calls()
    return 0 if calls is None else calls[2]


class Factor:
    """Rows of a parameter, or of its transpose, as the first operand of products with `width` columns.

    rows: which ones; width: 0: of any, not packed.  After `take(matrix)`, matrix float32 in Fortran order: address;
    packed; distance: of columns in elements; shape: of the operand.
    """

    def __init__(self, transposed: bool, rows: slice, width: int) -> None:
        self.transposed, self.rows, self.width = transposed, rows, width
        self.shape = (0, 0)
        self.packed = width > 0
        self.address = self.distance = 0
        self._memory: Any = None
        self._taken: tuple[Any, int | None] = (None, None)

    def is_due(self, matrix: np.ndarray, version: int | None) -> bool:
        """Whether a matrix has to be taken: it is not the one of the last call, or its version, or that is None."""
        before, self._taken = self._taken, (matrix, version)
        return version is None or before[0] is not matrix or before[1] != version

    def take(self, matrix: np.ndarray) -> None:
        """Lay the rows of the matrix, or of its transpose, out."""
        matrix = matrix[:, self.rows] if self.transposed else matrix[self.rows]
        shape = matrix.shape[::-1] if self.transposed else matrix.shape
        renewed, self.shape = shape != self.shape, shape
        if self.packed:
            self._pack(matrix, renewed)
        elif self.transposed:
            from acoustic import _loop_kernels  # numba: only a job that computes loads it

            if renewed:
                self._memory = np.empty(shape, np.float32, order="F")
            _loop_kernels.turn(matrix.T, self._memory.T)
            self.address, self.distance = self._memory.ctypes.data, shape[0]
        else:
            self._memory = matrix  # kept alive
            self.address, self.distance = matrix.ctypes.data, matrix.strides[1] // matrix.itemsize

    def _pack(self, matrix: np.ndarray, renewed: bool) -> None:
        size, pack, _ = _calls()
        (m, k), n = self.shape, self.width
        if renewed:
            self._memory = aligned_empty(size(FIRST, m, n, k), np.uint8)  # the most of it is never touched
            self.address, self.distance = self._memory.ctypes.data, m
        how, distance = TRANSPOSED if self.transposed else PLAIN, matrix.strides[1] // matrix.itemsize
        if (recording := current()) is not None:
            recording.pack(address_of(pack), how, (m, n, k), matrix, distance, self._memory, self.address)
        else:
            pack(COLUMN_MAJOR, FIRST, how, m, n, k, 1.0, matrix.ctypes.data, distance, self.address)
