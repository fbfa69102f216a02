"""Compiled decoding graphs on disk: a header, a table of sections, and the arrays as they lie in memory.

    0   8s   magic "ARGONDG\\n"
    8   u4   version
    12  u4   number of sections
    16  u8   size of the file
    24  i8   start state
    32  per section 40 bytes: name 20s, type 4s (numpy's), offset u8, length in items u8
    then the sections, each at a multiple of 64 bytes

All numbers are little-endian.  Names (words, HMM states, models) are UTF-8, one a line.  The arrays are memory-mapped
and read-only: several processes share one copy, and pages are read when the search first touches them.
"""

import struct
from pathlib import Path

import numpy as np

from decoder.image import DTYPES, DecodingGraph, GraphArrays, check_graph
from readers.errors import FormatError
from readers.files import atomic_write

MAGIC = b"ARGONDG\n"
VERSION = 1
ALIGNMENT = 64
_HEADER = struct.Struct("<8sIIQq")
_SECTION = struct.Struct("<20s4sQQ")
_NAMES = ("words", "outputs", "states", "models")
_MODEL_ARRAYS = {"state_model": "<i4", "state_index": "<i4", "lookahead": "<f4"}
_TYPES = {**DTYPES, **_MODEL_ARRAYS, **dict.fromkeys(_NAMES, "|u1")}


def save_graph(graph: DecodingGraph, path: str | Path) -> None:
    """Write a graph whole or not at all.  Raises FormatError for names with line breaks."""
    sections = {name: getattr(graph.arrays, name) for name in GraphArrays._fields}
    sections |= {name: getattr(graph, name) for name in _MODEL_ARRAYS}
    sections |= {name: _pack_names(getattr(graph, name), path) for name in _NAMES}
    end = _HEADER.size + _SECTION.size * len(sections)
    table = []
    for name, array in sections.items():
        offset = -(-end // ALIGNMENT) * ALIGNMENT
        table.append(_SECTION.pack(name.encode(), _TYPES[name].encode(), offset, array.shape[0]))
        end = offset + array.shape[0] * np.dtype(_TYPES[name]).itemsize
    with atomic_write(path) as file:
        file.write(_HEADER.pack(MAGIC, VERSION, len(sections), end, graph.start) + b"".join(table))
        for array in sections.values():
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            file.write(np.ascontiguousarray(array).data)


def load_graph(path: str | Path) -> DecodingGraph:
    """Map a compiled graph into memory and check all of it.

    Raises FormatError for files that are no compiled graph, of another version, truncated or with a damaged table,
    GraphError for numbers out of range.
    """
    with Path(path).open("rb") as file:
        header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(MAGIC):
        raise FormatError(
            f"{path}: begins with {header[:8]!r}; expected a compiled decoding graph; compile an acceptor with "
            "argon -precompile true -infsm ACCEPTOR -graph GRAPH"
        )
    _, version, num_sections, size, start = _HEADER.unpack(header)
    if version != VERSION:
        raise FormatError(f"{path}: compiled graph of version {version}; expected {VERSION}; compile it again")
    raw = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    if raw.shape[0] != size:
        raise FormatError(f"{path}: {raw.shape[0]} bytes; expected {size}; the file is damaged, compile it again")
    sections = _read_table(raw, num_sections, path)
    names = {name: _unpack_names(sections[name], name, path) for name in _NAMES}
    lengths = {name: array.shape[0] for name, array in sections.items()} | {k: len(v) for k, v in names.items()}
    _check_lengths(lengths, path)
    graph = DecodingGraph(
        arrays=GraphArrays(**{name: sections[name] for name in GraphArrays._fields}),
        start=start,
        where=str(path),
        **names,
        **{name: sections[name] for name in _MODEL_ARRAYS},
    )
    check_graph(graph)
    return graph


def _read_table(raw: np.ndarray, num_sections: int, path: str | Path) -> dict[str, np.ndarray]:
    """Section name -> its array, a view of the file."""
    end = _HEADER.size + _SECTION.size * num_sections
    if num_sections != len(_TYPES) or end > raw.shape[0]:
        raise FormatError(f"{path}: {num_sections} sections in the table; expected {len(_TYPES)}")
    sections = {}
    for entry in _SECTION.iter_unpack(raw[_HEADER.size : end].tobytes()):
        name, kind = (text.rstrip(b"\0").decode("ascii", "replace") for text in entry[:2])
        offset, length = entry[2:]
        if _TYPES.get(name) != kind or name in sections:
            raise FormatError(f"{path}: section {name!r} of type {kind!r}; expected the sections of version {VERSION}")
        num_bytes = length * np.dtype(kind).itemsize
        if offset % ALIGNMENT or offset < end or offset + num_bytes > raw.shape[0]:
            raise FormatError(
                f"{path}: section {name!r} at {offset}, {num_bytes} bytes; expected inside the file's {raw.shape[0]}"
            )
        sections[name] = raw[offset : offset + num_bytes].view(kind)
    return sections


def _check_lengths(lengths: dict[str, int], path: str | Path) -> None:
    """Arrays over the same things must have one length."""
    groups = (
        ("position_state", "position_exit", "self_cost", "forward_cost"),
        ("emitting_target", "emitting_cost"),
        ("word_label", "word_target", "word_cost"),
        ("final_cost", "junction", "word_level"),
        ("first_emitting", "first_word"),
        ("states", "state_model", "state_index"),
        ("words", "outputs", "lookahead"),
    )
    for group in groups:
        for name in group[1:]:
            if lengths[name] != lengths[group[0]]:
                raise FormatError(
                    f"{path}: {lengths[name]} entries in {name}; expected {lengths[group[0]]} as in {group[0]}"
                )
    if lengths["first_word"] != lengths["final_cost"] + 1:
        raise FormatError(
            f"{path}: {lengths['first_word']} offsets for {lengths['final_cost']} states; expected one more than states"
        )


def _pack_names(names: list[str], path: str | Path) -> np.ndarray:
    for name in names:
        if "\n" in name:
            raise FormatError(f"{path}: name {name!r} holds a line break; expected none")
    return np.frombuffer("".join(f"{name}\n" for name in names).encode(), dtype=np.uint8)


def _unpack_names(section: np.ndarray, what: str, path: str | Path) -> list[str]:
    try:
        text = section.tobytes().decode()
    except UnicodeDecodeError as fault:
        raise FormatError(f"{path}: {what} are not UTF-8 ({fault.reason}); the file is damaged") from None
    names = text.split("\n")
    if names.pop():
        raise FormatError(f"{path}: {what} do not end in a line break; the file is damaged")
    return names
