"""Adds words to a language model that has no unknown word."""

from collections.abc import Iterable

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
    arrays = model.arrays
    size = len(model.vocabulary)
    count = len(lacking)
    unigrams = arrays.cost[:size]  # of the empty history, which lists every word
    rarest = unigrams[np.isfinite(unigrams)].max(initial=0.0)
    first_arc = np.array(arrays.first_arc)
    first_arc[1:] += count
    extended = arrays._replace(
        first_arc=first_arc,
        word=np.insert(arrays.word, size, np.arange(size, size + count)),
        cost=np.insert(arrays.cost, size, np.full(count, rarest)),
        next_state=np.insert(arrays.next_state, size, np.zeros(count)),
    )
    return LanguageModel(extended, [*model.vocabulary, *lacking], model.order, model.start_state)
