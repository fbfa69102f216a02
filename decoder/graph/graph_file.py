"""Compiled decoding graphs on disk: mapped files (see decoder.mapped_file) with the start state in the header.

The arrays are read-only and shared between processes; large graphs open quickly.
"""

from pathlib import Path

from decoder.graph.compiled_graph import DTYPES, DecodingGraph, GraphArrays, check_graph
from decoder.mapped_file import MappedFormat, check_lengths, pack_names, unpack_names
from readers.errors import FormatError

_NAMES = ("words", "outputs", "states", "models")
_MODEL_ARRAYS = {"state_model": "<i4", "state_index": "<i4", "lookahead": "<f4"}
MAGIC = b"ARGONDG\n"
FORMAT = MappedFormat(
    MAGIC,
    2,
    {**DTYPES, **_MODEL_ARRAYS, **dict.fromkeys(_NAMES, "|u1")},
    "compiled decoding graph",
    "compile an acceptor with argon -precompile true -infsm ACCEPTOR -graph GRAPH",
    "compile it again with argonaut graph, or with argon -precompile true -infsm ACCEPTOR -graph GRAPH",
)
_SAME_LENGTH = (
    ("position_state", "position_exit", "self_cost", "forward_cost"),
    ("emitting_target", "emitting_cost"),
    ("word_label", "word_target", "word_cost"),
    ("final_cost", "junction", "word_level"),
    ("first_emitting", "first_word"),
    ("states", "state_model", "state_index"),
    ("words", "outputs", "lookahead"),
)


def save_graph(graph: DecodingGraph, path: str | Path) -> None:
    """Write a compiled graph, completely or not at all.

    Parameters
    ----------
    graph : DecodingGraph
    path : str or Path
        The graph file (-graph).

    Raises
    ------
    FormatError
        For names with line breaks.
    """
    sections = {name: getattr(graph.arrays, name) for name in GraphArrays._fields}
    sections |= {name: getattr(graph, name) for name in _MODEL_ARRAYS}
    sections |= {name: pack_names(getattr(graph, name), path) for name in _NAMES}
    FORMAT.write(path, graph.start, sections)


def load_graph(path: str | Path, verify: bool = True) -> DecodingGraph:
    """Map a compiled graph into memory and check it.

    Parameters
    ----------
    path : str or Path
        A file written by `save_graph` or `argon -precompile true`.
    verify : bool
        Whether to compare the checksums of the file.  The numbers are checked in any case.

    Returns
    -------
    DecodingGraph

    Raises
    ------
    FormatError
        For a file that is not a compiled graph, has another version, is truncated or damaged.
    GraphError
        For numbers out of range.
    """
    start, sections = FORMAT.read(path, verify=verify)
    names = {name: unpack_names(sections[name], name, path) for name in _NAMES}
    lengths = {name: array.shape[0] for name, array in sections.items()} | {k: len(v) for k, v in names.items()}
    check_lengths(lengths, _SAME_LENGTH, path)
    if lengths["first_word"] != lengths["final_cost"] + 1:
        raise FormatError(
            f"{path}: {lengths['first_word']} offsets for {lengths['final_cost']} states; expected one more than states"
        )
    graph = DecodingGraph(
        arrays=GraphArrays(**{name: sections[name] for name in GraphArrays._fields}),
        start=start,
        where=str(path),
        **names,
        **{name: sections[name] for name in _MODEL_ARRAYS},
    )
    check_graph(graph)
    return graph
