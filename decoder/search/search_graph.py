"""Combines a decoding graph, a language model and options into the records that the compiled search reads."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph
from decoder.graph.lookahead import optimistic_costs
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel
from decoder.search.kernels.lookahead import LookAhead
from decoder.search.kernels.search_lm import END_SENTENCE, KEEP_HISTORY
from decoder.search.kernels.tables import ARC, POSITION, STATE, WORD, SearchGraph
from decoder.search.lm_ahead import NO_AHEAD, look_ahead, place_words
from decoder.search.options import SearchOptions
from readers.errors import GraphError
from readers.language.att import EPSILON

NO_WORDS = (SENTENCE_START, SENTENCE_END, EPSILON)  # labels of word arcs that stand for no word
ROUNDING = 1e-6  # more than sums in another order can differ


RecordKey = tuple[object, ...]  # see `record_keys`


class SearchTables:
    """What the search reads of a graph and a language model, made once for all decoders that share them.

    Parameters
    ----------
    graph : DecodingGraph
    lm : LanguageModel or None
    score_row : (H,) array, int32
        See `score_rows`.
    word_lm : (V,) array, int32
        See `lm_words`.
    least_lm_cost : (V,) array, float64
        See `least_lm_costs`.
    ahead : LookAhead, optional
        By default computed when it is first needed.
    ready : mapping of tuple to array, optional
        Records by their keys, see `record_keys`.
    """

    def __init__(
        self,
        graph: DecodingGraph,
        lm: LanguageModel | None,
        score_row: np.ndarray,
        word_lm: np.ndarray,
        least_lm_cost: np.ndarray,
        ahead: LookAhead | None = None,
        ready: Mapping[RecordKey, np.ndarray] | None = None,
    ):
        self.graph = graph
        self.lm = lm
        self.score_row = score_row
        self.word_lm = word_lm
        self.least_lm_cost = least_lm_cost
        if ahead is not None and ahead.is_sum:
            self.summed_look_ahead = ahead
        elif ahead is not None:
            self.look_ahead = ahead
        self._ready = dict(ready or {})
        self._in_use: weakref.WeakValueDictionary[RecordKey, np.ndarray] = weakref.WeakValueDictionary()

    @classmethod
    def make(
        cls, graph: DecodingGraph, lm: LanguageModel | None, cntkmap: Mapping[str, int] | None, where: str
    ) -> "SearchTables":
        """Return the tables of a graph, a language model and a cntkmap, which is called `where` in messages.

        Raises GraphError when they do not fit together.
        """
        rows = score_rows(graph, cntkmap, where)
        word_lm = lm_words(graph, lm)
        return cls(graph, lm, rows, word_lm, least_lm_costs(lm, word_lm))

    @cached_property
    def look_ahead(self) -> LookAhead:
        """The look-ahead tables."""
        assert self.lm is not None  # since words have its ids
        return look_ahead(self.graph, self.lm, self.word_lm)

    @cached_property
    def summed_look_ahead(self) -> LookAhead:
        """The look-ahead tables for `lookahead_sums`."""
        assert self.lm is not None  # as above
        return look_ahead(self.graph, self.lm, self.word_lm, is_sum=True)

    @cached_property
    def place_words(self) -> np.ndarray:
        """The word of each place of the look-ahead, see `place_words`."""
        return place_words(self.graph)

    @cached_property
    def word_symbols(self) -> tuple[dict[str, int], np.ndarray]:
        """The symbols of words in lists of hotwords, see `word_symbols`."""
        return word_symbols(self.graph)

    def looks_ahead(self, options: SearchOptions) -> bool:
        """Return whether the search uses the look-ahead."""
        return options.lm_lookahead and bool(np.any(self.word_lm >= 0))

    def look_ahead_for(self, options: SearchOptions) -> LookAhead:
        """Return the look-ahead tables that the options ask for, NO_AHEAD for none."""
        if not self.looks_ahead(options):
            return NO_AHEAD
        return self.summed_look_ahead if options.lookahead_sums else self.look_ahead

    def new_sentence(self, options: SearchOptions) -> float:
        """Return the cost of a new sentence; inf if none may begin, as in a graph of sentences without HMM states."""
        if options.new_sentence is None or self._sentence_levels is None:
            return np.inf
        return float(options.new_sentence)

    def num_levels(self, options: SearchOptions) -> int:
        """Return the largest number of word arcs and new sentences in a row."""
        levels = self._sentence_levels
        if levels is None or self.new_sentence(options) == np.inf:
            levels = self.graph.arrays.word_level
        return int(levels.max())

    @cached_property
    def _sentence_levels(self) -> np.ndarray | None:
        """(S,) i4: levels of the states if the start state follows the final ones; None if they would form a circle."""
        arrays = self.graph.arrays
        start = self.graph.start
        final = np.isfinite(arrays.final_cost)
        levels = arrays.word_level.copy()
        levels[start] = max(levels[start], levels[final].max() + 1)  # word arcs may lead back to the start state, too
        raised = [start]
        while raised:
            state = raised.pop()
            if final[state]:
                return None
            for target in arrays.word_target[arrays.first_word[state] : arrays.first_word[state + 1]].tolist():
                if levels[target] <= levels[state]:
                    levels[target] = levels[state] + 1
                    raised.append(target)
        return levels

    def search_graph(self, options: SearchOptions, silence: np.ndarray) -> SearchGraph:
        """Return the records for some options and silence models (models,), bool.

        Decoders share the records on whose options they agree.
        """
        ahead = self.look_ahead_for(options)
        costs = float(options.sil_cost), float(options.lm_scale), float(options.word_penalty)
        lattice = options.lattice_beam is not None
        keys = record_keys(lattice, *costs, silence, len(ahead.sets))
        first_word = self.graph.arrays.first_word
        start = self.graph.start
        if self.new_sentence(options) < np.inf and first_word[start] < first_word[start + 1]:
            keys[2] = ("states", lattice, True)
        positions, arcs, states, words = self.records(keys, ahead)
        return SearchGraph(positions, arcs, states, words, ahead)

    def records(self, keys: Sequence[RecordKey], ahead: LookAhead) -> list[np.ndarray]:
        """Return positions, arcs, states and words for the keys of `record_keys`."""
        makers: list[Callable[..., np.ndarray]] = [
            self._positions, partial(self._arcs, ahead), self._states, self._words
        ]  # fmt: skip
        return [self._shared(key, make) for key, make in zip(keys, makers)]

    def _shared(self, key: RecordKey, make: Callable[..., np.ndarray]) -> np.ndarray:
        """Return records that were made before for the same key, or make them."""
        records = self._ready.get(key)
        if records is None:
            records = self._in_use.get(key)
        if records is None:
            self._in_use[key] = records = make(*key[1:])
        return records

    def _junction(self, lattice: bool) -> np.ndarray:
        arrays = self.graph.arrays
        if lattice:
            return arrays.junction
        # Without a lattice, a junction with one way on is not needed.
        fans_out = np.diff(arrays.first_emitting) + np.diff(arrays.first_word) > 1
        return arrays.junction * (fans_out | np.isfinite(arrays.final_cost)).astype(np.uint8)

    def _positions(self, lattice: bool) -> np.ndarray:
        arrays = self.graph.arrays
        exit = arrays.position_exit
        direct = self._junction(lattice)[exit] == 0  # junctions are entered between frames, see process_word_arcs
        return _table(
            POSITION,
            row=self.score_row[arrays.position_state],
            exit=exit,
            first_arc=np.where(direct, arrays.first_emitting[exit], 0),
            end_arc=np.where(direct, arrays.first_emitting[exit + 1], 0),
            crosses=~direct | (np.diff(arrays.first_word)[exit] > 0),
            self_cost=arrays.self_cost,
            forward_cost=arrays.forward_cost,
        )

    def _arcs(self, ahead: LookAhead, sil_cost: float, silence: bytes, num_sets: int) -> np.ndarray:
        arrays = self.graph.arrays
        return _table(
            ARC,
            target=arrays.emitting_target,
            row=self.score_row[arrays.entry_state[arrays.emitting_target]],
            cost=arrays.emitting_cost + np.float32(sil_cost) * enters_silence(self.graph, np.frombuffer(silence, bool)),
            word_set=_changed_sets(self.graph, ahead),
        )

    def _states(self, lattice: bool, sentences: bool = False) -> np.ndarray:
        arrays = self.graph.arrays
        levels = self._sentence_levels if sentences else arrays.word_level
        assert levels is not None
        return _table(
            STATE,
            first_arc=arrays.first_emitting,
            first_word=arrays.first_word,
            junction=np.append(self._junction(lattice), 0),
            level=np.append(levels, 0),
            final_cost=np.append(arrays.final_cost, np.inf),
        )

    def _words(self, lm_scale: float, word_penalty: float) -> np.ndarray:
        graph = self.graph
        arrays = graph.arrays
        label = arrays.word_label
        is_word = np.array([word not in NO_WORDS for word in graph.words], dtype=bool)
        paid = graph.lookahead[label].astype(np.float64) * bool(np.any(self.word_lm != KEEP_HISTORY))
        paid -= word_penalty * is_word[label]
        # Slack absorbs an LM cost above the look-ahead; only one below it, where the look-ahead was too high, lowers
        # cost - slack.
        least_rest = np.minimum(0.0, lm_scale * self.least_lm_cost[label] - paid)
        return _table(
            WORD,
            cost=arrays.word_cost,
            bound=arrays.word_cost + least_rest - ROUNDING,
            paid=paid,
            target=arrays.word_target,
            lm=self.word_lm[label],
        )


def record_keys(
    lattice: bool, sil_cost: float, lm_scale: float, word_penalty: float, silence: np.ndarray, num_sets: int
) -> list[RecordKey]:
    """Return a key for each of positions, arcs, states and words: a name, and the options on which they depend."""
    return [
        ("positions", lattice),
        ("arcs", sil_cost, silence.tobytes(), num_sets),
        ("states", lattice),
        ("words", lm_scale, word_penalty),
    ]


def score_rows(graph: DecodingGraph, cntkmap: Mapping[str, int] | None, where: str) -> np.ndarray:
    """(H,) i4: row of the scores matrix for each HMM state; -1 for a state that is on no arc and has no row."""
    if cntkmap is None:
        return np.arange(len(graph.states), dtype=np.int32)
    states = set(graph.states)
    unknown = [name for name in cntkmap if name not in states]
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
    words = list(graph.words)
    plain = [i for i, word in enumerate(words) if word not in NO_WORDS]
    ids[plain] = lm.word_ids([words[i] for i in plain], where=graph.where)
    if SENTENCE_END in words:
        ids[words.index(SENTENCE_END)] = END_SENTENCE
    return ids


def word_symbols(graph: DecodingGraph) -> tuple[dict[str, int], np.ndarray]:
    """(word -> symbol, (V,) i4: symbol of each graph word), for words as the results show them.

    The graph's own name of a word means the same.  Words with the same output have the same symbol; the symbol is
    END_SENTENCE for </s>, and KEEP_HISTORY for <s> and words without output.
    """
    symbol_of: dict[str, int] = {}
    symbols = np.empty(len(graph.words), np.int32)
    names = list(zip(graph.words, graph.outputs))
    for i, (word, output) in enumerate(names):
        if word == SENTENCE_END:
            symbols[i] = END_SENTENCE
        elif word == SENTENCE_START or not output:
            symbols[i] = KEEP_HISTORY
        else:
            symbols[i] = symbol_of.setdefault(output, len(symbol_of))
    for (word, _), symbol in zip(names, symbols.tolist()):
        if symbol >= 0:
            symbol_of.setdefault(word, symbol)
    return symbol_of, symbols


def least_lm_costs(lm: LanguageModel | None, word_lm: np.ndarray) -> np.ndarray:
    """(V,) f8: the least LM cost of each graph word over all histories; 0 for words that are not in the LM."""
    least = np.zeros(word_lm.shape[0])
    in_lm = word_lm >= 0
    if lm is not None and in_lm.any():
        costs = optimistic_costs(lm, word_lm[in_lm])
        least[in_lm] = np.where(np.isinf(costs), 0.0, costs)
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
        from_silence = np.zeros(graph.num_states, dtype=bool)  # states that follow this model
        from_others = np.zeros(graph.num_states, dtype=bool)
        from_silence[arrays.position_exit[model == silent]] = True
        from_others[arrays.position_exit[model != silent]] = True
        from_others[graph.start] = True
        for _ in range(int(arrays.word_level.max())):
            # Several arcs may lead to a state.
            np.logical_or.at(from_silence, arrays.word_target, from_silence[word_source])
            np.logical_or.at(from_others, arrays.word_target, from_others[word_source])
        entered |= (target_model == silent) & ~(from_silence & ~from_others)[source]
    return entered


def _changed_sets(graph: DecodingGraph, ahead: LookAhead) -> np.ndarray:
    """(E,) i4: the word set after an emitting arc, -1 where it is the same as before the arc.

    Arcs out of the start state always have one, since the first token has no look-ahead yet.
    """
    if not ahead.sets.shape[0]:
        return np.full(len(graph.arrays.emitting_target), -1, np.int32)
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
