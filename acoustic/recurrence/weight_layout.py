"""Matrices laid out once for the many thin products of a loop's steps.

A matrix lies in panels in the order in which a product reads it, transposed if need be: see panel_products.py.
1024x256 by
256x8 takes one core of an EPYC with AVX2 44 us so; 79 where MKL packs it, 100 to 125 as it is by OpenBLAS.  Where
registers are 64 bytes wide MKL's packed products are as fast as they can be (a Xeon with AVX-512, 512x512 by 512x16:
63 us, as it is 93).  Laying a matrix out costs less than a product of the whole minibatch.  For few steps it stays as
it is, but for transposes: libraries read matrices in Fortran order fastest.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from acoustic.kernels.backend import aligned_empty
from acoustic.runtime.blas import COLUMN_MAJOR, PLAIN, TRANSPOSED, address_of, mkl_library
from acoustic.runtime.recorder import current

AS_IT_IS, PACKED, PANELS = range(3)  # how a matrix lies; PACKED: by MKL
LAID_OUT_FROM = 8  # steps: for fewer, laying parameters out costs more than it gives
FIRST = 161  # the operand of a product that is packed
LINE_BYTES = 64


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


def best_layout(num_steps: int) -> int:
    """How parameters should lie for so many steps: AS_IT_IS, PACKED or PANELS."""
    if num_steps < LAID_OUT_FROM:
        return AS_IT_IS
    from acoustic.recurrence import panel_products  # numba: only a job that computes loads it

    return PACKED if panel_products.REGISTER_BYTES >= LINE_BYTES and _calls() is not None else PANELS


class Factor:
    """Rows of a parameter, or of its transpose, as the first operand of products.

    rows: which ones; lies: AS_IT_IS, PACKED or PANELS; width: where it is packed, the columns of the second operand.
    After `take(matrix)`, matrix float32 in Fortran order: address; distance: of columns in elements; shape: of the
    operand.
    """

    def __init__(self, transposed: bool, rows: slice, lies: int, width: int = 0) -> None:
        self.transposed, self.rows, self.lies, self.width = transposed, rows, lies, width
        self.shape = (0, 0)
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
        if self.lies == PACKED:
            self._pack(matrix, renewed)
        elif self.lies == PANELS:
            self._lay(matrix, renewed)
        elif self.transposed:
            from acoustic.recurrence import step_kernels  # numba: only a job that computes loads it

            if renewed:
                self._memory = np.empty(shape, np.float32, order="F")
            step_kernels.turn(matrix.T, self._memory.T)
            self.address, self.distance = self._memory.ctypes.data, shape[0]
        else:
            self._memory = matrix  # kept alive
            self.address, self.distance = matrix.ctypes.data, _distance(matrix)

    def _pack(self, matrix: np.ndarray, renewed: bool) -> None:
        size, pack, _ = _calls()
        (m, k), n = self.shape, self.width
        if renewed:
            self._renew(size(FIRST, m, n, k))  # the most of it is never touched
        how = TRANSPOSED if self.transposed else PLAIN
        if (recording := current()) is not None:
            before = address_of(pack), how, m, n, k
            recording.lay_out("pack", before, matrix, (_distance(matrix), self.address), self._memory)
        else:
            pack(COLUMN_MAJOR, FIRST, how, m, n, k, 1.0, matrix.ctypes.data, _distance(matrix), self.address)

    def _lay(self, matrix: np.ndarray, renewed: bool) -> None:
        from acoustic.recurrence import panel_products  # numba: only a job that computes loads it

        if renewed:
            self._renew(panel_products.NUMBER_BYTES * panel_products.panels_size(*self.shape))
        before = int(self.transposed), *self.shape
        if (recording := current()) is not None:
            recording.lay_out("panels", before, matrix, (_distance(matrix), self.address), self._memory)
        else:
            panel_products.lay_panels(*before, matrix.ctypes.data, _distance(matrix), self.address)

    def _renew(self, num_bytes: int) -> None:
        self._memory = aligned_empty(num_bytes, np.uint8)
        self.address, self.distance = self._memory.ctypes.data, self.shape[0]


def _distance(matrix: np.ndarray) -> int:
    """From column to column, in elements."""
    return matrix.strides[1] // matrix.itemsize
