"""Whether one system is better than another: an interval for the difference of their word error rates."""

from dataclasses import dataclass

import numpy as np

from decoder.scoring.error_counts import ScoringResult
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
    rng = np.random.default_rng(seed)
    sampled = []
    for start in range(0, NUM_SAMPLES, BLOCK):
        counts = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), min(BLOCK, NUM_SAMPLES - start))
        # A sample in which only utterances without words were drawn has no rate; both systems count as equal there.
        sampled.append(counts @ difference / np.maximum(counts @ words, 1))
    samples = 100 * np.concatenate(sampled)
    low, high = np.percentile(samples, [2.5, 97.5])
    better = float(np.mean(samples < 0) + np.mean(samples == 0) / 2)
    return Comparison(100 * float(difference.sum() / words.sum()), float(low), float(high), better)
