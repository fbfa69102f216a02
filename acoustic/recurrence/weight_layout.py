"""Parameters of a loop, copied to panels: the order in which the thin products of its steps read them.

See panel_products.py for the order. On one core of an EPYC with AVX2 a product of 1024x256 by 256x8 takes 44 us with
panels, and 100 to 125 us by OpenBLAS without. Copying costs less than a product of the whole minibatch. For few steps
parameters are not copied.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.recurrence.codes import PANELS
from acoustic.runtime.memory import PLAIN, TRANSPOSED, aligned_empty
from acoustic.runtime.products import Caller

LAID_OUT_FROM = 8  # steps: for fewer, copying parameters costs more than it saves


class Factor(Caller):
    """A parameter, or its transpose, as the first operand of products.

    in_panels: whether it is copied to panels; version: of the copied parameter, None if unknown. After bind(matrix) of
    a float32 matrix in Fortran order: address; how: PANELS, PLAIN or TRANSPOSED; distance: elements from one column to
    the next; shape: of the operand.
    """

    def __init__(self, transposed: bool, in_panels: bool) -> None:
        self.transposed = transposed
        self.in_panels = in_panels
        self.how = PANELS if in_panels else TRANSPOSED if transposed else PLAIN
        self.shape = (0, 0)
        self.address = self.distance = 0
        self.version: int | None = None
        self._memory: Any = None
        self._matrix: Any = None  # that is copied, or read in its place

    def bind(self, matrix: np.ndarray) -> None:
        """Take the place of the matrix or, for panels, allocate them."""
        if matrix is not self._matrix:
            self._matrix = matrix
            self.version = None
        shape = matrix.shape[::-1] if self.transposed else matrix.shape
        if not self.in_panels:
            self.shape = shape
            self.address = matrix.ctypes.data
            self.distance = matrix.strides[1] // matrix.itemsize
        elif shape != self.shape:
            from acoustic.recurrence import panel_products  # numba: only a job that computes loads it

            size = panel_products.NUMBER_BYTES * panel_products.panels_size(*shape)
            self._memory = aligned_empty(size, np.uint8)
            self.shape = shape
            self.address = self._memory.ctypes.data
            self.distance = shape[0]

    def panels(self, matrix: np.ndarray, panels: np.ndarray, numbers: Sequence[int]) -> None:
        """Copy a matrix to panels; see panel_products.py for the arguments."""
        self.calls.by_address("panels", [matrix, panels], numbers)

    def copy(self, matrix: np.ndarray, factor: Any) -> None:
        """Copy the matrix, or its transpose, to panels; factor: this, or an emitter of it."""
        if self.in_panels:
            numbers = [int(self.transposed), *self.shape, matrix.strides[1] // matrix.itemsize]
            factor.panels(matrix, self._memory, numbers)

    def renew(self, matrix: np.ndarray, version: int) -> None:
        """Copy the matrix now if it has changed."""
        if version != self.version or matrix is not self._matrix:
            self.bind(matrix)
            self.copy(matrix, self)
            self.version = version
