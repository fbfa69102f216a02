"""N-gram look-ahead, compiled: the words that can follow each graph state, and their least LM cost (CNTK book 6.1).

Words are numbered by *place*, the order in which a depth-first walk over the graph meets them, so that the words that
can follow a state are one range of places in a tree, and a few ranges where several states lead to the same words:
second pronunciations, words of one phone in every context.

References
----------
Allauzen, Riley and Schalkwyk, A generalized composition algorithm for weighted finite-state transducers, Interspeech
2009, number the labels in this way for their reachability tests.
"""

from typing import NamedTuple

import numpy as np

from decoder.graph.compiled_graph import GraphArrays
from decoder.lm.language_model import LMArrays, automaton_step
from decoder.search.kernels.token_store import HASH_MULTIPLIER, LOW_32, SENTENCE_OVER, grown
from readers.common.arrays import Float32Array, Float64Array, Int32Array, Int64Array, Integer, Records
from readers.common.kernels import UNCOUNTED, njit

RANGE = np.dtype([("low", "i4"), ("high", "i4")])
WORD_SET = np.dtype([("first", "i4"), ("end", "i4"), ("least", "f4"), ("graph_cost", "f4")])
HISTORY = np.dtype([("first", "i8"), ("backoff_cost", "f4"), ("backoff_state", "i4")])
CACHE_ENTRY = np.dtype([("key", "i8"), ("cost", "f4"), ("pad", "i4")])  # key: LM state << 32 | word set
CACHE_SIZE = 1 << 18  # a power of two; half as many distinct costs as tokens with 36,000 words, 4 MB per thread
MAX_SCANNED = 16  # the widest range of places whose n-grams are compared one by one
BLOCK = 16  # entries per block minimum
NO_WORD_COST = 1e4  # where no word can follow: loses against any word, but is not taken for a dead token


class LookAhead(NamedTuple):
    """Sets of words that can come next, and the LM's n-grams sorted by the places of their words.

    sets (C,) WORD_SET: the words whose places are in the ranges first .. end-1 (none in set 0); `least`: their least
    cost after the empty history (of a single model); graph_cost: the least graph cost up to and including the word,
    less the look-ahead paid there.  ranges (R,) RANGE: places low .. high-1; those of a set rise and do not touch.
    state_set (S,) i4: the set of each acceptor state.
    histories (N+1,) HISTORY: the n-grams of LM state s are entries `first` of s to `first` of s+1, by place (E,) i4,
    with cost f4; n-grams of empty histories and of unknown words are left out.  The costs are followed by their block
    minima, see `with_minima`; level holds the offsets.  backoff_cost and backoff_state are those of the model.
    mixed (models, C) f4: `least` for every model of a mixture; unknown (models, C) i4: the id of a model's unknown word
    where it can come next, else -1.  Both are empty when not needed.
    is_sum: whether the tables hold -ln of sums of probabilities in place of least costs, see `joined`.
    """

    sets: np.ndarray
    ranges: np.ndarray
    state_set: np.ndarray
    histories: np.ndarray
    place: np.ndarray
    cost: np.ndarray
    level: np.ndarray
    mixed: np.ndarray
    unknown: np.ndarray
    is_sum: bool


