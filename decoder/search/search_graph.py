"""Combines a decoding graph, a language model and options into the records that the compiled search reads."""

from collections.abc import Mapping

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph
from decoder.graph.lookahead import optimistic_costs
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel
from decoder.search.kernels.tables import ARC, END_SENTENCE, KEEP_HISTORY, POSITION, STATE, WORD, SearchGraph
from decoder.search.lm_ahead import LookAhead
from decoder.search.options import SearchOptions
from readers.errors import GraphError

ROUNDING = 1e-6  # more than sums in another order can differ


def search_graph(
    graph: DecodingGraph,
    options: SearchOptions,
    score_row: np.ndarray,
    word_lm: np.ndarray,
    least_lm_cost: np.ndarray,
    silence: np.ndarray,
    ahead: LookAhead,
) -> SearchGraph:
    """The graph's records, with everything filled in that the options decide."""
    arrays, exit = graph.arrays, graph.arrays.position_exit
    junction = arrays.junction
    if options.lattice_beam is None:  # without a lattice, a junction with one way on is not needed
        fans_out = np.diff(arrays.first_emitting) + np.diff(arrays.first_word) > 1
        junction = junction * (fans_out | np.isfinite(arrays.final_cost)).astype(np.uint8)
    direct = junction[exit] == 0  # junctions are entered between frames, see process_word_arcs
    label = arrays.word_label
    is_word = np.array([word not in (SENTENCE_START, SENTENCE_END) for word in graph.words], dtype=bool)
    paid = graph.lookahead[label].astype(np.float64) * bool(np.any(word_lm != KEEP_HISTORY))
    paid -= options.word_penalty * is_word[label]
    # Slack absorbs an LM cost above the look-ahead; only one below it, where the look-ahead was too high, lowers
    # cost - slack.
    least_rest = np.minimum(0.0, options.lm_scale * least_lm_cost[label] - paid)
    positions = _table(
        POSITION,
        row=score_row[arrays.position_state],
        exit=exit,
        first_arc=np.where(direct, arrays.first_emitting[exit], 0),
        end_arc=np.where(direct, arrays.first_emitting[exit + 1], 0),
        crosses=~direct | (np.diff(arrays.first_word)[exit] > 0),
        self_cost=arrays.self_cost,
        forward_cost=arrays.forward_cost,
    )
    arcs = _table(
        ARC,
        target=arrays.emitting_target,
        row=score_row[arrays.position_state[arrays.emitting_target]],
        cost=arrays.emitting_cost + np.float32(options.sil_cost) * enters_silence(graph, silence),
        word_set=_changed_sets(graph, ahead),
    )
    states = _table(
        STATE,
        first_arc=arrays.first_emitting,
        first_word=arrays.first_word,
        junction=np.append(junction, 0),
        level=np.append(arrays.word_level, 0),
        final_cost=np.append(arrays.final_cost, np.inf),
    )
    words = _table(
        WORD,
        cost=arrays.word_cost,
        bound=arrays.word_cost + least_rest - ROUNDING,
        paid=paid,
        target=arrays.word_target,
        lm=word_lm[label],
    )
    return SearchGraph(positions, arcs, states, words, ahead)


def score_rows(graph: DecodingGraph, cntkmap: Mapping[str, int] | None, where: str) -> np.ndarray:
    """(H,) i4: row of the scores matrix for each HMM state; -1 for a state that is on no arc and has no row."""
    if cntkmap is None:
        return np.arange(len(graph.states), dtype=np.int32)
    unknown = [name for name in cntkmap if name not in set(graph.states)]
    if unknown:
        raise GraphError(
            f"{where}: state [{unknown[0]}]{_and_more(unknown)} not in {graph.where}; expected states of its model set"
        )
    rows = np.array([cntkmap.get(name, -1) for name in graph.states], dtype=np.int32)
    missing = [graph.states[i] for i in graph.used_states if rows[i] < 0]
    if missing:
        raise GraphError(
            f"{graph.where}: state [{missing[0]}]{_and_more(missing)} has no index in {where}; "
            "expected a line `[state] index` for each"
        )
    return rows


