"""Which words can come next from each state of a graph, and the least LM cost of any of them (6.1, 6.2), compiled.

Word arcs have *places*: numbers in the order in which a depth-first walk over the graph meets them, so that the words
that can come next from a state stand side by side.  Where several ways lead to the same words (pronunciations with
equal ends), a word gets a second place beside its neighbours there.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from decoder.lm.language_model import automaton_step
from decoder.search.kernels.token_store import HASH_MULTIPLIER, LOW_32, SENTENCE_OVER

WORD_SET = np.dtype([("low", "i4"), ("high", "i4"), ("least", "f4"), ("charged", "f4")])
HISTORY = np.dtype([("first", "i8"), ("backoff_cost", "f4"), ("backoff_state", "i4")])
ANSWER = np.dtype([("key", "i8"), ("cost", "f4"), ("pad", "i4")])  # history << 32 | word set; what it costs
NUM_ANSWERS = 1 << 16  # a power of two
FEW = 16  # words that get second places together
RUN = 16  # numbers in a row whose least is kept
FAR = 1e4  # the cost of "no word after this history": dear enough to lose, not to be taken for a dead token


class LookAhead(NamedTuple):
    """Which LM words can come next, and the n-grams in the order of their places.

    sets (C,): sets of next words, those at places low .. high-1 (none in set 0); `least` of their costs after the empty
    history (of a single model); `charged`: what is to be paid on the way to the word, less what the graph has paid
    ahead.  of_state (S,) i4: the set of each acceptor state.
    histories (N+1,): the n-grams of LM state s are from its `first` to that of s+1, by `place` (E,) i4, with `cost` f4;
    those of empty histories and of unknown words are left out; the costs are followed by their minima, see
    `with_minima`, and level says where.  backoff_cost and backoff_state are the model's.
    mixed (models, C) f4: `least` of every model of a mixture; unknown (models, C) i4: what a model calls unknown words
    where one of those can come next, else -1; both empty where not needed.
    """

    sets: np.ndarray
    of_state: np.ndarray
    histories: np.ndarray
    place: np.ndarray
    cost: np.ndarray
    level: np.ndarray
    mixed: np.ndarray
    unknown: np.ndarray


@njit(cache=True)
def next_words(arrays, num_first, num_second):
    """(low, high, place_word, order): from state s the next word arcs are those at places low[s] .. high[s]-1.

    There may be others among these, where the true ones do not stand side by side.  arrays: GraphArrays; num_first:
    word arcs and final states; num_second: how many second places there may be.  place_word (n,) i4: word of each
    place, -1 for the end of the utterance in a final state; order (S,): states, those that lead nowhere new first.
    What can come next from the states of a circle is the same, so these are dealt with together (Tarjan, Depth-first
    search and linear graph algorithms, 1972).
    """
    num_states, num_places = arrays.final_cost.shape[0], num_first + num_second
    order, num_closed = np.empty(num_states, np.int32), 0
    low, high = np.zeros(num_states, np.int32), np.zeros(num_states, np.int32)
    place_word, count = np.empty(num_places, np.int32), 0
    number, link = np.full(num_states, -1, np.int32), np.zeros(num_states, np.int32)
    first_place = np.zeros(num_states, np.int32)
    open_states, num_open = np.empty(num_states, np.int32), 0
    walk, at = np.empty(num_states, np.int32), np.empty(num_states, np.int64)
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
            # `state` is the first of a circle, or stands alone: its members are on top of open_states.
            begin = num_open - 1
            while open_states[begin] != state:
                begin -= 1
            for m in range(num_open - 1, begin - 1, -1):  # costs come from what was found last
                closed[open_states[m]] = True
                order[num_closed] = open_states[m]
                num_closed += 1
            members = open_states[begin:num_open]
            left, right, count = _join(arrays, members, low, high, first_place[state], place_word, count, num_second)
            for member in members:
                low[member], high[member] = left, right
            num_open = begin
    return low, high, place_word[:count], order


@njit(cache=True)
def _join(arrays, members, low, high, fresh, place_word, count, num_second):
    """(low, high, number of places) of states whose own words, and those first met from them, are at places >= fresh.

    Adds the words that were met before: as they stand if that is near, few of them by second places.
    """
    left, right, total = (fresh, count, count - fresh) if fresh < count else (place_word.shape[0], 0, 0)
    for copying in (False, True):
        before_low, before_high = -1, -1
        for member in members:
            for arc in range(arrays.first_emitting[member], arrays.first_emitting[member + 1]):
                child = arrays.position_exit[arrays.emitting_target[arc]]
                begin, end = low[child], high[child]
                if begin >= end or begin >= fresh or (begin == before_low and end == before_high):
                    continue
                before_low, before_high = begin, end
                if copying and end - begin <= FEW and count + end - begin <= num_second:
                    for place in range(begin, end):
                        place_word[count] = place_word[place]
                        count += 1
                    left, right = min(left, count - (end - begin)), max(right, count)
                else:
                    left, right, total = min(left, begin), max(right, end), total + end - begin
        if not copying:
            if 4 * (right - left) <= 5 * total:
                break
            left, right = (fresh, count) if fresh < count else (place_word.shape[0], 0)
    return (left, right, count) if left < right else (0, 0, count)


@njit(cache=True)
def charges_ahead(arrays, lookahead, order, most_rounds):
    """(S,) f8 least cost of the arcs from each state through its next word arc, less that word's look-ahead.

    What is added to the LM cost of the next word for what is still to be paid on the way to it.  Returns an empty array
    when it has not settled after most_rounds rounds, for then a circle has a negative cost.
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
                least[state], changed = best, True
        if not changed:
            return least
    return np.empty(0)


