"""Opens the inputs of `argon` (compiled graph, language models, search options), and compiles graphs."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from readers.errors import ConfigError
from recipes.cli.argon.options import spelled
from recipes.cli.dictionaries import open_dictionary
from recipes.cli.hotwords import with_hotwords

INPUT_FILES = ("infiles", "am", "cntkmap", "graph", "lm", "dict", "g2p", "scores", "alignmlf", "hotwords")


def precompile_graph(arguments: argparse.Namespace) -> int:
    from decoder.graph.compiled_graph import precompile
    from decoder.graph.graph_file import save_graph
    from readers.common.files import require_writable
    from readers.language.att import read_acceptor
    from readers.tables.hmm_tables import read_lookahead, read_state_map, read_transitions

    if not arguments.infsm:
        raise ConfigError("command line: -precompile without -infsm; expected the acceptor to compile")
    require_writable(arguments.graph, [arguments.infsm, arguments.dict])
    entries = open_dictionary(arguments) or ()
    outputs = {entry.word: entry.output for entry in entries if entry.output is not None}
    graph = precompile(
        read_acceptor(arguments.infsm),
        read_transitions(arguments.transition_file) if arguments.transition_file else None,
        read_lookahead(arguments.lookahead_file) if arguments.lookahead_file else None,
        read_state_map(arguments.state_map) if arguments.state_map else None,
        outputs,
        where=arguments.infsm,
    )
    save_graph(graph, arguments.graph)
    if not arguments.transition_file:
        print("no -transition-file: transitions have no cost", file=sys.stderr)
    print(
        f"graph: {arguments.graph}: {graph.num_states} states, {graph.num_positions} HMM positions, "
        f"{len(graph.arrays.emitting_cost)} emitting arcs, {len(graph.arrays.word_cost)} word arcs"
    )
    return 0


def save_search_defaults(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Store the search options of the command line in the graph."""
    from decoder.graph.graph_file import TUNED_OPTIONS, GraphDefaults, save_defaults
    from decoder.search.options import SearchOptions
    from readers.common.files import require_writable

    allowed = ("graph", "am", "lm", "verbose", "save_defaults", *TUNED_OPTIONS)
    unchanged = vars(parser.parse_args([]))
    for name, value in vars(arguments).items():
        if name not in allowed and value != unchanged[name]:
            raise ConfigError(
                f"command line: {spelled(name)} with --save-defaults; expected only search options, -am and -lm"
            )
    options = given_options(arguments)
    SearchOptions(**options)  # raises ConfigError for a value out of range
    require_writable(arguments.graph)
    models = {name: Path(getattr(arguments, name)).name for name in ("am", "lm") if getattr(arguments, name)}
    save_defaults(arguments.graph, GraphDefaults(options, models))
    print(f"{arguments.graph}: {defaults_text(options, models) if options else 'no defaults'}")
    return 0


def given_options(arguments: argparse.Namespace) -> dict[str, float]:
    """Return the search options on the command line, of those that a graph may carry."""
    from decoder.graph.graph_file import TUNED_OPTIONS

    found = {name: getattr(arguments, name) for name in TUNED_OPTIONS}
    return {name: value for name, value in found.items() if value is not None}


def defaults_text(options: Mapping[str, float], models: Mapping[str, str]) -> str:
    shown = ", ".join(f"{spelled(name)} {value:g}" for name, value in options.items())
    return f"defaults {shown}" + (f" (tuned with {' and '.join(models.values())})" if models else "")


def search_options(arguments: argparse.Namespace):
    """Return the options of the search: those of the command line, then of the graph, then of the program.

    Prints which ones come from the graph, and a warning if nobody has chosen the acoustic weight.  The arguments get
    the values, too.
    """
    from decoder.graph.graph_file import TUNED_OPTIONS, load_defaults
    from decoder.recognizer.assembly import NEW_SENTENCE_COST
    from decoder.search.options import SearchOptions

    given, defaults = given_options(arguments), load_defaults(arguments.graph)
    taken = {name: value for name, value in defaults.options.items() if name not in given}
    try:
        SearchOptions(**taken)
    except ConfigError as fault:
        raise ConfigError(f"{arguments.graph}: defaults: {fault}") from fault
    if taken:
        models = defaults.tuned_with
        others = [
            f"{spelled(name)} {getattr(arguments, name)}"
            for name in models
            if getattr(arguments, name) and Path(getattr(arguments, name)).name != models[name]
        ]
        here = f"; here with {' and '.join(others)}" if others else ""
        print(f"{arguments.graph}: {defaults_text(taken, models)}{here}", file=sys.stderr)
    if "acweight" not in given | taken:
        print(
            f"warning: no -acweight, and {arguments.graph} has no default for it; {SearchOptions.acweight:g} is used, "
            "which may be far from the best value",
            file=sys.stderr,
        )
    options = SearchOptions(
        **taken,
        **given,
        silence=None if arguments.silence is None else tuple(filter(None, arguments.silence.split(","))),
        lm_lookahead=arguments.lm_lookahead,
        new_sentence=NEW_SENTENCE_COST if arguments.new_sentence else None,
        lattice_beam=arguments.lattice_beam if arguments.lattice_prefix else None,
        widenings=arguments.widenings,
        partial=not arguments.no_partial,
    )
    for name in TUNED_OPTIONS:
        setattr(arguments, name, getattr(options, name))
    return options


def open_decoder(arguments: argparse.Namespace):
    from decoder.recognizer import assembly

    options = search_options(arguments)
    if arguments.lm and arguments.lm_collection:
        raise ConfigError("command line: both -lm and -lm-collection; expected one of them")
    if not (arguments.lm or arguments.lm_collection):
        print("no -lm: only the costs of the graph are used", file=sys.stderr)
    lm = assembly.open_lm(arguments.lm, arguments.lm_collection, _print_note, arguments.verify)
    decoder = assembly.open_decoder(arguments.graph, arguments.cntkmap, lm, options, verify=arguments.verify)
    if options.sil_cost and not decoder.silence.any():
        print(
            f"no silence models: -sil-cost {options.sil_cost:g} has no effect; name the models with --silence",
            file=sys.stderr,
        )
    return with_hotwords(arguments, decoder)


def _print_note(line: str) -> None:
    print(line, file=sys.stderr)
