"""Hotwords in the search, compiled: bonuses for phrases, composed on the fly with the language model.

The phrases form a trie whose nodes have failure links (Aho and Corasick, Efficient string matching, Communications of
the ACM 18(6), 1975).  A token's history is then a pair of an LM state and a node.  Pairs with the root, where no phrase
has begun, keep the number of the LM state; the others are numbered as the search meets them.

Kernels take `hotwords`, which is None in a search without: numba then compiles them without these branches.
"""

from typing import NamedTuple

import numpy as np

from decoder.lm.language_model import LMArrays, automaton_step
from decoder.search.kernels.lookahead import (
    NO_WORD_COST,
    LookAhead,
    cost_ahead,
    first_at_least,
    least_between,
    plain_cost_ahead,
)
from decoder.search.kernels.token_store import HASH_MULTIPLIER, LOW_32, SENTENCE_OVER, grown
from readers.common.arrays import Int32Array, Integer, Records
from readers.common.kernels import UNCOUNTED, njit

# symbol: word that leads to the node; first_child, first_entry: see Hotwords; failure: node of the longest proper
# suffix; held: bonus of the best phrase that has begun; gain: the same and the bonuses of all phrases that end here.
NODE = np.dtype([(name, "i4") for name in ("symbol", "first_child", "failure", "first_entry")] + [("held", "f8")])
NODE = np.dtype([*NODE.descr, ("gain", "f8")])
PAIR = np.dtype([("lm", "i4"), ("node", "i4")])
ROOT = 0
OTHER_WORD, NO_WORD = -1, -2  # symbols of words in no phrase, and of word arcs that a phrase may have between its words


class Hotwords(NamedTuple):
    """Phrases as an automaton over words, and the pairs that a search has met.

    symbol (W,) i4: of each word arc of the graph.  nodes (N+1,) NODE, in order of their parents and symbols: the
    children of node n are first_child of n to first_child of n+1 - 1.  The words that may follow node n in a phrase
    have the entries first_entry of n to first_entry of n+1 - 1 in `place` (E,) i4, rising for each node (see LookAhead)
    and `gain` (E,) f8, that of the child; the entries from first_entry of N are words that a phrase may have between
    its own.  least (2 * models * E + ...,) f4: for each model of a mixture lm_scale times the cost of the entries after
    the empty history, less the gain; then for each model minus the gain of the words that it does not know, inf for the
    others; with block minima at the offsets `level` as in LookAhead.
    first_pair: number of the first pair, which is the number of LM states.  pairs (P,) PAIR; table (2^b,) i4: their
    hash table, -1 where empty; count (1,) i8: pairs in use.
    """

    symbol: np.ndarray
    nodes: np.ndarray
    place: np.ndarray
    gain: np.ndarray
    least: np.ndarray
    level: np.ndarray
    first_pair: int
    pairs: np.ndarray
    table: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # the method of tuples is not used


def with_own_pairs(hotwords: Hotwords | None, size: int) -> Hotwords | None:
    """The same phrases with empty tables of pairs, for one search."""
    if hotwords is None:
        return None
    return hotwords._replace(
        pairs=np.empty(size, PAIR), table=np.full(2 * size, -1, np.int32), count=np.zeros(1, np.int64)
    )


@njit(**UNCOUNTED)
def parts_of(hotwords: Hotwords, history: Integer) -> tuple[Integer, Integer]:
    """(LM state, node) of a history."""
    pair = history - hotwords.first_pair
    if pair < 0 or history == SENTENCE_OVER:
        return history, np.int64(ROOT)
    return np.int64(hotwords.pairs[pair]["lm"]), np.int64(hotwords.pairs[pair]["node"])


@njit(**UNCOUNTED)
def pair_of(hotwords: Hotwords, lm_state: Integer, node: Integer) -> Integer:
    """The history of an LM state and a node; there must be room for a pair."""
    if node == ROOT or lm_state == SENTENCE_OVER:
        return lm_state
    table, pairs = hotwords.table, hotwords.pairs
    slot = _slot(table, pairs, lm_state, node)
    if table[slot] < 0:
        count = hotwords.count[0]
        table[slot] = count
        pairs[count]["lm"], pairs[count]["node"] = lm_state, node
        hotwords.count[0] = count + 1
    return hotwords.first_pair + np.int64(table[slot])


