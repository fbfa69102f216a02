"""The model of i-vectors: the mean of each Gaussian is linear in a vector of the speaker, and its EM algorithm.

With the i-vector w, Gaussian c has the mean M_c w and the covariance S_c.  The prior of w is a Gaussian with unit
covariance, whose mean is `offset` in the first coordinate and 0 in the others, so that the first column of M_c times
the offset is the mean of all speakers.

References
----------
Dehak et al., Front-end factor analysis for speaker verification, IEEE TASLP 19 (2011).  Saon et al., Speaker adaptation
of neural network acoustic models using i-vectors, ASRU 2013.  Prior with an offset: Kaldi's ivector-extractor.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from features.ivectors.mixtures import LOG_2_PI, floored, symmetric
from readers.common.environment import one_blas_thread

OFFSET = 100.0  # of the prior, at the beginning
SCATTER = 0.1  # standard deviations of a Gaussian by which a coordinate of w moves its mean, at the beginning
LEAST_FRAMES = 5.0  # of a Gaussian, after scaling, to estimate its matrices anew
COVARIANCE_FLOOR = 0.1  # least covariance, as a fraction of the mean one at the beginning
LEAST_VARIANCE, LEAST_SHARE = 1e-10, 1e-3  # added to the floor, because values may depend on each other
LEAST_EIGENVALUE = 1e-7  # of the covariance of the i-vectors


class Statistics(NamedTuple):
    """Sums over the frames of units, such as utterances or speakers.

    Attributes
    ----------
    occupancy : (U, C) float64
        Scaled posterior probabilities.
    total : (U, C, d) float64
        Frames weighted by them.
    """

    occupancy: np.ndarray
    total: np.ndarray


@dataclass
class ExtractorSums:
    """What the M step reads: sums over units.

    Attributes
    ----------
    occupancy : (C,) float64
    cross : (C, d, D) float64
        Sums of frames times expected i-vectors.
    scatter : (C, Q) float64
        Sums of occupancies times expected products of i-vectors, lower triangles of Q = D (D + 1) / 2 values.
    first : (D,) float64
        Sum of the expected i-vectors.
    second : (Q,) float64
        Sum of their expected products.
    units : int
    log_likelihood : float
        Without the part of `square_likelihood`.
    """

    occupancy: np.ndarray
    cross: np.ndarray
    scatter: np.ndarray
    first: np.ndarray
    second: np.ndarray
    units: int = 0
    log_likelihood: float = 0.0

    def add(self, other: "ExtractorSums") -> None:
        """Add the sums of other units."""
        for name in ("occupancy", "cross", "scatter", "first", "second"):
            getattr(self, name).__iadd__(getattr(other, name))
        self.units += other.units
        self.log_likelihood += other.log_likelihood


@dataclass(frozen=True, eq=False)
class Extractor:
    """The parameters of the model.

    Parameters
    ----------
    projections : (C, d, D) float64
        M_c.
    covariances : (C, d, d) float64
    offset : float
        Mean of the first coordinate in the prior.
    """

    projections: np.ndarray
    covariances: np.ndarray
    offset: float

    @classmethod
    def initial(cls, means: np.ndarray, covariances: np.ndarray, dim: int, seed: int) -> "Extractor":
        """Begin with the means (C, d) and covariances (C, d, d) of the Gaussians, and random other columns."""
        random = np.random.default_rng(seed)
        deviations = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        projections = SCATTER * random.standard_normal((*means.shape, dim)) * deviations[:, :, None]
        projections[:, :, 0] = means / OFFSET
        return cls(projections, covariances, OFFSET)

    @property
    def dim(self) -> int:
        """Values of an i-vector."""
        return self.projections.shape[2]

    @cached_property
    def _inverse(self) -> np.ndarray:
        with one_blas_thread:
            return np.linalg.inv(self.covariances)

    @cached_property
    def linear_maps(self) -> np.ndarray:
        """(C, d, D): inverse covariance times projection."""
        with one_blas_thread:
            return np.ascontiguousarray(self._inverse @ self.projections)

    @cached_property
    def quadratics(self) -> np.ndarray:
        """(C, Q): lower triangles of projection' inverse covariance projection."""
        with one_blas_thread:
            projected = np.swapaxes(self.projections, 1, 2) @ self.linear_maps
        return np.ascontiguousarray(projected[(slice(None), *np.tril_indices(self.dim))])

    def terms(self, statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
        """The linear (U, D) and quadratic (U, Q) terms of the frames, without the prior."""
        units = len(statistics.occupancy)
        size, dim = self.linear_maps.shape[:2]
        with one_blas_thread:
            linear = statistics.total.reshape(units, -1) @ self.linear_maps.reshape(size * dim, -1)
            return linear, statistics.occupancy @ self.quadratics

    def with_prior(
        self, linear: np.ndarray, quadratic: np.ndarray, scale: float | np.ndarray = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Add the prior, times `scale` (float or (U,)), to terms; returns (U, D) and matrices (U, D, D)."""
        scale = np.broadcast_to(scale, len(linear))
        linear = linear.copy()
        linear[:, 0] += scale * self.offset
        return linear, unpacked(quadratic, self.dim) + scale[:, None, None] * np.eye(self.dim)

    def expected(self, linear: np.ndarray, quadratic: np.ndarray, scale: float | np.ndarray = 1.0) -> np.ndarray:
        """The most probable i-vectors (U, D) given terms as `terms` returns them, with the offset subtracted."""
        linear, matrices = self.with_prior(linear, quadratic, scale)
        with one_blas_thread:
            vectors = np.linalg.solve(matrices, linear[:, :, None])[:, :, 0]
        vectors[:, 0] -= self.offset
        return vectors

    def sums(self, statistics: Statistics) -> ExtractorSums:
        """The E step for some units."""
        lower = np.tril_indices(self.dim)
        linear, matrices = self.with_prior(*self.terms(statistics))
        units = len(linear)
        with one_blas_thread:
            covariances = np.linalg.inv(matrices)
            expected = (covariances @ linear[:, :, None])[:, :, 0]
            products = (covariances + expected[:, :, None] * expected[:, None])[(slice(None), *lower)]
            cross = statistics.total.reshape(units, -1).T @ expected
            scatter = statistics.occupancy.T @ products
            half = 0.5 * np.linalg.slogdet(matrices)[1].sum()
        likelihood = 0.5 * (linear * expected).sum() - half - 0.5 * units * self.offset**2
        occupancy = statistics.occupancy.sum(axis=0)
        return ExtractorSums(
            occupancy, cross.reshape(self.projections.shape), scatter, expected.sum(axis=0), products.sum(axis=0),
            units, float(likelihood),
        )  # fmt: skip

    def square_likelihood(self, occupancy: np.ndarray, square: np.ndarray) -> float:
        """The part of the log-likelihood that does not depend on i-vectors.

        occupancy (C,), square (C, d, d): sums over all units.
        """
        with one_blas_thread:
            factor = np.linalg.slogdet(self.covariances)[1] + self.covariances.shape[1] * LOG_2_PI
        return float(-0.5 * (occupancy @ factor + (self._inverse * square).sum()))

    def estimate(self, sums: ExtractorSums, square: np.ndarray, floor: np.ndarray) -> "Extractor":
        """The M step: projections, covariances of at least `floor` (d, d), and prior.

        square (C, d, d): sums of the products of all frames.
        Gaussians with less than LEAST_FRAMES frames keep their matrices.
        """
        enough = sums.occupancy >= LEAST_FRAMES
        projections = self.projections.copy()
        covariances = self.covariances.copy()
        scatter = unpacked(sums.scatter[enough], self.dim)
        cross = sums.cross[enough]
        with one_blas_thread:
            new = np.swapaxes(np.linalg.solve(scatter, np.swapaxes(cross, 1, 2)), 1, 2)
            mixed = new @ np.swapaxes(cross, 1, 2)
            model = new @ scatter @ np.swapaxes(new, 1, 2)
        centred = square[enough] - mixed - np.swapaxes(mixed, 1, 2) + model
        projections[enough] = new
        covariances[enough] = floored(centred / sums.occupancy[enough, None, None], floor)
        weights = sums.occupancy / sums.occupancy.sum()
        return replace(self, projections=projections, covariances=covariances)._with_unit_prior(sums, weights)

    def _with_unit_prior(self, sums: ExtractorSums, weights: np.ndarray) -> "Extractor":
        """Transform the i-vectors so that their prior of greatest likelihood has the form that it must have.

        The coordinates but the first are also rotated so that the mean quadratic term is diagonal, the greatest value
        first.
        """
        mean = sums.first / sums.units
        covariance = unpacked(sums.second[None] / sums.units, self.dim)[0] - np.outer(mean, mean)
        with one_blas_thread:
            values, vectors = np.linalg.eigh(covariance)
            values = np.maximum(values, LEAST_EIGENVALUE)
            whiten = (vectors / np.sqrt(values)).T
            transform = reflection(whiten @ mean) @ whiten
            inverse = np.linalg.inv(transform)
            average = unpacked((weights @ self.quadratics)[None], self.dim)[0]
            turned = inverse.T @ average @ inverse
            rotation = np.eye(self.dim)
            rotation[1:, 1:] = np.linalg.eigh(turned[1:, 1:])[1][:, ::-1].T
            transform = rotation @ transform
            projections = self.projections @ np.linalg.inv(transform)
        return Extractor(np.ascontiguousarray(projections), self.covariances, float((transform @ mean)[0]))


def initial_extractor(
    occupancy: np.ndarray, total: np.ndarray, square: np.ndarray, dim: int, seed: int
) -> tuple[Extractor, np.ndarray]:
    """Return the initial model and the floor (d, d) of its covariances, for sums over all frames.

    occupancy (C,), total (C, d), square (C, d, d).  Gaussians without frames get the mean and covariance of all frames.
    """
    everything = occupancy.sum()
    mean = total.sum(axis=0) / everything
    covariance = square.sum(axis=0) / everything - np.outer(mean, mean)
    enough = occupancy >= LEAST_FRAMES
    count = np.where(enough, occupancy, 1.0)[:, None]
    means = np.where(enough[:, None], total / count, mean)
    centred = square / count[:, :, None] - means[:, :, None] * means[:, None]
    centred = np.where(enough[:, None, None], centred, covariance)
    average = (np.where(enough, occupancy, 0.0)[:, None, None] * centred).sum(axis=0) / max(
        occupancy[enough].sum(), 1.0
    )
    average = average if enough.any() else covariance
    variance = np.maximum(np.diagonal(covariance), LEAST_VARIANCE * np.maximum(mean**2, 1.0))
    floor = COVARIANCE_FLOOR * (average + average.T) / 2 + LEAST_SHARE * np.diag(variance)
    return Extractor.initial(means, floored(centred, floor), dim, seed), floor


def unpacked(lower: np.ndarray, dim: int) -> np.ndarray:
    """Symmetric matrices (U, D, D) of their lower triangles (U, Q)."""
    matrices = np.zeros((len(lower), dim, dim))
    matrices[(slice(None), *np.tril_indices(dim))] = lower
    return symmetric(matrices)


def reflection(vector: np.ndarray) -> np.ndarray:
    """An orthogonal matrix that maps a vector (D,) to a positive multiple of the first unit vector."""
    first = np.eye(len(vector))[0]
    normal = vector / np.linalg.norm(vector) - first
    square = normal @ normal
    if square < 1e-24:
        return np.eye(len(vector))
    return np.eye(len(vector)) - 2 / square * np.outer(normal, normal)
