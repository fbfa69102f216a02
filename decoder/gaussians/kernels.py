"""Gaussian mixtures and hidden paths, compiled: scores of states, forward-backward, accumulation.

All arithmetic is float64 and no sum depends on the number of threads, so that results are the same bits everywhere.
"""

import math
from typing import NamedTuple

import numpy as np

from decoder.alignment.kernels import AlignmentArrays
from readers.common.arrays import Float64Array, Int32Array, Int64Array
from readers.common.kernels import njit

BLOCK = 128  # frames at a time: their features stay in the first-level cache
NEGLIGIBLE = 1e-14  # posterior probabilities below this are not followed


class MixtureArrays(NamedTuple):
    """The components of K states, C in all, of d values.

    first (K + 1,) i8: the components of state k are first[k] .. first[k + 1] - 1.  constant (C,) f8: ln of the weight
    and of the Gaussian's factor; mean (C, d) f8; precision (C, d) f8: the reciprocals of twice the variances.
    """

    first: np.ndarray
    constant: np.ndarray
    mean: np.ndarray
    precision: np.ndarray


@njit(cache=True, nogil=True)
def state_scores(features: Float64Array, states: Int32Array, mixtures: MixtureArrays) -> Float64Array:
    """Log-likelihoods of the frames, (S, T) f8, for some states.

    features (d, T) f8, C-ordered; states (S,) i4; mixtures: MixtureArrays.
    """
    first, constant, mean, precision = mixtures
    dim, num_frames = features.shape
    most = 1
    for state in states:
        most = max(most, first[state + 1] - first[state])
    scores = np.empty((states.shape[0], num_frames))
    parts = np.empty((most, BLOCK))
    best = np.empty(BLOCK)
    for begin in range(0, num_frames, BLOCK):
        size = min(BLOCK, num_frames - begin)
        for s in range(states.shape[0]):
            low, high = first[states[s]], first[states[s] + 1]
            best[:] = -np.inf
            for c in range(low, high):
                part = parts[c - low]
                part[:size] = constant[c]
                for i in range(dim):
                    m = mean[c, i]
                    p = precision[c, i]
                    row = features[i, begin : begin + size]
                    for t in range(size):
                        difference = row[t] - m
                        part[t] -= difference * difference * p
                for t in range(size):
                    best[t] = max(best[t], part[t])
            for t in range(size):
                total = 0.0
                for c in range(high - low):
                    total += math.exp(parts[c, t] - best[t])
                scores[s, begin + t] = best[t] + math.log(total)
    return scores


@njit(cache=True, nogil=True)
def accumulate(
    features: Float64Array,
    frame: Int64Array,
    state: Int32Array,
    share: Float64Array,
    mixtures: MixtureArrays,
    occupancy: Float64Array,
    total: Float64Array,
    square: Float64Array,
) -> None:
    """Add visits of states to the sums of their components.

    Visit i is frame[i] (i8) in state[i] (i4) with posterior probability share[i] (f8).  It is divided among the
    components by their posterior probabilities.  occupancy (C,), total and square (C, d) f8: sums of the shares, of the
    frames and of their squares.
    """
    first, constant, mean, precision = mixtures
    dim = features.shape[0]
    most = 1
    for visited in state:
        most = max(most, first[visited + 1] - first[visited])
    part = np.empty(most)
    x = np.empty(dim)
    for i in range(frame.shape[0]):
        x[:] = features[:, frame[i]]
        low, high = first[state[i]], first[state[i] + 1]
        best = -np.inf
        for c in range(low, high):
            value = constant[c]
            for j in range(dim):
                difference = x[j] - mean[c, j]
                value -= difference * difference * precision[c, j]
            part[c - low] = value
            best = max(best, value)
        norm = 0.0
        for c in range(high - low):
            part[c] = math.exp(part[c] - best)
            norm += part[c]
        for c in range(low, high):
            weight = share[i] * part[c - low] / norm
            if weight == 0.0:
                continue
            occupancy[c] += weight
            for j in range(dim):
                total[c, j] += weight * x[j]
                square[c, j] += weight * x[j] * x[j]


