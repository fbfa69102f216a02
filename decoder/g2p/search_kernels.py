"""The search for the most probable pronunciations of words, with an n-gram model of graphones and a network of tags.

A token stands for all sequences of graphones of the first letters of a word that give the same phones and end in the
same history of the n-gram model: its probability is their sum.  Strings of phones are nodes of a trie, so that equal
strings have equal numbers.  Tokens behind the same letter compete.
"""

from typing import NamedTuple

import numpy as np

from decoder.lm.language_model import LMArrays, automaton_step
from readers.common.arrays import Float32Array, Float64Array, Int32Array, Int64Array, Integer
from readers.common.kernels import njit

CAPACITY = 1 << 13  # tokens behind the same letter; further ones are dropped


class Weighed(NamedTuple):
    """What is added to the costs of the n-gram model: those of the tags of a network, and the weight of the former.

    Attributes
    ----------
    ngram_weight : float
    costs : (letters, tags) array, float32
        Of all words, one after the other, times the weight of the network.
    tag_of : (V,) array, int32
        Tag of each graphone.
    """

    ngram_weight: float
    costs: Float32Array
    tag_of: Int32Array


@njit(cache=True, nogil=True)
def _slot(table: Int32Array, first: Int32Array, second: Int32Array, one: Integer, two: Integer) -> Integer:
    """Where the pair (one, two) stands in an open-addressing table of indices into (first, second), or could be put."""
    mask = table.shape[0] - 1
    key = (np.uint64(one) << np.uint64(32)) | np.uint64(two)
    at = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while table[at] >= 0 and (first[table[at]] != one or second[table[at]] != two):
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def _add(a: float, b: float) -> float:
    """-ln(exp(-a) + exp(-b))."""
    low, high = min(a, b), max(a, b)
    return low - np.log1p(np.exp(low - high))


@njit(cache=True, nogil=True)
def _push(
    tokens: Int32Array,
    costs: Float64Array,
    table: Int32Array,
    counts: Int64Array,
    best: Float64Array,
    r: int,
    state: Integer,
    node: Integer,
    cost: float,
) -> None:
    """Add a token to those of side r, or its probability to the token that is there."""
    at = _slot(table[r], tokens[r, 0], tokens[r, 1], state, node)
    token = table[r, at]
    if token < 0:
        token = counts[r]
        table[r, at] = token
        tokens[r, 0, token] = state
        tokens[r, 1, token] = node
        tokens[r, 2, token] = at
        costs[r, token] = cost
        counts[r] += 1
    else:
        costs[r, token] = _add(costs[r, token], cost)
    best[r] = min(best[r], costs[r, token])


@njit(cache=True, nogil=True)
def _child(
    trie: Int32Array, trie_table: Int32Array, num_nodes: int, node: Integer, phone: Integer
) -> tuple[Integer, int]:
    """(number of the node behind `node` and a phone, number of nodes): it is made if it is not there."""
    at = _slot(trie_table, trie[0], trie[1], node, phone)
    if trie_table[at] < 0:
        trie_table[at] = num_nodes
        trie[0, num_nodes] = node
        trie[1, num_nodes] = phone
        trie[2, num_nodes] = at
        num_nodes += 1
    return np.int64(trie_table[at]), num_nodes


@njit(cache=True, nogil=True)
def _grown(trie: Int32Array, trie_table: Int32Array, num_nodes: int) -> tuple[Int32Array, Int32Array]:
    """(trie, table) of twice the size."""
    larger = np.empty((3, 2 * trie.shape[1]), np.int32)
    table = np.full(2 * trie_table.shape[0], -1, np.int32)
    larger[:, :num_nodes] = trie[:, :num_nodes]
    for node in range(1, num_nodes):
        at = _slot(table, larger[0], larger[1], larger[0, node], larger[1, node])
        table[at] = node
        larger[2, node] = at
    return larger, table


