"""The compiled loops of edit_loop."""

import numpy as np
import numpy.typing as npt

from decoder.scoring.edit_loop import fill_edit_costs, fill_last_edits
from readers.common.kernels import njit

_fill_last_edits = njit(cache=True, nogil=True)(fill_last_edits)
_fill_edit_costs = njit(cache=True, nogil=True)(fill_edit_costs)


def last_edits(
    words: npt.ArrayLike, guesses: npt.ArrayLike, substitution: int, deletion: int, insertion: int
) -> np.ndarray:
    """Return the edits (n, m) int8 of `fill_last_edits`."""
    words = np.array(words)
    guesses = np.array(guesses)
    edits = np.empty((len(words), len(guesses)), np.int8)
    costs = np.arange(len(guesses) + 1) * insertion
    _fill_last_edits(words, guesses, substitution, deletion, insertion, costs, edits)
    return edits


def edit_costs(words: np.ndarray, guesses: np.ndarray, substitution: int, deletion: int, insertion: int) -> np.ndarray:
    """Return the costs (m + 1) of `fill_edit_costs`; words and guesses are arrays of int64."""
    costs = np.arange(len(guesses) + 1) * insertion
    _fill_edit_costs(words, guesses, substitution, deletion, insertion, costs)
    return costs
