"""Binary cache of records, which is mapped into memory.

    64 bytes    magic, version, bytes per record, number of records, offset and length of the description; zeros
    records     for each stream its dim float32 numbers, or its class as int32, little-endian, packed
    description JSON: streams, labels, and the text files from which it was made, with size and modification time

The description comes last because the number of records and their labels are known only at the end.  The purpose is
that of the cache of the CNTK book (3.1, BinaryReader); the layout is our own.
"""

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from readers.common.files import atomic_write
from readers.common.report import Figures
from readers.errors import FormatError

MAGIC = b"ARGORECS"
VERSION = 1
PREFIX = struct.Struct("<8sIIQQQ")
FIRST_RECORD = 64
MAX_DIM = 1 << 24


@dataclass(frozen=True)
class CachedStream:
    """A stream of a cache.

    Attributes
    ----------
    name : str
    file, start : int
        Index of the source file, and the first column of the stream in it.
    dim : int
        Values per record.
    num_classes : int or None
        Number of classes, None for numbers.
    labels : tuple of str
        Names of the classes; empty if the text contained class numbers.
    """

    name: str
    file: int
    start: int
    dim: int
    num_classes: int | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class CachedSource:
    """State of a source file when the cache was made.

    Attributes
    ----------
    path : str
    size : int
        Bytes.
    mtime_ns : int
        Modification time in nanoseconds since 1970.
    """

    path: str
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path) -> "CachedSource":
        """The present state of a file."""
        status = path.stat()
        return cls(str(path.resolve()), status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, eq=False)
class RecordCache:
    """An open cache of N records.

    Attributes
    ----------
    path : Path
    streams : tuple of CachedStream
    sources : tuple of CachedSource
    settings : dict of str to str
        Options with which the text was read.
    columns : dict of str to array
        Stream -> memory map, (N, dim) float32, or (N,) int32 for classes.
    """

    path: Path
    streams: tuple[CachedStream, ...]
    sources: tuple[CachedSource, ...]
    settings: dict[str, str]
    columns: dict[str, np.ndarray]


def write_cache(
    path: str | Path,
    blocks: Iterable[dict[str, np.ndarray]],
    streams: Sequence[CachedStream],
    sources: Sequence[CachedSource],
    settings: dict[str, str],
    finish: Callable[[], Sequence[CachedStream]] | None = None,
) -> None:
    """Write a cache, completely or not at all.

    blocks: values of consecutive records, by stream.
    finish(): called after the last block; returns the streams with the labels, which are known only then.
    """
    dtype = _record_type(streams)
    num_records = 0
    with atomic_write(path) as file:
        file.write(bytes(FIRST_RECORD))
        for block in blocks:
            records = np.empty(len(block[streams[0].name]), dtype)
            for index, stream in enumerate(streams):
                records[f"f{index}"] = block[stream.name]
            file.write(records.view(np.uint8).data)
            num_records += len(records)
        described = {
            "streams": [asdict(stream) for stream in (finish() if finish else streams)],
            "sources": [asdict(source) for source in sources],
            "settings": settings,
        }
        text = json.dumps(described).encode()
        offset = FIRST_RECORD + num_records * dtype.itemsize
        file.write(text)
        file.seek(0)
        file.write(PREFIX.pack(MAGIC, VERSION, dtype.itemsize, num_records, offset, len(text)))


def is_cache(path: str | Path) -> bool:
    """Whether a file begins like a cache."""
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open_cache(path: str | Path) -> RecordCache:
    """Map a cache into memory.

    Parameters
    ----------
    path : path
        The cache.

    Returns
    -------
    RecordCache

    Raises
    ------
    FormatError
        If it is damaged: sizes are checked against the file, values are not.
    """
    path = Path(path)
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(PREFIX.size)
        if len(head) < PREFIX.size or not head.startswith(MAGIC):
            raise FormatError(f"{path}: is not a record cache; expected a file that starts with {MAGIC.decode()}")
        _, version, record_bytes, num_records, offset, length = PREFIX.unpack(head)
        if version != VERSION:
            raise FormatError(f"{path}: version {version}; expected {VERSION}; remove the cache, it will be made again")
        if offset != FIRST_RECORD + num_records * record_bytes or offset + length != size:
            raise FormatError(
                f"{path}: {size} bytes; expected {offset + length}, of {num_records} records of {record_bytes} bytes; "
                "remove the cache, it will be made again"
            )
        file.seek(offset)
        text = file.read(length)
    try:
        described = json.loads(text)
        streams = tuple(_stream(stream) for stream in described["streams"])
        sources = tuple(
            CachedSource(str(source["path"]), int(source["size"]), int(source["mtime_ns"]))
            for source in described["sources"]
        )
        settings = {str(name): str(value) for name, value in described["settings"].items()}
        dtype = _record_type(streams)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as fault:
        raise FormatError(
            f"{path}: description of {length} bytes at {offset} is damaged; expected JSON with streams and sources; "
            "remove the cache, it will be made again"
        ) from fault
    if not streams or dtype.itemsize != record_bytes or not num_records:
        raise FormatError(
            f"{path}: {num_records} records of {record_bytes} bytes, {len(streams)} streams of {dtype.itemsize} bytes; "
            "expected the same, and at least one record; remove the cache, it will be made again"
        )
    records = np.memmap(path, dtype, "r", offset=FIRST_RECORD, shape=(num_records,))
    columns = {stream.name: records[f"f{index}"] for index, stream in enumerate(streams)}
    return RecordCache(path, streams, sources, settings, columns)


def _record_type(streams: Sequence[CachedStream]) -> np.dtype:
    types: list[tuple[Any, ...]] = [
        ("<f4", (stream.dim,)) if stream.num_classes is None else ("<i4",) for stream in streams
    ]
    return np.dtype([(f"f{k}", *stream_type) for k, stream_type in enumerate(types)])


def _stream(found: dict[str, Any]) -> CachedStream:
    """Construct a stream from JSON.  Raises ValueError, KeyError or TypeError if the content is invalid."""
    classes = found["num_classes"]
    labels = tuple(found["labels"])
    stream = CachedStream(
        str(found["name"]), int(found["file"]), int(found["start"]), int(found["dim"]), classes, labels
    )
    if not 1 <= stream.dim <= MAX_DIM or not all(isinstance(label, str) for label in labels):
        raise ValueError(stream)
    if classes is not None and not (isinstance(classes, int) and max(1, len(labels)) <= classes <= MAX_DIM):
        raise ValueError(stream)
    return stream


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    cache = open_cache(path)
    figures: Figures = [("records", len(next(iter(cache.columns.values()))))]
    for stream in cache.streams:
        what = f"{stream.dim} numbers" if stream.num_classes is None else f"a class of {stream.num_classes}"
        figures.append((stream.name, what))
    return figures + [("made from", source.path) for source in cache.sources]
