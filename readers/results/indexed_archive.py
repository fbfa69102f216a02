"""An archive of named records, each with named arrays and a JSON object; records are read one at a time.

    8s magic, u4 version, u4 length, u4 CRC-32, then so many bytes of JSON: {"kind": ..., "metadata": {...}}
    records, each at a multiple of 64 bytes:
        4s mark "RECD", u4 length, u4 CRC-32, then so many bytes of JSON:
            {"name": ..., "metadata": {...}, "arrays": {name: [type, shape, offset]}, "bytes": ..., "checksum": ...}
        the arrays, from the next multiple of 64 bytes on, at their offsets from there, which are multiples of 64
    4s mark "INDX", u4 length, u4 CRC-32, then so many bytes of JSON: {name: position of the record}
    u8 position of the index, 8s magic

Numbers are little-endian, and gaps are zeros, so equal records in equal order are equal files.  While it is written,
the archive is called NAME.part; a writer that is started again keeps the complete records of a killed one.
"""

import contextlib
import json
import math
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from readers.common.file_part import check_length, part_of
from readers.common.files import held, holder, require_writable
from readers.common.names import by_unique_ends
from readers.common.report import Figures
from readers.common.temporary import sync_directory
from readers.common.text import parse_object
from readers.errors import ConfigError, FormatError

MAGIC, RECORD, INDEX, VERSION, ALIGNMENT = b"ARGOREC\n", b"RECD", b"INDX", 1, 64
TYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
MOST_DIMENSIONS, PARTIAL = 4, ".part"
OBJECT = "a JSON object; make the file again"
_START, _HEAD, _END = struct.Struct("<8sIII"), struct.Struct("<4sII"), struct.Struct("<Q8s")
_MISFITS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, eq=False)
class ArchiveRecord:
    """A record of an archive.

    Attributes
    ----------
    name : str
    arrays : dict of str to array
        Mapped into memory; changes stay in this process.
    metadata : dict
    """

    name: str
    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]


class IndexedArchive:
    """An archive opened for reading; any number of threads may read records.

    Parameters
    ----------
    path : str or Path
        The archive.
    kind : str
        The kind of archive that is expected, as given to its writer; "" for any kind.

    Attributes
    ----------
    metadata : dict
        Of the whole archive.
    names : list of str
        Names of the records, in order.

    Raises
    ------
    FormatError
        If the file is damaged, incomplete, no archive, or one of another kind.
    OSError

    Examples
    --------
    >>> with ArchiveWriter("counts.arec", "counts") as archive:
    ...     archive.add("utterance-1", {"frames": np.arange(3)}, {"speaker": "anna"})
    >>> record = IndexedArchive("counts.arec", "counts").record("utterance-1")
    >>> record.arrays["frames"], record.metadata["speaker"]
    (array([0, 1, 2]), 'anna')
    """

    def __init__(self, path: str | Path, kind: str = ""):
        self.path = Path(path)
        self.kind = kind
        if self.path.exists() and not self.path.is_file():
            raise FormatError(f"{path}: a directory, a device or a pipe; expected a file, which is an archive")
        with self.path.open("rb") as file:
            self.metadata, self._first = _read_start(file, self.path, kind)
        self._content = part_of(self.path).map("c")
        self._places = self._read_index()
        self.names = list(self._places)
        self._by_end: dict[str, str] | None = None  # made when it is needed

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def place(self, name: str) -> int:
        """Return the position of a record in the file; KeyError for an unknown name."""
        return self._places[name]

    def find(self, key: str) -> str | None:
        """Return the name of the record for an utterance, such as a copy with other noise.

        Parameters
        ----------
        key : str
            The utterance's logical name, such as ``warp92/an251``.

        Returns
        -------
        str or None
            The key, if there is such a record, or else the only record whose name ends in the same ``an251``.
        """
        if key in self._places:
            return key
        if self._by_end is None:
            self._by_end = by_unique_ends(self.names)
        return self._by_end.get(key.rpartition("/")[2])

    def record(self, name: str) -> ArchiveRecord:
        """Read a record.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        ArchiveRecord

        Raises
        ------
        KeyError
            For an unknown name.
        FormatError
            If the record is damaged.
        """
        where = f"{self.path}: record '{name}'"
        record, begin = _framed(self._content, self._places[name], self._index, RECORD, where)
        arrays, _ = _parse_record(record, self._content[begin : self._index], where)
        if record["name"] != name:
            raise FormatError(f"{where}: is of '{record['name']}'; expected the name in the index; make the file again")
        return ArchiveRecord(name, arrays, record["metadata"])

    def metadata_of(self, name: str) -> dict[str, Any]:
        """Return the metadata of a record, without reading its arrays; see `record` for the errors."""
        where = f"{self.path}: record '{name}'"
        record, _ = _framed(self._content, self._places[name], self._index, RECORD, where)
        if record.get("name") != name or not isinstance(metadata := record.get("metadata"), dict):
            raise FormatError(f"{where}: damaged; expected its metadata; make the file again")
        return metadata

    def _read_index(self) -> dict[str, int]:
        where = f"{self.path}: index"
        size = len(self._content)
        is_complete = size >= _END.size
        position, magic = _END.unpack(self._content[-_END.size :].tobytes()) if is_complete else (0, b"")
        if magic != MAGIC or not self._first <= position < size:
            raise FormatError(f"{self.path}: {size} bytes, without the index at the end; expected a complete archive")
        self._index = position
        offsets, end = _framed(self._content, position, size - _END.size, INDEX, where, align=False)
        if end != size - _END.size:
            raise FormatError(f"{where}: ends at {end}; expected {size - _END.size}; make the file again")
        for name, offset in offsets.items():
            if type(offset) is not int or not self._first <= offset < position or offset % ALIGNMENT:
                raise FormatError(f"{where}: record '{name}' at {offset}; expected a place in the file; make it again")
        return offsets


