"""Growing arrays of the search: tokens with a hash table to find them by, and what they leave behind."""

from typing import NamedTuple

import numpy as np
from numba import njit

HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio (Knuth, TAOCP 3, 6.4)
LOW_32 = 0xFFFFFFFF
NODE_LABEL = -1
RECORDS, ARRIVALS = 0, 1  # places in Trace.counts


class Tokens(NamedTuple):
    """Parallel arrays of tokens: key i8 = place << 32 | LM state; cost, slack f8; record i4.

    A token that has just entered its position has no record yet and holds ~(the record it came from).
    """

    key: np.ndarray
    cost: np.ndarray
    slack: np.ndarray
    record: np.ndarray


class Trace(NamedTuple):
    """Where tokens came from.  counts (2,) i8: records and arrivals in use.

    Records, all i4: `previous` record, `label`, `frame`.  label >= 0 is the position entered with that frame;
    NODE_LABEL the start, a junction or the end, before that frame; -2 - a is word arc a, crossed before that frame.

    Arrivals are the ways into the nodes of the lattice, winners and losers, effects after their causes: node i4, the
    node's record; node_previous i4, the record before it; node_label i4, as label; node_cost f8 of the whole path;
    node_lm f8, ln P of the word, unscaled.
    """

    previous: np.ndarray
    label: np.ndarray
    frame: np.ndarray
    node: np.ndarray
    node_previous: np.ndarray
    node_label: np.ndarray
    node_cost: np.ndarray
    node_lm: np.ndarray
    counts: np.ndarray


@njit(cache=True, nogil=True)
def find_or_add(table, stamp, keys, count, key):
    """Index of `key` among keys[:count], or `count` after writing it there.

    table (2^b,) i8: entries stamp << 32 | index; those with another stamp are empty.  At most half of it is in use.
    """
    mask = table.shape[0] - 1
    mixed = np.uint64(key) * HASH_MULTIPLIER
    slot = np.int64(mixed >> np.uint64(32)) & mask
    while True:
        entry = table[slot]
        if entry >> 32 != stamp:
            table[slot] = stamp << 32 | count
            keys[count] = key
            return count
        index = entry & LOW_32
        if keys[index] == key:
            return index
        slot = (slot + 1) & mask


@njit(cache=True, nogil=True)
def longer(array, size):
    """A copy of `array` with room for `size` elements."""
    copy = np.empty(size, dtype=array.dtype)
    copy[: array.shape[0]] = array
    return copy


@njit(cache=True, nogil=True)
def new_tokens(size):
    return Tokens(
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.float64),
        np.empty(size, dtype=np.float64),
        np.empty(size, dtype=np.int32),
    )


@njit(cache=True, nogil=True)
def more_tokens(tokens, count, needed, table, stamp):
    """(tokens, table) with room for `needed` tokens; the first `count` keep their places and are found as before."""
    size = tokens.key.shape[0]
    while size < needed:
        size *= 2
    tokens = Tokens(
        longer(tokens.key, size), longer(tokens.cost, size), longer(tokens.slack, size), longer(tokens.record, size)
    )
    if table.shape[0] < 2 * size:
        table = np.zeros(2 * size, dtype=np.int64)
        for i in range(count):
            find_or_add(table, stamp, tokens.key, i, tokens.key[i])
    return tokens, table


@njit(cache=True, nogil=True)
def new_trace(num_records, num_arrivals):
    return Trace(
        np.empty(num_records, dtype=np.int32),
        np.empty(num_records, dtype=np.int32),
        np.empty(num_records, dtype=np.int32),
        np.empty(num_arrivals, dtype=np.int32),
        np.empty(num_arrivals, dtype=np.int32),
        np.empty(num_arrivals, dtype=np.int32),
        np.empty(num_arrivals, dtype=np.float64),
        np.empty(num_arrivals, dtype=np.float64),
        np.zeros(2, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def make_room(trace, extra):
    """The trace with room for `extra` more records and as many arrivals."""
    records, arrivals = trace.previous.shape[0], trace.node.shape[0]
    while records < trace.counts[RECORDS] + extra:
        records *= 2
    while arrivals < trace.counts[ARRIVALS] + extra:
        arrivals *= 2
    if records == trace.previous.shape[0] and arrivals == trace.node.shape[0]:
        return trace
    return Trace(
        longer(trace.previous, records),
        longer(trace.label, records),
        longer(trace.frame, records),
        longer(trace.node, arrivals),
        longer(trace.node_previous, arrivals),
        longer(trace.node_label, arrivals),
        longer(trace.node_cost, arrivals),
        longer(trace.node_lm, arrivals),
        trace.counts,
    )


@njit(cache=True, nogil=True)
def add_record(trace, previous, label, frame):
    """Number of the new record; there must be room."""
    record = trace.counts[RECORDS]
    trace.previous[record], trace.label[record], trace.frame[record] = previous, label, frame
    trace.counts[RECORDS] = record + 1
    return record


@njit(cache=True, nogil=True)
def add_arrival(trace, node, previous, label, cost, lm):
    """Note a way into a node; there must be room."""
    arrival = trace.counts[ARRIVALS]
    trace.node[arrival], trace.node_previous[arrival], trace.node_label[arrival] = node, previous, label
    trace.node_cost[arrival], trace.node_lm[arrival] = cost, lm
    trace.counts[ARRIVALS] = arrival + 1


@njit(cache=True, nogil=True)
def smallest(values, count):
    """The `count`-th smallest of `values` (1 = the least), which are reordered: Hoare's selection."""
    low, high, wanted = 0, values.shape[0] - 1, count - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return values[wanted]


@njit(cache=True, nogil=True)
def keep_best_tokens(tokens, count, max_tokens):
    """Leave the `max_tokens` tokens of least cost - slack; of equal ones, the first.  The others get cost inf.

    Returns the index of the token of least cost.
    """
    keys = tokens.cost[:count] - tokens.slack[:count]
    threshold = smallest(keys.copy(), max_tokens)
    room = max_tokens
    for i in range(count):
        room -= keys[i] < threshold
    best, best_cost = 0, np.inf
    for i in range(count):
        if keys[i] > threshold or (keys[i] == threshold and room <= 0):
            tokens.cost[i] = np.inf
            continue
        room -= keys[i] == threshold
        if tokens.cost[i] < best_cost:
            best, best_cost = i, tokens.cost[i]
    return best
