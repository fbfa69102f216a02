"""How well a language model predicts a text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from decoder.lm.language_model import SENTENCE_END, LanguageModel
from readers.errors import GraphError


@dataclass(frozen=True)
class Perplexity:
    """How well a model predicts a text.

    Attributes
    ----------
    num_sentences : int
    num_words : int
        Words without </s>.
    num_as_unknown : int
        Words scored as <UNK>.
    unknown : tuple of str
        Words that the model cannot represent, in order; not in the cost.
    impossible : tuple of str
        Predictions of probability zero, as "word (sentence number)"; not in the cost.
    cost : float
        Sum of -ln P over the other words and </s>.
    num_predicted : int
        The number of terms of this sum.
    """

    num_sentences: int
    num_words: int
    num_as_unknown: int
    unknown: tuple[str, ...]
    impossible: tuple[str, ...]
    cost: float
    num_predicted: int

    @property
    def perplexity(self) -> float:
        """exp of the mean cost per predicted word, </s> included; NaN if there is none."""
        return float(np.exp(self.cost / self.num_predicted)) if self.num_predicted else float("nan")


def perplexity(model: LanguageModel, sentences: Iterable[Sequence[str]]) -> Perplexity:
    """Measure how well a model predicts a text.

    Parameters
    ----------
    model : LanguageModel
    sentences : iterable of sequence of str
        The words of each sentence, without <s> and </s>.

    Returns
    -------
    Perplexity
        Costs, unknown words and predictions of probability zero; its property `perplexity` is the usual number.
    """
    sentences = [list(sentence) for sentence in sentences]
    vocabulary = set(model.vocabulary)
    unknown = []
    impossible = []
    total = 0.0
    num_predicted = 0
    for number, (sentence, costs) in enumerate(zip(sentences, model.sentence_costs(sentences)), start=1):
        for word, cost in zip([*sentence, SENTENCE_END], costs):
            if np.isnan(cost):
                unknown.append(word)
            elif np.isinf(cost):
                impossible.append(f"{word} ({number})")
            else:
                total += float(cost)
                num_predicted += 1
    num_outside = sum(word not in vocabulary for sentence in sentences for word in sentence)
    return Perplexity(
        num_sentences=len(sentences),
        num_words=sum(map(len, sentences)),
        num_as_unknown=num_outside if model.unknown_id >= 0 else 0,
        unknown=tuple(unknown),
        impossible=tuple(impossible),
        cost=total,
        num_predicted=num_predicted,
    )


def mix_logs(new: np.ndarray, old: np.ndarray, weight: float) -> np.ndarray:
    """ln(weight e^new + (1 - weight) e^old), elementwise; weights 0 and 1 return one of the two unchanged."""
    if weight in (0.0, 1.0):
        return np.array(new if weight else old, np.float64)
    return np.logaddexp(new + np.log(weight), old + np.log1p(-weight))


def sentence_logs(model: LanguageModel, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """ln P (len + 1,) of each sentence's words and </s>, by an n-gram.  Raises GraphError for unknown words."""
    costs = model.sentence_costs(sentences)
    for sentence, values in zip(sentences, costs):
        if np.isnan(values).any():
            odd = [*sentence, "</s>"][int(np.flatnonzero(np.isnan(values))[0])]
            raise GraphError(f"language model: no word {odd!r}; expected every word of the lists, or <unk>")
    return [-values for values in costs]
