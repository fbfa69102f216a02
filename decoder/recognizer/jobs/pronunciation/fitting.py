"""Fits maps of pronunciation scores to those of experts, and measures how well they agree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decoder.recognizer.jobs.pronunciation.measures import (
    Measures,
    mean_by,
    phone_features,
    sentence_features,
    word_features,
)
from decoder.recognizer.jobs.pronunciation.model import PHONES, SENTENCE, WORDS, PronunciationModel, Scores
from decoder.recognizer.jobs.pronunciation.score_map import Ridge, ScoreMap
from readers.common.report import Progress, silent
from readers.errors import ConfigError

PHONE_RIDGE = Ridge(cosines=1000, width=0.3, penalty=0.6)
WORD_RIDGE = Ridge(cosines=400, width=0.3, penalty=1.0)
SENTENCE_RIDGE = Ridge(cosines=200, width=0.1, penalty=0.3, linear=0.3)
INNER_FOLDS = 5
LEAST_SPEAKERS, LEAST_PHONES = 4, 200
DRAWS = 1000  # of the bootstrap
ROUNDING = 1e-12  # of sums of squares, as a fraction
KINDS = (PHONES, WORDS, SENTENCE)


@dataclass(frozen=True, eq=False)
class JudgedUtterance:
    """An aligned utterance with the scores of experts.

    Attributes
    ----------
    speaker : str
    measures : Measures
    scores : Scores
        Of the experts; NaN for phones without one.
    """

    speaker: str
    measures: Measures
    scores: Scores


class Agreement(NamedTuple):
    """Pearson's correlation of scores with those of experts; NaN where either are all the same.

    Attributes
    ----------
    correlation : float
    low, high : float
        95 % interval, by bootstrap over speakers.
    baseline : float
        That of the mean log posterior alone.
    better : float
        Fraction of the bootstrap samples in which the scores agree better than the baseline.
    num_judged : int
        Number of phones, words or sentences.
    """

    correlation: float
    low: float
    high: float
    baseline: float
    better: float
    num_judged: int

    def __str__(self) -> str:
        return (
            f"{self.correlation:.3f} ({self.low:.3f} to {self.high:.3f}), mean log posterior {self.baseline:.3f}, "
            f"better in {self.better:.1%} of samples, {self.num_judged} judged"
        )


def fit_pronunciation(
    utterances: Sequence[JudgedUtterance], inventory: Sequence[str], seed: int = 0
) -> PronunciationModel:
    """Fit a model to the scores of experts.

    The map of words learns from estimates of phone scores by maps that never saw the speaker, as it will meet them, and
    that of sentences from such estimates of both.

    Parameters
    ----------
    utterances : sequence of JudgedUtterance
    inventory : sequence of str
        The phones of the network, in the order of the posteriors.
    seed : int
        Of the random cosines and of the division of the speakers.

    Returns
    -------
    PronunciationModel

    Raises
    ------
    ConfigError
        For fewer than 200 phones with scores, or such phones of fewer than 4 speakers.
    """
    _check_size(utterances, "pronunciation")
    folds = speaker_folds([utterance.speaker for utterance in utterances], INNER_FOLDS, seed)
    of_phones = np.repeat(np.arange(len(utterances)), [len(entry.measures.rows) for entry in utterances])
    of_words = np.repeat(np.arange(len(utterances)), [len(entry.scores.words) for entry in utterances])
    features = np.concatenate([phone_features(entry.measures) for entry in utterances])
    targets = np.concatenate([entry.scores.phones for entry in utterances])
    phones, estimates = _with_estimates(features, targets, folds[of_phones], PHONE_RIDGE, seed)
    phone_scores = _split(estimates, of_phones)
    features = np.concatenate(
        [word_features(entry.measures, scores) for entry, scores in zip(utterances, phone_scores, strict=True)]
    )
    targets = np.concatenate([entry.scores.words for entry in utterances])
    words, estimates = _with_estimates(features, targets, folds[of_words], WORD_RIDGE, seed)
    word_scores = _split(estimates, of_words)
    features = np.concatenate(
        [
            sentence_features(entry.measures, *scores)
            for entry, *scores in zip(utterances, phone_scores, word_scores, strict=True)
        ]
    )
    targets = np.array([entry.scores.sentence for entry in utterances])
    sentence = ScoreMap.fit(features, targets, SENTENCE_RIDGE, seed)
    about = {"utterances": len(utterances), "speakers": len({entry.speaker for entry in utterances})}
    return PronunciationModel(tuple(inventory), phones, words, sentence, about)


def cross_validate(
    utterances: Sequence[JudgedUtterance],
    inventory: Sequence[str],
    num_folds: int,
    seed: int = 0,
    progress: Progress = silent,
) -> dict[str, Agreement]:
    """Return how well models agree with the experts on speakers to whom they were not fitted.

    Parameters
    ----------
    utterances, inventory, seed
        As for `fit_pronunciation`.
    num_folds : int
        Number of groups of speakers, each left out once.
    progress : callable
        Called as ``progress(folds done, folds, stage="folds")``.

    Returns
    -------
    dict of str to Agreement
        Of phones, words and sentence.

    Raises
    ------
    ConfigError
        As `fit_pronunciation`, for what is left without a group.
    """
    folds = speaker_folds([utterance.speaker for utterance in utterances], num_folds, seed + 1)
    estimates: list[Scores | None] = [None] * len(utterances)
    others = [[utterances[i] for i in np.flatnonzero(folds != fold).tolist()] for fold in range(folds.max() + 1)]
    for fold, fitted in enumerate(others):
        _check_size(fitted, f"fold {fold + 1} of {len(others)}, of the other speakers")
    for fold, fitted in enumerate(others):
        model = fit_pronunciation(fitted, inventory, seed)
        for i in np.flatnonzero(folds == fold).tolist():
            estimates[i] = model(utterances[i].measures)
        progress(fold + 1, len(others), stage="folds")
    return agreement(utterances, [scores for scores in estimates if scores is not None], seed)


def agreement(
    utterances: Sequence[JudgedUtterance], estimates: Sequence[Scores], seed: int = 0
) -> dict[str, Agreement]:
    """Return how well estimates agree with the experts, compared with mean log posteriors by a paired bootstrap.

    Parameters
    ----------
    utterances : sequence of JudgedUtterance
    estimates : sequence of Scores
        Of each utterance.
    seed : int
        Of the bootstrap, which draws speakers.

    Returns
    -------
    dict of str to Agreement
        Of phones, words and sentence.
    """
    groups = [_values(entry, scores) for entry, scores in zip(utterances, estimates, strict=True)]
    names, speakers = np.unique([entry.speaker for entry in utterances], return_inverse=True)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), DRAWS)
    figures = {}
    for number, kind in enumerate(KINDS):
        moments = np.zeros((len(names), 9))
        for speaker, group in zip(speakers, groups, strict=True):
            truth, scores, baseline = group[number]
            moments[speaker] += _moments(truth, scores, baseline)
        correlation, base = _correlations(moments.sum(axis=0))
        drawn, drawn_base = _correlations(counts @ moments)
        is_defined = np.isfinite(drawn) & np.isfinite(drawn_base)
        is_better = (drawn > drawn_base)[is_defined]
        low, high = np.quantile(drawn[is_defined], (0.025, 0.975)) if is_defined.any() else (np.nan, np.nan)
        figures[kind] = Agreement(
            *(float(correlation), float(low), float(high), float(base)),
            *(float(is_better.mean() if is_defined.any() else np.nan), int(moments[:, 0].sum())),
        )
    return figures


def speaker_folds(speakers: Sequence[str], num_folds: int, seed: int) -> np.ndarray:
    """Return the fold (n,) int of each utterance; all of a speaker are in one, and folds have as many speakers."""
    names, index = np.unique(speakers, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(names))
    return np.argsort(order)[index] % min(num_folds, len(names))


def _check_size(utterances: Sequence[JudgedUtterance], where: str) -> None:
    counts = [int(np.isfinite(entry.scores.phones).sum()) for entry in utterances]
    speakers = len({entry.speaker for entry, count in zip(utterances, counts, strict=True) if count})
    phones = sum(counts)
    if speakers < LEAST_SPEAKERS or phones < LEAST_PHONES:
        raise ConfigError(
            f"{where}: {phones} phones with scores of {speakers} speakers; expected at least {LEAST_PHONES} of "
            f"{LEAST_SPEAKERS}"
        )


def _with_estimates(
    features: np.ndarray, targets: np.ndarray, folds: np.ndarray, ridge: Ridge, seed: int
) -> tuple[ScoreMap, np.ndarray]:
    """Return a map, and estimates (n,) by maps of the other folds; targets that are NaN are not fitted to."""
    is_scored = np.isfinite(targets)
    estimates = np.empty(len(targets))
    for fold in range(folds.max() + 1):
        fitted = is_scored & (folds != fold)
        if not fitted.any():  # the only speakers with scores are in this fold
            fitted = is_scored
        left_out = folds == fold
        estimates[left_out] = ScoreMap.fit(features[fitted], targets[fitted], ridge, seed)(features[left_out])
    return ScoreMap.fit(features[is_scored], targets[is_scored], ridge, seed), estimates


def _split(values: np.ndarray, groups: np.ndarray) -> list[np.ndarray]:
    """Return the values of each group; groups (n,) rise from 0 without gaps."""
    return np.split(values, np.flatnonzero(np.diff(groups)) + 1)


def _values(entry: JudgedUtterance, scores: Scores) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return the experts' scores, the estimates and the mean log posteriors of phones, words and sentence."""
    judged = np.isfinite(entry.scores.phones)
    posteriors = entry.measures.basic[:, :1]
    of_words = mean_by(posteriors, entry.measures.words)[:, 0]
    return [
        (entry.scores.phones[judged], scores.phones[judged], posteriors[judged, 0]),
        (entry.scores.words, scores.words, of_words),
        (np.array([entry.scores.sentence]), np.array([scores.sentence]), np.array([posteriors.mean()])),
    ]


def _moments(truth: np.ndarray, scores: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """Return the sums (9,) from which `_correlations` computes two correlations with the truth."""
    return np.array(
        [
            len(truth), truth.sum(), scores.sum(), baseline.sum(), truth @ truth, scores @ scores, baseline @ baseline,
            truth @ scores, truth @ baseline,
        ]
    )  # fmt: skip


def _correlations(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the correlations of scores and of the baseline with the truth, for sums (..., 9)."""
    count, truth, scores, baseline, truth_2, scores_2, baseline_2, with_scores, with_baseline = np.moveaxis(
        moments, -1, 0
    )
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN without any variance
        spread = _spread(count, truth, truth_2)
        first = (with_scores - truth * scores / count) / np.sqrt(spread * _spread(count, scores, scores_2))
        second = (with_baseline - truth * baseline / count) / np.sqrt(spread * _spread(count, baseline, baseline_2))
    return first, second


def _spread(count: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the sums of squared distances from the mean; NaN where they are no more than a rounding error."""
    spread = squares - total**2 / count
    return np.where(spread > ROUNDING * squares, spread, np.nan)
