"""Cepstral mean subtraction that is the same for whole utterances and for streams, as in Kaldi's online recognition.

From each frame, the mean of the last `window` frames up to it is subtracted.  Near the beginning of an utterance, the
mean of the training data counts as `prior` frames, as far as the window is not full.
"""

from dataclasses import dataclass

import numpy as np

WINDOW, PRIOR = 600, 200  # frames


@dataclass(frozen=True, eq=False)
class SlidingMean:
    """What is subtracted.

    Parameters
    ----------
    mean : (d,) float64
        Mean of the training data.
    window : int
        Frames.
    prior : int
        Frames as which the mean of the training data counts, at most.
    """

    mean: np.ndarray
    window: int = WINDOW
    prior: int = PRIOR

    def stream(self) -> "MeanStream":
        """Begin an utterance."""
        return MeanStream(self)

    def subtract(self, frames: np.ndarray) -> np.ndarray:
        """The frames (T, d) float64 of an utterance without their sliding means."""
        return self.stream().push(frames)


class MeanStream:
    """Subtracts sliding means while the frames of an utterance arrive."""

    def __init__(self, options: SlidingMean):
        self.options = options
        self._sums = np.zeros((1, len(options.mean)))  # cumulative, before each of the last frames
        self._before = 0  # frames before the first of these sums

    def push(self, frames: np.ndarray) -> np.ndarray:
        """Return frames (T, d) float64, which follow the earlier ones, without their means."""
        options = self.options
        num_earlier = len(self._sums) - 1
        sums = np.concatenate([self._sums[-1:], frames]).cumsum(axis=0)[1:]
        self._sums = np.concatenate([self._sums, sums])
        ends = np.arange(num_earlier + 1, num_earlier + 1 + len(frames))
        begins = np.maximum(ends - options.window, 0)
        counts = np.minimum(self._before + ends, options.window)
        prior = np.minimum(options.prior, options.window - counts)[:, None]
        window_sums = self._sums[ends] - self._sums[begins]
        means = (window_sums + prior * options.mean) / (counts[:, None] + prior)
        spare = len(self._sums) - 1 - options.window
        if spare > 0:
            self._sums = self._sums[spare:]
            self._before = self._before + spare
        return frames - means
