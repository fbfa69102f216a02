"""The HMM states of a grammar as one acceptor, before it is optimised: `cross_word` with the nodes of a grammar.

    hub (n, l, f)         at node n of the grammar, after a phone l, before a word that begins with f
    trie (n, p1..pk)      the phones before pk have been passed since node n
    last (m, a, b)        after the label of a word to node m, before its last phone b, which follows a
    word_end (m, b, f)    at node m, after a word that ends with b, before a word that begins with f
    word_end (m, sil, sil), after (m)     at node m, before and after a silence

The phone loop of `[unk]` is silence to its neighbours.  If no model has a context, all neighbours count as silence, so
that a node of the grammar has one hub.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from decoder.grammars.phone_loop import loop_arcs
from decoder.graph.cross_word.acceptor import BEGUN, END, FINAL, NUM_FIXED, START, Between, CrossWordAcceptor, Topology
from decoder.graph.cross_word.context import TriphoneTable
from decoder.graph.lexicon import round_to_grid
from decoder.graph.openfst import EPSILON, ArcArrays
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from readers.errors import GraphError

MOST_ARCS = 3_000_000  # of the acceptor before it is optimised


class SpokenArc(NamedTuple):
    """A pronunciation of a word between two nodes of a grammar: the label of the word, the phones and the cost.

    Without phones it is the phone loop.
    """

    source: int
    target: int
    label: int
    phones: tuple[int, ...]
    cost: float


class PhoneLoop(NamedTuple):
    """The phone loop: labels of the states of each place of each phone, and the cost of each phone."""

    phones: Sequence[Sequence[Sequence[int]]]
    cost: float


class GrammarAcceptor(CrossWordAcceptor):
    """Collects the acceptor of a grammar, whose node 0 is the start.

    table: the triphones' states; spoken: what is spoken between the nodes; final_cost: of each node, inf if no sentence
    ends there; between: what may stand between words; loop: for arcs without phones; where: for messages.
    """

    def __init__(
        self,
        table: TriphoneTable,
        spoken: Sequence[SpokenArc],
        final_cost: Sequence[float],
        between: Between,
        loop: PhoneLoop,
        where: str,
    ):
        self.table = table
        self.spoken = spoken
        self.final_cost = final_cost
        self.between = between
        self.loop = loop
        self.where = where
        self.num_nodes = NUM_FIXED
        self._arcs = []
        self._chains = [(np.zeros(0, np.int64),) * 3]
        self._single: list[tuple[int, int, int, float]] = []  # arcs that are added one by one
        self._triphones: list[tuple[int, int, int, int, int]] = []  # source, target, left, phone, right
        self._short: list[tuple[int, int, int, int, int, int, float]] = []  # the same, label, cost
        self._nodes: dict[tuple[object, ...], int] = {}
        self._has_context = len(table.context_free) < table.num_phones
        silence = table.silence
        self._first = defaultdict(set)  # of words from a node, and of words to it
        self._last = defaultdict(set)
        self._left = defaultdict(set)  # neighbours, silence among them
        self._right = defaultdict(set)
        self._left[0].add(silence)
        for arc in spoken:
            if arc.phones:
                self._first[arc.source].add(self._neighbour(arc.phones[0]))
                self._last[arc.target].add(self._neighbour(arc.phones[-1]))
            else:
                self._right[arc.source].add(silence)
                self._left[arc.target].add(silence)
        for node in range(len(final_cost)):
            if between.silence_cost is not None or math.isfinite(final_cost[node]):
                self._right[node].add(silence)
            if between.silence_cost is not None:
                self._left[node].add(silence)
            self._left[node] |= self._last[node]
            self._right[node] |= self._first[node]

    def _neighbour(self, phone: int) -> int:
        """Return a phone as its neighbours see it."""
        return phone if self._has_context else self.table.silence

    def _node(self, *key: object) -> int:
        """Return the node of a key; it is created when it is first asked for."""
        return self._find(*key)[0]

    def _find(self, *key: object) -> tuple[int, bool]:
        """Return the node of a key, and whether it is new."""
        node = self._nodes.get(key)
        if node is not None:
            return node, False
        self._nodes[key] = self.num_nodes
        self.num_nodes += 1
        return self.num_nodes - 1, True

    def _word_end(self, node: int, phone: int, right: int) -> int:
        """Return the node after a word; before a silence, its last phone does not matter any more."""
        return self._node("end", node, self.table.silence if right == self.table.silence else phone, right)

    def _check_size(self) -> None:
        if len(self._single) + len(self._triphones) + len(self._short) > MOST_ARCS:
            raise GraphError(f"{self.where}: more than {MOST_ARCS} arcs of HMM states; expected a smaller grammar")

    def build_grammar(self, silence: Topology, pause: Topology | None, marks: Mapping[str, tuple[int, float]]) -> None:
        """Add everything.  marks: label and cost of <s> and of </s>."""
        for arc in self.spoken:
            if not arc.phones:
                self._add_loop(arc)
            elif len(arc.phones) == 1:
                self._add_short_word(arc)
            else:
                self._add_long_word(arc)
            self._check_size()
        sil = self.table.silence
        joined = []
        silent = []
        for node, final in enumerate(self.final_cost):
            for left in self._left[node]:
                for first in self._first[node]:
                    if left in self._last[node] and (first != sil or not self._has_context):
                        joined.append((self._word_end(node, left, first), self._node("hub", node, left, first)))
            self._check_size()
            before = self._node("end", node, sil, sil)
            after = self._node("after", node)
            for first in self._first[node]:
                self._single.append((after, self._node("hub", node, sil, first), EPSILON, 0.0))
            if math.isfinite(final):
                self._single.append((before, END, EPSILON, final))
            silent.append((before, after))
        ends, hubs = np.array(joined, np.int64).reshape(-1, 2).T
        self.add_arcs(ends, hubs, EPSILON, round_to_grid(self.between.nothing_cost))
        if pause is not None and self.between.pause_cost is not None and len(ends):
            self.add_model(ends, hubs, pause, None, self.between.pause_cost)
        if self.between.silence_cost is not None:
            befores, afters = np.array(silent, np.int64).T
            self.add_model(befores, afters, silence, None, self.between.silence_cost)
        self.add_model(START, BEGUN, silence, *marks[SENTENCE_START])
        self.add_model(END, FINAL, silence, *marks[SENTENCE_END])
        self._single.append((BEGUN, self._node("after", 0), EPSILON, 0.0))
        if math.isfinite(self.final_cost[0]):
            self._single.append((BEGUN, END, EPSILON, self.final_cost[0]))

    def _add_long_word(self, arc: SpokenArc) -> None:
        """Two or more phones: from the hubs through the trie, the label, the last phone in every context."""
        phones = arc.phones
        chains = self._triphones
        node, new = self._find("trie", arc.source, phones[:2])
        first = self._neighbour(phones[0])
        for left in self._left[arc.source] if new else ():
            chains.append((self._node("hub", arc.source, left, first), node, left, phones[0], phones[1]))
        for k in range(2, len(phones)):
            after, new = self._find("trie", arc.source, phones[: k + 1])
            if new:
                chains.append((node, after, phones[k - 2], phones[k - 1], phones[k]))
            node = after
        a, b = phones[-2:]
        last, new = self._find("last", arc.target, a, b)
        for right in self._right[arc.target] if new else ():
            chains.append((last, self._word_end(arc.target, self._neighbour(b), right), a, b, right))
        self._single.append((node, last, arc.label, arc.cost))

    def _add_short_word(self, arc: SpokenArc) -> None:
        """One phone, in every context, with the label before the last state."""
        phone = arc.phones[0]
        neighbour = self._neighbour(phone)
        for left in self._left[arc.source]:
            for right in self._right[arc.target]:
                hub = self._node("hub", arc.source, left, neighbour)
                end = self._word_end(arc.target, neighbour, right)
                self._short.append((hub, end, left, phone, right, arc.label, arc.cost))

    def _add_loop(self, arc: SpokenArc) -> None:
        """The phone loop, between silences or words that have silence as their neighbour; a node has one loop to it."""
        sil = self.table.silence
        nothing = round_to_grid(self.between.nothing_cost)
        key = arc.target, arc.label
        entry, new = self._find("loop", key, 0)
        before = self._node("end", arc.source, sil, sil)
        after = self._node("after", arc.source)
        self._single += [(before, entry, EPSILON, arc.cost + nothing), (after, entry, EPSILON, arc.cost)]
        if not new:
            return
        loop, last, exit = (self._node("loop", key, number) for number in (1, 2, 3))
        before = self._node("end", arc.target, sil, sil)
        after = self._node("after", arc.target)
        self._single += [(exit, before, EPSILON, 0.0), (exit, after, EPSILON, nothing)]
        arcs, self.num_nodes = loop_arcs(
            self.loop.phones, (entry, loop, last, exit), arc.label, self.loop.cost, self.num_nodes
        )
        self._single += arcs

    def arrays(self) -> ArcArrays:
        """Return all arcs."""
        models = self.table.models
        if self._triphones:
            source, target, left, phone, right = np.array(self._triphones, np.int64).T
            self.add_chains(source, target, models(left, phone, right))
        if self._short:
            *places, cost = zip(*self._short)
            source, target, left, phone, right, label = np.array(places, np.int64)
            before = self._halves(source, left, phone, right, into=True)
            after = self._halves(target, left, phone, right, into=False)
            self.add_arcs(before, after, label, np.array(cost))
        source, target, label, cost = zip(*self._single)
        self.add_arcs(np.array(source), np.array(target), np.array(label), np.array(cost))
        self.table.check()
        self.table.finish()
        return super().arrays()

    def _halves(
        self, node: np.ndarray, left: np.ndarray, phone: np.ndarray, right: np.ndarray, into: bool
    ) -> np.ndarray:
        """Add the first states of phones after a node, or their other states before it; return the inner nodes.

        Phones that are alike at the same node share their states.
        """
        rows, shared = np.unique(np.stack((node, left, phone, right)), axis=1, return_inverse=True)
        heads, tails = self.table.split_models(*rows[1:])
        inner = self.nodes(rows.shape[1])
        if into:
            self.add_chains(rows[0], inner, heads)
        else:
            self.add_chains(inner, rows[0], tails)
        return inner[shared.ravel()]