@njit(cache=True)
def next_words(
    arrays: GraphArrays, num_words: Integer, epsilon: Integer
) -> tuple[Int32Array, Int32Array, Records, Int32Array, Int32Array]:
    """(state_list, first, ranges, place_word, order): the words that can follow each state, exactly.

    Those of state s have the places in the ranges first[l] .. first[l+1]-1 for l = state_list[s].  ranges (R,) RANGE:
    see LookAhead.  Several lists may be equal.  num_words: of the graph.  place_word (n,) i4: word of each place, -1
    for the end of the utterance in a final state; order (S,): the states, successors before predecessors.
    epsilon: the word that stands for none, num_words if there is none: the words that can follow are those behind it.
    All states of a cycle have the same words and are treated together: strongly connected components, by Tarjan,
    Depth-first search and linear graph algorithms, SIAM Journal on Computing 1(2), 1972.
    """
    num_states = arrays.final_cost.shape[0]
    order = np.empty(num_states, np.int32)
    num_closed = 0
    place_word = np.empty(num_words + 1, np.int32)
    num_places = 0
    place_of = np.full(num_words + 1, -1, np.int32)  # of each word; the last one is the end, -1
    state_list = np.full(num_states, -1, np.int32)  # -1 while the component is open
    first = np.zeros(num_states + 1, np.int32)
    num_lists = 0
    ranges = np.empty(1024, RANGE)
    united = np.empty(num_words + 2, RANGE)
    number = np.full(num_states, -1, np.int32)
    link = np.zeros(num_states, np.int32)
    open_states = np.empty(num_states, np.int32)
    num_open = 0
    walk = np.empty(num_states, np.int32)
    at = np.empty(num_states, np.int64)
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
                open_states[num_open] = state
                num_open += 1
                at[depth] = 0
                # A word gets its place before those below the state, so that they stand side by side.
                num_arcs = arrays.first_word[state + 1] - arrays.first_word[state]
                for i in range(num_arcs + (arrays.final_cost[state] < np.inf)):
                    word = arrays.word_label[arrays.first_word[state] + i] if i < num_arcs else -1
                    if word != epsilon and place_of[word] < 0:
                        place_of[word] = num_places
                        place_word[num_places] = word
                        num_places += 1
            if at[depth] < _num_arcs(arrays, state):
                child = _state_behind(arrays, state, at[depth], epsilon)
                at[depth] += 1
                if child < 0:
                    continue
                if number[child] < 0:
                    depth += 1
                    walk[depth] = child
                elif state_list[child] < 0:
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
            size = _unite(arrays, open_states[begin:num_open], epsilon, place_of, state_list, first, ranges, united)
            end = first[num_lists] + size
            if end > ranges.shape[0]:
                ranges = grown(ranges, 2 * end)
            for i in range(size):
                ranges[end - size + i] = united[i]
            for m in range(num_open - 1, begin - 1, -1):  # successors first
                state_list[open_states[m]] = num_lists
                order[num_closed] = open_states[m]
                num_closed += 1
            num_lists += 1
            first[num_lists] = end
            num_open = begin
    return state_list, first[: num_lists + 1], ranges[: first[num_lists]], place_word[:num_places], order


@njit(**UNCOUNTED)
def _num_arcs(arrays: GraphArrays, state: Integer) -> Integer:
    """Return the number of arcs from a state, of both kinds."""
    num_emitting = arrays.first_emitting[state + 1] - arrays.first_emitting[state]
    return num_emitting + arrays.first_word[state + 1] - arrays.first_word[state]


@njit(**UNCOUNTED)
def _state_behind(arrays: GraphArrays, state: Integer, number: Integer, epsilon: Integer) -> Integer:
    """Return the state behind an arc of a state, -1 if a word is on it; emitting arcs have the lower numbers."""
    num_emitting = arrays.first_emitting[state + 1] - arrays.first_emitting[state]
    if number < num_emitting:
        return np.int64(arrays.position_exit[arrays.emitting_target[arrays.first_emitting[state] + number]])
    arc = arrays.first_word[state] + number - num_emitting
    return np.int64(arrays.word_target[arc] if arrays.word_label[arc] == epsilon else -1)


@njit(**UNCOUNTED)
def _unite(
    arrays: GraphArrays,
    members: Int32Array,
    epsilon: Integer,
    place_of: Int32Array,
    state_list: Int32Array,
    first: Int32Array,
    ranges: Records,
    united: Records,
) -> Integer:
    """Write the ranges of the words that can follow the states of a component to `united`; return their number."""
    size: Integer
    size = np.int64(0)
    for state in members:
        for arc in range(arrays.first_word[state], arrays.first_word[state + 1]):
            if arrays.word_label[arc] != epsilon:
                place = np.int64(place_of[arrays.word_label[arc]])
                size = _add_range(united, size, place, place + 1)
        if arrays.final_cost[state] < np.inf:
            place = np.int64(place_of[-1])
            size = _add_range(united, size, place, place + 1)
        before = -1
        for arc in range(_num_arcs(arrays, state)):
            child = _state_behind(arrays, state, np.int64(arc), epsilon)
            number = state_list[child] if child >= 0 else -1
            if number >= 0 and number != before:
                for i in range(first[number], first[number + 1]):
                    size = _add_range(united, size, np.int64(ranges[i]["low"]), np.int64(ranges[i]["high"]))
                before = number
    return size


