"""Options of a UCIFastReader block: its streams, and the maps from labels to classes.

Source: CNTK book 3.4.1, 3.5.10.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from readers.common.files import write_lines
from readers.config.config import Config
from readers.config.options import Options, located_faults, option
from readers.errors import ConfigError, FormatError
from readers.htk.frame_labels import read_state_list
from readers.minibatches.base import IDLE
from readers.sources.frames.streams import naming
from readers.sources.records.records import RecordOrder

# Options of CNTK without effect here, and the reason.
WITHOUT_EFFECT = {
    **IDLE,
    "prefetch": "records are in memory or mapped",
    "useMersenneTwisterRand": "randomSeed determines the order",
    "wsize": "a cache is as large as its records",
    "wrecords": "a cache is as large as its records",
    "windowSize": "a cache is mapped as a whole",
}
LABEL_ROLES = ("labelMappingFile", "labelDim", "labelType")
NO_PUNCTUATION = "is {!r}; expected a punctuation character other than + and -"


@dataclass(frozen=True, kw_only=True)
class UCIReaderOptions(RecordOrder):
    """The block of UCIFastReader."""

    file: Path | None = option(None, "text with a record on each line, of the blocks that name none", own=True)
    delimiters: str = option("", "characters that separate columns, besides blanks and tabs", cntk="customDelimiter")
    decimal_point: str = option(".", "character of decimal fractions", cntk="customDecimalPoint")
    one_line_per_file: bool = option(
        False, "one file per record, which is not supported", check=lambda given: not given, expected="false"
    )
    writer_type: Literal["BinaryReader", "BinaryWriter"] = option("BinaryWriter", "writer of the cache")
    cache: Path | None = option(None, "binary cache of the records, which is made if it is missing", cntk="wfile")

    def __post_init__(self) -> None:
        object.__setattr__(self, "delimiters", self.delimiters.replace("\\t", "\t"))
        object.__setattr__(self, "decimal_point", self.decimal_point or ".")
        super().__post_init__()
        for name in ("decimal_point", "delimiters"):
            text = getattr(self, name)
            plain = text.isascii() and not any(character.isalnum() or character in "+-\n" for character in text)
            self.require(name, plain, NO_PUNCTUATION.format(text))
        self.require("decimal_point", len(self.decimal_point) == 1, NO_PUNCTUATION.format(self.decimal_point))
        self.require(
            "delimiters",
            self.decimal_point not in self.delimiters,
            f"is {self.delimiters!r}, {{decimal_point}} {self.decimal_point!r}; expected two different characters",
        )


@dataclass(frozen=True, kw_only=True)
class UCIBlockOptions(Options):
    """A block of features."""

    file: Path = option(help="text with a record on each line")
    start: int = option(0, "first column, counted from 0", least=0)
    dim: int = option(help="number of columns", unit="columns", least=1)
    section_type: str = option("", "labels: the block is one of labels, otherwise its names tell", own=True)
    type: Literal["real"] = option("real", "what the columns contain", own=True)


@dataclass(frozen=True, kw_only=True)
class LabelKindOptions(Options):
    """What a block of labels contains."""

    kind: Literal["category", "regression", "none"] = option(
        "category", "classes, numbers, or nothing that is read", cntk="labelType"
    )


@dataclass(frozen=True, kw_only=True)
class UCILabelOptions(UCIBlockOptions):
    """A block of labels."""

    dim: int | None = option(  # type: ignore[assignment]  # not required here
        None, "number of columns, with labelType=regression; a class has one column", unit="columns", least=0
    )
    type: Literal["category", "regression", "none", "real"] = option(  # type: ignore[assignment]  # more than of features
        "real", "what the columns contain", own=True
    )


@dataclass(frozen=True, kw_only=True)
class LabelMapOptions(Options):
    """The classes of labels."""

    num_classes: int = option(0, "number of classes; 0: that of {path}", least=0, cntk="labelDim")
    path: Path | None = option(
        None, "the classes' names, one on each line; without it labels are class numbers", cntk="labelMappingFile"
    )
    allow_creation: bool = option(True, "make {path} from the data if it is missing", cntk="allowMapCreation")
    write: bool = option(True, "write the {path} that was made from the data", cntk="writeLabelMap")


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
        self.path = path
        self.grows = grows
        self.where = where
        self.is_written = is_written
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
            limit_text = f"below {limit}, which is labelDim ({self.where}), " if self.limit else ""
            raise FormatError(
                f"{where(record)}: label {text[:40]!r}; expected a class number {limit_text}because no "
                "labelMappingFile is set"
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
        if self.grows and self.is_written and self.path is not None:
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
    """A reader block with its streams."""

    block: UCIReaderOptions
    streams: list[UCIStream]
    warnings: list[str] = field(default_factory=list)

    @property
    def files(self) -> list[Path]:
        """All source files, each once."""
        return list(dict.fromkeys(stream.file for stream in self.streams))

    @classmethod
    def from_config(cls, config: Config, write: bool = False) -> "UCIOptions":
        """Read the options and mapping files, but no data.  write: blocks of labels are ignored."""
        options = UCIReaderOptions.from_block(config)
        blocks = list(config.blocks())
        warnings = list(map(str, config.unknown([*READER_KEYS, *WITHOUT_EFFECT, *(name for name, _ in blocks)])))
        streams: list[UCIStream] = []
        for name, block in blocks:
            stream = _open_block(name, block, write, warnings)
            if stream is not None:
                streams.append(stream)
        if not streams:
            raise ConfigError(
                f"{config.where()}: {config.full_name()} has no streams; expected a block with dim=... for features"
            )
        return cls(options, streams, warnings)


# Those of labels are defaults for all blocks of labels.
READER_KEYS = [key for kind in (UCIReaderOptions, LabelMapOptions, LabelKindOptions) for key in kind.option_keys()]


def _open_block(name: str, block: Config, write: bool, warnings: list[str]) -> UCIStream | None:
    """Return the stream of a block; None for labels that are not read."""
    section = block.text("sectionType", "").lower() if block.has_own("sectionType") else ""
    is_labels = section == "labels" or any(block.has_own(role) for role in LABEL_ROLES)
    if not is_labels and not block.has_own("dim"):
        raise ConfigError(
            f"{block.where()}: block {block.full_name()} has neither dim nor one of {', '.join(LABEL_ROLES)}; "
            "expected dim for features, or one of those for labels"
        )
    kinds = (UCILabelOptions, LabelKindOptions, LabelMapOptions) if is_labels else (UCIBlockOptions,)
    warnings.extend(map(str, block.unknown([key for kind in kinds for key in kind.option_keys()])))
    kind = LabelKindOptions.from_block(block).kind if is_labels else ""
    if kind == "none" or (is_labels and write):
        return None
    options = kinds[0].from_block(block)
    if not options.file.is_file():
        raise ConfigError(
            f"{block.where('file')}: {block.full_name('file')}: {options.file}: no such file; expected a readable file"
        )
    if kind != "category":
        with located_faults(block):
            options.require("dim", options.dim is not None, "is missing; expected the number of columns")
            options.require("dim", options.dim > 0, f"is {options.dim}; expected at least 1 column")
        return UCIStream(name, options.file, options.start, options.dim, block.where("dim"))
    with located_faults(block):
        expected = "1, the column of a label; labelType=regression allows several columns of numbers"
        options.require("dim", options.dim in (None, 0, 1), f"is {options.dim}; expected {expected}")
    return UCIStream(name, options.file, options.start, 1, block.where("labelDim"), label_map(block))


def label_map(block: Config) -> LabelMap:
    """Return the map that labelDim, labelMappingFile and allowMapCreation of a block describe."""
    options = LabelMapOptions.from_block(block)
    num_classes = options.num_classes
    path = options.path
    where = block.where("labelDim") if block.has("labelDim") else ""
    if path is None:
        return LabelMap(None, num_classes, [], False, where)
    if not path.exists():
        if options.allow_creation:
            return LabelMap(path, num_classes, [], True, where, options.write)
        raise ConfigError(
            f"{block.where('labelMappingFile')}: {block.full_name('labelMappingFile')}: {path}: no such file; expected "
            "the map that training wrote, or allowMapCreation=true to make it from these data"
        )
    with naming(block, "labelMappingFile"):
        names = read_state_list(path)
    if num_classes and len(names) > num_classes:
        raise ConfigError(f"{where}: labelDim is {num_classes}; expected at least {len(names)}, the labels of {path}")
    return LabelMap(path, num_classes, names, False, where)
