"""Opens the inputs of `argon` (compiled graph, language models, search options), and compiles graphs."""

import argparse
import sys

from readers.errors import ConfigError
from recipes.cli.dictionaries import open_dictionary

INPUT_FILES = ("infiles", "am", "cntkmap", "graph", "lm", "dict", "scores", "alignmlf")


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


def open_decoder(arguments: argparse.Namespace):
    from decoder.graph.graph_file import load_graph
    from decoder.lm.collection import open_collection
    from decoder.lm.mapped_model import open_language_model
    from decoder.search.decoder import Decoder, SearchOptions
    from readers.tables.hmm_tables import read_cntkmap

    options = SearchOptions(
        acweight=arguments.acweight,
        beam=arguments.beam,
        max_tokens=arguments.max_tokens,
        word_end_beam_frac=arguments.word_end_beam_frac,
        sil_cost=arguments.sil_cost,
        silence=None if arguments.silence is None else tuple(filter(None, arguments.silence.split(","))),
        lm_scale=arguments.lm_scale,
        word_penalty=arguments.word_penalty,
        slack_decay=arguments.slack_decay,
        lm_lookahead=arguments.lm_lookahead,
        lattice_beam=arguments.lattice_beam if arguments.lattice_prefix else None,
        widenings=arguments.widenings,
        partial=not arguments.no_partial,
    )
    lm = None
    if arguments.lm and arguments.lm_collection:
        raise ConfigError("command line: both -lm and -lm-collection; expected one of them")
    if arguments.lm:
        lm = open_language_model(arguments.lm, _print_note, verify=arguments.verify)
    elif arguments.lm_collection:
        lm = open_collection(arguments.lm_collection, _print_note, arguments.verify)
    else:
        print("no -lm: only the costs of the graph are used", file=sys.stderr)
    graph = load_graph(arguments.graph, arguments.verify)
    decoder = Decoder(graph, lm, options, read_cntkmap(arguments.cntkmap), arguments.cntkmap)
    if options.sil_cost and not decoder.silence.any():
        print(
            f"no silence models: -sil-cost {options.sil_cost:g} has no effect; name the models with --silence",
            file=sys.stderr,
        )
    return decoder


def _print_note(line: str) -> None:
    print(line, file=sys.stderr)
