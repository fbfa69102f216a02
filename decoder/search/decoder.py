"""The decoder: checks its inputs, runs the compiled search, and presents the result (CNTK book 6.1, 6.1.3.4, 6.2.3).

The cost of a path is the sum of the graph's arc costs, the HMM transitions, -acweight times the log-likelihood of each
frame, and at each word arc

    lm_scale * (-ln P(word | history)) - look-ahead of the word + word_penalty

because the graph has charged the look-ahead on the way to the word; with hotwords less their bonus
(`decoder/search/hotwords.py`).  At the end it includes the cost of the final state
and lm_scale * (-ln P(</s> | history)), unless the path has crossed a word arc </s> already.  With new_sentence, a path
may go on from there: for these costs and new_sentence, it enters the start state again with the history of <s>.

After each frame a token is kept if cost + ahead - slack <= least (cost + ahead) + beam; for tokens that have just
crossed a word arc the narrower word-end beam holds.  `ahead` is a lower bound of the cost of the next word after the
token's history (`decoder/search/lm_ahead.py`), 0 without lm_lookahead.  At a word arc the slack grows by the LM cost
and word penalty that `ahead` had not covered, if that is positive; with every frame it is multiplied by slack_decay.
If there are more than max_tokens tokens, those of least cost + ahead - slack are kept.  If no path reaches a final
state, the utterance is decoded again with wider beams.
Ties are described in `decoder/search/kernels/advance.py`.

The search follows Soltau and Saon, Dynamic network decoding revisited, ASRU 2009, as the CNTK book cites it; the graph
is H o C o L of Mohri, Pereira and Riley, Weighted finite-state transducers in speech recognition, Computer Speech and
Language 16(1), 2002.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph
from decoder.lm.language_model import LanguageModel, LMArrays
from decoder.search.hotwords import DEFAULT_SCORE, Phrases, compile_phrases, open_phrases
from decoder.search.kernels.search_lm import SearchLM
from decoder.search.kernels.tables import Settings
from decoder.search.kernels.token_store import STEPS, Trace
from decoder.search.kernels.utterance import ALL_TOKENS_DIED, NO_FINAL_TOKEN, new_cache, search, start_search
from decoder.search.lattice import WordLattice, word_lattice
from decoder.search.options import SearchOptions
from decoder.search.path import PhoneTimes, SearchPath, WordTimes, phone_times, trace_path, word_times, written_words
from decoder.search.search_graph import SearchTables, silence_models
from readers.common.faults import OnFault
from readers.errors import ConfigError, GraphError, ShapeError

INITIAL_TOKENS = 1024  # initial size of the token tables, a power of two
NO_LM = LMArrays(  # one state without arcs, for kernels that are called without a language model
    *(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0, np.int32)),
    *(np.zeros(1, np.float32), np.zeros(1, np.int32)),
)


@dataclass(frozen=True)
class DecodingResult:
    """The result of the search for one utterance.

    Attributes
    ----------
    reason : str
        "" if a path reached a final state, otherwise why none did; the path is then unfinished, or without `partial` of
        the options empty.
    num_frames : int
        Frames of the utterance.
    cost : float
        Cost of the whole path, -ln; inf without a path.
    path : SearchPath
        HMM states and word arcs of the best path.
    lattice : WordLattice or None
        The lattice, if the options ask for one.
    margin : (T,) float32
        What the best state of each frame scores above the best state of silence, in nats, unweighted; empty without a
        path, or without silence in the graph.
    tokens_per_frame : float
        Average number of tokens kept, those between frames included.
    widenings : int
        How often the beam was doubled.
    decoder : Decoder or None
        The decoder, which names the words of the path.
    """

    reason: str
    num_frames: int
    cost: float = math.inf
    path: SearchPath = field(default_factory=SearchPath.empty)
    lattice: WordLattice | None = None
    margin: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32), repr=False)
    tokens_per_frame: float = 0.0
    widenings: int = 0
    decoder: "Decoder | None" = field(default=None, repr=False)

    @cached_property
    def words(self) -> list[WordTimes]:
        """The words with their frames and costs; computed when first asked for."""
        return word_times(self.path, self.decoder.graph, self.decoder.silence) if self.decoder else []

    @property
    def phones(self) -> list[PhoneTimes]:
        """The phone models with their frames, silence among them."""
        return phone_times(self.path, self.decoder.graph, self.decoder.silence) if self.decoder else []

    @property
    def text(self) -> list[str]:
        """The words alone; cheaper than `words`."""
        return written_words(self.path, self.decoder.graph) if self.decoder else []


class Decoder:
    """A token-passing decoder: a graph, a language model and options, for any number of utterances and threads.

    Parameters
    ----------
    graph : DecodingGraph
        A compiled graph, see `decoder.graph.load_graph`.
    lm : LanguageModel, optional
        Without one, words have only the costs in the graph, its look-ahead among them.
    options : SearchOptions, optional
        Beams, weights and penalties.
    cntkmap : mapping of str to int, optional
        Row of the scores matrix for each HMM state.  Without one, rows are in the order of graph.states.
    cntkmap_where : str
        The name of the map in messages, such as its path.

    Raises
    ------
    GraphError
        When graph, map and language model do not fit together.

    References
    ----------
    CNTK book, sections 6.1 and 6.1.3.4; Soltau and Saon, Dynamic network decoding revisited, ASRU 2009.

    Examples
    --------
    >>> lm = open_language_model("words.arpa")
    >>> decoder = Decoder(load_graph("graph.dg"), lm, SearchOptions(beam=14))
    >>> decoder.decode(scores).text
    """

    def __init__(
        self,
        graph: DecodingGraph,
        lm: LanguageModel | None = None,
        options: SearchOptions | None = None,
        cntkmap: Mapping[str, int] | None = None,
        cntkmap_where: str = "the cntkmap",
    ):
        self._use(SearchTables.make(graph, lm, cntkmap, cntkmap_where), options or SearchOptions())

    def _use(self, tables: SearchTables, options: SearchOptions) -> None:
        self.graph = tables.graph
        self.lm = tables.lm
        self.score_row = tables.score_row
        self._tables = tables
        self._phrases: Phrases = {}
        self._num_rows = int(tables.score_row[tables.graph.used_states].max()) + 1
        self._set_options(options)

    def with_options(self, **changes: Any) -> "Decoder":
        """A decoder with some options changed; graph and language model are shared.

        Parameters
        ----------
        **changes
            Fields of `SearchOptions` and their new values.

        Returns
        -------
        Decoder

        Raises
        ------
        ConfigError
            For an unknown option or a value out of range.
        """
        names = {option.name for option in fields(SearchOptions)}
        for name in changes.keys() - names:
            raise ConfigError(f"search option {name}: unknown; expected one of {', '.join(sorted(names))}")
        decoder = copy.copy(self)
        decoder._set_options(replace(self.options, **changes))
        return decoder

    def with_hotwords(
        self,
        phrases: str | Path | Mapping[str, float] | Sequence[str],
        score: float = DEFAULT_SCORE,
        on_fault: OnFault | None = None,
    ) -> "Decoder":
        """A decoder that prefers some phrases; graph and language model are shared.

        Parameters
        ----------
        phrases : str, Path, mapping of str to float, or list of str
            A file with lines `PHRASE :score` (see `readers.language.read_hotwords`), phrase -> score, or phrases.  The
            score is subtracted from the cost of a path for each word of the phrase; see `decoder/search/hotwords.py`.
            They replace those given before; an empty list removes them.
        score : float
            Of phrases without one.
        on_fault : callable, optional
            Gets the error for words that are not in the graph; the phrases with such words are then left out.

        Returns
        -------
        Decoder
            With scores of 0, its results are the same to the bit.

        Raises
        ------
        ArgonautError
            For words that are not in the graph (with on_fault only if no phrase is left), empty phrases, scores that
            are no numbers from -1000 to 1000, and a malformed file.
        OSError
        """
        decoder = copy.copy(self)
        decoder._phrases = open_phrases(phrases, score, self._tables, on_fault)
        decoder._set_options(self.options)
        return decoder

    def with_hotwords_of(self, other: "Decoder") -> "Decoder":
        """A decoder with the hotwords of another one, except for those with words that its graph does not have."""
        if not other._phrases:
            return self
        symbol_of, _ = self._tables.word_symbols
        return self.with_hotwords(
            {" ".join(words): score for words, score in other._phrases.items() if symbol_of.keys() >= set(words)}
        )

    def _set_options(self, options: SearchOptions) -> None:
        self.options = options
        self.silence = silence_models(self.graph, options.silence)
        self._arrays = self._tables.search_graph(options, self.silence)
        used = self.graph.used_states
        self._silent_rows = np.unique(self.score_row[used[self.silence[self.graph.state_model[used]]]])
        lm = self.lm
        self._caches: list[np.ndarray] = []  # of look-ahead costs, one per thread, while no search uses them
        self._settings = Settings(
            acweight=np.float64(options.acweight),  # interpreted kernels then round as compiled ones do
            beam=float(options.beam),
            word_beam=float(options.beam) * float(options.word_end_beam_frac) if options.word_end_beam_frac else 0.0,
            max_tokens=int(options.max_tokens),
            lm_scale=float(options.lm_scale),
            slack_decay=float(options.slack_decay),
            new_sentence=self._tables.new_sentence(options),
            looks_ahead=self._tables.looks_ahead(options),
            lattice_beam=-1.0 if options.lattice_beam is None else float(options.lattice_beam),
            start=int(self.graph.start),
            lm_start=0 if lm is None else lm.start_state,
            lm_end=-1 if lm is None else lm.end_id,
            max_level=self._tables.num_levels(options),
            initial_tokens=INITIAL_TOKENS,
        )
        second = compile_phrases(self._phrases, self._tables, options) if self._phrases else None
        self._search_lm = SearchLM(NO_LM if lm is None else lm.arrays, second)

    @property
    def num_rows(self) -> int:
        """The least number of rows that a scores matrix must have."""
        return self._num_rows

    def check_outputs(self, num_outputs: int, where: str = "model") -> None:
        """Raise GraphError unless a network with `num_outputs` outputs serves every state of the graph.

        Parameters
        ----------
        num_outputs : int
            Number of outputs (senones) of the network.
        where : str
            Name of the model in the message.
        """
        rows = self.score_row[self.graph.used_states]
        if rows.max() >= num_outputs:
            state = self.graph.states[self.graph.used_states[rows.argmax()]]
            raise GraphError(
                f"{where}: {num_outputs} outputs, but state [{state}] of {self.graph.where} has index {rows.max()}; "
                f"expected at least {int(rows.max()) + 1} outputs, as in the model that the map was made for"
            )

    def decode(self, scores: np.ndarray) -> DecodingResult:
        """Decode one utterance.

        If no path reaches a final state, it is decoded again with a wider beam: see `widenings` of SearchOptions.

        Parameters
        ----------
        scores : (K, T) array, float32, Fortran order
            Log-likelihoods (natural log, unweighted) of the network's K outputs, a column per frame.  -inf is an
            impossible state.

        Returns
        -------
        DecodingResult
            Words, path, cost and, with `lattice_beam`, the lattice.

        Raises
        ------
        ShapeError
            For another shape, too few rows, NaN or +inf.
        """
        frames = score_frames(scores, self.num_rows)
        for widenings in range(self.options.widenings + 1):
            result = self._decode(frames, widenings)
            if not result.reason or _is_impossible(frames):
                break
        return result

    def _decode(self, frames: np.ndarray, widenings: int) -> DecodingResult:
        """Decode frames (T, K), with a beam that has been doubled `widenings` times."""
        settings = widened(self._settings, widenings)
        try:
            cache = self._caches.pop()
        except IndexError:  # first search of a thread
            cache = new_cache(settings)
        start = start_search(self._arrays, self._search_lm, settings, cache)
        outcome, cost, end, trace, num_frames, advanced, lm = search(self._arrays, settings, start, frames)
        if lm.second is None:
            self._caches.append(cache)
        last = int(end)
        reason = reason_of(outcome, num_frames)
        tokens_per_frame = advanced / num_frames if num_frames else 0.0
        if reason and not (self.options.partial and num_frames and last >= 0):
            return DecodingResult(reason, len(frames), tokens_per_frame=tokens_per_frame, widenings=widenings)
        searched = frames[:num_frames]
        lattice = None
        path = trace_path(self._arrays, lm, settings, trace, last, searched)
        if self.options.lattice_beam is not None:
            lattice = self._lattice_of(trace, trace.counts[STEPS] - 1 if reason else last, searched)
        margin = self._margin(searched)
        return DecodingResult(
            reason, len(frames), float(cost), path, lattice, margin, tokens_per_frame, widenings, self
        )

    def _margin(self, frames: np.ndarray) -> np.ndarray:
        """Return what the best state of each frame (T, K) scores above the best one of silence, (T,) f4.

        The best of all states that the network knows: the graph may lack those of the words that were said.
        """
        if not self._silent_rows.size:
            return np.zeros(0, np.float32)
        with np.errstate(invalid="ignore"):  # -inf - -inf
            return frames.max(axis=1) - frames[:, self._silent_rows].max(axis=1)

    def _lattice_of(self, trace: Trace, end: int, frames: np.ndarray) -> WordLattice:
        """Return the lattice of a finished search; see `word_lattice`."""
        lattice_beam = self.options.lattice_beam
        assert lattice_beam is not None
        return word_lattice(
            self.graph, self._arrays, self.silence, self.options.acweight, lattice_beam, trace, end, frames
        )


def ready_decoder(tables: SearchTables, options: SearchOptions) -> Decoder:
    """Return a decoder with tables that were made before, such as those of a bundle."""
    decoder = object.__new__(Decoder)
    decoder._use(tables, options)
    return decoder


def widened(settings: Settings, times: int) -> Settings:
    """The settings with beams and the maximum number of tokens doubled so many times."""
    if not times:
        return settings
    factor = 2**times
    return settings._replace(
        beam=settings.beam * factor,
        word_beam=settings.word_beam * factor,
        max_tokens=settings.max_tokens * factor,
    )


def _is_impossible(frames: np.ndarray) -> bool:
    """Whether a frame has no score above -inf, so that no path gets across it."""
    return bool(frames.size) and bool(np.isneginf(frames.max(axis=1)).any())


def reason_of(outcome: int, num_frames: int) -> str:
    """Why a search has not reached a final state; "" if it has."""
    if outcome == ALL_TOKENS_DIED:
        return f"every token died in frame {num_frames}: no state in reach has a score above -inf"
    return "no token reached a final state" if outcome == NO_FINAL_TOKEN else ""


def score_frames(scores: np.ndarray, num_rows: int) -> np.ndarray:
    """Log-likelihoods (K, T) as a read-only view (T, K), float32 in C order, as the compiled search takes them.

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
    frames.flags.writeable = False  # a writable array would compile another kernel
    return frames
