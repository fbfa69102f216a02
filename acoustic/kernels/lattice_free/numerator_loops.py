"""Compiled loops over numerator graphs, in logarithms and double precision, and over
regularised outputs; see objective.py."""

import numpy as np

from acoustic.kernels.compiled.elementwise_loops import loop
from acoustic.kernels.lattice_free.exponential import exponential
from readers.common.arrays import Array

FAULT, NO_PATH, FINE = -1, 0, 1


@loop
def has_fault(
    from_state: Array, to_state: Array, output: Array, frame_arcs: Array, num_states: int, num_outputs: int
) -> bool:
    """Whether an index is out of range."""
    for a in range(from_state.shape[0]):
        if not (0 <= from_state[a] < num_states and 0 <= to_state[a] < num_states and 0 <= output[a] < num_outputs):
            return True
    for t in range(frame_arcs.shape[0]):
        if not (frame_arcs[t - 1] if t else 0) <= frame_arcs[t] <= from_state.shape[0]:
            return True
    return frame_arcs.shape[0] > 0 and (frame_arcs[0] != 0 or frame_arcs[-1] != from_state.shape[0])


@loop
def gather(active: Array, count: int, state: int, tops: Array, sums: Array, target: Array) -> int:
    """Move the sum of a state to target and list the state, unless that is done; returns the number of listed ones."""
    if tops[state] > -np.inf:
        target[state] = tops[state] + np.log(sums[state])
        tops[state] = -np.inf
        active[count] = state
        return count + 1
    return count


@loop
def clear(active: Array, count: int, values: Array) -> None:
    for n in range(count):
        values[active[n]] = -np.inf


@loop
def forward_backward(
    x: Array,
    place: tuple[int, int, int],
    graph: tuple[Array, ...],
    frame_arcs: Array,
    factor: float,
    gradient: Array,
    gradient_place: tuple[int, int, int],
) -> tuple[int, float]:
    """(status, logarithm of the sum over all paths); gradient (N, outputs), if any, += factor times the posteriors.

    place: first column, columns from a frame to the next, number of frames; frame_arcs (count + 1,) or (0,): see
    NumeratorGraph.
    """
    first, stride, count = place
    gradient_first, gradient_stride, _ = gradient_place
    from_state, to_state, output, log_probability, initial, final = graph
    num_states = initial.shape[0]
    num_arcs = from_state.shape[0]
    if has_fault(from_state, to_state, output, frame_arcs, num_states, x.shape[1]):
        return FAULT, 0.0
    each = frame_arcs.shape[0] == 0
    scores = np.empty(num_arcs * count if each else num_arcs)  # of the paths that end with an arc
    # A frame reaches few of the states: only those, the active ones, are listed and cleared. Between frames tops is
    # -inf and sums is 0 everywhere.
    active = np.empty(num_states, np.int64)
    values = np.full(num_states, -np.inf)
    tops = np.full(num_states, -np.inf)
    sums = np.zeros(num_states)
    num_active = 0
    for j in range(num_states):
        if initial[j] > -np.inf:
            values[j] = initial[j]
            active[num_active] = j
            num_active += 1
    for t in range(count):
        begin, end = (0, num_arcs) if each else (frame_arcs[t], frame_arcs[t + 1])
        column = x[first + t * stride]
        frame_scores = scores[t * num_arcs :] if each else scores[begin:]
        # The largest score into each state comes first, so that no exponential of a difference overflows.
        for a in range(begin, end):
            score = values[from_state[a]]
            if score > -np.inf:
                score += log_probability[a] + column[output[a]]
                tops[to_state[a]] = max(tops[to_state[a]], score)
            frame_scores[a - begin] = score
        for a in range(begin, end):
            score = frame_scores[a - begin]
            if score > -np.inf:
                sums[to_state[a]] += np.exp(score - tops[to_state[a]])
        clear(active, num_active, values)
        num_active = 0
        for a in range(begin, end):
            state = to_state[a]
            num_active = gather(active, num_active, state, tops, sums, values)
            sums[state] = 0.0
    top = -np.inf
    total = 0.0
    for n in range(num_active):
        top = max(top, values[active[n]] + final[active[n]])
    if not top > -np.inf:
        return NO_PATH, top
    for n in range(num_active):
        total += np.exp(values[active[n]] + final[active[n]] - top)
    total = top + np.log(total)
    if not gradient.shape[0]:
        return FINE, total

    # Backwards `values` is beta. An arc's score is that of the paths up to it until its posterior has been added, then
    # that of the paths from it on.
    clear(active, num_active, values)
    num_active = 0
    for j in range(num_states):
        if final[j] > -np.inf:
            values[j] = final[j]
            active[num_active] = j
            num_active += 1
    for t in range(count - 1, -1, -1):
        begin, end = (0, num_arcs) if each else (frame_arcs[t], frame_arcs[t + 1])
        column = x[first + t * stride]
        frame_scores = scores[t * num_arcs :] if each else scores[begin:]
        target = gradient[gradient_first + t * gradient_stride]
        for a in range(begin, end):
            score = values[to_state[a]]
            if score > -np.inf and frame_scores[a - begin] > -np.inf:
                target[output[a]] += factor * np.exp(frame_scores[a - begin] + score - total)
                score += log_probability[a] + column[output[a]]
                tops[from_state[a]] = max(tops[from_state[a]], score)
                frame_scores[a - begin] = score
            else:
                frame_scores[a - begin] = -np.inf
        for a in range(begin, end):
            score = frame_scores[a - begin]
            if score > -np.inf:
                sums[from_state[a]] += np.exp(score - tops[from_state[a]])
        clear(active, num_active, values)
        num_active = 0
        for a in range(begin, end):
            state = from_state[a]
            num_active = gather(active, num_active, state, tops, sums, values)
            sums[state] = 0.0
    return FINE, total


