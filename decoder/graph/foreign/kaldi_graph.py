"""Kaldi's decoding graphs, HCLG or HCL, as decoding graphs of ours: transition-ids in, words out.

A state of Kaldi's graph that is entered by an arc with a transition-id becomes a position, whose self-loop is that of
the state.  A word on such an arc becomes a word arc before it, and an arc without transition-id a word arc, too: with
its word, or with EPSILON for none.
"""

import re
from collections.abc import Mapping

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph, GraphArcs, WordBoundary, arrays_of, check_graph, freeze
from readers.common.arrays import BoolArray, Int64Array
from readers.errors import GraphError
from readers.kaldi.fst import Fst
from readers.kaldi.hmm.phones import Boundary
from readers.kaldi.transition_model import TransitionModel
from readers.language.att import EPSILON

# Symbols that are no words: #0, #1, ..., which keep a grammar or a lexicon deterministic, and those of subgrammars.
_MARK = re.compile(r"#([0-9]+|nonterm.*)")
FIRST_NONTERMINAL = 10_000_000  # label of an arc that enters or leaves a subgrammar; Kaldi's grammar-context-fst.h


def is_mark(name: str) -> bool:
    """Return whether a name in words.txt is that of a symbol such as #0, which is no word."""
    return _MARK.fullmatch(name) is not None


