"""Priors of a network's outputs, or counts that are as good: numbers between blanks and line ends.

Kaldi's vectors as text, `[ 12 0 345 ]`, are such files; so is a column of numbers.
"""

import os

import numpy as np

from readers.common.text import read_lines
from readers.errors import FormatError


def read_priors(path: str | os.PathLike) -> np.ndarray:
    """(n,) float64, n > 0, each at least 0 and finite.  Raises FormatError, with file and line, for anything else."""
    values: list[float] = []
    for number, line in enumerate(read_lines(path), 1):
        for token in line.replace("[", " ").replace("]", " ").split():
            try:
                values.append(float(token))
            except ValueError:
                values.append(-1.0)
            if not 0 <= values[-1] < float("inf"):
                raise FormatError(
                    f"{path}:{number}: {token[:40]!r}; expected a prior or a count, a number of at least 0"
                )
    if not values:
        raise FormatError(f"{path}: no numbers; expected one for each output of the network")
    return np.array(values)
