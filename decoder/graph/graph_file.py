"""Compiled decoding graphs on disk: mapped files (see decoder.storage.mapped_file) with the start state in the header.

The arrays are read-only and shared between processes; large graphs open quickly.  The optional section `defaults` holds
search options that were tuned for the graph, as JSON::

    {"version": 1, "options": {"acweight": 0.3, "lm_scale": 2.0}, "tuned_with": {"am": "net.dnn", "lm": "words.arpa"}}
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decoder.graph.compiled_graph import DTYPES, DecodingGraph, GraphArrays, check_graph, precompile
from decoder.graph.options import SILENCE_TOPOLOGIES, TUNED_OPTIONS, SilenceTopology
from decoder.storage.mapped_file import MappedFormat, NameList, check_lengths, pack_names, unpack_names
from readers.common.faults import counted
from readers.common.file_part import FilePart
from readers.common.files import atomic_write, write_lines
from readers.common.report import Figures, RunReport
from readers.common.text import parse_json
from readers.errors import ConfigError, FormatError
from readers.language.att import write_acceptor
from readers.tables import hmm_tables

if TYPE_CHECKING:
    from decoder.graph.monophone import DecodingAcceptor
    from decoder.graph.phone_models import PhoneModels

_NAMES = ("words", "outputs", "states", "models")
_MODEL_ARRAYS = {"state_model": "<i4", "state_index": "<i4", "lookahead": "<f4"}
DEFAULTS, DEFAULTS_VERSION = "defaults", 1
BOUNDARY = "word_boundary"
MAX_DEFAULTS = 1 << 16  # bytes
LARGEST = 1e30  # value of an option
MAGIC = b"ARGONDG\n"
FORMAT = MappedFormat(
    MAGIC,
    2,
    {**DTYPES, **_MODEL_ARRAYS, **dict.fromkeys((*_NAMES, DEFAULTS, BOUNDARY), "|u1")},
    "compiled decoding graph",
    "compile an acceptor with argon -precompile true -infsm ACCEPTOR -graph GRAPH",
    "compile it again with argonaut graph, or with argon -precompile true -infsm ACCEPTOR -graph GRAPH",
    (DEFAULTS, "entry_state", BOUNDARY),
)
_SAME_LENGTH = (
    ("position_state", "position_exit", "self_cost", "forward_cost", "entry_state"),
    ("emitting_target", "emitting_cost"),
    ("word_label", "word_target", "word_cost"),
    ("final_cost", "junction", "word_level"),
    ("first_emitting", "first_word"),
    ("states", "state_model", "state_index"),
    ("words", "outputs", "lookahead"),
)


@dataclass(frozen=True)
class GraphDefaults:
    """Search options for a graph, for those who give none.

    Attributes
    ----------
    options : mapping of str to float
        Values by the names of decoder.search.SearchOptions, some of TUNED_OPTIONS; bool for `lookahead_sums`.
    tuned_with : mapping of str to str
        Names of the acoustic model (``am``) and language model (``lm``) with which they were tuned, as far as known.
    """

    options: Mapping[str, float] = field(default_factory=dict)
    tuned_with: Mapping[str, str] = field(default_factory=dict)


def load_defaults(path: str | Path | FilePart) -> GraphDefaults:
    """Read the search options that a compiled graph carries.

    Parameters
    ----------
    path : str, Path or FilePart
        The graph file.

    Returns
    -------
    GraphDefaults
        Empty if the graph carries none.

    Raises
    ------
    FormatError
        For a file that is not a compiled graph, and for damaged defaults.
    """
    section = FORMAT.read(path, verify=False)[1].get(DEFAULTS)
    if section is None:
        return GraphDefaults()
    try:
        return _parse_defaults(section)
    except (ValueError, TypeError, AttributeError, KeyError) as fault:
        raise FormatError(f"{path}: defaults: {fault}; expected search options; {FORMAT.again}") from fault


def _parse_defaults(section: np.ndarray) -> GraphDefaults:
    """Raise ValueError, TypeError, AttributeError or KeyError for bytes that are not defaults."""
    if section.shape[0] > MAX_DEFAULTS:
        raise ValueError(f"{section.shape[0]} bytes, more than {MAX_DEFAULTS}")
    content = parse_json(section.tobytes().decode())
    if content["version"] != DEFAULTS_VERSION:
        raise ValueError(f"version {str(content['version'])[:20]}")
    for name, value in content["options"].items():
        if not is_search_option(name, value):
            raise ValueError(f"{name[:40]} = {str(value)[:40]}")
    models = content.get("tuned_with", {})
    if not set(models) <= {"am", "lm"} or not all(isinstance(value, str) for value in models.values()):
        raise ValueError(f"tuned with {str(models)[:40]}")
    return GraphDefaults(content["options"], models)


def is_search_option(name: str, value: object) -> bool:
    """Return whether a graph may carry this value of a search option."""
    if name not in TUNED_OPTIONS or isinstance(value, bool) != (name == "lookahead_sums"):
        return False
    if name == "max_tokens":
        return isinstance(value, int) and 0 < value < 2**31
    return isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST


def save_defaults(path: str | Path, defaults: GraphDefaults) -> None:
    """Replace the search options that a compiled graph carries; the file changes completely or not at all.

    Parameters
    ----------
    path : str or Path
        A file written by `save_graph`.
    defaults : GraphDefaults
        Without options, the graph carries none afterwards.

    Raises
    ------
    ConfigError
        For options that a graph cannot carry, such as an infinite beam.
    FormatError
        For a file that is not a compiled graph, or is damaged.
    OSError
    """
    options = {
        name: value.item() if isinstance(value, np.generic) else value for name, value in defaults.options.items()
    }
    for name, value in options.items():
        if not is_search_option(name, value):
            raise ConfigError(
                f"{path}: search option {name[:40]} = {str(value)[:40]}; expected one of {', '.join(TUNED_OPTIONS)} "
                f"with a number from {-LARGEST:g} to {LARGEST:g}, or true or false for lookahead_sums"
            )
    start, sections = FORMAT.read(path)
    sections.pop(DEFAULTS, None)
    if options:
        content = {"version": DEFAULTS_VERSION, "options": options}
        content |= {"tuned_with": dict(defaults.tuned_with)}
        sections[DEFAULTS] = np.frombuffer(json.dumps(content, allow_nan=False).encode(), np.uint8)
    FORMAT.write(path, start, sections)


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
    if np.array_equal(graph.arrays.entry_state, graph.arrays.position_state):
        del sections["entry_state"]  # only graphs of Kaldi's chain models have others
    sections |= {name: getattr(graph, name) for name in _MODEL_ARRAYS}
    sections |= {name: pack_names(getattr(graph, name), path) for name in _NAMES}
    if graph.word_boundary is not None:
        sections[BOUNDARY] = graph.word_boundary
    FORMAT.write(path, graph.start, sections)


def load_graph(path: str | Path | FilePart, verify: bool | None = None) -> DecodingGraph:
    """Map a compiled graph into memory and check it.

    Parameters
    ----------
    path : str, Path or FilePart
        A file written by `save_graph` or `argon -precompile true`.
    verify : bool, optional
        Whether to compare the checksums of the file, by default when it is first opened.  The numbers are checked in
        any case.

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
    sections.pop(DEFAULTS, None)
    sections.setdefault("entry_state", sections["position_state"])
    names: dict[str, Sequence[str]] = {name: NameList(sections[name], name, path) for name in ("words", "outputs")}
    names |= {name: unpack_names(sections[name], name, path) for name in ("states", "models")}
    lengths = {name: array.shape[0] for name, array in sections.items()} | {k: len(v) for k, v in names.items()}
    check_lengths(lengths, _SAME_LENGTH, path)
    if lengths.get(BOUNDARY, lengths["models"]) != lengths["models"]:
        raise FormatError(f"{path}: {lengths[BOUNDARY]} word boundaries; expected {lengths['models']}, one per model")
    if lengths["first_word"] != lengths["final_cost"] + 1:
        raise FormatError(
            f"{path}: {lengths['first_word']} offsets for {lengths['final_cost']} states; expected one more than states"
        )
    graph = DecodingGraph(
        arrays=GraphArrays(**{name: sections[name] for name in GraphArrays._fields}),
        start=start,
        where=str(path),
        words=names["words"],
        outputs=names["outputs"],
        states=list(names["states"]),
        models=list(names["models"]),
        state_model=sections["state_model"],
        state_index=sections["state_index"],
        lookahead=sections["lookahead"],
        word_boundary=sections.get(BOUNDARY),
    )
    check_graph(graph)
    return graph


