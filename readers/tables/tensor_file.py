"""Named arrays and a JSON object in a safetensors file: models, checkpoints and states of trainings.

There is one metadata entry because the library writes several in no fixed order, and equal contents should be equal
files.  Pickle is never used.
"""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from readers.common.file_part import FilePart, part_of
from readers.common.files import write_content
from readers.common.text import parse_json, parse_object
from readers.errors import ModelError

METADATA_KEY = "argonaut"
TRANSPOSED = "transposed"  # metadata entry
MAX_HEADER = 100_000_000  # bytes; limit of the format
NUMPY_TYPES = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1"},
    **{"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1"},
}
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
    write_content(path, tensor_bytes(tensors, metadata))


class StoredTensor(NamedTuple):
    """Type, shape and place of a tensor among the data of a safetensors file."""

    kind: str
    shape: tuple[int, ...]
    first: int
    last: int


def read_header(path: str | Path | FilePart) -> tuple[dict[str, StoredTensor], dict[str, str], int]:
    """Return the tensors of a safetensors file, the texts of its metadata, and where the data begin.

    Raises ModelError, naming the path, for a damaged or foreign file, and OSError for a missing one.
    """
    part = part_of(path)
    expected = "expected a model or checkpoint of Argonaut, a complete safetensors file"
    if not part.path.is_file():  # to open a pipe waits for its other end
        raise ModelError(f"{path}: a directory, a device or a pipe; {expected}")
    with part.path.open("rb") as file:
        file.seek(part.offset)
        size = int.from_bytes(file.read(8), "little")
        begin = 8 + size
        try:
            if not 8 < begin <= min(part.size, MAX_HEADER):
                raise ValueError(f"header of {size} bytes")
            header = parse_json(file.read(size).decode())
            texts = (header.pop("__metadata__", None) or {}) if isinstance(header, dict) else None
            if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
                raise ValueError("metadata that are no text")
            tensors = {name: _stored(entry) for name, entry in sorted(header.items())}
            end = 0
            for first, last in sorted((tensor.first, tensor.last) for tensor in tensors.values()):
                if first != end:
                    raise ValueError(f"a tensor at {first} of the data instead of {end}")
                end = last
            if end != part.size - begin:
                raise ValueError(f"{part.size - begin} bytes of tensors instead of {end}")
        except ValueError as error:
            raise ModelError(f"{path}: {error}; {expected}") from error
    return tensors, texts, begin


def _stored(entry: Any) -> StoredTensor:
    """Raise ValueError for a tensor that cannot be."""
    fault = ValueError(f"tensor described by {str(entry)[:80]}")
    match entry:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [first, last]}:
            if any(type(number) is not int or number < 0 for number in (*shape, first, last)) or first > last:
                raise fault
            if kind in NUMPY_TYPES and math.prod(shape) * np.dtype(NUMPY_TYPES[kind]).itemsize != last - first:
                raise fault
            return StoredTensor(kind, tuple(shape), first, last)
    raise fault


def load_tensors(path: str | Path | FilePart) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays, matrices in Fortran order, and the JSON object of a file that `save_tensors` wrote.

    Those of a FilePart are mapped into memory.

    Raises ModelError, naming the path, for a damaged or foreign file, and OSError for a missing one.
    """
    tensors, texts, begin = read_header(path)
    metadata = _parse_metadata(texts, path)
    data = part_of(path).map("c")[begin:]  # kernels are compiled for writable arrays
    arrays: dict[str, np.ndarray] = {}
    for name, (kind, shape, first, last) in tensors.items():
        if kind not in NUMPY_TYPES or len(shape) > MOST_DIMENSIONS:
            raise ModelError(
                f"{path}: tensor {name!r} of type {kind}, {len(shape)} dimensions; expected a matrix of F32 or F64"
            )
        try:
            array = data[first:last].view(NUMPY_TYPES[kind]).reshape(shape)
        except ValueError as fault:  # an empty array with an immense dimension
            raise ModelError(f"{path}: tensor {name!r}: {fault}; expected a matrix of F32 or F64") from fault
        array = array if isinstance(path, FilePart) else array.copy()
        array = array.T if metadata.get(TRANSPOSED) else array  # without a copy
        arrays[name] = np.asfortranarray(array) if array.ndim == 2 else array
    return arrays, metadata


def is_tensor_file(path: str | Path) -> bool:
    """Whether a file begins like a safetensors file: the size of a JSON object, then the object."""
    with Path(path).open("rb") as file:
        start = file.read(9)
    return len(start) == 9 and int.from_bytes(start[:8], "little") <= MAX_HEADER and start[8:] == b"{"


def load_metadata(path: str | Path) -> dict[str, Any]:
    """Return the JSON object of a file that `save_tensors` wrote, without reading its arrays.

    Raises ModelError, naming the path, for a damaged or foreign file, and OSError for a missing one.
    """
    return _parse_metadata(read_header(path)[1], path)


def _parse_metadata(texts: dict[str, Any], path: str | Path | FilePart) -> dict[str, Any]:
    text = texts.get(METADATA_KEY)
    if not isinstance(text, str):
        raise ModelError(f"{path}: no {METADATA_KEY!r} metadata; expected a model or checkpoint of Argonaut")
    return parse_object(text, f"{path}: metadata", error=ModelError)