@loop
def cross_entropy(
    x: Array, z: Array, place: tuple[int, int, int], graph: tuple[Array, ...], frame_arcs: Array, gradient: Array
) -> tuple[int, float]:
    """(status, cross entropy of the posteriors for x and softmax(z)); gradient (N, outputs) of z is written, if any."""
    first, stride, count = place
    posteriors = np.zeros((count, x.shape[1]), x.dtype)
    weights = np.empty(x.shape[1], x.dtype)
    unity = x.dtype.type(1)
    status, _ = forward_backward(x, place, graph, frame_arcs, 1.0, posteriors, (0, 1, count))
    if status != FINE:
        return status, 0.0
    value = 0.0
    for t in range(count):
        column = z[first + t * stride]
        posterior = posteriors[t]
        top = column[0]
        mass = x.dtype.type(0)
        mean = x.dtype.type(0)
        for o in range(column.shape[0]):
            top = max(top, column[o])
        for o in range(column.shape[0]):
            weights[o] = exponential(column[o] - top)
            mass += weights[o]
            mean += posterior[o] * (column[o] - top)
        value += np.log(mass) - mean
        if gradient.shape[0]:
            target = gradient[first + t * stride]
            scale = unity / mass
            for o in range(column.shape[0]):
                target[o] = weights[o] * scale - posterior[o]
    return FINE, value


@loop
def regularise(
    x: Array, place: tuple[int, int, int], l2: float, limit: float, penalty: float, gradient: Array
) -> float:
    """Half the sum of l2 x^2 + penalty (excess of |x| over limit)^2; gradient (N, outputs), if any, += derivatives."""
    first, stride, count = place
    total = 0.0
    half = x.dtype.type(0.5)
    for t in range(count):
        column = x[first + t * stride]
        inner = x.dtype.type(0)
        for o in range(column.shape[0]):
            excess = column[o] - max(-limit, min(limit, column[o]))
            inner += half * (l2 * column[o] * column[o] + penalty * excess * excess)
        total += inner
        if gradient.shape[0]:
            target = gradient[first + t * stride]
            for o in range(column.shape[0]):
                target[o] += l2 * column[o] + penalty * (column[o] - max(-limit, min(limit, column[o])))
    return total
