"""N-gram look-ahead, compiled: the words that can follow each graph state, and their least LM cost (CNTK book 6.1).

Word arcs are numbered by *place*, the order in which a depth-first walk over the graph meets them, so that the words
that can follow a state occupy a range of places.  Where several states lead to the same words (pronunciations with
equal ends), a word gets a second place next to its neighbours there.
"""

from typing import NamedTuple

import numpy as np

from decoder.graph.compiled_graph import GraphArrays
from decoder.lm.language_model import LMArrays, automaton_step
from decoder.search.kernels.token_store import HASH_MULTIPLIER, LOW_32, SENTENCE_OVER
from readers.common.arrays import Float32Array, Float64Array, Int32Array, Int64Array, Integer, Records
from readers.common.kernels import UNCOUNTED, njit

WORD_SET = np.dtype([("low", "i4"), ("high", "i4"), ("least", "f4"), ("graph_cost", "f4")])
HISTORY = np.dtype([("first", "i8"), ("backoff_cost", "f4"), ("backoff_state", "i4")])
CACHE_ENTRY = np.dtype([("key", "i8"), ("cost", "f4"), ("pad", "i4")])  # key: LM state << 32 | word set
CACHE_SIZE = 1 << 18  # a power of two; half as many distinct costs as tokens with 36,000 words, 4 MB per thread
MAX_COPIED = 16  # the most words that are given second places at once
BLOCK = 16  # entries per block minimum
NO_WORD_COST = 1e4  # where no word can follow: loses against any word, but is not taken for a dead token


class LookAhead(NamedTuple):
    """Sets of words that can come next, and the LM's n-grams sorted by the places of their words.

    sets (C,) WORD_SET: the words at places low .. high-1 (none in set 0); `least`: their least cost after the empty
    history (of a single model); graph_cost: the least graph cost up to and including the word, less the look-ahead paid
    there.  state_set (S,) i4: the set of each acceptor state.
    histories (N+1,) HISTORY: the n-grams of LM state s are entries `first` of s to `first` of s+1, by place (E,) i4,
    with cost f4; n-grams of empty histories and of unknown words are left out.  The costs are followed by their block
    minima, see `with_minima`; level holds the offsets.  backoff_cost and backoff_state are those of the model.
    mixed (models, C) f4: `least` for every model of a mixture; unknown (models, C) i4: the id of a model's unknown word
    where it can come next, else -1.  Both are empty when not needed.
    """

    sets: np.ndarray
    state_set: np.ndarray
    histories: np.ndarray
    place: np.ndarray
    cost: np.ndarray
    level: np.ndarray
    mixed: np.ndarray
    unknown: np.ndarray


