"""Linear interpolation of language models, written out as one back-off n-gram model."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from decoder.lm.classes import class_model, find_classes
from decoder.lm.estimation import estimate
from decoder.lm.language_model import (
    IMPOSSIBLE_LOG10,
    SENTENCE_END,
    SENTENCE_START,
    UNKNOWN_WORDS,
    LanguageModel,
    LMArrays,
    lm_step,
    log10_of,
)
from decoder.lm.mixing.ngram_index import NgramIndex, backoff_weights
from readers.common.arrays import Float64Array, Int32Array, Integer
from readers.common.kernels import njit
from readers.errors import GraphError
from readers.language.arpa import Arpa, ArpaOrder

MAX_NGRAMS = 1_000_000  # of an order with complete histories
MOST_STEPS, LEAST_STEP = 200, 1e-5  # of expectation maximisation; of a weight


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
        listed = set(words.vocabulary)
        sentences = [[word if word in listed else unknown for word in sentence] for sentence in sentences]
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
    list; full_history: histories of the skeleton of at most that many words list every word, so that the mixture is
    exact there, as long as an order needs at most MAX_NGRAMS n-grams for it.  Elsewhere a word that is not listed after
    a history has the back-off weight times the mixture's probability after the shorter history, which differs from the
    sum where the models' back-off weights differ.
    Raises GraphError for other weights or vocabularies.
    """
    if len(models) != len(weights) or min(weights) < 0 or abs(sum(weights) - 1) > 1e-6:
        raise GraphError(
            f"mixture: weights {list(weights)} for {len(models)} models; expected one per model, with sum 1"
        )
    if any(model.vocabulary != skeleton.vocabulary for model in models):
        raise GraphError("mixture: models of different vocabularies; expected the same words in the same order")
    start = skeleton.vocabulary.index(SENTENCE_START) if SENTENCE_START in skeleton.vocabulary else -1
    index = NgramIndex(len(skeleton.vocabulary), _listed_rows(skeleton, full_history, start))
    orders: list[ArpaOrder] = []
    lower = np.ones(1)  # probabilities of the order before
    for k, words in enumerate(index.rows, start=1):
        probability = np.zeros(words.shape[0])
        for model, weight in zip(models, weights):
            cost = np.empty(words.shape[0])
            _row_costs(model.arrays, words, start, np.int32(model.start_state), cost)
            probability += weight * np.exp(-cost)
        if start >= 0:
            probability[words[:, -1] == start] = 0.0  # <s> is never predicted
        if k > 1:
            weights_below = backoff_weights(index.prefix[k - 1], probability, lower[index.suffix(k)], lower.shape[0])
            orders[-1].backoff[:] = log10_of(weights_below)
        orders.append(ArpaOrder(words, log10_of(probability), np.zeros(words.shape[0])))
        lower = probability
    return Arpa(list(skeleton.vocabulary), orders)


def interpolate(models: Sequence[Arpa], weights: Sequence[float]) -> Arpa:
    """Return the mixture of n-gram models as one model, which lists the n-grams of all.

    A word that a model lacks has the probability of that model's <UNK> or <unk> divided by the number of such words,
    or 0 if the model has neither: the unknown words of one model are those that another one knows.  <UNK> and <unk>
    are the same word, which the mixture spells as the first model does.

    Parameters
    ----------
    models : sequence of Arpa
    weights : sequence of float
        One per model, with sum 1.

    Returns
    -------
    Arpa

    Raises
    ------
    GraphError
        For other weights.
    """
    models = _with_one_unknown(models)
    vocabulary = list(dict.fromkeys(word for model in models for word in model.vocabulary))
    wide = [_over(model, vocabulary) for model in models]
    order = max(model.order for model in models)
    rows = [[model.orders[k].words for model in wide if model.order > k] for k in range(order)]
    listed = [ArpaOrder(np.concatenate(parts), np.zeros(0), np.zeros(0)) for parts in rows]
    return mix([LanguageModel.from_arpa(model) for model in wide], weights, Arpa(vocabulary, listed))


