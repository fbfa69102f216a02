"""The language model of a search, compiled: n-grams, and a second model that is composed with them on the fly.

Models of classes are n-grams over words before the search begins, and a mixture steps through its models in `lm_step`.
The second model is an automaton of the same form, whose costs add to those of the n-grams and are not scaled; hotwords
are compiled to one (`decoder/search/hotwords.py`).  A token's history is then a pair of an LM state and a state of the
second model.  Pairs with the empty history of the second model keep the number of the LM state; the others are
numbered as the search meets them.

Functions take `second`, which is None in a search without: numba then leaves out what depends on it.
"""

from typing import NamedTuple

import numpy as np

from decoder.lm.language_model import LMArrays, automaton_step, lm_step
from decoder.search.kernels.lookahead import (
    NO_WORD_COST,
    LookAhead,
    cache_slot,
    first_at_least,
    least_between,
    ngram_cost_ahead,
)
from decoder.search.kernels.token_store import HASH_MULTIPLIER, LOW_32, SENTENCE_OVER, grown
from readers.common.arrays import Int32Array, Integer, Records
from readers.common.kernels import UNCOUNTED, njit

KEEP_HISTORY, END_SENTENCE = -1, -2  # what a word arc may have in place of a word of a language model
ROOT = 0  # the empty history of the second model

# due: see SecondLM; first: of the entries of the state, see SecondAhead; backoff_state: that of the automaton.
SECOND_STATE = np.dtype([("due", "f8"), ("first", "i4"), ("backoff_state", "i4")])
PAIR = np.dtype([("lm_state", "i4"), ("second", "i4")])


class SecondAhead(NamedTuple):
    """The words that the second model lists, by the places of LookAhead.

    states (N+1,) SECOND_STATE.  The words that state s lists have the entries first of s to first of s+1 - 1 in
    `place` (E,) i4, rising for each state, and `cost` (E,) f8; those from first of N on are the words that keep the
    state.
    least (2 * models * E + ...,) f4: for each model of a mixture lm_scale times the cost of the entries after the empty
    history, plus `cost`; then for each model the `cost` of the words that it does not know, inf for the others; with
    block minima at the offsets `level` as in LookAhead.
    """

    states: np.ndarray
    place: np.ndarray
    cost: np.ndarray
    least: np.ndarray
    level: np.ndarray


class Pairs(NamedTuple):
    """The pairs of an LM state and a state of the second model that a search has met.

    first: the history of the first pair, which is the number of LM states.  entries (P,) PAIR; table (2^b,) i4: their
    hash table, -1 where empty; num_used (1,) i8.
    """

    first: int
    entries: np.ndarray
    table: np.ndarray
    num_used: np.ndarray


class SecondLM(NamedTuple):
    """An automaton with N states, whose costs are added to those of the n-grams.

    In state s, a word costs `due` of s plus its cost in the automaton, and the end of a sentence `due` alone.  A word
    that no state but the empty history lists costs 0 there.
    automaton: that of a single model, its costs f8.  word (W,) i4: of each word arc of the graph; KEEP_HISTORY costs
    nothing and keeps the state.
    """

    automaton: LMArrays
    word: np.ndarray
    ahead: SecondAhead
    pairs: Pairs


class SearchLM(NamedTuple):
    """The n-grams, those of a mixture included, and the second model, if there is one."""

    ngrams: LMArrays
    second: SecondLM | None


def with_own_pairs(second: SecondLM | None, size: int) -> SecondLM | None:
    """The same model with empty tables of pairs, for one search."""
    if second is None:
        return None
    entries = np.empty(size, PAIR)
    table = np.full(2 * size, -1, np.int32)
    return second._replace(pairs=Pairs(second.pairs.first, entries, table, np.zeros(1, np.int64)))


@njit(**UNCOUNTED, forceinline=True)
def parts_of(second: SecondLM | None, history: Integer) -> tuple[Integer, Integer]:
    """(LM state, state of the second model) of a history."""
    if second is None:
        return history, np.int64(ROOT)
    number = history - second.pairs.first
    if number < 0 or history == SENTENCE_OVER:
        return history, np.int64(ROOT)
    pair = second.pairs.entries[number]
    return np.int64(pair["lm_state"]), np.int64(pair["second"])


@njit(**UNCOUNTED, forceinline=True)
def history_of(second: SecondLM | None, lm_state: Integer, second_state: Integer) -> Integer:
    """The history of an LM state and a state of the second model; there must be room for a pair."""
    if second is None:
        return lm_state
    if second_state == ROOT or lm_state == SENTENCE_OVER:
        return lm_state
    return _pair_of(second.pairs, lm_state, second_state)


@njit(**UNCOUNTED)
def _pair_of(pairs: Pairs, lm_state: Integer, second_state: Integer) -> Integer:
    table = pairs.table
    entries = pairs.entries
    slot = _slot(table, entries, lm_state, second_state)
    if table[slot] < 0:
        number = pairs.num_used[0]
        table[slot] = number
        entries[number]["lm_state"] = lm_state
        entries[number]["second"] = second_state
        pairs.num_used[0] = number + 1
    return pairs.first + np.int64(table[slot])


