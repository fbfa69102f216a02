"""Numerator graphs of lattice-free MMI: the outputs that a transcript allows, with the denominator's probabilities.

A numerator graph is the intersection of an acceptor of sequences of outputs with the denominator graph.  The acceptor
gives each sequence at most one path, so no path of the denominator graph is counted twice and the criterion is at most
zero.
"""

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from readers.common.kernels import njit
from readers.minibatches.supervision import DenominatorGraph, NumeratorGraph

Keys = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)
Phones = tuple[Ints, Ints, Ints, Ints]
Acceptor = tuple[Keys, Ints, Ints, Flags]
Arcs = tuple[Ints, Ints, Ints, Floats]

MOST_OPEN = 62  # phones that may be current at one time; sets of them are bits of an integer
MOST_SETS = 1024  # of phones at one time; more than a few only if many phones have equal outputs
FIRST_CAPACITY = 4096


class LogDenominator(NamedTuple):
    """A denominator graph as the kernels below read it.

    first_arc: (S + 1,) int64; to_state, output: (A,) int32; log_probability: (A,) float32; log_initial: (S,) float32,
    -inf for a state without initial probability; num_outputs: int.
    """

    first_arc: Keys
    to_state: Ints
    output: Ints
    log_probability: Floats
    log_initial: Floats
    num_outputs: int

    @classmethod
    def of(cls, graph: DenominatorGraph) -> "LogDenominator":
        with np.errstate(divide="ignore"):
            log_initial = np.log(graph.initial).astype(np.float32)
        return cls(
            np.searchsorted(graph.from_state, np.arange(graph.num_states + 1)).astype(np.int64),
            np.array(graph.to_state),
            np.array(graph.output),
            np.log(graph.probability.astype(np.float64)).astype(np.float32),
            log_initial,
            graph.num_outputs,
        )


def compose_aligned(
    phones: Phones,
    denominator: LogDenominator,
    begin: int,
    num_frames: int,
) -> NumeratorGraph | None:
    """Return the numerator graph of some frames of an aligned utterance, None if the denominator has no such path.

    phones: first, further, earliest, latest of an `AlignedNumerator`, checked.
    """
    from_state, to_state, output, weight, initial, final, frame_arcs = _compose_aligned(
        phones, begin, num_frames, denominator
    )
    if not len(initial):
        return None
    return NumeratorGraph(len(initial), from_state, to_state, output, weight, initial, final, frame_arcs)


def compose_transcript(acceptor: Acceptor, denominator: LogDenominator) -> NumeratorGraph | None:
    """Return the numerator graph of a whole utterance from its transcript, None if the denominator has no such path.

    acceptor: first_arc, to_state, output, final of a `TranscriptNumerator`, checked.
    """
    from_state, to_state, output, weight, initial, final = _compose_transcript(acceptor, denominator)
    if not len(initial):
        return None
    return NumeratorGraph(len(initial), from_state, to_state, output, weight, initial, final)


