"""The streams of an HTKMLFReader block: features (SCP) or labels (MLF).

A block with scpFile is a feature stream, one with mlfFile or mlfFileList a label stream (CNTK book 3.4.2).
"""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from readers.common.faults import OnFault
from readers.common.names import key_of
from readers.common.text import read_rows
from readers.config.config import Config
from readers.config.feature_record import IGNORE_HINT, FeatureRecord
from readers.config.side_files import SideFiles
from readers.errors import ArgonautError, ConfigError, FormatError, ShapeError
from readers.htk.frame_labels import frame_bounds, frame_labels, read_state_list
from readers.htk.mlf import MLF, read_mlf, wanted_keys
from readers.htk.parameter_file import HAS_C, HAS_K, HTKHeader, kind_name, read_htk, read_htk_header
from readers.htk.scp import ScpEntry, read_list, read_scp
from readers.kaldi.ark import ArkEntry
from readers.minibatches.indicators import one_hot
from readers.minibatches.masks import MaskOptions
from readers.sources.frames.stream_options import FeatureOptions, HTKFeatureOptions, LabelOptions

Entry = ScpEntry | ArkEntry
MOST_HEADERS = 1 << 14  # in memory


@dataclass(eq=False)
class CorpusFeatures:
    """Features of all utterances of an SCP.

    Attributes
    ----------
    name : str
    dim : int
        Rows delivered, with the context window.
    entries : list of ScpEntry
    scp, where : str
        The file that lists the utterances, and "file:line" of the dimension in the configuration.
    context : (int, int) or None
        Frames of context as configured, None if not configured.
    frames_per_vector : int
        Frames of the utterance for which each frame of a file is repeated; 0: all of them.
    left, right : int
        Frames of context.
    native_dim : int
        Values per frame in the files.
    period : int
        Time between frames in 100 ns units.
    record : FeatureRecord or None
        How the features were computed, as far as it is known; None before the first header was read.
    ignores_mismatch : bool
        Whether files may have records that differ from each other, or from that of the model.
    masks : MaskOptions or None
        Random masks of training.
    """

    options: ClassVar[type[FeatureOptions]] = HTKFeatureOptions
    name: str
    dim: int
    entries: Sequence[Entry]
    scp: str
    where: str
    context: tuple[int, int] | None
    frames_per_vector: int = 1
    left: int = 0
    right: int = 0
    native_dim: int = 0
    period: int = 0
    record: FeatureRecord | None = None
    ignores_mismatch: bool = False
    masks: MaskOptions | None = None
    _compared: FeatureRecord | None = None  # the last one that was compared with the first
    _side_files: SideFiles = field(default_factory=SideFiles)
    _model: tuple[str, HTKHeader] | None = None
    _headers: dict[str, HTKHeader | str] = field(default_factory=dict)

    @classmethod
    def from_config(cls, name: str, config: Config, on_fault: OnFault | None = None) -> Self:
        """Read the SCP, with on_fault as in read_scp; no feature file is read."""
        options = cls.options.from_block(config)
        scp, entries = cls._read_entries(options, config, on_fault)
        if not entries:
            raise FormatError(f"{scp}: no entries; expected a feature file on each line")
        stream = cls(name, options.dim, entries, scp, config.where("dim"), options.context, options.repeats)
        stream.ignores_mismatch = options.ignores_mismatch
        stream.masks = getattr(options, "masks", None)
        return stream

    @property
    def expand(self) -> bool:
        """Whether the frames of files are repeated."""
        return self.frames_per_vector != 1

    # Methods that streams of other formats, which have other entries and options, override: the list of utterances, the
    # header and the frames of a file.

    @staticmethod
    def _read_entries(options: Any, config: Config, on_fault: OnFault | None) -> tuple[str, Sequence[Entry]]:
        """Return (file that lists the utterances, utterances)."""
        with naming(config, "scpFile"):
            return str(options.scp_file), read_scp(options.scp_file, prefix=options.prefix, on_fault=on_fault)

    def _read_header(self, entry: Any) -> HTKHeader:
        return read_htk_header(entry.path)

    def _read_record(self, entry: Any, header: HTKHeader) -> FeatureRecord:
        return self._side_files.record(entry.path, kind_name(header.kind), header.period)

    def _read_frames(self, entry: Any) -> np.ndarray:
        """Return (T, dim) float32 in C order."""
        return read_htk(entry.path, entry.start or 0, entry.end).frames.T

    def arrange(self, first: Self) -> None:
        """Sort the utterances as in the first stream, if the format has keys; else line i of both is the same one."""

    def header(self, entry: Entry) -> HTKHeader:
        """Return the header of an entry's file, after comparing it with the first valid header.

        The first header determines the context window.  Raises FormatError or OSError for a file that cannot be read,
        and ShapeError for one that does not match the others, which is not an error of a single utterance.
        """
        header_or_fault = self._headers.get(entry.place)
        if header_or_fault is None:
            try:
                header_or_fault = self._read_header(entry)
            except (ArgonautError, OSError) as fault:
                header_or_fault = describe(fault)
            if not isinstance(header_or_fault, str):
                self._compare(entry, header_or_fault)
            self._headers = self._headers if len(self._headers) < MOST_HEADERS else {}
            self._headers[entry.place] = header_or_fault
        if isinstance(header_or_fault, str):
            raise FormatError(header_or_fault)
        return header_or_fault

    def forget_headers(self, but: str | None = None) -> None:
        """Release the cached headers, except that of one file (an archive) that may be needed again."""
        self._headers = {path: header for path, header in self._headers.items() if path == but}

    def num_frames(self, entry: Entry) -> int:
        """Return the number of frames of an utterance, without repetition.

        Raises FormatError for a range beyond the end of its file, and the errors of `header`.
        """
        total = self.header(entry).num_frames
        if entry.end is not None and entry.end >= total:
            raise FormatError(
                f"{entry.where}: frames [{entry.start},{entry.end}] of {entry.place}, which has {total}; "
                f"expected a last frame of at most {total - 1}"
            )
        return total if entry.num_frames is None else entry.num_frames

    def read(self, entry: Entry, num_frames: int | None = None) -> np.ndarray:
        """Return the frames of an utterance, (T, native_dim) float32 in C order, without context.

        num_frames: required value of T (an expanded stream is repeated up to it); None for no requirement.
        `header` must have been called before.
        Raises FormatError for a file that does not match its header, and for values that are not finite.
        """
        frames = self._read_frames(entry)
        if self.expand and num_frames is not None:
            frames = np.repeat(frames, self.frames_per_vector or num_frames, axis=0)[:num_frames]
        if frames.shape[1] != self.native_dim or num_frames not in (None, len(frames)):
            raise FormatError(
                f"{entry.place}: {len(frames)} frames of {frames.shape[1]} values; "
                f"expected {num_frames} of {self.native_dim}; the file has changed since its header was read"
            )
        if not np.isfinite(frames).all():
            bad = int(np.flatnonzero(~np.isfinite(frames).all(axis=1))[0])
            raise FormatError(
                f"{entry.place}: frame {bad + (entry.start or 0)} has a value that is infinite or NaN; "
                "expected finite features; leave the utterance out or compute it again"
            )
        return frames

    def _compare(self, entry: Entry, header: HTKHeader) -> None:
        if self._model is None:
            self._model = (entry.place, header)
            self.native_dim = header.dim
            self.period = header.period
            self.record = record = self._read_record(entry, header)
            self._settle_context(entry.place)
            self.record = replace(record, context=(self.left, self.right))
            return
        path, model = self._model
        if _likeness(header) != _likeness(model):
            raise ShapeError(
                f"{entry.place}: {_describe_header(header)}; expected {_describe_header(model)} as in {path}, "
                f"because both are listed in {self.scp}"
            )
        record = self._read_record(entry, header)
        if record is self._compared:
            return
        assert self.record is not None  # else _read_record has failed for the first entry, and again above
        first = replace(self.record, rates=record.rates)  # audio of several rates is common
        fault = record.mismatch(entry.place, first, f"as in {path}, listed too in {self.scp}")
        if fault and not self.ignores_mismatch:
            raise ShapeError(f"{fault}; {IGNORE_HINT}")
        self.record = self.record.with_rates(record.rates)
        self._compared = record

    def _settle_context(self, place: str) -> None:
        native = self.native_dim
        mismatch = f"{self.where}: dim of {self.name} is {self.dim}, but {place} has {native} values per frame"
        if self.context is not None:
            self.left, self.right = self.context
            if self.dim != native:
                raise ShapeError(f"{mismatch}; expected the same, because contextWindow is set")
            self.dim *= 1 + self.left + self.right
            return
        width, remainder = divmod(self.dim, native)
        if remainder or width % 2 == 0:
            raise ShapeError(f"{mismatch}; expected {native} times an odd number of frames of context")
        if self.expand and width > 1:
            raise ShapeError(f"{self.where}: dim of {self.name} is {self.dim}; expected {native}, one frame repeated")
        self.left = self.right = width // 2


