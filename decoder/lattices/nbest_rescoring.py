"""Rescores n-best lists with a language model that was not used in the search."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from decoder.lm.evaluation import mix_logs
from readers.errors import GraphError
from readers.results.nbest import Hypothesis, Lists


@dataclass(frozen=True)
class RescoringOptions:
    """Scores of hypotheses: acoustic + lm_scale * lm - word_penalty * number of words.

    Parameters
    ----------
    weight : float
        Interpolation weight of the new model, 0 to 1.
    lm_scale : float
        Scale of the language-model scores, at least 0.
    word_penalty : float
        Cost of a word.

    Raises
    ------
    GraphError
        For a value out of range.
    """

    weight: float = 0.5
    lm_scale: float = 1.0
    word_penalty: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise GraphError(f"weight of the new language model {self.weight:g}; expected 0 to 1")
        if not 0 <= self.lm_scale < np.inf or not np.isfinite(self.word_penalty):
            raise GraphError(
                f"language-model scale {self.lm_scale:g}, word penalty {self.word_penalty:g}; expected finite numbers, "
                "the scale not below 0"
            )

    def score(self, one: Hypothesis) -> float:
        """The score of a hypothesis, natural log."""
        return one.acoustic + self.lm_scale * one.lm - self.word_penalty * len(one.words)


def rescore(
    lists: Mapping[str, Sequence[Hypothesis]],
    new: Mapping[tuple[str, ...], np.ndarray],
    options: RescoringOptions,
    old: Mapping[tuple[str, ...], np.ndarray] | None = None,
) -> Lists:
    """Replace the language-model scores of n-best lists and sort the hypotheses by their new scores.

    Parameters
    ----------
    lists : mapping of str to sequence of Hypothesis
        Utterance -> hypotheses.
    new : mapping of tuple of str to (len + 1,) array
        Words of a sentence -> ln P of each word and of </s>, by the new model.
    options : RescoringOptions
    old : mapping of tuple of str to (len + 1,) array, optional
        The same by the old model; the two are then interpolated word by word, p = weight p_new + (1 - weight) p_old.
        Without it the new log-probability of the sentence is averaged with the list's, with the same weight.

    Returns
    -------
    dict of str to list of Hypothesis
        Best hypothesis first; ties keep their order.  Those that are impossible in the model are left out.

    Raises
    ------
    GraphError
        If all hypotheses of an utterance are impossible.
    """
    rescored: Lists = {}
    for utterance, hypotheses in lists.items():
        changed = []
        for hypothesis in hypotheses:
            logs = np.concatenate([new[words] for words in hypothesis.sentences])
            if old is None:
                lm = options.weight * float(logs.sum()) + (1 - options.weight) * hypothesis.lm
            else:
                old_logs = np.concatenate([old[words] for words in hypothesis.sentences])
                lm = float(mix_logs(logs, old_logs, options.weight).sum())
            if math.isfinite(lm):  # else the model has words, or sequences of them, that it finds impossible
                changed.append(replace(hypothesis, lm=lm))
        if not changed:
            raise GraphError(f"{utterance}: no hypothesis is possible in the new language model; expected at least one")
        rescored[utterance] = sorted(changed, key=options.score, reverse=True)
    return rescored


def sentences_of(lists: Mapping[str, Sequence[Hypothesis]]) -> list[tuple[str, ...]]:
    """The different sentences of all hypotheses, in order."""
    sentences = (words for hypotheses in lists.values() for hypothesis in hypotheses for words in hypothesis.sentences)
    return list(dict.fromkeys(sentences))


def best_words(lists: Mapping[str, Sequence[Hypothesis]]) -> dict[str, tuple[str, ...]]:
    """The words of each list's first hypothesis."""
    return {utterance: hypotheses[0].words for utterance, hypotheses in lists.items()}