@njit(cache=True)
def _place(keys: Keys, values: Ints, key: int | np.int64) -> int | np.int64:
    """The place of a key in a hash table, or of the empty slot for it; the size of the table is a power of two."""
    mask = len(keys) - 1
    slot = ((key ^ (key >> 17)) & 0x7FFFFFFF) * 40503 & mask
    while values[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def _grown(keys: Keys, values: Ints) -> tuple[Keys, Ints]:
    """The hash table at twice its size."""
    new_keys = np.empty(2 * len(keys), np.int64)
    new_values = np.full(2 * len(keys), -1, np.int32)
    for i in range(len(keys)):
        if values[i] >= 0:
            slot = _place(new_keys, new_values, keys[i])
            new_keys[slot] = keys[i]
            new_values[slot] = values[i]
    return new_keys, new_values


@njit(cache=True)
def _longer(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    longer = np.empty(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True)
def _compose_aligned(
    phones: Phones, begin: int, num_frames: int, denominator: LogDenominator
) -> tuple[Ints, Ints, Ints, Floats, Floats, Floats, Ints]:
    """Time-synchronous composition.

    A state is a set of phones that can be current after the outputs so far, with a state of the denominator; the sets
    are bits relative to the lowest phone that can be current.
    """
    first, further, earliest, latest = phones
    first_arc, den_to, den_output, den_weight, log_initial, num_outputs = denominator
    num_phones = len(first)
    num_states = len(first_arc) - 1
    end = begin + num_frames
    keys = np.empty(FIRST_CAPACITY, np.int64)
    values = np.full(FIRST_CAPACITY, -1, np.int32)
    node_set = np.empty(FIRST_CAPACITY, np.int32)
    node_state = np.empty(FIRST_CAPACITY, np.int32)
    arc_from = np.empty(FIRST_CAPACITY, np.int32)
    arc_to = np.empty(FIRST_CAPACITY, np.int32)
    arc_output = np.empty(FIRST_CAPACITY, np.int32)
    arc_weight = np.empty(FIRST_CAPACITY, np.float32)
    frame_arcs = np.zeros(num_frames + 1, np.int32)
    num_nodes = num_arcs = 0

    # The phones that can be current before the first frame; at the beginning of the utterance none is.
    low = 0
    bits = np.int64(0)
    if begin > 0:
        while low + 1 < num_phones and latest[low + 1] < begin:
            low += 1
        phone = low
        while phone < num_phones and earliest[phone] < begin:
            bits |= np.int64(1) << (phone - low)
            phone += 1
    sets = np.array([bits])
    num_initial = 0
    for state in range(num_states):
        if log_initial[state] > -np.inf:
            if num_nodes == len(node_set):
                node_set = _longer(node_set)
                node_state = _longer(node_state)
            node_set[num_nodes] = 0
            node_state[num_nodes] = state
            num_nodes += 1
    num_initial = num_nodes

    next_bits = np.zeros(num_outputs, np.int64)
    next_set = np.zeros(num_outputs, np.int32)
    first_node = 0
    for frame in range(begin, end):
        last_node = num_nodes
        new_low = low
        while new_low + 1 < num_phones and latest[new_low + 1] < frame + 1:
            new_low += 1
        new_sets = np.empty(MOST_SETS, np.int64)
        num_new = 0
        for number in range(len(sets)):
            # The outputs that may follow this set of phones, and the set of phones after each.
            bits = sets[number]
            outputs = np.empty(2 * (MOST_OPEN + 2), np.int32)
            num_found = 0
            if frame == 0:
                outputs[0] = first[0]
                next_bits[first[0]] = 1
                num_found = 1
            phone = low
            while bits:
                if bits & 1:
                    if phone + 1 == num_phones or frame < latest[phone + 1]:
                        output = further[phone]
                        if next_bits[output] == 0:
                            outputs[num_found] = output
                            num_found += 1
                        next_bits[output] |= np.int64(1) << (phone - new_low)
                    if phone + 1 < num_phones and earliest[phone + 1] <= frame <= latest[phone + 1]:
                        output = first[phone + 1]
                        if next_bits[output] == 0:
                            outputs[num_found] = output
                            num_found += 1
                        next_bits[output] |= np.int64(1) << (phone + 1 - new_low)
                bits >>= 1
                phone += 1
            for k in range(num_found):
                position = 0
                while position < num_new and new_sets[position] != next_bits[outputs[k]]:
                    position += 1
                if position == num_new:
                    if num_new == MOST_SETS:
                        raise ValueError("too many sets of phones that share their outputs")
                    new_sets[position] = next_bits[outputs[k]]
                    num_new += 1
                next_set[outputs[k]] = position
            for node in range(first_node, last_node):
                if node_set[node] != number:
                    continue
                for arc in range(first_arc[node_state[node]], first_arc[node_state[node] + 1]):
                    output = den_output[arc]
                    if next_bits[output] == 0:
                        continue
                    key = (np.int64(frame - begin) * MOST_SETS + next_set[output]) * num_states + den_to[arc]
                    slot = _place(keys, values, key)
                    if values[slot] < 0:
                        if num_nodes == len(node_set):
                            node_set = _longer(node_set)
                            node_state = _longer(node_state)
                        keys[slot] = key
                        values[slot] = num_nodes
                        target = num_nodes
                        node_set[target] = next_set[output]
                        node_state[target] = den_to[arc]
                        num_nodes += 1
                        if 2 * num_nodes > len(keys):
                            keys, values = _grown(keys, values)
                    else:
                        target = values[slot]
                    if num_arcs == len(arc_from):
                        arc_from = _longer(arc_from)
                        arc_to = _longer(arc_to)
                        arc_output = _longer(arc_output)
                        arc_weight = _longer(arc_weight)
                    arc_from[num_arcs] = node
                    arc_to[num_arcs] = target
                    arc_output[num_arcs] = output
                    arc_weight[num_arcs] = den_weight[arc]
                    num_arcs += 1
            for k in range(num_found):
                next_bits[outputs[k]] = 0
        frame_arcs[frame - begin + 1] = num_arcs
        first_node = last_node
        low = new_low
        sets = new_sets[:num_new].copy()

    # Keep what leads to the end; arcs are in the order of their frames.
    alive = np.zeros(num_nodes, np.bool_)
    alive[first_node:] = True
    for arc in range(num_arcs - 1, -1, -1):
        if alive[arc_to[arc]]:
            alive[arc_from[arc]] = True
    final_nodes = np.arange(num_nodes) >= first_node
    num_before = np.zeros(num_arcs + 1, np.int32)  # kept arcs before each arc
    num_before[1:] = np.cumsum(alive[arc_to[:num_arcs]])
    arcs = arc_from[:num_arcs], arc_to[:num_arcs], arc_output[:num_arcs], arc_weight[:num_arcs]
    initial_scores = log_initial[node_state[:num_initial]]
    return *_kept(alive, arcs, initial_scores, final_nodes), num_before[frame_arcs]


@njit(cache=True)
def _compose_transcript(
    acceptor: Acceptor, denominator: LogDenominator
) -> tuple[Ints, Ints, Ints, Floats, Floats, Floats]:
    """Composition of an acceptor, whose state 0 is the first, with the denominator graph."""
    first, to_state, output_of, is_final = acceptor
    first_arc, den_to, den_output, den_weight, log_initial, num_outputs = denominator
    num_states = len(first_arc) - 1
    keys = np.empty(FIRST_CAPACITY, np.int64)
    values = np.full(FIRST_CAPACITY, -1, np.int32)
    node_left = np.empty(FIRST_CAPACITY, np.int32)
    node_right = np.empty(FIRST_CAPACITY, np.int32)
    arc_from = np.empty(FIRST_CAPACITY, np.int32)
    arc_to = np.empty(FIRST_CAPACITY, np.int32)
    arc_output = np.empty(FIRST_CAPACITY, np.int32)
    arc_weight = np.empty(FIRST_CAPACITY, np.float32)
    num_nodes = num_arcs = 0
    for state in range(num_states):
        if log_initial[state] > -np.inf:
            if num_nodes == len(node_left):
                node_left = _longer(node_left)
                node_right = _longer(node_right)
            node_left[num_nodes] = 0
            node_right[num_nodes] = state
            key = np.int64(state)
            slot = _place(keys, values, key)
            keys[slot] = key
            values[slot] = num_nodes
            num_nodes += 1
            if 2 * num_nodes > len(keys):
                keys, values = _grown(keys, values)
    num_initial = num_nodes
    target_of = np.full(num_outputs, -1, np.int32)
    node = 0
    while node < num_nodes:
        acceptor_state = node_left[node]
        for arc in range(first[acceptor_state], first[acceptor_state + 1]):
            target_of[output_of[arc]] = to_state[arc]
        for arc in range(first_arc[node_right[node]], first_arc[node_right[node] + 1]):
            output = den_output[arc]
            if target_of[output] < 0:
                continue
            key = np.int64(target_of[output]) << 32 ^ np.int64(den_to[arc])
            slot = _place(keys, values, key)
            if values[slot] < 0:
                if num_nodes == len(node_left):
                    node_left = _longer(node_left)
                    node_right = _longer(node_right)
                keys[slot] = key
                values[slot] = num_nodes
                target = num_nodes
                node_left[target] = target_of[output]
                node_right[target] = den_to[arc]
                num_nodes += 1
                if 2 * num_nodes > len(keys):
                    keys, values = _grown(keys, values)
            else:
                target = values[slot]
            if num_arcs == len(arc_from):
                arc_from = _longer(arc_from)
                arc_to = _longer(arc_to)
                arc_output = _longer(arc_output)
                arc_weight = _longer(arc_weight)
            arc_from[num_arcs] = node
            arc_to[num_arcs] = target
            arc_output[num_arcs] = output
            arc_weight[num_arcs] = den_weight[arc]
            num_arcs += 1
        for arc in range(first[acceptor_state], first[acceptor_state + 1]):
            target_of[output_of[arc]] = -1
        node += 1

    alive = np.zeros(num_nodes, np.bool_)
    for node in range(num_nodes):
        alive[node] = is_final[node_left[node]]
    changed = True
    while changed:
        changed = False
        for arc in range(num_arcs - 1, -1, -1):
            if alive[arc_to[arc]] and not alive[arc_from[arc]]:
                alive[arc_from[arc]] = True
                changed = True
    arcs = arc_from[:num_arcs], arc_to[:num_arcs], arc_output[:num_arcs], arc_weight[:num_arcs]
    return _kept(alive, arcs, log_initial[node_right[:num_initial]], is_final[node_left[:num_nodes]])


@njit(cache=True)
def _kept(
    alive: Flags, arcs: Arcs, initial_scores: Floats, final_nodes: Flags
) -> tuple[Ints, Ints, Ints, Floats, Floats, Floats]:
    """The arcs that end in living nodes, with these renumbered, and the log initial and final probabilities of these.

    initial_scores: those of the first nodes; the others are not initial.
    """
    number = np.cumsum(alive).astype(np.int32) - np.int32(1)
    arc_from, arc_to, arc_output, arc_weight = arcs
    is_kept = alive[arc_to]
    scores = np.full(len(alive), -np.inf, np.float32)
    scores[: len(initial_scores)] = initial_scores
    final = np.where(final_nodes, np.float32(0.0), np.float32(-np.inf))
    return (
        number[arc_from[is_kept]],
        number[arc_to[is_kept]],
        arc_output[is_kept],
        arc_weight[is_kept],
        scores[alive],
        final[alive],
    )