@njit(cache=True, nogil=True)
def search(
    arrays: LMArrays,
    start_state: int,
    end_id: int,
    phones_of: Int32Array,
    ranges: Int32Array,
    first_letter: Int64Array,
    weighed: Weighed,
    beam: float,
    max_tokens: int,
    most: int,
) -> tuple[Int32Array, Float64Array, Int64Array, Int32Array]:
    """Find the most probable pronunciations of each word.

    arrays: LMArrays of graphones; phones_of (V, M) i4: phones of each graphone, -1 for none.
    ranges (letters, 2) i4: the graphones of each letter of each word, from ranges[i, 0] to ranges[i, 1] - 1;
    first_letter (W + 1,) i8: where the letters of each word begin.
    weighed: the network and its weight.
    beam: of costs, -ln P, behind the same letter; max_tokens: how many of them are extended; most: pronunciations of a
    word.

    Returns (number of pronunciations (W,) i4, probability (W, most) f8, first_phone (W * most + 1,) i8, phones i4).
    Probabilities are divided by their sum over all pronunciations in the beam.
    """
    num_words = first_letter.shape[0] - 1
    scale = weighed.ngram_weight
    tokens = np.empty((2, 3, CAPACITY), np.int32)  # state, node, place in the table; before and behind a letter
    costs = np.empty((2, CAPACITY))
    table = np.full((2, 2 * CAPACITY), -1, np.int32)
    counts = np.zeros(2, np.int64)
    best = np.full(2, np.inf)
    room = phones_of.shape[1] * CAPACITY  # nodes that one letter can add: each token at most its graphone's phones
    size = 1 << 16
    while size < 2 * room:
        size *= 2
    trie = np.empty((3, size), np.int32)  # parent, phone, place in the table
    trie_table = np.full(2 * size, -1, np.int32)
    last_stamp = np.zeros(phones_of.shape[0], np.int64)
    stamp = 0
    num_found = np.zeros(num_words, np.int32)
    probability = np.zeros((num_words, most))
    first_phone = np.zeros(num_words * most + 1, np.int64)
    phones = np.empty(1 << 10, np.int32)
    num_phones = 0
    for w in range(num_words):
        num_nodes = 1
        current = 0
        following = 1
        _push(tokens, costs, table, counts, best, current, start_state, 0, 0.0)
        for i in range(first_letter[w], first_letter[w + 1]):
            if num_nodes + room > trie.shape[1]:
                trie, trie_table = _grown(trie, trie_table, num_nodes)
            low, high = ranges[i, 0], ranges[i, 1]
            limit = best[current] + beam
            if counts[current] > max_tokens:
                limit = min(limit, np.partition(costs[current, : counts[current]], max_tokens - 1)[max_tokens - 1])
            for token in range(counts[current]):
                if costs[current, token] > limit:
                    continue
                cost = costs[current, token]
                state = np.int64(tokens[current, 0, token])
                stamp += 1
                while cost <= best[following] + beam:
                    arc = arrays.first_arc[state]
                    end = arrays.first_arc[state + 1]
                    if state == 0:  # it lists all graphones
                        arc += low
                    else:
                        last = end
                        while arc < last:
                            middle = (arc + last) >> 1
                            if arrays.word[middle] < low:
                                arc = middle + 1
                            else:
                                last = middle
                    while arc < end and arrays.word[arc] < high:
                        graphone = arrays.word[arc]
                        through = cost + scale * arrays.cost[arc] + weighed.costs[i, weighed.tag_of[graphone]]
                        fresh = last_stamp[graphone] != stamp and counts[following] < CAPACITY
                        if fresh and through < np.inf and through <= best[following] + beam:
                            node: Integer = np.int64(tokens[current, 1, token])
                            for phone in phones_of[graphone]:
                                if phone >= 0:
                                    node, num_nodes = _child(trie, trie_table, num_nodes, node, phone)
                            _push(tokens, costs, table, counts, best, following, arrays.next_state[arc], node, through)
                        last_stamp[graphone] = stamp
                        arc += 1
                    if state == 0:
                        break
                    cost += scale * arrays.backoff_cost[state]
                    state = np.int64(arrays.backoff_state[state])
            _clear(tokens, table, counts, best, current)
            current, following = following, current
        for token in range(counts[current]):
            end_cost = automaton_step(arrays, np.int64(0), np.int64(tokens[current, 0, token]), end_id)[0]
            costs[current, token] += scale * end_cost
        nodes, sums = _sum_by_node(tokens[current, 1, : counts[current]], costs[current, : counts[current]])
        _clear(tokens, table, counts, best, current)
        order = np.argsort(sums, kind="mergesort")[:most]
        total = 0.0
        for cost in sums:
            total += np.exp(sums[order[0]] - cost)
        num_found[w] = order.shape[0]
        for n in range(most):
            begin = num_phones
            if n < order.shape[0]:
                probability[w, n] = np.exp(sums[order[0]] - sums[order[n]]) / total
                node = nodes[order[n]]
                while node > 0:
                    if num_phones == phones.shape[0]:
                        phones = np.concatenate((phones, np.empty(num_phones, np.int32)))
                    phones[num_phones] = trie[1, node]
                    num_phones += 1
                    node = np.int64(trie[0, node])
                phones[begin:num_phones] = phones[begin:num_phones][::-1].copy()
            first_phone[w * most + n + 1] = num_phones
        for node in range(1, num_nodes):
            trie_table[trie[2, node]] = -1
    return num_found, probability, first_phone, phones[:num_phones].copy()


@njit(cache=True, nogil=True)
def _clear(tokens: Int32Array, table: Int32Array, counts: Int64Array, best: Float64Array, r: int) -> None:
    """Remove the tokens of side r."""
    for token in range(counts[r]):
        table[r, tokens[r, 2, token]] = -1
    counts[r] = 0
    best[r] = np.inf


@njit(cache=True, nogil=True)
def _sum_by_node(nodes: Int32Array, costs: Float64Array) -> tuple[Int64Array, Float64Array]:
    """(nodes, -ln of their summed probabilities), without those of probability 0 and without node 0, no phones."""
    order = np.argsort(nodes, kind="mergesort")
    summed = np.empty(order.shape[0], np.int64)
    sums = np.empty(order.shape[0])
    num_kept = 0
    for token in order:
        if nodes[token] == 0 or costs[token] == np.inf:
            continue
        if num_kept and summed[num_kept - 1] == nodes[token]:
            sums[num_kept - 1] = _add(sums[num_kept - 1], costs[token])
        else:
            summed[num_kept] = nodes[token]
            sums[num_kept] = costs[token]
            num_kept += 1
    return summed[:num_kept], sums[:num_kept]
