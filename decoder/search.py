"""The decoder's face: options, checks, and what a search found (CNTK book 6.1, 6.1.3.4, 6.2.3).

A path costs: arcs of the graph, HMM transitions, -acweight times the log-likelihood of each frame, and at each word arc

    lm_scale * (-ln P(word | history)) - look-ahead of the word + word_penalty

because the graph has charged the look-ahead on the way to the word.  At the end come the final state's cost and
lm_scale * (-ln P(</s> | history)), unless the path has crossed a word arc </s> already.

After each frame a token lives on if cost + ahead - slack <= least cost + ahead, plus beam; the narrower beam holds for
tokens that have just crossed a word arc.  `ahead` is what the next word will cost at least after the token's history
(`decoder/lm_ahead.py`), 0 without lm_lookahead.  At a word arc the slack grows by what LM and word penalty added there
and `ahead` had not told, if they added anything; with every frame it shrinks by slack_decay.  Of more than max_tokens
tokens the ones of least cost + ahead - slack stay.  Ties: see `decoder/_search_kernels.py`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property

import numpy as np

from decoder._search_kernels import ALL_TOKENS_DIED, NO_FINAL_TOKEN, search
from decoder._search_tables import ARC, END_SENTENCE, KEEP_HISTORY, POSITION, STATE, WORD, Limits, SearchGraph
from decoder.graph.lookahead import optimistic_costs
from decoder.image import DecodingGraph
from decoder.language_model import SENTENCE_END, SENTENCE_START, LanguageModel, LMArrays
from decoder.lattice import WordLattice, word_lattice
from decoder.lm_ahead import NO_AHEAD, LookAhead, look_ahead
from decoder.path import Path, WordTimes, trace_path, word_times, written_words
from readers.errors import ConfigError, GraphError, ShapeError

ROOM = 1024  # tokens that a search has room for at first, a power of two
ROUNDING = 1e-6  # sums taken in another order differ by less
NO_LM = LMArrays(  # one state without arcs; no word of a graph without a language model looks at it
    *(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.int32)),
    *(np.zeros(1, np.float32), np.zeros(1, np.int32)),
)


@dataclass(frozen=True)
class SearchOptions:
    """How to search; defaults are the book's (6.1.3), except where it has none.

    acweight: factor on log-likelihoods; beam: absolute; max_tokens: per frame; word_end_beam_frac: the beam right after
    a word arc, as a part of the beam.
    sil_cost: added once whenever a path enters a silence model from anything else; silence: names of those models, None
    takes the models that realise <s>, and sil and sp.
    lm_scale, word_penalty (added per word, <s> and </s> are none): extensions.  slack_decay: per frame, 0 = no slack.
    lm_lookahead: whether the beam looks ahead with n-grams of every token's own history; what it finds without a beam
    is the same.
    lattice_beam: keep a lattice of all paths found within this cost of the best; None = no lattice.
    partial: give the best unfinished path when no token is final.
    """

    acweight: float = 0.0667
    beam: float = 15.0
    max_tokens: int = 20000
    word_end_beam_frac: float = 0.33333
    sil_cost: float = 1.0
    silence: tuple[str, ...] | None = None
    lm_scale: float = 1.0
    word_penalty: float = 0.0
    slack_decay: float = 0.8
    lm_lookahead: bool = True
    lattice_beam: float | None = None
    partial: bool = False

    def __post_init__(self):
        for name, low, high in (
            ("acweight", 0.0, math.inf),
            ("beam", 0.0, math.inf),
            ("max_tokens", 1, 2**31 - 1),
            ("word_end_beam_frac", 0.0, math.inf),
            ("sil_cost", -1e30, 1e30),
            ("lm_scale", 0.0, 1e30),
            ("word_penalty", -1e30, 1e30),
            ("slack_decay", 0.0, 0.999999),
            ("lattice_beam", 0.0, math.inf),
        ):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:  # NaN fails too
                raise ConfigError(f"search option {name}: {value}; expected {_range_text(low, high)}")
        if math.isinf(self.acweight):
            raise ConfigError("search option acweight: inf; expected a finite number")


def _range_text(low: float, high: float) -> str:
    return f"at least {low:g}" if high >= 1e30 else f"{low:g} to {high:g}"


@dataclass(frozen=True)
class Result:
    """What the search found in one utterance.

    reason: "" when a path reached the end, else why there is none (the path is then empty, or unfinished if
    options.partial).  cost: of the whole path, -ln, inf without one; path: its HMM states and word arcs.
    tokens_per_frame: how many were kept on average, places between frames included.
    """

    reason: str
    num_frames: int
    cost: float = math.inf
    path: Path = field(default_factory=Path.empty)
    lattice: WordLattice | None = None
    tokens_per_frame: float = 0.0
    decoder: "Decoder | None" = field(default=None, repr=False)

    @cached_property
    def words(self) -> list[WordTimes]:
        """The words with their frames and costs; worked out when first asked for."""
        return word_times(self.path, self.decoder.graph, self.decoder.silence) if self.decoder else []

    @property
    def text(self) -> list[str]:
        """The words alone, which need no times."""
        return written_words(self.path, self.decoder.graph) if self.decoder else []


class Decoder:
    """A graph, a language model and options, ready for any number of utterances and threads.

    graph: DecodingGraph; lm: LanguageModel, or None when the graph's own costs are all there is (its look-ahead then
    stays); cntkmap: HMM state -> row of the scores matrix, None for the order of graph.states; cntkmap_where: its name
    in messages.
    Raises GraphError when graph, map and language model do not fit.
    """

    def __init__(
        self,
        graph: DecodingGraph,
        lm: LanguageModel | None = None,
        options: SearchOptions | None = None,
        cntkmap: Mapping[str, int] | None = None,
        cntkmap_where: str = "the cntkmap",
    ):
        self.graph, self.lm = graph, lm
        self.score_row = _score_rows(graph, cntkmap, cntkmap_where)
        self._word_lm = _lm_words(graph, lm)
        self._least_lm_cost = _least_lm_costs(lm, self._word_lm)
        self._set_options(options or SearchOptions())

    def with_options(self, **changes) -> "Decoder":
        """The same decoder with other options; graph and language model are shared."""
        known = {option.name for option in fields(SearchOptions)}
        for name in changes.keys() - known:
            raise ConfigError(f"search option {name}: not known; expected one of {', '.join(sorted(known))}")
        other = object.__new__(Decoder)
        other.__dict__.update(self.__dict__)
        other._set_options(replace(self.options, **changes))
        return other

    def _set_options(self, options: SearchOptions) -> None:
        self.options = options
        self.silence = silence_models(self.graph, options.silence)
        looks_ahead = options.lm_lookahead and bool(np.any(self._word_lm >= 0))
        ahead = self._look_ahead if looks_ahead else NO_AHEAD
        self._arrays = _search_graph(
            self.graph, options, self.score_row, self._word_lm, self._least_lm_cost, self.silence, ahead
        )
        lm = self.lm
        self._limits = Limits(
            acweight=np.float64(options.acweight),  # numpy's, so that interpreted kernels multiply as compiled ones do
            beam=float(options.beam),
            word_beam=float(options.beam) * float(options.word_end_beam_frac) if options.word_end_beam_frac else 0.0,
            max_tokens=int(options.max_tokens),
            lm_scale=float(options.lm_scale),
            slack_decay=float(options.slack_decay),
            looks_ahead=looks_ahead,
            lattice_beam=-1.0 if options.lattice_beam is None else float(options.lattice_beam),
            start=int(self.graph.start),
            lm_start=0 if lm is None else lm.start_state,
            lm_end=-1 if lm is None else lm.end_id,
            max_level=int(self.graph.arrays.word_level.max()),
            room=ROOM,
        )

    @cached_property
    def _look_ahead(self) -> LookAhead:
        return look_ahead(self.graph, self.lm, self._word_lm)

    @property
    def num_rows(self) -> int:
        """Rows that a scores matrix must have at least."""
        return int(self.score_row[self.graph.arrays.position_state].max()) + 1

    def check_outputs(self, num_outputs: int, where: str = "model") -> None:
        """Raise GraphError unless a network with that many outputs serves every state of the graph."""
        rows = self.score_row[self.graph.used_states]
        if rows.max() >= num_outputs:
            state = self.graph.states[self.graph.used_states[rows.argmax()]]
            raise GraphError(
                f"{where}: {num_outputs} outputs, but state [{state}] of {self.graph.where} has index {rows.max()}; "
                f"expected at least {rows.max() + 1} outputs, as in the model that the map was made for"
            )

    def decode(self, scores: np.ndarray) -> Result:
        """Decode one utterance.

        scores (K, T) float32, Fortran order: log-likelihoods of the network's outputs, a column per frame.
        Raises ShapeError for other shapes, too few rows, NaN and +inf; -inf is an impossible state.
        """
        frames = score_frames(scores, self.num_rows)
        lm = NO_LM if self.lm is None else self.lm.arrays
        outcome, cost, end, trace, num_frames, advanced = search(self._arrays, lm, self._limits, frames)
        reason = ""
        if outcome == ALL_TOKENS_DIED:
            reason = f"every token died in frame {num_frames}: all their scores are -inf"
        elif outcome == NO_FINAL_TOKEN:
            reason = "no token reached a final state"
            if not self.options.partial:
                end = -1
        tokens = advanced / num_frames if num_frames else 0.0
        if end < 0:
            return Result(reason, len(frames), tokens_per_frame=tokens)
        lattice, path = None, trace_path(self._arrays, lm, self._limits, trace, end, frames)
        if self.options.lattice_beam is not None and not reason:
            limits = (self.options.acweight, self.options.lattice_beam)
            lattice = word_lattice(self.graph, self._arrays, self.silence, *limits, trace, end, frames)
        return Result(reason, len(frames), float(cost), path, lattice, tokens, self)


def score_frames(scores: np.ndarray, num_rows: int) -> np.ndarray:
    """Log-likelihoods (K, T) as a view (T, K), float32 in C order, read-only: what compiled searches take.

    Raises ShapeError for fewer than num_rows network outputs, NaN and +inf.
    """
    scores = np.asarray(scores)
    if scores.ndim != 2 or scores.shape[0] < num_rows:
        raise ShapeError(f"scores: shape {scores.shape}; expected ({num_rows} or more network outputs, frames)")
    scores = np.asfortranarray(scores, dtype=np.float32)
    if scores.size and not scores.max() < np.inf:  # NaN fails too
        frame = int(np.flatnonzero(~(scores.max(axis=0) < np.inf))[0])
        raise ShapeError(f"scores: NaN or +inf in frame {frame}; expected log-likelihoods")
    frames = scores.T.view()
    frames.flags.writeable = False  # one array type, one compiled kernel
    return frames


def silence_models(graph: DecodingGraph, names: tuple[str, ...] | None) -> np.ndarray:
    """(models,) bool: which models are silence.  Raises GraphError for a name that the graph lacks."""
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
        # Every sentence begins with <s>, so what leaves the start state realises it.
        arcs = slice(arrays.first_emitting[graph.start], arrays.first_emitting[graph.start + 1])
        silence[graph.state_model[arrays.position_state[arrays.emitting_target[arcs]]]] = True
    return silence


def _score_rows(graph: DecodingGraph, cntkmap: Mapping[str, int] | None, where: str) -> np.ndarray:
    """(H,) i4 row of the scores matrix for each HMM state; -1 for states that stand on no arc and have none."""
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


def _and_more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def _lm_words(graph: DecodingGraph, lm: LanguageModel | None) -> np.ndarray:
    """(V,) i4 what each graph word does to the language model."""
    ids = np.full(len(graph.words), KEEP_HISTORY, dtype=np.int32)
    if lm is None:
        return ids
    plain = [i for i, word in enumerate(graph.words) if word not in (SENTENCE_START, SENTENCE_END)]
    ids[plain] = lm.word_ids([graph.words[i] for i in plain], where=graph.where)
    if SENTENCE_END in graph.words:
        ids[graph.words.index(SENTENCE_END)] = END_SENTENCE
    return ids


def _least_lm_costs(lm: LanguageModel | None, word_lm: np.ndarray) -> np.ndarray:
    """(V,) f8 the least LM cost of each graph word after any history; 0 where the LM is not asked."""
    least = np.zeros(word_lm.shape[0])
    asked = word_lm >= 0
    if lm is not None and asked.any():
        costs = optimistic_costs(lm, word_lm[asked])
        least[asked] = np.where(np.isinf(costs), 0.0, costs)
    return least


def _search_graph(
    graph: DecodingGraph,
    options: SearchOptions,
    score_row: np.ndarray,
    word_lm: np.ndarray,
    least_lm_cost: np.ndarray,
    silence: np.ndarray,
    ahead: LookAhead,
) -> SearchGraph:
    """Fill in what the options decide."""
    arrays, exit = graph.arrays, graph.arrays.position_exit
    junction = arrays.junction
    if options.lattice_beam is None:  # only a lattice wants to know of paths that meet and go on as one
        fans_out = np.diff(arrays.first_emitting) + np.diff(arrays.first_word) > 1
        junction = junction * (fans_out | np.isfinite(arrays.final_cost)).astype(np.uint8)
    direct = junction[exit] == 0  # junctions are passed between frames, see cross_words
    label = arrays.word_label
    is_word = np.array([word not in (SENTENCE_START, SENTENCE_END) for word in graph.words], dtype=bool)
    paid = graph.lookahead[label].astype(np.float64) * bool(np.any(word_lm != KEEP_HISTORY))
    paid -= options.word_penalty * is_word[label]
    # Slack grows by what the LM adds; only what it takes away, where the look-ahead was too high, changes cost - slack.
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
        narrows=_narrows(graph, ahead),
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


def _narrows(graph: DecodingGraph, ahead: LookAhead) -> np.ndarray | int:
    """(E,) i4 the set of words that can come next after an emitting arc, -1 where it is the same as before.

    The start state has no look-ahead yet.
    """
    if not ahead.sets.shape[0]:
        return -1
    source = np.repeat(np.arange(graph.num_states), np.diff(graph.arrays.first_emitting))
    after = ahead.of_state[graph.arrays.position_exit[graph.arrays.emitting_target]]
    return np.where((ahead.of_state[source] != after) | (source == graph.start), after, -1)


def _table(dtype: np.dtype, **columns: np.ndarray) -> np.ndarray:
    """An array of records, one column per keyword."""
    table = np.zeros(len(next(iter(columns.values()))), dtype=dtype)
    for name, column in columns.items():
        table[name] = column
    return table


def enters_silence(graph: DecodingGraph, silence: np.ndarray) -> np.ndarray:
    """(E,) bool: emitting arcs into a silence model from anything else than that model.

    What an acceptor state is reached from is looked up through word arcs, which take no time.
    """
    arrays = graph.arrays
    model = graph.state_model[arrays.position_state]  # (P,)
    source = np.repeat(np.arange(graph.num_states), np.diff(arrays.first_emitting))
    target_model = model[arrays.emitting_target]
    word_source = np.repeat(np.arange(graph.num_states), np.diff(arrays.first_word))
    entered = np.zeros(target_model.shape[0], dtype=bool)
    for silent in np.flatnonzero(silence):
        inside = np.zeros(graph.num_states, dtype=bool)  # states reached from this model and nothing else
        outside = np.zeros(graph.num_states, dtype=bool)
        inside[arrays.position_exit[model == silent]] = True
        outside[arrays.position_exit[model != silent]] = True
        outside[graph.start] = True
        for _ in range(int(arrays.word_level.max())):
            inside[arrays.word_target] |= inside[word_source]
            outside[arrays.word_target] |= outside[word_source]
        entered |= (target_model == silent) & ~(inside & ~outside)[source]
    return entered
