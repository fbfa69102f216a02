"""Compiles a graph from an acceptor, and stores search options in a graph."""

from decoder.graph.compiled_graph import DecodingGraph, precompile
from decoder.graph.graph_file import GraphDefaults, save_defaults, save_graph
from decoder.recognizer.jobs.decoding.options import DecodeOptions
from readers.common.files import require_writable
from readers.common.report import Log, silent
from readers.language.att import read_acceptor
from readers.tables.hmm_tables import read_lookahead, read_state_map, read_transitions


def compile_graph(options: DecodeOptions, *, log: Log = silent) -> DecodingGraph:
    """Compile `options.compiling.infsm` into the graph.

    Parameters
    ----------
    options : DecodeOptions
    log : callable
        Receives notes about the dictionary, and that transitions have no cost.

    Returns
    -------
    DecodingGraph

    Raises
    ------
    ArgonautError, OSError
    """
    compiling = options.compiling
    options.require("precompile", compiling.infsm is not None, "is given without {infsm}; expected both")
    assert compiling.infsm is not None
    require_writable(options.graph, [compiling.infsm, options.dictionary.dict])
    entries = options.dictionary.read(lambda text: log(f"note: {text}"))
    outputs = {entry.word: entry.output for entry in entries if entry.output is not None}
    graph = precompile(
        read_acceptor(compiling.infsm),
        read_transitions(compiling.transition_file) if compiling.transition_file else None,
        read_lookahead(compiling.lookahead_file) if compiling.lookahead_file else None,
        read_state_map(options.state_map) if options.state_map else None,
        outputs,
        where=f"{compiling.infsm}",
    )
    save_graph(graph, options.graph)
    if not compiling.transition_file:
        log("no -transition-file: transitions have no cost")
    return graph


def store_defaults(options: DecodeOptions) -> GraphDefaults:
    """Store the search options that are given in the graph, as the defaults of later decoding.

    Parameters
    ----------
    options : DecodeOptions
        The models are noted as those with which the others were tuned.

    Returns
    -------
    GraphDefaults

    Raises
    ------
    ArgonautError, OSError
    """
    require_writable(options.graph)
    models = {"am": options.acoustic.am, "lm": options.lm}
    defaults = GraphDefaults(options.tuned, {name: path.name for name, path in models.items() if path})
    save_defaults(options.graph, defaults)
    return defaults
