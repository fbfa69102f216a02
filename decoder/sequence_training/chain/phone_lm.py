"""The phone language model of the denominator graph: an n-gram without smoothing and without back-off arcs.

A state is a history of phones.  Histories shorter than `unpruned_order - 1` phones occur only at the beginning of an
utterance.  All longer histories that the data contain are states at first; then the states whose loss costs the least
likelihood are merged, one by one, into the state of the history without its first phone, until at most
`num_extra_states` remain beside the histories of `unpruned_order - 1` phones.

References
----------
Povey et al., Purely sequence-trained neural networks for ASR based on lattice-free MMI, Interspeech 2016, section 2.3.
"""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from decoder.sequence_training.chain.options import PhoneLmOptions
from readers.errors import GraphError

BOUNDARY = 0  # the number of the beginning and the end of an utterance; phones are numbered from 1
STAGES = 4  # the costs of all merges are computed again so many times

History = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PhoneLm:
    """A phone language model as an acceptor without epsilon arcs.

    Attributes
    ----------
    histories : list of tuple of int
        The phones before each state, the last one last; 0 is the beginning of the utterance.
    start : int
        The first state.
    successors : list of dict of int to (int, float)
        For each state: phone -> (next state, probability).
    final : (S,) float64
        Probability of the end of the utterance in each state.
    perplexity : float
        On the data that the model was estimated from.
    """

    histories: list[History]
    start: int
    successors: list[dict[int, tuple[int, float]]]
    final: np.ndarray
    perplexity: float

    @property
    def num_states(self) -> int:
        """Number of states."""
        return len(self.histories)

    @property
    def num_arcs(self) -> int:
        """Number of arcs."""
        return sum(map(len, self.successors))

    def probability(self, phones: Sequence[int], complete: bool = True) -> float:
        """Return the probability of a sequence of phones.

        Parameters
        ----------
        phones : sequence of int
        complete : bool
            Whether the utterance ends after the phones.

        Returns
        -------
        float
            0 for a sequence that the model does not contain.
        """
        state = self.start
        total = 1.0
        for phone in phones:
            if phone not in self.successors[state]:
                return 0.0
            state, probability = self.successors[state][phone]
            total *= probability
        return total * float(self.final[state]) if complete else total


def estimate_phone_lm(sequences: Iterable[Sequence[int]], options: PhoneLmOptions | None = None) -> PhoneLm:
    """Estimate the phone language model of a denominator graph.

    Parameters
    ----------
    sequences : iterable of sequence of int
        The phones of each utterance, numbered from 1.
    options : PhoneLmOptions, optional

    Returns
    -------
    PhoneLm

    Raises
    ------
    GraphError
        When there are no phones.

    Examples
    --------
    >>> model = estimate_phone_lm([[1, 2, 1, 2], [1, 2, 2]])
    >>> model.probability([1, 2]), model.probability([1, 2], complete=False), model.probability([2])
    (0.0, 1.0, 0.0)
    """
    options = options or PhoneLmOptions()
    estimator = _Estimator(options)
    for phones in sequences:
        estimator.add(phones)
    if not estimator.num_phones:
        raise GraphError("phone language model: no phones in the data; expected at least one utterance with phones")
    estimator.merge()
    return estimator.result()


class _Estimator:
    """Counts of histories, and their merging.

    counts: history -> how often each phone, or the end, followed it; empty for a history that was merged.
    reserve: history -> its count and those of all longer histories that may be merged into it.
    """

    def __init__(self, options: PhoneLmOptions):
        assert options.unpruned_order is not None
        self.options = options
        self.unpruned_order = options.unpruned_order
        self.counts: dict[History, Counter[int]] = defaultdict(Counter)
        self.reserve: dict[History, int] = {}
        self.num_phones = 0
        self.num_active = 0

    def add(self, phones: Sequence[int]) -> None:
        longest = self.options.order - 1
        history: History = (BOUNDARY,)
        for phone in phones:
            if phone <= BOUNDARY:
                raise GraphError(f"phone language model: phone number {phone}; expected numbers from 1")
            self.counts[history[-longest:]][phone] += 1
            history = (*history[-longest:], phone)
        self.counts[history[-longest:]][BOUNDARY] += 1
        self.num_phones += len(phones)

    def merge(self) -> None:
        for history in list(self.counts):
            while len(history) >= self.unpruned_order:
                history = history[1:]
                self.counts[history]
        self.reserve = {history: counts.total() for history, counts in self.counts.items()}
        for history in sorted(self.reserve, key=len, reverse=True):
            if len(history) >= self.unpruned_order:
                self.reserve[history[1:]] += self.reserve[history]
        self.num_active = sum(1 for counts in self.counts.values() if counts)
        basic = sum(1 for history in self.counts if len(history) == self.unpruned_order - 1)
        first, last = self.num_active, basic + self.options.num_extra_states
        for stage in range(1, STAGES + 1):
            self._merge_down_to(first + (last - first) * stage // STAGES)

    def _merge_down_to(self, target: int) -> None:
        waiting = [(-self._change(history), history) for history in self.counts if self._may_merge(history)]
        heapq.heapify(waiting)
        while self.num_active > target and waiting:
            loss, history = heapq.heappop(waiting)
            now = -self._change(history)
            if not math.isclose(loss, now, rel_tol=1e-3, abs_tol=1e-9):
                heapq.heappush(waiting, (now, history))
                continue
            shorter = history[1:]
            could = self._may_merge(shorter)
            if self.counts[shorter]:
                self.num_active -= 1
            self.counts[shorter].update(self.counts[history])
            self.counts[history] = Counter()
            self.reserve[history] = 0
            if not could and self._may_merge(shorter):
                heapq.heappush(waiting, (-self._change(shorter), shorter))

    def _may_merge(self, history: History) -> bool:
        """Whether a history has its full count, and no arc that needs its first phone."""
        counts = self.counts[history]
        if len(history) < self.unpruned_order or not counts or counts.total() != self.reserve[history]:
            return False
        if len(history) == self.options.order - 1:
            return True
        return not any(self.reserve.get((*history, phone)) for phone in counts if phone != BOUNDARY)

    def _change(self, history: History) -> float:
        """Change of the log-likelihood when a history is merged, at most 0."""
        counts = self.counts[history]
        shorter_counts = self.counts[history[1:]]
        if not shorter_counts:  # no loss; histories with small counts come first
            return -1e-15 * counts.total()
        return min(
            0.0, _log_likelihood(counts + shorter_counts) - _log_likelihood(counts) - _log_likelihood(shorter_counts)
        )

    def _state_of(self, history: History) -> History:
        while not self.counts.get(history):
            history = history[1:]
        return history

    def result(self) -> PhoneLm:
        histories = sorted((history for history, counts in self.counts.items() if counts), key=lambda h: (len(h), h))
        number = {history: i for i, history in enumerate(histories)}
        successors: list[dict[int, tuple[int, float]]] = []
        final = np.zeros(len(histories))
        likelihood = 0.0
        num_events = 0
        for i, history in enumerate(histories):
            counts = self.counts[history]
            total = counts.total()
            likelihood += _log_likelihood(counts)
            num_events += total
            final[i] = counts[BOUNDARY] / total
            successors.append(
                {
                    phone: (number[self._state_of((*history, phone))], count / total)
                    for phone, count in sorted(counts.items())
                    if phone != BOUNDARY
                }
            )
        return PhoneLm(histories, number[(BOUNDARY,)], successors, final, math.exp(-likelihood / num_events))


def _log_likelihood(counts: Counter[int]) -> float:
    total = counts.total()
    return sum(count * math.log(count / total) for count in counts.values())
