"""Recognition that expects the words of a transcript, but accepts other words and speech that is no word.

The language model is an n-gram of the transcript; the other words of the vocabulary have the uniform probability to
which it backs off.  Speech outside of the vocabulary is recognised as fillers, words of one phone each, at a fixed cost
per phone.

References
----------
Moreno, Joerg, Van Thong and Glickman, A recursive algorithm for the forced alignment of very long audio segments, ICSLP
1998; Kaldi's steps/cleanup/segment_long_utterances.sh.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from decoder.alignment.long_recordings.options import LongOptions
from decoder.graph.compiled_graph import DecodingGraph, precompile
from decoder.graph.monophone import build_monophone_graph
from decoder.graph.transcript import TranscriptGraphs
from decoder.graph.triphone import build_triphone_graph
from decoder.lm.estimation import estimate
from decoder.lm.language_model import LN_10, SENTENCE_END, SENTENCE_START, LanguageModel
from decoder.search.decoder import Decoder
from decoder.search.options import SearchOptions
from readers.common.faults import listed
from readers.errors import ConfigError, GraphError
from readers.htk.dictionary import Pronunciation
from readers.language.arpa import Arpa

WORD_COST = 2.0  # of each word without a language model
FILLER = "#"  # begins the names of fillers, which have a phone each
LABEL = "="  # begins the labels of words in the graph, where labels such as [noise] and 0 would have another meaning


class BiasedDecoders:
    """Decoders over one graph, each with the language model of a part of a transcript.

    Parameters
    ----------
    graphs : TranscriptGraphs
        Models and dictionary.
    words : sequence of str
        The vocabulary: the transcript's words and those that compete with them.
    search : SearchOptions
    options : LongOptions

    Attributes
    ----------
    graphs : TranscriptGraphs
        Those given, with fillers in the dictionary and with loops, for alignment.

    Raises
    ------
    ConfigError
        For graphs without a dictionary or without silence.
    GraphError
        For words that are not in the dictionary.
    """

    def __init__(self, graphs: TranscriptGraphs, words: Sequence[str], search: SearchOptions, options: LongOptions):
        if graphs.dictionary is None or graphs.words is None or graphs.silence is None:
            raise ConfigError("alignment of a long recording: no dictionary or no silence model; expected both")
        self.options = options
        fillers = filler_entries(graphs) if options.filler_cost is not None else []
        marks = (SENTENCE_START, SENTENCE_END)
        self.vocabulary = [word for word in dict.fromkeys(words) if word not in marks]
        missing = [word for word in self.vocabulary if word not in graphs.words]
        if missing:
            raise GraphError(
                f"transcript: words not in the dictionary: {listed(missing)}; expected words of the dictionary"
            )
        vocabulary = set(self.vocabulary)
        entries = [entry._replace(output=None) for entry in graphs.dictionary if entry.word in vocabulary]
        self.fillers = [entry.word for entry in fillers]
        self.graphs = TranscriptGraphs(
            graphs.models,
            [*entries, *fillers],
            graphs.rows,
            replace(graphs.options, silence=graphs.silence),
            graphs.silence_cost,
        ).with_words((), graphs.loops, graphs.frame_cost)
        self._search = replace(search, lattice_beam=None, partial=True, lm_scale=options.lm_scale)
        self._rows = graphs.rows
        self._graph: DecodingGraph | None = None

    def decoder(self, transcript: Sequence[str]) -> Decoder:
        """Return the decoder for a part of the transcript."""
        model = self._language_model(transcript)
        if self._graph is None:
            self._graph = self._compile(model)
            used = [name for name in self._search.silence or () if name in self._graph.models]
            self._search = replace(self._search, silence=tuple(used) or None)
        rows = {state: self._rows[state] for state in self._graph.states if state in self._rows}
        return Decoder(self._graph, LanguageModel.from_arpa(model), self._search, rows, "alignment")

    def neutral(self) -> Decoder:
        """Return a decoder in which all words and fillers cost the same, after `decoder`."""
        decoder = self.decoder([*self.vocabulary[:1]])
        return decoder.with_options(lm_scale=0.0, word_penalty=WORD_COST)

    def _compile(self, model: Arpa) -> DecodingGraph:
        graphs = self.graphs
        models = graphs.models
        options = graphs.options
        entries = graphs.dictionary or ()
        dictionary = [entry._replace(word=LABEL + entry.word, output=entry.word) for entry in entries]
        if graphs.context or models.topology:
            built = build_triphone_graph(models, dictionary, model, options)
        else:
            built = build_monophone_graph(models.states, models.transitions, dictionary, model, options)
        return precompile(
            built.acceptor, models.transitions, built.lookahead, models.states, built.outputs, "biased graph"
        )

    def _language_model(self, transcript: Sequence[str]) -> Arpa:
        labels, fillers = ({LABEL + word: None for word in words} for words in (self.vocabulary, self.fillers))
        arpa = estimate([[LABEL + word for word in transcript]], self.options.order, "wb", [*labels, *fillers])
        if self.options.filler_cost is not None and fillers:
            unigrams = arpa.orders[0]
            rows = [i for i, word in enumerate(unigrams.words[:, 0].tolist()) if arpa.vocabulary[word] in fillers]
            log10 = unigrams.logprob.copy()
            log10[rows] = -self.options.filler_cost / LN_10
            arpa.orders[0] = replace(unigrams, logprob=log10)
        return arpa


def competing_words(graphs: TranscriptGraphs, words: Iterable[str]) -> list[str]:
    """Return the words without those of the dictionary that have a phone without a model, or no phones."""

    def has_models(word: str) -> bool:
        return all(phones and graphs.phones.issuperset(phones) for phones, _, _ in (graphs.words or {}).get(word, ()))

    return list(filter(has_models, words))


def filler_entries(graphs: TranscriptGraphs) -> list[Pronunciation]:
    """A filler for each phone of the dictionary's words that has a model, except for silence and short pause."""
    pauses = {graphs.silence, graphs.pause}
    phones = graphs.phones.intersection(phone for entry in graphs.dictionary or () for phone in entry.phones) - pauses
    return [Pronunciation(FILLER + phone, None, None, (phone,)) for phone in sorted(phones)]
