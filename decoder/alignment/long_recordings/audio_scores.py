"""The scores of a long recording, computed from its features where they are needed.

The samples and the features stay in memory, for an hour of speech at 16 kHz with 80 values per frame 115 MB each; the
scores do not.
"""

from collections.abc import Callable

import numpy as np

from acoustic.scoring.window_scorer import WindowScorer
from decoder.alignment.long_recordings.sources import divide
from features import FeatureConfig, extract, frame_period
from readers.errors import ShapeError
from readers.htk.units import TICKS_PER_SECOND


class AudioScores:
    """The scores of samples; see `ScoreSource`.

    The recording is divided where it is quietest, and the features of each piece are computed on their own, so that a
    mean that is subtracted is that of the piece.

    Parameters
    ----------
    samples : (N,) array
        On the scale of 16-bit integers.
    rate : float
        In Hz, one that fits the model.
    config : FeatureConfig
    scorer : WindowScorer
        The network.
    shortest, longest : float
        Seconds of a piece.
    compute : callable, optional
        compute(samples, rate) returns the features of a piece; by default those of the configuration.
    """

    def __init__(
        self,
        samples: np.ndarray,
        rate: float,
        config: FeatureConfig,
        scorer: WindowScorer,
        shortest: float,
        longest: float,
        compute: Callable[[np.ndarray, float], np.ndarray] | None = None,
    ):
        compute = compute or (lambda samples, rate: extract(samples, config, rate))
        self._scorer = scorer
        self._step = scorer.subsampling
        self.period = frame_period(config, rate) * self._step
        hop = round(frame_period(config, rate) * rate / TICKS_PER_SECOND)
        window = round(config.window_size * rate / TICKS_PER_SECOND)
        total = (len(samples) - window) // hop + 1 if len(samples) >= window else 0
        self.num_frames = scorer.num_columns(total)
        per_second = TICKS_PER_SECOND / self.period
        quiet = _quietness(samples, total, hop)[:: self._step]
        self.pieces = divide(quiet, round(shortest * per_second), round(longest * per_second))
        self._features = np.empty((scorer.dim, total), np.float32, order="F")
        for piece in self.pieces:
            first, last = (min(column * self._step, total) for column in piece)
            part = compute(samples[first * hop : (last - 1) * hop + window], rate)
            if part.shape[1] != last - first:
                raise ShapeError(f"features: {part.shape[1]} frames; expected {last - first}")
            self._features[:, first:last] = part

    def scores(self, first: int, last: int) -> np.ndarray:
        """Return the scores (K, last - first) of frames of the search first to last - 1."""
        beside = -(-(self._scorer.window // 2) // self._step)
        begin, end = max(first - beside, 0), min(last + beside, self.num_frames)
        scores = self._scorer.score(self._features[:, begin * self._step : end * self._step])
        return scores[:, first - begin : last - begin]


def _quietness(samples: np.ndarray, num_frames: int, hop: int) -> np.ndarray:
    """(num_frames,) minus the log energy of the samples of each frame."""
    quiet = np.empty(num_frames)
    step = 1 << 14  # frames at a time
    for first in range(0, num_frames, step):
        last = min(first + step, num_frames)
        part = np.asarray(samples[first * hop : last * hop], np.float32).reshape(last - first, hop)
        quiet[first:last] = -np.log(((part - part.mean(axis=1, keepdims=True)) ** 2).mean(axis=1) + 1.0)
    return quiet