class ArchiveWriter:
    """Writes an archive: a context manager.

    If its body ends, the archive gets its name; if it raises or the process is killed, the complete records are kept
    beside it in NAME.part, and the next writer of the same kind and metadata goes on after them.

    Parameters
    ----------
    path : str or Path
        The archive; missing directories are created.
    kind : str
        What is in the archive; readers compare it.
    metadata : mapping, optional
        JSON values that are the same for all records, and differ if the records would.
    resume : bool
        Whether to keep the records of a writer that did not finish.

    Attributes
    ----------
    names : list of str
        Records that are complete.
    partial : Path

    Raises
    ------
    ConfigError
        If another process writes the same archive.
    """

    def __init__(self, path: str | Path, kind: str, metadata: Mapping[str, Any] | None = None, resume: bool = True):
        self.path = Path(path)
        self.kind = kind
        self.resume = resume
        self._target = Path(os.path.realpath(path)) if self.path.is_symlink() else self.path  # messages have the path
        self.partial = self._target.with_name(self._target.name + PARTIAL)
        self.names: list[str] = []
        self._metadata = dict(metadata or {})
        self._places = dict[str, int]()
        self._file: BinaryIO
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        require_writable(self.path)
        require_writable(self.partial)
        self._target.parent.mkdir(parents=True, exist_ok=True)
        lock = self._target.with_name(self._target.name + ".lock")
        with contextlib.ExitStack() as opened:
            if not opened.enter_context(held(lock)):
                raise ConfigError(f"{self.path}: being written by {holder(lock)}; expected one writer")
            if not self.resume:
                opened.callback(self.partial.unlink, missing_ok=True)
            self._file = opened.enter_context(self.partial.open("r+b" if self.partial.exists() else "w+b", buffering=0))
            self._begin()
            self._open = opened.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *fault: object) -> None:
        with self._open:
            if kind is None:
                self._finish()

    def _begin(self) -> None:
        """Go to the end of the last complete record that is already there, or write the beginning."""
        text = _dump({"kind": self.kind, "metadata": self._metadata})
        start = _padded(_START.pack(MAGIC, VERSION, len(text), zlib.crc32(text)) + text)
        end = 0
        if self.resume and self._file.read(len(start)) == start:
            end = len(start)
            content = part_of(self.partial).map("r")
            for name, offset, after in _complete_records(content, end):
                self._places[name] = offset
                end = after
        self._file.seek(end)
        self._file.truncate()
        self._write(b"" if end else start)
        self.names = list(self._places)

    def add(self, name: str, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any] | None = None) -> None:
        """Append a record.

        Parameters
        ----------
        name : str
            Each may be added once.
        arrays : mapping of str to array
            Of one to four dimensions, of booleans, integers of 8 to 64 bits, float32 or float64.
        metadata : mapping, optional
            JSON values.

        Raises
        ------
        ValueError
            For a name that is there, arrays of other types, and metadata that JSON does not have.
        """
        if name in self._places:
            raise ValueError(f"record {name!r} is already in the archive")
        places = dict[str, list[Any]]()
        parts = list[bytes]()
        size = 0
        for key, array in arrays.items():
            stored = np.ascontiguousarray(array)
            stored = stored.astype(stored.dtype.newbyteorder("<"), copy=False)
            if stored.dtype.str not in TYPES or not 1 <= np.ndim(array) <= MOST_DIMENSIONS:
                raise ValueError(f"array {key!r}: {np.shape(array)} of {stored.dtype}; expected one of {TYPES}")
            places[key] = [stored.dtype.str, list(stored.shape), size]
            parts.append(_padded(stored.tobytes()))
            size += len(parts[-1])
        payload = b"".join(parts)
        sizes = {"bytes": size, "checksum": zlib.crc32(payload)}
        text = _dump({"name": name, "metadata": dict(metadata or {}), "arrays": places, **sizes})
        offset = self._file.tell()
        self._write(_padded(_HEAD.pack(RECORD, len(text), zlib.crc32(text)) + text) + payload)
        self._places[name] = offset
        self.names.append(name)

    def _write(self, content: bytes) -> None:
        unwritten = memoryview(content)
        try:
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
        except OSError as fault:
            raise OSError(fault.errno, f"cannot be written ({fault.strerror})", str(self.partial)) from fault

    def _finish(self) -> None:
        position = self._file.tell()
        text = _dump(self._places)
        self._write(_HEAD.pack(INDEX, len(text), zlib.crc32(text)) + text + _END.pack(position, MAGIC))
        os.fsync(self._file.fileno())
        self._file.close()  # Windows renames only files that nobody has open
        self.partial.replace(self._target)
        sync_directory(self._target.parent)


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % ALIGNMENT)


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT) * ALIGNMENT