@njit(**UNCOUNTED)
def _add_range(united: Records, size: Integer, low: Integer, high: Integer) -> Integer:
    """Add the places low .. high-1 to the rising ranges united[:size], which do not touch; return their number."""
    begin: Integer
    begin = np.int64(0)
    end = size
    while begin < end:
        middle = (begin + end) >> 1
        if united[middle]["high"] < low:
            begin = middle + 1
        else:
            end = middle
    while end < size and united[end]["low"] <= high:  # ranges begin .. end-1 become one with the new one
        low = min(low, np.int64(united[end]["low"]))
        high = max(high, np.int64(united[end]["high"]))
        end += 1
    if end == begin:
        for i in range(size, begin, -1):
            united[i] = united[i - 1]
    elif end > begin + 1:
        for i in range(end, size):
            united[begin + 1 + i - end] = united[i]
    united[begin]["low"] = low
    united[begin]["high"] = high
    return size + 1 - (end - begin)


@njit(cache=True)
def least_graph_costs(
    arrays: GraphArrays, lookahead: Float32Array, epsilon: Integer, order: Int32Array, most_rounds: Integer
) -> Float64Array:
    """(S,) f8: least cost of the arcs from each state through its next word arc, less the look-ahead of that word.

    This is what the path still costs in the graph beyond the LM cost of the next word; arcs of `epsilon`, see
    `next_words`, lie on the way to it.  Returns an empty array when the values still change after most_rounds rounds,
    which means a cycle of negative cost.
    """
    least = np.full(arrays.final_cost.shape[0], np.inf)
    for _ in range(most_rounds):
        changed = False
        for i in range(order.shape[0]):
            state = order[i]
            best = np.float64(arrays.final_cost[state])
            for arc in range(arrays.first_word[state], arrays.first_word[state + 1]):
                label = arrays.word_label[arc]
                rest = least[arrays.word_target[arc]] if label == epsilon else -np.float64(lookahead[label])
                best = min(best, arrays.word_cost[arc] + rest)
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


def with_minima(cost: Float32Array, level: Int64Array, is_sum: bool = False) -> Float32Array:
    """cost (E,) f4 followed by the minimum of every BLOCK of them, then of every BLOCK of these, and so on.

    Those of step k are at level[k] .. level[k+1]-1.  is_sum: sums of probabilities in place of minima, see `joined`.
    """
    table = np.empty(level[-1], np.float32)
    table[: cost.shape[0]] = cost
    for k in range(1, level.shape[0] - 1):
        below = table[level[k - 1] : level[k]]
        first = np.arange(0, below.shape[0], BLOCK)
        of_blocks = -np.logaddexp.reduceat(-below, first) if is_sum else np.minimum.reduceat(below, first)
        table[level[k] : level[k + 1]] = of_blocks
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


@njit(**UNCOUNTED, forceinline=True)
def joined(cost: float, other: float, is_sum: bool) -> float:
    """The cost of two sets of words together: the lesser cost, or -ln of the sum of the probabilities."""
    least = min(cost, other)
    if not is_sum or least == np.inf:
        return least
    return least - np.log1p(np.exp(least - max(cost, other)))


@njit(**UNCOUNTED)
def least_between(table: Float32Array, level: Int64Array, i: Integer, j: Integer, is_sum: bool = False) -> float:
    """The least of table[i:j], or -ln of the sum of the probabilities, by a table of `with_minima`."""
    least = np.inf
    for k in range(level.shape[0] - 1):
        last = k == level.shape[0] - 2
        while i < j and (i % BLOCK or last):
            least = joined(least, np.float64(table[level[k] + i]), is_sum)
            i += 1
        while i < j and j % BLOCK:
            j -= 1
            least = joined(least, np.float64(table[level[k] + j]), is_sum)
        if i >= j:
            break
        i //= BLOCK
        j //= BLOCK
    return least


