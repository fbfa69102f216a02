"""Probabilistic linear discriminant analysis: how much likelier two i-vectors are if they are of one speaker.

Centred, whitened vectors of unit length times sqrt(D) are a speaker's vector, of covariance B, plus that of an
utterance, of covariance W.  EM estimates both; the transform that makes W the unit matrix and B diagonal also orders
the directions, as linear discriminant analysis does.  The mean of n vectors of a speaker has the covariance W / n.

References
----------
Ioffe, Probabilistic linear discriminant analysis, ECCV 2006, with the EM of Kaldi's ivector-compute-plda.
Garcia-Romero and Espy-Wilson, Analysis of i-vector length normalization, Interspeech 2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from readers.common.environment import one_blas_thread

PASSES = 10
LEAST_EIGENVALUE = 1e-6  # of the covariance of all vectors, as a fraction of the greatest

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Plda:
    """A trained model.

    Parameters
    ----------
    mean : (D,) float64
        Of all i-vectors.
    whitening : (E, D) float64
    transform : (F, E) float64
        From whitened vectors of the expected length.
    centre : (F,) float64
        Mean of what comes out.
    between : (F,) float64
        Variance of the speakers in each direction, falling; that of the utterances of a speaker is 1.
    """

    mean: Floats
    whitening: Floats
    transform: Floats
    centre: Floats
    between: Floats

    def project(self, vectors: Floats) -> Floats:
        """I-vectors (N, D) in the space of the model, (N, F)."""
        with one_blas_thread:
            return _of_expected_length((vectors - self.mean) @ self.whitening.T) @ self.transform.T - self.centre

    def scores(self, left: Floats, left_counts: Floats, right: Floats, right_counts: Floats) -> Floats:
        """Return the log likelihood ratios (N,) of pairs of means of projected vectors.

        Parameters
        ----------
        left, right : (N, F) float64
        left_counts, right_counts : (N,) float64
            How many vectors each is the mean of.
        """
        left_variance = self.between + 1 / left_counts[:, None]
        right_variance = self.between + 1 / right_counts[:, None]
        determinant = left_variance * right_variance - self.between**2
        joint = (right_variance * left**2 - 2 * self.between * left * right + left_variance * right**2) / determinant
        apart = left**2 / left_variance + right**2 / right_variance
        logarithms = np.log(determinant) - np.log(left_variance) - np.log(right_variance)
        return -0.5 * (joint - apart + logarithms).sum(axis=1)


def train_plda(speakers: Sequence[Floats], dim: int | None = None) -> Plda:
    """Train the model on the i-vectors (n, D) of each speaker.

    Parameters
    ----------
    speakers : sequence of (n, D) float64
        At least two, one of them with several vectors.
    dim : int, optional
        Directions to keep, those in which speakers differ most (default all).
    """
    everything = np.concatenate(speakers)
    mean = everything.mean(axis=0)
    with one_blas_thread:
        values, directions = np.linalg.eigh(np.cov(everything.T, bias=True))
        is_alive = values > LEAST_EIGENVALUE * values[-1]
        whitening = (directions[:, is_alive] / np.sqrt(values[is_alive])).T
        vectors = [_of_expected_length((of_speaker - mean) @ whitening.T) for of_speaker in speakers]
        centre = np.concatenate(vectors).mean(axis=0)
        within, between = _covariances([of_speaker - centre for of_speaker in vectors])
        values, directions = np.linalg.eigh(within)
        unit = (directions / np.sqrt(values)).T
        values, directions = np.linalg.eigh(unit @ between @ unit.T)
        transform = (directions[:, ::-1].T @ unit)[:dim]
        return Plda(mean, whitening, transform, transform @ centre, np.maximum(values[::-1][:dim], 0.0))


def _of_expected_length(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.sqrt(vectors.shape[1]) / np.where(lengths > 0, lengths, 1.0)


def _covariances(speakers: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The covariances (E, E) of a speaker's utterances and of the speakers, by EM from unit matrices."""
    size = speakers[0].shape[1]
    counts = np.array([len(vectors) for vectors in speakers])
    means = np.array([vectors.mean(axis=0) for vectors in speakers])
    scatter = sum(
        ((vectors - mean).T @ (vectors - mean) for vectors, mean in zip(speakers, means)), np.zeros((size, size))
    )
    within = between = np.eye(size)
    for _ in range(PASSES):
        new_within = scatter.copy()
        new_between = np.zeros((size, size))
        precision, prior = np.linalg.inv(within), np.linalg.inv(between)
        for count in np.unique(counts):
            covariance = np.linalg.inv(prior + count * precision)
            of_count = means[counts == count]
            expected = of_count @ (count * precision @ covariance)
            residual = of_count - expected
            new_within += count * (residual.T @ residual + len(of_count) * covariance)
            new_between += expected.T @ expected + len(of_count) * covariance
        within = new_within / counts.sum()
        between = new_between / len(counts)
    return within, between
