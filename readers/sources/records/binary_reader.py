"""BinaryReader: minibatches from a binary cache of records, which a UCIFastReader with wfile=... has written.

The original text is not needed.  Blocks in the reader block select streams by name, and their settings (dim, labelDim,
labelMappingFile) must match the cache; without blocks all streams are read.
Source: CNTK book 3.1; the layout of the file is our own, see record_cache.py.
"""

from collections.abc import Mapping
from typing import ClassVar

from readers.common.report import Progress
from readers.config.config import Config
from readers.config.values import did_you_mean
from readers.errors import ConfigError
from readers.sources.frames.streams import naming
from readers.sources.records.record_cache import CachedStream, RecordCache, open_cache
from readers.sources.records.records import ORDER_NAMES, RecordOrder, RecordReader, RecordStream
from readers.sources.records.uci_options import label_map

# Options of a UCIFastReader block without effect here, and the reason.
WITHOUT_EFFECT = {
    "verbosity": "the program has one log for everything",
    "traceLevel": "the program has one log for everything",
    "precision": "the network converts what it reads",
    "start": "the cache contains values, not columns of text",
    "sectionType": "the cache distinguishes features and labels",
    "type": "the cache distinguishes features and labels",
    "labelType": "the cache distinguishes features and labels",
}
READER_NAMES = ("readerType", "file", "wfile", "allowMapCreation", "writeLabelMap", *ORDER_NAMES, *WITHOUT_EFFECT)
BLOCK_NAMES = ("dim", "labelDim", "labelMappingFile", *WITHOUT_EFFECT)


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
        key = "file" if config.has("file") or not config.has("wfile") else "wfile"
        path = config.path(key)
        with naming(config, key):
            cache = open_cache(path)
        blocks = dict(config.blocks())
        warnings = [str(unknown) for unknown in config.unknown([*READER_NAMES, *blocks])]
        for block in blocks.values():
            warnings.extend(map(str, block.unknown(BLOCK_NAMES)))
        streams = [
            RecordStream(one.name, cache.columns[one.name], one.num_classes, where, str(path))
            for one, where in _chosen(cache, blocks, config)
            if one.num_classes is None or not write
        ]
        super().__init__(streams, RecordOrder.from_config(config), rng_seed, path.stem)
        self.warnings = warnings


def _chosen(cache: RecordCache, blocks: dict[str, Config], config: Config) -> list[tuple[CachedStream, str]]:
    """Return (stream, file:line of its dimension) for the streams that the blocks select, or for all without blocks."""
    known = {stream.name: stream for stream in cache.streams}
    if not blocks:
        return [(stream, config.where()) for stream in cache.streams]
    chosen: list[tuple[CachedStream, str]] = []
    for name, block in blocks.items():
        if name not in known:
            raise ConfigError(
                f"{block.where()}: {block.full_name()} is not a stream of {cache.path}; expected {' or '.join(known)}"
                f"{did_you_mean(name, known)}"
            )
        stream = known[name]
        key, dim = ("dim", stream.dim) if stream.num_classes is None else ("labelDim", stream.num_classes)
        if block.has_own(key) and block.int(key) != dim:
            raise ConfigError(
                f"{block.where(key)}: {block.full_name(key)} is {block.int(key)}; expected {dim}, as in {cache.path}"
            )
        if stream.num_classes is not None and stream.labels and block.text("labelMappingFile", ""):
            labels = label_map(block)
            if not labels.fits(stream.labels, stream.num_classes):
                raise ConfigError(
                    f"{block.where('labelMappingFile')}: {labels.path}: not the labels of {cache.path}; expected the "
                    "same labels in the same order"
                )
            labels.adopt(stream.labels, stream.num_classes)
            labels.finish()
        chosen.append((stream, block.where(key)))
    return chosen
