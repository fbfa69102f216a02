"""Calibration: a map from the posterior probability of a word to the probability that the word is right.

    {"format": "argonaut-calibration", "version": 1, "method": "beta", "utterances": 100, "words": 574, "correct": 540,
     "posterior": [0.0, 0.001, ..., 1.0], "confidence": [0.02, 0.05, ..., 0.99],
     "measured": [{"test_set": "test", "utterances": 130, "words": 771, "correct": 740, "ece": 0.011, "nce": 0.35,
                   "posterior_ece": 0.03, "posterior_nce": -0.2}]}

Posteriors of a lattice are too sure: they know of no competitors outside the beam, and acoustic scores of successive
frames are not independent.  The map is linear between its points and rises strictly, so that words keep their order.
It is fitted to recognised words of known correctness by one of three methods; cross-validation chooses the one with
the lowest cross entropy on utterances that were left out:

logistic: confidence = s(a logit p + b) with the logistic function s (Platt)
beta: confidence = s(a ln p - b ln(1 - p) + c)
isotonic: the best rising function, pooled with the logistic map where there are few words

The parameters are drawn to those of the identity, by as much as a few words would, so that small sets are safe.

References
----------
Platt, Probabilistic outputs for support vector machines, 1999; Kull, Silva Filho and Flach, Beta calibration, AISTATS
2017; Zadrozny and Elkan, Transforming classifier scores into accurate multiclass probability estimates, KDD 2002.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from decoder.scoring.confidence import (
    JudgedWords,
    cross_entropy,
    expected_calibration_error,
    normalised_cross_entropy,
)
from readers.common.file_part import FilePart
from readers.common.text import parse_object
from readers.errors import ConfigError, FormatError

FORMAT, VERSION = "argonaut-calibration", 1
MAX_BYTES, MAX_POINTS, MAX_SETS, MAX_NAME = 1 << 16, 1000, 20, 200
POINTS = np.array(
    [0, 1e-4, 1e-3, 0.01, 0.03, *np.linspace(0.05, 0.95, 19), 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999, 1]
)
CLOSEST = 1e-4  # posteriors and confidences are clipped at this distance from 0 and 1
RISE = 1e-3  # share of the identity in the map, which makes it rise strictly
PRIOR = 10.0  # strength with which parameters are drawn to the identity
POOLED = 5.0  # words that the logistic map counts for in each step of an isotonic map
ISOTONIC_FROM = 1000  # words; with fewer, the steps of an isotonic map would be random
FOLDS = 5
GAIN = 0.99  # another method is chosen below this fraction of the cross entropy of the logistic map
Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class MeasuredConfidence:
    """How good confidences were on a test set.

    Attributes
    ----------
    test_set : str
    utterances, words, correct : int
        Size of the set, its recognised words, and those that are right.
    ece, nce : float or None
        Expected calibration error and normalised cross entropy of the confidences, see `decoder.scoring`; None where
        they are not defined.
    posterior_ece, posterior_nce : float or None
        Those of the posteriors.
    """

    test_set: str
    utterances: int
    words: int
    correct: int
    ece: float | None
    nce: float | None
    posterior_ece: float | None
    posterior_nce: float | None

    def __str__(self) -> str:
        return (
            f"ECE {_percent(self.ece)}, NCE {_decimals(self.nce)}; posteriors ECE {_percent(self.posterior_ece)}, NCE "
            f"{_decimals(self.posterior_nce)} ({self.test_set}, {self.utterances} utterances, {self.words} words)"
        )


@dataclass(frozen=True)
class Calibration:
    """A strictly rising, piecewise linear map from posterior probabilities to confidences.

    Attributes
    ----------
    posterior, confidence : tuple of float
        Points of the map, both strictly rising in [0, 1]; the posteriors begin with 0 and end with 1.
    method : str
        How it was fitted.
    utterances, words, correct : int
        Size of the set to which it was fitted.
    measured : tuple of MeasuredConfidence
        On other sets.

    Examples
    --------
    >>> Calibration((0.0, 1.0), (0.1, 0.9))(0.5)
    0.5
    """

    posterior: tuple[float, ...]
    confidence: tuple[float, ...]
    method: str = ""
    utterances: int = 0
    words: int = 0
    correct: int = 0
    measured: tuple[MeasuredConfidence, ...] = ()

    def __call__(self, posterior: float) -> float:
        """Return the confidence of a word with a posterior probability."""
        return float(np.interp(posterior, self.posterior, self.confidence))

    def of(self, posteriors: np.ndarray) -> np.ndarray:
        """Return the confidences of many words, (N,) float64."""
        return np.interp(posteriors, self.posterior, self.confidence)

    def measure(self, words: JudgedWords, test_set: str) -> Self:
        """Return the map with its quality on another set.

        Parameters
        ----------
        words : JudgedWords
            With posteriors as their confidences.
        test_set : str
            Name of the set.

        Returns
        -------
        Calibration
        """
        return replace(self, measured=(*self.measured, measure(words, test_set, self)))

    def dump(self) -> bytes:
        """Return the content of calibration.json."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            **vars(self),
            "measured": [vars(confidence) for confidence in self.measured],
        }
        return (json.dumps(content, allow_nan=False, indent=1) + "\n").encode()

    @classmethod
    def read(cls, part: FilePart) -> Self:
        """Read calibration.json.

        Parameters
        ----------
        part : FilePart

        Returns
        -------
        Calibration

        Raises
        ------
        FormatError
            For anything that `dump` does not write.
        OSError
        """
        if part.size > MAX_BYTES:
            raise FormatError(f"{part}: {part.size} bytes; expected at most {MAX_BYTES}")
        data = parse_object(part.read_bytes(), part, "the JSON of a calibration")
        names = {"format", "version", *cls.__dataclass_fields__}
        if data.keys() != names or data["format"] != FORMAT:
            raise FormatError(f"{part}: expected an object with {', '.join(sorted(names))}, of format {FORMAT!r}")
        if data["version"] != VERSION or isinstance(data["version"], bool):
            raise FormatError(f"{part}: version {str(data['version'])[:20]}; expected {VERSION}")
        points = data["posterior"]
        confidences = data["confidence"]
        measured = data["measured"]
        if not (_is_rising(points) and _is_rising(confidences) and len(points) == len(confidences)):
            raise FormatError(f"{part}: posterior and confidence; expected as many numbers that rise from 0 to 1")
        if points[0] != 0 or points[-1] != 1:
            raise FormatError(f"{part}: posteriors from {points[0]} to {points[-1]}; expected 0 to 1")
        if not _is_name(data["method"]) or not all(
            _is_count(data[name]) for name in ("utterances", "words", "correct")
        ):
            raise FormatError(f"{part}: method, utterances, words or correct; expected a name and three numbers")
        if not isinstance(measured, list) or len(measured) > MAX_SETS or not all(map(_is_measured, measured)):
            raise FormatError(f"{part}: measured; expected objects with test_set, words, ece and so on")
        fitted = {name: data[name] for name in ("method", "utterances", "words", "correct")}
        sets = tuple(MeasuredConfidence(**entry) for entry in measured)
        return cls(tuple(points), tuple(confidences), **fitted, measured=sets)


