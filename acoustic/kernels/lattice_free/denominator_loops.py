"""Compiled loops over the denominator graph; see denominator.py for what they compute.

Several sequences, the lanes of a block, are computed at once: matrices such as alpha (states, LANES) hold a row of
lanes for each state, so that an arc costs one vector instruction for many sequences. Arcs into a state with the same
output form a run: their sum is multiplied by the output's probability once, and its derivative needs no arc.
"""

import numpy as np
from numba import float32, types
from numba.extending import overload

from acoustic.kernels.compiled.elementwise_loops import exp32, loop

LANES = 16  # sequences of a block
TOP = 30.0  # the largest output of a frame is shifted to it: probabilities from e^-50 to e^30 then are normal numbers
LOWEST = {np.float32: -50.0, np.float64: -600.0}


def exponential(x):
    """exp(x), at least exp of the LOWEST of the type."""
    return np.exp(max(x, x.dtype.type(LOWEST[x.dtype.type])))


@overload(exponential, inline="always")
def _exponential(x):
    if x == types.float32:
        return lambda x: exp32(x if not x < float32(-50.0) else float32(-50.0))
    return lambda x: np.exp(x if not x < -600.0 else -600.0)


@loop
def emissions(x, firsts, counts, stride, t, row, probabilities, shifts):
    """probabilities (outputs, LANES) = exp(x - shift) of step t of each lane; 1 where a sequence has ended."""
    for lane in range(LANES):
        if t < counts[lane]:
            scores = x[firsts[lane] + t * stride]
            top = scores[0]
            for o in range(scores.shape[0]):
                top = max(top, scores[o])
            shift = top - x.dtype.type(TOP)
            for o in range(scores.shape[0]):
                row[o] = exponential(scores[o] - shift)
            shifts[lane] = shift
        else:
            row[:] = 1
            shifts[lane] = 0
        for o in range(row.shape[0]):
            probabilities[o, lane] = row[o]


@loop
def forward(x, place, graph, leaky, alphas, kept, log_probabilities):
    """Fill kept: parts (steps, runs, LANES), probabilities (steps, outputs, LANES) and scales (steps, LANES).

    parts: the sums over the arcs of each run, of the probability of the path so far; scales: 1 / the sum of alpha.
    place: first column and number of frames of each lane, columns from a frame to the next; alphas: two working
    matrices (states, LANES).
    """
    (firsts, counts, stride), (alpha, after), (parts, probabilities, scales) = place, alphas, kept
    state_runs, run_output, run_arcs, arc_from, arc_probability, initial = graph
    row, shifts, sums = np.empty(x.shape[1], x.dtype), np.empty(LANES), np.empty(LANES)
    log_probabilities[:] = np.log(1.0 + leaky)
    for j in range(alpha.shape[0]):
        for k in range(LANES):
            alpha[j, k] = initial[j] * (1 + leaky)
    for t in range(parts.shape[0]):
        probability = probabilities[t]
        emissions(x, firsts, counts, stride, t, row, probability, shifts)
        sums[:] = 0
        for j in range(alpha.shape[0]):
            total = after[j]
            total[:] = 0
            for r in range(state_runs[j], state_runs[j + 1]):
                part, output = parts[t, r], probability[run_output[r]]
                part[:] = 0
                for a in range(run_arcs[r], run_arcs[r + 1]):
                    source, weight = alpha[arc_from[a]], arc_probability[a]
                    for k in range(LANES):
                        part[k] += weight * source[k]
                for k in range(LANES):
                    total[k] += part[k] * output[k]
            for k in range(LANES):
                sums[k] += total[k]
        for k in range(LANES):
            scales[t, k] = 1 / sums[k]
            if t < counts[k]:
                log_probabilities[k] += np.log(sums[k]) + shifts[k]
        for j in range(alpha.shape[0]):
            for k in range(LANES):
                alpha[j, k] = after[j, k] * scales[t, k] + initial[j] * leaky


@loop
def backward(place, graph, leaky, beta, run_beta, kept, posteriors, gradient):
    """gradient (N, outputs) = the posterior probability of each output, in the columns of the sequences."""
    (firsts, counts, stride), (parts, probabilities, scales) = place, kept
    run_state, run_output, state_arcs, arc_run, arc_probability, initial = graph
    leak = np.empty(LANES)
    beta[:] = 1
    for t in range(parts.shape[0] - 1, -1, -1):
        for k in range(LANES):
            if counts[k] == t + 1:  # all states are final
                for j in range(beta.shape[0]):
                    beta[j, k] = 1
        posteriors[:] = 0
        scale = scales[t]
        for r in range(run_beta.shape[0]):
            mine, state, output = run_beta[r], beta[run_state[r]], probabilities[t, run_output[r]]
            part, posterior = parts[t, r], posteriors[run_output[r]]
            for k in range(LANES):
                mine[k] = state[k] * output[k] * scale[k]
            for k in range(LANES):
                posterior[k] += mine[k] * part[k]
        leak[:] = 0
        for j in range(beta.shape[0]):
            total = beta[j]
            total[:] = 0
            for a in range(state_arcs[j], state_arcs[j + 1]):
                source, weight = run_beta[arc_run[a]], arc_probability[a]
                for k in range(LANES):
                    total[k] += weight * source[k]
            for k in range(LANES):
                leak[k] += initial[j] * total[k]
        for j in range(beta.shape[0]):
            for k in range(LANES):
                beta[j, k] += leaky * leak[k]
        for k in range(LANES):
            if t < counts[k]:
                column = gradient[firsts[k] + t * stride]
                for o in range(column.shape[0]):
                    column[o] = posteriors[o, k]
