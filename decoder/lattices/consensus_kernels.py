"""Kernels of consensus.py: expected edit distance between a lattice and a word sequence, and their alignment.

Links are in topological order of their end nodes.  Slot q = 1..Q of the sequence holds a word or nothing; words are
numbers, 0 for none.
"""

import numpy as np

from readers.common.arrays import Float64Array, Int64Array
from readers.common.kernels import njit

DELTA = 1e-5  # makes a word of the lattice align with an empty slot rather than with none


@njit(cache=True, nogil=True)
def choice(before: float, here: float, gap: float, word: int, slot: int) -> tuple[float, int]:
    """(cost, edit) of the cheapest edit: 1: the word is in the slot, 2: it is in no slot, 3: the slot stays empty.

    before, here: cost at the link's start with one slot less and with the same number; gap: at its end with one less.
    """
    match = before + (0.0 if word == slot else 1.0)
    extra = here + (0.0 if word == 0 else 1.0 + DELTA)
    missing = gap + (0.0 if slot == 0 else 1.0)
    if match <= extra and match <= missing:
        return match, 1
    if extra <= missing:
        return extra, 2
    return missing, 3


@njit(cache=True, nogil=True)
def distances(
    num_nodes: int, start: Int64Array, end: Int64Array, word: Int64Array, weight: Float64Array, slots: Int64Array
) -> Float64Array:
    """(N, Q + 1) expected cost of the paths to each node against the first q slots.

    weight (L,): probability of a link among those that enter its end node.
    """
    count = slots.shape[0] + 1
    cost = np.zeros((num_nodes, count))
    for q in range(1, count):
        cost[0, q] = cost[0, q - 1] + (0.0 if slots[q - 1] == 0 else 1.0)
    row = np.zeros(count)
    for link in range(start.shape[0]):
        source = start[link]
        target = end[link]
        row[0] = cost[source, 0] + (0.0 if word[link] == 0 else 1.0 + DELTA)
        for q in range(1, count):
            row[q], _ = choice(cost[source, q - 1], cost[source, q], row[q - 1], word[link], slots[q - 1])
        for q in range(count):
            cost[target, q] += weight[link] * row[q]
    return cost


@njit(cache=True, nogil=True)
def alignment(
    num_nodes: int,
    start: Int64Array,
    end: Int64Array,
    word: Int64Array,
    weight: Float64Array,
    slots: Int64Array,
    cost: Float64Array,
    begin: Float64Array,
    time: Float64Array,
    num_words: int,
) -> tuple[Float64Array, Float64Array]:
    """(Q, words) probability of each word in each slot, and (Q, 2) the expected start and end of its words, summed.

    begin (L,): time at which the word of each link begins; time (N,): of the nodes, where words end.
    """
    count = slots.shape[0] + 1
    held = np.zeros((count - 1, num_words))
    times = np.zeros((count - 1, 2))
    mass = np.zeros((num_nodes, count))
    mass[num_nodes - 1, count - 1] = 1.0
    row = np.zeros(count)
    back = np.zeros(count)
    ways = np.zeros(count, np.int64)
    for link in range(start.shape[0] - 1, -1, -1):
        source = start[link]
        target = end[link]
        row[0] = cost[source, 0] + (0.0 if word[link] == 0 else 1.0 + DELTA)
        for q in range(1, count):
            row[q], ways[q] = choice(cost[source, q - 1], cost[source, q], row[q - 1], word[link], slots[q - 1])
        back[:] = 0.0
        for q in range(count - 1, 0, -1):
            back[q] += weight[link] * mass[target, q]
            if ways[q] == 1:
                mass[source, q - 1] += back[q]
                held[q - 1, word[link]] += back[q]
                if word[link] != 0:
                    times[q - 1, 0] += back[q] * begin[link]
                    times[q - 1, 1] += back[q] * time[target]
            elif ways[q] == 2:
                mass[source, q] += back[q]
            else:
                back[q - 1] += back[q]
                held[q - 1, 0] += back[q]
        mass[source, 0] += back[0] + weight[link] * mass[target, 0]
    mass_left = 0.0
    for q in range(count - 1, 0, -1):
        mass_left += mass[0, q]
        held[q - 1, 0] += mass_left
    return held, times
