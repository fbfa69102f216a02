"""Models and checkpoints as safetensors files: matrices by name, and JSON metadata. Pickle is never used.

A model holds every stored value under its node's name, and one metadata entry, the graph::

    {"format": "argonaut-network", "version": 1, "precision": "float",
     "nodes": [{"name": "W0", "type": "LearnableParameter", "operands": [], "options": {"rows": 512, ...}}, ...],
     "features": ["features"], "labels": [...], "criteria": [...], "evaluations": [...], "outputs": [...],
     "feature_records": {"features": {"version": 1, "settings": {"TARGETKIND": "FBANK_D_A_Z", ...}, ...}}}

With ``"transposed": true``, the transposed matrices are stored, as in bundles.
Models without feature_records are from earlier versions, or were trained on features of unknown origin.
Nodes come after their operands, except delays in a loop. There is one metadata entry because the library writes several
in no fixed order, and equal models should be equal files.
"""

import json
import math
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.network.network import SPECIAL_LISTS, Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.registry import node_class
from readers.common.file_part import FilePart
from readers.common.files import atomic_write
from readers.common.text import parse_json
from readers.config.feature_record import FeatureRecord
from readers.errors import ArgonautError, ModelError

FORMAT, VERSION = "argonaut-network", 1
METADATA_KEY = "argonaut"
TRANSPOSED = "transposed"  # metadata entry
MAX_HEADER = 100_000_000  # bytes; limit of the format
NUMPY_TYPES = {"F32": "<f4", "F64": "<f8"}
TENSOR_TYPES = ("F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL")
MOST_DIMENSIONS = 8


def tensor_bytes(tensors: dict[str, np.ndarray], metadata: dict[str, Any]) -> bytes:
    """Return named arrays and a JSON object as the bytes of a safetensors file.

    Arrays in any memory order are written row by row, as other readers of the format expect.  With the metadata entry
    ``"transposed": true``, matrices are transposed first.
    """
    from safetensors.numpy import save

    turned = bool(metadata.get(TRANSPOSED))
    rowwise = {name: np.ascontiguousarray(array.T if turned else array) for name, array in tensors.items()}
    text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    return save(rowwise, metadata={METADATA_KEY: text})


def save_tensors(path: str | Path, tensors: dict[str, np.ndarray], metadata: dict[str, Any]) -> None:
    """Write named arrays and a JSON object to a safetensors file, atomically."""
    with atomic_write(path) as file:
        file.write(tensor_bytes(tensors, metadata))


def load_tensors(path: str | Path | FilePart) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays, matrices in Fortran order, and the JSON object of a file that `save_tensors` wrote.

    Of a FilePart, only arrays of float32 and float64 are read.

    Raises ModelError, naming the path, for a damaged or foreign file, and OSError for a missing one.
    """
    if isinstance(path, FilePart):
        stored, text = _part_tensors(path)
        return _fortran(stored, _parse_metadata(text, path))
    from safetensors import SafetensorError, safe_open

    with Path(path).open("rb"):
        pass  # raises OSError with the path, which the library's error lacks
    if not Path(path).is_file():
        raise ModelError(f"{path}: a device or a pipe; expected a file, which is a model or checkpoint of Argonaut")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get(METADATA_KEY)
            if text is None:
                raise ModelError(f"{path}: no {METADATA_KEY!r} metadata; expected a model or checkpoint of Argonaut")
            stored = {name: _tensor(file, name, path) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except SafetensorError as error:
        raise ModelError(
            f"{path}: {error}; expected a model or checkpoint of Argonaut, a complete safetensors file"
        ) from error
    return _fortran(stored, _parse_metadata(text, path))


def _fortran(stored: dict[str, np.ndarray], metadata: dict[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the metadata and the tensors as stored, matrices turned if need be; transposed ones without a copy."""
    if metadata.get(TRANSPOSED):
        stored = {name: array.T for name, array in stored.items()}
    return {name: np.asfortranarray(array) if array.ndim == 2 else array for name, array in stored.items()}, metadata


def _part_tensors(part: FilePart) -> tuple[dict[str, np.ndarray], str]:
    """Return the arrays and the text of the metadata of a safetensors file that is part of another file."""
    raw = part.map("c")  # kernels are compiled for writable arrays
    begin = 8 + int.from_bytes(raw[:8].tobytes(), "little")
    try:
        if not 8 < begin <= min(raw.size, MAX_HEADER):
            raise ValueError(f"header of {begin - 8} bytes")
        header = parse_json(raw[8:begin].tobytes().decode())
        text = header.pop("__metadata__")[METADATA_KEY]
        if not isinstance(text, str):
            raise ValueError("metadata is no text")
        tensors = {name: _part_tensor(raw[begin:], **entry) for name, entry in header.items()}
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise ModelError(f"{part}: {error}; expected a model of Argonaut, a complete safetensors file") from error
    return tensors, text


def _part_tensor(data: np.ndarray, dtype: str, shape: list[int], data_offsets: list[int]) -> np.ndarray:
    """Return a tensor.  Raises ValueError, TypeError or KeyError for places outside of the data."""
    first, last = data_offsets
    kind = np.dtype(NUMPY_TYPES[dtype])
    if min(shape, default=1) < 0 or not 0 <= first <= last <= data.size:
        raise ValueError(f"tensor of shape {shape} at {first} to {last} of {data.size} bytes")
    if math.prod(shape) * kind.itemsize != last - first:
        raise ValueError(f"tensor of shape {shape} in {last - first} bytes")
    return data[first:last].view(kind).reshape(shape)


