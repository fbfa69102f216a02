"""Gaussian selection and sums over selected Gaussians, compiled.

All arithmetic is float64, and no sum depends on the number of threads.
"""

import math

import numpy as np

from readers.common.arrays import Float64Array, Int32Array
from readers.common.kernels import njit


@njit(cache=True, nogil=True)
def select_best(scores: Float64Array, count: int) -> tuple[Int32Array, Float64Array]:
    """The `count` greatest scores of each frame, in descending order; the first of equal ones.

    scores (T, C) f8.  Returns (index (T, count) i4, best (T, count) f8).
    """
    num_frames, num_gaussians = scores.shape
    index = np.zeros((num_frames, count), np.int32)
    best = np.full((num_frames, count), -np.inf)
    for t in range(num_frames):
        filled = 0
        for c in range(num_gaussians):
            score = scores[t, c]
            if filled == count and not score > best[t, count - 1]:
                continue
            rank = min(filled, count - 1)
            while rank > 0 and score > best[t, rank - 1]:
                best[t, rank] = best[t, rank - 1]
                index[t, rank] = index[t, rank - 1]
                rank -= 1
            best[t, rank] = score
            index[t, rank] = c
            filled = min(filled + 1, count)
    return index, best


@njit(cache=True, nogil=True)
def full_scores(
    frames: Float64Array, index: Int32Array, constant: Float64Array, means: Float64Array, factors: Float64Array
) -> Float64Array:
    """Log-likelihoods (T, n) f8 of selected Gaussians with full covariances, with their weights.

    frames (T, d) f8; index (T, n) i4; constant (C,) f8: logarithm of the weight and of the Gaussian's factor;
    means (C, d) f8; factors (C, d, d) f8: lower triangular, L of the inverse covariance L' L.
    """
    num_frames, count = index.shape
    dim = frames.shape[1]
    scores = np.empty((num_frames, count))
    centred = np.empty(dim)
    for t in range(num_frames):
        for k in range(count):
            c = index[t, k]
            for i in range(dim):
                centred[i] = frames[t, i] - means[c, i]
            distance = 0.0
            for i in range(dim):
                part = 0.0
                for j in range(i + 1):
                    part += factors[c, i, j] * centred[j]
                distance += part * part
            scores[t, k] = constant[c] - 0.5 * distance
    return scores


@njit(cache=True, nogil=True)
def posteriors(scores: Float64Array, least: float) -> tuple[Float64Array, float]:
    """Posterior probabilities of the Gaussians of each frame, and the sum of the frames' log-likelihoods.

    scores (T, n) f8.  Probabilities below `least` are set to 0, except the greatest, and the others sum to 1.
    """
    num_frames, count = scores.shape
    weights = np.empty((num_frames, count))
    total = 0.0
    for t in range(num_frames):
        best = 0
        for k in range(1, count):
            if scores[t, k] > scores[t, best]:
                best = k
        norm = 0.0
        for k in range(count):
            weights[t, k] = math.exp(scores[t, k] - scores[t, best])
            norm += weights[t, k]
        total += scores[t, best] + math.log(norm)
        remaining = 0.0
        for k in range(count):
            if k != best and weights[t, k] < least * norm:
                weights[t, k] = 0.0
            remaining += weights[t, k]
        for k in range(count):
            weights[t, k] /= remaining
    return weights, total


@njit(cache=True, nogil=True)
def add_first_order(
    frames: Float64Array, index: Int32Array, weights: Float64Array, occupancy: Float64Array, total: Float64Array
) -> None:
    """Add posterior-weighted frames to sums of Gaussians: occupancy (C,) f8, total (C, d) f8.

    frames (T, d) f8; index (T, n) i4; weights (T, n) f8.
    """
    for t in range(index.shape[0]):
        for k in range(index.shape[1]):
            weight = weights[t, k]
            if weight == 0.0:
                continue
            c = index[t, k]
            occupancy[c] += weight
            for i in range(frames.shape[1]):
                total[c, i] += weight * frames[t, i]


@njit(cache=True, nogil=True)
def add_second_order(frames: Float64Array, index: Int32Array, weights: Float64Array, square: Float64Array) -> None:
    """Add posterior-weighted products of the values of frames to the lower triangles of square (C, d, d) f8."""
    for t in range(index.shape[0]):
        for k in range(index.shape[1]):
            weight = weights[t, k]
            if weight == 0.0:
                continue
            c = index[t, k]
            for i in range(frames.shape[1]):
                scaled = weight * frames[t, i]
                for j in range(i + 1):
                    square[c, i, j] += scaled * frames[t, j]


@njit(cache=True, nogil=True)
def add_terms(
    frames: Float64Array,
    index: Int32Array,
    weights: Float64Array,
    projections: Float64Array,
    quadratics: Float64Array,
    linear: Float64Array,
    quadratic: Float64Array,
) -> float:
    """Add what frames contribute to the linear and quadratic term of an i-vector's log-likelihood.

    frames (T, d) f8; projections (C, d, D) f8; quadratics (C, Q) f8; linear (D,) f8; quadratic (Q,) f8: the lower
    triangle.  Returns the sum of the weights.
    """
    count = 0.0
    dim, size = projections.shape[1:]
    for t in range(index.shape[0]):
        for k in range(index.shape[1]):
            weight = weights[t, k]
            if weight == 0.0:
                continue
            c = index[t, k]
            count += weight
            for i in range(dim):
                scaled = weight * frames[t, i]
                for j in range(size):
                    linear[j] += scaled * projections[c, i, j]
            for q in range(quadratic.shape[0]):
                quadratic[q] += weight * quadratics[c, q]
    return count