@njit(cache=True)
def by_place(first_arc, word, cost, root, end, asked, num_words, counts):
    """(place, cost): the arcs of LM states root+1 .. end-1, those of each state in the order of their words' places.

    asked (places,) i4: LM word of each place, below num_words, -1 for none; an arc comes once for each place of its
    word.  counts (S,) i8 is filled with the number of each state's entries.
    """
    begin, num_arcs = first_arc[root + 1], first_arc[end] - first_arc[root + 1]
    first_of_word = np.zeros(num_words + 2, np.int64)  # arcs by their words: a counting sort
    for arc in range(num_arcs):
        first_of_word[word[begin + arc] + 2] += 1
    for w in range(num_words):
        first_of_word[w + 2] += first_of_word[w + 1]
    arcs, owner = np.empty(num_arcs, np.int32), np.empty(num_arcs, np.int32)
    copies = np.zeros(num_words, np.int64)
    for w in asked:
        if w >= 0:
            copies[w] += 1
    for state in range(root + 1, end):
        for arc in range(first_arc[state] - begin, first_arc[state + 1] - begin):
            w = word[begin + arc]
            at = first_of_word[w + 1]
            arcs[at], owner[at] = arc, state
            first_of_word[w + 1] += 1
            counts[state] += copies[w]
    cursor = np.empty(end, np.int64)
    total = 0
    for state in range(root + 1, end):
        cursor[state] = total
        total += counts[state]
    places, costs = np.empty(total, np.int32), np.empty(total, np.float32)
    for place in range(asked.shape[0]):
        w = asked[place]
        if w < 0:
            continue
        for at in range(first_of_word[w], first_of_word[w + 1]):
            entry = cursor[owner[at]]
            places[entry], costs[entry] = place, cost[begin + arcs[at]]
            cursor[owner[at]] = entry + 1
    return places, costs


@njit(cache=True)
def with_minima(cost, level):
    """cost (E,) f4 followed by the least of every RUN of its numbers, of every RUN of these, and so on.

    Those of step k stand at level[k] .. level[k+1]-1.
    """
    table = np.full(level[-1], np.inf, np.float32)
    table[: cost.shape[0]] = cost
    for k in range(1, level.shape[0] - 1):
        for i in range(level[k - 1], level[k]):
            to = level[k] + (i - level[k - 1]) // RUN
            table[to] = min(table[to], table[i])
    return table


