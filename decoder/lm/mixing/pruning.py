"""Smaller n-gram models: n-grams that backing off predicts nearly as well are left out."""

import numpy as np
import numpy.typing as npt

from decoder.lm.language_model import IMPOSSIBLE_LOG10, SENTENCE_START, log10_of
from decoder.lm.mixing.ngram_index import NgramIndex, backoff_weights
from readers.errors import GraphError
from readers.language.arpa import Arpa, ArpaOrder

Numbers = npt.NDArray[np.float64]


def prune(model: Arpa, threshold: float) -> Arpa:
    """Leave out the n-grams whose removal changes the perplexity of the model by less than a relative threshold.

    With the removal of an n-gram h w, the back-off weight of h changes from b to b', and the distributions after h
    differ by D = P(h) (P(w|h) (ln P(w|h) - ln b' P(w|h')) + (ln b - ln b') left(h)), where left(h) is what the listed
    words leave.  It is left out if exp(D) - 1 is below the threshold and no listed n-gram continues it.  The highest
    order is pruned first; unigrams stay.

    Parameters
    ----------
    model : Arpa
        Each n-gram's prefix and suffix must be listed, as in models that `estimate` and `interpolate` make.
    threshold : float
        For example 1e-8 for a model of a few million n-grams, 1e-6 for a small one; 0 leaves the model as it is.

    Returns
    -------
    Arpa

    Raises
    ------
    GraphError
        For a negative threshold, and for a model that lacks a prefix or suffix.

    References
    ----------
    Stolcke, Entropy-based pruning of backoff language models, DARPA Broadcast News Workshop 1998, eq. 2 to 8.
    """
    if not threshold >= 0:
        raise GraphError(f"pruning: threshold {threshold}; expected at least 0")
    size = len(model.vocabulary)
    index = NgramIndex(size, [order.words for order in model.orders])
    if [len(rows) for rows in index.rows] != [len(order) for order in model.orders]:
        raise GraphError("pruning: a model that lacks the prefix or suffix of an n-gram; expected one without gaps")
    places = [index.find(order.words) for order in model.orders]
    probability = [_sorted(10.0**order.logprob, rank) for order, rank in zip(model.orders, places)]
    probability = [np.where(p > 10.0**IMPOSSIBLE_LOG10, p, 0.0) for p in probability]
    history = _history_probabilities(index, probability, model.vocabulary)
    listed = [np.ones(len(rows), bool) for rows in index.rows]
    for k in range(model.order, 1, -1):
        lower = probability[k - 2][index.suffix(k)]
        change = _changes(index.prefix[k - 1], probability[k - 1], lower, history[k - 2])
        is_prefix = np.zeros(len(lower), bool)
        if k < model.order:
            is_prefix[index.prefix[k][listed[k]]] = True
        listed[k - 1] = is_prefix | (np.expm1(np.maximum(change, 0.0)) >= threshold)
    return _listed_model(model, index, probability, listed)


def _sorted(values: Numbers, places: npt.NDArray[np.int64]) -> Numbers:
    result = np.empty(len(values))
    result[places] = values
    return result


def _history_probabilities(index: NgramIndex, probability: list[Numbers], vocabulary: list[str]) -> list[Numbers]:
    """Return P(h) of the n-grams of each order as histories: the product of its words' probabilities.

    `<s>` begins every sentence, so it counts as often as `</s>` is predicted; here 1 stands for that number.
    """
    first = probability[0].copy()
    if SENTENCE_START in vocabulary:
        first[vocabulary.index(SENTENCE_START)] = 1.0
    result = [first]
    for k in range(1, len(probability)):
        result.append(result[-1][index.prefix[k]] * probability[k])
    return result


def _changes(prefix: npt.NDArray[np.int64], probability: Numbers, lower: Numbers, history: Numbers) -> Numbers:
    """Return the relative entropy D (n,) that the removal of each n-gram alone would cause.

    prefix (n,): rows of the histories; probability, lower (n,): of the last word after its history and after the
    shorter one; history: P(h) of each history.
    """
    mass_left = _what_is_left(np.bincount(prefix, probability, len(history)).astype(np.float64, copy=False))
    lower_left = _what_is_left(np.bincount(prefix, lower, len(history)).astype(np.float64, copy=False))
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.log(mass_left[prefix]) - np.log(lower_left[prefix])
        new_weight = np.log(mass_left[prefix] + probability) - np.log(lower_left[prefix] + lower)
        word = np.where(probability > 0, probability * (np.log(probability) - np.log(lower) - new_weight), 0.0)
        other_words = np.where(mass_left[prefix] > 0, mass_left[prefix] * (weight - new_weight), 0.0)
        change = history[prefix] * (word + other_words)
    return np.where(np.isfinite(change), change, np.inf)  # a word that backing off cannot predict stays


def _what_is_left(listed: Numbers) -> Numbers:
    """Return 1 minus sums of probabilities, 0 where the difference is only rounding."""
    mass_left = 1.0 - listed
    return np.where(mass_left > 1e-9, mass_left, 0.0)


def _listed_model(
    model: Arpa, index: NgramIndex, probability: list[Numbers], listed: list[npt.NDArray[np.bool_]]
) -> Arpa:
    """Return the model with the listed n-grams and the back-off weights that these need.

    A suffix that is pruned has the probability that backing off gives it: all weights are made from the lowest order
    up, with the probabilities of the smaller model.
    """
    orders: list[ArpaOrder] = []
    smaller = probability[0]  # of every n-gram of an order in the smaller model, listed or not
    log_weights = np.zeros(0)
    for k, rows in enumerate(index.rows, start=1):
        if k > 1:
            prefix, stays = index.prefix[k - 1], listed[k - 1]
            lower = smaller[index.suffix(k)]
            weights = backoff_weights(prefix[stays], probability[k - 1][stays], lower[stays], len(smaller))
            log_weights = np.log10(np.maximum(weights, 1e-98))
            orders[-1].backoff[:] = log_weights[listed[k - 2]]
            smaller = np.where(stays, probability[k - 1], weights[prefix] * lower)
        chosen = listed[k - 1]
        orders.append(ArpaOrder(rows[chosen], log10_of(probability[k - 1][chosen]), np.zeros(int(chosen.sum()))))
    return Arpa(list(model.vocabulary), orders)
