"""Whether one system is better than another: intervals of word error rates, and of the difference of two."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from decoder.scoring.error_counts import ScoringResult
from readers.common.arrays import Float64Array
from readers.errors import ConfigError

NUM_SAMPLES = 10_000
BLOCK = 1000  # samples that are drawn at once


@dataclass(frozen=True)
class Comparison:
    """The difference of two systems' word error rates, in percent absolute; negative if the first is better.

    Attributes
    ----------
    difference : float
    low, high : float
        Bounds of the 95 % interval.
    better : float
        Fraction of the samples in which the first system has fewer errors; ties count half.
    """

    difference: float
    low: float
    high: float
    better: float


def compare_systems(first: ScoringResult, second: ScoringResult, seed: int = 0) -> Comparison:
    """Compare two systems by the paired bootstrap.

    Each sample draws as many utterances as there are, with replacement, and takes the errors of both systems on them.

    Parameters
    ----------
    first, second : ScoringResult
        Of the same references.
    seed : int
        Another seed draws other samples.

    Returns
    -------
    Comparison

    Raises
    ------
    ConfigError
        If the utterances or their words differ, or there are no words.

    References
    ----------
    M. Bisani, H. Ney: Bootstrap estimates for confidence intervals in ASR performance evaluation. ICASSP 2004.
    """
    names = list(first.utterances)
    words = np.array([first.utterances[name].num_words for name in names], float)
    same = second.utterances.keys() == first.utterances.keys()
    if not same or any(second.utterances[name].num_words != count for name, count in zip(names, words)):
        raise ConfigError("comparison of two systems: scored on different utterances; expected the same references")
    if not words.sum():
        raise ConfigError("comparison of two systems: references without words; expected at least one word")
    difference = np.array(
        [first.utterances[name].num_errors - second.utterances[name].num_errors for name in names], float
    )
    samples = _sampled_rates(difference, words, seed)
    low, high = interval(samples)
    better = float(np.mean(samples < 0) + np.mean(samples == 0) / 2)
    return Comparison(100 * float(difference.sum() / words.sum()), low, high, better)


def error_rate_interval(result: ScoringResult, speaker_of: Callable[[str], str], seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of a word error rate, by a bootstrap over speakers.

    Each sample draws as many speakers as there are, with replacement, and takes all of their utterances: those of one
    speaker are not independent.

    Parameters
    ----------
    result : ScoringResult
    speaker_of : callable
        Returns the speaker of an utterance.
    seed : int
        Another seed draws other samples.

    Returns
    -------
    low, high : float
        In percent.

    Raises
    ------
    ConfigError
        If the references have no words.

    References
    ----------
    M. Bisani, H. Ney: Bootstrap estimates for confidence intervals in ASR performance evaluation. ICASSP 2004.
    """
    speakers = result.grouped(speaker_of).values()
    words = np.array([score.num_words for score in speakers], float)
    if not words.sum():
        raise ConfigError("interval of an error rate: references without words; expected at least one word")
    errors = np.array([score.num_errors for score in speakers], float)
    return interval(_sampled_rates(errors, words, seed))


def _sampled_rates(errors: Float64Array, words: Float64Array, seed: int) -> Float64Array:
    """Return errors per word in percent, of samples of the units (utterances or speakers) that have these counts."""
    num_errors, num_words = resampled(np.column_stack((errors, words)), seed).T
    # A sample in which only units without words were drawn has no rate; it counts as one without errors.
    return 100 * (num_errors / np.maximum(num_words, 1))


def resampled(amounts: Float64Array, seed: int = 0) -> Float64Array:
    """Draw samples of units with replacement, and add up what they have.

    Parameters
    ----------
    amounts : (units, n) float64
        What each unit (utterance or speaker) has, such as errors and words.
    seed : int
        Another seed draws other samples.

    Returns
    -------
    (NUM_SAMPLES, n) float64
        Sums over as many units as there are, of each sample.
    """
    rng = np.random.default_rng(seed)
    num_units = len(amounts)
    sums = []
    for start in range(0, NUM_SAMPLES, BLOCK):
        counts = rng.multinomial(num_units, np.full(num_units, 1 / num_units), min(BLOCK, NUM_SAMPLES - start))
        sums.append(counts @ amounts)
    return np.concatenate(sums)


def interval(rates: Float64Array) -> tuple[float, float]:
    """Return the 95 % interval of the rates of samples, without those that have none; nan if all have none."""
    rates = rates[~np.isnan(rates)]
    low, high = np.percentile(rates, [2.5, 97.5]) if len(rates) else (np.nan, np.nan)
    return float(low), float(high)
