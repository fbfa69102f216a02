"""Matching words of two long sequences, by a minimum-cost alignment in linear memory."""

from collections.abc import Sequence

import numpy as np

from decoder.scoring.edit_kernels import edit_costs, last_edits
from decoder.scoring.edit_loop import DELETION, INSERTION
from decoder.scoring.error_counts import PENALTIES

COSTS = (PENALTIES["htk"].substitution, PENALTIES["htk"].deletion, PENALTIES["htk"].insertion)
MOST_PAIRS = 1 << 20  # of words that are aligned in one table; longer sequences are divided


def matching_words(words: Sequence[str], guesses: Sequence[str]) -> np.ndarray:
    """Find which words of two sequences are the same in their minimum-cost alignment with the penalties of HTK.

    Parameters
    ----------
    words, guesses : sequence of str
        n and m words.  The time is proportional to n * m, memory to n + m.

    Returns
    -------
    (n,) array, int64
        For each word the index of the equal guess, or -1.  The indices that are not -1 rise.

    References
    ----------
    Hirschberg, A linear space algorithm for computing maximal common subsequences, CACM 18(6), 1975.
    """
    number = {word: i for i, word in enumerate(dict.fromkeys((*words, *guesses)))}
    word_ids, guess_ids = (np.array([number[word] for word in some], np.int64) for some in (words, guesses))
    positions = np.full(len(words), -1, np.int64)
    waiting = [(0, len(word_ids), 0, len(guess_ids))]
    while waiting:
        first, last, begin, end = waiting.pop()
        some = word_ids[first:last]
        some_guesses = guess_ids[begin:end]
        if len(some) * len(some_guesses) <= MOST_PAIRS or len(some) == 1:
            _match(some, some_guesses, positions[first:last], begin)
            continue
        middle = len(some) // 2
        before = edit_costs(some[:middle], some_guesses, *COSTS)
        after = edit_costs(some[middle:][::-1].copy(), some_guesses[::-1].copy(), *COSTS)[::-1]
        cut = int(np.argmin(before + after))
        waiting += [(first, first + middle, begin, begin + cut), (first + middle, last, begin + cut, end)]
    return positions


def _match(words: np.ndarray, guesses: np.ndarray, found: np.ndarray, begin: int) -> None:
    """Fill `found` with the indices of the guesses, counted from `begin`, that equal the words."""
    edits = last_edits(words, guesses, *COSTS)
    i = len(words)
    j = len(guesses)
    while i and j:
        edit = edits[i - 1, j - 1]
        if edit == DELETION:
            i -= 1
        elif edit == INSERTION:
            j -= 1
        else:
            i -= 1
            j -= 1
            if words[i] == guesses[j]:
                found[i] = begin + j