def _read_start(file: BinaryIO, path: Path, kind: str) -> tuple[dict[str, Any], int]:
    """Return the archive's metadata and where its records begin."""
    head = file.read(_START.size)
    if len(head) < _START.size or not head.startswith(MAGIC):
        raise FormatError(f"{path}: begins with {head[:8]!r}; expected an archive of {kind}")
    _, version, length, checksum = _START.unpack(head)
    if version != VERSION:
        raise FormatError(f"{path}: archive of version {version}; expected {VERSION}; make the file again")
    text = file.read(length) if length <= os.fstat(file.fileno()).st_size - _START.size else b""
    if zlib.crc32(text) != checksum or len(text) != length:
        raise FormatError(f"{path}: the first {length} bytes are damaged; expected a description; make the file again")
    description = parse_object(text, path, OBJECT)
    if description.get("kind") != (kind or description.get("kind")) or not isinstance(
        description.get("metadata"), dict
    ):
        raise FormatError(f"{path}: archive of {description.get('kind')}; expected an archive of {kind}")
    return description["metadata"], _aligned(_START.size + length)


def _framed(
    content: np.ndarray, place: int, limit: int, mark: bytes, where: str, align: bool = True
) -> tuple[dict[str, Any], int]:
    """Return the JSON object at a place and where it ends, rounded up with `align`; all of it lies before `limit`."""
    check_length(content, where)
    begin = place + _HEAD.size
    if begin > limit:
        raise FormatError(f"{where}: cut off; expected a complete file; make it again")
    mark_read, length, checksum = _HEAD.unpack(content[place:begin].tobytes())
    end = _aligned(begin + length) if align else begin + length
    if mark_read != mark or end > limit:
        raise FormatError(f"{where}: damaged at byte {place}; expected {mark.decode()}; make the file again")
    text = content[begin : begin + length].tobytes()
    if zlib.crc32(text) != checksum:
        raise FormatError(f"{where}: wrong checksum at byte {place}; expected {checksum:08x}; make the file again")
    return parse_object(text, where, OBJECT), end


def _parse_record(record: dict[str, Any], content: np.ndarray, where: str) -> tuple[dict[str, np.ndarray], int]:
    """Return the arrays of a record and their number of bytes; they begin `content`."""
    try:
        size = record["bytes"]
        if type(size) is not int or not 0 <= size <= len(content):
            raise ValueError(f"{size} bytes of {len(content)}")
        payload = content[:size]
        if zlib.crc32(payload.data) != record["checksum"]:
            raise ValueError("wrong checksum of the arrays")
        if not isinstance(record["name"], str) or not isinstance(record["metadata"], dict):
            raise ValueError("no name and metadata")
        arrays = {key: _array(payload, *described) for key, described in record["arrays"].items()}
    except _MISFITS as fault:
        raise FormatError(f"{where}: {fault}; expected a complete record; make the file again") from None
    return arrays, size


def _array(payload: np.ndarray, kind: str, shape: list[int], offset: int) -> np.ndarray:
    """Return an array.  Raises ValueError or TypeError for a place outside the payload."""
    if kind not in TYPES or not isinstance(shape, list) or not 1 <= len(shape) <= MOST_DIMENSIONS:
        raise ValueError(f"array of {kind} and shape {shape}")
    if any(type(number) is not int or number < 0 for number in (*shape, offset)) or offset % ALIGNMENT:
        raise ValueError(f"array of shape {shape} at {offset}")
    size = math.prod(shape) * np.dtype(kind).itemsize
    if offset + size > len(payload):
        raise ValueError(f"array of shape {shape} at {offset} of {len(payload)} bytes")
    raw = payload[offset : offset + size]
    if kind == "|b1" and size and raw.max() > 1:
        raise ValueError("a truth value that is neither 0 nor 1")
    return raw.view(kind).reshape(shape)


def _complete_records(content: np.ndarray, position: int) -> Iterator[tuple[str, int, int]]:
    """Yield (name, place, end) of the undamaged records from a position on, up to the first that is not complete."""
    with contextlib.suppress(FormatError):
        names = set()
        while position < len(content):
            record, begin = _framed(content, position, len(content), RECORD, "")
            _, size = _parse_record(record, content[begin:], "")
            name = record["name"]
            if name in names:
                return
            names.add(name)
            yield name, position, begin + size
            position = begin + size


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    archive = IndexedArchive(path)
    single = {key: value for key, value in archive.metadata.items() if isinstance(value, str | int | float)}
    return [("records", f"{len(archive.names)}"), *((key, f"{value}") for key, value in single.items())]