@njit(**UNCOUNTED)
def _slot(table: Int32Array, pairs: Records, lm_state: Integer, node: Integer) -> Integer:
    """Slot of a pair in the hash table, or the free slot for it."""
    mask = table.shape[0] - 1
    slot = np.int64((np.uint64(np.int64(lm_state) << 32 | np.int64(node)) * HASH_MULTIPLIER) >> np.uint64(32)) & mask
    while table[slot] >= 0 and (pairs[table[slot]]["lm"] != lm_state or pairs[table[slot]]["node"] != node):
        slot = (slot + 1) & mask
    return slot


@njit(**UNCOUNTED)
def room_for_pairs(hotwords: Hotwords | None) -> Integer:
    """How many more pairs fit; as good as any number without hotwords."""
    if hotwords is None:
        return np.int64(LOW_32)
    return np.int64(hotwords.pairs.shape[0] - hotwords.count[0])


@njit(cache=True, nogil=True)
def grow_pairs(hotwords: Hotwords | None, extra: Integer) -> Hotwords | None:
    """The hotwords with room for `extra` more pairs."""
    if hotwords is None:
        return hotwords  # a literal None would make the type optional
    symbol, nodes, place, gain, least, level, first_pair, pairs, table, count = hotwords
    size = pairs.shape[0]
    while size < count[0] + extra:
        size *= 2
    if size > pairs.shape[0]:
        pairs = grown(pairs, size)
        table = np.full(2 * size, -1, np.int32)
        for i in range(count[0]):
            table[_slot(table, pairs, np.int64(pairs[i]["lm"]), np.int64(pairs[i]["node"]))] = i
    return Hotwords(symbol, nodes, place, gain, least, level, first_pair, pairs, table, count)


@njit(**UNCOUNTED)
def hotword_step(hotwords: Hotwords, node: Integer, arc: Integer) -> tuple[float, Integer]:
    """(bonus, next node) of a word arc: what its phrases gain, less what was paid for one that does not go on."""
    nodes, symbol = hotwords.nodes, hotwords.symbol[arc]
    if symbol == NO_WORD:
        return 0.0, node
    reached = np.int64(ROOT)
    if symbol >= 0:
        at = node
        while True:
            begin, end = np.int64(nodes[at]["first_child"]), np.int64(nodes[at + 1]["first_child"])
            stop = end
            while begin < end:
                middle = (begin + end) >> 1
                if nodes[middle]["symbol"] < symbol:
                    begin = middle + 1
                else:
                    end = middle
            if begin < stop and nodes[begin]["symbol"] == symbol:
                reached = begin
                break
            if at == ROOT:
                break
            at = np.int64(nodes[at]["failure"])
    return nodes[reached]["gain"] - nodes[node]["held"], reached


@njit(**UNCOUNTED)
def held_bonus(hotwords: Hotwords | None, history: Integer) -> float:
    """The bonus of phrases that have begun, which the end of the sentence takes back."""
    if hotwords is None:
        return 0.0
    _, node = parts_of(hotwords, history)
    return hotwords.nodes[node]["held"]


