"""Builds the decoding graph of a grammar: its sentences, and nothing else, over a set of phone models."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from decoder.grammars.phone_acceptor import GrammarAcceptor, PhoneLoop, SpokenArc
from decoder.grammars.vocabulary import spelled_as_dictionary
from decoder.grammars.word_acceptor import word_acceptor
from decoder.graph.cross_word.acceptor import Topology
from decoder.graph.cross_word.context import TriphoneTable
from decoder.graph.lexicon import Lexicon, lexicon_from_dictionary, require_models, round_to_grid
from decoder.graph.monophone import RESERVED_WORDS, DecodingAcceptor, as_acceptor, optimise
from decoder.graph.openfst import ArcArrays
from decoder.graph.options import SHORT_PAUSE, GraphOptions
from decoder.graph.phone_models import PhoneModels
from decoder.graph.triphone import (
    arcs_of_silence,
    check_topologies,
    costs_between,
    has_context,
    normalised,
    relabelled,
    silence_of,
)
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.language.grammars.network import UNKNOWN, WordArc, WordNetwork

UNKNOWN_LABEL = "<unk>"  # in graphs, where names in square brackets are HMM states


@dataclass(frozen=True)
class GrammarOptions:
    """Options of the graph of a grammar.

    Parameters
    ----------
    weight_scale : float
        Factor on the costs of the grammar's weights.
    unknown_cost : float
        Cost of entering the phone loop of `[unk]`, -ln; the higher, the less is recognised as `[unk]`.
    phone_cost : float
        Cost of each phone of the loop.  With 0, the loop could take words that stand beside `[unk]` at the same cost.
    word_cost : float
        Cost of each word, beside the word penalty of the search: sentences of a grammar have no language model, whose
        costs would prevent short words from being inserted.  The graph does not have it, the search adds it.
    threshold : float
        Least score of an utterance that is accepted; see `Transcript.grammar_score`.  The default is tuned on AN4.
    drop_missing : bool
        Leave out parts with words that are not in the dictionary, instead of raising GraphError.

    Raises
    ------
    GraphError
        For a value out of range.
    """

    weight_scale: float = 1.0
    unknown_cost: float = 5.0
    phone_cost: float = 0.01
    word_cost: float = 3.0
    threshold: float = -0.47
    drop_missing: bool = False

    def __post_init__(self) -> None:
        for name in ("weight_scale", "unknown_cost", "phone_cost", "word_cost"):
            if not 0 <= getattr(self, name) <= 1e6:
                raise GraphError(f"grammar: {name} {getattr(self, name)}; expected 0 to 1e6")
        if math.isnan(self.threshold):
            raise GraphError("grammar: threshold nan; expected a number")


def build_grammar_graph(
    network: WordNetwork,
    models: PhoneModels,
    dictionary: Sequence[Pronunciation],
    options: GraphOptions | None = None,
    grammar: GrammarOptions | None = None,
    progress: Callable[..., None] | None = None,
) -> DecodingAcceptor:
    """Build the decoding graph of a grammar.

    The sentences begin and end with silence, as in all decoding graphs, and may have silence between words, at the same
    cost beside all words.

    Parameters
    ----------
    network : WordNetwork
        The grammar, see `open_grammar`.  The word `[unk]` is a phone loop.
    models : PhoneModels
        Monophones or cross-word triphones.
    dictionary : sequence of Pronunciation
    options : GraphOptions, optional
    grammar : GrammarOptions, optional
    progress : callable, optional
        progress(done, total, step=, states=, arcs=) is called after each of the five steps.

    Returns
    -------
    DecodingAcceptor
        Without look-ahead: it is decoded without a language model.

    Raises
    ------
    GraphError
        For words that are not in the dictionary, phones or triphones without a model, a grammar without a sentence,
        and one that is too large.
    """
    options = options or GraphOptions()
    grammar = grammar or GrammarOptions()
    vocabulary = {word.casefold() for word in (*network.words, SENTENCE_START, SENTENCE_END)}
    entries = [entry for entry in dictionary if entry.word.casefold() in vocabulary]
    lexicon = lexicon_from_dictionary(entries, replace(options, silence_scale=0.0))
    silence = silence_of(lexicon, models)
    pause: str | None = options.short_pause or SHORT_PAUSE
    if pause not in models.states or not has_context(models) or not lexicon.optional_silence:
        pause = None
    silences = (silence, pause or SHORT_PAUSE)
    network, missing = spelled_as_dictionary(network, lexicon, silences, grammar.drop_missing)
    acceptor, words = word_acceptor(network, missing)
    used = {words[label - 1] for label in np.unique(acceptor.label)}
    lexicon = replace(lexicon, words=[entry for entry in lexicon.words if entry[0] in used])
    lexicon = normalised(lexicon, *silences)
    require_models(((word, phones) for word, phones, _ in lexicon.words), models.phones, "the HMM set")
    built = _Compilation(models, lexicon, options, grammar, silence, pause, network.where)
    arrays, sizes = optimise(built.arrays(acceptor, words), progress)
    outputs = {word: lexicon.outputs[word] for word in (*used, SENTENCE_START, SENTENCE_END) if word in lexicon.outputs}
    arrays = relabelled(arrays, np.array(built.meaning))
    return DecodingAcceptor(
        as_acceptor(arrays, built.symbols),
        dict.fromkeys((SENTENCE_START, SENTENCE_END, *(UNKNOWN_LABEL if w == UNKNOWN else w for w in used)), 0.0),
        sizes,
        outputs | ({UNKNOWN_LABEL: UNKNOWN} if UNKNOWN in used else {}),
        [(word, "not in the dictionary") for word in missing],
        silence,
    )


def build_phone_loop(
    models: PhoneModels,
    dictionary: Sequence[Pronunciation],
    options: GraphOptions | None = None,
    phone_cost: float = 0.0,
) -> DecodingAcceptor:
    """Build the graph of a phone loop, with which the sentences of a grammar are compared.

    Where sentences may have silence between words, the loop may have it between phones.

    Parameters
    ----------
    models, dictionary, options
        As for `build_grammar_graph`; the dictionary names the silence.
    phone_cost : float
        Cost of each phone.

    Returns
    -------
    DecodingAcceptor

    Raises
    ------
    GraphError
        As `build_grammar_graph`.
    """
    loop = WordNetwork(2, [WordArc(0, 1), WordArc(0, 0, UNKNOWN)], "phone loop")
    return build_grammar_graph(
        loop, models, dictionary, options, GrammarOptions(unknown_cost=0.0, phone_cost=phone_cost)
    )


class _Compilation:
    """Symbols of a graph, and what each label of the acceptor means.

    Until the acceptor has been optimised, each pronunciation of a word that leads to a node has a label of its own, and
    so have silences: otherwise two paths could have the same labels for ever at different costs, and determinisation
    would not terminate.
    """

    def __init__(
        self,
        models: PhoneModels,
        lexicon: Lexicon,
        options: GraphOptions,
        grammar: GrammarOptions,
        silence: str,
        pause: str | None,
        where: str,
    ):
        self.models = models
        self.lexicon = lexicon
        self.options = options
        self.grammar = grammar
        self.silence = silence
        self.pause = pause
        self.where = where
        words = [SENTENCE_START, SENTENCE_END, *(word for word, _, _ in lexicon.words), UNKNOWN_LABEL]
        self.symbols = [f"[{state}]" for state in models.senones] + list(dict.fromkeys(words))
        self._number = {symbol: i for i, symbol in enumerate(self.symbols, start=1)}
        self.meaning = [0, *self._number.values()]

    def _label(self, symbol: str) -> int:
        """Return a new label for a symbol."""
        self.meaning.append(self._number[symbol])
        return len(self.meaning) - 1

    def _topology(self, model: str) -> Topology:
        labels = [self._label(f"[{state}]") for state in self.models.states[model]]
        return Topology(labels, arcs_of_silence(self.models, model, self.silence, self.options))

    def arrays(self, acceptor: ArcArrays, words: list[str]) -> ArcArrays:
        """Return the acceptor over HMM states of an acceptor over words."""
        lexicon = self.lexicon
        models = self.models
        phones = list(dict.fromkeys([self.silence, *(phone for _, of_word, _ in lexicon.words for phone in of_word)]))
        check_topologies(models, set(phones[1:]))
        number = {phone: i for i, phone in enumerate(phones)}
        entries: dict[str, list[tuple[tuple[int, ...], float]]] = {UNKNOWN: [((), self.grammar.unknown_cost)]}
        for word, of_word, cost in lexicon.words:
            if word in RESERVED_WORDS or (word.startswith("[") and word.endswith("]")):
                raise GraphError(f"{self.where}: word '{word}' is reserved in graph files; expected another name")
            entries.setdefault(word, []).append((tuple(number[phone] for phone in of_word), cost))
        scale = self.grammar.weight_scale
        spoken: list[SpokenArc] = []
        labels: dict[tuple[int, str, int], int] = {}
        columns = (acceptor.source, acceptor.target, acceptor.label, acceptor.cost)
        for source, target, label, cost in zip(*(column.tolist() for column in columns)):
            word = words[label - 1]
            symbol = UNKNOWN_LABEL if word == UNKNOWN else word
            for i, (numbers, price) in enumerate(entries[word]):
                key = target, word, i
                if key not in labels:
                    labels[key] = self._label(symbol)
                spoken.append(SpokenArc(source, target, labels[key], numbers, round_to_grid(scale * cost + price)))
        table = TriphoneTable(models, phones, 0, self.symbols)
        silent = self._topology(self.silence)
        short = self._topology(self.pause) if self.pause else None
        built = GrammarAcceptor(
            table,
            spoken,
            [round_to_grid(scale * cost) if np.isfinite(cost) else np.inf for cost in acceptor.final_cost.tolist()],
            costs_between(self.options, lexicon, models, self.pause),
            self._loop(UNKNOWN in words),
            self.where,
        )
        marks = {
            SENTENCE_START: (self._number[SENTENCE_START], min(cost for _, cost in lexicon.starts)),
            SENTENCE_END: (self._number[SENTENCE_END], min(cost for _, cost in lexicon.ends)),
        }
        built.build_grammar(silent, short, marks)
        return built.arrays()

    def _loop(self, is_needed: bool) -> PhoneLoop:
        labels = []
        if is_needed:
            early = self.models.early_lengths()
            pauses = (self.silence, self.pause or SHORT_PAUSE)
            for phone, _, places in self.models.free_phones(pauses, left_to_right=True):
                for size in (len(places), *early.get(phone, ())):
                    labels.append([[self._label(f"[{state}]") for state in names] for names in places[:size]])
        return PhoneLoop(labels, round_to_grid(self.grammar.phone_cost))
