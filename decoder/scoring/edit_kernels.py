"""The compiled loop of edit_loop."""

from collections.abc import Sequence

import numpy as np

from decoder.scoring.edit_loop import fill_last_edits
from readers.common.kernels import njit

_fill_last_edits = njit(cache=True, nogil=True)(fill_last_edits)


def last_edits(
    words: Sequence[int], guesses: Sequence[int], substitution: int, deletion: int, insertion: int
) -> np.ndarray:
    """Return the edits (n, m) int8 of `fill_last_edits`."""
    edits = np.empty((len(words), len(guesses)), np.int8)
    costs = np.arange(len(guesses) + 1) * insertion
    _fill_last_edits(np.array(words), np.array(guesses), substitution, deletion, insertion, costs, edits)
    return edits
