"""What is done to frames before Gaussians see them, in whole utterances and in streams alike, as in Kaldi.

Cepstral mean subtraction: from each frame, the mean of the last `window` frames up to it is subtracted.  Near the
beginning of an utterance, the mean of the training data counts as `prior` frames, as far as the window is not full.
Models of Kaldi also stack frames and project them (LDA).
"""

from dataclasses import dataclass

import numpy as np

from readers.common.environment import one_blas_thread

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


@dataclass(frozen=True, eq=False)
class SplicedProjection:
    """Stacks each frame with those around it and multiplies them by a matrix.

    The first and the last frame of an utterance are repeated beyond its ends.

    Parameters
    ----------
    matrix : (d, n * (left + 1 + right)) float64
        The columns of earlier frames come first.
    offset : (d,) float64
        Added to the product.
    left, right : int
        Earlier and later frames.
    """

    matrix: np.ndarray
    offset: np.ndarray
    left: int
    right: int

    @property
    def num_values(self) -> int:
        """n, the values of a frame before the projection."""
        return self.matrix.shape[1] // (self.left + 1 + self.right)

    def stream(self) -> "ProjectionStream":
        """Begin an utterance."""
        return ProjectionStream(self)

    def apply(self, frames: np.ndarray) -> np.ndarray:
        """Return the projected frames (T, d) float64 of an utterance."""
        stream = self.stream()
        return np.concatenate([stream.push(frames), stream.finish()])


class ProjectionStream:
    """Projects frames while they arrive."""

    def __init__(self, projection: SplicedProjection) -> None:
        self.projection = projection
        self._frames = np.zeros((0, projection.num_values))  # from the first that the next projected frame needs

    def push(self, frames: np.ndarray) -> np.ndarray:
        """Return the projected frames (m, d) float64 that further frames (T, n) complete."""
        projection = self.projection
        if not len(frames):
            return np.zeros((0, len(projection.matrix)))
        before = self._frames if len(self._frames) else np.repeat(frames[:1], projection.left, axis=0)
        rows = np.concatenate([before, frames])
        width = projection.left + 1 + projection.right
        count = max(0, len(rows) - width + 1)
        self._frames = rows[count:]
        if not count:
            return np.zeros((0, len(projection.matrix)))
        # The window of a frame is a run of values in the concatenated rows.
        rows = np.ascontiguousarray(rows)
        stacked = np.lib.stride_tricks.sliding_window_view(rows.ravel(), width * rows.shape[1])[:: rows.shape[1]]
        with one_blas_thread:
            return stacked @ projection.matrix.T + projection.offset

    def finish(self) -> np.ndarray:
        """Return the last projected frames."""
        return self.push(np.repeat(self._frames[-1:], self.projection.right, axis=0))
