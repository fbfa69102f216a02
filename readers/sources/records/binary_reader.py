"""BinaryReader: minibatches of the records of a binary cache, which a UCIFastReader with wfile=... has written.

The text that it was made from need not be there any more.  Blocks in the reader's block choose streams by their name,
and what they set (dim, labelDim, labelMappingFile) must be what the cache holds; without blocks all streams are given.
Source: CNTK book 3.1 (the role; the file's layout is ours, see record_cache).
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

# Known to blocks that were written for a UCIFastReader, and why it makes no difference here.
WITHOUT_EFFECT = {
    "verbosity": "the log is the program's",
    "traceLevel": "the log is the program's",
    "start": "the cache holds values, not columns of text",
    "sectionType": "the cache tells features and labels apart",
    "type": "the cache tells features and labels apart",
    "labelType": "the cache tells features and labels apart",
}
READER_NAMES = ("readerType", "file", "wfile", "allowMapCreation", "writeLabelMap", *ORDER_NAMES, *WITHOUT_EFFECT)
BLOCK_NAMES = ("dim", "labelDim", "labelMappingFile", *WITHOUT_EFFECT)


class BinaryReader(RecordReader):
    """Opens the cache that `file` (or `wfile`) of a reader's block names; arguments and faults as UCIFastReader's."""

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
    """(stream, file:line of its dimension) of what the blocks name, checked; all streams if there are no blocks."""
    known = {stream.name: stream for stream in cache.streams}
    if not blocks:
        return [(stream, config.where()) for stream in cache.streams]
    chosen: list[tuple[CachedStream, str]] = []
    for name, block in blocks.items():
        if name not in known:
            raise ConfigError(
                f"{block.where()}: {block.full_name()} is no stream of {cache.path}; expected {' or '.join(known)}"
                f"{did_you_mean(name, known)}"
            )
        stream = known[name]
        key, dim = ("dim", stream.dim) if stream.num_classes is None else ("labelDim", stream.num_classes)
        if block.has_own(key) and block.int(key) != dim:
            raise ConfigError(
                f"{block.where(key)}: {block.full_name(key)} is {block.int(key)}; expected {dim}, as {cache.path} holds"
            )
        if stream.num_classes is not None and stream.labels and block.text("labelMappingFile", ""):
            labels = label_map(block)
            if not labels.fits(stream.labels, stream.num_classes):
                raise ConfigError(
                    f"{block.where('labelMappingFile')}: {labels.path}: other labels than {cache.path} was made with; "
                    "expected the same in the same order"
                )
            labels.adopt(stream.labels, stream.num_classes)
            labels.finish()
        chosen.append((stream, block.where(key)))
    return chosen
