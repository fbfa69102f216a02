"""Errors of a detector over its threshold: misses, false alarms, and the rate at which they are equal."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DetectionCurve:
    """Error rates at every threshold; a score of at least the threshold is accepted.

    Attributes
    ----------
    thresholds : (N + 1,) float64
        The N scores that occur, rising, and infinity.
    miss : (N + 1,) float64
        Fraction of the target pairs that are rejected.
    false_alarm : (N + 1,) float64
        Fraction of the other pairs that are accepted.
    """

    thresholds: Floats
    miss: Floats
    false_alarm: Floats

    @property
    def equal_error(self) -> tuple[float, float]:
        """The rate where misses equal false alarms, between two thresholds linearly interpolated, and its threshold.

        The threshold is the lower of the two.
        """
        excess = self.miss - self.false_alarm  # from -1 at the lowest score to 1 at infinity, never falling
        above = int(np.argmax(excess >= 0))
        before = above - 1
        part = -excess[before] / (excess[above] - excess[before])
        rate = self.miss[before] + part * (self.miss[above] - self.miss[before])
        return float(rate), float(self.thresholds[before if part < 1 else above])


def detection_curve(scores: Floats, is_target: npt.NDArray[np.bool_]) -> DetectionCurve:
    """Return the errors for the scores (P,) of pairs.

    Parameters
    ----------
    scores : (P,) float64
    is_target : (P,) bool
        Whether both sides are of one speaker; expected are some of either kind.
    """
    targets = np.sort(scores[is_target])
    others = np.sort(scores[~is_target])
    thresholds = np.append(np.unique(scores), np.inf)
    miss = np.searchsorted(targets, thresholds) / len(targets)
    false_alarm = 1 - np.searchsorted(others, thresholds) / len(others)
    return DetectionCurve(thresholds, miss, false_alarm)