def kaldi_graph(
    fst: Fst,
    model: TransitionModel,
    phones: Mapping[int, str],
    words: Mapping[int, str],
    where: str,
    boundaries: Mapping[int, Boundary] | None = None,
) -> tuple[DecodingGraph, dict[str, int]]:
    """Compile a graph of Kaldi.

    Parameters
    ----------
    fst : Fst
        Input labels above the transition-ids are disambiguation symbols, which are taken for epsilon; graphs for
        look-ahead may have some.
    model : TransitionModel
    phones, words : mapping of int to str
        Names by number.
    where : str
        Name of the graph in messages.
    boundaries : mapping of int to str, optional
        Place of each phone in words, as of `read_word_boundary`; without them, words end with the phone after their
        label.

    Returns
    -------
    graph : DecodingGraph
        Its states are transition-states, named PHONE_STATE_PDF; its models are phones.
    rows : dict of str to int
        Row of the scores, the pdf, of each state.

    Raises
    ------
    GraphError
        For words without a name, phones without a name or place, subgrammars, places that begin no word, and cycles
        without a transition-id.
    """
    if fst.input.max(initial=0) >= FIRST_NONTERMINAL:
        raise GraphError(
            f"{where}: label {fst.input.max()}, of a subgrammar; expected a graph without #nonterm symbols"
        )
    states, hmm_state = _hmm_states(model, phones, where)
    names, word_id = _words(fst.output, words, where)
    source = fst.source
    is_kept = word_id >= 0  # the others have a disambiguation symbol as output, which no grammar has
    emitting = is_kept & (fst.input > 0) & (fst.input <= model.num_transition_ids)
    loops = _loops(fst, model, source, emitting)
    is_kept &= ~loops & (emitting | (source != fst.target) | (word_id > 0))
    loop_cost = np.full(fst.num_states, np.inf, np.float32)
    loop_cost[source[loops]] = fst.cost[loops]
    loop_state = np.full(fst.num_states, -1, np.int64)
    loop_state[source[loops]] = hmm_state[fst.input[loops]]
    silent = is_kept & ~emitting
    plain = is_kept & emitting & (word_id == 0)
    worded = is_kept & emitting & (word_id > 0)
    # Arcs with words that enter a position in the same way share the state between word and position.
    entered = fst.target[worded].astype(np.int64) * len(states) + hmm_state[fst.input[worded]]
    between, number = np.unique(entered, return_inverse=True)
    middle = fst.num_states + np.arange(len(between))
    arcs = GraphArcs(
        np.concatenate([source[silent], source[plain], source[worded], middle]),
        np.concatenate([fst.target[silent], fst.target[plain], middle[number], between // len(states)]),
        np.concatenate([word_id[silent], ~hmm_state[fst.input[plain]], word_id[worded], ~(between % len(states))]),
        np.concatenate([fst.cost[silent], fst.cost[plain], fst.cost[worded], np.zeros(len(between), np.float32)]),
    )
    final_cost = np.append(fst.final_cost, np.full(len(between), np.inf, np.float32))
    arrays = arrays_of(arcs, final_cost, list(states), None, where)
    exits = arrays.position_exit
    has_loop = loop_state[exits] >= 0
    arrays = freeze(
        arrays._replace(
            position_state=np.where(has_loop, loop_state[exits], arrays.position_state), self_cost=loop_cost[exits]
        )
    )
    models = list(dict.fromkeys(phones[phone] for phone in sorted(model.topologies)))
    index = {name: i for i, name in enumerate(models)}
    word_boundary = None
    if boundaries is not None:
        missing = sorted(set(model.topologies) - set(boundaries))
        if missing:
            raise GraphError(f"{where}: phone {phones[missing[0]]} has no word boundary; expected one for each phone")
        if len(names) > 1 and not {"begin", "singleton"} & set(boundaries.values()):
            raise GraphError(f"{where}: no phone begins a word; expected word boundaries of begin or singleton")
        place_of = {phones[phone]: WordBoundary[boundaries[phone].upper()] for phone in model.topologies}
        word_boundary = np.array([place_of[name] for name in models], np.uint8)
    graph = DecodingGraph(
        arrays=arrays,
        start=fst.start,
        words=names,
        outputs=["" if name == EPSILON else name for name in names],
        states=list(states),
        models=models,
        state_model=np.array([index[phones[phone]] for phone, _, _ in states.values()], np.int32),
        state_index=np.array([state for _, state, _ in states.values()], np.int32),
        lookahead=np.zeros(len(names), np.float32),
        where=where,
        word_boundary=word_boundary,
    )
    check_graph(graph)
    return graph, {name: pdf for name, (_, _, pdf) in states.items()}


def _hmm_states(
    model: TransitionModel, phones: Mapping[int, str], where: str
) -> tuple[dict[str, tuple[int, int, int]], Int64Array]:
    """Return the phone, state and pdf of each HMM state by its name, and the HMM state of each transition-id."""
    missing = sorted(set(model.topologies) - set(phones))
    if missing:
        raise GraphError(f"{where}: phone {missing[0]} of the model has no name; expected one for each phone")
    columns = np.stack([model.phones, model.states, model.pdfs])[:, 1:]
    triples, number = np.unique(columns, axis=1, return_inverse=True)
    states = {f"{phones[phone]}_{state}_{pdf}": (phone, state, pdf) for phone, state, pdf in triples.T.tolist()}
    return states, np.append(-1, number.ravel())


def _words(output: np.ndarray, words: Mapping[int, str], where: str) -> tuple[list[str], Int64Array]:
    """Return the words, EPSILON first, and the word of each arc, -1 for disambiguation symbols."""
    used, number = np.unique(np.append(0, output), return_inverse=True)
    names = [EPSILON]
    ids = [0]
    for label in used[1:].tolist():
        name = words.get(label)
        if not name:
            raise GraphError(f"{where}: word {label} has no name; expected one in the table of words")
        ids.append(-1 if is_mark(name) else len(names))
        if ids[-1] > 0:
            names.append(name)
    return names, np.array(ids)[number[1:].ravel()]


def _loops(fst: Fst, model: TransitionModel, source: Int64Array, emitting: BoolArray) -> BoolArray:
    """Return which arcs (A,) are the self-loops of positions.

    Those of states that can also be entered without a transition-id, and several of one state, stay ordinary arcs.
    """
    loops = emitting & (source == fst.target) & (fst.output == 0)
    loops[emitting] &= model.is_self_loop[fst.input[emitting]]
    is_ordinary = np.bincount(source[loops], minlength=fst.num_states) > 1
    is_ordinary[fst.start] = True
    is_ordinary[fst.target[~emitting]] = True
    return loops & ~is_ordinary[source]
