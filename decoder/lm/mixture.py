"""Linear interpolation of language models, written out as one back-off n-gram model."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from decoder.lm.classes import class_model, find_classes
from decoder.lm.estimation import estimate
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel, LMArrays, lm_step, log10_of
from readers.arrays import Float64Array, Int32Array, Integer
from readers.common.kernels import njit
from readers.errors import GraphError
from readers.language.arpa import Arpa, ArpaOrder

MAX_NGRAMS = 1_000_000  # of an order with complete histories


def estimate_with_classes(
    sentences: Iterable[Sequence[str]],
    order: int,
    vocabulary: Iterable[str] | None,
    classes: int | Mapping[str, str],
    class_order: int | None = None,
    class_weight: float = 0.5,
    method: str = "kn",
    unknown: str | None = None,
) -> Arpa:
    """Estimate a word n-gram mixed with a class n-gram, which generalises better from little text.

    From FIVE TWO, for example, a class of digits learns SIX TWO.

    Parameters
    ----------
    sentences : iterable of sequence of str
        The words of each sentence, without <s> and </s>.
    order : int
        Order of the word n-gram.
    vocabulary : iterable of str, optional
        Words that get a probability.  By default those of the text.
    classes : int or mapping of str to str
        word -> class (a word without one is a class of its own), or the number of classes to find in the text.
    class_order : int, optional
        Order of the n-gram over classes, by default `order`.
    class_weight : float
        Weight of the class n-gram, 0 to 1.
    method : {"kn", "wb"}
        As for `estimate`.
    unknown : str, optional
        As for `estimate`.

    Returns
    -------
    Arpa
        The n-grams of the word model; histories of up to two words list every word, up to a million n-grams per order.

    Raises
    ------
    GraphError
        For a class weight out of range, words outside the vocabulary, and what `estimate` raises.

    References
    ----------
    Brown et al., Class-based n-gram models of natural language, Computational Linguistics 18(4), 1992.
    """
    if not 0 <= class_weight <= 1:
        raise GraphError(f"class weight {class_weight}; expected 0 to 1")
    sentences = [list(sentence) for sentence in sentences]
    words = estimate(sentences, order, method, vocabulary, unknown)
    if unknown:
        known = set(words.vocabulary)
        sentences = [[word if word in known else unknown for word in sentence] for sentence in sentences]
    if isinstance(classes, int):
        classes = find_classes(sentences, classes, words.vocabulary)
    else:
        classes = {word: f"class {classes[word]}" if word in classes else word for word in words.vocabulary}
    over_classes = class_model(sentences, classes, class_order or order, words.vocabulary)
    models = [LanguageModel.from_arpa(words), over_classes]
    return mix(models, [1 - class_weight, class_weight], words, full_history=min(2, order - 1))


def mix(models: Sequence[LanguageModel], weights: Sequence[float], skeleton: Arpa, full_history: int = 0) -> Arpa:
    """A mixture of models as a back-off model.

    P(w | h) = sum of weight * P_model(w | h) for the listed n-grams, with back-off weights so that each history sums to
    1.

    models: over the same vocabulary; weights: positive, with sum 1; skeleton: gives the vocabulary and the n-grams to
    list (prefix and suffix of each n-gram must be listed, as in any model of `estimate`); full_history: histories of
    the skeleton of at most that many words list every word, so that the mixture is exact there, as long as an order
    needs at most MAX_NGRAMS n-grams for it.
    Raises GraphError for other weights or vocabularies.
    """
    if len(models) != len(weights) or min(weights) < 0 or abs(sum(weights) - 1) > 1e-6:
        raise GraphError(
            f"mixture: weights {list(weights)} for {len(models)} models; expected one per model, with sum 1"
        )
    if any(model.vocabulary != skeleton.vocabulary for model in models):
        raise GraphError("mixture: models of different vocabularies; expected the same words in the same order")
    size = len(skeleton.vocabulary)
    start = skeleton.vocabulary.index(SENTENCE_START) if SENTENCE_START in skeleton.vocabulary else -1
    rows = _listed_rows(skeleton, full_history, start)
    orders: list[ArpaOrder] = []
    keys, probability = np.zeros(1, dtype=np.int64), np.ones(1)  # of the order before
    for k, words in enumerate(rows, start=1):
        lower_keys, lower = keys, probability
        keys = _keys(words, size)
        probability = np.zeros(words.shape[0])
        for model, weight in zip(models, weights):
            cost = np.empty(words.shape[0])
            _row_costs(model.arrays, words, start, np.int32(model.start_state), cost)
            probability += weight * np.exp(-cost)
        if start >= 0:
            probability[words[:, -1] == start] = 0.0  # <s> is never predicted
        if k > 1:
            prefix = np.searchsorted(lower_keys, _keys(words[:, :-1], size))
            suffix = np.searchsorted(lower_keys, _keys(words[:, 1:], size))
            orders[-1].backoff[:] = log10_of(_backoff_weights(prefix, probability, lower[suffix], lower.shape[0]))
        orders.append(ArpaOrder(words, log10_of(probability), np.zeros(words.shape[0])))
    return Arpa(list(skeleton.vocabulary), orders)


def _listed_rows(skeleton: Arpa, full_history: int, start: int) -> list[np.ndarray]:
    """The n-grams (n, k) i4 to list for each order, sorted."""
    size = len(skeleton.vocabulary)
    if size ** len(skeleton.orders) >= 2**63:
        raise GraphError(
            f"mixture: order {len(skeleton.orders)} of {size} words; expected fewer words or a lower order"
        )
    everything = np.arange(size, dtype=np.int32)
    predicted = everything[everything != start]
    ends = [i for i, word in enumerate(skeleton.vocabulary) if word == SENTENCE_END]
    rows, complete = [everything[:, None]], True
    for k, order in enumerate(skeleton.orders[1:], start=2):
        # Histories of two or more words: only the skeleton's.  Nothing follows </s>.
        histories = everything[:, None] if k == 2 else skeleton.orders[k - 2].words
        histories = histories[~np.isin(histories[:, -1], ends)]
        words = order.words
        # After an incomplete order no longer one can be complete: its suffixes would not be listed.
        complete = complete and k <= full_history + 1 and histories.shape[0] * size <= MAX_NGRAMS
        if complete:
            full = (np.repeat(histories, predicted.shape[0], axis=0), np.tile(predicted, histories.shape[0]))
            words = np.concatenate([words, np.column_stack(full)])
        _, index = np.unique(_keys(words, size), return_index=True)
        rows.append(words[index].astype(np.int32))
    return rows


def _keys(words: np.ndarray, size: int) -> np.ndarray:
    """One number per row, in the order of the rows' words."""
    keys = np.zeros(words.shape[0], dtype=np.int64)
    for column in words.T:
        keys = keys * size + column
    return keys


def _backoff_weights(prefix: np.ndarray, probability: np.ndarray, lower: np.ndarray, num_histories: int) -> np.ndarray:
    """The probability left by the listed words over what they leave of the shorter history; 1 where none is listed."""
    left = 1.0 - np.bincount(prefix, weights=probability, minlength=num_histories)
    lower_left = 1.0 - np.bincount(prefix, weights=lower, minlength=num_histories)
    listed = np.bincount(prefix, minlength=num_histories)
    # Where every word is listed, both are rounding errors and the weight is not used.
    usable = (listed > 0) & (left > 1e-6) & (lower_left > 1e-6)
    return np.divide(left, lower_left, out=np.ones(num_histories), where=usable)


@njit(cache=True)
def _row_costs(arrays: LMArrays, rows: Int32Array, start: int, start_state: Integer, costs: Float64Array) -> None:
    """costs (n,): -ln P of the last word of each row after the words before it; `start` is the id of <s>."""
    for i in range(rows.shape[0]):
        state: Integer = np.int32(0)
        for j in range(rows.shape[1]):
            word = rows[i, j]
            if j == 0 and word == start and rows.shape[1] > 1:
                state = start_state
            else:
                costs[i], state = lm_step(arrays, state, word)
