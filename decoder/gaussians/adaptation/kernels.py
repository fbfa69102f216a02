"""Sums for linear transforms of features, compiled.

All arithmetic is float64 and no sum depends on the number of threads, so that results are the same bits everywhere.
"""

import math

import numpy as np

from decoder.gaussians.kernels import MixtureArrays
from readers.common.arrays import BoolArray, Float64Array, Int32Array, Int64Array
from readers.common.kernels import njit


@njit(cache=True, nogil=True)
def product(matrix: Float64Array, padded: Float64Array, num_frames: int) -> Float64Array:
    """The product of a matrix (d, n * (2 s + 1)) f8 with spliced frames, (d, num_frames) f8.

    padded (n, num_frames + 2 s) f8, C-ordered: the frames with s more at both ends.  Columns j, n + j and so on of the
    matrix multiply value j of the frames t - s, t - s + 1 and so on.
    """
    num_rows = matrix.shape[0]
    num_values = padded.shape[0]
    result = np.zeros((num_rows, num_frames))
    for i in range(num_rows):
        row = result[i]
        for column in range(matrix.shape[1]):
            weight = matrix[i, column]
            values = padded[column % num_values]
            shift = column // num_values
            for t in range(num_frames):
                row[t] += weight * values[t + shift]
    return result


@njit(cache=True, nogil=True)
def add_scatter(
    frames: Float64Array, state: Int32Array, count: Float64Array, total: Float64Array, square: Float64Array
) -> None:
    """Add frames (T, n) f8 to the counts (K,) and sums (K, n) of their states, and to the lower triangle of `square`.

    state (T,) i4: less than K; square (n, n) f8: sum of the products of all frames with themselves.
    """
    for t in range(frames.shape[0]):
        x = frames[t]
        count[state[t]] += 1
        total[state[t]] += x
        for i in range(x.shape[0]):
            value = x[i]
            row = square[i]
            for j in range(i + 1):
                row[j] += value * x[j]


@njit(cache=True, nogil=True)
def posteriors(
    frames: Float64Array, state: Int32Array, mixtures: MixtureArrays, least: float
) -> tuple[Float64Array, Int64Array, Int64Array, Float64Array]:
    """Posterior probabilities of the components, given the state of each frame.

    frames (T, d) f8; state (T,) i4; mixtures: MixtureArrays.  Returns the log-likelihoods (T,), and the visits of
    components: those of frame t are first[t] .. first[t + 1] - 1 of (component, share).  Shares below `least` are left
    out.
    """
    first, constant, mean, precision = mixtures
    num_frames, dim = frames.shape
    most = 1
    size = 0
    for t in range(num_frames):
        number = first[state[t] + 1] - first[state[t]]
        most = max(most, number)
        size += number
    log_likelihood = np.empty(num_frames)
    begin = np.zeros(num_frames + 1, np.int64)
    component = np.empty(size, np.int64)
    share = np.empty(size)
    part = np.empty(most)
    used = 0
    for t in range(num_frames):
        low, high = first[state[t]], first[state[t] + 1]
        best = -np.inf
        for c in range(low, high):
            value = constant[c]
            for i in range(dim):
                difference = frames[t, i] - mean[c, i]
                value -= difference * difference * precision[c, i]
            part[c - low] = value
            best = max(best, value)
        norm = 0.0
        for c in range(high - low):
            norm += math.exp(part[c] - best)
        log_likelihood[t] = best + math.log(norm)
        for c in range(low, high):
            value = math.exp(part[c - low] - log_likelihood[t])
            if value >= least:
                component[used] = c
                share[used] = value
                used += 1
        begin[t + 1] = used
    return log_likelihood, begin, component[:used], share[:used]


@njit(cache=True, nogil=True)
def add_gaussians(
    frames: Float64Array,
    begin: Int64Array,
    component: Int64Array,
    share: Float64Array,
    occupancy: Float64Array,
    total: Float64Array,
    square: Float64Array,
) -> None:
    """Add visits of components to their shares (C,), and to their sums of frames and of squares (C, d)."""
    for t in range(frames.shape[0]):
        for visit in range(begin[t], begin[t + 1]):
            c = component[visit]
            weight = share[visit]
            occupancy[c] += weight
            for i in range(frames.shape[1]):
                total[c, i] += weight * frames[t, i]
                square[c, i] += weight * frames[t, i] * frames[t, i]


@njit(cache=True, nogil=True)
def add_mllt(
    frames: Float64Array,
    begin: Int64Array,
    component: Int64Array,
    share: Float64Array,
    mixtures: MixtureArrays,
    into: Float64Array,
) -> None:
    """Add the statistics of MLLT to the lower triangles of `into` (d, d, d) f8.

    into[i] is the sum over frames and components of share / variance[i] (x - mean)(x - mean)'.
    """
    _, _, mean, precision = mixtures
    dim = frames.shape[1]
    frame = np.empty(component.shape[0], np.int64)
    for t in range(frames.shape[0]):
        frame[begin[t] : begin[t + 1]] = t
    order = np.argsort(component, kind="mergesort")
    scatter = np.zeros((dim, dim))
    x = np.empty(dim)
    for position in range(order.shape[0]):
        visit = order[position]
        c = component[visit]
        for i in range(dim):
            x[i] = frames[frame[visit], i] - mean[c, i]
        for i in range(dim):
            value = share[visit] * x[i]
            row = scatter[i]
            for j in range(i + 1):
                row[j] += value * x[j]
        if position + 1 == order.shape[0] or component[order[position + 1]] != c:
            for i in range(dim):
                weight = 2 * precision[c, i]
                for j in range(dim):
                    for k in range(j + 1):
                        into[i, j, k] += weight * scatter[j, k]
            scatter[:] = 0.0


@njit(cache=True, nogil=True)
def add_fmllr(
    frames: Float64Array,
    counted: BoolArray,
    begin: Int64Array,
    component: Int64Array,
    share: Float64Array,
    mixtures: MixtureArrays,
    linear: Float64Array,
    quadratic: Float64Array,
) -> float:
    """Add the statistics of fMLLR of the counted frames; returns the sum of their shares.

    frames (T, d) f8: before the transform; counted (T,) bool.  With the extended frame z = (x, 1), linear[i] (d + 1,)
    is the sum of share mean[i] / variance[i] z, and the lower triangle of quadratic[i] (d + 1, d + 1) that of
    share / variance[i] z z'.
    """
    _, _, mean, precision = mixtures
    dim = frames.shape[1]
    z = np.ones(dim + 1)
    weight = np.empty(dim)
    value = np.empty(dim)
    count = 0.0
    for t in range(frames.shape[0]):
        if not counted[t]:
            continue
        z[:dim] = frames[t]
        weight[:] = value[:] = 0.0
        for visit in range(begin[t], begin[t + 1]):
            c = component[visit]
            count += share[visit]
            for i in range(dim):
                part = 2 * share[visit] * precision[c, i]
                weight[i] += part
                value[i] += part * mean[c, i]
        for i in range(dim):
            for j in range(dim + 1):
                linear[i, j] += value[i] * z[j]
                part = weight[i] * z[j]
                row = quadratic[i, j]
                for k in range(j + 1):
                    row[k] += part * z[k]
    return count
