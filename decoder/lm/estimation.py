"""Estimation of back-off n-gram models from sentences: interpolated modified Kneser-Ney, and Witten-Bell.

Both are P(w | h) = (a(hw) - D(hw)) / a(h) + g(h) P(w | h'), where h' is h without its first word, down to the uniform
distribution over the vocabulary: every word has a positive probability after every history, and they sum to 1.  In
ARPA form the n-grams of the text are listed with P, and their histories with back-off weight g.

Kneser-Ney: the highest order counts n-grams, a lower order the distinct words that precede an n-gram (for n-grams that
begin with <s>, their occurrences); D is one of three discounts per order, for counts 1, 2, and 3 or more.

References
----------
Chen and Goodman, An empirical study of smoothing techniques for language modeling, TR-10-98, Harvard University, 1998:
sections 3.2 and 4.1.6 (modified Kneser-Ney), 2.4 (Witten-Bell).
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from decoder.lm.counting.tables import START_ID, NgramCounter, NgramCounts, count_part
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, log10_of
from readers.common.arrays import Float64Array
from readers.errors import GraphError
from readers.language.arpa import Arpa, ArpaOrder

METHODS = ("kn", "wb")
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)  # where counts of counts are 0; KenLM's choice


def uniform(words: Iterable[str]) -> Arpa:
    """Return the unigram model in which all words and the end of the sentence have the same probability.

    Parameters
    ----------
    words : iterable of str
        Words; repetitions, <s> and </s> do not count.

    Returns
    -------
    Arpa

    Raises
    ------
    GraphError
        If there are no words.
    """
    marks = (SENTENCE_START, SENTENCE_END)
    vocabulary = [SENTENCE_END, *(word for word in dict.fromkeys(words) if word not in marks)]
    count = len(vocabulary)
    if count == 1:
        raise GraphError("uniform language model: no words; expected at least one")
    ids = np.arange(count, dtype=np.int32)[:, np.newaxis]
    return Arpa(vocabulary, [ArpaOrder(ids, np.full(count, -np.log10(count)), np.zeros(count))])


def estimate(
    sentences: Iterable[Sequence[str]],
    order: int,
    method: str = "kn",
    vocabulary: Iterable[str] | None = None,
    unknown: str | None = None,
) -> Arpa:
    """Estimate a back-off n-gram model from sentences.

    Parameters
    ----------
    sentences : iterable of sequence of str
        The words of each sentence, without <s> and </s>.
    order : int
        The longest n-grams, at least 1.
    method : {"kn", "wb"}
        Interpolated modified Kneser-Ney, or Witten-Bell.
    vocabulary : iterable of str, optional
        Words that get a probability, seen or not.  By default those of the text.
    unknown : str, optional
        A word such as <UNK> that is added to the vocabulary and stands for all words outside it.  Without it such words
        are an error.

    Returns
    -------
    Arpa
        log10 probabilities and back-off weights, for `readers.language.write_arpa` or `LanguageModel.from_arpa`.

    Raises
    ------
    GraphError
        For a text without sentences, an unknown method, and words outside the vocabulary.

    References
    ----------
    Chen and Goodman, An empirical study of smoothing techniques for language modeling, TR-10-98, Harvard University,
    1998.
    """
    if method not in METHODS:
        raise GraphError(f"language model method '{method}'; expected {' or '.join(METHODS)}")
    if order < 1:
        raise GraphError(f"language model order {order}; expected at least 1")
    counter = NgramCounter(order, vocabulary, unknown)
    counter.add(count_part(_words_only(sentences), order))
    return estimate_from_counts(*counter.result(), method)


def estimate_from_counts(vocabulary: list[str], counts: list[NgramCounts], method: str = "kn") -> Arpa:
    """Estimate a model from the result of an NgramCounter; see `estimate`."""
    weigh = _kneser_ney if method == "kn" else _witten_bell
    return _interpolate_orders([weigh(counts, k) for k in range(1, len(counts) + 1)], counts, vocabulary)


def _words_only(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Yield sentences.  Raises GraphError for <s> and </s> among their words."""
    for number, sentence in enumerate(sentences, start=1):
        if SENTENCE_START in sentence or SENTENCE_END in sentence:
            raise GraphError(f"language model: sentence {number} contains <s> or </s>; expected words only")
        yield sentence