def write_graph_directory(
    out: Path, graph: "DecodingAcceptor", models: "PhoneModels", cntkmap: Mapping[str, int] | None, topology: str
) -> RunReport:
    """Write a graph with its tables, for `argon`; the graph comes last, so that it never exists without its tables.

    Parameters
    ----------
    out : Path
        Directory.
    graph : DecodingAcceptor
    models : PhoneModels
    cntkmap : mapping of str to int, optional
        State -> output of the network.
    topology : str
        Of silence.

    Returns
    -------
    RunReport
        Of the words: those in the graph, and those left out.
    """
    report = RunReport("words", num_done=len(graph.lookahead) - 2)  # without <s> and </s>
    for word, reason in graph.dropped:
        report.skip(word, reason)
    compiled = precompile(
        graph.acceptor,
        models.transitions,
        graph.lookahead,
        models.states,
        graph.outputs,
        where=str(out / "graph.fsa.gz"),
    )
    models.save(out)
    hmm_tables.write_lookahead(out / "lookahead", graph.lookahead)
    if cntkmap is not None:
        if models.transitions is None:  # then the compiled graph contains only the states that it uses
            used_states = set(compiled.states)
            cntkmap = {state: row for state, row in cntkmap.items() if state in used_states}
        hmm_tables.write_cntkmap(out / "cntkmap", cntkmap)
    if graph.silence is not None:
        hmm_tables.write_silence(out / "silence", graph.silence, topology)
    else:  # the file of an earlier run would not match the new tables
        (out / "silence").unlink(missing_ok=True)
    if graph.outputs:
        write_lines(out / "outputs", (f"{word} [{output}]" for word, output in graph.outputs.items()))
    with atomic_write(out / "report", "w") as file:
        file.write(f"# {report.summary()}\n")
        file.writelines(f"# one pronunciation less: {word}: {why}\n" for word, why in graph.dropped_pronunciations)
        file.writelines(f"# {step}: {states} states, {arcs} arcs\n" for step, states, arcs in graph.sizes)
        file.writelines(f"{word}\t{outcome}\t{reason}\n" for word, outcome, reason in report.lost)
    write_acceptor(out / "graph.fsa.gz", graph.acceptor)
    save_graph(compiled, out / "graph.dg")
    return report


