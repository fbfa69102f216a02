"""Compiled loops over the paths through sequences; see sequence.py for what they compute.

h (N, labels): the transposed view; a (labels, labels): from row to column. Sums over paths are sums of probabilities in
double precision, scaled at every step, and not of logarithms: a step then consists of products only. Paths whose score
is 700 below that of others are lost.
"""

import numpy as np

from acoustic.kernels.compiled.elementwise_loops import loop
from readers.common.arrays import Array


@loop
def longest_of(counts: Array) -> int:
    """The largest, 0 of none."""
    longest = 0
    for count in counts:
        longest = max(longest, count)
    return longest


@loop
def exponentials(a: Array) -> tuple[Array, float]:
    """(exp(a - top), top), float64."""
    top = np.float64(a[0, 0])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            top = max(top, np.float64(a[i, j]))
    weights = np.empty(a.shape)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            weights[i, j] = np.exp(np.float64(a[i, j]) - top)
    return weights, top


@loop
def emission(scores: Array, out: Array) -> float:
    """out = exp(scores - their largest); returns the largest."""
    top = np.float64(scores[0])
    for i in range(scores.shape[0]):
        top = max(top, np.float64(scores[i]))
    for i in range(scores.shape[0]):
        out[i] = np.exp(np.float64(scores[i]) - top)
    return top


@loop
def times_weights(vector: Array, weights: Array, out: Array) -> None:
    """out = vector weights."""
    out[:] = 0.0
    for i in range(weights.shape[0]):
        row = weights[i]
        factor = vector[i]
        for j in range(row.shape[0]):
            out[j] += factor * row[j]


@loop
def forward(
    h: Array,
    weights: Array,
    top: float,
    first: int,
    stride: int,
    count: int,
    alphas: Array,
    emissions: Array,
    sums: Array,
) -> float:
    """alphas (count, labels): probabilities of the labels given the steps so far; sums: their scales.

    Returns the logarithm of the sum over all paths.
    """
    total = 0.0
    for t in range(count):
        total += emission(h[first + t * stride], emissions[t])
        alpha = alphas[t]
        if t == 0:
            for j in range(alpha.shape[0]):
                alpha[j] = emissions[t, j]
        else:
            times_weights(alphas[t - 1], weights, alpha)
            total += top
            for j in range(alpha.shape[0]):
                alpha[j] *= emissions[t, j]
        s = 0.0
        for j in range(alpha.shape[0]):
            s += alpha[j]
        for j in range(alpha.shape[0]):
            alpha[j] /= s
        sums[t] = s
        total += np.log(s)
    return total


@loop
def right_score(labels: Array, h: Array, a: Array, first: int, stride: int, count: int) -> float:
    total = 0.0
    for t in range(count):
        column = first + t * stride
        total += h[column, labels[column]]
        if t > 0:
            total += a[labels[column - stride], labels[column]]
    return total


@loop
def loss(firsts: Array, counts: Array, stride: int, labels: Array, h: Array, a: Array) -> float:
    weights, top = exponentials(a)
    longest = longest_of(counts)
    alphas = np.empty((longest, a.shape[0]))
    emissions = np.empty((longest, a.shape[0]))
    sums = np.empty(longest)
    total = 0.0
    for k in range(firsts.shape[0]):
        total += forward(h, weights, top, firsts[k], stride, counts[k], alphas, emissions, sums)
        total -= right_score(labels, h, a, firsts[k], stride, counts[k])
    return total


@loop
def gradient(
    firsts: Array, counts: Array, stride: int, labels: Array, h: Array, a: Array, grad_h: Array, grad_a: Array
) -> None:
    """grad_h (N, labels) holds zeros where no sequence is; grad_a (labels, labels) float64."""
    weights, top = exponentials(a)
    longest = longest_of(counts)
    size = a.shape[0]
    alphas = np.empty((longest, size))
    emissions = np.empty((longest, size))
    sums = np.empty(longest)
    beta = np.empty(size)
    after = np.empty(size)
    pairs = np.zeros((size, size))
    grad_h[:] = 0
    for k in range(firsts.shape[0]):
        forward(h, weights, top, firsts[k], stride, counts[k], alphas, emissions, sums)
        # Divided by the sums that scaled alpha, beta times alpha is the posterior itself, and no logarithm is needed.
        beta[:] = 1.0
        for t in range(counts[k] - 1, -1, -1):
            column = firsts[k] + t * stride
            for j in range(size):
                grad_h[column, j] = alphas[t, j] * beta[j]
            if t == 0:
                continue
            for j in range(size):
                after[j] = emissions[t, j] * beta[j] / sums[t]
            for i in range(size):
                row = weights[i]
                row_pairs = pairs[i]
                before = alphas[t - 1, i]
                total = 0.0
                for j in range(size):
                    row_pairs[j] += before * after[j]
                for j in range(size):
                    total += row[j] * after[j]
                beta[i] = total
    # The factor exp(a) of a pair is the same in all steps, so it is multiplied once.
    for i in range(size):
        for j in range(size):
            grad_a[i, j] = pairs[i, j] * weights[i, j]
    for k in range(firsts.shape[0]):
        for t in range(counts[k]):
            column = firsts[k] + t * stride
            grad_h[column, labels[column]] -= 1
            if t > 0:
                grad_a[labels[column - stride], labels[column]] -= 1


