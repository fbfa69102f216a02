"""Finds where words begin and end in a compiled graph.

A compiled graph no longer tells what its states were in the acceptor from which it was made (see acceptor.py).  But it
is deterministic, so that the labels of a path lead to a single state: the words of the dictionary lead from the begin
of a sentence to the states before last phones, and from there the last phones, silences and short pauses to those where
the next word begins.

Weights have been pushed along the paths.  A state *owes* the cost of a path to it before that, less its cost now:
owed(target) + cost of an arc = owed(state) + cost of the arc before.  A known word between two states tells the
difference, so that the costs of silence and the like need not be known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph, arcs_of
from decoder.graph.cross_word.acceptor import (
    AFTER_SILENCE,
    BEFORE_SILENCE,
    BEGUN,
    START,
    Between,
    CrossWordAcceptor,
    Topology,
)
from decoder.graph.cross_word.context import TriphoneTable
from decoder.graph.openfst import EPSILON, ArcArrays
from readers.errors import GraphError

TOLERANCE = 1e-3  # of sums of costs, which are multiples of 1/1024 in most graphs
MAX_WITNESSES = 3  # words that are compared for each pair of last phones


class PlacesError(GraphError):
    """The places where words of a graph begin and end cannot be found, so that none can be added."""


@dataclass(frozen=True)
class WordPlaces:
    """The states of a compiled graph where words begin and end, among P phones.

    Attributes
    ----------
    begin_state, begin_left, begin_first : (B,) int64
        A state where a word may begin, the phone before it, and the first phone of the word.
    begin_owed : (B,) float64
        What the state owes.
    last_state, last_owed : (P, P) int64, float64
        The state before the last phone, by the last two phones; -1 if no word ends with them.
    end_state, end_owed : (P, P) int64, float64
        A state after a word, by its last phone and the phone that follows; -1 if there is none.
    """

    begin_state: np.ndarray
    begin_left: np.ndarray
    begin_first: np.ndarray
    begin_owed: np.ndarray
    last_state: np.ndarray
    last_owed: np.ndarray
    end_state: np.ndarray
    end_owed: np.ndarray


class LabelledPaths:
    """Follows labels through a compiled graph: 1 + number of an HMM state, or 1 + number of HMM states + id of a word.

    Raises PlacesError for a graph that is not deterministic.
    """

    def __init__(self, graph: DecodingGraph):
        arcs = arcs_of(graph.arrays)
        num_hmm = len(graph.states)
        self._size = 1 + num_hmm + len(graph.words)
        key = arcs.source.astype(np.int64) * self._size + np.where(
            arcs.label < 0, 1 + ~arcs.label, 1 + num_hmm + arcs.label
        )
        order = np.argsort(key, kind="stable")
        self._key = key[order]
        self._target = arcs.target[order].astype(np.int64)
        self._cost = arcs.cost[order].astype(np.float64)
        if np.any(self._key[1:] == self._key[:-1]):
            raise PlacesError(f"{graph.where}: arcs with the same label from a state; expected a deterministic graph")

    def step(self, state: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the states to which labels lead, -1 for none, and the costs of the arcs."""
        key = state * self._size + label
        at = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
        is_arc = (self._key[at] == key) & (state >= 0)
        stays = label == EPSILON
        target = np.where(stays, state, np.where(is_arc, self._target[at], -1))
        return target, np.where(is_arc & ~stays, self._cost[at], 0.0)

    def pairs(self, arrays: ArcArrays, states: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs of a state and a node of an acceptor to which the same labels lead, from some pairs on."""
        size = arrays.num_states
        first = arrays.first_arc
        front = reached = _in_order(states * size + nodes)
        while front.size:
            state, node = np.divmod(front, size)
            count = first[node + 1] - first[node]
            arcs = np.repeat(first[node] - np.cumsum(count) + count, count) + np.arange(count.sum())
            target, _ = self.step(np.repeat(state, count), arrays.label[arcs].astype(np.int64))
            front = _in_order((target * size + arrays.target[arcs])[target >= 0])
            front = front[reached[np.minimum(np.searchsorted(reached, front), len(reached) - 1)] != front]
            reached = _in_order(np.concatenate([reached, front]))
        return np.divmod(reached, size)


def find_places(
    graph: DecodingGraph,
    table: TriphoneTable,
    words: Sequence[tuple[int, tuple[int, ...], float]],
    silence: Topology,
    short_pause: Topology | None,
    start_label: int,
) -> WordPlaces:
    """Return the places of a graph.

    words: its words, each as for CrossWordAcceptor, without silences; start_label: of <s>.  Raises PlacesError for a
    graph in which the words do not lead where one with this dictionary would have them.
    """
    return _Search(graph, table, words, silence, short_pause, start_label).places()


class _Search:
    def __init__(
        self,
        graph: DecodingGraph,
        table: TriphoneTable,
        words: Sequence[tuple[int, tuple[int, ...], float]],
        silence: Topology,
        short_pause: Topology | None,
        start_label: int,
    ):
        self.fault = PlacesError(f"{graph.where}: does not have the paths of its dictionary; expected those of both")
        self.start = graph.start
        self.table = table
        self.paths = LabelledPaths(graph)
        self.layout = CrossWordAcceptor(table, words)
        self.layout.add_hubs()
        self.layout.add_short_words()
        self.layout.join(Between(0.0, 0.0, 0.0), short_pause)
        self.layout.add_model(START, BEGUN, silence, start_label)
        self.layout.add_model(BEFORE_SILENCE, AFTER_SILENCE, silence, None)
        long = np.flatnonzero(self.layout.lengths >= 2)
        _, word, count = np.unique(self.layout.word_label, return_inverse=True, return_counts=True)
        self.long = long[np.argsort(count[word[long]] > 1, kind="stable")]  # those with one pronunciation first
        self.is_single = count[word] == 1

    def places(self) -> WordPlaces:
        layout, table = self.layout, self.table
        size = table.num_phones
        rows = self._witnesses()
        ends = self._last_pairs(rows)
        pairs = np.unique(ends[self.is_single[rows]])
        a, b = np.divmod(pairs, size)
        nodes = layout.add_lasts(a, b, layout.rights)
        table.finish()
        table.check()
        arrays = layout.arrays()
        states, at = self.paths.pairs(arrays, np.array([self.start]), np.array([START]))
        if not np.any(at == BEGUN):
            raise self.fault
        begun = states[at == BEGUN][0]
        reached, paid, cost = self._follow(np.full(len(rows), begun), np.full(len(rows), table.silence), rows)
        if np.any(reached < 0):
            raise self.fault
        owed = cost - paid
        last_state = np.full((size, size), -1, dtype=np.int64)
        last_owed = np.zeros((size, size))
        single = self.is_single[rows]
        last_state.flat[ends[single]] = reached[single]
        last_owed.flat[ends[single]] = owed[single]
        if np.any(last_state.flat[ends[single]] != reached[single]) or np.any(
            np.abs(last_owed.flat[ends[single]] - owed[single]) > TOLERANCE
        ):
            raise self.fault
        more = self.paths.pairs(arrays, last_state[a, b], nodes)
        states, at = (np.concatenate(both) for both in zip((states, at), more))
        begins = self._begins(states, at, rows, reached, owed)
        return WordPlaces(*begins, last_state, last_owed, *self._ends(a, b, last_state[a, b], last_owed[a, b]))

    def _last_pairs(self, rows: np.ndarray) -> np.ndarray:
        phones, last = self.layout.phones[rows], self.layout.lengths[rows] - 1
        each = np.arange(len(rows))
        pairs: np.ndarray = phones[each, last - 1] * self.table.num_phones + phones[each, last]
        return pairs

    def _witnesses(self) -> np.ndarray:
        """Return a few words of two or more phones for each pair of last phones, and for each first phone."""
        rows = self.long
        if not rows.size:
            raise self.fault
        chosen = []
        for group in (self._last_pairs(rows), self.layout.phones[rows, 0]):
            order = np.argsort(group, kind="stable")
            _, first, count = np.unique(group[order], return_index=True, return_counts=True)
            chosen.append(rows[order[np.arange(len(order)) - np.repeat(first, count) < MAX_WITNESSES]])
        chosen_rows = np.unique(np.concatenate(chosen))
        return chosen_rows[np.argsort(~self.is_single[chosen_rows], kind="stable")]

    def _follow(
        self, state: np.ndarray, left: np.ndarray, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Follow words, after phones, to their labels: the states there, the costs of the arcs and of the words."""
        layout = self.layout
        phones, lengths = layout.phones[rows], layout.lengths[rows]
        paid = np.zeros(len(rows))
        cost = layout.word_cost[rows].astype(np.float64)
        for k in range(lengths.max() - 1):
            inside = np.flatnonzero(lengths > k + 1)
            before = left[inside] if k == 0 else phones[inside, k - 1]
            models = self.table.models(before, phones[inside, k], phones[inside, k + 1])
            state[inside], more, price = self._pass(state[inside], models)
            paid[inside] += more
            cost[inside] += price
        state, more = self.paths.step(state, layout.word_label[rows])
        return state, paid + more, cost

    def _pass(self, state: np.ndarray, models: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pass all states of models: the states after them, the costs of the arcs and of the models."""
        table = self.table
        table.finish()
        paid = np.zeros(len(models))
        cost = np.zeros(len(models))
        for k in range(table.length[models].max(initial=0)):
            at = table.offset[models] + k
            inside = table.length[models] > k
            at = np.where(inside, at, 0)
            label = np.where(inside, table.labels[at], EPSILON)
            state, more = self.paths.step(state, label)
            paid += more
            cost += np.where(inside, table.enter_cost[at], 0.0)
        return state, paid, cost

    def _begins(
        self, states: np.ndarray, nodes: np.ndarray, rows: np.ndarray, reached: np.ndarray, owed: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return state, phone before, first phone and what is owed, of each place where a word may begin."""
        layout = self.layout
        firsts, witness = np.unique(layout.phones[rows, 0], return_index=True)
        left, first = np.nonzero(layout.hub >= 0)
        kind = np.full(max(nodes.max(), layout.hub.max()) + 1, -1)
        kind[layout.hub[left, first]] = np.arange(len(left))
        at = kind[nodes]
        states = states[at >= 0]
        left, first = left[at[at >= 0]], first[at[at >= 0]]
        known = np.isin(first, firsts)
        codes = _in_order((states[known] * len(kind) + left[known]) * len(kind) + first[known])
        state_left, first = np.divmod(codes, len(kind))
        states, left = np.divmod(state_left, len(kind))
        word = witness[np.searchsorted(firsts, first)]
        ends, paid, cost = self._follow(states.copy(), left, rows[word])
        if np.any(ends != reached[word]):
            raise self.fault
        return states, left, first, owed[word] + paid - cost

    def _ends(self, a: np.ndarray, b: np.ndarray, state: np.ndarray, owed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the states after words, and what they owe; of several the one that tells most phones apart."""
        size = self.table.num_phones
        rights = self.layout.rights
        models = self.table.models(a[:, None], b[:, None], rights)
        flat, paid, cost = self._pass(np.repeat(state, len(rights)), models.ravel())
        if np.any(flat < 0):
            raise self.fault
        reached = flat.reshape(models.shape)
        owed = owed[:, None] + (cost - paid).reshape(models.shape)
        shared = (reached[:, :, None] == reached[:, None, :]).sum(axis=2)
        end_state = np.full((size, size), -1, dtype=np.int64)
        end_owed = np.zeros((size, size))
        order = np.argsort(-shared.ravel(), kind="stable")  # the last one of each pair of phones remains
        last, right = (phones.ravel()[order] for phones in np.broadcast_arrays(b[:, None], rights))
        end_state[last, right] = flat[order]
        end_owed[last, right] = owed.ravel()[order]
        return end_state, end_owed


def _in_order(numbers: np.ndarray) -> np.ndarray:
    """Return each number once, in rising order; np.unique takes minutes for many numbers with a common factor."""
    numbers = np.sort(numbers)
    once: np.ndarray = numbers[np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]]
    return once