@njit(cache=True)
def next_words(
    arrays: GraphArrays, num_first: Integer, num_second: Integer
) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array]:
    """(low, high, place_word, order): the word arcs that can follow state s have places low[s] .. high[s]-1.

    The range may hold other words, too, where the right ones are not contiguous.  arrays: GraphArrays; num_first:
    number of word arcs and final states; num_second: the most second places.  place_word (n,) i4: word of each place,
    -1 for the end of the utterance in a final state; order (S,): the states, successors before predecessors.
    All states of a cycle have the same words and are treated together: strongly connected components, by Tarjan,
    Depth-first search and linear graph algorithms, SIAM Journal on Computing 1(2), 1972.
    """
    num_states = arrays.final_cost.shape[0]
    num_places = num_first + num_second
    order = np.empty(num_states, np.int32)
    num_closed = 0
    low, high = np.zeros(num_states, np.int32), np.zeros(num_states, np.int32)
    count: Integer
    place_word = np.empty(num_places, np.int32)
    count = 0
    number = np.full(num_states, -1, np.int32)
    link = np.zeros(num_states, np.int32)
    first_place = np.zeros(num_states, np.int32)
    open_states = np.empty(num_states, np.int32)
    num_open = 0
    walk = np.empty(num_states, np.int32)
    at = np.empty(num_states, np.int64)
    closed = np.zeros(num_states, np.bool_)
    counter = 0
    for root in range(num_states):
        if number[root] >= 0:
            continue
        depth = 0
        walk[0] = root
        while depth >= 0:
            state = walk[depth]
            if number[state] < 0:
                number[state] = link[state] = counter
                counter += 1
                first_place[state] = count
                open_states[num_open] = state
                num_open += 1
                at[depth] = arrays.first_emitting[state]
                for arc in range(arrays.first_word[state], arrays.first_word[state + 1]):
                    place_word[count] = arrays.word_label[arc]
                    count += 1
                if arrays.final_cost[state] < np.inf:
                    place_word[count] = -1
                    count += 1
            if at[depth] < arrays.first_emitting[state + 1]:
                child = arrays.position_exit[arrays.emitting_target[at[depth]]]
                at[depth] += 1
                if number[child] < 0:
                    depth += 1
                    walk[depth] = child
                elif not closed[child]:
                    link[state] = min(link[state], number[child])
                continue
            depth -= 1
            if depth >= 0:
                link[walk[depth]] = min(link[walk[depth]], link[state])
            if link[state] != number[state]:
                continue
            # `state` is the root of a component, whose members are on top of open_states.
            begin = num_open - 1
            while open_states[begin] != state:
                begin -= 1
            for m in range(num_open - 1, begin - 1, -1):  # successors first
                closed[open_states[m]] = True
                order[num_closed] = open_states[m]
                num_closed += 1
            members = open_states[begin:num_open]
            left, right, count = _merge_ranges(
                arrays, members, low, high, first_place[state], place_word, count, num_second
            )
            for member in members:
                low[member] = left
                high[member] = right
            num_open = begin
    return low, high, place_word[:count], order


@njit(cache=True)
def _merge_ranges(
    arrays: GraphArrays,
    members: Int32Array,
    low: Int32Array,
    high: Int32Array,
    fresh: Integer,
    place_word: Int32Array,
    count: Integer,
    num_second: Integer,
) -> tuple[Integer, Integer, Integer]:
    """(low, high, number of places) of states whose own words, and those first met below them, are at places >= fresh.

    Words that were met before are added: by extending the range if they are near, by second places if they are few.
    """
    left, right, total = (fresh, count, count - fresh) if fresh < count else (place_word.shape[0], 0, 0)
    for copying in (False, True):
        before_low = -1
        before_high = -1
        for member in members:
            for arc in range(arrays.first_emitting[member], arrays.first_emitting[member + 1]):
                child = arrays.position_exit[arrays.emitting_target[arc]]
                begin, end = low[child], high[child]
                if begin >= end or begin >= fresh or (begin == before_low and end == before_high):
                    continue
                before_low = begin
                before_high = end
                if copying and end - begin <= MAX_COPIED and count + end - begin <= num_second:
                    for place in range(begin, end):
                        place_word[count] = place_word[place]
                        count += 1
                    left = min(left, count - (end - begin))
                    right = max(right, count)
                else:
                    left = min(left, begin)
                    right = max(right, end)
                    total += end - begin
        if not copying:
            if 4 * (right - left) <= 5 * total:
                break
            left, right = (fresh, count) if fresh < count else (place_word.shape[0], 0)
    return (left, right, count) if left < right else (0, 0, count)


@njit(cache=True)
def least_graph_costs(
    arrays: GraphArrays, lookahead: Float32Array, order: Int32Array, most_rounds: Integer
) -> Float64Array:
    """(S,) f8: least cost of the arcs from each state through its next word arc, less the look-ahead of that word.

    This is what the path still costs in the graph beyond the LM cost of the next word.  Returns an empty array when the
    values still change after most_rounds rounds, which means a cycle of negative cost.
    """
    least = np.full(arrays.final_cost.shape[0], np.inf)
    for _ in range(most_rounds):
        changed = False
        for i in range(order.shape[0]):
            state = order[i]
            best = np.float64(arrays.final_cost[state])
            for arc in range(arrays.first_word[state], arrays.first_word[state + 1]):
                best = min(best, arrays.word_cost[arc] - np.float64(lookahead[arrays.word_label[arc]]))
            for arc in range(arrays.first_emitting[state], arrays.first_emitting[state + 1]):
                target = arrays.position_exit[arrays.emitting_target[arc]]
                best = min(best, arrays.emitting_cost[arc] + least[target])
            if best < least[state]:
                least[state] = best
                changed = True
        if not changed:
            return least
    return np.empty(0)


