"""The compiled decoding graph: H o C o L with transition costs, as arrays for the search (CNTK book 6.1.1, 6.1.3.1).

The acceptor's arcs are labelled with HMM states (`[name]`) or words; there are no epsilons and no self-loops.
Compilation creates one *position* for every pair (target state, HMM state): a token stays there while the HMM state
repeats.  It leaves a position by the forward transition into the acceptor state `exit`, and goes on over emitting arcs
(one frame each) or word arcs (no frame).

A *junction* is an acceptor state where several paths meet, or where an utterance may end.  Tokens are merged there
before they fan out, so that each (junction, LM history) is expanded once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from decoder.storage.array_checks import check_costs, check_offsets, check_range
from readers.errors import GraphError
from readers.htk.trees import phone_of
from readers.language.att import EPSILON, Acceptor
from readers.tables.state_names import model_of_state

EPSILON_NAMES = (EPSILON, "<epsilon>", "0")
_MAX_COUNT = 2**31 - 1  # positions, states and arcs are numbered with 32 bits


class GraphArrays(NamedTuple):
    """The arrays of S acceptor states, P positions, E emitting arcs and W word arcs.

    Costs are -ln, inf if impossible. State s has the emitting arcs first_emitting[s] to first_emitting[s + 1] - 1;
    word arcs are numbered in the same way.

    Attributes
    ----------
    position_state, position_exit : (P,) int32
        HMM state, and the acceptor state that is entered when the position is left.
    self_cost, forward_cost : (P,) float32
        Costs of the self-loop and of the forward transition.
    first_emitting : (S + 1,) int32
    emitting_target : (E,) int32
        Position.
    emitting_cost : (E,) float32
    first_word : (S + 1,) int32
    word_label, word_target : (W,) int32
        Word id and acceptor state.
    word_cost : (W,) float32
    final_cost : (S,) float32
    junction : (S,) uint8
        Whether paths meet in the state.
    word_level : (S,) int32
        The largest number of consecutive word arcs that can end in the state.
    entry_state : (P,) int32
        HMM state of the first frame on a position; `position_state` is that of the frames after it.  They differ where
        self-loops have scores of their own, as in Kaldi's chain models.
    """

    position_state: np.ndarray
    position_exit: np.ndarray
    self_cost: np.ndarray
    forward_cost: np.ndarray
    first_emitting: np.ndarray
    emitting_target: np.ndarray
    emitting_cost: np.ndarray
    first_word: np.ndarray
    word_label: np.ndarray
    word_target: np.ndarray
    word_cost: np.ndarray
    final_cost: np.ndarray
    junction: np.ndarray
    word_level: np.ndarray
    entry_state: np.ndarray


DTYPES = {
    name: "<f4" if name.endswith("_cost") else "|u1" if name == "junction" else "<i4" for name in GraphArrays._fields
}


class WordBoundary(IntEnum):
    """Where in a word a phone model stands."""

    NONWORD = 0
    BEGIN = 1
    END = 2
    INTERNAL = 3
    SINGLETON = 4


@dataclass(frozen=True)
class DecodingGraph:
    """A compiled graph; its arrays are read-only, whether it comes from a file or from memory.

    Attributes
    ----------
    arrays : GraphArrays
        The arrays that the search reads.
    start : int
        Acceptor state.
    words, outputs : sequence of str
        Word of each id, and how it is written, "" for not at all.
    states, models : list of str
        Names of the HMM states, without brackets, and of the phone models.
    state_model, state_index : (H,) int32
        The phone model of each HMM state, and its index in the model.
    lookahead : (V,) float32
        LM cost, -ln, of each word that the graph has already charged.
    where : str
        Its name in messages.
    word_boundary : (M,) uint8, optional
        Place of each phone model in words, one of WordBoundary, for graphs whose word labels may stand anywhere in
        their words.
    """

    arrays: GraphArrays
    start: int
    words: Sequence[str]
    outputs: Sequence[str]
    states: list[str]
    models: list[str]
    state_model: np.ndarray
    state_index: np.ndarray
    lookahead: np.ndarray
    where: str = field(default="graph", compare=False)
    word_boundary: np.ndarray | None = None

    @property
    def num_positions(self) -> int:
        """P, the number of positions."""
        return self.arrays.position_state.shape[0]

    @property
    def num_states(self) -> int:
        """S, the number of acceptor states."""
        return self.arrays.final_cost.shape[0]

    @property
    def used_states(self) -> np.ndarray:
        """HMM states that occur on an arc, in rising order."""
        return np.union1d(self.arrays.position_state, self.arrays.entry_state)


def precompile(
    acceptor: Acceptor,
    transitions: Mapping[str, Sequence[float]] | None = None,
    lookahead: Mapping[str, float] | None = None,
    state_map: Mapping[str, Sequence[str]] | None = None,
    outputs: Mapping[str, str] | None = None,
    where: str = "graph",
) -> DecodingGraph:
    """Compile an epsilon-free acceptor into a decoding graph.

    Parameters
    ----------
    acceptor : Acceptor
        H o C o L; labels are `[state]` or words, costs -ln.
    transitions : mapping of str to sequence of float, optional
        HMM state -> (ln P(self), ln P(forward)).  Without it transitions cost nothing.
    lookahead : mapping of str to float, optional
        word -> LM cost (-ln) that the acceptor contains.  By default none.
    state_map : mapping of str to sequence of str, optional
        Phone model -> its HMM states, left to right.  Without it model and index are taken from names such as `aa_s2`,
        `eh_s2_1` and `sil[2]`; any other name is a model with one state.
    outputs : mapping of str to str, optional
        How words are written where that differs from the word; "" for not at all.
    where : str
        Name of the graph in messages.

    Returns
    -------
    DecodingGraph

    Raises
    ------
    GraphError
        For epsilon arcs, cycles of word arcs, a graph without final states, and states or words that are missing from
        the given mappings.

    References
    ----------
    CNTK book, sections 6.1.1 and 6.1.3.1.
    """
    acceptor.check()
    label, words, used = _split_labels(acceptor, where)
    states = _all_states(used, transitions, where)
    number = {name: i for i, name in enumerate(states)}
    label[label < 0] = ~np.array([number[name] for name in used], dtype=np.int64)[~label[label < 0]]
    final_cost = np.full(acceptor.num_states, np.inf, dtype=np.float32)
    np.minimum.at(final_cost, acceptor.final, acceptor.final_cost)
    arcs = GraphArcs(acceptor.source, acceptor.target, label, acceptor.cost)
    arrays = arrays_of(arcs, final_cost, states, transitions, where)
    models, state_model, state_index = _models(states, state_map)
    graph = DecodingGraph(
        arrays=arrays,
        start=int(acceptor.start),
        words=words,
        outputs=[(outputs or {}).get(word, word) for word in words],
        states=states,
        models=models,
        state_model=state_model,
        state_index=state_index,
        lookahead=_lookahead_of(words, lookahead, where),
        where=where,
    )
    check_graph(graph)
    return graph


class GraphArcs(NamedTuple):
    """Arcs (A,) between acceptor states; label: the id of a word, or ~ that of an HMM state; cost f4."""

    source: np.ndarray
    target: np.ndarray
    label: np.ndarray
    cost: np.ndarray


def arcs_of(arrays: GraphArrays) -> GraphArcs:
    """Return the arcs from which a graph was compiled."""
    states = np.arange(arrays.final_cost.shape[0])
    target = arrays.emitting_target
    return GraphArcs(
        np.concatenate([np.repeat(states, np.diff(first)) for first in (arrays.first_emitting, arrays.first_word)]),
        np.concatenate([arrays.position_exit[target], arrays.word_target]),
        np.concatenate([~arrays.entry_state[target], arrays.word_label]),
        np.concatenate([arrays.emitting_cost, arrays.word_cost]),
    )


def arrays_of(
    arcs: GraphArcs,
    final_cost: np.ndarray,
    states: Sequence[str],
    transitions: Mapping[str, Sequence[float]] | None,
    where: str,
) -> GraphArrays:
    """Return the arrays of a graph with some arcs; states: the names of the HMM states; the others as in `precompile`.

    Raises GraphError for a cycle of word arcs.
    """
    num_states = final_cost.shape[0]
    emitting = arcs.label < 0
    pair = arcs.target[emitting].astype(np.int64) * len(states) + ~arcs.label[emitting]
    positions, target = np.unique(pair, return_inverse=True)
    position_exit, position_state = np.divmod(positions, len(states))
    emitting_cost = arcs.cost[emitting]
    word = ~emitting
    first_emitting, order_of_arcs = _grouped(num_states, emitting_cost, arcs.source[emitting], target)
    word_label = arcs.label[word]
    first_word, order = _grouped(num_states, arcs.cost[word], arcs.source[word], arcs.target[word], word_label)
    self_cost, forward_cost = _transition_costs(states, transitions)
    word_target = arcs.target[word][order]
    arrays = GraphArrays(
        position_state=position_state,
        position_exit=position_exit,
        self_cost=self_cost[position_state],
        forward_cost=forward_cost[position_state],
        first_emitting=first_emitting,
        emitting_target=target[order_of_arcs],
        emitting_cost=emitting_cost[order_of_arcs],
        first_word=first_word,
        word_label=word_label[order],
        word_target=word_target,
        word_cost=arcs.cost[word][order],
        final_cost=final_cost,
        junction=_junctions(position_exit, word_target, final_cost),
        word_level=_word_levels(first_word, word_target, where),
        entry_state=position_state,
    )
    return freeze(arrays)


def freeze(arrays: GraphArrays) -> GraphArrays:
    """The arrays as the kernels take them: contiguous, little-endian, read-only."""
    frozen = []
    for name, array in zip(GraphArrays._fields, arrays):
        if array.shape[0] > _MAX_COUNT:
            raise GraphError(f"graph: {array.shape[0]} entries in {name}; expected at most {_MAX_COUNT}")
        array = np.ascontiguousarray(array, dtype=DTYPES[name]).view()
        array.flags.writeable = False
        frozen.append(array)
    return GraphArrays(*frozen)


def check_graph(graph: DecodingGraph) -> None:
    """Check what the search relies on.  Raises GraphError."""
    arrays = graph.arrays
    where = graph.where
    num_states = graph.num_states
    num_positions = graph.num_positions
    num_hmm = len(graph.states)
    num_words = len(graph.words)
    if not num_positions:
        raise GraphError(f"{where}: no arc with an HMM state; expected labels such as [aa_s2]")
    if not 0 <= graph.start < num_states:
        raise GraphError(f"{where}: start state {graph.start}; expected 0 to {num_states - 1}")
    for name, bound in (
        ("position_state", num_hmm),
        ("entry_state", num_hmm),
        ("position_exit", num_states),
        ("emitting_target", num_positions),
        ("word_label", num_words),
        ("word_target", num_states),
        ("word_level", num_states + 1),
        ("junction", 2),
    ):
        check_range(getattr(arrays, name), bound, name, where)
    check_offsets(arrays.first_emitting, arrays.emitting_target.shape[0], "first_emitting", where)
    check_offsets(arrays.first_word, arrays.word_target.shape[0], "first_word", where)
    for name in ("self_cost", "forward_cost", "emitting_cost", "word_cost", "final_cost"):
        check_costs(getattr(arrays, name), name, where)
    check_costs(graph.lookahead, "lookahead", where, infinite=False)
    check_range(graph.state_model, len(graph.models), "state_model", where)
    if graph.word_boundary is not None:
        check_range(graph.word_boundary, len(WordBoundary), "word_boundary", where)
    level = np.zeros(num_states, arrays.word_level.dtype)
    np.maximum.at(level, arrays.word_target, np.repeat(arrays.word_level, np.diff(arrays.first_word)) + 1)
    if not np.array_equal(level, arrays.word_level):
        raise GraphError(f"{where}: word levels do not rise along word arcs; compile the graph again")
    if not np.any(np.isfinite(arrays.final_cost)):
        raise GraphError(f"{where}: no final state; expected at least one")


def _split_labels(acceptor: Acceptor, where: str) -> tuple[np.ndarray, list[str], list[str]]:
    """Per arc the word's id, or ~(state's id); the words and HMM states, each in order of symbol ids."""
    used = np.unique(acceptor.label)
    number = np.zeros(len(acceptor.symbols), dtype=np.int64)
    words: list[str] = []
    states: list[str] = []
    for i in used:
        symbol = acceptor.symbols[i]
        if symbol in EPSILON_NAMES or not symbol:
            arc = int(np.flatnonzero(acceptor.label == i)[0])
            raise GraphError(
                f"{where}: epsilon arc from state {acceptor.source[arc]} to {acceptor.target[arc]}; expected HMM "
                "states and words only; remove epsilons first, for instance with fstrmepsilon"
            )
        if len(symbol) > 2 and symbol[0] == "[" and symbol[-1] == "]":
            number[i] = ~len(states)
            states.append(symbol[1:-1])
        else:
            number[i] = len(words)
            words.append(symbol)
    return number[acceptor.label], words, states


def _all_states(used: list[str], transitions: Mapping[str, Sequence[float]] | None, where: str) -> list[str]:
    """HMM states of the model set: those with transitions, or those on arcs."""
    if transitions is None:
        return used
    missing = [name for name in used if name not in transitions]
    if missing:
        raise GraphError(
            f"{where}: no transitions for {len(missing)} HMM states, the first [{missing[0]}]; "
            "expected one line `[state] ln_self ln_forward` for each"
        )
    return list(transitions)


def _grouped(num_states: int, cost: np.ndarray, source: np.ndarray, *keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first (S+1,), order): arcs sorted by source, then by keys, of equal ones only the cheapest.

    Those of state s are order[first[s]:first[s+1]].
    """
    order = np.lexsort((cost, *reversed(keys), source))
    new = np.ones(order.shape[0], dtype=bool)
    new[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in (source, *keys)], axis=0)
    order = order[new]
    return np.searchsorted(source[order], np.arange(num_states + 1)), order


