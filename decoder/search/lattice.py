"""Word lattices from the paths that the search has recorded.

During the search, all paths that meet at a node (a word arc, or a junction, where words end) with one LM history are
recorded with their exact costs; the best of them goes on.  Every path of the lattice is thus a path of the search with
its exact cost and n-gram probabilities, and the best path is among them.  As with any lattice under the word-pair
approximation, two kinds of path are missing: those that differ from a kept one only in where a word began, after the
same LM history, and that lost inside the word; and those that the beams pruned.

Word arcs stand before a word's last phone.  Here links are cut at the true ends of words: the states that follow the
arc, up to the end of their phone, are moved into the word's link.  Silence belongs to the link of the word after it.
Of links with the same word between the same nodes the cheapest is kept.

References
----------
Ortmanns, Ney and Aubert, A word graph algorithm for large vocabulary continuous speech recognition, Computer Speech and
Language 11(1), 1997 (word-pair approximation).
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph
from decoder.search.kernels.lattice import kept_arrivals, link_states
from decoder.search.kernels.tables import SearchGraph
from decoder.search.kernels.token_store import NODE_LABEL, Trace
from decoder.search.path import begins_model

NEW_SENTENCE = -2  # in place of a word


@dataclass(frozen=True)
class WordLattice:
    """A lattice of L links between N nodes in topological order; node 0 is the start, node N-1 the end.

    Attributes
    ----------
    time : (N,) int32
        Frames before the node.
    start, end : (L,) int32
        Nodes of each link.
    word : (L,) int32
        Word id of the graph, -1 for none, -2 where a new sentence begins.
    cost : (L,) float64
        Complete cost, -ln.
    lm : (L,) float64
        ln P of the n-gram, unscaled, exact for every path through the link.
    bonus : (L,) float64
        Bonus of hotwords, which the cost counts already; just as exact.
    states : list of tuple
        For each link its HMM states as (state id, first frame, last frame + 1).
    """

    time: np.ndarray
    start: np.ndarray
    end: np.ndarray
    word: np.ndarray
    cost: np.ndarray
    lm: np.ndarray
    bonus: np.ndarray
    states: list[tuple[tuple[int, int, int], ...]]

    @property
    def num_nodes(self) -> int:
        """N, the number of nodes."""
        return self.time.shape[0]

    @property
    def num_links(self) -> int:
        """L, the number of links."""
        return self.start.shape[0]


_State = tuple[int, int, int, int]  # position, first frame, end frame, step of an HMM state


@dataclass
class _Piece:
    """Part of a path: HMM states, with cost, LM score and bonus."""

    cost: float
    lm: float
    bonus: float
    states: tuple[_State, ...]

    def __add__(self, other: "_Piece") -> "_Piece":
        return _Piece(self.cost + other.cost, self.lm + other.lm, self.bonus + other.bonus, self.states + other.states)


@dataclass
class _Arc:
    """A link as the search recorded it, between steps that are nodes.

    word_arc: of the graph, -1 for none; the arc after the last one begins a new sentence.
    """

    source: int
    target: int
    word_arc: int
    piece: _Piece


@dataclass
class _OpenWord:
    """A word whose arc has been crossed but whose last phone may go on, from node `source` of the result.

    last: (model, index) of the HMM state before, None if there was none; inside: whether that state is known to belong
    to the word's last phone.
    """

    source: int
    word: int
    piece: _Piece
    last: tuple[int, int] | None
    inside: bool


@dataclass
class _Links:
    """The lattice under construction: nodes by their keys, and the cheapest link of each (start, end, word)."""

    times: list[int] = field(default_factory=list)
    numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    best: dict[tuple[int, int, int], _Piece] = field(default_factory=dict)

    def node(self, key: tuple[int, ...], time: int) -> int:
        number = self.numbers.setdefault(key, len(self.times))
        if number == len(self.times):
            self.times.append(time)
        return number

    def add(self, start: int, end: int, word: int, piece: _Piece) -> None:
        earlier = self.best.get((start, end, word))
        if earlier is None or piece.cost < earlier.cost:
            self.best[start, end, word] = piece


def word_lattice(
    graph: DecodingGraph,
    arrays: SearchGraph,
    silence: np.ndarray,
    acweight: float,
    lattice_beam: float,
    trace: Trace,
    end: int,
    frames: np.ndarray,
) -> WordLattice:
    """The lattice of a finished search.

    silence (models,) bool; end: the step at the utterance's end; frames (T, K) f4 as for the search.
    """
    return _WordCutter(graph, arrays, silence, acweight, frames).cut(_arcs(trace, end, lattice_beam), trace, end)


def _arcs(trace: Trace, end: int, lattice_beam: float) -> list[_Arc]:
    """The links within the lattice beam, in topological order."""
    arrival, origin, cost, length = kept_arrivals(trace, end, lattice_beam)
    position, first_frame, step = (column.tolist() for column in link_states(trace, arrival, length))
    arrivals = trace.arrivals[arrival]
    arcs = []
    begin = 0
    until = trace.steps["frame"][arrivals["node"]]
    columns = (origin, arrivals["node"], arrivals["label"], cost, arrivals["lm"], arrivals["bonus"], length, until)
    for source, target, what, price, ln_p, bonus, count, time in zip(*(column.tolist() for column in columns)):
        stop = begin + count
        ends = [*first_frame[begin + 1 : stop], time]
        states = tuple(zip(position[begin:stop], first_frame[begin:stop], ends, step[begin:stop]))
        arcs.append(_Arc(source, target, -1 if what == NODE_LABEL else -2 - what, _Piece(price, ln_p, bonus, states)))
        begin = stop
    return arcs


class _WordCutter:
    """Turns links between word arcs and junctions into links between word ends."""

    def __init__(
        self, graph: DecodingGraph, arrays: SearchGraph, silence: np.ndarray, acweight: float, frames: np.ndarray
    ):
        self.graph = graph
        self.arrays = arrays
        self.acweight = acweight
        self.frames = frames
        hmm = graph.arrays.position_state
        self.model = graph.state_model[hmm].tolist()
        self.index = graph.state_index[hmm].tolist()
        self.silence = silence
        self.links = _Links()
        self.open: dict[int, list[_OpenWord]] = {}
        self.emitted: set[tuple[int, int]] = set()
        self.new_sentence = len(arrays.words)  # in place of a word arc
        self.arc_to: dict[int, dict[int, int]] = {}  # of each acceptor state: position -> its first arc there

    def cut(self, arcs: list[_Arc], trace: Trace, end: int) -> WordLattice:
        outgoing: dict[int, list[_Arc]] = {}
        acceptor_state = {0: self.graph.start}
        order: dict[int, None] = {0: None}
        for arc in arcs:
            outgoing.setdefault(arc.source, []).append(arc)
            order.pop(arc.target, None)  # nodes are ordered by their last arrival
            order[arc.target] = None
            acceptor_state[arc.target] = self._state_after(arc, acceptor_state)
        self.links.node((0,), 0)
        for node in order:
            leaving = outgoing.get(node, [])
            time = int(trace.steps[node]["frame"])
            for word in self.open.get(node, []):
                for arc in leaving:
                    self._close(word, arc, acceptor_state[node], (node, time), end)
            if (node,) in self.links.numbers:
                for arc in leaving:
                    self._emit(self.links.numbers[node,], arc, arc.piece, int(trace.steps[arc.target]["frame"]))
        return self._finish()

    def _state_after(self, arc: _Arc, acceptor_state: dict[int, int]) -> int:
        if arc.word_arc == self.new_sentence:
            return self.graph.start
        if arc.word_arc >= 0:
            return int(self.arrays.words[arc.word_arc]["target"])
        if arc.piece.states:
            return int(self.arrays.positions[arc.piece.states[-1][0]]["exit"])
        return acceptor_state[arc.source]

    def _close(self, word: _OpenWord, arc: _Arc, state: int, place: tuple[int, int], end: int) -> None:
        """Extend an open word into `arc`, as far as its last phone goes."""
        length = self._tail_length(word, arc.piece.states)
        if length == 0:
            self.links.add(word.source, self.links.node(place[:1], place[1]), word.word, word.piece)
        elif length == len(arc.piece.states) and arc.word_arc < 0 and arc.target != end:
            last = arc.piece.states[-1][0]
            longer = _OpenWord(
                word.source, word.word, word.piece + arc.piece, (self.model[last], self.index[last]), True
            )
            self.open.setdefault(arc.target, []).append(longer)
        else:
            tail = self._piece(arc.piece.states[:length], state)
            remainder = replace(arc.piece, cost=arc.piece.cost - tail.cost, states=arc.piece.states[length:])
            split = self.links.node((place[0], tail.states[-1][3], tail.states[-1][2]), tail.states[-1][2])
            self.links.add(word.source, split, word.word, word.piece + tail)
            if (split, id(arc)) not in self.emitted:
                self.emitted.add((split, id(arc)))
                self._emit(split, arc, remainder, arc.piece.states[-1][2])

    def _tail_length(self, word: _OpenWord, states: Sequence[_State]) -> int:
        """How many of the states belong to the open word's last phone."""
        last = word.last
        is_inside = word.inside
        length = 0
        for position, *_ in states:
            model = self.model[position]
            index = self.index[position]
            if (last is None or begins_model(model, index, *last, bool(self.silence[model]))) and is_inside:
                return length
            is_inside = True
            last = (model, index)
            length += 1
        return length

    def _emit(self, start: int, arc: _Arc, piece: _Piece, time: int) -> None:
        """Add a link from node `start` of the result, or an open word if the arc has a word."""
        if arc.word_arc < 0 or arc.word_arc == self.new_sentence:
            word = -1 if arc.word_arc < 0 else NEW_SENTENCE
            self.links.add(start, self.links.node((arc.target,), time), word, piece)
            return
        last = None
        if piece.states:
            last = (self.model[piece.states[-1][0]], self.index[piece.states[-1][0]])
        word = int(self.graph.arrays.word_label[arc.word_arc])
        self.open.setdefault(arc.target, []).append(_OpenWord(start, word, piece, last, False))

    def _piece(self, states: Sequence[_State], state: int) -> _Piece:
        """The states with their exact cost from acceptor state `state`, including the last forward transition."""
        arrays = self.arrays
        cost = 0.0
        for position, first, end, _ in states:
            record = arrays.positions[position]
            arc = self._arcs_of(state)[position]
            scores = self.frames[first:end, record["row"]].copy()
            scores[0] = self.frames[first, arrays.arcs[arc]["row"]]
            acoustic = float(scores.sum(dtype=np.float64))
            cost += float(arrays.arcs[arc]["cost"]) - self.acweight * acoustic + float(record["forward_cost"])
            if end - first > 1:  # avoids 0 * inf
                cost += (end - first - 1) * float(record["self_cost"])
            state = int(record["exit"])
        return _Piece(cost, 0.0, 0.0, tuple(states))

    def _arcs_of(self, state: int) -> dict[int, int]:
        """The first arc from an acceptor state to each position."""
        if state not in self.arc_to:
            first, end = (int(self.arrays.states[number]["first_arc"]) for number in (state, state + 1))
            targets = self.arrays.arcs["target"][first:end].tolist()
            self.arc_to[state] = dict(zip(reversed(targets), range(end - 1, first - 1, -1)))
        return self.arc_to[state]

    def _finish(self) -> WordLattice:
        """Number the nodes in topological order, earlier times first where that leaves a choice, and sort the links."""
        links = self.links
        arcs_in = [0] * len(links.times)
        leaving: list[list[int]] = [[] for _ in links.times]
        for start, stop, _ in links.best:
            arcs_in[stop] += 1
            leaving[start].append(stop)
        ready = [(time, node) for node, time in enumerate(links.times) if not arcs_in[node]]
        heapq.heapify(ready)
        order: dict[int, int] = {}
        while ready:
            _, node = heapq.heappop(ready)
            order[node] = len(order)
            for stop in leaving[node]:
                arcs_in[stop] -= 1
                if not arcs_in[stop]:
                    heapq.heappush(ready, (links.times[stop], stop))
        rows = sorted((order[start], order[stop], word, piece) for (start, stop, word), piece in links.best.items())
        states = self.graph.arrays.position_state
        return WordLattice(
            time=np.array([links.times[node] for node in order], dtype=np.int32),
            start=np.array([row[0] for row in rows], dtype=np.int32),
            end=np.array([row[1] for row in rows], dtype=np.int32),
            word=np.array([row[2] for row in rows], dtype=np.int32),
            cost=np.array([row[3].cost for row in rows]),
            lm=np.array([row[3].lm for row in rows]),
            bonus=np.array([row[3].bonus for row in rows]),
            states=[tuple((int(states[p]), a, b) for p, a, b, _ in row[3].states) for row in rows],
        )
