"""Options of a UCIFastReader block: its streams, and the maps from labels to classes.

Source: CNTK book 3.4.1, 3.5.10.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from readers.common.files import write_lines
from readers.config.config import Config
from readers.config.options.names import at_least
from readers.errors import ConfigError, FormatError
from readers.htk.frame_labels import read_state_list
from readers.sources.frames.streams import naming
from readers.sources.records.records import ORDER_NAMES

# Options of CNTK without effect here, and the reason.
WITHOUT_EFFECT = {
    "verbosity": "the program has one log for everything",
    "traceLevel": "the program has one log for everything",
    "precision": "the network converts what it reads",
    "prefetch": "records are in memory or mapped",
    "useMersenneTwisterRand": "randomSeed determines the order",
    "wsize": "a cache is as large as its records",
    "wrecords": "a cache is as large as its records",
    "windowSize": "a cache is mapped as a whole",
}
READER_NAMES = (
    *("readerType", "file", "customDelimiter", "customDecimalPoint", "allowMapCreation", "writeLabelMap", *ORDER_NAMES),
    *("oneLinePerFile", "writerType", "wfile", *WITHOUT_EFFECT),
    *("labelMappingFile", "labelDim", "labelType"),  # defaults for all blocks of labels
)
BLOCK_NAMES = ("file", "dim", "start", "sectionType", "type")
LABEL_NAMES = (*BLOCK_NAMES, "labelDim", "labelType", "labelMappingFile")
LABEL_ROLES = ("labelMappingFile", "labelDim", "labelType")
CACHE_TYPES = ("BinaryReader", "BinaryWriter")


class LabelMap:
    """The class of each label: the number of its line in the mapping file.

    path: the mapping file; None if the labels are class numbers.
    num_classes: labelDim; 0 for the number of labels in the file.
    grows: whether new labels get the next number; then, if is_written, `finish` writes the file.
    """

    def __init__(
        self,
        path: Path | None,
        num_classes: int,
        names: list[str],
        grows: bool,
        where: str,
        is_written: bool = True,
    ):
        self.path, self.grows, self.where, self.is_written = path, grows, where, is_written
        self.limit = num_classes
        self._ids = {name: number for number, name in enumerate(names)}
        self._highest = -1

    @property
    def names(self) -> list[str]:
        """The labels in the order of their classes; empty if the labels are class numbers."""
        return list(self._ids)

    @property
    def num_classes(self) -> int:
        """Number of rows of the label matrix."""
        return self.limit or max(len(self._ids), self._highest + 1)

    def classes(self, labels: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
        """Return the class of each of some records, (n,) int32.

        labels: (n,) bytes.  where(record): "file:line" of a record.
        Raises FormatError for a label that is not in the map, or is not a class number.
        """
        texts, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        ids = np.empty(len(texts), np.int32)
        for index in np.argsort(first):  # new labels are numbered in the order of their first occurrence
            text = texts[index].decode()
            ids[index] = (
                self._number(text, where, int(first[index]))
                if self.path is None
                else self._known(text, where, int(first[index]))
            )
        return ids[inverse.ravel()]

    def _known(self, text: str, where: Callable[[int], str], record: int) -> int:
        if text in self._ids:
            return self._ids[text]
        if not self.grows:
            raise FormatError(f"{where(record)}: label {text[:40]!r} is not in {self.path}; expected one of its lines")
        if self.limit and len(self._ids) >= self.limit:
            raise FormatError(
                f"{where(record)}: label {text[:40]!r} is number {self.limit + 1}; expected at most {self.limit} "
                f"labels, which is labelDim ({self.where})"
            )
        self._ids[text] = len(self._ids)
        return self._ids[text]

    def _number(self, text: str, where: Callable[[int], str], record: int) -> int:
        limit = self.limit or 1 << 24
        if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) < limit):
            below = f"below {limit}, which is labelDim ({self.where}), " if self.limit else ""
            raise FormatError(
                f"{where(record)}: label {text[:40]!r}; expected a class number {below}because no labelMappingFile is "
                "set"
            )
        self._highest = max(self._highest, int(text))
        return int(text)

    def fits(self, names: Sequence[str], num_classes: int) -> bool:
        """Whether data that were read earlier with these labels would be the same if they were read now."""
        if self.path is None:
            return not names and num_classes <= (self.limit or num_classes)
        if self.grows:
            return 0 < len(names) <= (self.limit or len(names))
        return self.names == list(names)

    def adopt(self, names: Sequence[str], num_classes: int) -> None:
        """Use the labels of data that were read earlier; they must fit."""
        self._ids = {name: number for number, name in enumerate(names)}
        self._highest = num_classes - 1

    def finish(self) -> None:
        """Write the mapping file if it is new."""
        if self.grows and self.is_written:
            write_lines(self.path, self._ids)
            self.grows = False


@dataclass(eq=False)
class UCIStream:
    """A block of features or labels: dim columns of numbers from column `start`, or the label in that column.

    dim_where: file:line of the dimension.  labels: None for numbers.
    """

    name: str
    file: Path
    start: int
    dim: int
    dim_where: str
    labels: LabelMap | None = None

    @property
    def num_classes(self) -> int | None:
        """Rows of one-hot columns, known after the data were read; None for numbers."""
        return None if self.labels is None else self.labels.num_classes

    def finish(self) -> None:
        if self.labels is not None:
            self.labels.finish()


@dataclass(eq=False)
class UCIOptions:
    """Options of a reader block.  cache: path of the binary cache or None; the others as in UCILayout."""

    streams: list[UCIStream]
    delimiters: str
    decimal_point: str
    cache: Path | None
    warnings: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[Path]:
        """All source files, each once."""
        return list(dict.fromkeys(stream.file for stream in self.streams))

    @classmethod
    def from_config(cls, config: Config, write: bool = False) -> "UCIOptions":
        """Read the options and mapping files, but no data.  write: blocks of labels are ignored."""
        if config.bool("oneLinePerFile", False):
            raise ConfigError(
                f"{config.where('oneLinePerFile')}: {config.full_name('oneLinePerFile')} is true; expected false; one "
                "file per record is not supported, join the files"
            )
        delimiters, decimal_point = _characters(config)
        blocks = list(config.blocks())
        warnings = [str(unknown) for unknown in config.unknown([*READER_NAMES, *(name for name, _ in blocks)])]
        streams: list[UCIStream] = []
        for name, block in blocks:
            stream = _open_block(name, block, write, warnings)
            if stream is not None:
                streams.append(stream)
        if not streams:
            raise ConfigError(
                f"{config.where()}: {config.full_name()} has no streams; expected a block with dim=... for features"
            )
        return cls(streams, delimiters, decimal_point, _cache_path(config), warnings)


def _open_block(name: str, block: Config, write: bool, warnings: list[str]) -> UCIStream | None:
    """Return the stream of a block; None for labels that are not read."""
    section = block.text("sectionType", "").lower() if block.has_own("sectionType") else ""
    is_labels = section == "labels" or any(block.has_own(one) for one in LABEL_ROLES)
    if not is_labels and not block.has_own("dim"):
        raise ConfigError(
            f"{block.where()}: block {block.full_name()} has neither dim nor one of {', '.join(LABEL_ROLES)}; "
            "expected dim for features, or one of those for labels"
        )
    warnings.extend(map(str, block.unknown(LABEL_NAMES if is_labels else BLOCK_NAMES)))
    if block.has_own("type"):
        block.choice("type", ["real"] if not is_labels else ["category", "regression", "none", "real"])
    kind = block.choice("labelType", ["category", "regression", "none"], "category") if is_labels else ""
    if kind == "none" or (is_labels and write):
        return None
    start = at_least(block, "start", block.int("start", "0"), 0)
    file = block.path("file")
    if not file.is_file():
        raise ConfigError(
            f"{block.where('file')}: {block.full_name('file')}: {file}: no such file; expected a readable file"
        )
    if kind == "category":
        dim = at_least(block, "dim", block.int("dim", "1"), 0)
        if dim > 1:
            raise ConfigError(
                f"{block.where('dim')}: {block.full_name('dim')} is {dim}; expected 1, the column of a label; "
                "labelType=regression allows several columns of numbers"
            )
        return UCIStream(name, file, start, 1, block.where("labelDim"), label_map(block))
    return UCIStream(name, file, start, at_least(block, "dim", block.int("dim"), 1), block.where("dim"))


def label_map(block: Config) -> LabelMap:
    """Return the map that labelDim, labelMappingFile and allowMapCreation of a block describe."""
    num_classes = at_least(block, "labelDim", block.int("labelDim", "0"), 0)
    where = block.where("labelDim") if block.has("labelDim") else ""
    if not block.text("labelMappingFile", ""):
        return LabelMap(None, num_classes, [], False, where)
    path = block.path("labelMappingFile")
    if not path.exists():
        if block.bool("allowMapCreation", True):
            return LabelMap(path, num_classes, [], True, where, block.bool("writeLabelMap", True))
        raise ConfigError(
            f"{block.where('labelMappingFile')}: {block.full_name('labelMappingFile')}: {path}: no such file; expected "
            "the map that training wrote, or allowMapCreation=true to make it from these data"
        )
    with naming(block, "labelMappingFile"):
        names = read_state_list(path)
    if num_classes and len(names) > num_classes:
        raise ConfigError(f"{where}: labelDim is {num_classes}; expected at least {len(names)}, the labels of {path}")
    return LabelMap(path, num_classes, names, False, where)


def _cache_path(config: Config) -> Path | None:
    if config.has("writerType"):
        config.choice("writerType", CACHE_TYPES)
    return config.path("wfile") if config.text("wfile", "") else None


def _characters(config: Config) -> tuple[str, str]:
    """Return (customDelimiter, customDecimalPoint)."""
    point = config.text("customDecimalPoint", "") or "."
    delimiters = config.text("customDelimiter", "").replace("\\t", "\t")
    for name, text in (("customDecimalPoint", point), ("customDelimiter", delimiters)):
        if (
            not text.isascii()
            or any(one.isalnum() or one in "+-\n" for one in text)
            or (text is point and len(point) > 1)
        ):
            raise ConfigError(
                f"{config.where(name)}: {config.full_name(name)} is {text!r}; "
                "expected a punctuation character other than + and -"
            )
    if point in delimiters:
        raise ConfigError(
            f"{config.where('customDelimiter')}: {config.full_name('customDelimiter')} is {delimiters!r}, the decimal "
            f"point {point!r}; expected two different characters"
        )
    return delimiters, point
