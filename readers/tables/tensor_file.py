"""Named arrays and a JSON object in a safetensors file: models, checkpoints and states of trainings.

There is one metadata entry because the library writes several in no fixed order, and equal contents should be equal
files.  Pickle is never used.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from readers.common.file_part import FilePart
from readers.common.files import write_content
from readers.common.text import parse_json, parse_object
from readers.errors import ModelError

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
    write_content(path, tensor_bytes(tensors, metadata))


def load_tensors(path: str | Path | FilePart) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays, matrices in Fortran order, and the JSON object of a file that `save_tensors` wrote.

    Of a FilePart, only arrays of float32 and float64 are read.

    Raises ModelError, naming the path, for a damaged or foreign file, and OSError for a missing one.
    """
    if isinstance(path, FilePart):
        stored, text = _part_tensors(path)
        return _fortran(stored, parse_object(text, f"{path}: metadata", error=ModelError))
    return _fortran(*_open_tensors(path))


def _open_tensors(path: str | Path, with_arrays: bool = True) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays as stored, if they are wanted, and the metadata; raises as load_tensors."""
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
            names = file.keys() if with_arrays else ()
            stored = {name: _tensor(file, name, path) for name in names}
    except SafetensorError as error:
        raise ModelError(
            f"{path}: {error}; expected a model or checkpoint of Argonaut, a complete safetensors file"
        ) from error
    return stored, parse_object(text, f"{path}: metadata", error=ModelError)


def is_tensor_file(path: str | Path) -> bool:
    """Whether a file begins like a safetensors file: the size of a JSON object, then the object."""
    with Path(path).open("rb") as file:
        start = file.read(9)
    return len(start) == 9 and int.from_bytes(start[:8], "little") <= MAX_HEADER and start[8:] == b"{"


def load_metadata(path: str | Path) -> dict[str, Any]:
    """Return the JSON object of a file that `save_tensors` wrote, without reading its arrays.

    Raises ModelError, naming the path, for a damaged or foreign file, and OSError for a missing one.
    """
    return _open_tensors(path, with_arrays=False)[1]


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


def _part_tensor(data: npt.NDArray[np.uint8], dtype: str, shape: list[int], data_offsets: list[int]) -> np.ndarray:
    """Return a tensor.  Raises ValueError, TypeError or KeyError for places outside of the data."""
    first, last = data_offsets
    kind = np.dtype(NUMPY_TYPES[dtype])
    if min(shape, default=1) < 0 or not 0 <= first <= last <= data.size:
        raise ValueError(f"tensor of shape {shape} at {first} to {last} of {data.size} bytes")
    if math.prod(shape) * kind.itemsize != last - first:
        raise ValueError(f"tensor of shape {shape} in {last - first} bytes")
    return data[first:last].view(kind).reshape(shape)


def _tensor(file: Any, name: str, path: str | Path) -> np.ndarray:
    """Return a tensor.  Raises ModelError for types and shapes that NumPy does not have."""
    view = file.get_slice(name)
    kind = view.get_dtype()
    shape = view.get_shape()
    if kind not in TENSOR_TYPES or len(shape) > MOST_DIMENSIONS:
        raise ModelError(
            f"{path}: tensor {name!r} of type {kind}, {len(shape)} dimensions; expected a matrix of F32 or F64"
        )
    try:
        tensor: np.ndarray = file.get_tensor(name)
    except ValueError as fault:  # an empty array with an immense dimension
        raise ModelError(f"{path}: tensor {name!r}: {fault}; expected a matrix of F32 or F64") from fault
    return tensor
