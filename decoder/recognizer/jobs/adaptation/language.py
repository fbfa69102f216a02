"""Adapts a language model to a text, and measures how well both predict a part of the text that was held out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from decoder.lm.estimation import estimate
from decoder.lm.language_model import SENTENCE_END, LanguageModel
from decoder.lm.mixing.mixture import best_weights, interpolate
from decoder.recognizer.jobs.adaptation.text import AdaptationText
from readers.language.arpa import Arpa

SHORT_TEXT_WEIGHT = 0.5  # of a text of which nothing is held out
LEAST_WEIGHT = 0.05  # of either model, since each has words that the other one lacks


@dataclass(frozen=True)
class TextFit:
    """How well a recogniser suits a text.

    Attributes
    ----------
    perplexity : float
        Over the words that the language model had before the adaptation, and the ends of sentences; so perplexities
        before and after are comparable.
    unknown : float
        Part of the words of the text, 0 to 1, that cannot be recognised.
    """

    perplexity: float
    unknown: float


@dataclass(frozen=True)
class AdaptedLanguage:
    """An adapted language model.

    Attributes
    ----------
    model : LanguageModel
    weight : float
        Of the text, 0 to 1.
    trial : LanguageModel or None
        As `model`, of the sentences that are not held out; None if none is.
    """

    model: LanguageModel
    weight: float
    trial: LanguageModel | None


def adapt_language(before: LanguageModel, text: AdaptationText, order: int, weight: float | None) -> AdaptedLanguage:
    """Mix a language model with one of a text.

    Parameters
    ----------
    before : LanguageModel
    text : AdaptationText
    order : int
        Of the model of the text.
    weight : float, optional
        Of the text; by default the one with which the sentences that are held out are most likely, 0.05 to 0.95.

    Returns
    -------
    AdaptedLanguage

    Raises
    ------
    GraphError
        For a mixture of models, and for a text whose words are in no model.
    """
    old = before.to_arpa()
    of_others = estimate(text.other, order)
    if weight is None:
        best = best_weights([old, of_others], text.held_out)[1] if text.held_out else SHORT_TEXT_WEIGHT
        weight = min(max(best, LEAST_WEIGHT), 1 - LEAST_WEIGHT)

    def mixed(of_text: Arpa) -> LanguageModel:
        return LanguageModel.from_arpa(interpolate([old, of_text], [1 - weight, weight]))

    if not text.held_out:
        return AdaptedLanguage(mixed(of_others), weight, None)
    return AdaptedLanguage(mixed(estimate(text.sentences, order)), weight, mixed(of_others))


def fit_of(
    model: LanguageModel, vocabulary: Collection[str], before: LanguageModel, sentences: Sequence[Sequence[str]]
) -> TextFit:
    """Return how well a recogniser suits some sentences.

    vocabulary: words that it recognises; before: the language model before the adaptation.
    """
    costs = np.concatenate(model.sentence_costs(sentences))
    listed = {*before.vocabulary}
    is_common = np.array([word in listed for sentence in sentences for word in (*sentence, SENTENCE_END)])
    common_costs = costs[is_common & np.isfinite(costs)]
    words = [word for sentence in sentences for word in sentence]
    num_unknown = sum(word not in vocabulary for word in words)
    return TextFit(float(np.exp(common_costs.mean())) if len(common_costs) else float("nan"), num_unknown / len(words))