def _transition_costs(
    states: Sequence[str], transitions: Mapping[str, Sequence[float]] | None
) -> tuple[np.ndarray, np.ndarray]:
    if transitions is None:
        return np.zeros(len(states), np.float32), np.zeros(len(states), np.float32)
    costs = -np.array([tuple(transitions[name])[:2] for name in states], dtype=np.float64).reshape(-1, 2)
    return costs[:, 0].astype(np.float32), costs[:, 1].astype(np.float32)


def _lookahead_of(words: list[str], lookahead: Mapping[str, float] | None, where: str) -> np.ndarray:
    if lookahead is None:
        return np.zeros(len(words), dtype=np.float32)
    missing = [word for word in words if word not in lookahead]
    if missing:
        raise GraphError(
            f"{where}: no look-ahead score for {len(missing)} words, the first {missing[0]!r}; expected one per word"
        )
    return np.array([lookahead[word] for word in words], dtype=np.float32)


def _junctions(position_exit: np.ndarray, word_target: np.ndarray, final_cost: np.ndarray) -> np.ndarray:
    num_states = final_cost.shape[0]
    positions = np.bincount(position_exit, minlength=num_states)
    entries = positions + np.bincount(word_target, minlength=num_states)
    return (((positions > 0) & (entries > 1)) | np.isfinite(final_cost)).astype(np.uint8)