def _kneser_ney(counts: list[NgramCounts], k: int) -> tuple[np.ndarray, np.ndarray]:
    """(share (n,), g (histories,)): (a - D) / a(h) of each k-gram, and the weight of the lower order per history."""
    table = counts[k - 1]
    adjusted = adjusted_counts(counts, k)
    discount = np.concatenate([[0.0], discounts(adjusted)])[np.minimum(adjusted, 3)]
    return _shares(table.prefix, adjusted - discount, discount, _num_histories(counts, k))


def adjusted_counts(counts: list[NgramCounts], k: int) -> np.ndarray:
    """Kneser-Ney's counts (n,) of the k-grams: occurrences at the highest order and after <s>, else words before."""
    table = counts[k - 1]
    adjusted = table.count.copy()
    if k < len(counts):
        inner = table.words[:, 0] != START_ID
        adjusted[inner] = table.preceded[inner]
    return np.where(table.words[:, -1] == START_ID, 0, adjusted)  # <s> is never predicted


def discounts(adjusted: np.ndarray) -> tuple[float, float, float]:
    """D1, D2, D3+ of one order from its counts (Chen and Goodman, eq. 26), 0 <= Dk <= k.

    If no n-gram has count 1, or none has count 2, the fallback is used.  Where D2 or D3+ is undefined or not positive,
    the single discount Y = n1 / (n1 + 2 n2) of plain Kneser-Ney is used.
    """
    n1, n2, n3, n4 = (int(np.sum(adjusted == count)) for count in (1, 2, 3, 4))
    if n1 == 0 or n2 == 0:
        return FALLBACK_DISCOUNTS
    y = n1 / (n1 + 2 * n2)
    d2 = 2 - 3 * y * n3 / n2 if n3 else y
    d3 = 3 - 4 * y * n4 / n3 if n3 and n4 else y
    return y, d2 if d2 > 0 else y, d3 if d3 > 0 else y


def _witten_bell(counts: list[NgramCounts], k: int) -> tuple[np.ndarray, np.ndarray]:
    """As `_kneser_ney`: a history with T distinct followers in c occurrences gives T / (c + T) to the lower order."""
    table = counts[k - 1]
    predicted = table.words[:, -1] != START_ID
    return _shares(table.prefix, table.count * predicted, predicted.astype(float), _num_histories(counts, k))


def _num_histories(counts: list[NgramCounts], k: int) -> int:
    return 1 if k == 1 else counts[k - 2].count.shape[0]


def _shares(
    prefix: np.ndarray, kept: np.ndarray, left: np.ndarray, num_histories: int
) -> tuple[Float64Array, Float64Array]:
    """kept / total of its history per n-gram, and left / total per history (1 for a history without followers)."""
    kept_sum = np.bincount(prefix, weights=kept, minlength=num_histories)
    left_sum = np.bincount(prefix, weights=left, minlength=num_histories)
    total = kept_sum + left_sum
    weight = np.divide(left_sum, total, out=np.ones(num_histories), where=total > 0)
    return np.divide(kept, total[prefix], out=np.zeros(kept.shape[0]), where=total[prefix] > 0), weight


def _interpolate_orders(
    weighed: list[tuple[np.ndarray, np.ndarray]], counts: list[NgramCounts], vocabulary: list[str]
) -> Arpa:
    """The ARPA model from each order's shares and weights, lowest order first."""
    size = len(vocabulary)
    probability = np.full(size, weighed[0][1][0] / (size - 1))  # of every word but <s>
    probability[counts[0].words[:, 0]] += weighed[0][0]
    probability[START_ID] = 0.0
    lower = probability[counts[0].words[:, 0]]  # of the unigrams that occur, in the order of their indices
    backoff = np.zeros(size)
    if len(counts) > 1:
        backoff[counts[0].words[:, 0]] = log10_of(weighed[1][1])
    orders = [ArpaOrder(np.arange(size, dtype=np.int32)[:, None], log10_of(probability), backoff)]
    for k in range(2, len(counts) + 1):
        table = counts[k - 1]
        share, weight = weighed[k - 1]
        lower = share + weight[table.prefix] * lower[table.suffix]
        log_weight = log10_of(weighed[k][1]) if k < len(counts) else np.zeros(lower.shape[0])
        orders.append(ArpaOrder(table.words, log10_of(lower), log_weight))
    return Arpa(vocabulary, orders)