@njit(**UNCOUNTED)
def least_cost(
    histories: Records,
    place: Int32Array,
    cost: Float32Array,
    level: Int64Array,
    root: Integer,
    state: Integer,
    ranges: Records,
    first: Integer,
    end: Integer,
    is_sum: bool,
) -> tuple[float, float]:
    """The least -ln P(word | state) over the words in ranges first .. end-1: a lower bound, nearly always exact.

    (For a word that a history lists, the cost by backing off counts, too: if it is less, or as another summand.)
    state: of the automaton whose empty history is `root`; the arrays are those of LookAhead.  The empty history is left
    to the caller: returns (least over the longer histories, sum of back-off costs to add to the least of the empty
    history).
    """
    best = np.inf
    backed_off = 0.0
    i: Integer
    while state != root:
        history = histories[state]
        stop = np.int64(histories[state + 1]["first"])
        i = np.int64(history["first"])
        for number in range(first, end):
            if i == stop:
                break
            high = np.int64(ranges[number]["high"])
            if place[i] >= high:  # no search for ranges between two words, since most histories list few
                continue
            low = np.int64(ranges[number]["low"])
            i = first_at_least(place, i, stop, low)
            if high - low <= MAX_SCANNED:
                while i < stop and place[i] < high:
                    best = joined(best, backed_off + float(cost[i]), is_sum)
                    i += 1
            elif i < stop and place[i] < high:
                j = first_at_least(place, i, stop, high)
                best = joined(best, backed_off + least_between(cost, level, i, j, is_sum), is_sum)
                i = j
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
    ranges: Records,
    histories: Records,
    place: Int32Array,
    cost: Float32Array,
    level: Int64Array,
    is_sum: bool,
    lm_scale: float,
    key: Integer,
) -> float:
    """`cost_ahead` of a single model where no unknown word can come next.  Few arrays, since each costs time."""
    history = key >> 32
    words = sets[key & LOW_32]
    first, end = np.int64(words["first"]), np.int64(words["end"])
    if first == end or history == SENTENCE_OVER:
        return 0.0
    best, backed_off = least_cost(histories, place, cost, level, np.int64(0), history, ranges, first, end, is_sum)
    best = joined(best, backed_off + np.float64(words["least"]), is_sum)
    return lm_scale * best + words["graph_cost"] if best < np.inf else NO_WORD_COST


@njit(**UNCOUNTED)
def cost_ahead(ahead: LookAhead, lm: LMArrays, lm_scale: float, key: Integer) -> float:
    """Lower bound of the cost of the next word, less the look-ahead that the graph has charged.

    key: LM state << 32 | number of the word set.  0 where no LM word comes next.
    """
    history = key >> 32
    among = key & LOW_32
    words = ahead.sets[among]
    first, end = np.int64(words["first"]), np.int64(words["end"])
    if first == end or history == SENTENCE_OVER:
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
        best, backed_off = least_cost(
            *(ahead.histories, ahead.place, ahead.cost, ahead.level, root, own, ahead.ranges, first, end),
            ahead.is_sum,
        )
        best = joined(best, backed_off + least, ahead.is_sum)
        if ahead.unknown.shape[0] and ahead.unknown[i, among] >= 0:
            of_unknown = automaton_step(lm, root, own, np.int64(ahead.unknown[i, among]))[0]
            best = joined(best, of_unknown, ahead.is_sum)
        probability += weight * np.exp(-best)
    if lm.weights.shape[0]:
        best = -np.log(probability) if probability > 0 else np.inf
    return lm_scale * best + words["graph_cost"] if best < np.inf else NO_WORD_COST


@njit(**UNCOUNTED, forceinline=True)
def ngram_cost_ahead(ahead: LookAhead, lm: LMArrays, lm_scale: float, key: Integer) -> float:
    """`cost_ahead`, by the shorter function where that is enough."""
    if ahead.mixed.shape[0] + ahead.unknown.shape[0] == 0:
        return plain_cost_ahead(
            *(ahead.sets, ahead.ranges, ahead.histories, ahead.place, ahead.cost, ahead.level, ahead.is_sum),
            *(lm_scale, key),
        )
    return cost_ahead(ahead, lm, lm_scale, key)