def recorded_silence(directory: Path) -> tuple[str | None, SilenceTopology]:
    """Return (silence model, topology) as recorded beside a graph; the model is None if there is no record.

    Raises FormatError for an unknown topology.
    """
    path = directory / "silence"
    if not path.exists():
        return None, SILENCE_TOPOLOGIES[0]
    return read_silence(path)


def read_silence(path: str | Path | FilePart) -> tuple[str, SilenceTopology]:
    """Return (silence model, topology) of a record.  Raises FormatError for an unknown topology."""
    model, topology = hmm_tables.read_silence(path)
    for supported in SILENCE_TOPOLOGIES:
        if topology == supported:
            return model, supported
    raise FormatError(f"{path}: topology {topology!r}; expected {' or '.join(SILENCE_TOPOLOGIES)}")


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    graph, defaults = load_graph(path, verify=True), load_defaults(path)
    options = ", ".join(f"{name} {value:g}" for name, value in defaults.options.items())
    models = " and ".join(defaults.tuned_with.values())
    final = int(np.isfinite(graph.arrays.final_cost).sum())
    return [
        ("states", f"{graph.num_states}, {final} of them final, start {graph.start}"),
        ("arcs", f"{len(graph.arrays.emitting_cost)} of HMM states, {len(graph.arrays.word_cost)} of words"),
        ("positions", f"{graph.num_positions} (an HMM state before the graph state it leads to)"),
        (
            "labels",
            f"{counted(len(graph.states), 'HMM state')} of {counted(len(graph.models), 'model')} and "
            f"{counted(len(graph.words), 'word')}",
        ),
        ("defaults", (options or "none") + (f", tuned with {models}" if models else "")),
        ("+models", " ".join(graph.models)),
    ]