def _parse_metadata(text: str, path: str | Path | FilePart) -> dict[str, Any]:
    try:
        metadata = parse_json(text)
    except ValueError as error:
        raise ModelError(f"{path}: metadata is not JSON ({error}); expected a JSON object") from error
    if not isinstance(metadata, dict):
        raise ModelError(f"{path}: metadata is a {type(metadata).__name__}; expected a JSON object")
    return metadata


def _tensor(file: Any, name: str, path: str | Path) -> np.ndarray:
    """Return a tensor.  Raises ModelError for types and shapes that NumPy does not have."""
    found = file.get_slice(name)
    kind, shape = found.get_dtype(), found.get_shape()
    if kind not in TENSOR_TYPES or len(shape) > MOST_DIMENSIONS:
        raise ModelError(
            f"{path}: tensor {name!r} of type {kind}, {len(shape)} dimensions; expected a matrix of F32 or F64"
        )
    try:
        return file.get_tensor(name)
    except ValueError as fault:  # an empty array with an immense dimension
        raise ModelError(f"{path}: tensor {name!r}: {fault}; expected a matrix of F32 or F64") from fault


def scoring_bytes(path: str | Path, output: str) -> bytes:
    """Return the content of a model file that has only what one output depends on, transposed.

    The matrices of a transposed file that is mapped into memory are used where they are.

    Parameters
    ----------
    path : str or Path
        A file that `save_model` wrote.
    output : str
        The name of the output node.

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
    needed, waiting = set(), [output]
    while waiting:
        name = waiting.pop()
        if name not in needed and name in nodes:
            needed.add(name)
            waiting += nodes[name]
    metadata["nodes"] = [node for node in metadata["nodes"] if node["name"] in needed]
    metadata |= {one: [name for name in _list(metadata, one) if name in needed] for one in SPECIAL_LISTS}
    if "feature_records" in metadata:
        records = metadata["feature_records"]
        metadata["feature_records"] = {name: record for name, record in records.items() if name in needed}
    metadata[TRANSPOSED] = True
    return tensor_bytes({name: array for name, array in tensors.items() if name in needed}, metadata)


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
    content = model_bytes(network)
    with atomic_write(path) as file:
        file.write(content)


def model_bytes(network: Network) -> bytes:
    """Return the content of the file that `save_model` writes."""
    network.validate()
    nodes = [
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
    records = {name: one.as_json() for name, one in network.feature_records.items() if name in network.nodes}
    metadata.update({"feature_records": records} if records else {})
    tensors = {name: network.backend.to_host(value) for name, value in network.stored_values().items()}
    return tensor_bytes(tensors, metadata)


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
    except ArgonautError as error:
        raise ModelError(f"{path}: {error}") from error
    network.source = str(path)
    return network


def read_feature_records(metadata: Mapping[str, Any], names: Container[str]) -> dict[str, FeatureRecord]:
    """Return the records of features in the metadata of a model, by the name of the input.

    Raises ModelError and FormatError for damaged records, and for names that are not among `names`.
    """
    found = metadata.get("feature_records", {})
    if not isinstance(found, dict):
        raise ModelError(f"'feature_records' is {type(found).__name__}; expected an object")
    for name in found:
        if name not in names:
            raise ModelError(f"feature_records: {name[:60]!r} is no node; expected inputs of the network")
    return {name: FeatureRecord.parse(one, f"feature_records: {name}") for name, one in found.items()}


def _build(tensors: dict[str, np.ndarray], metadata: dict[str, Any], precision: str | None, device: str) -> Network:
    if metadata.get("format") != FORMAT:
        raise ModelError(f"format {metadata.get('format')!r}; expected {FORMAT!r}")
    if metadata.get("version") != VERSION:
        raise ModelError(f"version {metadata.get('version')!r}; expected {VERSION}")
    network = Network(precision or metadata.get("precision", "float"), device)
    left = dict(tensors)
    later: list[tuple[Node, list[str]]] = []
    for entry in _list(metadata, "nodes"):
        name, type_name, operands, options = _node_entry(entry)
        known = [operand if operand in network.nodes else None for operand in operands]
        loops = None in known and node_class(type_name).is_delay
        node = network.add_node(type_name, name, known if loops else operands, options)
        if loops:
            later.append((node, operands))
        if node.is_stored and name in left:
            tensor = left.pop(name)
            if tensor.dtype.kind != "f":
                raise ModelError(f"{node.where}: value is {tensor.dtype}; expected floating point")
            network.set_value(node, tensor)
        elif node.is_stored and not node.is_precomputed:
            raise ModelError(f"{node.where}: has no value in the file; expected a tensor of that name")
    for node, operands in later:
        network.connect(node, operands[0])
    if left:
        raise ModelError(f"tensors {', '.join(sorted(left))}: no stored node of that name; expected one for each")
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
    name, type_name = entry.get("name"), entry.get("type")
    operands, options = entry.get("operands"), entry.get("options")
    sound = isinstance(name, str) and isinstance(type_name, str)
    sound = sound and isinstance(operands, list) and all(isinstance(operand, str) for operand in operands)
    sound = sound and isinstance(options, dict)
    if not sound:
        raise ModelError(f"node entry {entry!r}; expected an object with name, type, operands and options")
    return name, type_name, operands, options
