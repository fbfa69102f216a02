"""The job that builds a decoding graph from files and writes it to a directory, with the tables that it needs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from decoder.g2p.completion import Guesses
from decoder.grammars.grammar_graph import GrammarOptions, build_grammar_graph
from decoder.grammars.model_files import read_models
from decoder.grammars.options import GraphFiles
from decoder.grammars.reading import open_grammar
from decoder.graph.foreign.ctc import SEARCH_DEFAULTS, build_ctc_graph, completed, output_rows, token_models
from decoder.graph.graph_file import GraphDefaults, save_defaults, write_graph_directory
from decoder.graph.monophone import DecodingAcceptor, build_monophone_graph
from decoder.graph.options import SHORT_PAUSE
from decoder.graph.phone_models import PhoneModels
from decoder.graph.transitions import TransitionEstimate
from decoder.graph.triphone import build_triphone_graph, has_context
from decoder.lm.collection import open_collection
from decoder.lm.estimation import uniform
from decoder.lm.language_model import LanguageModel
from decoder.lm.mapped_model import open_language_model
from readers.common.faults import listed
from readers.common.files import require_writable
from readers.common.report import Log, RunReport, silent
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.htk.frame_labels import read_state_list
from readers.language.arpa import Arpa
from readers.language.grammars.network import WordNetwork
from readers.tables.ctc_tokens import read_ctc_tokens

GUESSED = "guessed.dict"


@dataclass(frozen=True)
class GraphResult:
    """A decoding graph, or the phone models alone.

    Attributes
    ----------
    models : PhoneModels
    report : RunReport
        The words of the graph, and those left out with the reasons.
    graph : DecodingAcceptor or None
        None if only the tables of a model set were made.
    guesses : Guesses
        Pronunciations of words that the dictionary lacks.
    estimate : TransitionEstimate or None
        Of the transitions, if they are from an alignment.
    """

    models: PhoneModels = field(repr=False)
    report: RunReport
    graph: DecodingAcceptor | None = field(default=None, repr=False)
    guesses: Guesses = field(default_factory=Guesses)
    estimate: TransitionEstimate | None = None


def make_graph(options: GraphFiles, *, log: Log = silent, note: Log = silent) -> GraphResult:
    """Build a decoding graph; write it to `options.out`, and the tables of a model set to `options.hmms`.

    Parameters
    ----------
    options : GraphFiles
    log : callable
        Receives a line for each step, with the size of the graph.
    note : callable
        Receives texts about the dictionary.

    Returns
    -------
    GraphResult

    Raises
    ------
    ArgonautError, OSError
        For a file that cannot be read or written, and for files that do not fit together.

    Examples
    --------
    ``graph = GraphOptions(silence="sil")``

    ``make_graph(GraphFiles(states="states.map", transitions="transitions", loop=True, graph=graph, out="graph"))``
    """
    if options.tokens:
        return make_ctc_graph(options, log=log, note=note)
    source = options.dictionary
    if options.out and not options.only_tables:
        require_writable(options.out / "graph.dg")
        require_writable(options.out / GUESSED, [source.dict, source.g2p])
    if options.mmf and options.hmms:
        require_writable(options.hmms / "state_map")
    dictionary = source.read(note)
    models, estimate = read_models(options, dictionary, log)
    if options.mmf and options.hmms:
        models.save(options.hmms)
    if options.from_model_set:
        num_different = len(set(models.states.values()))
        num_senones = len(set(models.senones.values()))
        log(f"models: {len(models.states)} logical, {num_different} different, {num_senones} senones")
    if options.only_tables or options.out is None:
        return GraphResult(models, RunReport("words"), estimate=estimate)
    outputs = _outputs(options, models)
    model, network = _open_model(options, models, dictionary, log)
    guesses = Guesses()
    if source.g2p:
        words = [] if model is None else list(model.vocabulary)
        words = words if network is None else _words_without_entry(network, dictionary)
        guesses = source.guess(dictionary, words, options.out / GUESSED, log)
    graph = _build(options, models, [*dictionary, *guesses.for_decoding()], model, network, log)
    report = write_graph_directory(options.out, graph, models, outputs, options.graph.silence_topology)
    return GraphResult(models, report, graph, guesses, estimate)


def make_ctc_graph(options: GraphFiles, *, log: Log = silent, note: Log = silent) -> GraphResult:
    """Build the decoding graph of a network with CTC outputs, as `make_graph` does if there are tokens."""
    assert options.out is not None  # as GraphFiles has checked
    assert options.tokens is not None
    require_writable(options.out / "graph.dg")
    tokens = read_ctc_tokens(options.tokens, options.blank)
    dictionary = options.dictionary.read(note) if options.dictionary.dict else []
    models = token_models(tokens)
    model, _ = _open_model(options, models, dictionary, log)
    if not isinstance(model, LanguageModel):
        assert model is not None
        model = LanguageModel.from_arpa(model)
    entries, without = completed(dictionary, model.vocabulary, tokens)
    if not entries:
        some = listed([word for word, _ in without], 3) or "none"
        raise GraphError(
            f"{options.tokens}: no word of the language model can be spelled, such as {some}; expected letters or "
            "parts of words, or a dictionary"
        )
    try:
        graph = build_ctc_graph(tokens, entries, model, options.graph, _progress(log))
    except GraphError as fault:
        files = (options.tokens, options.dictionary.dict, options.lm or options.lm_collection)
        raise GraphError(f"{' + '.join(map(str, filter(None, files)))}: {fault}") from fault
    graph = replace(graph, dropped=[*graph.dropped, *without])
    report = write_graph_directory(options.out, graph, models, output_rows(tokens), options.graph.silence_topology)
    save_defaults(options.out / "graph.dg", GraphDefaults(dict(SEARCH_DEFAULTS)))
    (options.out / "state_map").unlink()  # alignment reads it, and would put no blanks inside of words
    return GraphResult(models, report, graph)


def _progress(log: Log) -> Callable[..., None]:
    """Return a function that logs the size of the graph after each step."""

    def progress(done: int, total: int, step: str, states: int, arcs: int) -> None:
        log(f"{step:<13} {states:>9} states {arcs:>9} arcs")

    return progress


def _outputs(options: GraphFiles, models: PhoneModels) -> dict[str, int] | None:
    """The output of the network for each state; None if it is not known."""
    if not options.state_list:
        return None
    states = read_state_list(options.state_list)
    rows = models.score_rows(states) if options.from_model_set else None
    return {state: number for number, state in enumerate(states)} if rows is None else rows


def _open_model(
    options: GraphFiles, models: PhoneModels, dictionary: Sequence[Pronunciation], log: Log
) -> tuple[LanguageModel | Arpa | None, WordNetwork | None]:
    """Return the language model or the grammar."""
    if options.grammar:
        return None, open_grammar(options.grammar)
    if not options.loop:
        log(f"reading {options.lm or options.lm_collection}")
        if options.lm:
            return open_language_model(options.lm, log), None
        assert options.lm_collection is not None
        return open_collection(options.lm_collection, log), None
    words = [entry.word for entry in dictionary]
    if not options.dictionary.dict:  # a phone loop
        pauses = (options.graph.silence, options.graph.short_pause or SHORT_PAUSE)
        words = [phone for phone in models.states if phone not in pauses]
    return uniform(words), None


def _words_without_entry(network: WordNetwork, dictionary: Iterable[Pronunciation]) -> list[str]:
    """Return the words of a grammar that a dictionary lacks, from which they may differ in case."""
    entries = {entry.word.casefold() for entry in dictionary}
    return [word for word in network.words if word.casefold() not in entries]


def _build(
    options: GraphFiles,
    models: PhoneModels,
    dictionary: list[Pronunciation],
    model: LanguageModel | Arpa | None,
    network: WordNetwork | None,
    log: Log,
) -> DecodingAcceptor:
    """Build the graph; a fault of files that do not fit together names all of them."""

    progress = _progress(log)
    entries = dictionary if options.dictionary.dict else None
    try:
        if network is not None:
            grammar = GrammarOptions(drop_missing=options.graph.drop_missing)
            return build_grammar_graph(network, models, dictionary, options.graph, grammar, progress)
        assert model is not None
        if not options.from_model_set and not has_context(models):
            return build_monophone_graph(models.states, models.transitions, entries, model, options.graph, progress)
        if entries is None:
            raise GraphError("no dictionary; expected one, which a triphone graph needs")
        return build_triphone_graph(models, entries, model, options.graph, progress)
    except GraphError as fault:
        states = [options.hmms] if options.hmms else options.mmf or [options.states or options.state_list]
        files = (*states, options.dictionary.dict, options.lm or options.lm_collection or options.grammar)
        raise GraphError(f"{' + '.join(map(str, filter(None, files)))}: {fault}") from fault