def measure(words: JudgedWords, test_set: str, calibration: Calibration | None = None) -> MeasuredConfidence:
    """Measure posteriors, and confidences if there is a map; without one, they are the posteriors.

    Parameters
    ----------
    words : JudgedWords
        With posteriors as their confidences.
    test_set : str
    calibration : Calibration, optional

    Returns
    -------
    MeasuredConfidence
    """
    mapped = words.confidence if calibration is None else calibration.of(words.confidence)
    values = [
        error if np.isfinite(error) else None
        for confidence in (mapped, words.confidence)
        for error in (
            expected_calibration_error(confidence, words.correct),
            normalised_cross_entropy(confidence, words.correct),
        )
    ]
    return MeasuredConfidence(test_set, words.num_utterances, len(words.correct), int(words.correct.sum()), *values)


def fit_calibration(words: JudgedWords) -> Calibration:
    """Fit a map to words of known correctness.

    Parameters
    ----------
    words : JudgedWords
        With posteriors as their confidences; of a set that was not used for training.

    Returns
    -------
    Calibration

    Raises
    ------
    ConfigError
        Without words.
    """
    if not words.correct.size:
        raise ConfigError("calibration: no words with posteriors; expected at least one")
    methods = [name for name in METHODS if name != "isotonic" or len(words.correct) >= ISOTONIC_FROM]
    method = min(methods, key=lambda name: _left_out(words, name) / (1.0 if name == "logistic" else GAIN))
    values = METHODS[method](words.confidence, words.correct)(POINTS)
    values = (1 - RISE) * np.clip(np.maximum.accumulate(values), CLOSEST, 1 - CLOSEST) + RISE * POINTS
    counts = words.num_utterances, len(words.correct), int(words.correct.sum())
    return Calibration(tuple(POINTS.tolist()), tuple(values.tolist()), method, *counts)


def _left_out(words: JudgedWords, method: str) -> float:
    """The cross entropy of words of utterances that were left out of the fit."""
    utterances, number = np.unique(words.utterance, return_inverse=True)  # some have no words
    if len(utterances) < FOLDS:
        return float(method != "logistic")
    fold = number % FOLDS
    confidence = np.empty(len(words.correct))
    for number in np.unique(fold):
        out = fold == number
        confidence[out] = METHODS[method](words.confidence[~out], words.correct[~out])(words.confidence[out])
    return cross_entropy(confidence, words.correct)


