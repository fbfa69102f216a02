"""The grammar of a recogniser: its decoder, and whether an utterance is likely to be one of its sentences.

The best sentence is compared with the best path of a free phone loop.  For each word, the log-likelihood ratio of the
two is averaged over its frames; the score of an utterance is a soft minimum over its words, so that one wrong word
among many right ones counts.  Speech that the sentence takes for silence counts as a word.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from decoder.grammars.grammar_graph import GrammarOptions, build_grammar_graph, build_phone_loop
from decoder.grammars.reading import open_grammar
from decoder.grammars.slots import SlotParser
from decoder.grammars.vocabulary import EMPTY_WORDS
from decoder.graph.compiled_graph import DecodingGraph, precompile
from decoder.graph.monophone import DecodingAcceptor
from decoder.graph.transcript import TranscriptGraphs
from decoder.recognizer.transcript import Transcript
from decoder.search.decoder import Decoder, DecodingResult
from decoder.search.options import SearchOptions
from readers.errors import ConfigError
from readers.htk.dictionary import Pronunciation
from readers.language.grammars.network import UNKNOWN, WordNetwork

if TYPE_CHECKING:
    from decoder.g2p.model import G2P

LOOP_COST = 2.0  # of each phone of the loop with which a sentence is compared
SPEECH = 10  # frames; shorter runs with phones of the loop are not counted as speech
SHARPNESS = 3.0  # of the soft minimum over words, per nat


class Grammar:
    """A grammar over the models of a recogniser.

    Parameters
    ----------
    network : WordNetwork
    graphs : TranscriptGraphs
        Models and dictionary.
    search : SearchOptions
    options : GrammarOptions

    Attributes
    ----------
    network : WordNetwork
    options : GrammarOptions
    missing : list of str
        Words that were left out because they are not in the dictionary (with `drop_missing`).
    slots : SlotParser
        Returns the tags of words.
    guessed : tuple of Pronunciation
        Of words that the dictionary lacks.

    Raises
    ------
    GraphError
        See `build_grammar_graph`.
    """

    def __init__(self, network: WordNetwork, graphs: TranscriptGraphs, search: SearchOptions, options: GrammarOptions):
        self.network = network
        self.guessed: tuple[Pronunciation, ...] = ()
        self.options = options
        self._graphs = graphs
        self._search = search
        built = build_grammar_graph(network, graphs.models, graphs.dictionary or (), graphs.options, options)
        self.missing = [word for word, _ in built.dropped]
        word_penalty = search.word_penalty + options.word_cost
        self.decoder = self._decoder(built, network.where).with_options(word_penalty=word_penalty)
        self.slots = SlotParser(network, built.lookahead, self.missing, built.outputs)

    @classmethod
    def open(
        cls,
        grammar: str | Path | Sequence[str],
        kind: str | None,
        graphs: TranscriptGraphs,
        search: SearchOptions,
        options: Mapping[str, float | bool],
        g2p: "G2P | None" = None,
    ) -> Self:
        """Open a grammar; the arguments are those of `Recognizer.with_grammar` and of the constructor.

        g2p: pronounces words that the dictionary lacks.
        """
        names = [field.name for field in fields(GrammarOptions)]
        for name in options.keys() - set(names):
            raise ConfigError(f"grammar option {name}: unknown; expected one of {', '.join(names)}")
        chosen: dict[str, Any] = {"weight_scale": search.lm_scale, **options}
        network = open_grammar(grammar, kind)
        guesses = _guesses(network, graphs, g2p)
        if guesses:
            graphs = copy(graphs)
            graphs.dictionary = [*(graphs.dictionary or ()), *guesses]
        opened = cls(network, graphs, search, GrammarOptions(**chosen))
        opened.guessed = tuple(guesses)
        return opened

    def judged(self, transcript: Transcript, result: DecodingResult, scores: np.ndarray) -> Transcript:
        """Return the transcript of a result with `grammar_score`, `accepted` and `slots`."""
        score, accepted = self.judge(result, scores)
        return replace(transcript, grammar_score=score, accepted=accepted, parse_slots=self.slots)

    def judge(self, result: DecodingResult, scores: np.ndarray) -> tuple[float, bool]:
        """Return the `score` of an utterance, and whether it is at least the threshold."""
        score = self.score(result, scores)
        return score, score >= self.options.threshold

    def score(self, result: DecodingResult, scores: np.ndarray) -> float:
        """Return the score of an utterance in nats per frame.

        Parameters
        ----------
        result : DecodingResult
            Of `decoder`, or of one with other options.
        scores : (K, T) array
            Those that were decoded.

        Returns
        -------
        float
            0 for silence without words; -inf if there is no sentence, or none but `[unk]`.
        """
        if result.reason or not scores.shape[1]:
            return -np.inf
        words = [word for word in result.words if word.text != UNKNOWN]
        if result.words and not words:
            return -np.inf
        loop = self._loop.decode(scores)
        if loop.reason:
            return -np.inf
        assert result.decoder is not None
        best, silent = _frames(result.decoder, result, scores)
        free, pause = _frames(self._loop, loop, scores)
        spans = [(word.start, word.end) for word in words]
        means = [*_means(best - free, ~silent, spans), *_means(best - free, ~pause, _runs(silent & ~pause))]
        if not means:
            return 0.0
        return float((np.log(len(means)) - np.logaddexp.reduce(-SHARPNESS * np.array(means))) / SHARPNESS)

    @cached_property
    def _loop(self) -> Decoder:
        graphs = self._graphs
        built = build_phone_loop(graphs.models, graphs.dictionary or (), graphs.options, LOOP_COST)
        return self._decoder(built, "phone loop").with_options(lattice_beam=None, new_sentence=None)

    def _decoder(self, built: DecodingAcceptor, where: str) -> Decoder:
        models = self._graphs.models
        graph = precompile(built.acceptor, models.transitions, None, models.states, built.outputs, where)
        rows = {state: self._graphs.rows[state] for state in graph.states if state in self._graphs.rows}
        return Decoder(graph, None, _with_silences(self._search, graph), rows, where)


def _guesses(network: WordNetwork, graphs: TranscriptGraphs, g2p: "G2P | None") -> list[Pronunciation]:
    """Return pronunciations of the words of a grammar that the dictionary lacks in any case."""
    if g2p is None:
        return []
    from decoder.g2p.completion import complete_dictionary  # slow to import, and rarely needed

    dictionary = graphs.dictionary or ()
    listed = {entry.word.casefold() for entry in dictionary}
    missing = [word for word in network.words if word.casefold() not in listed and not _is_mark(word)]
    return complete_dictionary(dictionary, missing, g2p, phones=graphs.phones).for_decoding()


def _is_mark(word: str) -> bool:
    """Return whether a word of a grammar is not spoken."""
    return word == UNKNOWN or word in EMPTY_WORDS


def _with_silences(options: SearchOptions, graph: DecodingGraph) -> SearchOptions:
    """Return the options without names of silence models that the graph does not have."""
    names = tuple(name for name in options.silence or () if name in graph.models)
    return replace(options, silence=names or None)


def _frames(decoder: Decoder, result: DecodingResult, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the log-likelihood of each frame on the best path, and whether it is silence: (T,) f8, (T,) bool."""
    path = result.path
    graph = decoder.graph
    emitting = path.label >= 0
    states = np.repeat(graph.arrays.position_state[path.label[emitting]], (path.end - path.start)[emitting])
    likelihood = scores[decoder.score_row[states], np.arange(len(states))].astype(np.float64)
    return likelihood, decoder.silence[graph.state_model[states]]


def _means(ratio: np.ndarray, counted: np.ndarray, spans: Sequence[tuple[int, int]]) -> list[float]:
    """Return the mean of each span over the frames that count, 0 if none does."""
    pairs = [(ratio[begin:end], counted[begin:end]) for begin, end in spans]
    return [float(part[counts].mean()) if counts.any() else 0.0 for part, counts in pairs]


def _runs(where: np.ndarray) -> list[tuple[int, int]]:
    """Return (begin, end) of each run of at least SPEECH frames."""
    begins, ends = np.flatnonzero(np.diff(where, prepend=False, append=False)).reshape(-1, 2).T
    long = ends - begins >= SPEECH
    return list(zip(begins[long].tolist(), ends[long].tolist()))
