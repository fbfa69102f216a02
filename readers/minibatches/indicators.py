"""One-hot columns stored as row numbers, for large vocabularies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from readers.errors import ShapeError

__all__ = ["Indicators", "one_hot"]


class Indicators:
    """A matrix (blocks * size, N) float32 that consists of `blocks` stacked one-hot columns of `size` rows.

    Columns can be sliced and selected without expanding the matrix; other numpy operations expand it (`np.asarray`).

    Parameters
    ----------
    numbers : (blocks, N) int32
        Row of the 1 in each block of each column; -1 for a column of zeros.
    size : int
        Rows of a block.

    Raises
    ------
    ShapeError
        For a number that is not a row.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, numbers: npt.NDArray[np.integer], size: int) -> None:
        if numbers.ndim != 2 or not np.issubdtype(numbers.dtype, np.integer) or size < 1:
            raise ShapeError(f"indicators: {numbers.dtype} {numbers.shape} of {size} rows; expected whole numbers, 2-D")
        if numbers.size and not -1 <= numbers.min() <= numbers.max() < size:
            raise ShapeError(
                f"indicators: numbers from {numbers.min()} to {numbers.max()}; expected 0 to {size - 1}, or -1"
            )
        self.numbers = numbers
        self.size = size

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the matrix."""
        return len(self.numbers) * self.size, self.numbers.shape[1]

    def columns(self, which: Any) -> "Indicators":
        """Return some columns, given a slice, indices, or (N,) bool."""
        selection = object.__new__(Indicators)  # skips the checks, which these numbers have passed
        selection.numbers = self.numbers[:, which]
        selection.size = self.size
        return selection

    def __getitem__(self, key: Any) -> Any:
        rows, which = key if isinstance(key, tuple) and len(key) == 2 else (None, None)
        if isinstance(rows, slice) and rows == slice(None) and isinstance(which, slice | np.ndarray):
            return self.columns(which)
        return np.asarray(self)[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        matrix = np.zeros(self.shape, dtype or self.dtype, order="F")
        block, column = np.nonzero(self.numbers >= 0)
        matrix[self.numbers[block, column] + self.size * block, column] = 1
        return matrix

    def argmax(self, axis: int = 0) -> npt.NDArray[np.intp]:
        """Return (N,) the row of the first 1 of each column, like argmax of the matrix for axis 0."""
        rows: npt.NDArray[np.intp]
        if axis == 0 and len(self.numbers) == 1:
            rows = np.maximum(self.numbers[0], 0).astype(np.intp)
        else:
            rows = np.asarray(self).argmax(axis=axis)
        return rows


def one_hot(numbers: Sequence[int] | npt.NDArray[np.integer], size: int) -> npt.NDArray[np.float32]:
    """Return the matrix (size, N) float32, Fortran order, whose column t is 1 in row numbers[t]."""
    matrix = np.zeros((size, len(numbers)), np.float32, order="F")
    matrix[numbers, np.arange(len(numbers))] = 1
    return matrix