@njit(cache=True)
def sort_by_place(
    first_arc: Int64Array,
    word: Int32Array,
    cost: Float32Array,
    root: int,
    end: int,
    asked: Int32Array,
    num_words: int,
    counts: Int64Array,
) -> tuple[Int32Array, Float32Array]:
    """(place, cost): the n-grams of LM states root+1 .. end-1, each state's sorted by the places of their words.

    asked (places,) i4: LM word of each place, below num_words, -1 for none; an n-gram occurs once for each place of its
    word.  counts (S,) i8 is filled with the number of entries of each state.
    """
    begin = first_arc[root + 1]
    num_arcs = first_arc[end] - first_arc[root + 1]
    first_of_word = np.zeros(num_words + 2, np.int64)  # counting sort of the n-grams by word
    for arc in range(num_arcs):
        first_of_word[word[begin + arc] + 2] += 1
    for w in range(num_words):
        first_of_word[w + 2] += first_of_word[w + 1]
    arcs = np.empty(num_arcs, np.int32)
    owner = np.empty(num_arcs, np.int32)
    copies = np.zeros(num_words, np.int64)
    for w in asked:
        if w >= 0:
            copies[w] += 1
    for state in range(root + 1, end):
        for arc in range(first_arc[state] - begin, first_arc[state + 1] - begin):
            w = word[begin + arc]
            at = first_of_word[w + 1]
            arcs[at] = arc
            owner[at] = state
            first_of_word[w + 1] += 1
            counts[state] += copies[w]
    cursor = np.empty(end, np.int64)
    total = 0
    for state in range(root + 1, end):
        cursor[state] = total
        total += counts[state]
    places = np.empty(total, np.int32)
    costs = np.empty(total, cost.dtype)
    for place in range(asked.shape[0]):
        w = asked[place]
        if w < 0:
            continue
        for at in range(first_of_word[w], first_of_word[w + 1]):
            entry = cursor[owner[at]]
            places[entry] = place
            costs[entry] = cost[begin + arcs[at]]
            cursor[owner[at]] = entry + 1
    return places, costs


def with_minima(cost: Float32Array, level: Int64Array) -> Float32Array:
    """cost (E,) f4 followed by the minimum of every BLOCK of them, then of every BLOCK of these, and so on.

    Those of step k are at level[k] .. level[k+1]-1.
    """
    table = np.empty(level[-1], np.float32)
    table[: cost.shape[0]] = cost
    for k in range(1, level.shape[0] - 1):
        below = table[level[k - 1] : level[k]]
        table[level[k] : level[k + 1]] = np.minimum.reduceat(below, np.arange(0, below.shape[0], BLOCK))
    return table


