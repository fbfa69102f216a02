"""Adds words to a language model that has no unknown word."""

from collections.abc import Iterable, Sequence

import numpy as np

from decoder.lm.language_model import LanguageModel
from readers.errors import GraphError


def with_rare_words(model: LanguageModel, words: Iterable[str]) -> LanguageModel:
    """Return a model that has some words; each new one is as probable as its rarest word, after any history.

    Parameters
    ----------
    model : LanguageModel
        Not changed.  If it has an unknown word, this stands for new words, and the model is returned.
    words : iterable of str

    Returns
    -------
    LanguageModel
        Its probabilities add up to slightly more than 1.

    Raises
    ------
    GraphError
        For a mixture without unknown word.
    """
    lacking = [word for word in dict.fromkeys(words) if model.word_id(word) < 0]
    if not lacking:
        return model
    if model.components:
        raise GraphError(
            f"language model: a mixture without <UNK>; expected <UNK> for new words such as {lacking[0]!r}"
        )
    unigrams = model.arrays.cost[: len(model.vocabulary)]  # of the empty history, which lists every word
    return with_words(model, lacking, unigrams[np.isfinite(unigrams)].max(initial=0.0))


def with_words(model: LanguageModel, words: Sequence[str], cost: float) -> LanguageModel:
    """Return a model with words that it lacks, of some cost after the empty history; they have no longer n-grams.

    Parameters
    ----------
    model : LanguageModel
        A single model; not changed.
    words : sequence of str
    cost : float
        -ln of the probability.

    Returns
    -------
    LanguageModel
        Its probabilities add up to more than 1.
    """
    arrays = model.arrays
    size = len(model.vocabulary)
    count = len(words)
    first_arc = np.array(arrays.first_arc)
    first_arc[1:] += count
    extended = arrays._replace(
        first_arc=first_arc,
        word=np.insert(arrays.word, size, np.arange(size, size + count)),
        cost=np.insert(arrays.cost, size, np.full(count, cost)),
        next_state=np.insert(arrays.next_state, size, np.zeros(count)),
    )
    return LanguageModel(extended, [*model.vocabulary, *words], model.order, model.start_state)