def _logistic(posterior: np.ndarray, correct: np.ndarray) -> Map:
    weights = _regression(_logit(posterior)[:, None], correct, np.array([1.0, 0.0]))
    slope = max(weights[0], 0.0)
    return lambda p: _sigmoid(slope * _logit(p) + weights[1])


def _beta(posterior: np.ndarray, correct: np.ndarray) -> Map:
    columns = _logs(posterior)
    weights = _regression(columns, correct, np.array([1.0, 1.0, 0.0]))
    for i in np.flatnonzero(weights[:2] < 0):  # the map would fall: fit the other column alone
        fit = _regression(columns[:, 1 - i : 2 - i], correct, np.array([1.0, 0.0]))
        weights = np.array([0.0, 0.0, fit[1]])
        weights[1 - i] = max(fit[0], 0.0)
    return lambda p: _sigmoid(_logs(p) @ weights[:2] + weights[2])


def _isotonic(posterior: np.ndarray, correct: np.ndarray) -> Map:
    """Pool adjacent violators, then draw each step to the logistic map."""
    smooth = _logistic(posterior, correct)
    order = np.argsort(posterior, kind="stable")
    at = _logit(posterior)[order]
    right = correct[order].astype(float)
    guess = smooth(posterior)[order]
    _, group = np.unique(at, return_inverse=True)
    columns = [np.bincount(group, values) for values in (np.ones(len(at)), right, guess, at)]
    steps = _pooled([np.array(sums) for sums in zip(*columns, strict=True)], lambda step: step[1] / step[0])
    steps = _pooled(steps, lambda step: _drawn(step))
    places = [step[3] / step[0] for step in steps]
    levels = [_drawn(step) for step in steps]
    return lambda p: np.interp(_logit(p), places, levels)


def _drawn(step: np.ndarray) -> float:
    count, right, guess, _ = step
    return (right + POOLED * guess / count) / (count + POOLED)


def _pooled(steps: list[np.ndarray], level: Callable[[np.ndarray], float]) -> list[np.ndarray]:
    """Add up neighbouring steps until their levels rise."""
    pooled: list[np.ndarray] = []
    for step in steps:
        pooled.append(step)
        while len(pooled) > 1 and level(pooled[-2]) >= level(pooled[-1]):
            last = pooled.pop()
            pooled[-1] = pooled[-1] + last
    return pooled


METHODS = {"logistic": _logistic, "beta": _beta, "isotonic": _isotonic}


def _regression(columns: np.ndarray, correct: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Weights of a logistic regression with a constant column, drawn to `prior`: Newton's method with step halving."""
    x = np.column_stack([columns, np.ones(len(columns))])
    weights = prior.copy()

    def loss(w: np.ndarray) -> float:
        score = x @ w
        return float(np.logaddexp(0.0, np.where(correct, -score, score)).sum() + PRIOR / 2 * ((w - prior) ** 2).sum())

    for _ in range(100):
        p = _sigmoid(x @ weights)
        gradient = x.T @ (p - correct) + PRIOR * (weights - prior)
        step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + PRIOR * np.eye(len(prior)), gradient)
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-9:
            step = step / 2
        weights = weights - step
        if np.abs(step).max() <= 1e-9:
            break
    return weights


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, -x))


def _logs(posterior: np.ndarray) -> np.ndarray:
    p = np.clip(posterior, CLOSEST, 1 - CLOSEST)
    return np.column_stack([np.log(p), -np.log1p(-p)])


def _logit(posterior: np.ndarray) -> np.ndarray:
    return _logs(posterior).sum(axis=1)


def _is_rising(values: Any) -> bool:
    if not isinstance(values, list) or not 2 <= len(values) <= MAX_POINTS:
        return False
    if not all(type(value) in (int, float) and 0 <= value <= 1 for value in values):
        return False
    return all(value < following for value, following in itertools.pairwise(values))


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME and value.isprintable()


def _is_measured(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.keys() != MeasuredConfidence.__dataclass_fields__.keys():
        return False
    numbers = (entry[name] for name in ("ece", "nce", "posterior_ece", "posterior_nce"))
    if not all(number is None or (type(number) in (int, float) and -1e6 <= number <= 1) for number in numbers):
        return False
    return _is_name(entry["test_set"]) and all(_is_count(entry[name]) for name in ("utterances", "words", "correct"))


def _percent(value: float | None) -> str:
    return "undefined" if value is None else f"{100 * value:.1f}%"


def _decimals(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
