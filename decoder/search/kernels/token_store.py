"""Growing tables of the search: tokens with their hash table, and back pointers.

Every table is one array of records: a kernel that takes many arrays spends a third of its time on reference counts.
Fields are read as `table[i]["field"]`, which means the same compiled and interpreted.
"""

from typing import NamedTuple

import numpy as np

from readers.common.arrays import Array, Float64Array, Int64Array, Integer, Records
from readers.common.kernels import UNCOUNTED, njit

HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio (Knuth, TAOCP 3, 6.4)
LOW_32 = 0xFFFFFFFF
NODE_LABEL = -1
SENTENCE_OVER = 0x7FFFFFFF  # LM state after </s>
STEPS, ARRIVALS = 0, 1  # indices into Trace.counts

# key: place << 32 | LM state.  step: back pointer, see Trace; a token that has just entered its position has no step of
# its own yet and holds ~(the step before).  ahead: lower bound of the cost of the next word, used for pruning only.
TOKEN = np.dtype([("key", "i8"), ("cost", "f8"), ("slack", "f8"), ("step", "i4"), ("ahead", "f4")])
STEP = np.dtype([("previous", "i4"), ("label", "i4"), ("frame", "i4")])
ARRIVAL = np.dtype([("cost", "f8"), ("lm", "f8"), ("node", "i4"), ("previous", "i4"), ("label", "i4"), ("bonus", "f4")])


class Trace(NamedTuple):
    """Back pointers of the tokens, and the lattice.  counts (2,) i8: number of steps and of arrivals in use.

    steps (n,) STEP: `previous` step, `label`, `frame`.  label >= 0 is a position entered with that frame; NODE_LABEL is
    the start, a junction or the end, before that frame; -2 - a is word arc a, crossed before that frame.
    arrivals (m,) ARRIVAL: all paths into the nodes of the lattice, kept or not, in topological order.  node: step of
    the node; previous: step before it; label: as above; cost: of the whole path; lm: ln P of the n-gram, unscaled;
    bonus: minus the cost of the second language model, which `cost` counts already.
    """

    steps: np.ndarray
    arrivals: np.ndarray
    counts: np.ndarray


class TokenTable(NamedTuple):
    """Tokens and the hash table that finds them by their key.

    tokens (n,) TOKEN: the first `count` are in use; table (2^b,) i8 and stamp: see `find`.
    """

    tokens: np.ndarray
    count: Integer  # type: ignore[assignment]  # the method of tuples is not used
    table: np.ndarray
    stamp: Integer


@njit(**UNCOUNTED)
def find(table: Int64Array, stamp: Integer, tokens: Records, key: Integer) -> Integer:
    """Index of the token with `key`, or ~slot with the free slot for it.

    table (2^b,) i8: entries stamp << 32 | index; an entry with another stamp is empty.  At most half of it is in use.
    """
    mask = table.shape[0] - 1
    mixed = np.uint64(key) * HASH_MULTIPLIER
    slot = np.int64(mixed >> np.uint64(32)) & mask
    while True:
        entry = table[np.uint64(slot)]
        if entry >> 32 != stamp:
            return ~slot
        index = entry & LOW_32
        if tokens[np.uint64(index)]["key"] == key:
            return index
        slot = (slot + 1) & mask


@njit(**UNCOUNTED)
def add(
    table: Int64Array,
    stamp: Integer,
    tokens: Records,
    count: Integer,
    slot: Integer,
    key: Integer,
    ahead: float | np.float32,
) -> None:
    """Enter token `count` into the slot that `find` returned; set its key and look-ahead, which do not change."""
    table[np.uint64(slot)] = stamp << 32 | count
    token = tokens[np.uint64(count)]
    token["key"], token["ahead"] = key, ahead


@njit(cache=True, nogil=True)
def grown(array: Array, size: Integer) -> Array:
    """A copy of `array` with room for `size` elements.  (Assigning to a slice would take seconds to compile.)"""
    copy = np.empty(size, dtype=array.dtype)
    for i in range(array.shape[0]):
        copy[i] = array[i]
    return copy


