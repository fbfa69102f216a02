"""What the block of a UCIFastReader says: its streams, and the maps from labels to classes.

Source: CNTK book 3.4.1, 3.5.10.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from readers.common.files import write_lines
from readers.config.config import Config
from readers.config.option_check import at_least
from readers.errors import ConfigError, FormatError
from readers.htk.frame_labels import read_state_list
from readers.sources.frames.streams import naming
from readers.sources.records.records import ORDER_NAMES

# Known to configurations of the tool, and why it makes no difference here.
WITHOUT_EFFECT = {
    "verbosity": "the log is the program's",
    "traceLevel": "the log is the program's",
    "prefetch": "records are in memory or mapped",
    "useMersenneTwisterRand": "the order follows from randomSeed",
    "wsize": "a cache is as large as its records",
    "wrecords": "a cache is as large as its records",
    "windowSize": "a cache is mapped as a whole",
}
READER_NAMES = (
    *("readerType", "file", "customDelimiter", "customDecimalPoint", "allowMapCreation", "writeLabelMap", *ORDER_NAMES),
    *("oneLinePerFile", "writerType", "wfile", *WITHOUT_EFFECT),
    *("labelMappingFile", "labelDim", "labelType"),  # for all blocks of labels
)
BLOCK_NAMES = ("file", "dim", "start", "sectionType", "type")
LABEL_NAMES = (*BLOCK_NAMES, "labelDim", "labelType", "labelMappingFile")
LABEL_ROLES = ("labelMappingFile", "labelDim", "labelType")
CACHE_TYPES = ("BinaryReader", "BinaryWriter")


class LabelMap:
    """The class of each label: the number of its line in the mapping file.

    path: the mapping file, None when the labels are the class numbers themselves; num_classes: labelDim, 0 for as many
    as there are labels; grows: new labels get the next number, and, if is_written, `finish` writes the file.
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
        """The labels in the order of their classes; none when they are the numbers themselves."""
        return list(self._ids)

    @property
    def num_classes(self) -> int:
        """Rows of the label matrix."""
        return self.limit or max(len(self._ids), self._highest + 1)

    def classes(self, labels: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
        """The class of each of some records, (n,) int32.

        labels (n,) bytes; where(record): file:line.  Raises FormatError for a label that is not in the map, or no
        class number.
        """
        texts, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
        ids = np.empty(len(texts), np.int32)
        for index in np.argsort(first):  # new labels are numbered as they appear
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
                f"labels, as labelDim ({self.where}) says"
            )
        self._ids[text] = len(self._ids)
        return self._ids[text]

    def _number(self, text: str, where: Callable[[int], str], record: int) -> int:
        limit = self.limit or 1 << 24
        if not (text.isascii() and text.isdigit() and len(text) < 9 and int(text) < limit):
            below = f"below {limit}, as labelDim ({self.where}) says, " if self.limit else ""
            raise FormatError(
                f"{where(record)}: label {text[:40]!r}; expected a class number {below}since no labelMappingFile is set"
            )
        self._highest = max(self._highest, int(text))
        return int(text)

    def fits(self, names: Sequence[str], num_classes: int) -> bool:
        """Whether data read before, with these labels, are what they would be if they were read now."""
        if self.path is None:
            return not names and num_classes <= (self.limit or num_classes)
        if self.grows:
            return 0 < len(names) <= (self.limit or len(names))
        return self.names == list(names)

    def adopt(self, names: Sequence[str], num_classes: int) -> None:
        """Take the labels of data read before, which must fit."""
        self._ids = {name: number for number, name in enumerate(names)}
        self._highest = num_classes - 1

    def finish(self) -> None:
        """Write the mapping file if it is new."""
        if self.grows and self.is_written:
            write_lines(self.path, self._ids)
            self.grows = False


@dataclass(eq=False)
class UCIStream:
    """One block of features or labels: dim columns of numbers from column `start`, or the labels of that column.

    dim_where: file:line of the dimension; labels: None for numbers.
    """

    name: str
    file: Path
    start: int
    dim: int
    dim_where: str
    labels: LabelMap | None = None

    @property
    def num_classes(self) -> int | None:
        """Rows of one-hot columns, known when the data have been read; None for numbers."""
        return None if self.labels is None else self.labels.num_classes

    def finish(self) -> None:
        if self.labels is not None:
            self.labels.finish()


@dataclass(eq=False)
class UCIOptions:
    """cache: the binary cache, None without; the others as in UCILayout."""

    streams: list[UCIStream]
    delimiters: str
    decimal_point: str
    cache: Path | None
    warnings: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[Path]:
        """Every file once."""
        return list(dict.fromkeys(stream.file for stream in self.streams))

    @classmethod
    def from_config(cls, config: Config, write: bool = False) -> "UCIOptions":
        """Reads mapping files, no data.  write: blocks of labels are passed over."""
        if config.bool("oneLinePerFile", False):
            raise ConfigError(
                f"{config.where('oneLinePerFile')}: {config.full_name('oneLinePerFile')} is true; expected false; "
                "a file for each record is not supported, join them"
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
    """The stream of a block; None for labels that are not read."""
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
                "labelType=regression takes several columns of numbers"
            )
        return UCIStream(name, file, start, 1, block.where("labelDim"), label_map(block))
    return UCIStream(name, file, start, at_least(block, "dim", block.int("dim"), 1), block.where("dim"))


def label_map(block: Config) -> LabelMap:
    """The map that labelDim, labelMappingFile and allowMapCreation of a block ask for."""
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
    """(customDelimiter, customDecimalPoint)."""
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
                "expected a sign of punctuation, not a letter, digit or + or -"
            )
    if point in delimiters:
        raise ConfigError(
            f"{config.where('customDelimiter')}: {config.full_name('customDelimiter')} is {delimiters!r}, the decimal "
            f"point {point!r}; expected two different characters"
        )
    return delimiters, point
