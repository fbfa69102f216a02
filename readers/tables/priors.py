"""Priors, or counts, of the outputs of a network: numbers separated by blanks or line ends.

Kaldi's text vectors, `[ 12 0 345 ]`, have this form, and so has a column of numbers.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.common.text import read_lines, to_number
from readers.errors import FormatError


def read_priors(path: str | Path) -> npt.NDArray[np.float64]:
    """Read priors or counts.

    Parameters
    ----------
    path : path
        Text file with numbers; a pair of brackets around them is ignored.

    Returns
    -------
    (n,) float64, n > 0
        Finite values of at least 0, not normalised.

    Raises
    ------
    FormatError
        With file and line, for any other content.
    """
    values: list[float] = []
    for number, line in enumerate(read_lines(path), 1):
        for token in line.replace("[", " ").replace("]", " ").split():
            try:
                values.append(to_number(token))
            except ValueError:
                values.append(-1.0)
            if not 0 <= values[-1] < float("inf"):
                raise FormatError(
                    f"{path}:{number}: {token[:40]!r}; expected a prior or a count, a number of at least 0"
                )
    if not values:
        raise FormatError(f"{path}: no numbers; expected one for each output of the network")
    return np.array(values)