def _word_levels(first_word: np.ndarray, word_target: np.ndarray, where: str) -> np.ndarray:
    """(S,) the longest run of word arcs that ends in each state.  Raises GraphError for a cycle of word arcs.

    Topological sort: in each round, the states whose incoming word arcs have all been seen.
    """
    num_states = first_word.shape[0] - 1
    level = np.zeros(num_states, dtype=np.int32)
    waiting = np.bincount(word_target, minlength=num_states)
    ready = np.flatnonzero((waiting == 0) & (np.diff(first_word) > 0))
    depth = 0
    while ready.size:
        depth += 1
        counts = first_word[ready + 1] - first_word[ready]
        arcs = np.repeat(first_word[ready] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        targets, arrivals = np.unique(word_target[arcs], return_counts=True)
        waiting[targets] -= arrivals
        ready = targets[waiting[targets] == 0]
        level[ready] = depth
    if np.any(waiting > 0):
        state = _on_cycle(first_word, word_target, waiting)
        raise GraphError(
            f"{where}: a cycle of word arcs goes through state {state}; expected an HMM state on every cycle"
        )
    return level


def _on_cycle(first_word: np.ndarray, word_target: np.ndarray, waiting: np.ndarray) -> int:
    """A state on a cycle: following predecessors among the waiting states never ends, so it returns to one."""
    source = np.repeat(np.arange(first_word.shape[0] - 1), np.diff(first_word))
    before = {int(t): int(s) for s, t in zip(source, word_target) if waiting[s] > 0}
    state = int(np.flatnonzero(waiting > 0)[0])
    visited = set()
    while state not in visited:
        visited.add(state)
        state = before[state]
    return state


def _models(
    states: list[str], state_map: Mapping[str, Sequence[str]] | None
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """(models, state_model (H,), state_index (H,)) of the HMM states; the model of a triphone is its phone."""
    position: dict[str, tuple[str, int]] = {}
    first_model: dict[tuple[str, ...], str] = {}  # thousands of models have the states of another one
    for model, names in (state_map or {}).items():
        first_model.setdefault(tuple(names), model)
    # A state of several models belongs to the longest, then to the first: to sil, not to sp.
    for names, model in sorted(first_model.items(), key=lambda item: -len(item[0])):
        phone = phone_of(model)
        for index, name in enumerate(names, start=2):  # HTK counts emitting states from 2
            position.setdefault(name, (phone, index))
    pairs = [position.get(name) or model_of_state(name) for name in states]
    models = list(dict.fromkeys(model for model, _ in pairs))
    number = {model: i for i, model in enumerate(models)}
    state_model = np.array([number[model] for model, _ in pairs], dtype=np.int32)
    return models, state_model, np.array([index for _, index in pairs], dtype=np.int32)