def lm_words(graph: DecodingGraph, lm: LanguageModel | None) -> np.ndarray:
    """(V,) i4: LM word of each graph word, or KEEP_HISTORY, END_SENTENCE."""
    ids = np.full(len(graph.words), KEEP_HISTORY, dtype=np.int32)
    if lm is None:
        return ids
    plain = [i for i, word in enumerate(graph.words) if word not in (SENTENCE_START, SENTENCE_END)]
    ids[plain] = lm.word_ids([graph.words[i] for i in plain], where=graph.where)
    if SENTENCE_END in graph.words:
        ids[graph.words.index(SENTENCE_END)] = END_SENTENCE
    return ids


def least_lm_costs(lm: LanguageModel | None, word_lm: np.ndarray) -> np.ndarray:
    """(V,) f8: the least LM cost of each graph word over all histories; 0 for words that are not in the LM."""
    least = np.zeros(word_lm.shape[0])
    asked = word_lm >= 0
    if lm is not None and asked.any():
        costs = optimistic_costs(lm, word_lm[asked])
        least[asked] = np.where(np.isinf(costs), 0.0, costs)
    return least


def silence_models(graph: DecodingGraph, names: tuple[str, ...] | None) -> np.ndarray:
    """(models,) bool: which models are silence.  Raises GraphError for a name that is not in the graph."""
    if names is not None:
        for name in names:
            if name not in graph.models:
                raise GraphError(
                    f"{graph.where}: no silence model {name!r}; expected one of its {len(graph.models)} phone models"
                )
        return np.isin(graph.models, names)
    silence = np.isin(graph.models, ("sil", "sp"))
    arrays = graph.arrays
    if SENTENCE_START in graph.words:
        # Every sentence begins with <s>, so the arcs out of the start state belong to it.
        arcs = slice(arrays.first_emitting[graph.start], arrays.first_emitting[graph.start + 1])
        silence[graph.state_model[arrays.position_state[arrays.emitting_target[arcs]]]] = True
    return silence


def enters_silence(graph: DecodingGraph, silence: np.ndarray) -> np.ndarray:
    """(E,) bool: emitting arcs that enter a silence model from any other model.

    The model before an arc is found by going back over word arcs, which consume no frame.
    """
    arrays = graph.arrays
    model = graph.state_model[arrays.position_state]  # (P,)
    source = np.repeat(np.arange(graph.num_states), np.diff(arrays.first_emitting))
    target_model = model[arrays.emitting_target]
    word_source = np.repeat(np.arange(graph.num_states), np.diff(arrays.first_word))
    entered = np.zeros(target_model.shape[0], dtype=bool)
    for silent in np.flatnonzero(silence):
        inside = np.zeros(graph.num_states, dtype=bool)  # states reached from this model
        outside = np.zeros(graph.num_states, dtype=bool)
        inside[arrays.position_exit[model == silent]] = True
        outside[arrays.position_exit[model != silent]] = True
        outside[graph.start] = True
        for _ in range(int(arrays.word_level.max())):
            np.logical_or.at(inside, arrays.word_target, inside[word_source])  # several arcs may lead to a state
            np.logical_or.at(outside, arrays.word_target, outside[word_source])
        entered |= (target_model == silent) & ~(inside & ~outside)[source]
    return entered


def _changed_sets(graph: DecodingGraph, ahead: LookAhead) -> np.ndarray | int:
    """(E,) i4: the word set after an emitting arc, -1 where it is the same as before the arc.

    Arcs out of the start state always have one, since the first token has no look-ahead yet.
    """
    if not ahead.sets.shape[0]:
        return -1
    source = np.repeat(np.arange(graph.num_states), np.diff(graph.arrays.first_emitting))
    after = ahead.state_set[graph.arrays.position_exit[graph.arrays.emitting_target]]
    return np.where((ahead.state_set[source] != after) | (source == graph.start), after, -1)


def _table(dtype: np.dtype, **columns: np.ndarray) -> np.ndarray:
    """An array of records with one column per keyword."""
    table = np.zeros(len(next(iter(columns.values()))), dtype=dtype)
    for name, column in columns.items():
        table[name] = column
    return table


def _and_more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""
