"""Compiled loops over the denominator graph; see denominator.py for what they compute.

Several sequences, the lanes of a block, are computed at once: matrices such as alpha (states, LANES) hold a vector for
each state, so that an arc costs one instruction for all of them. Arcs into a state with the same output form a run:
their sum is multiplied by the output's probability once, and the posterior of the output needs no further arc. States
and runs are sorted by their number of arcs, so that the processor predicts the ends of the loops over arcs.
"""

import numpy as np

from acoustic.kernels.compiled.elementwise_loops import loop
from acoustic.kernels.lattice_free.exponential import exponential
from acoustic.runtime.lanes import LANES, double, load, spread, store
from readers.common.arrays import Array

TOP = 30.0  # the largest output of a frame is shifted to it: probabilities from e^-50 to e^30 then are normal numbers


@loop
def emissions(
    x: Array, place: tuple[Array, Array, int], t: int, rows: Array, probabilities: Array, shifts: Array
) -> None:
    """probabilities (outputs, LANES) = exp(x - shift) of step t of each lane; 1 where a sequence has ended."""
    firsts, counts, stride = place
    for lane in range(LANES):
        row = rows[lane]
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
    for o in range(probabilities.shape[0]):
        for lane in range(LANES):
            probabilities[o, lane] = rows[lane, o]


@loop
def begin(alpha: Array, initial: Array, leak: Array) -> None:
    """alpha (states, LANES) before the first frame."""
    for j in range(alpha.shape[0]):
        store(alpha, j, spread(initial[j] + leak[j]))


@loop
def forward(
    x: Array,
    place: tuple[Array, Array, int],
    graph: tuple[Array, ...],
    leak: Array,
    alphas: tuple[Array, Array],
    rows: Array,
    kept: tuple[Array, ...],
    first_step: int,
    log_probabilities: Array,
) -> None:
    """Follow alpha over some steps; fill kept, and add to the logarithms (LANES,).

    kept: parts (steps, runs, LANES), the sums over the arcs of each run, of the probability of the path so far;
    probabilities (steps, outputs, LANES); scales (steps, LANES), 1 / the sum of alpha.  place: first column and number
    of frames of each lane, columns from a frame to the next; leak (states,): initial probabilities times the
    coefficient; alphas: alpha and a working matrix (states, LANES); rows: another one (LANES, outputs).
    """
    run_state, run_output, run_arcs, arc_from, arc_probability = graph
    counts = place[1]
    alpha, after = alphas
    parts, probabilities, scales = kept
    shifts = np.empty(LANES)
    sums = np.empty((1, LANES))
    zero = x.dtype.type(0)
    for t in range(parts.shape[0]):
        probability = probabilities[t]
        part = parts[t]
        emissions(x, place, first_step + t, rows, probability, shifts)
        for j in range(after.shape[0]):
            store(after, j, spread(zero))
        for r in range(part.shape[0]):
            total = spread(zero)
            for a in range(run_arcs[r], run_arcs[r + 1]):
                total = total + spread(arc_probability[a]) * load(alpha, arc_from[a])
            store(part, r, total)
            store(after, run_state[r], load(after, run_state[r]) + total * load(probability, run_output[r]))
        # Scaled to the sum 1 before the leak is added, alpha stays in the range of single precision however long the
        # sequence is; the logarithms of the sums add up to that of the whole, in double precision.
        all_states = spread(0.0)
        for j in range(after.shape[0]):
            all_states = all_states + double(load(after, j))
        store(sums, 0, all_states)
        for k in range(LANES):
            scales[t, k] = 1 / sums[0, k]
            if first_step + t < counts[k]:
                log_probabilities[k] += np.log(sums[0, k]) + shifts[k]
        scale = load(scales, t)
        for j in range(after.shape[0]):
            store(alpha, j, load(after, j) * scale + spread(leak[j]))


@loop
def backward(
    place: tuple[Array, Array, int],
    graph: tuple[Array, ...],
    leak: Array,
    betas: tuple[Array, Array],
    kept: tuple[Array, ...],
    first_step: int,
    posteriors: Array,
    gradient: Array,
) -> None:
    """gradient (N, outputs) = the posterior probability of each output, in columns of the sequences at some steps.

    betas: beta after and before these steps (states, LANES), and a working matrix (runs, LANES); posteriors: another
    one (outputs, LANES).
    """
    beta, run_beta = betas
    run_state, run_output, state_arcs, arc_run, arc_probability = graph
    firsts, counts, stride = place
    parts, probabilities, scales = kept
    zero = beta.dtype.type(0)
    sums = np.empty((1, LANES))
    leaks = np.empty((1, LANES), beta.dtype)
    for t in range(parts.shape[0] - 1, -1, -1):
        # A lane begins where its own sequence ends: longer ones are then under way.
        for k in range(LANES):
            if counts[k] == first_step + t + 1:  # all states are final
                beta[:, k] = 1
        for o in range(posteriors.shape[0]):
            store(posteriors, o, spread(zero))
        probability = probabilities[t]
        part = parts[t]
        scale = load(scales, t)
        for r in range(part.shape[0]):
            o = run_output[r]
            beta_of_run = load(beta, run_state[r]) * load(probability, o) * scale
            store(run_beta, r, beta_of_run)
            store(posteriors, o, load(posteriors, o) + beta_of_run * load(part, r))
        leaked = spread(0.0)
        for j in range(beta.shape[0]):
            total = spread(zero)
            for a in range(state_arcs[j], state_arcs[j + 1]):
                total = total + spread(arc_probability[a]) * load(run_beta, arc_run[a])
            store(beta, j, total)
            leaked = leaked + double(total * spread(leak[j]))
        store(sums, 0, leaked)
        leaks[0] = sums[0]
        for j in range(beta.shape[0]):
            store(beta, j, load(beta, j) + load(leaks, 0))
        for k in range(LANES):
            step = first_step + t
            if step < counts[k]:
                column = gradient[firsts[k] + step * stride]
                for o in range(column.shape[0]):
                    column[o] = posteriors[o, k]