@njit(**UNCOUNTED)
def _slot(table: Int32Array, entries: Records, lm_state: Integer, second: Integer) -> Integer:
    """Slot of a pair in the hash table, or the free slot for it."""
    mask = table.shape[0] - 1
    slot = np.int64((np.uint64(np.int64(lm_state) << 32 | np.int64(second)) * HASH_MULTIPLIER) >> np.uint64(32)) & mask
    while table[slot] >= 0:
        pair = entries[table[slot]]
        if pair["lm_state"] == lm_state and pair["second"] == second:
            break
        slot = (slot + 1) & mask
    return slot


@njit(**UNCOUNTED)
def room_for_pairs(second: SecondLM | None) -> Integer:
    """How many more pairs fit; as good as any number without a second model."""
    if second is None:
        return np.int64(LOW_32)
    return np.int64(second.pairs.entries.shape[0] - second.pairs.num_used[0])


@njit(cache=True, nogil=True)
def grow_pairs(second: SecondLM | None, extra: Integer) -> SecondLM | None:
    """The second model with room for `extra` more pairs."""
    if second is None:
        return second  # a literal None would make the type optional
    entries = second.pairs.entries
    table = second.pairs.table
    num_used = second.pairs.num_used
    size = entries.shape[0]
    while size < num_used[0] + extra:
        size *= 2
    if size > entries.shape[0]:
        entries = grown(entries, size)
        table = np.full(2 * size, -1, np.int32)
        for i in range(num_used[0]):
            pair = entries[i]
            table[_slot(table, entries, np.int64(pair["lm_state"]), np.int64(pair["second"]))] = i
    return SecondLM(second.automaton, second.word, second.ahead, Pairs(second.pairs.first, entries, table, num_used))


@njit(**UNCOUNTED, forceinline=True)
def ngram_step(ngrams: LMArrays, lm_end: Integer, state: Integer, word: Integer) -> tuple[float, Integer]:
    """(ln P, next state) of the LM word of a word arc; -inf if it is impossible.

    word: or KEEP_HISTORY, END_SENTENCE; lm_end: id of </s>, -1 if the model has none.
    """
    ln_p = 0.0
    following = state
    if word != KEEP_HISTORY:
        if state == SENTENCE_OVER:
            return -np.inf, state
        asked = np.int64(lm_end) if word == END_SENTENCE else word
        if asked >= 0:
            cost, following = lm_step(ngrams, state, asked)
            ln_p = -cost
        if word == END_SENTENCE:
            following = np.int64(SENTENCE_OVER)
    return ln_p, following


@njit(**UNCOUNTED, forceinline=True)
def second_step(second: SecondLM | None, state: Integer, arc: Integer) -> tuple[float, Integer]:
    """(cost, next state) of a word arc of the graph in the second model; the cost of a bonus is negative."""
    if second is None:
        return 0.0, state
    word = np.int64(second.word[arc])
    if word == KEEP_HISTORY:
        return 0.0, state
    cost, following = automaton_step(second.automaton, np.int64(ROOT), state, word)
    return second.ahead.states[state]["due"] + cost, following


@njit(**UNCOUNTED, forceinline=True)
def second_end(second: SecondLM | None, state: Integer) -> float:
    """The cost of ending a sentence in a state of the second model."""
    return 0.0 if second is None else second.ahead.states[state]["due"]


@njit(**UNCOUNTED, forceinline=True)
def cached_cost_ahead(
    ahead: LookAhead, lm: SearchLM, lm_scale: float, cache: Records, history: Integer, word_set: Integer
) -> np.float32:
    """Lower bound of the cost of the next word, less the look-ahead that the graph has charged; 0 if no word is next.

    The cache (2^b,) CACHE_ENTRY nearly always has it; what it lacks is computed by functions that are not inlined,
    since the search itself is faster for being short.
    """
    query = history << 32 | word_set
    slot = np.uint64(cache_slot(query, cache.shape[0] - 1))
    if cache[slot]["key"] != query:
        cache[slot]["key"] = query
        cache[slot]["cost"] = composed_cost_ahead(ahead, lm.ngrams, lm.second, lm_scale, query)
    return cache[slot]["cost"]


@njit(**UNCOUNTED, forceinline=True)
def composed_cost_ahead(
    ahead: LookAhead, ngrams: LMArrays, second: SecondLM | None, lm_scale: float, query: Integer
) -> float:
    """`cached_cost_ahead` without a cache; query: history << 32 | number of word set."""
    if second is None:
        return ngram_cost_ahead(ahead, ngrams, lm_scale, query)
    lm_state, state = parts_of(second, query >> 32)
    return second_cost_ahead(ahead, ngrams, second.ahead, lm_scale, lm_state, state, query & LOW_32)