def _with_one_unknown(models: Sequence[Arpa]) -> list[Arpa]:
    """Return the models with the unknown word spelled as in the first that has one."""
    unknown = next((word for model in models for word in model.vocabulary if word in UNKNOWN_WORDS), None)
    spelled = []
    for model in models:
        if unknown is not None and unknown not in model.vocabulary:
            model = Arpa([unknown if word in UNKNOWN_WORDS else word for word in model.vocabulary], model.orders)
        spelled.append(model)
    return spelled


def _over(model: Arpa, vocabulary: Sequence[str]) -> Arpa:
    """A model over a larger vocabulary, whose new words share the probability of the unknown word."""
    ids = {word: i for i, word in enumerate(vocabulary)}
    numbers = np.array([ids[word] for word in model.vocabulary], np.int32)
    orders = [ArpaOrder(numbers[order.words], order.logprob, order.backoff) for order in model.orders]
    new = np.setdiff1d(np.arange(len(vocabulary), dtype=np.int32), numbers)
    unigrams = orders[0]
    logprob = unigrams.logprob.copy()
    share = np.full(len(new), IMPOSSIBLE_LOG10)
    is_predicted = new != ids.get(SENTENCE_START, -1)
    unknown = next((i for i, word in enumerate(model.vocabulary) if word in UNKNOWN_WORDS), None)
    if unknown is not None and is_predicted.any():
        row = int(np.flatnonzero(model.orders[0].words[:, 0] == unknown)[0])
        logprob[row] -= np.log10(is_predicted.sum() + 1)
        share[is_predicted] = logprob[row]
    orders[0] = ArpaOrder(
        np.concatenate([unigrams.words, new[:, np.newaxis]]),
        np.concatenate([logprob, share]),
        np.concatenate([unigrams.backoff, np.zeros(len(new))]),
    )
    return Arpa(list(vocabulary), orders)


def text_probabilities(models: Sequence[Arpa], sentences: Sequence[Sequence[str]]) -> Float64Array:
    """Return the probability (models, predictions) that each model gives the words and sentence ends of a text.

    A word that a model lacks has the probability that `interpolate` gives it.  Words that no model can predict are left
    out.
    """
    models = _with_one_unknown(models)
    vocabulary = list(dict.fromkeys(word for model in models for word in model.vocabulary))
    costs = []
    for model in models:
        automaton = LanguageModel.from_arpa(_over(model, vocabulary))
        costs.append(np.concatenate([*automaton.sentence_costs(sentences), np.zeros(0)]))
    probability = np.exp(-np.array(costs))
    return probability[:, np.nansum(probability, axis=0) > 0]


def best_weights(models: Sequence[Arpa], sentences: Sequence[Sequence[str]]) -> tuple[float, ...]:
    """Return the weights of a mixture under which a text is most likely, by expectation maximisation.

    Parameters
    ----------
    models : sequence of Arpa
    sentences : sequence of sequence of str
        A text that no model was estimated from.  Words that no model has do not count.

    Returns
    -------
    tuple of float
        One per model, with sum 1.

    Raises
    ------
    GraphError
        If no word of the text is in a model.
    """
    return weights_for(text_probabilities(models, sentences))


def weights_for(probability: Float64Array) -> tuple[float, ...]:
    """Return the weights of `best_weights`, given the result of `text_probabilities`."""
    if not probability.size:
        raise GraphError("mixture: no word of the text is in a model; expected a text with words of the models")
    weights = np.full(len(probability), 1 / len(probability))
    for _ in range(MOST_STEPS):
        posterior = weights[:, np.newaxis] * probability
        posterior /= posterior.sum(axis=0)
        previous, weights = weights, posterior.mean(axis=1)
        if np.abs(weights - previous).max() < LEAST_STEP:
            break
    return tuple(weights.tolist())


def _listed_rows(skeleton: Arpa, full_history: int, start: int) -> list[np.ndarray]:
    """The n-grams (n, k) i4 to list for each order."""
    size = len(skeleton.vocabulary)
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
        rows.append(words.astype(np.int32))
    return rows


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
