"""Matrices of numbers as text, one row a line: initial values of parameters (CNTK book, 4.1.4.2), tables of recipes."""

import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.errors import FormatError


def read_text_matrix(path: str | Path) -> npt.NDArray[np.float64]:
    """Read a matrix from a text file of numbers separated by spaces or tabs.

    The path names a local file, whatever it looks like: NumPy would fetch a URL, and unpack a compressed file.

    Parameters
    ----------
    path : str or Path
        Text in UTF-8.  Empty lines are skipped, and `#` begins a comment.

    Returns
    -------
    np.ndarray
        Shape (rows, columns), float64; (0, 1) for a file without numbers.

    Raises
    ------
    FormatError
        If something is not a number, or rows differ in length.
    OSError
        If the file cannot be read.
    """
    try:
        with warnings.catch_warnings(action="ignore"), Path(path).open(encoding="utf-8") as file:  # of an empty file
            return np.loadtxt(file, np.float64, ndmin=2)
    except ValueError as fault:
        raise FormatError(f"{path}: {fault}; expected a text matrix, one row a line") from fault