@njit(**UNCOUNTED)
def second_cost_ahead(
    ahead: LookAhead,
    ngrams: LMArrays,
    second: SecondAhead,
    lm_scale: float,
    lm_state: Integer,
    state: Integer,
    word_set: Integer,
) -> float:
    """The lower bound of n-grams and second model together.

    The next word is one that the state lists or a shorter history of it (for one that several list, each counts), one
    that keeps the state, or any other: then the second model adds what is due, no more.
    """
    words = ahead.sets[word_set]
    if words["first"] == words["end"] or lm_state == SENTENCE_OVER:
        return 0.0
    of_any = ngram_cost_ahead(ahead, ngrams, lm_scale, lm_state << 32 | word_set)
    if of_any == NO_WORD_COST:
        return of_any
    states = second.states
    due = states[state]["due"]
    listed = np.inf
    history = state
    while True:
        begin, end = np.int64(states[history]["first"]), np.int64(states[history + 1]["first"])
        listed = min(listed, least_listed(ahead, ngrams, second, lm_scale, lm_state, word_set, begin, end))
        if history == ROOT:
            break
        history = np.int64(states[history]["backoff_state"])
    least = due + min(of_any, listed + words["graph_cost"])
    if due > 0:  # which a word that keeps the state does not add
        begin, end = np.int64(states[states.shape[0] - 1]["first"]), second.place.shape[0]
        keeping = least_listed(ahead, ngrams, second, lm_scale, lm_state, word_set, begin, end)
        least = min(least, keeping + words["graph_cost"])
    return least


@njit(**UNCOUNTED)
def least_listed(
    ahead: LookAhead,
    ngrams: LMArrays,
    second: SecondAhead,
    lm_scale: float,
    lm_state: Integer,
    word_set: Integer,
    begin: Integer,
    end: Integer,
) -> float:
    """A lower bound of lm_scale * -ln P(word | lm_state) + cost over the entries begin .. end-1 in a word set."""
    words = ahead.sets[word_set]
    least = np.inf
    for number in range(words["first"], words["end"]):
        if begin == end:
            break
        if second.place[begin] < ahead.ranges[number]["high"]:
            begin = first_at_least(second.place, begin, end, np.int64(ahead.ranges[number]["low"]))
            stop = first_at_least(second.place, begin, end, np.int64(ahead.ranges[number]["high"]))
            if begin < stop:
                cost = least_of_entries(ahead, ngrams, second, lm_scale, lm_state, word_set, begin, stop)
                least = min(least, cost)
            begin = stop
    return least


@njit(**UNCOUNTED)
def least_of_entries(
    ahead: LookAhead,
    ngrams: LMArrays,
    second: SecondAhead,
    lm_scale: float,
    lm_state: Integer,
    word_set: Integer,
    begin: Integer,
    end: Integer,
) -> float:
    """The least lm_scale * -ln P(word | lm_state) + cost over the entries begin .. end-1: a lower bound.

    It is nearly always exact, see `least_cost`.  The models of a mixture have their least for different words:
    -ln of the sum of weight * exp(-(-ln P + cost / lm_scale)) is not above it for any word.
    """
    least = np.inf
    total = 1.0  # the sum of weight * exp((least - own) / lm_scale) over the models so far
    num_entries = second.place.shape[0]
    num_models = max(1, ngrams.weights.shape[0])
    for i in range(num_models):
        root = np.int64(0)
        history = np.int64(lm_state)
        weight = 1.0
        if ngrams.weights.shape[0]:
            root = np.int64(ngrams.roots[i])
            history = np.int64(ngrams.history[lm_state, i])
            weight = ngrams.weights[i]
        own = np.inf
        backed_off = 0.0
        at = history
        while at != root:
            listed = ahead.histories[at]["first"]
            listed_end = ahead.histories[at + 1]["first"]
            entry = begin
            # The places in both lists; whichever is behind leaps, since either may be far shorter than the other.
            while listed < listed_end and entry < end:
                if ahead.place[listed] < second.place[entry]:
                    listed = first_at_least(ahead.place, listed, listed_end, second.place[entry])
                elif second.place[entry] < ahead.place[listed]:
                    entry = first_at_least(second.place, entry, end, ahead.place[listed])
                else:
                    if ahead.cost[listed] < np.inf:
                        own = min(own, lm_scale * (backed_off + ahead.cost[listed]) + second.cost[entry])
                    listed += 1
                    entry += 1
            backed_off += ahead.histories[at]["backoff_cost"]
            at = np.int64(ahead.histories[at]["backoff_state"])
        if backed_off < np.inf:
            first = i * num_entries
            of_root = least_between(second.least, second.level, first + begin, first + end)
            own = min(own, lm_scale * backed_off + of_root)
        if ahead.unknown.shape[0] and ahead.unknown[i, word_set] >= 0:
            cost, _ = automaton_step(ngrams, root, history, np.int64(ahead.unknown[i, word_set]))
            if cost < np.inf:
                first = (num_models + i) * num_entries
                of_unknown = least_between(second.least, second.level, first + begin, first + end)
                own = min(own, lm_scale * cost + of_unknown)
        if lm_scale == 0 or num_models == 1:
            least = min(least, own)
        elif own < least:
            total = weight + total * np.exp((own - least) / lm_scale)
            least = own
        elif own < np.inf:
            total += weight * np.exp((least - own) / lm_scale)
    return least - lm_scale * np.log(total) if least < np.inf else least
