"""Divides the phones of words among their letters: an EM algorithm over all divisions, then the best one.

A graphone is a letter with the phones that it stands for, such as `x` with K S, or a silent `e` with none.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decoder.g2p.alignment_kernels import best_paths, expect, number_arcs
from readers.common.environment import available_cores

SHARES = 16  # of the words; their sums are added in this order, for any number of threads


class Graphone(NamedTuple):
    """A letter and the phones that it stands for.

    Attributes
    ----------
    letter : str
    phones : tuple of str
        May be empty.
    """

    letter: str
    phones: tuple[str, ...]


@dataclass(frozen=True)
class Alignment:
    """How the phones of words are divided among their letters.

    Attributes
    ----------
    graphones : list of Graphone
        All that a division of the words can have.
    probability : (G,) array, float64
        Of each graphone.
    words : list of (letters,) array, int32
        For each word, the graphone of each letter.
    log_likelihoods : list of float
        Sum of ln P(word) before each pass of the EM algorithm.
    """

    graphones: list[Graphone]
    probability: np.ndarray
    words: list[np.ndarray]
    log_likelihoods: list[float]


def align(
    words: Sequence[tuple[Sequence[str], Sequence[str]]],
    most_phones: int = 2,
    passes: int = 20,
    threads: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Alignment:
    """Divide the phones of words among their letters.

    Parameters
    ----------
    words : sequence of (letters, phones)
        At least one letter in each, and at most `most_phones` phones for each letter.
    most_phones : int
        Most phones of a graphone.
    passes : int
        Passes of the EM algorithm.
    threads : int, optional
        By default the available cores.  The result does not depend on it.
    progress : callable, optional
        Called with the number of passes done and in all.

    Returns
    -------
    Alignment

    References
    ----------
    Jiampojamarn, Kondrak and Sherif, Applying many-to-many alignments and hidden Markov models to letter-to-phoneme
    conversion, NAACL 2007.
    """
    letter_names, letters, first_letter = _numbered([letters for letters, _ in words])
    phone_names, phones, first_phone = _numbered([phones for _, phones in words])
    base = len(phone_names) + 1
    keys, graphone, first_arc = number_arcs(letters, first_letter, phones, first_phone, most_phones, np.int64(base))
    lengths = np.column_stack([np.diff(first_letter), np.diff(first_phone)])
    probability = np.full(keys.shape[0], 1 / keys.shape[0])
    growth = float(keys.shape[0]) / (1 + most_phones)
    bounds = np.linspace(0, len(words), SHARES + 1).astype(np.int64)

    def expected(share: int) -> tuple[float, np.ndarray]:
        counts = np.zeros(keys.shape[0])
        begin, end = bounds[share], bounds[share + 1]
        total = expect(lengths, begin, end, graphone, first_arc, most_phones, probability, growth, counts)
        return total, counts

    log_likelihoods = []
    with ThreadPoolExecutor(threads or available_cores()) as pool:
        for done in range(1, passes + 1):
            sums = list(pool.map(expected, range(SHARES)))
            log_likelihoods.append(sum(total for total, _ in sums))
            counts = np.sum([counts for _, counts in sums], axis=0)
            probability = counts / counts.sum()
            growth = float(np.exp(-log_likelihoods[-1] / letters.shape[0]))
            progress(done, passes)
    path = np.empty(letters.shape[0], np.int32)
    with np.errstate(divide="ignore"):
        cost = -np.log(probability)
    best_paths(lengths, graphone, first_arc, most_phones, cost, first_letter, path)
    graphones = [_graphone(key, most_phones, letter_names, phone_names) for key in keys.tolist()]
    return Alignment(graphones, probability, np.split(path, first_letter[1:-1]), log_likelihoods)


def _numbered(sequences: Sequence[Sequence[str]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """(names, id of each item from 1, where each sequence begins)."""
    names = sorted({item for sequence in sequences for item in sequence})
    ids = {name: number for number, name in enumerate(names, 1)}
    items = np.array([ids[item] for sequence in sequences for item in sequence], np.int32)
    return names, items, np.cumsum([0, *(len(sequence) for sequence in sequences)])


def _graphone(key: int, most_phones: int, letters: Sequence[str], phones: Sequence[str]) -> Graphone:
    """The graphone of a key of `number_arcs`."""
    ids = []
    for _ in range(most_phones):
        key, phone = divmod(key, len(phones) + 1)
        ids.append(phone)
    return Graphone(letters[key - 1], tuple(phones[i - 1] for i in reversed(ids) if i))
