"""I-vectors that are estimated while the frames of an utterance arrive."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from features.ivectors.background import pieces
from features.ivectors.kernels import add_terms, posteriors, select_best

if TYPE_CHECKING:
    from features.ivectors.model import IvectorModel

__all__ = ["IvectorStream", "SpeakerState", "WeightedStream"]

REMEMBERED = 1000.0  # frames of earlier utterances that a stream takes into account, at most
MOST_LIKELY = 0.99  # probability below which all Gaussians but the most probable one are left out


@dataclass(frozen=True, eq=False)
class SpeakerState:
    """What is known of a speaker after some utterances: terms of the frames without the prior.

    Parameters
    ----------
    linear : (D,) float64
    quadratic : (Q,) float64
    count : float
        Scaled frames.
    """

    linear: np.ndarray
    quadratic: np.ndarray
    count: float


class IvectorStream:
    """Estimates i-vectors while the frames of an utterance arrive.

    Parameters
    ----------
    model : IvectorModel
    state : SpeakerState, optional
        Of the earlier utterances of the speaker.
    """

    def __init__(self, model: "IvectorModel", state: SpeakerState | None = None):
        self.model = model
        self._mean = model.background.mean.stream()
        projection = model.background.projection
        # Of frames, and of frames without their mean.
        self._projections = None if projection is None else (projection.stream(), projection.stream())
        self._num_frames = 0
        size = model.dim
        if state is None:
            state = SpeakerState(np.zeros(size), np.zeros(size * (size + 1) // 2), 0.0)
        most = REMEMBERED * model.options.posterior_scale
        keep = min(1.0, most / state.count) if state.count else 1.0
        self._linear = keep * state.linear
        self._quadratic = keep * state.quadratic
        self._count = keep * state.count

    def push(self, frames: np.ndarray) -> np.ndarray:
        """Add frames (d, T); return the i-vectors (D, n) float32 of the blocks of `period` frames that begin in them.

        The i-vector of a block is estimated from all frames up to its first one.  A projection of several frames delays
        the frames by those after them; `finish` returns the i-vectors of blocks that begin in the last ones.
        """
        rows = self.model.check_frames(frames)
        blocks = [np.zeros((0, self.model.dim))]
        for part in pieces(rows):
            centred = self._mean.push(part)
            if self._projections is not None:
                part, centred = (stream.push(rows) for stream, rows in zip(self._projections, (part, centred)))
            blocks.append(self._push(part, centred))
        return np.asfortranarray(np.concatenate(blocks).T, np.float32)

    @property
    def delay(self) -> int:
        """Frames by which i-vectors lag behind the first frame of their block."""
        projection = self.model.background.projection
        return 0 if projection is None else projection.right

    def finish(self) -> np.ndarray:
        """Return the last i-vectors (D, n) float32 of the utterance."""
        if self._projections is None:
            return np.zeros((self.model.dim, 0), np.float32)
        return np.asfortranarray(self._push(*(stream.finish() for stream in self._projections)).T, np.float32)

    def _push(self, rows: np.ndarray, centred: np.ndarray) -> np.ndarray:
        """Add frames (T, d) float64 with and without their mean; return the i-vectors (n, D)."""
        model = self.model
        options = self.model.options
        index, weights, _ = model.background.select(centred, options)
        begins = range(-self._num_frames % options.period, len(rows), options.period)
        linear = np.zeros((len(begins), model.dim))
        quadratic = np.zeros((len(begins), len(self._quadratic)))
        scales = np.zeros(len(begins))
        done = 0
        for k, begin in enumerate(begins):
            self._add(rows, index, weights, done, begin + 1)
            linear[k] = self._linear
            quadratic[k] = self._quadratic
            done = begin + 1
            scales[k] = model.prior_scale(self._count)
        self._add(rows, index, weights, done, len(rows))
        self._num_frames += len(rows)
        return model.extractor.expected(linear, quadratic, scales)

    def current(self) -> np.ndarray:
        """Return the i-vector (D,) float32 of all frames so far."""
        scale = self.model.prior_scale(self._count)
        return self.model.extractor.expected(self._linear[None], self._quadratic[None], scale)[0].astype(np.float32)

    def state(self) -> SpeakerState:
        """Return what the next utterance of the speaker may begin with."""
        return SpeakerState(self._linear.copy(), self._quadratic.copy(), self._count)

    def _add(self, rows: np.ndarray, index: np.ndarray, weights: np.ndarray, first: int, last: int) -> None:
        extractor = self.model.extractor
        part = slice(first, last)
        self._count += add_terms(
            rows[part], index[part], weights[part], extractor.linear_maps, extractor.quadratics, self._linear,
            self._quadratic,
        )  # fmt: skip


class WeightedStream:
    """Estimates i-vectors of frames whose weights change while they arrive (Kaldi: OnlineIvectorFeature).

    As in Kaldi, the Gaussians of a frame are selected anew with each change of its weight: the smaller the change, the
    higher is the probability that they must have.

    Parameters
    ----------
    model : IvectorModel
    """

    def __init__(self, model: "IvectorModel"):
        self.model = model
        background = model.background
        self._mean = background.mean.stream()
        projection = background.projection
        self._projections = None if projection is None else (projection.stream(), projection.stream())
        count = min(model.options.select, len(background.diagonal.weights))
        self._num_frames = 0
        # Of frames whose weights may change: as the extractor sees them, Gaussians, log-likelihoods, weights so far.
        self._rows = np.zeros((0, background.diagonal.means.shape[1]))
        self._index = np.zeros((0, count), np.int32)
        self._scores = np.zeros((0, count))
        self._weights = np.zeros(0)
        self._linear = np.zeros(model.dim)
        self._quadratic = np.zeros(model.dim * (model.dim + 1) // 2)
        self._count = 0.0

    @property
    def num_frames(self) -> int:
        """Frames whose weights count; those that a projection still waits for are left out."""
        return self._num_frames

    def push(self, frames: np.ndarray) -> None:
        """Add frames (d, T)."""
        rows = self.model.check_frames(frames)
        centred = self._mean.push(rows)
        if self._projections is not None:
            rows, centred = (stream.push(part) for stream, part in zip(self._projections, (rows, centred)))
        self._add(rows, centred)

    def finish(self) -> None:
        """End the utterance."""
        if self._projections is not None:
            self._add(*(stream.finish() for stream in self._projections))

    def estimate(self, weights: np.ndarray) -> np.ndarray:
        """Return the i-vector (D,) float32 of all frames so far.

        weights (n,): of the last n frames; those before them keep their weights from now on, and are forgotten.
        """
        options = self.model.options
        extractor = self.model.extractor
        num_settled = len(self._weights) - len(weights)
        self._rows = self._rows[num_settled:]
        self._index = self._index[num_settled:]
        self._scores = self._scores[num_settled:]
        change = weights - self._weights[num_settled:]
        for step in np.unique(change[change != 0]):
            frames = change == step
            least = min(options.min_posterior / abs(step), MOST_LIKELY)
            probabilities, _ = posteriors(self._scores[frames], least)
            self._count += add_terms(
                self._rows[frames], self._index[frames], options.posterior_scale * step * probabilities,
                extractor.linear_maps, extractor.quadratics, self._linear, self._quadratic,
            )  # fmt: skip
        self._weights = weights.copy()
        scale = self.model.prior_scale(self._count)
        return extractor.expected(self._linear[None], self._quadratic[None], scale)[0].astype(np.float32)

    def _add(self, rows: np.ndarray, centred: np.ndarray) -> None:
        background = self.model.background
        index, scores = select_best(background.diagonal.scores(centred), self._index.shape[1])
        if background.full is not None:
            scores = background.full.scores(centred, index)
        self._num_frames += len(rows)
        self._rows = np.concatenate([self._rows, rows])
        self._index = np.concatenate([self._index, index])
        self._scores = np.concatenate([self._scores, scores])
        self._weights = np.append(self._weights, np.zeros(len(rows)))
