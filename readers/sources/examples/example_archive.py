"""An archive of training examples: blocks of frames in the order of training, read sequentially.

    8 bytes     magic
    8 bytes     length and CRC-32 of the description; then zeros up to a multiple of 64
    description JSON: streams, examples in this archive and per block, number of this archive in its set
    blocks      each 16 bytes (mark, examples, number of bytes that follow, their CRC-32), then for each stream:
                  byte    knots, 4 x dim float32 (see byte_coding), then a code for each value, example by example
                  float   dim float32 for each example
                  class   an int32 for each example

All blocks except the last have the same number of examples, so the description determines the size of the file and the
position of each block, and a truncated file is detected before anything is read.  Little-endian.
Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", C.2
(purpose); the layout is our own.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from readers.common.files import atomic_write
from readers.config.feature_record import FeatureRecord
from readers.errors import FormatError
from readers.sources.examples import byte_coding

MAGIC, MARK, VERSION = b"ARGOEGS\n", b"EGSB", 1
PREFIX, HEAD = struct.Struct("<8sII"), struct.Struct("<4sIII")
BYTE, FLOAT, CLASS = KINDS = ("byte", "float", "class")
BLOCK_BYTES = 1 << 22  # a disk reads this much in the time of a few seeks
MAX_DIM = 1 << 24
MAX_DESCRIPTION = 1 << 24


@dataclass(frozen=True)
class ExampleStream:
    """kind: BYTE, FLOAT or CLASS.  dim: values per example or, for a class stream, the number of classes."""

    name: str
    kind: str
    dim: int

    @property
    def record(self) -> tuple[Any, ...]:
        """The numpy type of this stream in an example that is not coded yet."""
        return ("<i4",) if self.kind == CLASS else ("<f4", (self.dim,))

    def coded_bytes(self, count: int) -> int:
        """Return the size of this stream in a block of `count` examples."""
        if self.kind == BYTE:
            return 4 * 4 * self.dim + count * self.dim
        return 4 * count * (1 if self.kind == CLASS else self.dim)


@dataclass(frozen=True)
class Description:
    """Description of an archive.

    number: index of this archive in its set, from 1 to `archives`.
    examples: number of examples in it; per_block: examples per block, except the last one.
    total: examples in the whole set.
    token: identifies the set; equal in all of its archives.
    features: how the features of a stream were computed, by its name, as far as it is known.
    """

    streams: tuple[ExampleStream, ...]
    number: int
    archives: int
    examples: int
    total: int
    per_block: int
    token: str
    features: Mapping[str, FeatureRecord] = field(default_factory=dict)

    @property
    def num_blocks(self) -> int:
        return -(-self.examples // self.per_block)

    def count(self, block: int) -> int:
        """Return the number of examples in a block, counted from 0."""
        return min(self.per_block, self.examples - block * self.per_block)

    def block_bytes(self, count: int) -> int:
        """Return the size of a block of `count` examples without its header."""
        return sum(stream.coded_bytes(count) for stream in self.streams)


def record_type(streams: Sequence[ExampleStream]) -> np.dtype:
    """Return the numpy type of examples that are not coded yet; field fK is stream K."""
    return np.dtype([(f"f{index}", *stream.record) for index, stream in enumerate(streams)])


def examples_per_block(streams: Sequence[ExampleStream]) -> int:
    one_more = sum(stream.coded_bytes(1) - stream.coded_bytes(0) for stream in streams)
    return max(1, BLOCK_BYTES // one_more)


def write_archive(path: str | Path, described: Description, records: np.ndarray, order: np.ndarray) -> None:
    """Write records (N,) of `record_type` in the given order, completely or not at all.

    Raises FormatError for numbers that cannot be coded, and OSError.
    """
    records_of = {name: record.as_json() for name, record in described.features.items()}
    text = json.dumps({"version": VERSION, **asdict(described), "features": records_of}).encode()
    with atomic_write(path) as file:
        file.write(PREFIX.pack(MAGIC, len(text), zlib.crc32(text)))
        file.write(text)
        file.write(bytes(_first_block(len(text)) - PREFIX.size - len(text)))
        for first in range(0, len(order), described.per_block):
            some = records[order[first : first + described.per_block]]
            payload = b"".join(_coded(stream, some[f"f{index}"]) for index, stream in enumerate(described.streams))
            file.write(HEAD.pack(MARK, len(some), len(payload), zlib.crc32(payload)))
            file.write(payload)


def _first_block(length: int) -> int:
    """Return the offset of the first block after a description of `length` bytes."""
    return -(-(PREFIX.size + length) // 64) * 64


def _coded(stream: ExampleStream, values: np.ndarray) -> bytes:
    if stream.kind != BYTE:
        return np.ascontiguousarray(values).tobytes()
    try:
        knots = byte_coding.knots_of(values)
    except FormatError as fault:
        raise FormatError(f"{stream.name}: {fault}") from None
    return knots.astype("<f4").tobytes() + byte_coding.encode(values, knots).tobytes()


class ExampleArchive:
    """An archive opened for reading; keeps the last block in memory.

    Parameters
    ----------
    path : path
        The archive.

    Raises
    ------
    FormatError
        If the file is truncated, damaged or not an archive.
    OSError
        If it cannot be read.

    References
    ----------
    D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", 2015,
    C.2.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._file = self.path.open("rb", buffering=0)
        try:
            self.described, self._begin = self._open()
        except BaseException:
            self.close()
            raise
        self._block = -1
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._memory = bytearray()

    def _open(self) -> tuple[Description, int]:
        size = os.fstat(self._file.fileno()).st_size
        head = self._file.read(PREFIX.size)
        if len(head) < PREFIX.size or not head.startswith(MAGIC):
            raise FormatError(f"{self.path}: is not an archive of examples; expected a file that starts with ARGOEGS")
        _, length, checksum = PREFIX.unpack(head)
        if length > min(size, MAX_DESCRIPTION):
            raise FormatError(f"{self.path}: description of {length} bytes in a file of {size}; expected less")
        text = self._file.read(length)
        if zlib.crc32(text) != checksum:
            raise FormatError(f"{self.path}: the description is damaged; expected bytes with checksum {checksum:08x}")
        try:
            described = _parse(json.loads(text))
        except (FormatError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as fault:
            raise FormatError(f"{self.path}: description ({fault}); expected streams and sizes") from fault
        begin = _first_block(length)
        full_blocks, partial_block = divmod(described.examples, described.per_block)
        expected = begin + full_blocks * (HEAD.size + described.block_bytes(described.per_block))
        expected += (HEAD.size + described.block_bytes(partial_block)) if partial_block else 0
        if size != expected:
            raise FormatError(
                f"{self.path}: {size} bytes; expected {expected}, of {described.examples} examples; "
                f"it is {'cut short' if size < expected else 'too long'}, make it again"
            )
        return described, begin

    def numbers(self, stream: int, begin: int, end: int) -> np.ndarray:
        """Return (n, dim) float32, or (n,) int32 for a class stream: a new array of examples within one block."""
        described = self.described
        block = begin // described.per_block
        if block != self._block:
            self._read(block)
        rows = slice(begin - block * described.per_block, end - block * described.per_block)
        parts = self._parts[stream]
        if described.streams[stream].kind == BYTE:
            knots, codes = parts
            return byte_coding.decode(codes[rows], knots)
        return np.array(parts[0][rows])

    def _read(self, block: int) -> None:
        """Read a block; consecutive blocks are read sequentially from the file."""
        described = self.described
        self._block = -1
        count = described.count(block)
        payload = described.block_bytes(count)
        if not self._memory:
            self._memory = bytearray(HEAD.size + described.block_bytes(described.count(0)))
        memory = memoryview(self._memory)[: HEAD.size + payload]
        position = self._begin + block * (HEAD.size + described.block_bytes(described.per_block))
        if self._file.tell() != position:
            self._file.seek(position)
        got = 0
        while got < len(memory) and (more := self._file.readinto(memory[got:])):
            got += more
        head = HEAD.pack(MARK, count, payload, zlib.crc32(memory[HEAD.size :]))
        if got < len(memory) or memory[: HEAD.size] != head:
            raise FormatError(
                f"{self.path}: block {block + 1} of {described.num_blocks} is damaged; expected {count} examples with "
                "the checksum that was written; make the archive again"
            )
        self._parts = list(self._split(memory[HEAD.size :], count))
        self._block = block

    def _split(self, memory: memoryview, count: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Return the arrays of each stream of a block, as views of the memory."""
        position = 0
        for stream in self.described.streams:
            part = memory[position : position + stream.coded_bytes(count)]
            position += stream.coded_bytes(count)
            if stream.kind == BYTE:
                knots = np.frombuffer(part, "<f4", 4 * stream.dim).reshape(4, stream.dim)
                if not (np.isfinite(knots).all() and (knots[:-1] <= knots[1:]).all()):
                    raise FormatError(
                        f"{self.path}: the codes of {stream.name} stand for values that do not increase or are not "
                        "finite; expected increasing numbers; make the archive again"
                    )
                yield knots, np.frombuffer(part, np.uint8, offset=16 * stream.dim).reshape(count, stream.dim)
            elif stream.kind == FLOAT:
                yield (np.frombuffer(part, "<f4").reshape(count, stream.dim),)
            else:
                yield (self._classes(stream, np.frombuffer(part, "<i4")),)

    def _classes(self, stream: ExampleStream, numbers: np.ndarray) -> np.ndarray:
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < stream.dim:
            raise FormatError(
                f"{self.path}: classes {numbers.min()} to {numbers.max()} in {stream.name}; expected 0 to "
                f"{stream.dim - 1}; make the archive again"
            )
        return numbers

    def release(self) -> None:
        """Release the memory until the next read."""
        self._block = -1
        self._parts = []
        self._memory = bytearray()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _parse(found: dict[str, Any]) -> Description:
    """Raise ValueError, KeyError or TypeError if the JSON is not a description."""
    if found["version"] != VERSION:
        raise ValueError(f"version {found['version']}")
    streams = tuple(
        ExampleStream(str(stream["name"]), stream["kind"], int(stream["dim"])) for stream in found["streams"]
    )
    names = ("number", "archives", "examples", "total", "per_block")
    numbers = {name: found[name] for name in names}
    fine = all(type(number) is int and 0 <= number < 1 << 62 for number in numbers.values())
    features = {name: FeatureRecord.parse(record, name) for name, record in found.get("features", {}).items()}
    described = Description(streams, **numbers, token=str(found["token"]), features=features)
    fine = fine and 1 <= described.number <= described.archives and described.per_block > 0
    fine = fine and all(stream.kind in KINDS and 1 <= stream.dim <= MAX_DIM for stream in streams)
    if not streams or not fine:
        raise ValueError("numbers out of range")
    return described