@njit(cache=True, nogil=True)
def grow_tokens(
    tokens: Records, count: Integer, needed: Integer, table: Int64Array, stamp: Integer
) -> tuple[Records, Int64Array]:
    """(tokens, table) with room for `needed` tokens; the first `count` keep their indices and their hash entries."""
    size = tokens.shape[0]
    while size < needed:
        size *= 2
    tokens = grown(tokens, size)
    if table.shape[0] < 2 * size:
        table = np.zeros(2 * size, dtype=np.int64)
        for i in range(count):
            table[~find(table, stamp, tokens, tokens[i]["key"])] = stamp << 32 | i
    return tokens, table


@njit(cache=True, nogil=True)
def grow_trace(trace: Trace, extra: Integer) -> Trace:
    """The trace with room for `extra` more steps and as many arrivals."""
    steps, arrivals = trace.steps, trace.arrivals
    num_steps, num_arrivals = steps.shape[0], arrivals.shape[0]
    while num_steps < trace.counts[STEPS] + extra:
        num_steps *= 2
    while num_arrivals < trace.counts[ARRIVALS] + extra:
        num_arrivals *= 2
    if num_steps > steps.shape[0]:
        steps = grown(steps, num_steps)
    if num_arrivals > arrivals.shape[0]:
        arrivals = grown(arrivals, num_arrivals)
    return Trace(steps, arrivals, trace.counts)


@njit(**UNCOUNTED)
def add_step(trace: Trace, previous: Integer, label: Integer, frame: Integer) -> np.int64:
    """Append a step and return its index; there must be room."""
    number = trace.counts[STEPS]
    step = trace.steps[number]
    step["previous"], step["label"], step["frame"] = previous, label, frame
    trace.counts[STEPS] = number + 1
    return number


@njit(**UNCOUNTED)
def add_arrival(
    trace: Trace, node: Integer, previous: Integer, label: Integer, cost: float, ln_p: float, second_cost: float
) -> None:
    """Append a path into a node; there must be room."""
    arrival = trace.arrivals[trace.counts[ARRIVALS]]
    arrival["node"], arrival["previous"], arrival["label"] = node, previous, label
    arrival["cost"], arrival["lm"], arrival["bonus"] = cost, ln_p, 0.0 - second_cost  # without a negative 0
    trace.counts[ARRIVALS] += 1


@njit(**UNCOUNTED)
def set_token(tokens: Records, index: Integer, cost: float, slack: float, step: Integer) -> None:
    """Set what a better path changes of a token."""
    token = tokens[np.uint64(index)]
    token["cost"], token["slack"], token["step"] = cost, slack, step


@njit(cache=True, nogil=True)
def nth_smallest(values: Float64Array, count: Integer) -> float:
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
    return values[wanted]  # type: ignore[return-value]  # an index, not an array of them


@njit(cache=True, nogil=True)
def keep_best_tokens(tokens: Records, count: Integer, max_tokens: Integer) -> None:
    """Keep the `max_tokens` tokens of least cost + ahead - slack; of equal ones, the first.  The others cost inf."""
    values = np.empty(count)
    for i in range(count):
        values[i] = tokens[i]["cost"] + tokens[i]["ahead"] - tokens[i]["slack"]
    threshold = nth_smallest(values.copy(), max_tokens)
    room = max_tokens
    for i in range(count):
        room -= values[i] < threshold
    for i in range(count):
        if values[i] > threshold or (values[i] == threshold and room <= 0):
            tokens[i]["cost"] = np.inf
        else:
            room -= values[i] == threshold


@njit(**UNCOUNTED)
def best_of(tokens: Records, num_emitted: Integer, count: Integer) -> Integer:
    """Index of the token of least cost + ahead among the first num_emitted, or among all if none of those is left."""
    best = cheapest(tokens, np.int64(0), num_emitted)  # a literal 0 would compile it twice
    if tokens[best]["cost"] == np.inf:
        best = cheapest(tokens, num_emitted, count)
    return best


@njit(**UNCOUNTED)
def cheapest(tokens: Records, begin: Integer, end: Integer) -> Integer:
    """Index of the token of least cost + ahead among begin .. end-1; of equal ones, the first."""
    best = begin
    for i in range(begin, end):
        if tokens[i]["cost"] + tokens[i]["ahead"] < tokens[best]["cost"] + tokens[best]["ahead"]:
            best = i
    return best
