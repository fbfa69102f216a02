"""Figures of files of other programs: ONNX models, OpenFst binaries, n-gram models of CMU Sphinx, pictures."""

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.report import Figures
from readers.common.text import parse_json
from readers.errors import FormatError
from readers.language.arpa import ngram_figures
from readers.tables.sphinx import read_ngrams
from recipes.file_kinds.networks import records_of

if TYPE_CHECKING:
    from onnx import StringStringEntryProto, ValueInfoProto


def png(path: str) -> Figures:
    with Path(path).open("rb") as file:
        head = file.read(24)
    if len(head) < 24:
        raise FormatError(f"{path}: truncated, {len(head)} bytes; expected a complete picture")
    width, height = struct.unpack(">II", head[16:])
    return [("pixels", f"{width} x {height}")]


def openfst(path: str) -> Figures:
    """Read the header of an OpenFst file: strings, version, flags, properties, start, numbers of states and arcs."""
    with Path(path).open("rb") as file:
        head = file.read(1 << 12)
    texts = []
    at = 4
    try:
        for _ in range(2):
            (length,) = struct.unpack_from("<i", head, at)
            texts.append(head[at + 4 : at + 4 + length].decode())
            at += 4 + length
        _, _, _, start, num_states, num_arcs = struct.unpack_from("<iiQqqq", head, at)
    except (struct.error, UnicodeDecodeError) as fault:
        raise FormatError(f"{path}: incomplete header ({fault}); expected a complete OpenFst file") from fault
    kind, arcs = texts
    figures: Figures = [("type", f"{kind}, arcs {arcs}")]
    if num_states >= 0:  # -1 if the writer could not seek back to fill them in
        figures.append(("states", f"{num_states}, start {start}"))
    return figures + ([("arcs", num_arcs)] if num_arcs > 0 else [])  # not every FST type stores it


def sphinx_ngrams(path: str) -> Figures:
    vocabulary, orders = read_ngrams(path)
    return ngram_figures(vocabulary, [len(order.words) for order in orders])


def onnx(path: str) -> Figures:
    try:
        import onnx as package
        from google.protobuf.message import DecodeError
    except ImportError:
        return [("note", "inputs and outputs need the onnx package; pip install '.[onnx]' in the project's directory")]
    try:
        model = package.load(path, load_external_data=False)
    except DecodeError as fault:
        raise FormatError(f"{path}: {fault}; expected a complete ONNX model") from fault
    weights = {weight.name for weight in model.graph.initializer}
    opsets = [f"{opset.domain or 'ai.onnx'} {opset.version}" for opset in model.opset_import]
    return [
        ("made by", f"{model.producer_name or 'not named'}, format {model.ir_version}, operators {', '.join(opsets)}"),
        ("nodes", len(model.graph.node)),
        *(("input", _port(port)) for port in model.graph.input if port.name not in weights),
        *(("output", _port(port)) for port in model.graph.output),
        *(figure for text in model.metadata_props if text.key == "feature_records" for figure in _records(text, path)),
    ]


def _records(text: "StringStringEntryProto", path: str) -> Figures:
    try:
        return records_of(parse_json(text.value), path)
    except ValueError as fault:
        raise FormatError(f"{path}: feature_records: {fault}; expected JSON") from fault


def _port(port: "ValueInfoProto") -> str:
    shape = port.type.tensor_type.shape.dim
    return f"{port.name}, {' x '.join(str(d.dim_param or d.dim_value) for d in shape) or 'a number'}"
