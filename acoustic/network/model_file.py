"""Models and checkpoints as safetensors files: matrices by name, and JSON metadata. Pickle is never used.

A model holds every stored value under its node's name, and one metadata entry, the graph::

    {"format": "argonaut-network", "version": 1, "precision": "float",
     "nodes": [{"name": "W0", "type": "LearnableParameter", "operands": [], "options": {"rows": 512, ...}}, ...],
     "features": ["features"], "labels": [...], "criteria": [...], "evaluations": [...], "outputs": [...],
     "feature_records": {"features": {"version": 1, "settings": {"TARGETKIND": "FBANK_D_A_Z", ...}, ...}},
     "vocabularies": [{"inputs": ["features", "labels"], "words": ["</s>", "the", ...], "classes": [0, 0, ...]}]}

With ``"transposed": true``, the transposed matrices are stored, as in bundles.
Models without feature_records are from earlier versions, or were trained on features of unknown origin; those without
vocabularies were not trained on text.
Nodes come after their operands, except delays in a loop. There is one metadata entry because the library writes several
in no fixed order, and equal models should be equal files.
"""

import math
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from acoustic.network.network import SPECIAL_LISTS, Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.properties import DELAY
from acoustic.nodes.registry import node_class
from readers.common.file_part import FilePart
from readers.common.files import write_content
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError, ModelError
from readers.language.vocabulary_record import ENTRY as VOCABULARIES
from readers.language.vocabulary_record import parse_vocabularies, vocabularies_as_json
from readers.tables.tensor_file import TRANSPOSED, load_tensors, tensor_bytes

FORMAT, VERSION = "argonaut-network", 1
Precision = Literal["float32", "bfloat16", "int8"]


def scoring_bytes(path: str | Path, output: str, precision: Precision = "float32") -> bytes:
    """Return the content of a model file that has only what one output depends on, transposed.

    The matrices of a transposed file that is mapped into memory are used where they are.

    Parameters
    ----------
    path : str or Path
        A file that `save_model` wrote.
    output : str
        The name of the output node.
    precision : {"float32", "bfloat16", "int8"}
        To what the numbers of matrices are rounded; they are stored as float32, which then compresses better.
        "bfloat16": 16 bits, with the exponents of float32; "int8": at most 127 multiples, of either sign, of a power of
        two for each row.

    Raises
    ------
    ModelError
        For a damaged file, and for an unknown output.
    OSError
    """
    tensors, metadata = load_tensors(path)
    nodes = {name: operands for name, _, operands, _ in map(_node_entry, _list(metadata, "nodes"))}
    if output not in nodes:
        raise ModelError(f"{path}: no node {output!r}; expected the output")
    needed = set()
    waiting = [output]
    while waiting:
        name = waiting.pop()
        if name not in needed and name in nodes:
            needed.add(name)
            waiting += nodes[name]
    metadata["nodes"] = [node for node in metadata["nodes"] if node["name"] in needed]
    metadata |= {
        list_name: [name for name in _list(metadata, list_name) if name in needed] for list_name in SPECIAL_LISTS
    }
    if "feature_records" in metadata:
        records = metadata["feature_records"]
        metadata["feature_records"] = {name: record for name, record in records.items() if name in needed}
    metadata.pop(VOCABULARIES, None)
    metadata[TRANSPOSED] = True
    kept = {name: array for name, array in tensors.items() if name in needed}
    if precision != "float32":
        rounded = _ROUNDED[precision]
        matrices = {name for name, array in kept.items() if array.dtype == np.float32 and 1 not in array.shape}
        kept = {name: rounded(array) if name in matrices else array for name, array in kept.items()}
    return tensor_bytes(kept, metadata)


def _bfloat16(array: np.ndarray) -> np.ndarray:
    """Return float32 numbers rounded to the nearest bfloat16, half to even."""
    bits = array.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.asfortranarray(rounded.view(np.float32)) if array.flags.f_contiguous else rounded.view(np.float32)


def _int8(array: np.ndarray) -> np.ndarray:
    """Return float32 numbers (m, n) rounded to multiples of a power of two in each row, the least of which 127 do."""
    largest = np.abs(array).max(axis=1, keepdims=True)
    step = np.exp2(np.ceil(np.log2(np.maximum(largest, np.finfo(np.float32).tiny) / 127)))
    return np.asarray(np.round(array / step) * step, np.float32, order="K")


_ROUNDED = {"bfloat16": _bfloat16, "int8": _int8}


def save_model(network: Network, path: str | Path) -> None:
    """Write a network to a file, atomically.

    Parameters
    ----------
    network : Network
    path : str or Path

    Raises
    ------
    ModelError, ShapeError
        When the network is not valid, see `Network.validate`.
    OSError
    """
    write_content(path, model_bytes(network))


