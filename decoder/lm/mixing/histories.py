"""How often each history comes in the text that an n-gram model generates: the stationary distribution of its chain."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from decoder.lm.mixing.ngram_index import Whole

Numbers = npt.NDArray[np.float64]
MOST_STEPS, TOLERANCE = 200, 1e-4  # of the words of generated text; of the sum of absolute changes


def history_probabilities(whole: Whole, vocabulary: Sequence[str]) -> list[Numbers]:
    """Return P(h) (n,), the part of all predictions that is made after h, for the n-grams h of orders 1 to N - 1.

    The state of the chain is the longest suffix of the words before that is listed; `</s>` is followed by `<s>`.  A
    step takes each state's probability to its listed words and, through the back-off weight, to the next shorter
    history, all n-grams of an order at once.

    whole: the n-grams of the model, with all prefixes and suffixes; vocabulary: its words.
    """
    index, order = whole.index, len(whole.probability)
    if order == 1:
        return []
    start = vocabulary.index(SENTENCE_START) if SENTENCE_START in vocabulary else -1
    end = vocabulary.index(SENTENCE_END) if SENTENCE_END in vocabulary else -1
    ends = [rows[:, -1] == end for rows in index.rows]
    states = _first_guess(whole, start, end)
    for _ in range(MOST_STEPS):
        previous, states = states, _step(whole, states, start, ends)
        if sum(np.abs(new - old).sum() for new, old in zip(states, previous)) < TOLERANCE:
            break
    for k in range(order - 1, 1, -1):  # h comes in every state that ends in it
        states[k - 1] += np.bincount(index.suffix(k), states[k], len(states[k - 1]))
    return states[1:]


def _first_guess(whole: Whole, start: int, end: int) -> list[Numbers]:
    """Return probabilities of the empty history and the n-grams of each lower order: the words of the unigrams."""
    states = [np.zeros(1), *(np.zeros(len(p)) for p in whole.probability[:-1])]
    states[1][:] = whole.probability[0]
    if start >= 0 and end >= 0:
        states[1][start], states[1][end] = states[1][end], 0.0
    states[1] /= states[1].sum()
    return states


def _step(whole: Whole, states: list[Numbers], start: int, ends: list[npt.NDArray[np.bool_]]) -> list[Numbers]:
    """Return the probabilities of the states after one more word."""
    index, order = whole.index, len(states)
    passing = [mass.copy() for mass in states]  # that predicts from a history, or backs off to it
    backed_off = [np.zeros(0)]  # of histories, what they hand to the next shorter ones
    for k in range(order - 1, 0, -1):
        backed_off.insert(1, passing[k] * whole.backoff[k - 1])
        suffix = index.suffix(k) if k > 1 else np.zeros(len(passing[1]), np.int64)
        passing[k - 1] += np.bincount(suffix, backed_off[1], len(passing[k - 1]))
    result = [np.zeros(len(mass)) for mass in states]
    ended = 0.0
    for k in range(1, order + 1):
        prefix = index.prefix[k - 1] if k > 1 else np.zeros(len(index.rows[0]), np.int64)
        share = passing[k - 1][prefix]
        if k < order:  # a word that a longer history lists is not predicted from this one
            longer = backed_off[k][index.prefix[k]]
            share -= np.bincount(index.suffix(k + 1), longer, len(share))
        flow = np.maximum(share, 0.0) * whole.probability[k - 1]
        ended += float(flow[ends[k - 1]].sum())
        flow[ends[k - 1]] = 0.0
        result[min(k, order - 1)] += flow if k < order else np.bincount(index.suffix(k), flow, len(result[-1]))
    result[1 if start >= 0 else 0][max(start, 0)] += ended
    total = sum(float(mass.sum()) for mass in result)
    return [mass / total for mass in result]
