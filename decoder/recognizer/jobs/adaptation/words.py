"""Adapts what a bundle knows of words to a text: its dictionary, its language model and its graph."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from decoder.g2p.completion import Guesses, complete_dictionary
from decoder.graph.graph_file import load_graph
from decoder.graph.transcript import TranscriptGraphs
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from decoder.lm.mapped_model import load_language_model
from decoder.recognizer.assembly import graph_of_words, note_lost_words
from decoder.recognizer.bundle import G2P_MODEL, GRAPH, LM, Bundle
from decoder.recognizer.jobs.adaptation.language import TextFit, adapt_language, fit_of
from decoder.recognizer.jobs.adaptation.options import AdaptOptions
from decoder.recognizer.jobs.adaptation.text import AdaptationText
from decoder.recognizer.packing import BundleWords, rounded
from readers.common.faults import listed
from readers.common.report import Log
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation


@dataclass(frozen=True)
class AdaptedWords:
    """What an adapted bundle knows of words; see AdaptResult for the attributes that are not here.

    Attributes
    ----------
    words : BundleWords
    """

    words: BundleWords
    added: tuple[str, ...]
    guesses: Guesses
    weight: float
    before: TextFit | None
    after: TextFit | None


def adapt_words(
    options: AdaptOptions,
    bundle: Bundle,
    graphs: TranscriptGraphs,
    given: Sequence[Pronunciation],
    text: AdaptationText,
    source: str,
    log: Log,
) -> AdaptedWords:
    """Adapt dictionary, language model and graph of a bundle to a text.

    Parameters
    ----------
    options : AdaptOptions
    bundle : Bundle
    graphs : TranscriptGraphs
        Of the bundle.
    given : sequence of Pronunciation
        Those that replace the bundle's.
    text : AdaptationText
    source : str
        The name of the text in messages.
    log : callable

    Returns
    -------
    AdaptedWords

    Raises
    ------
    ArgonautError
    """
    words = text.words
    in_graph = {*load_graph(bundle.parts[GRAPH]).words}
    given = Guesses([entry for entry in given if entry.word in words]).for_decoding()
    replaced = {entry.word for entry in given}
    entries = [*(entry for entry in graphs.dictionary or () if entry.word not in replaced), *given]
    g2p = options.dictionary.g2p or bundle.parts.get(G2P_MODEL)
    guesses = complete_dictionary(entries, sorted(words), g2p, phones=graphs.phones)
    entries += guesses.for_decoding()
    pronounced = {entry.word for entry in entries}
    if words.keys().isdisjoint(pronounced):
        raise FormatError(
            f"{source}: no word has a pronunciation, for example {listed(list(words), 3)}; expected a text in the "
            f"language of {bundle.path}, or the option g2p or the option dict"
        )

    lm = load_language_model(bundle.parts[LM])
    adapted = adapt_language(lm, text, options.order, options.weight)
    model = rounded(adapted.model) if bundle.is_compact else adapted.model
    log(f"language model: {len(model.vocabulary)} words, {model.num_arcs} n-grams")
    wanted = {*in_graph, *words, SENTENCE_START, SENTENCE_END}
    of_graph = [entry for entry in entries if entry.word in wanted]
    graph, cntkmap = graph_of_words(graphs, of_graph, model, f"{options.output}")
    log(f"graph: {graph.num_states} states, {len(graph.words)} words")
    note_lost_words(in_graph, graph, log)
    recognised = {*graph.words}
    added = tuple(sorted(word for word in words if word in recognised and word not in in_graph))
    before = after = None
    if adapted.trial is not None:
        before = fit_of(lm, in_graph, lm, text.held_out)
        in_others = {word for sentence in text.other for word in sentence}
        after = fit_of(adapted.trial, in_graph | in_others & recognised, lm, text.held_out)
    return AdaptedWords(BundleWords(entries, model, graph, cntkmap), added, guesses, adapted.weight, before, after)


def require_phones(entries: Iterable[Pronunciation], graphs: TranscriptGraphs, path: Path | None) -> None:
    """Raise FormatError for pronunciations without phones, or with some that have no model; path: of the dictionary."""
    for entry in entries:
        if not entry.phones and entry.word not in (SENTENCE_START, SENTENCE_END):
            raise FormatError(f"{path}: no phones of {entry.word!r}; expected at least one")
        for phone in entry.phones:
            if phone not in graphs.phones:
                some = listed(sorted(graphs.phones))
                raise FormatError(f"{path}: phone '{phone}' of {entry.word!r}; expected those of the bundle: {some}")
