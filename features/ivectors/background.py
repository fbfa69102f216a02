"""The background model of i-vectors: which Gaussians of all speech a frame belongs to."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from features.ivectors.frames import SlidingMean, SplicedProjection
from features.ivectors.kernels import add_first_order, posteriors, select_best
from features.ivectors.mixtures import DiagonalMixture, FullMixture
from features.ivectors.options import MOST_GAUSSIANS, IvectorOptions
from readers.errors import ModelError

MOST_VALUES = 4096
PIECE = 4000  # frames at a time


@dataclass(frozen=True, eq=False)
class Background:
    """The mixture of all speech, which gives the posterior probabilities of Gaussians.

    Parameters
    ----------
    mean : SlidingMean
        What is subtracted from its frames.
    diagonal : DiagonalMixture
    full : FullMixture or None
        Gives the posterior probabilities of the Gaussians that the diagonal mixture selects.
    projection : SplicedProjection or None
        Of frames, with and without their mean, to those that the mixtures and the extractor see.
    """

    mean: SlidingMean
    diagonal: DiagonalMixture
    full: FullMixture | None = None
    projection: SplicedProjection | None = None

    def select(self, frames: np.ndarray, options: IvectorOptions) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the Gaussians (T, n), their scaled posterior probabilities (T, n), and the log-likelihood.

        frames (T, d) float64, without their mean, projected.
        """
        index, scores = select_best(self.diagonal.scores(frames), min(options.select, len(self.diagonal.weights)))
        if self.full is not None:
            scores = self.full.scores(frames, index)
        weights, log_likelihood = posteriors(scores, options.min_posterior)
        return index, options.posterior_scale * weights, log_likelihood

    def statistics(self, frames: np.ndarray, options: IvectorOptions) -> tuple[np.ndarray, np.ndarray]:
        """Return occupancy (C,) and sums (C, d) of the frames (T, d) float64 of an utterance, as they are in files."""
        occupancy = np.zeros(len(self.diagonal.weights))
        total = np.zeros(self.diagonal.means.shape)
        centred_frames = self.mean.subtract(frames)
        if self.projection is not None:
            frames = self.projection.apply(frames)
            centred_frames = self.projection.apply(centred_frames)
        for part, centred in zip(pieces(frames), pieces(centred_frames)):
            index, weights, _ = self.select(centred, options)
            add_first_order(part, index, weights, occupancy, total)
        return occupancy, total


def pieces(frames: np.ndarray) -> Iterator[np.ndarray]:
    """Yield frames (T, d) in parts, so that the memory of scores does not grow with the utterance."""
    return (frames[first : first + PIECE] for first in range(0, len(frames), PIECE))


def mixture_arrays(background: Background) -> dict[str, np.ndarray]:
    """Return the arrays of the mixtures and the projection by their names in files."""
    arrays: dict[str, np.ndarray] = {}
    for name, mixture in (("diagonal", background.diagonal), ("full", background.full)):
        if mixture is not None:
            arrays |= {f"{name}.{field.name}": getattr(mixture, field.name) for field in fields(mixture)}
    if background.projection is not None:
        arrays |= {f"projection.{name}": getattr(background.projection, name) for name in ("matrix", "offset")}
    return arrays


def background_of(arrays: dict[str, np.ndarray], window: int, prior: int, splice: Any = None) -> Background:
    """Return the background model of a file's arrays; splice: frames before and after that a projection takes.

    Raises ModelError and KeyError for those that do not fit.
    """
    means = array(arrays, "diagonal.means", (None, None))
    shape = means.shape
    if not (1 <= shape[0] <= MOST_GAUSSIANS and 1 <= shape[1] <= MOST_VALUES):
        raise ModelError(f"{shape[0]} Gaussians of {shape[1]} values")
    variances = array(arrays, "diagonal.variances", shape)
    if not (variances > 0).all():
        raise ModelError("variances that are not above 0")
    diagonal = DiagonalMixture(_weights(arrays, "diagonal.weights", shape), means, variances)
    full = None
    if "full.means" in arrays:
        full = FullMixture(
            _weights(arrays, "full.weights", shape),
            array(arrays, "full.means", shape),
            covariance_array(arrays, "full.covariances", shape),
        )
    projection = None
    if splice is not None:
        if not isinstance(splice, list) or len(splice) != 2:
            raise ModelError(f"splice {str(splice)[:60]!r}")
        left, right = (whole(value, "splice") for value in splice)
        matrix = array(arrays, "projection.matrix", (shape[1], None))
        if matrix.shape[1] % (left + 1 + right):
            raise ModelError(f"{matrix.shape[1]} values in {left + 1 + right} frames")
        projection = SplicedProjection(matrix, array(arrays, "projection.offset", shape[1:]), left, right)
    num_values = shape[1] if projection is None else projection.num_values
    mean = SlidingMean(array(arrays, "mean", (num_values,)), window, prior)
    return Background(mean, diagonal, full, projection)


def array(arrays: dict[str, np.ndarray], name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return a float64 array in C order.  Raises ModelError for another shape (None: any) and infinite values."""
    values = arrays[name]
    fits = values.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, values.shape))
    if not fits or 0 in values.shape or values.dtype.kind != "f" or max(values.shape, default=1) > MOST_GAUSSIANS:
        raise ModelError(f"array {name!r} of shape {values.shape}, {values.dtype}")
    if not np.isfinite(values).all():
        raise ModelError(f"array {name!r} with values that are infinite or NaN")
    return np.ascontiguousarray(values, np.float64)


def covariance_array(arrays: dict[str, np.ndarray], name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return covariances (C, d, d).  Raises ModelError unless they are positive definite."""
    covariances = array(arrays, name, (shape[0], shape[1], shape[1]))
    try:
        np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        raise ModelError(f"array {name!r} with a matrix that is not positive definite") from None
    return covariances


def _weights(arrays: dict[str, np.ndarray], name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    weights = array(arrays, name, shape[:1])
    if weights.min() < 0 or abs(weights.sum() - 1) > 1e-6:
        raise ModelError(f"array {name!r} with weights whose sum is {weights.sum():g}")
    return weights


def number(value: Any, name: str) -> float:
    """Return a number of a file's metadata.  Raises ModelError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e12:
        raise ModelError(f"{name} {repr(value)[:60]}")
    return value


def whole(value: Any, name: str, least: int = 0) -> int:
    if not isinstance(number(value, name), int) or value < least:
        raise ModelError(f"{name} {repr(value)[:60]}")
    return value
