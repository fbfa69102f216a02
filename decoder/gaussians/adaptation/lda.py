"""Linear discriminant analysis: the directions in which the means of states differ most, compared with their frames."""

from dataclasses import dataclass

import numpy as np

from decoder.gaussians.adaptation.kernels import add_scatter
from readers.errors import ShapeError

LEAST_EIGENVALUE = 1e-10  # of the scatter within states, compared with the greatest


@dataclass
class LdaSums:
    """Sums over frames of n values in K states; those of shards add up.

    Attributes
    ----------
    count : (K,) float64
        Number of frames of each state.
    total : (K, n) float64
        Sum of the frames of each state.
    square : (n, n) float64
        Sum of the products of all frames with themselves; only the lower triangle.
    failures : list of (str, str)
        Utterances that cannot be used, and the reasons.
    """

    count: np.ndarray
    total: np.ndarray
    square: np.ndarray
    failures: list[tuple[str, str]]

    @classmethod
    def empty(cls, num_states: int, dim: int) -> "LdaSums":
        """Sums over nothing."""
        return cls(np.zeros(num_states), np.zeros((num_states, dim)), np.zeros((dim, dim)), [])

    def add_frames(self, frames: np.ndarray, state: np.ndarray) -> None:
        """Add frames (T, n) float64 in states (T,) int32."""
        add_scatter(frames, state, self.count, self.total, self.square)

    def add(self, other: "LdaSums") -> None:
        """Add the sums of other utterances."""
        self.count += other.count
        self.total += other.total
        self.square += other.square
        self.failures += other.failures

    def means(self) -> np.ndarray:
        """(K, n): means of the states; of those without frames the mean of all."""
        mean = self.total.sum(axis=0) / self.count.sum()
        return np.where(self.count[:, None] > 0, self.total / np.maximum(self.count, 1)[:, None], mean)

    def scatters(self) -> tuple[np.ndarray, np.ndarray]:
        """(n, n) covariances of the frames within the states, and of the states' means."""
        frames = self.count.sum()
        square = np.tril(self.square) + np.tril(self.square, -1).T
        mean = self.total.sum(axis=0) / frames
        centres = (self.means() - mean) * np.sqrt(self.count / frames)[:, None]
        between = centres.T @ centres
        return square / frames - np.outer(mean, mean) - between, between


def estimate_lda(sums: LdaSums, dim: int) -> np.ndarray:
    """The rows of greatest ratio of the covariance of the states' means to that within the states.

    Parameters
    ----------
    sums : LdaSums
    dim : int
        Number of rows.

    Returns
    -------
    (dim, n) float64
        With it the covariance within the states is the unit matrix.  The largest value of each row is positive.

    Raises
    ------
    ShapeError
        If values of the frames depend linearly on each other, or are constant.
    """
    within, between = sums.scatters()
    values, vectors = np.linalg.eigh(within)
    if not values[0] > LEAST_EIGENVALUE * values[-1]:
        raise ShapeError(
            "LDA: within the states, values of the frames are constant or depend on each other; expected features "
            "without constant values, and more frames than values"
        )
    whiten = (vectors / np.sqrt(values)).T
    ratios, rotation = np.linalg.eigh(whiten @ between @ whiten.T)
    rows = rotation[:, np.argsort(-ratios, kind="stable")[:dim]].T @ whiten
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return rows * np.sign(largest)
