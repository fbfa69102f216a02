"""The loops of the alignment of two word sequences, which edit_kernels compiles for long ones."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # lists, or arrays in compiled code
    from collections.abc import MutableSequence, Sequence

    import numpy as np
    import numpy.typing as npt

    from readers.common.arrays import Int64Array

PAIR, DELETION, INSERTION = range(3)


def fill_last_edits(
    words: "Sequence[int] | Int64Array",
    guesses: "Sequence[int] | Int64Array",
    substitution: int,
    deletion: int,
    insertion: int,
    costs: "MutableSequence[int] | Int64Array",
    edits: "Sequence[MutableSequence[int]] | npt.NDArray[np.int8]",
) -> None:
    """Fill edits[i][j] with the last edit of the cheapest alignment of words[: i + 1] and guesses[: j + 1].

    Of equally cheap edits, a pair comes before a deletion, and a deletion before an insertion.  costs (m + 1): those of
    inserting the first j guesses; overwritten.
    """
    for i in range(len(words)):
        diagonal = costs[0]
        costs[0] = (i + 1) * deletion
        for j in range(len(guesses)):
            best = diagonal if words[i] == guesses[j] else diagonal + substitution
            edit = PAIR
            if costs[j + 1] + deletion < best:
                best = costs[j + 1] + deletion
                edit = DELETION
            if costs[j] + insertion < best:
                best = costs[j] + insertion
                edit = INSERTION
            diagonal = costs[j + 1]
            costs[j + 1] = best
            edits[i][j] = edit


def fill_edit_costs(
    words: "Sequence[int] | Int64Array",
    guesses: "Sequence[int] | Int64Array",
    substitution: int,
    deletion: int,
    insertion: int,
    costs: "MutableSequence[int] | Int64Array",
) -> None:
    """Replace costs[j] by the cost of the cheapest alignment of all words with guesses[:j]; otherwise as above."""
    for i in range(len(words)):
        diagonal = costs[0]
        costs[0] = (i + 1) * deletion
        for j in range(len(guesses)):
            best = diagonal if words[i] == guesses[j] else diagonal + substitution
            best = min(best, costs[j + 1] + deletion, costs[j] + insertion)
            diagonal = costs[j + 1]
            costs[j + 1] = best
