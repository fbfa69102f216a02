"""The job that adapts a bundle to a text: its dictionary, its language model and its graph."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from decoder.g2p.completion import Guesses, complete_dictionary
from decoder.g2p.model import G2P
from decoder.graph.graph_file import load_graph
from decoder.graph.transcript import TranscriptGraphs
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from decoder.lm.mapped_model import load_language_model
from decoder.recognizer.assembly import graph_of_words, transcript_graphs
from decoder.recognizer.bundle import G2P_MODEL, GRAPH, LM, Bundle
from decoder.recognizer.description import MAX_TEXT, BundleDescription
from decoder.recognizer.jobs.adaptation.language import TextFit, adapt_language, fit_of
from decoder.recognizer.jobs.adaptation.options import AdaptOptions
from decoder.recognizer.jobs.adaptation.text import AdaptationText, read_adaptation_text
from decoder.recognizer.packing import BundleWords, replace_words, rounded
from readers.common.environment import program_version
from readers.common.faults import counted, listed
from readers.common.files import require_writable
from readers.common.report import Log, silent
from readers.errors import ConfigError, FormatError
from readers.htk.dictionary import Pronunciation


@dataclass(frozen=True)
class AdaptResult:
    """An adapted bundle.

    Attributes
    ----------
    bundle : Bundle
    text : AdaptationText
    added : tuple of str
        Words that the bundle could not recognise before, in alphabetical order.
    guesses : Guesses
        Pronunciations that were guessed, and words for which that failed.
    guessed : Path
        The dictionary with the guesses, for review; written if there are any.
    weight : float
        Weight of the text in the language model, 0 to 1.
    before, after : TextFit or None
        How well the sentences that were held out suit the bundle and one that is adapted to the other sentences; None
        for a short text, of which none is held out.
    """

    bundle: Bundle
    text: AdaptationText = field(repr=False)
    added: tuple[str, ...]
    guesses: Guesses = field(repr=False)
    guessed: Path
    weight: float
    before: TextFit | None = None
    after: TextFit | None = None


def adapt(options: AdaptOptions, *, log: Log = silent, note: Log = silent) -> AdaptResult:
    """Adapt a bundle to a text, and write it to `options.output`: dictionary, language model and graph.

    The acoustic model, the search options and all else stay as they are.

    Parameters
    ----------
    options : AdaptOptions
    log : callable
        Receives a line for each step.
    note : callable
        Receives doubts about the text and the dictionary.

    Returns
    -------
    AdaptResult

    Raises
    ------
    ArgonautError, OSError
        For a fault of a file, and for a bundle without what a graph is made of: a language model, a dictionary and
        the tables of the models.

    Examples
    --------
    ``adapt(AdaptOptions(bundle="en", texts=TextOptions(text="notes.txt"), output="mine.argo")).added``
    """
    dictionary = options.dictionary
    guessed = Path(f"{options.output}.guessed.dict")
    require_writable(options.output, [*options.texts.files, dictionary.dict, dictionary.g2p])
    given = dictionary.read(note)
    bundle = Bundle.open(options.bundle)
    if LM not in bundle.parts:
        raise ConfigError(f"{bundle.path}: no language model; expected one in the bundle, for a mixture with the text")
    graphs = transcript_graphs(bundle)
    _require_phones(given, graphs, dictionary.dict)
    entries = graphs.dictionary or ()
    in_graph = {*load_graph(bundle.parts[GRAPH]).words}
    text = read_adaptation_text(options.texts, {entry.word for entry in (*entries, *given)}, note)
    words = text.words
    log(f"text: {counted(len(text.sentences), 'sentence')}, {counted(words.total(), 'word')}")

    given = Guesses([entry for entry in given if entry.word in words]).for_decoding()
    replaced = {entry.word for entry in given}
    entries = [*(entry for entry in entries if entry.word not in replaced), *given]
    guesses = _guesses(options, bundle, entries, words, graphs.phones)
    if guesses.entries:
        require_writable(guessed, [options.bundle, options.output, *options.texts.files, dictionary.dict])
        entries += guesses.for_decoding()
    pronounced = {entry.word for entry in entries}
    if words.keys().isdisjoint(pronounced):
        raise FormatError(
            f"{' + '.join(map(str, options.texts.files))}: no word has a pronunciation, for example "
            f"{listed(list(words), 3)}; expected a text in the language of {bundle.path}, or the option g2p or dict"
        )

    lm = load_language_model(bundle.parts[LM])
    adapted = adapt_language(lm, text, options.order, options.weight)
    model = rounded(adapted.model) if bundle.is_compact else adapted.model
    log(f"language model: {len(model.vocabulary)} words, {model.num_arcs} n-grams")
    wanted = {*in_graph, *words, SENTENCE_START, SENTENCE_END}
    of_graph = [entry for entry in entries if entry.word in wanted]
    graph, cntkmap = graph_of_words(graphs, of_graph, model, f"{options.output}")
    log(f"graph: {graph.num_states} states, {len(graph.words)} words")
    recognised = {*graph.words}
    added = tuple(sorted(word for word in words if word in recognised and word not in in_graph))
    before = after = None
    if adapted.trial is not None:
        before = fit_of(lm, in_graph, lm, text.held_out)
        in_others = {word for sentence in text.other for word in sentence}
        after = fit_of(adapted.trial, in_graph | in_others & recognised, lm, text.held_out)
    description = _described(bundle.description, options, text, added)
    new = replace_words(bundle, BundleWords(entries, model, graph, cntkmap), description, options.output)
    if guesses.entries:
        guesses.write(guessed)
    return AdaptResult(new, text, added, guesses, guessed, adapted.weight, before, after)


def _require_phones(entries: Iterable[Pronunciation], graphs: TranscriptGraphs, path: Path | None) -> None:
    """Raise FormatError for pronunciations with phones that have no model."""
    for entry in entries:
        for phone in entry.phones:
            if phone not in graphs.phones:
                some = listed(sorted(graphs.phones))
                raise FormatError(f"{path}: phone '{phone}' of {entry.word!r}; expected those of the bundle: {some}")


def _guesses(
    options: AdaptOptions,
    bundle: Bundle,
    dictionary: Sequence[Pronunciation],
    words: Collection[str],
    phones: Collection[str],
) -> Guesses:
    """Return pronunciations of words that a dictionary lacks; phones: those that have models."""
    listed_words = {entry.word for entry in dictionary}
    missing = sorted(word for word in words if word not in listed_words)
    model = options.dictionary.g2p or bundle.parts.get(G2P_MODEL)
    if model is None or not missing:
        reason = "no dictionary has it, and there is no pronunciation model"
        return Guesses(without=[(word, reason) for word in missing])
    guesses = complete_dictionary(dictionary, missing, G2P.load(model))
    usable = []
    for entry in guesses.entries:
        foreign = [phone for phone in entry.phones if phone not in phones]
        if foreign:
            guesses.without.append((entry.word, f"the bundle has no model of the phone '{foreign[0]}' of its guess"))
        else:
            usable.append(entry)
    return Guesses(usable, guesses.without)


def _described(
    description: BundleDescription, options: AdaptOptions, text: AdaptationText, added: Sequence[str]
) -> BundleDescription:
    """Return the description of the adapted bundle, whose errors are not known."""
    files = ", ".join(path.name for path in options.texts.files)
    sizes = f"{counted(len(text.sentences), 'sentence')}, {counted(text.words.total(), 'word')}, {len(added)} new"
    line = f"adapted to {files}"[: MAX_TEXT // 2] + f": {sizes}"
    line = "".join(character if character.isprintable() else "?" for character in line)
    card = replace(description.card, data=(*description.card.data, line))
    return replace(description, card=card, errors=(), created_by=f"argonaut {program_version()}")
