"""Compiled forward-backward computation over a lattice, for the criteria of nodes/sequence_criterion.py.

scores (N, rows): the transposed view of a matrix of log-likelihoods; frame t of the lattice is row first + t * stride.
lattice, scaling: see acoustic/kernels/arrays/lattice.py, whose plain recursion computes the same values. Sums over
paths are kept as logarithms in double precision.
"""

import numpy as np

from acoustic.kernels.arrays.lattice import COUNTED, MMI, MPE, ONE_CLASS, LatticeArrays, LatticeScaling
from readers.common.arrays import Array
from readers.common.kernels import njit

loop = njit(cache=True, nogil=True, error_model="numpy")
inline = njit(cache=True, nogil=True, error_model="numpy", inline="always")

FINE, BAD_NODE, BAD_TIME, BAD_SENONE, BAD_PHONE, BAD_REFERENCE = range(6)  # results of `check`
IMPOSSIBLE = -np.inf


@loop
def check(lattice: LatticeArrays, num_nodes: int, num_frames: int, num_rows: int) -> tuple[int, int]:
    """Return (FINE, -1), or what is wrong and the number of the arc or frame where it is, -1 for all."""
    if num_nodes < 2:
        return BAD_NODE, -1
    if lattice.reference_senones.shape[0] != num_frames or lattice.reference_phones.shape[0] != num_frames:
        return BAD_REFERENCE, -1
    times = np.full(num_nodes, -1, np.int64)
    times[0] = 0
    for a in range(lattice.start_node.shape[0]):
        start = lattice.start_node[a]
        end = lattice.end_node[a]
        count = lattice.num_arc_frames[a]
        if not 0 <= start < end < num_nodes:
            return BAD_NODE, a
        if count < 0 or times[start] < 0 or (count and lattice.first_frame[a] != times[start]):
            return BAD_TIME, a
        time = times[start] + count
        if time > num_frames or (times[end] >= 0 and times[end] != time):
            return BAD_TIME, a
        times[end] = time
        if count and not 0 <= lattice.senone[a] < num_rows:
            return BAD_SENONE, a
        if count and not 0 <= lattice.phone[a] < lattice.silence.shape[0]:
            return BAD_PHONE, a
    if times[num_nodes - 1] != num_frames:
        return BAD_TIME, -1
    for t in range(num_frames):
        if not 0 <= lattice.reference_senones[t] < num_rows:
            return BAD_REFERENCE, t
        if not 0 <= lattice.reference_phones[t] < lattice.silence.shape[0]:
            return BAD_REFERENCE, t
    return FINE, -1


@loop
def number_senones(lattice: LatticeArrays, num_rows: int) -> tuple[Array, Array, Array]:
    """Number the senones of a lattice and its reference; return those of each arc and frame, and the senones."""
    number = np.full(num_rows, -1, np.int32)
    senones = np.empty(num_rows, np.int32)
    count = 0
    frames = np.empty(lattice.reference_senones.shape[0], np.int32)
    for t in range(frames.shape[0]):
        senone = lattice.reference_senones[t]
        if number[senone] < 0:
            number[senone] = count
            senones[count] = senone
            count += 1
        frames[t] = number[senone]
    arcs = np.full(lattice.senone.shape[0], -1, np.int32)
    for a in range(arcs.shape[0]):
        senone = lattice.senone[a]
        if lattice.num_arc_frames[a]:
            if number[senone] < 0:
                number[senone] = count
                senones[count] = senone
                count += 1
            arcs[a] = number[senone]
    return arcs, frames, senones[:count].copy()


@inline
def log_add(x: float, y: float) -> float:
    """ln(exp(x) + exp(y)); NaN if either is."""
    if x < y:
        x, y = y, x
    return x if y == IMPOSSIBLE else x + np.log1p(np.exp(y - x))


@loop
def arc_scores(
    scores: Array, first: int, stride: int, lattice: LatticeArrays, scaling: LatticeScaling
) -> tuple[Array, Array]:
    """Return the log score and the number of correct frames of each arc, both float64."""
    count = lattice.start_node.shape[0]
    total = np.empty(count)
    correct = np.empty(count)
    for a in range(count):
        acoustic = 0.0
        right = 0
        wrong = 0
        senone = lattice.senone[a]
        phone = lattice.phone[a]
        begin = lattice.first_frame[a]
        for t in range(begin, begin + lattice.num_arc_frames[a]):
            acoustic += scores[first + t * stride, senone]
            same_senone = senone == lattice.reference_senones[t]
            same_phone = phone == lattice.reference_phones[t]
            silent = lattice.silence[phone]
            same = same_phone if scaling.criterion == MPE else same_senone
            if scaling.silence == COUNTED:
                right += same
            elif scaling.silence == ONE_CLASS:
                right += same or (silent and lattice.silence[lattice.reference_phones[t]])
            else:
                right += same and not silent
            if scaling.silence == COUNTED or not silent:
                wrong += not (same_senone if scaling.boosts_senones else same_phone)
        language = scaling.lm_factor * lattice.lm_score[a] + scaling.word_penalty * lattice.starts_word[a]
        total[a] = (acoustic + lattice.transition_score[a] + language) / scaling.acoustic_factor
        total[a] += scaling.boost * wrong
        correct[a] = right
    return total, correct


