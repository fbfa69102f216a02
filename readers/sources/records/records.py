"""Records in columns of arrays, in memory or mapped from a file, as minibatches: what UCIFastReader and BinaryReader
share, and the shortest way to a reader of one's own.

    class CsvReader(RecordReader):
        def __init__(self, config, rng_seed=0, write=False, progress=None):
            numbers = np.loadtxt(config.path("file"), np.float32, delimiter=",", ndmin=2)
            super().__init__([RecordStream("features", numbers)], RecordOrder.from_config(config), rng_seed)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from readers.config.config import Config
from readers.errors import ConfigError, FormatError
from readers.minibatches.base import Minibatch, Reader, Utterance
from readers.minibatches.indicators import one_hot
from readers.minibatches.randomisation import Plan, Sweep

CHUNK_RECORDS = 16384
MAX_RECORDS_IN_MEMORY = 2_000_000
PIECE_RECORDS = 65536  # written at a time
ORDER_NAMES = ("randomize", "minibatchMode", "maxFramesInMemory")


@dataclass(frozen=True, eq=False)
class RecordStream:
    """One column of matrices.

    values: (N, dim) float32 numbers, or (N,) whole numbers, the class of each record; num_classes: rows of the one-hot
    columns made of classes, None for numbers; where: file:line of its dimension, for messages; unchecked: the file that
    the classes are mapped from, which nobody has looked through.
    """

    name: str
    values: np.ndarray
    num_classes: int | None = None
    where: str = ""
    unchecked: str = ""

    @property
    def dim(self) -> int:
        return self.values.shape[1] if self.num_classes is None else self.num_classes

    def matrix(self, rows: np.ndarray | slice) -> np.ndarray:
        """The columns (dim, n) float32, Fortran order, of some records; a new array."""
        values = self.values[rows]
        if self.num_classes is None:
            return np.array(values, np.float32, order="C", copy=isinstance(rows, slice) or None).T
        if self.unchecked and not 0 <= values.min() <= values.max() < self.num_classes:
            raise FormatError(
                f"{self.unchecked}: classes {values.min()} to {values.max()} in {self.name}; "
                f"expected 0 to {self.num_classes - 1}; remove the cache, it is made again"
            )
        return one_hot(values, self.num_classes)


@dataclass(frozen=True)
class RecordOrder:
    """shuffle: False visits records in their own order; window: records shuffled together, None for all, or, of mapped
    files, as many as max_records; partial: whether training takes the last, short minibatch of an epoch."""

    shuffle: bool = True
    window: int | None = None
    partial: bool = True
    max_records: int = MAX_RECORDS_IN_MEMORY

    @classmethod
    def from_config(cls, config: Config) -> "RecordOrder":
        """From randomize, minibatchMode and maxFramesInMemory of a reader's block."""
        shuffle, window = parse_randomize(config)
        partial = config.choice("minibatchMode", ("partial", "full"), "partial") == "partial"
        max_records = config.int("maxFramesInMemory", MAX_RECORDS_IN_MEMORY)
        if max_records < 1:
            where, name = config.where("maxFramesInMemory"), config.full_name("maxFramesInMemory")
            raise ConfigError(f"{where}: {name} is {max_records}; expected at least 1")
        return cls(shuffle, window, partial, max_records)

    def plan(self, total: int, mapped: bool, seed: int) -> Plan:
        """How `total` records are divided; mapped: they are on disk, and neighbours are best read together."""
        if self.window is not None:
            group = total if total <= self.window else max(1, self.window // 2)
        else:
            group = max(1, self.max_records // 3) if mapped and total > self.max_records else total
        chunk = group if group == total else min(CHUNK_RECORDS, group)
        first = np.append(np.arange(0, total, chunk, dtype=np.int64), total)
        return Plan(first, max(1, group // chunk), seed, self.shuffle)


class RecordReader(Reader):
    """Minibatches of the records that some streams hold, the same number in each.

    name: of the data, in messages and as the key of what action write writes.  Raises FormatError when there is no
    record, or when one stream has more than another.
    """

    def __init__(self, streams: Sequence[RecordStream], order: RecordOrder, rng_seed: int = 0, name: str = "data"):
        super().__init__()
        self._name = name
        self._streams = list(streams)
        lengths = {stream.name: len(stream.values) for stream in self._streams}
        if len(set(lengths.values())) != 1:
            found = ", ".join(f"{length} in {stream}" for stream, length in lengths.items()) or "no streams"
            raise FormatError(f"{name}: records {found}; expected as many in each")
        self._num_records = next(iter(lengths.values()))
        if not self._num_records:
            raise FormatError(f"{name}: no records; expected at least one")
        mapped = any(isinstance(stream.values, np.memmap) for stream in self._streams)
        self.partial = order.partial
        self._plan = order.plan(self._num_records, mapped, rng_seed)
        self._sweep: Sweep | None = None
        self._block = (0, 0, np.empty(0, np.int64))  # sweep, position where it begins, records in order of visit

    @property
    def streams(self) -> list[str]:
        """The names of the streams; they are the names of input nodes."""
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
        """(where it begins, its records) of the block that holds a position of a sweep."""
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
        """The records in their own order, some ten thousand at a time; the numbers alone, without classes."""
        for piece, begin in enumerate(range(0, self._num_records, PIECE_RECORDS)):
            rows = slice(begin, begin + PIECE_RECORDS)
            matrices = {stream.name: stream.matrix(rows) for stream in self._streams if stream.num_classes is None}
            yield Utterance(self._name if piece == 0 else f"{self._name}-{piece}", matrices, piece, records=True)

    def close(self) -> None:
        self._streams = [RecordStream(one.name, one.values[:0], one.num_classes, one.where) for one in self._streams]


def parse_randomize(config: Config) -> tuple[bool, int | None]:
    """(shuffle, window) of `randomize`: auto, none, or the number of frames that are shuffled together."""
    text = config.text("randomize", "auto")
    if text.lower() in ("auto", "none"):
        return text.lower() == "auto", None
    try:
        window = config.int("randomize")
    except ConfigError:
        window = 0
    if window < 1:
        raise ConfigError(
            f"{config.where('randomize')}: {config.full_name('randomize')} is {text!r}; "
            "expected auto, none or a number of frames"
        )
    return True, window
