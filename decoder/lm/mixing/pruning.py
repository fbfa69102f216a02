"""Smaller n-gram models: n-grams that backing off predicts nearly as well are left out."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from decoder.lm.language_model import log10_of
from decoder.lm.mixing.histories import history_probabilities
from decoder.lm.mixing.ngram_index import Whole, backoff_weights, complete
from readers.errors import GraphError
from readers.language.arpa import Arpa, ArpaOrder

Numbers = npt.NDArray[np.float64]


def prune(model: Arpa, threshold: float) -> Arpa:
    """Leave out the n-grams whose removal changes the perplexity of the model by less than a relative threshold.

    With the removal of an n-gram h w, the back-off weight of h changes from b to b', and the distributions after h
    differ by D = P(h) (P(w|h) (ln P(w|h) - ln b' P(w|h')) + (ln b - ln b') left(h)), where left(h) is what the listed
    words leave.  It is left out if exp(D) - 1 is below the threshold and no listed n-gram continues it.  The highest
    order is pruned first; unigrams stay.

    P(h) is how often h comes in text that the whole model generates (see `history_probabilities`).  Stolcke multiplies
    the probabilities of the lower orders; in a Kneser-Ney model these count different histories, not occurrences.

    Parameters
    ----------
    model : Arpa
        A prefix or suffix of an n-gram that is not listed has the probability that backing off gives it.
    threshold : float
        For example 1e-8 for a model of a few million n-grams, 1e-6 for a small one; 0 leaves the n-grams as they are,
        and adds the prefixes that are not listed.

    Returns
    -------
    Arpa

    Raises
    ------
    GraphError
        For a negative threshold.

    References
    ----------
    Stolcke, Entropy-based pruning of backoff language models, DARPA Broadcast News Workshop 1998, eq. 2 to 8; Chelba et
    al., Study on interaction between entropy pruning and Kneser-Ney smoothing, Interspeech 2010 (the fault of P(h)).
    """
    if not threshold >= 0:
        raise GraphError(f"pruning: threshold {threshold}; expected at least 0")
    whole = complete(model)
    index, probability = whole.index, whole.probability
    histories = history_probabilities(whole, model.vocabulary)
    listed = [mask.copy() for mask in whole.listed]
    for k in range(model.order, 1, -1):
        lower = probability[k - 2][index.suffix(k)]
        change = _changes(index.prefix[k - 1], probability[k - 1], lower, histories[k - 2], listed[k - 1])
        listed[k - 1] &= np.expm1(np.maximum(change, 0.0)) >= threshold
        if k < model.order:
            listed[k - 1][index.prefix[k][listed[k]]] = True
    return listed_model(model, whole, listed)


def _changes(
    prefix: npt.NDArray[np.int64],
    probability: Numbers,
    lower: Numbers,
    history: Numbers,
    listed: npt.NDArray[np.bool_],
) -> Numbers:
    """Return the relative entropy D (n,) that the removal of each n-gram alone would cause.

    prefix (n,): rows of the histories; probability, lower (n,): of the last word after its history and after the
    shorter one; history: P(h) of each history; listed (n,): of the n-grams that are not, D means nothing.
    """
    mass_left = _what_is_left(np.bincount(prefix, probability * listed, len(history)).astype(np.float64, copy=False))
    lower_left = _what_is_left(np.bincount(prefix, lower * listed, len(history)).astype(np.float64, copy=False))
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


def without(model: Arpa, left_out: Sequence[npt.NDArray[np.bool_]]) -> Arpa:
    """Return a model without some n-grams; those that stay keep their probabilities.

    left_out: (n,) for the n-grams of orders 2, 3, ... of the model.  A prefix of an n-gram that stays, stays.
    """
    whole = complete(model)
    listed = [mask.copy() for mask in whole.listed]
    for k, (order, mask) in enumerate(zip(model.orders[1:], left_out), 2):
        listed[k - 1][whole.index.find(order.words[mask])] = False
    for k in range(model.order, 2, -1):
        listed[k - 2][whole.index.prefix[k - 1][listed[k - 1]]] = True
    return listed_model(model, whole, listed)


def listed_model(model: Arpa, whole: Whole, listed: list[npt.NDArray[np.bool_]]) -> Arpa:
    """Return the model with the listed n-grams and the back-off weights that these need.

    A suffix that is pruned has the probability that backing off gives it: all weights are made from the lowest order
    up, with the probabilities of the smaller model.
    """
    index, probability = whole.index, whole.probability
    orders: list[ArpaOrder] = []
    smaller = probability[0]  # of every n-gram of an order in the smaller model, listed or not
    for k, rows in enumerate(index.rows, start=1):
        if k > 1:
            prefix, stays = index.prefix[k - 1], listed[k - 1]
            lower = smaller[index.suffix(k)]
            weights = backoff_weights(prefix[stays], probability[k - 1][stays], lower[stays], len(smaller))
            orders[-1].backoff[:] = np.log10(np.maximum(weights, 1e-98))[listed[k - 2]]
            smaller = np.where(stays, probability[k - 1], weights[prefix] * lower)
        chosen = listed[k - 1]
        orders.append(ArpaOrder(rows[chosen], log10_of(probability[k - 1][chosen]), np.zeros(int(chosen.sum()))))
    return Arpa(list(model.vocabulary), orders)
