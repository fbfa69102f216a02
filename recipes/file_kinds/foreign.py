"""Figures of files for other programs: ONNX models, OpenFst binaries, pictures."""

import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.text import parse_json
from readers.errors import FormatError
from recipes.file_kinds.figures import Figures, Kind
from recipes.file_kinds.networks import records_of

if TYPE_CHECKING:
    from onnx import StringStringEntryProto, ValueInfoProto

PNG = b"\x89PNG\r\n\x1a\n"
# First bytes of picture formats for which only the name is shown.
PICTURES = {b"\xff\xd8\xff": "JPEG", b"GIF8": "GIF", b"%PDF-": "PDF", b"<svg": "SVG"}
OPENFST = struct.pack("<i", 2125659606)
KALDI_FST = re.compile(rb"\S{1,4096} (\0B)?" + re.escape(OPENFST))
# ONNX ModelProto: ir_version (field 1, a small number), then the tag of one of the fields 2 to 8.
ONNX = re.compile(rb"\x08[\x03-\x1f][\x12\x1a\x22\x28\x32\x3a\x42]")
GRAPHVIZ = re.compile(r"(strict\s+)?(di)?graph\b[^=]*\{")


def binary_kind(head: bytes) -> Kind | None:
    """Return (kind, function for its figures) given the first bytes of a file; None for other files."""
    if head.startswith(PNG):
        return "picture (PNG)", png
    for magic, name in PICTURES.items():
        if head.startswith(magic):
            return f"picture ({name})", nothing
    if head.startswith(OPENFST):
        return "OpenFst binary", openfst
    if KALDI_FST.match(head):
        return "Kaldi archive of lattices or graphs", nothing
    return ("ONNX model", onnx) if ONNX.match(head) else None


def nothing(_path: str) -> Figures:
    return []


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
    texts, at = [], len(OPENFST)
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
