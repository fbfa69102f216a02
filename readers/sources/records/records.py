"""Minibatches of records stored in arrays: the base of UCIFastReader and BinaryReader, and of new readers.

class CsvReader(RecordReader):
    def __init__(self, config, rng_seed=0, write=False, progress=None):
        numbers = np.loadtxt(config.path("file"), np.float32, delimiter=",", ndmin=2)
        super().__init__([RecordStream("features", numbers)], RecordOrder.from_block(config), rng_seed)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from readers.config.config import Config
from readers.config.options import Options, located_faults, option
from readers.errors import FormatError
from readers.minibatches.base import Minibatch, Reader, Utterance
from readers.minibatches.indicators import one_hot
from readers.minibatches.randomisation import ChunkPlan, Sweep, VisitOptions

CHUNK_RECORDS = 16384
PIECE_RECORDS = 65536  # per Utterance that action write receives


@dataclass(frozen=True, eq=False)
class RecordStream:
    """One stream of records.

    Attributes
    ----------
    name : str
    values : (N, dim) float32 or (N,) integers
        Numbers, or the class of each record; may be memory-mapped.
    num_classes : int or None
        Rows of the one-hot columns of classes; None for numbers.
    where : str
        "file:line" of the dimension, for messages.
    unchecked : str
        File from which the classes are mapped, if their range was not checked.
    """

    name: str
    values: np.ndarray
    num_classes: int | None = None
    where: str = ""
    unchecked: str = ""

    @property
    def dim(self) -> int:
        """Rows delivered: values per record, or classes."""
        return self.values.shape[1] if self.num_classes is None else self.num_classes

    def matrix(self, rows: np.ndarray | slice) -> np.ndarray:
        """Return the columns (dim, n) float32, Fortran order, of some records as a new array."""
        values = self.values[rows]
        if self.num_classes is None:
            return np.array(values, np.float32, order="C", copy=isinstance(rows, slice) or None).T
        if self.unchecked and not 0 <= values.min() <= values.max() < self.num_classes:
            raise FormatError(
                f"{self.unchecked}: classes {values.min()} to {values.max()} in {self.name}; "
                f"expected 0 to {self.num_classes - 1}; remove the cache, it will be made again"
            )
        return one_hot(values, self.num_classes)


@dataclass(frozen=True, kw_only=True)
class RecordOrder(VisitOptions):
    """The order in which records are visited, in the block of a reader."""

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Return the options of a reader block, as `from_block` does."""
        return cls.from_block(config)

    def plan(self, total: int, mapped: bool, seed: int) -> ChunkPlan:
        """Return the division of `total` records into chunks; mapped: neighbours on disk are read together."""
        if self.window is not None:
            group = total if total <= self.window else max(1, self.window // 2)
        else:
            group = max(1, self.max_frames // 3) if mapped and total > self.max_frames else total
        chunk = group if group == total else min(CHUNK_RECORDS, group)
        first = np.append(np.arange(0, total, chunk, dtype=np.int64), total)
        return ChunkPlan(first, max(1, group // chunk), seed, self.shuffle)


@dataclass(frozen=True, kw_only=True)
class SelectionOptions(Options):
    """A block that selects a stream of a file by its name; its sizes are compared with those in the file."""

    dim: int | None = option(None, "values of a record", own=True)
    label_dim: int | None = option(None, "number of classes", own=True)

    def check(self, block: Config, size: int, is_label: bool, source: str | Path) -> str:
        """Return the name of the size of a stream.  Raises ConfigError if the block has another size."""
        name, size_set = ("label_dim", self.label_dim) if is_label else ("dim", self.dim)
        with located_faults(block):
            self.require(name, size_set in (None, size), f"is {size_set}; expected {size}, as in {source}")
        return self.declaration(name).key


class RecordReader(Reader):
    """Minibatches of the records of some streams with equal numbers of records.

    Parameters
    ----------
    streams : sequence of RecordStream
    order : RecordOrder
    rng_seed : int
        The order of records depends only on this seed and the number of the sweep.
    name : str
        Name of the data, for messages, and key of what action write writes.

    Raises
    ------
    FormatError
        If there are no records, or the streams have different numbers of records.
    """

    def __init__(self, streams: Sequence[RecordStream], order: RecordOrder, rng_seed: int = 0, name: str = "data"):
        super().__init__()
        self._name = name
        self._streams = list(streams)
        lengths = {stream.name: len(stream.values) for stream in self._streams}
        if len(set(lengths.values())) != 1:
            numbers = ", ".join(f"{length} in {stream}" for stream, length in lengths.items()) or "no streams"
            raise FormatError(f"{name}: records {numbers}; expected equal numbers")
        self._num_records = next(iter(lengths.values()))
        if not self._num_records:
            raise FormatError(f"{name}: no records; expected at least one")
        mapped = any(isinstance(stream.values, np.memmap) for stream in self._streams)
        self.partial = order.partial
        self._plan = order.plan(self._num_records, mapped, rng_seed)
        self._sweep: Sweep | None = None
        self._block = (
            0,
            0,
            np.empty(0, np.int64),
        )  # sweep, position where the block begins, its records in the order of visits

    @property
    def streams(self) -> list[str]:
        """The names of the streams, which are the names of input nodes."""
        return [stream.name for stream in self._streams]

    def dims(self) -> dict[str, int]:
        return {stream.name: stream.dim for stream in self._streams}

    def places(self) -> dict[str, str]:
        return {stream.name: stream.where for stream in self._streams if stream.where}

    @property
    def num_frames(self) -> int:
        return self._num_records

    def assemble(self, position: int, size: int) -> Minibatch:
        pieces: list[np.ndarray] = []
        while size:
            sweep, within = divmod(position, self._num_records)
            begin, records = self._enter(sweep, within)
            pieces.append(records[within - begin : within - begin + size])
            position += len(pieces[-1])
            size -= len(pieces[-1])
        rows = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        matrices = {stream.name: stream.matrix(rows) for stream in self._streams}
        classes = {stream.name: stream.values[rows] for stream in self._streams if stream.num_classes is not None}
        return Minibatch(matrices, classes, len(rows))

    def _enter(self, number: int, position: int) -> tuple[int, np.ndarray]:
        """Return (first position, records) of the block that contains a position of a sweep."""
        sweep, begin, records = self._block
        if sweep == number and begin <= position < begin + len(records):
            return begin, records
        if self._sweep is None or self._sweep.number != number:
            self._sweep = Sweep(self._plan, number)
        index = self._sweep.find(position)
        self._block = (number, int(self._sweep.bounds[index]), self._sweep.frames(index))
        return self._block[1:]

    @property
    def num_utterances(self) -> int:
        return -(-self._num_records // PIECE_RECORDS)

    def utterances(self) -> Iterator[Utterance]:
        """Yield the records in their original order, some ten thousand at a time; only numbers, no classes."""
        for piece, begin in enumerate(range(0, self._num_records, PIECE_RECORDS)):
            rows = slice(begin, begin + PIECE_RECORDS)
            matrices = {stream.name: stream.matrix(rows) for stream in self._streams if stream.num_classes is None}
            yield Utterance(self._name if piece == 0 else f"{self._name}-{piece}", matrices, piece, records=True)

    def close(self) -> None:
        self._streams = [
            RecordStream(stream.name, stream.values[:0], stream.num_classes, stream.where) for stream in self._streams
        ]