@dataclass(eq=False)
class CorpusLabels:
    """Class labels of all utterances.

    Attributes
    ----------
    name : str
    num_classes : int
        `labelDim` of the configuration.
    dim : int
        Rows delivered; num_classes for one-hot columns.
    mlf_paths : list of str
    where, dim_where : str
        "file:line" of the label files, and of the dimension, in the configuration.
    state_ids : dict of str to int, or None
        Class of each label; None if the MLF contains class numbers.
    targets : (dim, num_classes) float32, or None
        The column to deliver for each class; None for one-hot columns.
    marks_begins : bool
        Whether the first frame of each label has a class of its own, `num_classes` higher, and a 2 in its column.
    mlf : MLF
    """

    options: ClassVar[type[LabelOptions]] = LabelOptions
    name: str
    num_classes: int
    dim: int
    mlf_paths: list[str]
    where: str
    dim_where: str
    state_ids: dict[str, int] | None
    targets: np.ndarray | None = None
    marks_begins: bool = False
    mlf: MLF = field(default_factory=MLF)

    @classmethod
    def from_config(cls, name: str, config: Config, on_fault: OnFault | None = None) -> Self:
        """Read the mapping files, with on_fault as in read_state_list; the MLF is not read."""
        options = cls.options.from_block(config)
        source, paths = cls._find_paths(options, config)
        states = None
        if options.state_list is not None:
            with naming(config, "labelMappingFile"):
                states = read_state_list(options.state_list, on_fault)
        state_ids = None if states is None else {state: number for number, state in enumerate(states)}
        size = options.num_classes
        where = config.where(options.declaration("num_classes").set_by(config))
        stream = cls(name, size, size, paths, config.where(source), where, state_ids)
        stream.marks_begins = options.marks_begins
        if options.targets is not None and options.target_dim is not None:
            stream.dim = options.target_dim
            stream.dim_where = config.where("targetDim")
            with naming(config, "labelToTargetMappingFile"):
                stream.targets = stream._read_targets(options.targets)
        return stream

    @staticmethod
    def _find_paths(options: Any, config: Config) -> tuple[str, list[str]]:
        """Return (name of the setting, label files)."""
        if options.mlf_file is not None:
            return "mlfFile", [str(options.mlf_file)]
        with naming(config, "mlfFileList"):
            return "mlfFileList", [path.replace("\\", "/") for path in read_list(options.mlf_file_list)]

    @property
    def warnings(self) -> list[str]:
        """Warnings about unusual settings: a state list whose length differs from labelDim, possibly truncated."""
        if self.state_ids is None or len(self.state_ids) == self.num_classes:
            return []
        return [
            f"{self.dim_where}: labelDim of {self.name} is {self.num_classes}; expected {len(self.state_ids)}, the "
            "number of names in its labelMappingFile"
        ]

    def load(self, keys: Collection[str], on_fault: OnFault | None = None) -> None:
        """Read the MLFs for these utterances, with on_fault as in read_mlf.

        Raises FormatError if they contain labels for none of the utterances.
        """
        utterances = wanted_keys(keys)  # once for all files
        for path in self.mlf_paths:
            try:
                read_mlf(path, utterances, into=self.mlf, on_fault=on_fault)
            except OSError as fault:
                raise ConfigError(f"{self.where}: {describe(fault)}; expected a master label file") from fault
        if not self.mlf and not self.mlf.patterns:
            raise FormatError(
                f"{self.source}: no labels for any of {len(set(keys))} utterances; expected the names of the SCP, such "
                f"as {min(keys)!r}{self._example()}"
            )

    def _example(self) -> str:
        """Return the first name in the MLF, for a message: often only the directories of the names differ."""
        with Path(self.mlf_paths[0]).open(encoding="utf-8", errors="replace") as file:
            name = next((line.strip() for line in file if line.startswith('"')), None)
        return f", found names such as {key_of(name)!r}" if name else ""

    def forget_mlf(self) -> None:
        """Release the memory of the labels as text."""
        self.mlf = MLF()

    @property
    def source(self) -> str:
        """The MLF files, for messages."""
        return ", ".join(self.mlf_paths)

    def classes(self, entry: Entry, period: int) -> np.ndarray | None:
        """Return the class of every frame of an utterance, (T,) int32; None if the MLF has no entry or an empty one.

        period: 100 ns units per frame.  Raises FormatError for labels with gaps, unknown names, or classes beyond
        labelDim; these are errors of the state list, not of one utterance.
        """
        labels, where = self.mlf.entry(entry.logical) or (None, "")
        if not labels:
            return None
        classes = frame_labels(labels, self.state_ids, where, period)
        if classes.max() >= self.num_classes:
            raise FormatError(
                f"{where}: class {classes.max()}; expected less than the {self.num_classes} of labelDim in {self.name}"
            )
        if self.marks_begins:
            first, end = frame_bounds(labels, where, period).T
            classes[first[end > first]] += self.num_classes
        return classes

    def in_columns(self, classes: np.ndarray, frames: np.ndarray) -> np.ndarray:
        """Return the classes (N,) of columns for those of the frames of an utterance; no marked beginning is lost.

        frames: (N,) the frame of each column, ascending.  A label begins in the first column whose frame is not before
        its first one or, where another label begins there, in the next; at the end in an earlier one.
        """
        columns = classes[frames]
        columns[columns >= self.num_classes] -= self.num_classes
        begins = np.flatnonzero(classes >= self.num_classes)
        before = np.arange(len(begins))
        places = np.maximum.accumulate(np.searchsorted(frames, begins) - before)
        columns[np.minimum(places, len(frames) - len(begins)) + before] = classes[begins]
        return columns

    def matrix(self, classes: np.ndarray) -> np.ndarray:
        """Return the matrix (dim, N) float32, Fortran order, for N classes."""
        if self.marks_begins:
            begins = classes >= self.num_classes
            return one_hot(classes - begins * self.num_classes, self.dim) * np.where(
                begins, np.float32(2), np.float32(1)
            )
        return one_hot(classes, self.dim) if self.targets is None else self.targets.T[classes].T

    def _read_targets(self, path: Path) -> np.ndarray:
        """Read labelToTargetMappingFile: lines `label bits` in class order; bits has targetDim zeros and ones."""
        names = list(self.state_ids or ())
        columns: list[list[str]] = []
        for where, fields in read_rows(path):
            if len(fields) != 2 or len(fields[1]) != self.dim or set(fields[1]) - set("01"):
                raise FormatError(f"{where}: {' '.join(fields)!r}; expected a label and {self.dim} bits")
            if names[len(columns) : len(columns) + 1] not in ([], [fields[0]]):
                raise FormatError(f"{where}: label {fields[0]!r}; expected {names[len(columns)]!r}, as mapped")
            columns.append(list(fields[1]))
        if len(columns) != self.num_classes:
            raise FormatError(f"{path}: {len(columns)} labels; expected one for each of {self.num_classes} classes")
        return np.array(columns, np.float32).T


@contextlib.contextmanager
def naming(config: Config, name: str) -> Iterator[None]:
    """Convert an error in opening the file that `name` names into a ConfigError."""
    try:
        yield
    except OSError as fault:
        raise ConfigError(
            f"{config.where(name)}: {config.full_name(name)}: {describe(fault)}; expected a readable file"
        ) from fault


def describe(fault: Exception) -> str:
    """Describe an error on one line."""
    if isinstance(fault, OSError) and fault.strerror:
        return f"{fault.filename}: {fault.strerror}" if fault.filename else fault.strerror
    return str(fault)


def _likeness(header: HTKHeader) -> tuple[int, int, int]:
    """Return the properties that must be equal in all files of a stream; the compression may differ."""
    return header.kind & ~(HAS_C | HAS_K), header.dim, header.period


def _describe_header(header: HTKHeader) -> str:
    kind, dim, period = _likeness(header)
    return f"kind {kind_name(kind)}, {dim} values, period {period}"
