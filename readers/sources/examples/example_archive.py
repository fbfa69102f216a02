"""An archive of training examples: blocks of frames in the order of training, read sequentially.

It is an indexed archive (see readers.results.indexed_archive).  Its metadata describe the streams, the number of this
archive in its set, and the examples in it and in a block.  Record K is block K, with an array for each stream K:

    byte    "K.knots", (4, dim) float32 (see byte_coding), and "K", the codes (n, dim) uint8
    float   "K", (n, dim) float32
    class   "K", (n,) int32

All blocks except the last have the same number of examples.
Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", C.2
(purpose).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from readers.common.report import Figures
from readers.config.feature_record import FeatureRecord
from readers.errors import FormatError
from readers.results.indexed_archive import ArchiveWriter, IndexedArchive
from readers.sources.examples import byte_coding

ARCHIVE, EARLIER = "training examples", b"ARGOEGS\n"  # kind of the archive; first bytes of an earlier format
BYTE, FLOAT, CLASS = "byte", "float", "class"
TYPES = {BYTE: "|u1", FLOAT: "<f4", CLASS: "<i4"}
BLOCK_BYTES = 1 << 22  # a disk reads this much in the time of a few seeks
MAX_DIM = 1 << 24
AGAIN = "make the archives again with action makeExamples and makeMode=false"


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

    @property
    def example_bytes(self) -> int:
        """The size of this stream in a coded example."""
        return np.dtype(TYPES[self.kind]).itemsize * (1 if self.kind == CLASS else self.dim)


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


def record_type(streams: Sequence[ExampleStream]) -> np.dtype:
    """Return the numpy type of examples that are not coded yet; field fK is stream K."""
    return np.dtype([(f"f{index}", *stream.record) for index, stream in enumerate(streams)])


def examples_per_block(streams: Sequence[ExampleStream]) -> int:
    return max(1, BLOCK_BYTES // sum(stream.example_bytes for stream in streams))


def write_archive(path: str | Path, described: Description, records: np.ndarray, order: np.ndarray) -> None:
    """Write records (N,) of `record_type` in the given order, completely or not at all.

    Raises FormatError for numbers that cannot be coded, and OSError.
    """
    features = {name: record.as_json() for name, record in described.features.items()}
    with ArchiveWriter(path, ARCHIVE, {**asdict(described), "features": features}, resume=False) as writer:
        for first in range(0, len(order), described.per_block):
            block = records[order[first : first + described.per_block]]
            arrays: dict[str, np.ndarray] = {}
            for index, stream in enumerate(described.streams):
                arrays |= _coded(stream, index, block[f"f{index}"])
            writer.add(f"{first // described.per_block}", arrays)


def _coded(stream: ExampleStream, index: int, values: np.ndarray) -> dict[str, np.ndarray]:
    if stream.kind != BYTE:
        return {f"{index}": values}
    try:
        knots = byte_coding.knots_of(values)
    except FormatError as fault:
        raise FormatError(f"{stream.name}: {fault}") from None
    return {f"{index}.knots": knots.astype("<f4"), f"{index}": byte_coding.encode(values, knots)}


def is_earlier(path: Path) -> bool:
    """Whether a file begins like an archive of an earlier format."""
    with path.open("rb") as file:
        return file.read(len(EARLIER)) == EARLIER


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
        if self.path.is_file() and is_earlier(self.path):
            raise FormatError(f"{path}: archive of training examples of an earlier version; {AGAIN}")
        self._archive = IndexedArchive(path, ARCHIVE)
        try:
            self.described = _parse(self._archive.metadata, len(self._archive.names))
        except (FormatError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as fault:
            raise FormatError(f"{self.path}: description ({fault}); expected streams and sizes; {AGAIN}") from fault
        self._block = -1
        self._parts: list[tuple[np.ndarray, ...]] = []

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
        """Read a block; consecutive blocks follow each other in the file."""
        self._block = -1
        self._parts = []
        arrays = self._archive.record(f"{block}").arrays
        streams = enumerate(self.described.streams)
        self._parts = [self._checked(stream, index, arrays, self.described.count(block)) for index, stream in streams]
        self._block = block

    def _checked(
        self, stream: ExampleStream, index: int, arrays: Mapping[str, np.ndarray], count: int
    ) -> tuple[np.ndarray, ...]:
        """Return the arrays of a stream of a block.  Raises FormatError for other sizes, types and values."""
        forms = {f"{index}": (TYPES[stream.kind], (count,) if stream.kind == CLASS else (count, stream.dim))}
        forms = {f"{index}.knots": ("<f4", (4, stream.dim)), **forms} if stream.kind == BYTE else forms
        parts = tuple(arrays.get(name, np.empty(0)) for name in forms)
        if [(part.dtype.str, part.shape) for part in parts] != list(forms.values()):
            raise FormatError(f"{self.path}: a block without the examples of {stream.name}; expected {count}; {AGAIN}")
        if stream.kind == CLASS:
            self._classes(stream, parts[0])
        elif stream.kind == BYTE and not (np.isfinite(parts[0]).all() and (parts[0][:-1] <= parts[0][1:]).all()):
            raise FormatError(
                f"{self.path}: the codes of {stream.name} stand for values that do not increase or are not finite; "
                f"expected increasing numbers; {AGAIN}"
            )
        return parts

    def _classes(self, stream: ExampleStream, numbers: np.ndarray) -> None:
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < stream.dim:
            raise FormatError(
                f"{self.path}: classes {numbers.min()} to {numbers.max()} in {stream.name}; expected 0 to "
                f"{stream.dim - 1}; {AGAIN}"
            )

    def release(self) -> None:
        """Release the memory until the next read."""
        self._block = -1
        self._parts = []


def _parse(found: dict[str, Any], num_blocks: int) -> Description:
    """Raise ValueError, KeyError or TypeError if the JSON is not a description of so many blocks."""
    streams = tuple(
        ExampleStream(str(stream["name"]), stream["kind"], int(stream["dim"])) for stream in found["streams"]
    )
    names = ("number", "archives", "examples", "total", "per_block")
    numbers = {name: found[name] for name in names}
    fine = all(type(number) is int and 0 <= number < 1 << 62 for number in numbers.values())
    features = {name: FeatureRecord.parse(record, name) for name, record in found.get("features", {}).items()}
    described = Description(streams, **numbers, token=str(found["token"]), features=features)
    fine = fine and 1 <= described.number <= described.archives and described.per_block > 0
    fine = fine and all(stream.kind in TYPES and 1 <= stream.dim <= MAX_DIM for stream in streams)
    if not streams or not fine or described.num_blocks != num_blocks:
        raise ValueError("numbers out of range")
    return described


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    described = ExampleArchive(path).described
    figures: Figures = [
        ("examples", f"{described.examples} of {described.total}"),
        ("archive", f"{described.number} of {described.archives} of set {described.token}"),
        ("blocks", f"{described.num_blocks}, of {min(described.per_block, described.examples)} examples"),
    ]
    for stream in described.streams:
        each = "a byte each" if stream.kind == BYTE else "4 bytes each"
        what = f"a class of {stream.dim}" if stream.kind == CLASS else f"{stream.dim} numbers, {each}"
        figures.append((stream.name, what))
    records = [("computed with", f"{name}: {', '.join(record.texts())}") for name, record in described.features.items()]
    return [*figures, *records]