@loop
def forward(lattice: LatticeArrays, num_nodes: int, score: Array, correct: Array) -> tuple[Array, Array]:
    """Return for each node: ln of the sum over the paths to it, and the expected number of correct frames in them."""
    alpha = np.full(num_nodes, IMPOSSIBLE)
    expected = np.zeros(num_nodes)
    alpha[0] = 0.0
    for a in range(score.shape[0]):
        start = lattice.start_node[a]
        end = lattice.end_node[a]
        alpha[end] = log_add(alpha[end], alpha[start] + score[a])
    # Arcs are in the order of their start nodes, which come before their ends: a second pass over them knows the sum of
    # all paths to a node before it weighs one of them.
    for a in range(score.shape[0]):
        start = lattice.start_node[a]
        end = lattice.end_node[a]
        if alpha[end] > IMPOSSIBLE:
            share = np.exp(alpha[start] + score[a] - alpha[end])
            expected[end] += share * (expected[start] + correct[a])
    return alpha, expected


@loop
def backward(lattice: LatticeArrays, num_nodes: int, score: Array, correct: Array) -> tuple[Array, Array]:
    """Return for each node what `forward` does, for the paths from it to the end."""
    beta = np.full(num_nodes, IMPOSSIBLE)
    expected = np.zeros(num_nodes)
    beta[num_nodes - 1] = 0.0
    for a in range(score.shape[0] - 1, -1, -1):
        start = lattice.start_node[a]
        end = lattice.end_node[a]
        beta[start] = log_add(beta[start], beta[end] + score[a])
    # As in `forward`, with the arcs in the opposite order.
    for a in range(score.shape[0] - 1, -1, -1):
        start = lattice.start_node[a]
        end = lattice.end_node[a]
        if beta[start] > IMPOSSIBLE:
            share = np.exp(beta[end] + score[a] - beta[start])
            expected[start] += share * (expected[end] + correct[a])
    return beta, expected


@loop
def value(
    scores: Array, first: int, stride: int, lattice: LatticeArrays, num_nodes: int, scaling: LatticeScaling
) -> tuple[float, float]:
    """Return the ln of the sum over all paths, and the expected number of correct frames."""
    score, correct = arc_scores(scores, first, stride, lattice, scaling)
    alpha, expected = forward(lattice, num_nodes, score, correct)
    return alpha[num_nodes - 1], expected[num_nodes - 1]


@loop
def value_and_derivative(
    scores: Array,
    first: int,
    stride: int,
    lattice: LatticeArrays,
    num_nodes: int,
    scaling: LatticeScaling,
    numbers: Array,
    derivative: Array,
    reference: Array,
) -> tuple[float, float]:
    """Return what `value` does, and fill two arrays.

    numbers (A,): the column of `derivative` for each arc's senone. derivative (T, senones): with MMI the posterior
    probability of each senone; otherwise the derivative of the expected number of correct frames with respect to
    scores / acoustic factor. reference (T,): the posterior probability of the reference senone.
    """
    score, correct = arc_scores(scores, first, stride, lattice, scaling)
    alpha, expected = forward(lattice, num_nodes, score, correct)
    beta, onward = backward(lattice, num_nodes, score, correct)
    total = alpha[num_nodes - 1]
    mean = expected[num_nodes - 1]
    derivative[:] = 0.0
    reference[:] = 0.0
    for a in range(score.shape[0]):
        start = lattice.start_node[a]
        end = lattice.end_node[a]
        begin = lattice.first_frame[a]
        if not alpha[start] + beta[end] > IMPOSSIBLE:
            continue
        posterior = np.exp(alpha[start] + score[a] + beta[end] - total)
        weight = posterior
        if scaling.criterion != MMI:
            weight *= expected[start] + correct[a] + onward[end] - mean
        for t in range(begin, begin + lattice.num_arc_frames[a]):
            derivative[t, numbers[a]] += weight
            if lattice.senone[a] == lattice.reference_senones[t]:
                reference[t] += posterior
    return total, mean


@loop
def add_derivative(derivative: Array, senones: Array, first: int, stride: int, weight: float, out: Array) -> None:
    """out (N, rows) += weight * derivative (T, senones), in the lattice's columns."""
    for t in range(derivative.shape[0]):
        row = out[first + t * stride]
        for k in range(senones.shape[0]):
            if derivative[t, k] != 0.0:  # most are: few senones occur in a frame
                row[senones[k]] += weight * derivative[t, k]