@njit(cache=True, nogil=True)
def first_at_least(place, begin, end, wanted):
    """The first of the rising entries begin .. end-1 of `place` that is not below `wanted`, or end."""
    while begin < end:
        middle = (begin + end) >> 1
        if place[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True, nogil=True)
def least_between(table, level, i, j):
    """The least of table[i:j], by a table `with_minima`."""
    least = np.float32(np.inf)
    for k in range(level.shape[0] - 1):
        last = k == level.shape[0] - 2
        while i < j and (i % RUN or last):
            least = min(least, table[level[k] + i])
            i += 1
        while i < j and j % RUN:
            j -= 1
            least = min(least, table[level[k] + j])
        if i >= j:
            break
        i //= RUN
        j //= RUN
    return least


@njit(cache=True, nogil=True)
def least_cost(histories, place, cost, level, root, state, low, high):
    """The least -ln P(word | state) over the words at places low .. high-1; never above it, and seldom below.

    (A word that a history lists is taken with what the shorter histories give it, too, if that is less.)
    state: of the automaton whose empty history is `root`; the arrays are those of LookAhead.  What the empty history
    gives is missing: returns (least of the longer ones, sum of back-off costs to be added to the least of the empty).
    """
    best, backed_off = np.inf, 0.0
    while state != root:
        history = histories[state]
        end = histories[state + 1]["first"]
        i = first_at_least(place, history["first"], end, low)
        if high - low <= FEW:
            while i < end and place[i] < high:
                best = min(best, backed_off + cost[i])
                i += 1
        elif i < end and place[i] < high:
            best = min(best, backed_off + least_between(cost, level, i, first_at_least(place, i, end, high)))
        backed_off += history["backoff_cost"]
        state = np.int64(history["backoff_state"])
    return best, backed_off


@njit(cache=True, nogil=True)
def answer_slot(key, mask):
    """Where the answer to history << 32 | word set stands in a table of mask + 1; newer ones overwrite older ones."""
    return np.int64((np.uint64(key) * HASH_MULTIPLIER) >> np.uint64(32)) & mask


@njit(cache=True, nogil=True)
def plain_cost_ahead(sets, histories, place, cost, level, lm_scale, key):
    """`cost_ahead` of a single model where no unknown word comes next; as few arrays as can be, for they cost time."""
    history, words = key >> 32, sets[key & LOW_32]
    low, high = np.int64(words["low"]), np.int64(words["high"])
    if low == high or history == SENTENCE_OVER:
        return 0.0
    best, backed_off = least_cost(histories, place, cost, level, 0, history, low, high)
    best = min(best, backed_off + words["least"])
    return lm_scale * best + words["charged"] if best < np.inf else FAR


@njit(cache=True, nogil=True)
def cost_ahead(ahead, lm, lm_scale, key):
    """What the next word will cost at least, the look-ahead that the graph has charged taken off.

    key: LM state << 32 | number of the set of words.  0 where no LM word comes next.
    """
    history, among = key >> 32, key & LOW_32
    words = ahead.sets[among]
    low, high = np.int64(words["low"]), np.int64(words["high"])
    if low == high or history == SENTENCE_OVER:
        return 0.0
    probability, best = 0.0, np.inf
    for i in range(max(1, lm.weights.shape[0])):
        root, own, least, weight = np.int64(0), history, np.float64(words["least"]), 1.0
        if lm.weights.shape[0]:
            root, own = np.int64(lm.roots[i]), np.int64(lm.history[history, i])
            least, weight = np.float64(ahead.mixed[i, among]), lm.weights[i]
        best, backed_off = least_cost(ahead.histories, ahead.place, ahead.cost, ahead.level, root, own, low, high)
        best = min(best, backed_off + least)
        if ahead.unknown.shape[0] and ahead.unknown[i, among] >= 0:
            best = min(best, automaton_step(lm, root, own, np.int64(ahead.unknown[i, among]))[0])
        probability += weight * np.exp(-best)
    if lm.weights.shape[0]:
        best = -np.log(probability) if probability > 0 else np.inf
    return lm_scale * best + words["charged"] if best < np.inf else FAR
