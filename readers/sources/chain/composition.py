"""Numerator graphs of lattice-free MMI: the outputs that a transcript allows, with the denominator's probabilities.

A numerator graph is the intersection of an acceptor of sequences of outputs with the denominator graph.  The acceptor
gives each sequence at most one path, so no path of the denominator graph is counted twice and the criterion is at most
zero.
"""

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from readers.common.arrays import Integer
from readers.common.kernels import njit
from readers.minibatches.supervision import DenominatorGraph, NumeratorGraph

Keys = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)
Phones = tuple[Ints, Ints, Ints, Ints]
Acceptor = tuple[Keys, Ints, Ints, Flags]

MOST_OPEN = 62  # phones that may be current at one time; sets of them are bits of an integer
MOST_SETS = 1024  # of phones at one time; more than a few only if many phones have equal outputs
FIRST_CAPACITY = 4096  # of nodes and arcs, a power of two


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


class Nodes(NamedTuple):
    """Pairs of a state of the transcript and a state of the denominator, and the hash table that finds them.

    left, right: (n,) int32, the two states; keys: (2n,) int64; values: (2n,) int32, numbers of nodes, -1 where the
    table is empty.
    """

    left: Ints
    right: Ints
    keys: Keys
    values: Ints


class Arcs(NamedTuple):
    """Arcs between numbered nodes; (n,) int32 and float32."""

    source: Ints
    target: Ints
    output: Ints
    weight: Floats


