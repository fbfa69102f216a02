"""Writing training examples in random order as a set of archives, which are then read sequentially.

Each example is assigned to a random heap; every heap fits into memory.  Then each heap is shuffled and becomes an
archive.  The order of all examples in the archives is uniformly random.
Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", C.2.
"""

import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO

import numpy as np

from readers.common.temporary import TemporaryPath
from readers.config.feature_record import FeatureRecord
from readers.errors import FormatError
from readers.minibatches.base import Minibatch
from readers.minibatches.indicators import Indicators
from readers.sources.examples.example_archive import (
    BYTE,
    CLASS,
    FLOAT,
    Description,
    ExampleStream,
    examples_per_block,
    record_type,
    write_archive,
)

MEMORY = 1 << 30  # bytes per heap, not coded; shuffling needs about twice as much
EXAMPLES = 2  # distinguishes these random numbers from others of the same seed


def archive_path(path: str | Path, number: int) -> Path:
    """Return the file of an archive of a set, counted from 1."""
    return Path(f"{os.fspath(path)}.{number}")


def write_examples(
    path: str | Path,
    minibatches: Iterable[Minibatch],
    num_examples: int,
    *,
    compress: bool = True,
    archives: int = 1,
    seed: int = 0,
    memory: int = MEMORY,
    progress: Callable[[int, int], None] = lambda done, total: None,
    features: Mapping[str, FeatureRecord] | None = None,
) -> list[Path]:
    """Write the frames of minibatches in random order to the archives PATH.1, PATH.2, ...

    Further archives of an earlier set with that name are removed.  If an error occurs, no archive is written.

    Parameters
    ----------
    path : path
        Common prefix of the archives.
    minibatches : iterable of Minibatch
        Independent frames.
    num_examples : int
        Expected number of frames, for the number of archives.
    compress : bool
        Whether to code numbers other than classes in one byte each.
    archives : int
        Minimum number of archives.
    seed : int
        Seed of the order.
    memory : int
        Maximum size of a heap in bytes.
    progress : callable
        Called as progress(done, total), in examples.
    features : mapping of str to FeatureRecord, optional
        How the features of a stream were computed, by its name.

    Returns
    -------
    list of Path
        The archives.

    Raises
    ------
    FormatError
        For sequences, minibatches that differ in their streams, and compressed numbers that are not finite.

    References
    ----------
    D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", 2015,
    C.2.
    """
    heaps: Heaps | None = None
    streams: tuple[ExampleStream, ...] = ()
    try:
        for minibatch in minibatches:
            if heaps is None:
                streams = _streams(minibatch, compress)
                needed = -(-num_examples * record_type(streams).itemsize // memory)
                heaps = Heaps(path, record_type(streams), max(archives, needed, 1), seed)
            heaps.add(_records(streams, minibatch))
            progress(heaps.total, max(num_examples, heaps.total))
        if heaps is None or not heaps.total:
            raise FormatError(f"{os.fspath(path)}: no examples to write; expected at least one")
        return _write_heaps(path, heaps, streams, seed, features or {})
    finally:
        if heaps is not None:
            heaps.close()


def _write_heaps(
    path: str | Path,
    heaps: "Heaps",
    streams: tuple[ExampleStream, ...],
    seed: int,
    features: Mapping[str, FeatureRecord],
) -> list[Path]:
    _remove_from(path, 1)
    written: list[Path] = []
    for index in range(heaps.count):
        records = heaps.take(index)
        described = Description(
            streams=streams,
            number=index + 1,
            archives=heaps.count,
            examples=len(records),
            total=heaps.total,
            per_block=examples_per_block(streams),
            token=heaps.token,
            features=features,
        )
        order = np.random.default_rng((seed, EXAMPLES, 1 + index)).permutation(len(records))
        try:
            write_archive(archive_path(path, index + 1), described, records, order)
        except BaseException:
            for done in written:
                done.unlink(missing_ok=True)
            raise
        written.append(archive_path(path, index + 1))
    return written


def _remove_from(path: str | Path, number: int) -> None:
    """Remove the archives of that name from a number on."""
    while archive_path(path, number).exists():
        archive_path(path, number).unlink()
        number += 1


class Heaps:
    """Distributes records randomly to `count` heaps; a single heap is kept in memory, several are files."""

    def __init__(self, path: str | Path, dtype: np.dtype, count: int, seed: int):
        self.dtype = dtype
        self.count = count
        self.total = 0
        self._rng = np.random.default_rng((seed, EXAMPLES, 0))
        self._checksum = zlib.crc32(f"{dtype} {count} {seed}".encode())
        self._kept: list[np.ndarray] = []
        target = Path(path)
        self._temporary: list[TemporaryPath] = []
        self._files: list[IO[bytes]] = []
        if count > 1:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                for _ in range(count):
                    self._temporary.append(TemporaryPath(target))
                    self._files.append(self._temporary[-1].open("wb"))
            except BaseException:
                self.close()
                raise

    @property
    def token(self) -> str:
        """A checksum of the records: equal for the same examples in the same order."""
        return f"{self.total:x}-{self._checksum:08x}"

    def add(self, records: np.ndarray) -> None:
        self.total += len(records)
        self._checksum = zlib.crc32(records.view(np.uint8).data, self._checksum)
        if self.count == 1:
            self._kept.append(records)
            return
        heap = self._rng.integers(self.count, size=len(records))
        order = np.argsort(heap, kind="stable")
        bounds = np.searchsorted(heap[order], np.arange(self.count + 1))
        ordered = records[order]
        for index, file in enumerate(self._files):
            file.write(ordered[bounds[index] : bounds[index + 1]].view(np.uint8).data)

    def take(self, heap: int) -> np.ndarray:
        """Return the records of a heap and remove it."""
        if self.count == 1:
            records = np.concatenate(self._kept)
            self._kept = []
            return records
        self._files[heap].close()
        records = np.fromfile(self._temporary[heap].path, self.dtype)
        self._temporary[heap].close()
        return records

    def close(self) -> None:
        for file in self._files:
            file.close()
        for temporary in self._temporary:
            temporary.close()


def _streams(minibatch: Minibatch, compress: bool) -> tuple[ExampleStream, ...]:
    """Return the streams of the first minibatch: classes if a matrix is one-hot, else numbers."""
    streams = []
    for name, matrix in minibatch.matrices.items():
        kind = BYTE if compress and name not in minibatch.classes else FLOAT
        streams.append(ExampleStream(name, CLASS if _classes(minibatch, name) is not None else kind, matrix.shape[0]))
    return tuple(streams)


def _records(streams: tuple[ExampleStream, ...], minibatch: Minibatch) -> np.ndarray:
    """Return (N,) the examples of a minibatch.  Raises FormatError if its streams differ from those of the first."""
    if getattr(minibatch, "layout", None) is not None:
        raise FormatError(
            "examples: the reader delivers sequences; expected independent frames, as with frameMode=true"
        )
    records = np.empty(minibatch.num_frames, record_type(streams))
    for index, stream in enumerate(streams):
        matrix = minibatch.matrices.get(stream.name)
        if matrix is None or matrix.shape != (stream.dim, len(records)):
            shape = "nothing" if matrix is None else f"{matrix.shape[0]} rows, {matrix.shape[1]} columns"
            raise FormatError(f"examples: {stream.name}: {shape}; expected {stream.dim} rows, {len(records)} columns")
        values = _classes(minibatch, stream.name) if stream.kind == CLASS else np.asarray(matrix).T
        if values is None:
            raise FormatError(
                f"examples: {stream.name}: columns without a class; expected a class for each column, as in the first "
                "minibatch"
            )
        records[f"f{index}"] = values
    return records


def _classes(minibatch: Minibatch, name: str) -> np.ndarray | None:
    """Return (N,) the class of each frame if the matrix of that stream is one-hot, else None."""
    matrix = minibatch.matrices[name]
    if isinstance(matrix, Indicators):
        blocks = matrix.numbers
        return blocks[0] if len(blocks) == 1 and (not blocks.size or blocks.min() >= 0) else None
    numbers = minibatch.classes.get(name)
    if numbers is None or len(numbers) != matrix.shape[1]:
        return None
    one_each = np.count_nonzero(matrix) == len(numbers) and (
        not len(numbers) or (numbers.max() < len(matrix) and np.all(matrix[numbers, np.arange(len(numbers))] == 1))
    )
    return numbers if one_each else None