@njit(cache=True, nogil=True)
def forward_backward(
    scores: Float64Array, graph: AlignmentArrays, beam: float, max_cells: int
) -> tuple[float, Float64Array, Float64Array, Float64Array, Float64Array]:
    """Posterior probabilities of all paths of T frames through the positions of a transcript.

    scores (T, S) f8: log-likelihoods; graph: AlignmentArrays, with costs -ln; beam: a position is dropped from a frame
    when its forward probability is less than exp(-beam) of the greatest, inf for none.
    Returns (log-likelihood, occupancy (S, T) of the rows of the scores, expected numbers of self-loops (P,), of arcs
    (A,) and of endings (P,)).  The log-likelihood is -inf when there is no path, and NaN when more than max_cells
    forward probabilities would be needed.

    The backward pass divides the posterior probability of a position among its predecessors in proportion to what they
    contributed to its forward probability, so that it needs no logarithms and the occupancies of a frame sum to 1.
    """
    row, self_cost, first_arc, arc_source, arc_cost, entry_cost, final_cost, to_end = graph
    num_frames = scores.shape[0]
    num_positions = row.shape[0]
    occupancy = np.zeros((scores.shape[1], num_frames))
    stays = np.zeros(num_positions)
    arcs = np.zeros(arc_source.shape[0])
    ends = np.zeros(num_positions)
    reach_low = np.arange(num_positions)
    reach_high = np.arange(num_positions)
    for p in range(num_positions):
        for arc in range(first_arc[p], first_arc[p + 1]):
            source = arc_source[arc]
            reach_low[source] = min(reach_low[source], p)
            reach_high[source] = max(reach_high[source], p)
    old = np.empty(num_positions)
    new = np.empty(num_positions)
    arrived = np.empty(num_positions)
    old[:] = -np.inf
    low_at = np.zeros(num_frames, np.int64)
    begin_at = np.zeros(num_frames + 1, np.int64)
    capacity = min(max_cells, num_frames * min(num_positions, 64)) + 1
    forward = np.empty(capacity)  # with and without the score of the frame
    before = np.empty(capacity)
    low, high = 0, num_positions - 1
    for t in range(num_frames):
        if t:
            next_low = low
            next_high = high
            for p in range(low, high + 1):
                if old[p] > -np.inf:
                    next_low = min(next_low, reach_low[p])
                    next_high = max(next_high, reach_high[p])
            low, high = next_low, next_high
        used = begin_at[t]
        need = used + high + 1 - low
        if need > max_cells:
            return np.nan, occupancy, stays, arcs, ends
        if need > forward.shape[0]:
            size = min(max_cells, max(2 * forward.shape[0], need))
            grown = np.empty(size)
            grown_before = np.empty(size)
            grown[:used] = forward[:used]
            grown_before[:used] = before[:used]
            forward = grown
            before = grown_before
        new[:] = -np.inf
        greatest = -np.inf
        for p in range(low, high + 1):
            arrived[p] = -np.inf
            if to_end[p] >= num_frames - t:
                continue
            if t == 0:
                value = -entry_cost[p]
            else:
                best = old[p] - self_cost[p]
                for arc in range(first_arc[p], first_arc[p + 1]):
                    best = max(best, old[arc_source[arc]] - arc_cost[arc])
                if best == -np.inf:
                    continue
                total = math.exp(old[p] - self_cost[p] - best)
                for arc in range(first_arc[p], first_arc[p + 1]):
                    total += math.exp(old[arc_source[arc]] - arc_cost[arc] - best)
                value = best + math.log(total)
            arrived[p] = value
            new[p] = value + scores[t, row[p]]
            greatest = max(greatest, new[p])
        if greatest == -np.inf:
            return -np.inf, occupancy, stays, arcs, ends
        for p in range(low, high + 1):
            if new[p] < greatest - beam:
                new[p] = -np.inf
            forward[used + p - low] = new[p]
            before[used + p - low] = arrived[p]
        low_at[t] = low
        begin_at[t + 1] = need
        while low < high and new[low] == -np.inf:
            low += 1
        while high > low and new[high] == -np.inf:
            high -= 1
        old, new = new, old
    best = -np.inf
    for p in range(num_positions):
        best = max(best, old[p] - final_cost[p])
    if best == -np.inf:
        return -np.inf, occupancy, stays, arcs, ends
    total = 0.0
    for p in range(num_positions):
        ends[p] = math.exp(old[p] - final_cost[p] - best)
        total += ends[p]
    log_likelihood = best + math.log(total)
    ends /= total
    now = ends.copy()
    earlier = np.zeros(num_positions)
    for t in range(num_frames - 1, -1, -1):
        low = low_at[t]
        begin = begin_at[t]
        high = low + begin_at[t + 1] - begin - 1
        earlier[:] = 0.0
        for p in range(low, high + 1):
            if now[p] < NEGLIGIBLE:
                continue
            occupancy[row[p], t] += now[p]
            if t == 0:
                continue
            arrived_here = before[begin + p - low]
            low_before = low_at[t - 1]
            begin_before = begin_at[t - 1]
            width = begin - begin_before
            if 0 <= p - low_before < width:
                part = now[p] * math.exp(forward[begin_before + p - low_before] - self_cost[p] - arrived_here)
                stays[p] += part
                earlier[p] += part
            for arc in range(first_arc[p], first_arc[p + 1]):
                source = arc_source[arc]
                if 0 <= source - low_before < width:
                    value = forward[begin_before + source - low_before]
                    part = now[p] * math.exp(value - arc_cost[arc] - arrived_here)
                    arcs[arc] += part
                    earlier[source] += part
        now, earlier = earlier, now
    return log_likelihood, occupancy, stays, arcs, ends
