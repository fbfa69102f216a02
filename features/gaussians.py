"""What trainings of Gaussians share: reading of frames, sums over them, estimates of means and variances."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from readers.errors import ShapeError
from readers.htk.parameter_file import HAS_C, HAS_K, kind_name, read_htk

LEAST_FRAMES = 3.0  # of a Gaussian, to estimate its mean and variance anew, as HERest's -m
SPLIT = 0.2  # standard deviations between a Gaussian and its halves, as HHEd's MU


class FrameRange(Protocol):
    """Frames of an HTK parameter file, as those of an utterance: first and last one, None for the whole file."""

    @property
    def path(self) -> str: ...

    @property
    def start(self) -> int | None: ...

    @property
    def end(self) -> int | None: ...


def read_features(utterance: FrameRange) -> tuple[np.ndarray, str, int]:
    """Return features (d, T) float32, their kind and period.  Raises ShapeError unless there are some, all finite."""
    file = read_htk(utterance.path, utterance.start or 0, utterance.end)
    check_frames(file.frames, utterance)
    return file.frames, kind_name(file.kind & ~(HAS_C | HAS_K)), file.period


def check_frames(frames: np.ndarray, utterance: FrameRange) -> None:
    """Raise ShapeError unless there are frames (d, T), all finite."""
    if not frames.shape[1]:
        raise ShapeError(f"{utterance.path}: no frames; expected at least one")
    if not np.isfinite(frames).all():
        bad = int(np.flatnonzero(~np.isfinite(frames).all(axis=0))[0]) + (utterance.start or 0)
        raise ShapeError(f"{utterance.path}: frame {bad} has a value that is infinite or NaN; expected finite values")


def unlike(form: tuple[str, int, int], expected: tuple[str, int, int]) -> str:
    """Return how forms of features (kind, values of a frame, ticks from frame to frame) differ, for a message."""
    here, there = (f"{kind} of {dim} values every {period / 10_000:g} ms" for kind, dim, period in (form, expected))
    return f"{here}; expected {there}"


@dataclass
class GaussianSums:
    """Sums over frames, weighted by the posterior probabilities of C Gaussians; those of shards add up.

    Attributes
    ----------
    occupancy : (C,) float64
        Expected number of frames of each Gaussian.
    total : (C, d) float64
        Expected sums of its frames.
    square : (C, d) or (C, d, d) float64
        Expected sums of their squares; with full covariances, of their products, of which only the lower triangles
        are used.
    log_likelihood : float
    frames : int
    """

    occupancy: np.ndarray
    total: np.ndarray
    square: np.ndarray
    log_likelihood: float = 0.0
    frames: int = 0

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The sums that are arrays."""
        return self.occupancy, self.total, self.square

    def add(self, other: "GaussianSums") -> None:
        """Add the sums of other frames."""
        for sums, more in zip(self.arrays(), other.arrays()):
            sums += more
        self.log_likelihood += other.log_likelihood
        self.frames += other.frames

    def diagonal(self, means: np.ndarray, variances: np.ndarray, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return means and variances (C, d) of greatest likelihood, with variances of at least `floor` (d,).

        Gaussians with less than LEAST_FRAMES frames keep the given ones.
        """
        enough = self.occupancy >= LEAST_FRAMES
        count = np.where(enough, self.occupancy, 1.0)[:, None]
        mean = self.total / count
        variance = np.maximum(self.square / count - mean**2, floor)
        return np.where(enough[:, None], mean, means), np.where(enough[:, None], variance, variances)
