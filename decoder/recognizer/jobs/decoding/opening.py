"""Opens what is searched: compiled graph, language models, and the options of the search."""

from collections.abc import Mapping

from decoder.graph.graph_file import load_defaults
from decoder.recognizer import assembly
from decoder.recognizer.jobs.decoding.options import DecodeOptions, flag_of
from decoder.search.decoder import Decoder
from decoder.search.options import NEW_SENTENCE_COST, SearchOptions
from readers.common.report import Log
from readers.config.options import OptionFault
from readers.errors import ConfigError


def defaults_text(options: Mapping[str, float], models: Mapping[str, str]) -> str:
    """Return a line about search options that a graph carries."""
    shown = ", ".join(f"{flag_of(name)} {value:g}" for name, value in options.items())
    return f"defaults {shown}" + (f" (tuned with {' and '.join(models.values())})" if models else "")


def _search_options(options: DecodeOptions, log: Log) -> SearchOptions:
    """Return the options of the search: those that are given, then of the graph, then of the program.

    Tells which ones come from the graph, and warns if nobody has chosen the acoustic weight.
    """
    tuned = options.tuned
    defaults = load_defaults(options.graph)
    search = options.search
    from_graph = {name: value for name, value in defaults.options.items() if name not in tuned}
    try:
        SearchOptions(**from_graph)  # type: ignore[arg-type]  # checked by name
    except OptionFault as fault:
        raise ConfigError(f"{options.graph}: defaults: {fault}") from None
    if from_graph:
        models = defaults.tuned_with
        models_used = {"am": options.acoustic.am, "lm": options.lm}
        differing = [
            f"-{name} {path}" for name, path in models_used.items() if path and path.name != models.get(name, path.name)
        ]
        beside = f"; here with {' and '.join(differing)}" if differing else ""
        log(f"{options.graph}: {defaults_text(from_graph, models)}{beside}")
    if "acweight" not in tuned | from_graph:
        log(
            f"warning: no -acweight, and {options.graph} has no default for it; {SearchOptions.acweight:g} is used, "
            "which may be far from the best value"
        )
    return SearchOptions(
        **from_graph,  # type: ignore[arg-type]  # checked by name
        **tuned,  # type: ignore[arg-type]  # checked by name
        silence=search.silence,
        lm_lookahead=search.lm_lookahead,
        new_sentence=NEW_SENTENCE_COST if search.new_sentence else None,
        lattice_beam=search.lattice_beam if options.output.lattice_prefix else None,
        widenings=options.widenings,
        partial=options.output.partial,
    )


def open_decoder(options: DecodeOptions, log: Log) -> Decoder:
    """Return the decoder of a graph, with language models and hotwords."""
    search = _search_options(options, log)
    if not (options.lm or options.lm_collection):
        log("no -lm: only the costs of the graph are used")
    assert options.acoustic.cntkmap is not None
    verify = None if options.verify else False
    lm = assembly.open_lm(options.lm, options.lm_collection, log, verify)
    decoder = assembly.open_decoder(options.graph, options.acoustic.cntkmap, lm, search, verify=verify)
    if search.sil_cost and not decoder.silence.any():
        log(
            f"no silence models: {flag_of('sil_cost')} {search.sil_cost:g} has no effect; name the models with "
            f"{flag_of('silence')}"
        )
    return options.search.hotwords.applied_to(decoder, log)