@njit(**UNCOUNTED)
def first_at_least(place: Int32Array, begin: Integer, end: Integer, wanted: Integer) -> Integer:
    """Index of the first of the rising entries begin .. end-1 of `place` that is >= wanted, or end."""
    while begin < end:
        middle = (begin + end) >> 1
        if place[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(**UNCOUNTED)
def least_between(table: Float32Array, level: Int64Array, i: Integer, j: Integer) -> float:
    """The least of table[i:j], by a table of `with_minima`."""
    least = np.float32(np.inf)
    for k in range(level.shape[0] - 1):
        last = k == level.shape[0] - 2
        while i < j and (i % BLOCK or last):
            least = min(least, table[level[k] + i])
            i += 1
        while i < j and j % BLOCK:
            j -= 1
            least = min(least, table[level[k] + j])
        if i >= j:
            break
        i //= BLOCK
        j //= BLOCK
    return least  # type: ignore[return-value]  # a float32


@njit(**UNCOUNTED)
def least_cost(
    histories: Records,
    place: Int32Array,
    cost: Float32Array,
    level: Int64Array,
    root: Integer,
    state: Integer,
    low: Integer,
    high: Integer,
) -> tuple[float, float]:
    """The least -ln P(word | state) over the words at places low .. high-1: a lower bound, nearly always exact.

    (For a word that a history lists, the cost by backing off counts, too, if it is less.)
    state: of the automaton whose empty history is `root`; the arrays are those of LookAhead.  The empty history is left
    to the caller: returns (least over the longer histories, sum of back-off costs to add to the least of the empty
    history).
    """
    best = np.inf
    backed_off = 0.0
    while state != root:
        history = histories[state]
        end = histories[state + 1]["first"]
        i = first_at_least(place, history["first"], end, low)  # type: ignore[arg-type]  # a field of one record
        if high - low <= MAX_COPIED:
            while i < end and place[i] < high:
                best = min(best, backed_off + cost[i])
                i += 1
        elif i < end and place[i] < high:
            j = first_at_least(place, i, end, high)  # type: ignore[arg-type]  # as above
            best = min(best, backed_off + least_between(cost, level, i, j))
        backed_off += history["backoff_cost"]
        state = np.int64(history["backoff_state"])
    return best, backed_off


@njit(**UNCOUNTED)
def cache_slot(key: Integer, mask: Integer) -> Integer:
    """Slot of the cache for the key history << 32 | word set; a newer entry overwrites an older one."""
    return np.int64((np.uint64(key) * HASH_MULTIPLIER) >> np.uint64(32)) & mask


@njit(**UNCOUNTED)
def plain_cost_ahead(
    sets: Records,
    histories: Records,
    place: Int32Array,
    cost: Float32Array,
    level: Int64Array,
    lm_scale: float,
    key: Integer,
) -> float:
    """`cost_ahead` of a single model where no unknown word can come next.  Few arrays, since each costs time."""
    history = key >> 32
    words = sets[key & LOW_32]
    low, high = np.int64(words["low"]), np.int64(words["high"])
    if low == high or history == SENTENCE_OVER:
        return 0.0
    best, backed_off = least_cost(histories, place, cost, level, np.int64(0), history, low, high)
    best = min(best, backed_off + words["least"])
    return lm_scale * best + words["graph_cost"] if best < np.inf else NO_WORD_COST


@njit(**UNCOUNTED)
def cost_ahead(ahead: LookAhead, lm: LMArrays, lm_scale: float, key: Integer) -> float:
    """Lower bound of the cost of the next word, less the look-ahead that the graph has charged.

    key: LM state << 32 | number of the word set.  0 where no LM word comes next.
    """
    history = key >> 32
    among = key & LOW_32
    words = ahead.sets[among]
    low, high = np.int64(words["low"]), np.int64(words["high"])
    if low == high or history == SENTENCE_OVER:
        return 0.0
    probability = 0.0
    best = np.inf
    for i in range(max(1, lm.weights.shape[0])):
        root = np.int64(0)
        own = history
        least = np.float64(words["least"])
        weight = 1.0
        if lm.weights.shape[0]:
            root = np.int64(lm.roots[i])
            own = np.int64(lm.history[history, i])
            least = np.float64(ahead.mixed[i, among])
            weight = lm.weights[i]
        best, backed_off = least_cost(ahead.histories, ahead.place, ahead.cost, ahead.level, root, own, low, high)
        best = min(best, backed_off + least)
        if ahead.unknown.shape[0] and ahead.unknown[i, among] >= 0:
            best = min(best, automaton_step(lm, root, own, np.int64(ahead.unknown[i, among]))[0])
        probability += weight * np.exp(-best)
    if lm.weights.shape[0]:
        best = -np.log(probability) if probability > 0 else np.inf
    return lm_scale * best + words["graph_cost"] if best < np.inf else NO_WORD_COST


@njit(**UNCOUNTED, forceinline=True)
def ngram_cost_ahead(ahead: LookAhead, lm: LMArrays, lm_scale: float, key: Integer) -> float:
    """`cost_ahead`, by the shorter function where that is enough."""
    if ahead.mixed.shape[0] + ahead.unknown.shape[0] == 0:
        return plain_cost_ahead(ahead.sets, ahead.histories, ahead.place, ahead.cost, ahead.level, lm_scale, key)
    return cost_ahead(ahead, lm, lm_scale, key)
