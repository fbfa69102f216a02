"""fMLLR: an affine transform of the frames of one speaker, with which Gaussian mixtures fit them best.

References
----------
Gales, Maximum likelihood linear transformations for HMM-based speech recognition, Computer Speech and Language, 1998.
Lei, Hamaker, He, Robust feature space adaptation for telephony speech recognition, Interspeech 2006 (prior).
"""

from dataclasses import dataclass

import numpy as np

ITERATIONS = 20
CONVERGED = 1e-7  # gain per frame of an iteration, at which the next ones are left out


@dataclass
class FmllrSums:
    """Sums over frames of a speaker, with z = (x, 1).

    Attributes
    ----------
    count : float
        Number of frames.
    linear : (d, d + 1) float64
        Sums of mean[i] / variance[i] z.
    quadratic : (d, d + 1, d + 1) float64
        Sums of z z' / variance[i]; only the lower triangles.
    """

    count: float
    linear: np.ndarray
    quadratic: np.ndarray

    @classmethod
    def empty(cls, dim: int) -> "FmllrSums":
        """Sums over nothing."""
        return cls(0.0, np.zeros((dim, dim + 1)), np.zeros((dim, dim + 1, dim + 1)))

    def add(self, other: "FmllrSums") -> None:
        """Add the sums of other frames."""
        self.count += other.count
        self.linear += other.linear
        self.quadratic += other.quadratic

    def mean_quadratic(self) -> np.ndarray:
        """(d, d + 1, d + 1): symmetric means of z z' / variance[i]."""
        lower = np.tril(self.quadratic)
        return (lower + np.tril(lower, -1).transpose(0, 2, 1)) / max(self.count, 1.0)

    def with_prior(self, prior: np.ndarray, frames: float) -> "FmllrSums":
        """The sums with `frames` more, for which the best transform changes nothing.

        Parameters
        ----------
        prior : (d, d + 1, d + 1) float64
            `mean_quadratic` of many speakers.
        frames : float
            Weight of the prior.

        Returns
        -------
        FmllrSums
        """
        dim = len(self.linear)
        unit = np.eye(dim, dim + 1)
        linear = prior[np.arange(dim), np.arange(dim)] - unit  # makes the gradient at the unit transform vanish
        return FmllrSums(
            self.count + frames, self.linear + frames * linear, self.quadratic + frames * np.tril(prior)
        )  # fmt: skip


def objective(transform: np.ndarray, sums: FmllrSums) -> float:
    """The auxiliary function of a transform per frame: `ln |det A| + sum_i (k_i w_i' - w_i G_i w_i' / 2) / n`.

    Parameters
    ----------
    transform : (d, d + 1) float64
        W = (A, b), with rows w_i.
    sums : FmllrSums
        k_i and G_i.

    Returns
    -------
    float
        Gains of it are gains of a lower bound of the log-likelihood.
    """
    quadratic = np.einsum("ij,ijk,ik->", transform, sums.mean_quadratic(), transform)
    linear = (sums.linear * transform).sum() / sums.count
    return float(np.linalg.slogdet(transform[:, :-1])[1] + linear - quadratic / 2)


def estimate_fmllr(
    sums: FmllrSums, start: np.ndarray | None = None, iterations: int = ITERATIONS
) -> tuple[np.ndarray, float]:
    """The transform of greatest auxiliary function, row by row.

    Parameters
    ----------
    sums : FmllrSums
    start : (d, d + 1) float64, optional
        The transform to begin with; by default the one that changes nothing.
    iterations : int
        How often every row is estimated, at most.

    Returns
    -------
    transform : (d, d + 1) float64
    gain : float
        By how much the auxiliary function per frame has grown.

    Raises
    ------
    numpy.linalg.LinAlgError
        For sums of fewer frames than values and without a prior.
    """
    dim = len(sums.linear)
    transform = np.eye(dim, dim + 1) if start is None else start.copy()
    inverses = np.linalg.inv(sums.mean_quadratic())
    linear = sums.linear / sums.count
    values = [objective(transform, sums)]
    for _ in range(iterations):
        for i in range(dim):
            cofactor = np.append(np.linalg.inv(transform[:, :-1])[:, i], 0.0)
            a = cofactor @ inverses[i] @ cofactor
            b = cofactor @ inverses[i] @ linear[i]
            # Of the two roots of a x^2 + b x = 1, the one of the greater ln |a x + b| - a x^2 / 2.
            roots = (-b + np.array([1.0, -1.0]) * np.sqrt(b * b + 4 * a)) / (2 * a)
            best = roots[np.argmax(np.log(np.abs(a * roots + b)) - a * roots**2 / 2)]
            transform[i] = inverses[i] @ (best * cofactor + linear[i])
        values.append(objective(transform, sums))
        if values[-1] - values[-2] < CONVERGED:
            break
    return transform, values[-1] - values[0]
