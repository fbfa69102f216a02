"""Consensus networks, and the word sequence with the least expected number of errors (minimum Bayes risk decoding).

A sequence of slots is aligned with all paths of a lattice at once, which gives each slot a probability for every word.
The best words of the slots form a sequence with fewer expected errors; this is repeated until there is no improvement.
Kaldi's lattice-mbr-decode and lattice-to-ctm-conf use the same algorithm.

References
----------
Xu, Povey, Mangu and Zhu, Minimum Bayes Risk decoding and system combination based on a recursion for edit distance,
Computer Speech and Language 25(4), 2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decoder.lattices.consensus_kernels import alignment, distances
from decoder.lattices.links import ScoredLinks, weigh
from decoder.lattices.posteriors import best_path, link_posteriors
from decoder.lattices.times import word_begins
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.results.lattice import Lattice
from readers.results.timed_words import Word

NOTHING = ""
ROUNDS = 100
SMALLEST = 1e-4  # least probability of a word in a slot's alternatives


@dataclass(frozen=True)
class Slot:
    """Words that compete for one place; alternatives: (word, probability), best first, NOTHING for no word.

    start, end: expected seconds of the words, without the silence before them.  The probabilities sum to 1 except for
    words below 0.0001.
    """

    alternatives: tuple[tuple[str, float], ...]
    start: float
    end: float

    @property
    def word(self) -> str:
        """The most probable word, NOTHING for no word."""
        return self.alternatives[0][0]


@dataclass(frozen=True)
class Consensus:
    """slots: in order, those in which some word has a probability; expected_errors: of the sequence of best words."""

    slots: list[Slot]
    expected_errors: float

    @property
    def words(self) -> list[Word]:
        """The best word of every slot, unless that is no word, with its probability as confidence.

        Words whose expected times overlap share the time between them.
        """
        spoken = [slot for slot in self.slots if slot.word != NOTHING]
        times = np.array([(slot.start, slot.end) for slot in spoken]).reshape(-1)
        ends, starts = times[1:-1:2], times[2::2]
        overlap = ends > starts
        ends[overlap] = starts[overlap] = (ends[overlap] + starts[overlap]) / 2
        in_order = np.maximum.accumulate(times).tolist()
        spans = zip(spoken, in_order[::2], in_order[1::2])
        return [Word(slot.word, start, end, slot.alternatives[0][1]) for slot, start, end in spans]


def consensus(lattice: Lattice, scale: float = 1.0) -> Consensus:
    """The consensus network of a lattice: the one with the least expected errors, by iteration from the best path.

    scale: factor on the lattice's scores, see posteriors.py.
    Raises GraphError for a lattice with a loop, without a path, or with more than one start or end.
    """
    links = weigh(lattice)
    aligner = Aligner(links, scale)
    path = [lattice.word[link] for link in best_path(links)]
    held, times, errors = aligner.align(aligner.numbers([word for word in path if word not in SENTENCE_MARKS]))
    for _ in range(ROUNDS):
        next_held, next_times, next_errors = aligner.align(_spaced(held.argmax(axis=1)))
        if next_errors >= errors - 1e-9:
            break
        held = next_held
        times = next_times
        errors = next_errors
    slots = [slot for slot in aligner.slots(held, times) if slot.word != NOTHING or len(slot.alternatives) > 1]
    return Consensus(slots, errors)


def _spaced(words: np.ndarray) -> np.ndarray:
    """The words with an empty slot before, between and after them, for insertions."""
    spoken = words[words != 0]
    slots = np.zeros(2 * len(spoken) + 1, np.int64)
    slots[1::2] = spoken
    return slots


class Aligner:
    """Aligns one lattice with sequences of slots."""

    def __init__(self, links: ScoredLinks, scale: float) -> None:
        lattice = links.lattice
        position = np.empty(lattice.num_nodes, np.int64)
        position[lattice.order] = np.arange(lattice.num_nodes)
        posteriors = link_posteriors(links, scale)
        with np.errstate(invalid="ignore"):
            weight = posteriors.forward[lattice.start] + scale * links.total - posteriors.forward[lattice.end]
        # Links without a path to the end have no backward mass; they must not count forwards either.
        order = np.argsort(position[lattice.end], kind="stable")
        order = order[np.isfinite(weight[order])]
        spoken = [NOTHING, *sorted({word for word in lattice.word if word not in SENTENCE_MARKS})]
        self.vocabulary = spoken
        self._number = {word: number for number, word in enumerate(spoken)}
        self._word = np.array([self._number.get(word, 0) for word in lattice.word], np.int64)[order]
        self._start = position[lattice.start][order]
        self._end = position[lattice.end][order]
        self._weight = np.exp(weight[order])
        self._begin = np.nan_to_num(word_begins(lattice)[order])
        self._time = np.nan_to_num(lattice.time[lattice.order])

    def numbers(self, words: Sequence[str]) -> np.ndarray:
        """The slots of words of the lattice."""
        return _spaced(np.array([self._number[word] for word in words], np.int64))

    def align(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """(probabilities (Q, words), summed times (Q, 2), expected errors)."""
        graph = len(self._time), self._start, self._end, self._word, self._weight, slots
        cost = distances(*graph)
        held, times = alignment(*graph, cost, self._begin, self._time, len(self.vocabulary))
        return held, times, float(cost[-1, -1])

    def slots(self, held: np.ndarray, times: np.ndarray) -> list[Slot]:
        slots = []
        last = 0.0
        for row, (start, end) in zip(held, times):
            spoken = row[1:].sum()
            begin, stop = (start / spoken, end / spoken) if spoken > 0 else (last, last)
            best = [int(word) for word in np.argsort(-row, kind="stable") if row[word] >= SMALLEST]
            alternatives = tuple((self.vocabulary[word], float(min(row[word], 1.0))) for word in best)
            slots.append(Slot(alternatives, float(begin), float(stop)))
            last = stop
        return slots