def model_bytes(network: Network) -> bytes:
    """Return the content of the file that `save_model` writes."""
    network.validate()
    nodes: list[dict[str, Any]] = [
        {
            "name": node.name,
            "type": node.type_name,
            "operands": [operand.name for operand in node.operands],
            "options": node.settings,
        }
        for node in forward_order(network.nodes.values(), children=lambda node: node.operands)
    ]
    for node in nodes:
        for name, value in node["options"].items():
            if isinstance(value, float) and not math.isfinite(value):  # for instance 1e999
                raise ModelError(f"node {node['name']!r}: {name} is {value}; expected a finite number")
    metadata = {"format": FORMAT, "version": VERSION, "precision": network.backend.precision, "nodes": nodes}
    metadata.update(network.special())
    records = {name: record.as_json() for name, record in network.feature_records.items() if name in network.nodes}
    metadata.update({"feature_records": records} if records else {})
    vocabularies = {name: vocabulary for name, vocabulary in network.vocabularies.items() if name in network.nodes}
    metadata.update({VOCABULARIES: vocabularies_as_json(vocabularies)} if vocabularies else {})
    tensors = {name: network.backend.to_host(value) for name, value in network.stored_values().items()}
    return tensor_bytes(tensors, metadata)


def is_model(path: str | Path) -> bool:
    """Return whether a file begins as `save_model` writes it. Raises OSError."""
    with Path(path).open("rb") as file:
        return file.read(9)[8:] == b"{"


def load_model(path: str | Path | FilePart, precision: str | None = None, device: str | None = None) -> Network:
    """Read a network from a file that `save_model` wrote.

    Parameters
    ----------
    path : str, Path or FilePart
    precision : str, optional
        ``float`` or ``double``; by default that of the file.
    device : str, optional
        By default ``cpu``.

    Returns
    -------
    Network

    Raises
    ------
    ModelError
        Naming the path, for anything in the file that is not as expected.
    OSError
    """
    tensors, metadata = load_tensors(path)
    try:
        network = _build(tensors, metadata, precision, device or "cpu")
        network.feature_records = read_feature_records(metadata, network.nodes)
        network.vocabularies = parse_vocabularies(metadata.get(VOCABULARIES, []), network.nodes)
    except ArgonautError as error:
        raise ModelError(f"{path}: {error}") from error
    network.source = str(path)
    return network


def read_feature_records(metadata: Mapping[str, Any], names: Container[str]) -> dict[str, FeatureRecord]:
    """Return the records of features in the metadata of a model, by the name of the input.

    Raises ModelError and FormatError for damaged records, and for names that are not among `names`.
    """
    records = metadata.get("feature_records", {})
    if not isinstance(records, dict):
        raise ModelError(f"'feature_records' is {type(records).__name__}; expected an object")
    for name in records:
        if name not in names:
            raise ModelError(f"feature_records: {name[:60]!r} is no node; expected inputs of the network")
    return {name: FeatureRecord.parse(record, f"feature_records: {name}") for name, record in records.items()}


def _build(tensors: dict[str, np.ndarray], metadata: dict[str, Any], precision: str | None, device: str) -> Network:
    if metadata.get("format") != FORMAT:
        raise ModelError(f"format {metadata.get('format')!r}; expected {FORMAT!r}")
    if metadata.get("version") != VERSION:
        raise ModelError(f"version {metadata.get('version')!r}; expected {VERSION}")
    network = Network(precision or metadata.get("precision", "float"), device)
    unused = dict(tensors)
    later: list[tuple[Node, list[str]]] = []
    for entry in _list(metadata, "nodes"):
        name, type_name, operands, options = _node_entry(entry)
        existing = [operand if operand in network.nodes else None for operand in operands]
        loops = None in existing and DELAY in node_class(type_name).properties
        node = network.add_node(type_name, name, existing if loops else operands, options)
        if loops:
            later.append((node, operands))
        if node.is_stored and name in unused:
            tensor = unused.pop(name)
            if tensor.dtype.kind != "f":
                raise ModelError(f"{node.where}: value is {tensor.dtype}; expected floating point")
            network.set_value(node, tensor)
        elif node.is_stored and not node.is_precomputed:
            raise ModelError(f"{node.where}: has no value in the file; expected a tensor of that name")
    for node, operands in later:
        network.connect(node, operands[0])
    if unused:
        raise ModelError(f"tensors {', '.join(sorted(unused))}: no stored node of that name; expected one for each")
    for list_name in SPECIAL_LISTS:
        names = _list(metadata, list_name)
        for name in names:
            network[str(name)]
        setattr(network, list_name, [str(name) for name in names])
    network.validate()
    return network


def _list(metadata: dict[str, Any], key: str) -> list[Any]:
    if not isinstance(metadata.get(key), list):
        raise ModelError(f"{key!r} is {type(metadata.get(key)).__name__}; expected a list")
    return metadata[key]


def _node_entry(entry: Any) -> tuple[str, str, list[str], dict[str, Any]]:
    if not isinstance(entry, dict):
        raise ModelError(f"node entry {entry!r}; expected an object with name, type, operands and options")
    name = entry.get("name")
    type_name = entry.get("type")
    operands = entry.get("operands")
    options = entry.get("options")
    if (
        isinstance(name, str)
        and isinstance(type_name, str)
        and isinstance(operands, list)
        and all(isinstance(operand, str) for operand in operands)
        and isinstance(options, dict)
    ):
        return name, type_name, operands, options
    raise ModelError(f"node entry {entry!r}; expected an object with name, type, operands and options")