@njit(cache=True)
def _slot(keys: Keys, values: Ints, key: Integer) -> Integer:
    """The slot of a key in a hash table, or the empty one for it; the size of the table is a power of two."""
    mask = len(keys) - 1
    slot = ((key ^ (key >> 17)) & 0x7FFFFFFF) * 40503 & mask
    while values[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def _longer(array: npt.NDArray[Scalar], size: Integer) -> npt.NDArray[Scalar]:
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer


@njit(cache=True)
def _doubled(size: Integer, needed: Integer) -> Integer:
    """The size, doubled until it is at least `needed`."""
    while size < needed:
        size *= 2
    return size


@njit(cache=True)
def _nodes_with_room(nodes: Nodes, needed: Integer) -> Nodes:
    """The nodes in tables with room for `needed`."""
    size = _doubled(len(nodes.left), needed)
    if size == len(nodes.left):
        return nodes
    keys = np.empty(2 * size, np.int64)
    values = np.full(2 * size, -1, np.int32)
    for i in range(len(nodes.keys)):
        if nodes.values[i] >= 0:
            slot = _slot(keys, values, nodes.keys[i])
            keys[slot] = nodes.keys[i]
            values[slot] = nodes.values[i]
    return Nodes(_longer(nodes.left, size), _longer(nodes.right, size), keys, values)


@njit(cache=True)
def _arcs_with_room(arcs: Arcs, needed: Integer) -> Arcs:
    """The arcs in arrays with room for `needed`."""
    size = _doubled(len(arcs.source), needed)
    if size == len(arcs.source):
        return arcs
    return Arcs(
        _longer(arcs.source, size),
        _longer(arcs.target, size),
        _longer(arcs.output, size),
        _longer(arcs.weight, size),
    )


@njit(cache=True)
def _add_arc(
    arcs: Arcs, number: int, source: Integer, target: Integer, output: Integer, weight: float | np.float32
) -> None:
    """Enter arc `number`; there must be room."""
    arcs.source[number] = source
    arcs.target[number] = target
    arcs.output[number] = output
    arcs.weight[number] = weight


@njit(cache=True)
def _number_of(nodes: Nodes, num_nodes: Integer, key: Integer, left: Integer, right: Integer) -> Integer:
    """The number of the node with a key; it is `num_nodes`, and entered, if there is none.  There must be room."""
    slot = _slot(nodes.keys, nodes.values, key)
    if nodes.values[slot] < 0:
        nodes.keys[slot] = key
        nodes.values[slot] = num_nodes
        nodes.left[num_nodes] = left
        nodes.right[num_nodes] = right
    return nodes.values[slot]


@njit(cache=True)
def _start(log_initial: Floats) -> tuple[Nodes, Integer, Arcs]:
    """The initial states of the denominator as nodes with the keys of these states, their number, and room for arcs."""
    size = FIRST_CAPACITY
    nodes = Nodes(
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(2 * size, np.int64),
        np.full(2 * size, -1, np.int32),
    )
    nodes = _nodes_with_room(nodes, len(log_initial))
    num_nodes: Integer = 0
    for state in range(len(log_initial)):
        if log_initial[state] > -np.inf:
            num_nodes = _number_of(nodes, num_nodes, np.int64(state), 0, state) + 1
    arcs = Arcs(
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
        np.empty(size, np.float32),
    )
    return nodes, num_nodes, arcs


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
    nodes, num_initial, arcs = _start(log_initial)
    num_nodes = num_initial
    num_arcs = 0
    frame_arcs = np.zeros(num_frames + 1, np.int32)

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

    next_bits = np.zeros(num_outputs, np.int64)
    next_set = np.zeros(num_outputs, np.int32)
    first_node: Integer = 0
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
                if nodes.left[node] != number:
                    continue
                first_leaving = first_arc[nodes.right[node]]
                end_leaving = first_arc[nodes.right[node] + 1]
                nodes = _nodes_with_room(nodes, num_nodes + end_leaving - first_leaving)
                arcs = _arcs_with_room(arcs, num_arcs + end_leaving - first_leaving)
                for arc in range(first_leaving, end_leaving):
                    output = den_output[arc]
                    if next_bits[output] == 0:
                        continue
                    # Frames are counted from 1 here, since the keys of the initial nodes are those of frame 0.
                    place = np.int64(frame - begin + 1) * MOST_SETS + next_set[output]
                    key = place * num_states + den_to[arc]
                    target = _number_of(nodes, num_nodes, key, next_set[output], den_to[arc])
                    num_nodes = max(num_nodes, target + 1)
                    _add_arc(arcs, num_arcs, node, target, output, den_weight[arc])
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
        if alive[arcs.target[arc]]:
            alive[arcs.source[arc]] = True
    final_nodes = np.arange(num_nodes) >= first_node
    num_before = np.zeros(num_arcs + 1, np.int32)  # kept arcs before each arc
    num_before[1:] = np.cumsum(alive[arcs.target[:num_arcs]])
    initial_scores = log_initial[nodes.right[:num_initial]]
    return *_kept(alive, arcs, num_arcs, initial_scores, final_nodes), num_before[frame_arcs]


@njit(cache=True)
def _compose_transcript(
    acceptor: Acceptor, denominator: LogDenominator
) -> tuple[Ints, Ints, Ints, Floats, Floats, Floats]:
    """Composition of an acceptor, whose state 0 is the first, with the denominator graph."""
    first, to_state, output_of, is_final = acceptor
    first_arc, den_to, den_output, den_weight, log_initial, num_outputs = denominator
    nodes, num_initial, arcs = _start(log_initial)
    num_nodes = num_initial
    num_arcs = 0
    target_of = np.full(num_outputs, -1, np.int32)
    node = 0
    while node < num_nodes:
        acceptor_state = nodes.left[node]
        for arc in range(first[acceptor_state], first[acceptor_state + 1]):
            target_of[output_of[arc]] = to_state[arc]
        first_leaving = first_arc[nodes.right[node]]
        end_leaving = first_arc[nodes.right[node] + 1]
        nodes = _nodes_with_room(nodes, num_nodes + end_leaving - first_leaving)
        arcs = _arcs_with_room(arcs, num_arcs + end_leaving - first_leaving)
        for arc in range(first_leaving, end_leaving):
            output = den_output[arc]
            if target_of[output] < 0:
                continue
            key = np.int64(target_of[output]) << 32 ^ np.int64(den_to[arc])
            target = _number_of(nodes, num_nodes, key, target_of[output], den_to[arc])
            num_nodes = max(num_nodes, target + 1)
            _add_arc(arcs, num_arcs, node, target, output, den_weight[arc])
            num_arcs += 1
        for arc in range(first[acceptor_state], first[acceptor_state + 1]):
            target_of[output_of[arc]] = -1
        node += 1

    alive = np.zeros(num_nodes, np.bool_)
    for node in range(num_nodes):
        alive[node] = is_final[nodes.left[node]]
    changed = True
    while changed:
        changed = False
        for arc in range(num_arcs - 1, -1, -1):
            if alive[arcs.target[arc]] and not alive[arcs.source[arc]]:
                alive[arcs.source[arc]] = True
                changed = True
    initial_scores = log_initial[nodes.right[:num_initial]]
    return _kept(alive, arcs, num_arcs, initial_scores, is_final[nodes.left[:num_nodes]])


@njit(cache=True)
def _kept(
    alive: Flags, arcs: Arcs, num_arcs: int, initial_scores: Floats, final_nodes: Flags
) -> tuple[Ints, Ints, Ints, Floats, Floats, Floats]:
    """The arcs that end in living nodes, with these renumbered, and the log initial and final probabilities of these.

    initial_scores: those of the first nodes; the others are not initial.
    """
    number = np.cumsum(alive).astype(np.int32) - np.int32(1)
    arc = np.flatnonzero(alive[arcs.target[:num_arcs]])
    scores = np.full(len(alive), -np.inf, np.float32)
    scores[: len(initial_scores)] = initial_scores
    final = np.where(final_nodes, np.float32(0.0), np.float32(-np.inf))
    return (
        number[arcs.source[arc]],
        number[arcs.target[arc]],
        arcs.output[arc],
        arcs.weight[arc],
        scores[alive],
        final[alive],
    )
