"""H o C o L of cross-word triphones as one acceptor, before it is optimised (CNTK book 6.1.1, 6.2.2).

The composition is written out rather than computed, since its states are known: between two words it suffices to know
the last phone and the first phone that follows, within a word the phones so far.

    hub (l, f)       before a word that begins with f, after a phone l       l-f+s  to  trie (f, s)
    trie (p1..pk)    the phones before pk have been passed                   p-pk+q  to  trie (p1..pk q)
    trie (p1..pn)    a whole word: its label                                 to  last (p, pn)
    last (a, b)      before the last phone                                   a-b+f  to  word_end (b, f) for every f
    word_end (b, f)  nothing, or short pause                                 to  hub (b, f)
    word_end (b, sil)  a silence                                             to  hub (sil, f) for every f

Short pause is not a context: the phones on its two sides are each other's context.  A word of one phone, l-p+f, has its
label before its last state.  `<s>` and `</s>` are silences with the label before their last state.  All data are
arrays; Python loops only over triphones, words and the phones of a word.

With costs of silence for each word, a trie after silence and one after speech keep until the label of the word which of
its corrections holds, and `last` has a twin that leads to silence only.  A word that begins or ends with the silence
model counts as silence for its neighbour.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from decoder.graph.cross_word.context import TriphoneTable
from decoder.graph.lexicon import SilenceCosts, round_to_grid
from decoder.graph.openfst import EPSILON, ArcArrays, chain_arcs
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START

START, BEGUN, AFTER_SILENCE, BEFORE_SILENCE, END, FINAL = range(6)
NUM_FIXED = 6


@dataclass(frozen=True)
class Between:
    """Costs of what may stand between two words; None where it may not."""

    silence_cost: float | None
    pause_cost: float | None
    nothing_cost: float


class Topology:
    """A model that is not simply left-to-right: its labels, and (from, to, cost) with 0 the entry and n+1 the exit."""

    def __init__(self, labels: Sequence[int], ways: Sequence[tuple[int, int, float]]):
        self.labels = list(labels)
        self.arcs = [(start, end, round_to_grid(cost)) for start, end, cost in ways]
        self.exit = len(self.labels) + 1


class CrossWordAcceptor:
    """Collects the acceptor.  Nodes are numbered as they are created.

    table: the triphones' states; words: (label, phones as numbers of the table, cost) of every pronunciation; silences:
    of every pronunciation, or none at all.
    """

    def __init__(
        self,
        table: TriphoneTable,
        words: Sequence[tuple[int, tuple[int, ...], float]],
        silences: Sequence[SilenceCosts] = (),
    ):
        self.table = table
        self.has_silences = bool(silences)
        costs = np.array([list(map(round_to_grid, entry)) for entry in silences]).reshape(-1, 4)
        self.silences = costs if silences else np.zeros((len(words), 4))
        self.num_nodes = NUM_FIXED
        self._arcs: list[tuple[np.ndarray, ...]] = []  # source, target, label, cost
        self._chains: list[tuple[np.ndarray, ...]] = []  # source, target, model
        lengths = np.array([len(phones) for _, phones, _ in words])
        self.word_label = np.array([label for label, _, _ in words], dtype=np.int64)
        self.word_cost = np.array([cost for *_, cost in words])
        flat = np.fromiter(itertools.chain.from_iterable(phones for _, phones, _ in words), np.int64, lengths.sum())
        self.phones = np.full((len(words), lengths.max()), -1, dtype=np.int64)
        self.phones[np.arange(lengths.max()) < lengths[:, None]] = flat
        self.lengths = lengths
        self.first = np.unique(self.phones[:, 0])
        self.last = np.unique(self.phones[np.arange(len(words)), lengths - 1])
        silence = np.array([table.silence])
        self.lefts = np.union1d(self.last, silence)  # phones and silence before a word
        self.rights = np.union1d(self.first, silence)  # phones and silence after a word

    def nodes(self, count: int) -> np.ndarray:
        """Create nodes and return their numbers."""
        begin = self.num_nodes
        self.num_nodes += count
        return np.arange(begin, begin + count)

    def add_arcs(
        self, source: npt.ArrayLike, target: npt.ArrayLike, label: npt.ArrayLike, cost: npt.ArrayLike = 0.0
    ) -> None:
        """Add arcs; the arguments broadcast."""
        parts = np.broadcast_arrays(*(np.atleast_1d(part) for part in (source, target, label, cost)))
        self._arcs.append(tuple(part.ravel() for part in parts))

    def add_chains(self, source: npt.ArrayLike, target: npt.ArrayLike, model: npt.ArrayLike) -> None:
        """Add a chain of the model's states from each source to each target; the arguments broadcast."""
        parts = np.broadcast_arrays(source, target, model)
        self._chains.append(tuple(part.ravel() for part in parts))

    def build(self) -> None:
        """Add the words and what joins them; silences are added by `add_model`."""
        self.add_hubs()
        self._add_long_words()
        self.add_short_words()

    def add_hubs(self) -> None:
        """Add the hubs and the ends of words, and what leads to the hubs after silence."""
        size = self.table.num_phones
        self.hub = np.full((size, size), -1, dtype=np.int64)
        self.hub[np.ix_(self.lefts, self.first)] = self.nodes(len(self.lefts) * len(self.first)).reshape(
            len(self.lefts), -1
        )
        self.word_end = np.full((size, size), -1, dtype=np.int64)
        self.word_end[np.ix_(self.last, self.first)] = self.nodes(len(self.last) * len(self.first)).reshape(
            len(self.last), -1
        )
        self.word_end[self.last, self.table.silence] = BEFORE_SILENCE  # also before a word whose first phone is silence
        sil = self.table.silence
        for node in (BEGUN, AFTER_SILENCE):
            self.add_arcs(node, self.hub[sil, self.first], EPSILON)

    def join(self, between: Between, short_pause: Topology | None) -> None:
        """Add what may stand between two words that are each other's context."""
        word_end = self.word_end[np.ix_(self.last, self.first)].ravel()
        hub = self.hub[np.ix_(self.last, self.first)].ravel()
        self.add_arcs(word_end, hub, EPSILON, round_to_grid(between.nothing_cost))
        if short_pause is not None and between.pause_cost is not None:
            self.add_model(word_end, hub, short_pause, None, between.pause_cost)

    def _add_long_words(self) -> None:
        """Words of two or more phones: hubs, trie, labels, last phones."""
        long = np.flatnonzero(self.lengths >= 2)
        if not long.size:
            return
        size = self.table.num_phones
        phones = self.phones[long]
        rows = np.arange(len(long))
        lengths = self.lengths[long]
        ends, inverse = np.unique(phones[rows, lengths - 2] * size + phones[rows, lengths - 1], return_inverse=True)
        a, b = np.divmod(ends, size)
        to_silence, to_speech, from_silence, from_speech = self.silences[long].T
        tries = [
            (self._trie(phones, lengths, lefts), cost)
            for lefts, cost in self._divided(self.lefts, from_silence, from_speech)
        ]
        for rights, price in self._divided(self.rights, to_silence, to_speech):
            last = self.add_lasts(a, b, rights)
            for trie, cost in tries:
                self.add_arcs(trie, last[inverse], self.word_label[long], self.word_cost[long] + cost + price)

    def add_lasts(self, a: np.ndarray, b: np.ndarray, rights: np.ndarray) -> np.ndarray:
        """Add the last phones b of words, after phones a and before `rights`; return the nodes before them."""
        last = self.nodes(len(a))
        right = rights[:, None]
        self.add_chains(last, self.word_end[b, right], self.table.models(a, b, right))
        return last

    def _divided(
        self, neighbours: np.ndarray, silent: np.ndarray, spoken: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Neighbours of words, and the costs of words beside them: silence apart from phones if words have both."""
        if not self.has_silences:
            return [(neighbours, spoken)]
        is_silence = neighbours == self.table.silence
        return [(neighbours[~is_silence], spoken), (neighbours[is_silence], silent)]

    def _trie(self, phones: np.ndarray, lengths: np.ndarray, lefts: np.ndarray) -> np.ndarray:
        """Add the phones of words but the last, after some phones; return the nodes to which they lead."""
        table = self.table
        size = table.num_phones
        pairs, trie = np.unique(phones[:, 0] * size + phones[:, 1], return_inverse=True)
        trie = self.nodes(len(pairs))[trie]  # of each word, its trie node so far
        f, s = np.divmod(pairs, size)
        roots = trie.min() + np.arange(len(pairs))
        left = lefts[:, None]
        self.add_chains(self.hub[left, f], roots, table.models(left, f, s))
        for k in range(2, lengths.max()):
            longer = np.flatnonzero(lengths > k)
            keys, first, inverse = np.unique(
                trie[longer] * size + phones[longer, k], return_index=True, return_inverse=True
            )
            nodes = self.nodes(len(keys))
            example = phones[longer[first]]
            self.add_chains(keys // size, nodes, table.models(example[:, k - 2], example[:, k - 1], example[:, k]))
            trie[longer] = nodes[inverse]
        return trie

    def add_short_words(self) -> None:
        """Words of one phone, in every context, with the label before the last state."""
        short = np.flatnonzero(self.lengths == 1)
        if not short.size:
            return
        table = self.table
        phones, of_word = np.unique(self.phones[short, 0], return_inverse=True)
        left = self.lefts[:, None, None]
        phone = phones[:, None]
        right = self.rights
        heads, tails = table.split_models(left, phone, right)
        shape = heads.shape
        before = self.nodes(heads.size).reshape(shape)
        after = self.nodes(heads.size).reshape(shape)
        self.add_chains(np.broadcast_to(self.hub[left, phone], shape), before, heads)
        self.add_chains(after, np.broadcast_to(self.word_end[phone, right], shape), tails)
        to_silence, to_speech, from_silence, from_speech = self.silences[short].T[:, :, None]
        cost = self.word_cost[short][:, None] + np.where(left == table.silence, from_silence, from_speech)
        cost = cost + np.where(right == table.silence, to_silence, to_speech)
        self.add_arcs(before[:, of_word], after[:, of_word], self.word_label[short][:, None], cost)

    def add_model(
        self, source: npt.ArrayLike, target: npt.ArrayLike, topology: Topology, word: int | None, cost: float = 0.0
    ) -> None:
        """A model with a topology between each source and target.

        The label of a word stands before the last visit to the state that the model is left from.  An arc from entry to
        exit, which consumes no frame, is left to the caller.
        """
        sources, targets = np.broadcast_arrays(np.atleast_1d(source), np.atleast_1d(target))
        count = len(sources)
        cost = round_to_grid(cost)
        nodes = {0: sources}
        for number in range(1, topology.exit):
            nodes[number] = self.nodes(count)
        leaving = {start: price for start, end, price in topology.arcs if end == topology.exit and start != 0}
        last = {start: self.nodes(count) for start in leaving} if word is not None else {}
        for start, end, price in topology.arcs:
            price += cost if start == 0 else 0.0
            if end != topology.exit:
                self.add_arcs(nodes[start], nodes[end], topology.labels[end - 1], price)
                if end in last and word is not None:
                    self.add_arcs(nodes[start], last[end], word, price + leaving[end])
            elif start != 0 and word is None:
                self.add_arcs(nodes[start], targets, EPSILON, price)
        for start, node in last.items():
            self.add_arcs(node, targets, topology.labels[start - 1])

    def arrays(self) -> ArcArrays:
        """All arcs, with one arc for each state of a chain's model."""
        source, target, label, cost = (np.concatenate(parts) for parts in zip(*self._arcs))
        c_source, c_target, model = (np.concatenate(parts) for parts in zip(*self._chains))
        length = self.table.length[model]
        chain_source, chain_target, first = chain_arcs(c_source, c_target, length, self.num_nodes)
        places = np.repeat(self.table.offset[model] - first, length) + np.arange(len(chain_source))
        early = np.flatnonzero(np.isfinite(self.table.leave_cost[places]))  # states after which a model may be left
        leaving = np.repeat(c_target, length)[early]
        final_cost = np.full(self.num_nodes + len(chain_source) - len(first), np.inf, dtype=np.float32)
        final_cost[FINAL] = 0.0
        return ArcArrays(
            np.concatenate([source, chain_source, chain_target[early]]).astype(np.int32),
            np.concatenate([target, chain_target, leaving]).astype(np.int32),
            np.concatenate([label, self.table.labels[places], np.full(len(early), EPSILON)]).astype(np.int32),
            np.concatenate([cost, self.table.enter_cost[places], self.table.leave_cost[places[early]]]).astype(
                np.float32
            ),
            final_cost,
            START,
        ).sorted()


def cross_word_acceptor(
    table: TriphoneTable,
    words: Sequence[tuple[int, tuple[int, ...], float]],
    silence: Topology,
    short_pause: Topology | None,
    between: Between,
    marks: Mapping[str, tuple[int, float]],
    silences: Sequence[SilenceCosts] = (),
) -> ArcArrays:
    """The complete acceptor.  marks: label and cost of <s> and of </s>; silences: as for CrossWordAcceptor."""
    acceptor = CrossWordAcceptor(table, words, silences)
    acceptor.build()
    acceptor.join(between, short_pause)
    label, cost = marks[SENTENCE_START]
    acceptor.add_model(START, BEGUN, silence, label, cost)
    label, cost = marks[SENTENCE_END]
    acceptor.add_model(END, FINAL, silence, label, cost)
    acceptor.add_arcs(np.array([BEGUN, BEFORE_SILENCE]), END, EPSILON)
    if between.silence_cost is not None:
        acceptor.add_model(BEFORE_SILENCE, AFTER_SILENCE, silence, None, between.silence_cost)
    table.check()
    table.finish()
    return acceptor.arrays()