@loop
def viterbi(firsts: Array, counts: Array, stride: int, h: Array, a: Array, out: Array) -> None:
    """out (N, labels)."""
    size = a.shape[0]
    longest = longest_of(counts)
    best = np.empty(size)
    new = np.empty(size)
    source = np.empty((longest, size), np.int64)
    out[:] = 0
    for k in range(firsts.shape[0]):
        for j in range(size):
            best[j] = h[firsts[k], j]
        for t in range(1, counts[k]):
            new[:] = -np.inf
            # Of equal scores the first label stays, as with argmax.
            came = source[t]
            came[:] = 0
            for i in range(size):
                row = a[i]
                previous = best[i]
                for j in range(size):
                    score = previous + row[j]
                    if score > new[j]:
                        new[j] = score
                        came[j] = i
            for j in range(size):
                best[j] = new[j] + h[firsts[k] + t * stride, j]
        label = 0
        for j in range(size):
            label = j if best[j] > best[label] else label
        for t in range(counts[k] - 1, -1, -1):
            out[firsts[k] + t * stride, label] = 1
            if t > 0:
                label = source[t, label]


@loop
def splice(out: Array, sources: Array, x: Array, held: Array) -> None:
    """out (n, K rows) = the frames `sources` (n, K) of x (N, rows), those below 0 from the end of held (H, rows)."""
    rows = x.shape[1]
    num_held = held.shape[0]
    for n in range(sources.shape[0]):
        for k in range(sources.shape[1]):
            source = sources[n, k]
            first = k * rows
            if source >= 0:
                for i in range(rows):
                    out[n, first + i] = x[source, i]
            else:
                for i in range(rows):
                    out[n, first + i] = held[num_held + source, i]


@loop
def splice_gradient(grad: Array, sources: Array, out: Array, begin: int, end: int) -> None:
    """Rows begin..end-1 of out (N, rows) = the sums of the parts of grad (N, K rows) that `splice` copied from them."""
    rows = out.shape[1]
    for n in range(out.shape[0]):
        for i in range(begin, end):
            out[n, i] = 0
    for n in range(sources.shape[0]):
        for k in range(sources.shape[1]):
            source = sources[n, k]
            first = k * rows
            if source >= 0:
                for i in range(begin, end):
                    out[source, i] += grad[n, first + i]


@loop
def count_errors(reference: Array, hypothesis: Array, substitution: float, deletion: float, insertion: float) -> int:
    """The number of edits on the cheapest way from one sequence (n,) int64 to another (m,), given their costs.

    Of equally cheap ways, a substitution goes before an insertion, and that before a deletion.
    """
    length = hypothesis.shape[0]
    counts = np.arange(length + 1)
    costs = counts * insertion
    for i in range(reference.shape[0]):
        diagonal_cost = costs[0]
        diagonal_count = counts[0]
        costs[0] += deletion
        counts[0] += 1
        for j in range(1, length + 1):
            above_cost = costs[j]
            above_count = counts[j]
            if reference[i] == hypothesis[j - 1]:
                costs[j] = diagonal_cost
                counts[j] = diagonal_count
            else:
                substituted = diagonal_cost + substitution
                deleted = above_cost + deletion
                inserted = costs[j - 1] + insertion
                costs[j] = min(substituted, deleted, inserted)
                if substituted <= deleted and substituted <= inserted:
                    counts[j] = diagonal_count + 1
                elif deleted < inserted:
                    counts[j] = above_count + 1
                else:
                    counts[j] = counts[j - 1] + 1
            diagonal_cost = above_cost
            diagonal_count = above_count
    return int(counts[length])
