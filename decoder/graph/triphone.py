"""Builds the decoding graph of cross-word triphones (CNTK book 6.1.1, 6.2.2): stage two, from PhoneModels.

The acceptor of `decoder.graph.cross_word` is optimised like the monophone graph: epsilon removal, determinisation,
pushing, minimisation.  The result has paths `<s>`, words, `</s>`, each label just before the last phone (the last state
of a word of one phone), optional silence and short pause between words, and every cost as early as possible.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from decoder.graph.cross_word.acceptor import Between, Topology, cross_word_acceptor
from decoder.graph.cross_word.context import TriphoneTable
from decoder.graph.lexicon import Lexicon, lexicon_from_dictionary, require_models, round_to_grid
from decoder.graph.monophone import DecodingAcceptor, as_acceptor, optimise, usable_words
from decoder.graph.openfst import ArcArrays
from decoder.graph.options import SHORT_PAUSE, GraphOptions
from decoder.graph.phone_models import PhoneModels
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START, LanguageModel
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.language.arpa import Arpa


def has_context(models: PhoneModels) -> bool:
    """Whether any model is a triphone, by its name.

    Parameters
    ----------
    models : PhoneModels

    Returns
    -------
    bool
    """
    return bool(models.phones_in_context)


def build_triphone_graph(
    models: PhoneModels,
    dictionary: Sequence[Pronunciation],
    language_model: Arpa | LanguageModel,
    options: GraphOptions | None = None,
    progress: Callable[..., None] | None = None,
) -> DecodingAcceptor:
    """Build the decoding graph of cross-word triphones.

    Parameters
    ----------
    models : PhoneModels
        The states of every triphone, see `distil` and `from_trees`.
    dictionary : sequence of Pronunciation
        Pronunciations; trailing silence and short pause are removed.
    language_model : Arpa or LanguageModel
        Gives the look-ahead costs.
    options : GraphOptions, optional
    progress : callable, optional
        progress(done, total, step=, states=, arcs=) is called after each of the five steps.

    Returns
    -------
    DecodingAcceptor

    Raises
    ------
    GraphError
        For words without a probability, and phones or triphones without a model.

    References
    ----------
    CNTK book, section 6.2.2.  Mohri, Pereira and Riley, Weighted finite-state transducers in speech recognition,
    Computer Speech and Language 16(1), 2002.
    """
    options = options or GraphOptions()
    if not isinstance(language_model, LanguageModel):
        language_model = LanguageModel.from_arpa(language_model)
    lexicon = lexicon_from_dictionary(dictionary, options)
    silence = silence_of(lexicon, models)
    pause: str | None = options.short_pause if options.short_pause is not None else SHORT_PAUSE
    if pause not in models.states or not lexicon.optional_silence:
        if options.short_pause and lexicon.optional_silence:
            raise GraphError(f"short pause: no model '{pause}' in the HMM set; expected one of its models")
        pause = None
    lexicon = normalised(lexicon, silence, pause or SHORT_PAUSE)
    lexicon, lookahead, dropped, dropped_pronunciations = usable_words(lexicon, language_model, options, models.phones)
    words = lexicon.words
    require_models(((word, phones) for word, phones, _ in words), models.phones, "the HMM set")
    arrays, symbols, word_of = _compile(models, words, lookahead, silence, pause, options, lexicon)
    arrays, sizes = optimise(arrays, progress)
    arrays = relabelled(arrays, word_of)
    return DecodingAcceptor(
        as_acceptor(arrays, symbols),
        lookahead,
        sizes,
        {word: output for word, output in lexicon.outputs.items() if word in lookahead},
        dropped,
        silence,
        dropped_pronunciations,
    )


def normalised(lexicon: Lexicon, silence: str, pause: str) -> Lexicon:
    """Pronunciations without silence or short pause at their ends; duplicates are merged.

    Raises GraphError for a short pause elsewhere.
    """
    best: dict[tuple[str, tuple[str, ...]], float] = {}
    silences = dict(lexicon.silences)
    for word, phones, cost in lexicon.words:
        end = len(phones)
        while end > 1 and phones[end - 1] in (silence, pause):
            end -= 1
        if pause in phones[:end]:
            raise GraphError(
                f"dictionary word '{word}': short pause '{pause}' as phone {phones.index(pause) + 1}; expected it "
                "after the last phone, if anywhere"
            )
        key = (word, phones[:end])
        if cost < best.get(key, math.inf):
            best[key] = cost
            if lexicon.silences:
                silences[key] = lexicon.silences[word, phones]
    words = [(word, phones, cost) for (word, phones), cost in best.items()]
    return replace(lexicon, words=words, silences=silences)


def silence_of(lexicon: Lexicon, models: PhoneModels) -> str:
    """The silence model, which is also the pronunciation of <s> and </s>."""
    silence = lexicon.silence
    for mark, pronunciations in ((SENTENCE_START, lexicon.starts), (SENTENCE_END, lexicon.ends)):
        for phones, _ in pronunciations:
            if len(phones) != 1 or (silence is not None and phones[0] != silence):
                raise GraphError(
                    f"dictionary entry '{mark}': {' '.join(phones)}; expected silence"
                    + (f" '{silence}'" if silence is not None else ", one model")
                )
            silence = phones[0]
    if silence is None or silence not in models.states:
        raise GraphError(f"silence: no model '{silence}' in the HMM set; expected one of its models")
    if any(start == 0 and end > len(models.states[silence]) for start, end, _ in models.topology_of(silence)):
        raise GraphError(f"silence: model '{silence}' can be passed without a frame; expected at least one state")
    return silence


def check_topologies(models: PhoneModels, phones: Collection[str]) -> None:
    """Raise GraphError for phones of words whose states are not passed in order."""
    for phone in sorted(phones & models.topology.keys()):
        if models.early_exits(phone) is None:
            raise GraphError(
                f"dictionary: model '{phone}' in a word is not left-to-right; expected that of silence between words "
                "only"
            )


def _compile(
    models: PhoneModels,
    words: Sequence[tuple[str, tuple[str, ...], float]],
    lookahead: Mapping[str, float],
    silence: str,
    pause: str | None,
    options: GraphOptions,
    lexicon: Lexicon,
) -> tuple[ArcArrays, list[str], np.ndarray | None]:
    """(acceptor, symbols, final label of each label after optimisation, or None for no change)."""
    states = list(models.senones)
    names = list(dict.fromkeys([SENTENCE_START, SENTENCE_END, *(word for word, _, _ in words)]))
    symbols = [f"[{state}]" for state in states] + names
    number = {name: i for i, name in enumerate(names, start=1 + len(states))}
    phones = list(dict.fromkeys([silence, *(phone for _, of_word, _ in words for phone in of_word)]))
    phone_number = {phone: i for i, phone in enumerate(phones)}
    table = TriphoneTable(models, phones, phone_number[silence], symbols)
    # Pronunciations and silences have unique labels unless the states alone distinguish them: otherwise two paths could
    # have the same labels for ever at different costs, and determinisation would not terminate.
    plain = {symbol: i for i, symbol in enumerate(symbols, start=1)}
    meaning = [0, *plain.values(), *(number[word] for word, _, _ in words)]
    numbered = [
        (1 + len(symbols) + i, tuple(phone_number[phone] for phone in of_word), lookahead[word] + round_to_grid(cost))
        for i, (word, of_word, cost) in enumerate(words)
    ]

    def topology(model: str) -> Topology:
        begin = len(meaning)
        meaning.extend(plain[f"[{state}]"] for state in models.states[model])
        return Topology(range(begin, len(meaning)), arcs_of_silence(models, model, silence, options))

    check_topologies(models, {phone for _, of_word, _ in words for phone in of_word})
    marks = {
        SENTENCE_START: (number[SENTENCE_START], min(cost for _, cost in lexicon.starts)),
        SENTENCE_END: (number[SENTENCE_END], min(cost for _, cost in lexicon.ends) + lookahead[SENTENCE_END]),
    }
    silent = topology(silence)
    short = topology(pause) if pause else None
    between = costs_between(options, lexicon, models, pause)
    silences = [lexicon.silences[word, of_word] for word, of_word, _ in words] if lexicon.silences else []
    arrays = cross_word_acceptor(table, numbered, silent, short, between, marks, silences)
    final = np.array(meaning)
    if table.identifies_phones and _identifies_silences(table, final, silent, short):
        return relabelled(arrays, final), symbols, None
    return arrays, symbols, final


def arcs_of_silence(
    models: PhoneModels, model: str, silence: str, options: GraphOptions
) -> list[tuple[int, int, float]]:
    """(from, to, cost) of silence or short pause, as `Topology` takes them."""
    ways: Sequence[tuple[int, int, float]] = models.topology_of(model)
    if model == silence and model not in models.topology and options.silence_topology == "any-order":
        last = len(models.states[model])
        ways = [(0, 1, 0.0), (last, last + 1, 0.0)]
        ways = [*ways, *((i, j, 0.0) for i in range(1, last + 1) for j in range(1, last + 1) if i != j)]
    return [(a, b, -ln) for a, b, ln in ways]


def _identifies_silences(table: TriphoneTable, meaning: np.ndarray, silence: Topology, pause: Topology | None) -> bool:
    """Whether no state of silences occurs in words, and silence and short pause begin with different states."""
    topologies = [silence] if pause is None else [silence, pause]
    in_words = {label for labels in table.used.values() for label in labels}
    if any(int(meaning[label]) in in_words for topology in topologies for label in topology.labels):
        return False
    entries = [
        {int(meaning[w.labels[end - 1]]) for start, end, _ in w.arcs if start == 0 < end < w.exit} for w in topologies
    ]
    return pause is None or not entries[0] & entries[1]


def costs_between(options: GraphOptions, lexicon: Lexicon, models: PhoneModels, pause: str | None) -> Between:
    """Costs of silence, short pause and nothing between words.

    A short pause that can be skipped (a tee model) shares its probability with nothing; otherwise both are free.
    """
    if not lexicon.optional_silence:
        return Between(None, None, 0.0)
    p = None if lexicon.silences else options.silence_probability  # words have the costs of what follows them
    silent, not_silent = (0.0, 0.0) if p is None else (-math.log(p), -math.log1p(-p))
    if pause is None:
        return Between(silent, None, not_silent)
    exit_place = len(models.states[pause]) + 1
    passing = [-ln for start, end, ln in models.topology_of(pause) if start == 0 and end == exit_place]
    return Between(silent, not_silent, not_silent + (passing[0] if passing else 0.0))


def relabelled(arrays: ArcArrays, word_of: np.ndarray | None) -> ArcArrays:
    """Replace the labels of pronunciations by those of their words; of arcs that become equal the cheapest is kept."""
    if word_of is None:
        return arrays
    label = word_of[arrays.label].astype(np.int32)
    order = np.lexsort((arrays.cost, arrays.target, label, arrays.source))
    source, target, label, cost = (a[order] for a in (arrays.source, arrays.target, label, arrays.cost))
    new = np.ones(len(source), dtype=bool)
    new[1:] = (np.diff(source) != 0) | (np.diff(target) != 0) | (np.diff(label) != 0)
    return ArcArrays(source[new], target[new], label[new], cost[new], arrays.final_cost, arrays.start)
