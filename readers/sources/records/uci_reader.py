"""UCIFastReader: minibatches of records from text files with one record per line.

    reader = UCIFastReader(config.block("Simple_Demo").block("reader"))
    for minibatch in reader.minibatches(epoch=0, minibatch_size=25):
        minibatch.matrices["features"]          # (2, 25) float32, Fortran order
        minibatch.matrices["labels"]            # (2, 25) one-hot columns

A reader block has any number of blocks of features and labels, from one file or several parallel files.  With wfile=...
the records are stored in a binary cache (record_cache.py), which is mapped into memory, so that the data may be larger
than the memory.
Source: CNTK book 3.4.1.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from readers.common.report import Progress
from readers.config.config import Config
from readers.errors import ConfigError, FormatError
from readers.sources.frames.streams import describe
from readers.sources.records.record_cache import (
    CachedSource,
    CachedStream,
    RecordCache,
    is_cache,
    open_cache,
    write_cache,
)
from readers.sources.records.records import RecordReader, RecordStream
from readers.sources.records.uci import UCIBlock, UCILayout, read_uci
from readers.sources.records.uci_options import LabelMap, UCIOptions, UCIStream


class UCIFastReader(RecordReader):
    """Reads records from the text files that the reader block names.

    Parameters
    ----------
    config : Config
        The reader block.
    rng_seed : int
        The order of records depends only on this seed and the number of the sweep.
    write : bool
        Whether the reader is for action write, which needs no labels.
    progress : callable, optional
        Called as progress(done, total) while text is read.

    Raises
    ------
    ConfigError, FormatError
        With file and line, for text that does not match the blocks.

    References
    ----------
    CNTK book 3.4.1.
    """

    # A map made from test data would number the classes differently.
    test_settings: ClassVar[Mapping[str, str]] = {"allowMapCreation": "false"}
    check_settings: ClassVar[Mapping[str, str]] = {"wfile": '""', "writeLabelMap": "false"}

    def __init__(self, config: Config, rng_seed: int = 0, write: bool = False, progress: Progress | None = None):
        options = UCIOptions.from_config(config, write)
        if options.block.cache is None:
            columns = read_columns(options, progress)
        else:
            columns = cached_columns(options, write, progress)
        streams = [
            RecordStream(
                stream.name,
                columns[stream.name],
                stream.num_classes,
                stream.dim_where,
                str(options.block.cache) if isinstance(columns[stream.name], np.memmap) else "",
            )
            for stream in options.streams
        ]
        super().__init__(streams, options.block, rng_seed, options.streams[0].file.stem)
        self.warnings = options.warnings


def read_columns(options: UCIOptions, progress: Progress | None = None) -> dict[str, np.ndarray]:
    """Read the values of each stream, (N, dim) float32 or classes (N,) int32, from text.

    New label maps are written after all of the text has been read.
    """
    parts: dict[str, list[np.ndarray]] = {stream.name: [] for stream in options.streams}
    for block in joined_blocks(options, progress):
        for name, values in block.items():
            parts[name].append(values)
    for stream in options.streams:
        stream.finish()
    return {name: np.concatenate(values) if len(values) > 1 else values[0] for name, values in parts.items()}


def cached_columns(options: UCIOptions, write: bool, progress: Progress | None = None) -> dict[str, np.ndarray]:
    """Return the values of each stream, mapped from the cache, which is made first if it is missing or out of date.

    write: use the existing cache without making one.  Raises ConfigError if another file is in its place.
    """
    path = options.block.cache
    assert path is not None
    if path.exists():
        if not is_cache(path):
            raise ConfigError(f"{path}: is not a record cache; expected one, or no file at wfile")
        try:
            cache = open_cache(path)
            stale = _out_of_date(cache, options)
        except FormatError as fault:
            stale = str(fault)
        if not stale:
            return cache.columns
        options.warnings.append(f"{path}: {'not used' if write else 'made again'}: {stale}")
    if write:
        return read_columns(options, progress)
    files = options.files

    def described() -> list[CachedStream]:
        return [
            CachedStream(
                stream.name,
                files.index(stream.file),
                stream.start,
                stream.dim,
                stream.num_classes,
                tuple(stream.labels.names) if stream.labels else (),
            )
            for stream in options.streams
        ]

    sources = [CachedSource.of(file) for file in files]
    write_cache(path, joined_blocks(options, progress), described(), sources, _settings(options), described)
    for stream in options.streams:
        stream.finish()
    return open_cache(path).columns


def _settings(options: UCIOptions) -> dict[str, str]:
    return {"delimiters": options.block.delimiters, "decimal_point": options.block.decimal_point}


def _out_of_date(cache: RecordCache, options: UCIOptions) -> str:
    """Return why a cache does not represent the text; "" if it does, and then use the labels of the cache."""
    cached_streams = {stream.name: stream for stream in cache.streams}
    labelled: list[tuple[UCIStream, LabelMap, Sequence[str], int]] = []
    for stream in options.streams:
        cached = cached_streams.get(stream.name)
        if cached is None or (cached.start, cached.dim) != (stream.start, stream.dim):
            return f"{stream.name} differs from the cached stream"
        if (cached.num_classes is None) != (stream.labels is None) or not 0 <= cached.file < len(cache.sources):
            return f"{stream.name} differs from the cached stream"
        try:
            now = CachedSource.of(stream.file)
        except OSError as fault:
            return describe(fault)
        if cache.sources[cached.file] != now:
            return f"{stream.file} has changed since"
        if stream.labels is not None and cached.num_classes is not None:
            labelled.append((stream, stream.labels, cached.labels, cached.num_classes))
    if cache.settings != _settings(options):
        return "customDelimiter or customDecimalPoint has changed since"
    for stream, label_map, names, num_classes in labelled:
        if not label_map.fits(names, num_classes):
            return f"the labels of {stream.name} have changed since"
    for stream, label_map, names, num_classes in labelled:
        label_map.adopt(names, num_classes)
        stream.finish()
    return ""


def joined_blocks(options: UCIOptions, progress: Progress | None = None) -> Iterator[dict[str, np.ndarray]]:
    """Yield values of consecutive records, by stream; files are read in parallel.

    Raises FormatError if the files have different numbers of records, or none.
    """
    files = options.files
    sources = [_FileColumns(file, options, progress if file == files[0] else None) for file in files]
    total = 0
    while True:
        held = [source.available() for source in sources]
        if not min(held):
            break
        block: dict[str, np.ndarray] = {}
        for source in sources:
            block |= source.take(min(held))
        total += min(held)
        yield block
    if max(held):
        longer = files[held.index(max(held))]
        shorter = files[held.index(0)]
        raise FormatError(f"{shorter}: {total} records; expected the number of records of {longer}")
    if not total:
        raise FormatError(f"{files[0]}: no records; expected one on each line")


class _FileColumns:
    """The columns of one file, parsed on demand."""

    def __init__(self, file: Path, options: UCIOptions, progress: Progress | None):
        self._streams = [stream for stream in options.streams if stream.file == file]
        numbers: list[int] = []
        labels: list[int] = []
        self._columns: dict[str, slice] = {}  # of numbers, by stream
        self._label_column: dict[str, int] = {}
        for stream in self._streams:
            if stream.labels is None:
                self._columns[stream.name] = slice(len(numbers), len(numbers) + stream.dim)
                numbers.extend(range(stream.start, stream.start + stream.dim))
            else:
                self._label_column[stream.name] = len(labels)
                labels.append(stream.start)
        layout = UCILayout(numbers, labels, options.block.delimiters, options.block.decimal_point)
        self._file = file
        self._progress = progress
        self._blocks = read_uci(file, layout)
        self._held: dict[str, np.ndarray] = {}

    def available(self) -> int:
        """Return the number of parsed records that were not taken; 0 at the end of the file."""
        while not self._held or not len(next(iter(self._held.values()))):
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._held = {stream.name: self._values(stream, block) for stream in self._streams}
            if self._progress is not None:
                self._progress(block.end, self._file.stat().st_size)
        return len(next(iter(self._held.values())))

    def take(self, count: int) -> dict[str, np.ndarray]:
        columns = {name: values[:count] for name, values in self._held.items()}
        self._held = {name: values[count:] for name, values in self._held.items()}
        return columns

    def _values(self, stream: UCIStream, block: UCIBlock) -> np.ndarray:
        if stream.labels is None:
            return np.ascontiguousarray(block.numbers[:, self._columns[stream.name]])
        labels = block.labels[self._label_column[stream.name]]
        return stream.labels.classes(labels, lambda record: f"{self._file}:{block.lines[record]}")


def create_label_maps(config: Config, progress: Progress | None = None) -> list[tuple[LabelMap, bool]]:
    """Return (map, whether it is new) of every label mapping file of a reader block; missing files are made from the
    data.

    A new map may have any number of labels.  Raises ConfigError if the block names no mapping file.
    """
    options = UCIOptions.from_config(config)
    maps = [stream.labels for stream in options.streams if stream.labels is not None and stream.labels.path is not None]
    if not maps:
        raise ConfigError(f"{config.where()}: {config.full_name()} names no labelMappingFile; expected one to create")
    label_maps = [(label_map, label_map.grows) for label_map in maps]
    options.streams = [stream for stream in options.streams if stream.labels is not None and stream.labels.grows]
    for stream in options.streams:
        if stream.labels is not None:
            stream.labels.limit = 0
    if options.streams:
        read_columns(options, progress)
    return label_maps
