"""BinaryReader: minibatches from a binary cache of records, which a UCIFastReader with wfile=... has written.

The original text is not needed.  Blocks in the reader block select streams by name, and their settings (dim, labelDim,
labelMappingFile) must match the cache; without blocks all streams are read.
Source: CNTK book 3.1; the layout of the file is our own, see record_cache.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from readers.common.report import Progress
from readers.config.config import Config
from readers.config.options import option
from readers.config.values import did_you_mean
from readers.errors import ConfigError
from readers.minibatches.base import IDLE
from readers.sources.frames.streams import naming
from readers.sources.records.record_cache import CachedStream, RecordCache, open_cache
from readers.sources.records.records import RecordOrder, RecordReader, RecordStream, SelectionOptions
from readers.sources.records.uci_options import LabelMapOptions, label_map

# Options of a UCIFastReader block without effect here, and the reason.
WITHOUT_EFFECT = {
    **IDLE,
    "start": "the cache contains values, not columns of text",
    "sectionType": "the cache distinguishes features and labels",
    "type": "the cache distinguishes features and labels",
    "labelType": "the cache distinguishes features and labels",
}


@dataclass(frozen=True, kw_only=True)
class BinaryReaderOptions(RecordOrder):
    """The block of BinaryReader."""

    cache: Path = option(help="cache of records, as UCIFastReader writes it", cntk="file wfile")


class BinaryReader(RecordReader):
    """Reads records from the cache that `file` (or `wfile`) of the reader block names.

    Parameters
    ----------
    config : Config
        The reader block.
    rng_seed : int
        The order of records depends only on this seed and the number of the sweep.
    write : bool
        Whether the reader is for action write, which needs no labels.
    progress : callable, optional
        Not used.

    Raises
    ------
    ConfigError, FormatError
        For a damaged cache, and blocks that do not match it.

    References
    ----------
    CNTK book 3.1.
    """

    test_settings: ClassVar[Mapping[str, str]] = {"allowMapCreation": "false"}
    check_settings: ClassVar[Mapping[str, str]] = {"writeLabelMap": "false"}

    def __init__(self, config: Config, rng_seed: int = 0, write: bool = False, progress: Progress | None = None):
        options = BinaryReaderOptions.from_block(config)
        path = options.cache
        with naming(config, options.declaration("cache").set_by(config)):
            cache = open_cache(path)
        blocks = dict(config.blocks())
        labels = LabelMapOptions.option_keys()
        reader_keys = [*options.option_keys(), *labels, *WITHOUT_EFFECT, *blocks]
        block_keys = [*SelectionOptions.option_keys(), *labels, *WITHOUT_EFFECT]
        warnings = list(map(str, config.unknown(reader_keys)))
        for block in blocks.values():
            warnings.extend(map(str, block.unknown(block_keys)))
        streams = [
            RecordStream(column.name, cache.columns[column.name], column.num_classes, where, str(path))
            for column, where in _chosen(cache, blocks, config)
            if column.num_classes is None or not write
        ]
        super().__init__(streams, options, rng_seed, path.stem)
        self.warnings = warnings


def _chosen(cache: RecordCache, blocks: dict[str, Config], config: Config) -> list[tuple[CachedStream, str]]:
    """Return (stream, file:line of its dimension) for the streams that the blocks select, or for all without blocks."""
    by_name = {stream.name: stream for stream in cache.streams}
    if not blocks:
        return [(stream, config.where()) for stream in cache.streams]
    chosen: list[tuple[CachedStream, str]] = []
    for name, block in blocks.items():
        if name not in by_name:
            raise ConfigError(
                f"{block.where()}: {block.full_name()} is not a stream of {cache.path}; expected {' or '.join(by_name)}"
                f"{did_you_mean(name, by_name)}"
            )
        stream = by_name[name]
        is_label = stream.num_classes is not None
        size = stream.dim if stream.num_classes is None else stream.num_classes
        key = SelectionOptions.from_block(block).check(block, size, is_label, cache.path)
        if is_label and stream.labels and LabelMapOptions.from_block(block).path:
            labels = label_map(block)
            if not labels.fits(stream.labels, size):
                raise ConfigError(
                    f"{block.where('labelMappingFile')}: {labels.path}: not the labels of {cache.path}; expected the "
                    "same labels in the same order"
                )
            labels.adopt(stream.labels, size)
            labels.finish()
        chosen.append((stream, block.where(key)))
    return chosen
