"""Mixtures of Gaussians of all speech: with diagonal and with full covariances, and their steps of the EM algorithm."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from features.ivectors.kernels import add_first_order, add_second_order, full_scores, posteriors
from readers.common.environment import one_blas_thread
from readers.tables.passes import LEAST_FRAMES, SPLIT, GaussianSums

LOG_2_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class DiagonalMixture:
    """A mixture of Gaussians with diagonal covariances.

    Parameters
    ----------
    weights : (C,) float64
    means, variances : (C, d) float64
    """

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    @cached_property
    def _products(self) -> tuple[np.ndarray, np.ndarray]:
        """Constants (C,), and the factors (2 d, C) of the values and their squares."""
        precision = 1.0 / self.variances
        with np.errstate(divide="ignore"):
            constant = np.log(self.weights)
        constant = constant - 0.5 * (np.log(self.variances) + LOG_2_PI + self.means**2 * precision).sum(axis=1)
        return constant, np.concatenate([(self.means * precision).T, -0.5 * precision.T])

    def scores(self, frames: np.ndarray) -> np.ndarray:
        """Logarithms (T, C) of weight times density, for frames (T, d) float64."""
        constant, factors = self._products
        with one_blas_thread:
            return np.concatenate([frames, frames**2], axis=1) @ factors + constant

    def empty_sums(self) -> GaussianSums:
        """Sums over nothing."""
        return GaussianSums(np.zeros(len(self.weights)), np.zeros(self.means.shape), np.zeros(self.means.shape))

    def add_sums(self, sums: GaussianSums, frames: np.ndarray) -> None:
        """Add frames (T, d) float64, with the posterior probabilities of all Gaussians."""
        shares, log_likelihood = posteriors(self.scores(frames), 0.0)
        with one_blas_thread:
            sums.total += shares.T @ frames
            sums.square += shares.T @ frames**2
        sums.occupancy += shares.sum(axis=0)
        sums.log_likelihood += log_likelihood
        sums.frames += len(frames)

    def estimate(self, sums: GaussianSums, floor: np.ndarray) -> "DiagonalMixture":
        """The mixture of greatest likelihood given the sums, with variances of at least floor (d,)."""
        weights = sums.occupancy / sums.occupancy.sum()
        return DiagonalMixture(weights, *sums.diagonal(self.means, self.variances, floor))

    def split(self, count: int, random: np.random.Generator) -> "DiagonalMixture":
        """Split the heaviest Gaussians in two, so that there are `count` in all, at most twice as many."""
        halved = np.sort(np.argsort(-self.weights, kind="stable")[: count - len(self.weights)])
        weights = self.weights.copy()
        weights[halved] /= 2
        step = SPLIT * random.standard_normal((len(halved), self.means.shape[1])) * np.sqrt(self.variances[halved])
        means = self.means.copy()
        means[halved] -= step
        return DiagonalMixture(
            np.concatenate([weights, weights[halved]]),
            np.concatenate([means, means[halved] + 2 * step]),
            np.concatenate([self.variances, self.variances[halved]]),
        )

    def full(self) -> "FullMixture":
        """The same mixture, with matrices of covariances."""
        covariances = self.variances[:, :, None] * np.eye(self.means.shape[1])
        return FullMixture(self.weights, self.means, covariances)


@dataclass(frozen=True, eq=False)
class FullMixture:
    """A mixture of Gaussians with full covariances.

    Parameters
    ----------
    weights : (C,) float64
    means : (C, d) float64
    covariances : (C, d, d) float64
    """

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @cached_property
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Constants (C,), and inverses (C, d, d) of the lower Cholesky factors of the covariances."""
        with one_blas_thread:
            lower = np.linalg.cholesky(self.covariances)
            inverse = np.linalg.inv(lower)
        with np.errstate(divide="ignore"):
            constant = np.log(self.weights)
        diagonal = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        return constant - 0.5 * self.means.shape[1] * LOG_2_PI - diagonal, np.ascontiguousarray(inverse)

    def scores(self, frames: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Logarithms (T, n) of weight times density, of the Gaussians index (T, n) for frames (T, d) float64."""
        constant, factors = self._factors
        return full_scores(frames, index, constant, self.means, factors)

    def empty_sums(self) -> GaussianSums:
        """Sums over nothing."""
        return GaussianSums(np.zeros(len(self.weights)), np.zeros(self.means.shape), np.zeros(self.covariances.shape))

    def add_sums(self, sums: GaussianSums, frames: np.ndarray, index: np.ndarray) -> None:
        """Add frames (T, d) float64, with the posterior probabilities among selected Gaussians index (T, n)."""
        shares, log_likelihood = posteriors(self.scores(frames, index), 0.0)
        add_first_order(frames, index, shares, sums.occupancy, sums.total)
        add_second_order(frames, index, shares, sums.square)
        sums.log_likelihood += log_likelihood
        sums.frames += len(frames)

    def estimate(self, sums: GaussianSums, floor: np.ndarray) -> "FullMixture":
        """The mixture of greatest likelihood given the sums, with covariances of at least diag(floor), (d,)."""
        enough = sums.occupancy >= max(LEAST_FRAMES, 2.0 * self.means.shape[1])
        count = np.where(enough, sums.occupancy, 1.0)[:, None]
        means = np.where(enough[:, None], sums.total / count, self.means)
        covariances = symmetric(sums.square) / count[:, None] - means[:, :, None] * means[:, None]
        covariances = np.where(enough[:, None, None], covariances, self.covariances)
        weights = sums.occupancy / sums.occupancy.sum()
        return FullMixture(weights, means, floored(covariances, np.diag(floor)))


def symmetric(lower: np.ndarray) -> np.ndarray:
    """Symmetric matrices (..., d, d) of their lower triangles; what is above them is not read."""
    lower = np.tril(lower)
    return lower + np.swapaxes(np.tril(lower, -1), -1, -2)


def floored(covariances: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """The covariances (C, d, d), none of them less than floor (d, d) in any direction.

    These are the covariances of greatest likelihood under this constraint.
    """
    with one_blas_thread:
        lower = np.linalg.cholesky(floor)
        inverse = np.linalg.inv(lower)
        values, vectors = np.linalg.eigh(inverse @ covariances @ inverse.T)
        low = values[:, 0] < 1.0
        if not low.any():
            return covariances
        directions = lower @ vectors[low]
        result = covariances.copy()
        result[low] = (directions * np.maximum(values[low], 1.0)[:, None]) @ np.swapaxes(directions, 1, 2)
    return (result + np.swapaxes(result, 1, 2)) / 2
