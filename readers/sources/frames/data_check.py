"""Check of the data that a reader block names: finds all faults instead of the first.

The code that reads files for training (streams.py, corpus.py) also parses them here; its errors are caught for each
utterance.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, TypeVar

from readers.common.faults import Findings
from readers.common.names import apart_by_extension
from readers.common.report import Progress
from readers.config.check import CheckedConfig
from readers.config.feature_record import FeatureRecord
from readers.config.syntax import Source
from readers.errors import ArgonautError, FormatError, ShapeError
from readers.htk.parameter_file import WAVEFORM, kind_name
from readers.htk.units import TICKS_PER_FRAME
from readers.language.vocabulary_record import VocabularyRecord
from readers.minibatches.base import Reader, open_reader, reader_class
from readers.minibatches.excerpts import ExcerptOptions
from readers.minibatches.masks import channels_of, check_channels
from readers.sources.frames.corpus import MIN_FRAMES, check_same_length, utterance_frames
from readers.sources.frames.frame_repetition import recorded
from readers.sources.frames.htk_mlf_options import WITHOUT_EFFECT, ReaderOptions
from readers.sources.frames.htk_mlf_reader import HTKMLFReader
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels, describe
from readers.sources.frames.supervision_blocks import SupervisionCheck, missing_supervision, open_supervision

Stream = TypeVar("Stream", CorpusFeatures, CorpusLabels)
Seen = set[tuple[str, int | None, int | None]]  # (file, first frame, last frame)


@dataclass
class ReaderSummary:
    """Figures of a reader and its data.

    Attributes
    ----------
    streams : dict of str to int
        Rows of each stream whose dimension is known.
    where : dict of str to str
        "file:line" of each stream.
    keys : list of str
        Keys of the utterances, in order.
    files : set of str
        Feature files.
    num_usable : int
        Number of usable utterances or records.
    num_frames : int
        Frames of the usable utterances.
    period : int
        Time between frames in 100 ns units.
    unit : str
        Unit of num_usable, "utterances" or "records".
    num_words_and_classes : (int, int) or None
        Size of the vocabulary of class labels, and number of its classes.
    features : dict of str to FeatureRecord
        How the features of each stream were computed, as far as it is known.
    vocabularies : dict of str to VocabularyRecord
        The words of each stream of text.
    ignores_feature_mismatch : bool
        Whether the features need not be those of the model.
    """

    streams: dict[str, int] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    num_usable: int = 0
    num_frames: int = 0
    period: int = 0
    unit: str = "utterances"
    num_words_and_classes: tuple[int, int] | None = None
    features: dict[str, FeatureRecord] = field(default_factory=dict)
    vocabularies: dict[str, VocabularyRecord] = field(default_factory=dict)
    ignores_feature_mismatch: bool = False


def check_reader(
    config: CheckedConfig, path: Sequence[str], write: bool, read: Seen | None, progress: Progress
) -> ReaderSummary | None:
    """Check the data of a reader block; faults are added to config.findings.

    Parameters
    ----------
    config : CheckedConfig
        The outermost block.
    path : sequence of str
        Names of the blocks that lead to the reader block.
    write : bool
        Whether the reader is for action write: only features are checked.
    read : set or None
        Read all features, to find infinite and NaN values, except those in the set, to which they are added.  None
        checks only headers.
    progress : callable
        Called as progress(done, total), in utterances.

    Returns
    -------
    ReaderSummary or None
        None if faults prevent a result.
    """

    def block() -> CheckedConfig:
        return open_block(config, path)

    kind = config.check(lambda: reader_class(block()))
    if kind is None or not config.is_sound(".".join((*path, "readerType"))):  # reported; it was read as the default
        return None
    if issubclass(kind, HTKMLFReader):
        return _HTKMLFCheck(config, path, write, read).run(progress)
    return config.check(lambda: _open(block(), write, read is not None, config.findings, progress))


def open_block(config: CheckedConfig, path: Sequence[str]) -> CheckedConfig:
    """Return the block at a path of names."""
    for name in path:
        config = config.block(name)
    return config


def _open(block: CheckedConfig, write: bool, read: bool, findings: Findings, progress: Progress) -> ReaderSummary:
    """Check a reader without a check of its own by opening it and, with `read`, reading all utterances."""
    for name, value in reader_class(block).check_settings.items():
        block.merge(Source.from_text(f"{name}={value}", "set by the check"))
    with open_reader(block, write=write, progress=progress) as reader:
        findings.extend((*reader.warnings, *_losses(block, reader)))
        period = getattr(reader, "period", 0)
        figures = ReaderSummary(reader.dims(), reader.places(), period=period, unit=reader.unit)
        figures.num_words_and_classes = getattr(reader, "num_words_and_classes", None)
        figures.features = reader.feature_records()
        figures.vocabularies = reader.vocabularies() if hasattr(reader, "vocabularies") else {}
        figures.ignores_feature_mismatch = reader.ignores_feature_mismatch
        if reader.unit == "records":  # opening the reader has read all of them
            figures.num_usable = figures.num_frames = reader.num_frames
            return figures
        figures.num_usable = reader.num_utterances
        figures.num_frames = 0 if write else reader.num_frames
    if read:
        with open_reader(block, write=True) as reader:
            lengths = [next(iter(utterance.matrices.values())).shape[1] for utterance in reader.utterances()]
            findings.extend(_losses(block, reader))
        if write:
            figures.num_usable = len(lengths)
            figures.num_frames = sum(lengths)
    return figures


def _losses(block: CheckedConfig, reader: Reader) -> Iterator[str]:
    """Yield a message for each utterance that a reader has skipped so far."""
    for name, reason in reader.skipped:
        yield f"{block.where()}: {name}: {reason}"


class _HTKMLFCheck:
    """Checks one HTKMLFReader block."""

    def __init__(self, config: CheckedConfig, path: Sequence[str], write: bool, read: Seen | None):
        self.config = config
        self.findings = config.findings
        self.path = path
        self.write = write
        self.read = read
        self.features: list[CorpusFeatures] = []
        self.labels: list[CorpusLabels] = []
        self.figures = ReaderSummary()
        self.supervision = SupervisionCheck(None, ExcerptOptions())

    def run(self, progress: Progress) -> ReaderSummary | None:
        options = self.config.check(lambda: ReaderOptions.from_block(self._block()))
        are_open = self._open_streams()
        if not self.features:
            return None
        if are_open:  # checks across streams
            self.config.check(lambda: HTKMLFReader.find_streams(self._block(), self.write))
        if options is not None and not self.write:
            with self.findings.catch():
                self.findings.extend(missing_supervision(self._block()))
                source = open_supervision(self._block(), options, self.features[0], self.labels, self.findings.add)
                self.supervision = SupervisionCheck(source, options.excerpts, self.read is not None)
        with self.findings.catch():
            check_same_length(self.features)
        self._check_names()
        self._load_labels()
        self._check_utterances(options.max_utterance if options else None, progress)
        streams: list[CorpusFeatures | CorpusLabels] = [*self.features, *self.labels]
        for stream in filter(self._is_sound, streams):
            self.figures.streams[stream.name] = stream.dim
            self.figures.where[stream.name] = stream.dim_where if isinstance(stream, CorpusLabels) else stream.where
        excerpts = options.excerpts if options else ExcerptOptions()
        records = {each.name: recorded(each.record, each.expand, excerpts) for each in self.features}
        self.figures.features = {name: record for name, record in records.items() if record is not None}
        self.figures.ignores_feature_mismatch = any(each.ignores_mismatch for each in self.features)
        self.figures.period = self.features[0].period
        return self.figures

    def _block(self, *names: str) -> CheckedConfig:
        return open_block(self.config, [*self.path, *names])

    def _open_streams(self) -> bool:
        """Open the streams one by one; return whether all of them could be opened."""
        block = self._block()
        names = [name for name, _ in block.blocks()]
        self._refuse_unknown(block, (*ReaderOptions.option_keys(), *WITHOUT_EFFECT, *names))
        are_open = True
        for name in names:
            inner = block.block(name)
            if inner.has_own("scpFile"):
                self._refuse_unknown(inner, CorpusFeatures.options.option_keys())
                are_open = self._open_stream(CorpusFeatures, name, self.features) and are_open
            elif any(map(inner.has_own, HTKMLFReader.roles)):  # find_streams reports other blocks
                self._refuse_unknown(inner, CorpusLabels.options.option_keys())
                are_open = (self.write or self._open_stream(CorpusLabels, name, self.labels)) and are_open
        return are_open

    def _open_stream(self, kind: type[Stream], name: str, streams: list[Stream]) -> bool:
        """Add the stream of a block to `streams`; return whether it could be opened without a fault."""
        stream = self.config.check(lambda: kind.from_config(name, self._block(name), self.findings.add))
        if stream is None:
            return False
        streams.append(stream)
        return self._is_sound(stream)

    def _refuse_unknown(self, block: CheckedConfig, known: Sequence[str]) -> None:
        self.findings.extend(map(str, block.unknown(known)))

    def _is_sound(self, stream: CorpusFeatures | CorpusLabels) -> bool:
        return self.config.is_sound(self._block(stream.name).full_name())

    # Names of utterances

    def _check_names(self) -> None:
        """Report repeated names, and lists in different order: line i of each is one utterance."""
        for stream in self.features:
            first: dict[str, Any] = {}
            for entry in stream.entries:
                earlier = first.setdefault(entry.key, entry)
                if earlier is not entry:
                    self.findings.add(
                        f"{entry.where}: {entry.key} is already at {earlier.where}; expected each utterance once"
                        + apart_by_extension(entry, earlier)
                    )
        keys = [entry.key for entry in self.features[0].entries]
        self.figures.keys = keys
        self.figures.files = {entry.path for stream in self.features for entry in stream.entries if entry.path}
        for stream in self.features[1:]:
            self._check_order(keys, stream)

    def _check_order(self, keys: list[str], stream: CorpusFeatures) -> None:
        """Report equal names in different order; names may differ between streams, for instance in their directory."""
        for name_of in (str, lambda key: PurePath(key).name):
            expected_names = [name_of(key) for key in keys]
            names = [name_of(entry.key) for entry in stream.entries]
            if Counter(expected_names) & Counter(names):
                break
        else:
            return
        for expected, name, entry, first in zip(expected_names, names, stream.entries, self.features[0].entries):
            if name != expected:
                self.findings.add(
                    f"{entry.where}: {name}; expected {expected} as at {first.where}: each line of both lists "
                    "must be the same utterance"
                )

    # Labels

    def _load_labels(self) -> None:
        keys = {entry.key for entry in self.features[0].entries}
        for stream in list(self.labels):
            if self._is_sound(stream):
                for warning in stream.warnings:
                    self.findings.add(warning)
            try:
                stream.load(keys, self.findings.add)
            except (ArgonautError, OSError) as fault:
                self.findings.add(fault)
                if not stream.mlf.faulty:
                    continue
        self._unknown: dict[tuple[str, str], tuple[str, int]] = {}

    def _check_labels(self, stream: CorpusLabels, line: int, length: int | None) -> bool:
        """Check the labels of one utterance.  length: its number of frames, None if unknown."""
        entry = self.features[0].entries[line]
        labels = stream.mlf.lookup(entry.logical)
        if labels is None:
            if stream.mlf or stream.mlf.patterns:  # otherwise `load` has reported the missing labels
                self.findings.add(f"{entry.where}: no labels in {stream.source}; expected an entry {entry.key!r}")
            return False
        where = stream.mlf.where(entry.logical)
        if where in stream.mlf.faulty:
            return False
        if not labels:
            self.findings.add(f"{where}: no labels; expected at least one")
            return False
        unknown = {label.name for label in labels} - set(stream.state_ids) if stream.state_ids is not None else set()
        for name in sorted(unknown):
            first, count = self._unknown.get((stream.name, name), (where, 0))
            self._unknown[stream.name, name] = first, count + 1
        if unknown:
            return False
        try:
            classes = stream.classes(entry, self.features[0].period or TICKS_PER_FRAME)
        except ArgonautError as fault:
            self.findings.add(fault)
            return False
        num_frames = 0 if classes is None else len(classes)
        if length not in (None, num_frames):
            self.findings.add(
                f"{where}: {num_frames} frames of labels in {stream.name}; expected {length}, as in the features "
                f"({entry.where})"
            )
        return num_frames == length

    # Features

    def _check_utterances(self, max_frames: int | None, progress: Progress) -> None:
        for stream in self.features:
            self._settle(stream)
        total = min(len(stream.entries) for stream in self.features)
        for line in range(len(self.features[0].entries)):
            sound = line < total and self._check_frames(line)
            length = None
            if sound:
                try:
                    length = utterance_frames(self.features, line, max_frames)
                    if length < MIN_FRAMES and not self.write:
                        where = self.features[0].entries[line].where
                        raise FormatError(f"{where}: {length} frame; expected at least {MIN_FRAMES}")
                except (ArgonautError, OSError) as fault:
                    self.findings.add(fault)
                    sound = False
            for label_stream in self.labels:
                sound = self._check_labels(label_stream, line, length) and sound
            sound = sound and length is not None and self._check_supervision(line, length)
            if sound:
                self.figures.num_usable += 1
                self.figures.num_frames += length or 0
            for stream in self.features:
                if line < len(stream.entries):
                    stream.forget_headers(but=stream.entries[line].path)
            progress(line + 1, len(self.features[0].entries), faults=len(self.findings))
        with self.findings.catch():
            self.supervision.agreement()
        for (stream_name, name), (first, count) in self._unknown.items():
            more = f" and in {count - 1} more utterances" if count > 1 else ""
            self.findings.add(
                f"{first}: state {name!r}, here{more}, is missing in the labelMappingFile of {stream_name}"
            )

    def _check_supervision(self, line: int, length: int) -> bool:
        """Check the lattice or graphs of one utterance, whose labels are sound."""
        entry = self.features[0].entries[line]
        period = self.features[0].period or TICKS_PER_FRAME
        try:
            classes = self.labels[0].classes(entry, period) if len(self.labels) == 1 else None
            self.supervision.utterance(entry.key, length, classes)
        except (ArgonautError, OSError) as fault:
            self.findings.add(f"{entry.where}: {describe(fault)}")
            return False
        return True

    def _settle(self, stream: CorpusFeatures) -> None:
        """Read headers until one is valid; the other files are compared with it."""
        for entry in stream.entries:
            try:
                header = stream.header(entry)
            except ShapeError as fault:
                if self._is_sound(stream):  # otherwise the dimension replaces one that is known to be wrong
                    self.findings.add(fault)
                return
            except (FormatError, OSError):
                continue
            if header.base_kind == WAVEFORM:
                self.findings.add(f"{entry.path}: kind {kind_name(header.kind)}; expected features")
            elif stream.masks is not None:
                with self.findings.catch():
                    check_channels(stream.masks, channels_of(stream.record, stream.native_dim))
            return

    def _check_frames(self, line: int) -> bool:
        """Check the files of one utterance."""
        sound = True
        for stream in self.features:
            entry = stream.entries[line]
            try:
                stream.num_frames(entry)
                if self.read is not None and (key := (entry.path, entry.start, entry.end)) not in self.read:
                    stream.read(entry)
                    self.read.add(key)
            except (ArgonautError, OSError) as fault:
                missing = not Path(entry.path).is_file()  # then the list is wrong
                self.findings.add(f"{entry.where}: {describe(fault)}; expected a file" if missing else fault)
                sound = False
        return sound
