"""Figures of network models and checkpoints."""

import math
from collections import Counter
from typing import Any

from readers.common.report import Figures
from readers.common.text import parse_json
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError, FormatError
from readers.language.vocabulary_record import parse_vocabularies
from readers.tables.tensor_file import read_header

# Value of "format" in the metadata of files that are not models.
CHECKPOINTS = {
    "argonaut-checkpoint": "checkpoint of a training",
    "argonaut-outer-iteration": "checkpoint of an outer iteration",
    "argonaut-job": "output of a job",
}
IVECTORS = "argonaut-ivectors"


def safetensors_kind(path: str) -> str:
    """Return the kind of a safetensors file: a model or, according to its metadata, a checkpoint."""
    form = _parsed(_open(path)[2].get("argonaut", "")).get("format")
    if isinstance(form, str) and form in CHECKPOINTS:
        return CHECKPOINTS[form]
    if form == IVECTORS:
        return "i-vector model"
    return "safetensors model"


def _open(path: str) -> tuple[dict[str, tuple[int, ...]], Counter[str], dict[str, str]]:
    """Return (shape of every tensor, number of tensors of each type, metadata)."""
    tensors, texts, _ = read_header(path)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    return shapes, Counter(tensor.kind for tensor in tensors.values()), texts


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = parse_json(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _tensor_figures(shapes: dict[str, tuple[int, ...]], types: Counter[str]) -> Figures:
    values = sum(math.prod(shape) for shape in shapes.values())
    return [("tensors", f"{len(shapes)}, {values} values, {', '.join(f'{n} {t}' for t, n in types.items())}")]


def _shape_figures(shapes: dict[str, tuple[int, ...]]) -> Figures:
    return [(f"+{name}", " x ".join(map(str, shape)) or "scalar") for name, shape in shapes.items()]


def model(path: str) -> Figures:
    shapes, types, metadata = _open(path)
    graph = _parsed(metadata.get("argonaut", ""))
    try:
        network = _graph_figures(graph)
    except (AttributeError, TypeError) as fault:
        raise FormatError(f"{path}: metadata ({fault}); expected the nodes of a network") from fault
    return (
        _tensor_figures(shapes, types)
        + network
        + records_of(graph.get("feature_records", {}), path)
        + words_of(graph.get("vocabularies", []), path)
        + _shape_figures(shapes)
    )


def records_of(records: object, path: str) -> Figures:
    """Return how the features of each input were computed, from a parsed JSON object.  Raises FormatError."""
    if not isinstance(records, dict):
        raise FormatError(f"{path}: 'feature_records' is {type(records).__name__}; expected an object")
    return [
        ("trained on", f"{name}: {', '.join(FeatureRecord.parse(record, f'{path}: feature_records: {name}').texts())}")
        for name, record in records.items()
    ]


def words_of(records: object, path: str) -> Figures:
    """Return the vocabularies of a model, from a parsed JSON array.  Raises FormatError."""
    try:
        vocabularies = parse_vocabularies(records)
    except ArgonautError as fault:
        raise FormatError(f"{path}: {fault}") from fault
    return [("vocabulary", f"{name}: {record.text()}") for name, record in vocabularies.items()]


def checkpoint(path: str) -> Figures:
    shapes, types, metadata = _open(path)
    state = _parsed(metadata.get("argonaut", ""))
    format_text = f"{state['format']} {state.get('version', '')}".strip()
    figures = [*_tensor_figures(shapes, types), ("format", format_text)]
    figures += [
        (name.replace("_", " "), value) for name, value in state.items() if isinstance(value, int) and name != "version"
    ]
    return figures + _shape_figures(shapes)


def _graph_figures(graph: dict[str, Any]) -> Figures:
    """Return the figures of the network in a model's metadata; a note for a file that holds only tensors."""
    if not graph:
        return [("network", "none: tensors only")]
    nodes = graph.get("nodes", [])
    figures: Figures = [("format", f"{graph.get('format')} {graph.get('version', '')}".strip())]
    if nodes:
        types = Counter(node.get("type") for node in nodes)
        figures.append(("nodes", f"{len(nodes)}: " + ", ".join(f"{n} {t}" for t, n in types.most_common(6))))
    inputs = [_input_text(node) for node in nodes if "Input" in str(node.get("type"))]
    if inputs:
        figures.append(("inputs", ", ".join(inputs)))
    for name in ("precision", "features", "labels", "criteria", "evaluations", "outputs"):
        if graph.get(name):
            value = graph[name]
            figures.append((name, " ".join(map(str, value)) if isinstance(value, list) else value))
    return figures


def _input_text(node: dict[str, Any]) -> str:
    """Return name and size of an input.

    The number of stacked frames is known only as a side of an image.
    """
    options = node.get("options", {})
    sides = [options.get(name) for name in ("width", "height", "channels")]
    if None not in sides:
        return f"{node.get('name')} {math.prod(sides)} values ({' x '.join(map(str, sides))})"
    return f"{node.get('name')} {options.get('rows', '?')} values"
