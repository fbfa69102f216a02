"""How good confidences are: calibration error and normalised cross entropy, against reference transcripts."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from decoder.scoring.error_counts import SENTENCE_MARKS, align, fold_words, match_names

BINS = 10
CLOSEST = 1e-7  # to 0 and 1 that a confidence counts in the cross entropy, where one wrong word could make it infinite


class JudgedWords(NamedTuple):
    """Recognised words of known correctness.

    Attributes
    ----------
    confidence : (N,) float64
        In [0, 1].
    correct : (N,) bool
        Whether a word is right in the alignment with the reference.
    utterance : (N,) int64
        Number of the utterance.
    num_utterances : int
        Utterances of the reference that have been recognised, those without words included.
    """

    confidence: np.ndarray
    correct: np.ndarray
    utterance: np.ndarray
    num_utterances: int


class Reliability(NamedTuple):
    """Words in bins of rising confidence.

    Attributes
    ----------
    confidence, correct : (B,) float64
        Mean confidence of each bin, and the fraction of its words that are right.
    count : (B,) int64
        Words in each bin.
    """

    confidence: np.ndarray
    correct: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # the method of tuples is not used


def judge_words(
    references: Mapping[str, Sequence[str]],
    hypotheses: Mapping[str, Sequence[tuple[str, float | None]]],
    fold: Mapping[str, str | None] | None = None,
) -> JudgedWords:
    """Find which recognised words are right.

    Parameters
    ----------
    references : mapping of str to sequence of str
        Utterance -> words.
    hypotheses : mapping of str to sequence of (str, float or None)
        Utterance -> words with confidences; words without one are left out.  Utterances without a reference, and
        references without a hypothesis, do not count.
    fold : mapping of str to str or None, optional
        As in `score`.

    Returns
    -------
    JudgedWords
    """
    confidence = []
    correct = []
    utterance = []
    names = match_names(references, hypotheses)
    for number, (name, hypothesis_name) in enumerate(names.items()):
        words = [
            (folded, value)
            for word, value in hypotheses[hypothesis_name]
            for folded in fold_words([word], fold, SENTENCE_MARKS)
        ]
        pairs = align(fold_words(references[name], fold, SENTENCE_MARKS), [word for word, _ in words])
        right = [reference == word for reference, word in pairs if word is not None]
        for (_, value), is_right in zip(words, right, strict=True):
            if value is not None:
                confidence.append(value)
                correct.append(is_right)
                utterance.append(number)
    return JudgedWords(np.array(confidence, float), np.array(correct, bool), np.array(utterance, int), len(names))


def reliability(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> Reliability:
    """Sort words by confidence into bins with equal numbers of words.

    Parameters
    ----------
    confidence : (N,) array
    correct : (N,) array of bool
    bins : int
        At most so many; fewer if there are fewer words.

    Returns
    -------
    Reliability
        Words of the same confidence count as equally correct, so that the order of the words does not matter.
    """
    order = np.argsort(confidence, kind="stable")
    ranked = np.asarray(confidence, float)[order]
    _, group, counts = np.unique(ranked, return_inverse=True, return_counts=True)
    right = (np.bincount(group, np.asarray(correct, float)[order]) / counts)[group] if len(ranked) else ranked
    parts = np.array_split(np.arange(len(ranked)), max(1, min(bins, len(ranked))))
    parts = [part for part in parts if part.size]
    return Reliability(
        np.array([ranked[part].mean() for part in parts]),
        np.array([right[part].mean() for part in parts]),
        np.array([part.size for part in parts], int),
    )


def expected_calibration_error(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> float:
    """Return the mean distance between confidence and correctness, over bins with equal numbers of words.

    Parameters
    ----------
    confidence : (N,) array
    correct : (N,) array of bool
    bins : int

    Returns
    -------
    float
        In [0, 1]; NaN without words.

    References
    ----------
    Naeini, Cooper and Hauskrecht, Obtaining well calibrated probabilities using Bayesian binning, AAAI 2015.

    Examples
    --------
    >>> round(expected_calibration_error(np.array([0.8, 0.8, 0.8, 0.8]), np.array([True, True, True, False])), 3)
    0.05
    """
    curve = reliability(confidence, correct, bins)
    if not curve.count.size:
        return float("nan")
    return float(np.average(np.abs(curve.confidence - curve.correct), weights=curve.count))


def normalised_cross_entropy(confidence: np.ndarray, correct: np.ndarray) -> float:
    """Return NIST's normalised cross entropy of confidences.

    Parameters
    ----------
    confidence : (N,) array
        Values closer to 0 or 1 than 1e-7 count as that close.
    correct : (N,) array of bool

    Returns
    -------
    float
        1 for perfect confidences, 0 if they are as good as the overall fraction of right words for each word, negative
        if worse; NaN if all words are right, or all wrong.

    References
    ----------
    Siu, Gish and Richardson, Improved estimation, evaluation and applications of confidence measures for speech
    recognition, Eurospeech 1997; NIST SCTK, sclite.
    """
    correct = np.asarray(correct, bool)
    share = correct.mean() if correct.size else 0.0
    if not 0 < share < 1:
        return float("nan")
    most = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    return float(1 - cross_entropy(confidence, correct) / most)


def cross_entropy(confidence: np.ndarray, correct: np.ndarray) -> float:
    """Return the mean of -ln P, where P is the confidence of a right word and 1 - confidence of a wrong one."""
    sure = np.clip(np.asarray(confidence, float), CLOSEST, 1 - CLOSEST)
    return float(-np.where(correct, np.log(sure), np.log1p(-sure)).mean())