@njit(**UNCOUNTED)
def hotword_cost_ahead(ahead: LookAhead, lm: LMArrays, hotwords: Hotwords, lm_scale: float, key: Integer) -> float:
    """`cost_ahead` less the bonus of the next word, a lower bound, too.  key: history << 32 | number of word set."""
    among = key & LOW_32
    words, (state, node) = ahead.sets[among], parts_of(hotwords, key >> 32)
    low, high = np.int64(words["low"]), np.int64(words["high"])
    if low == high or state == SENTENCE_OVER:
        return 0.0
    nodes = hotwords.nodes
    own_key = state << 32 | among
    if ahead.mixed.shape[0] + ahead.unknown.shape[0] == 0:
        least = plain_cost_ahead(ahead.sets, ahead.histories, ahead.place, ahead.cost, ahead.level, lm_scale, own_key)
    else:
        least = cost_ahead(ahead, lm, lm_scale, own_key)
    if least == NO_WORD_COST:
        return least
    best, at, held = np.inf, node, nodes[node]["held"]
    while True:
        begin, end = np.int64(nodes[at]["first_entry"]), np.int64(nodes[at + 1]["first_entry"])
        best = min(best, _least_entry(ahead, lm, hotwords, lm_scale, state, among, begin, end))
        if at == ROOT:
            break
        at = np.int64(nodes[at]["failure"])
    best = held + min(least, best + words["graph_cost"])
    if held > 0:  # which a word that is not written does not take back
        begin, end = np.int64(nodes[nodes.shape[0] - 1]["first_entry"]), hotwords.place.shape[0]
        unwritten = _least_entry(ahead, lm, hotwords, lm_scale, state, among, begin, end)
        best = min(best, unwritten + words["graph_cost"])
    return best


@njit(**UNCOUNTED)
def _least_entry(
    ahead: LookAhead,
    lm: LMArrays,
    hotwords: Hotwords,
    lm_scale: float,
    state: Integer,
    among: Integer,
    begin: Integer,
    end: Integer,
) -> float:
    """The least lm_scale * -ln P(word | state) - gain over the entries begin .. end-1 in a word set: a lower bound.

    It is nearly always exact, see `least_cost`.  The models of a mixture have their least for different words:
    -ln of the sum of weight * exp(-cost + gain / lm_scale) is not above it for any word.
    """
    low, high = np.int64(ahead.sets[among]["low"]), np.int64(ahead.sets[among]["high"])
    begin = first_at_least(hotwords.place, begin, end, low)
    end = first_at_least(hotwords.place, begin, end, high)
    least, total = np.inf, 1.0  # of lm_scale * cost - gain, and the sum of weight * exp((least - own) / lm_scale)
    if begin == end:
        return least
    num_entries, num_models = hotwords.place.shape[0], max(1, lm.weights.shape[0])
    for i in range(num_models):
        root, history, weight = np.int64(0), np.int64(state), 1.0
        if lm.weights.shape[0]:
            root, history, weight = np.int64(lm.roots[i]), np.int64(lm.history[state, i]), lm.weights[i]
        own, backed_off, at = np.inf, 0.0, history
        while at != root:
            listed, listed_end = ahead.histories[at]["first"], ahead.histories[at + 1]["first"]
            listed = first_at_least(ahead.place, listed, listed_end, low)
            entry = begin
            while listed < listed_end and entry < end:  # the places in both lists
                if ahead.place[listed] < hotwords.place[entry]:
                    listed = first_at_least(ahead.place, listed, listed_end, hotwords.place[entry])
                elif hotwords.place[entry] < ahead.place[listed]:
                    entry = first_at_least(hotwords.place, entry, end, ahead.place[listed])
                else:
                    if ahead.cost[listed] < np.inf:
                        own = min(own, lm_scale * (backed_off + ahead.cost[listed]) - hotwords.gain[entry])
                    listed += 1
                    entry += 1
            backed_off += ahead.histories[at]["backoff_cost"]
            at = np.int64(ahead.histories[at]["backoff_state"])
        if backed_off < np.inf:
            first = i * num_entries
            of_root = least_between(hotwords.least, hotwords.level, first + begin, first + end)
            own = min(own, lm_scale * backed_off + of_root)
        if ahead.unknown.shape[0] and ahead.unknown[i, among] >= 0:
            cost, _ = automaton_step(lm, root, history, np.int64(ahead.unknown[i, among]))
            if cost < np.inf:
                first = (num_models + i) * num_entries
                gained = least_between(hotwords.least, hotwords.level, first + begin, first + end)
                own = min(own, lm_scale * cost + gained)
        if lm_scale == 0 or num_models == 1:
            least = min(least, own)
        elif own < least:
            total = weight + total * np.exp((own - least) / lm_scale)
            least = own
        elif own < np.inf:
            total += weight * np.exp((least - own) / lm_scale)
    return least - lm_scale * np.log(total) if least < np.inf else least
