"""The usable utterances of a corpus (line i of every SCP with its labels), and those that are skipped, with reasons.

All headers are checked before training begins, so that errors appear immediately and not hours later.
Source: CNTK book 3.4.2.  As in CNTK, some errors skip one utterance and others end the run; unlike in CNTK, a short
utterance or a range beyond the end of its file only skips that utterance.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np

from readers.common.report import Progress
from readers.errors import FormatError
from readers.sources.frames.frame_repetition import vectors_fault
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels, Entry, describe

MIN_FRAMES = 2


@dataclass(eq=False)
class Corpus:
    """The usable utterances.

    lines: (U,) int64, SCP line of each utterance, from 0.
    num_frames: (U,) int64.
    classes[stream]: (N,) class of each frame in each label stream, utterance by utterance.
    skipped: (utterance, reason) of the others.
    """

    lines: np.ndarray
    num_frames: np.ndarray
    classes: list[np.ndarray]
    skipped: list[tuple[str, str]] = field(default_factory=list)

    @property
    def total_frames(self) -> int:
        return int(self.num_frames.sum())

    @property
    def first_frame(self) -> np.ndarray:
        """(U + 1,) int64: the first frame of each utterance, and N."""
        return np.insert(np.cumsum(self.num_frames), 0, 0)

    def keep(self, usable: np.ndarray) -> "Corpus":
        """Return the corpus restricted to the utterances of the mask (U,)."""
        frames = np.repeat(usable, self.num_frames)
        classes = [stream[frames] for stream in self.classes]
        return Corpus(self.lines[usable], self.num_frames[usable], classes, self.skipped)


def check_same_length(features: Sequence[CorpusFeatures]) -> None:
    """Raise FormatError unless all SCPs have the same number of lines: line i of each is the same utterance."""
    first = features[0]
    for stream in features[1:]:
        if len(stream.entries) != len(first.entries):
            raise FormatError(
                f"{stream.scp}: {len(stream.entries)} entries; expected {len(first.entries)}, as many as in {first.scp}"
            )


def utterance_frames(features: Sequence[CorpusFeatures], line: int, max_frames: int | None = None) -> int:
    """Return the number of frames of the utterance on an SCP line.

    Raises FormatError or OSError with the reason if the utterance cannot be used.
    """
    lengths = {stream.name: stream.num_frames(stream.entries[line]) for stream in features if not stream.expand}
    if len(set(lengths.values())) > 1:
        lengths_of = ", ".join(f"{length} in {name}" for name, length in lengths.items())
        raise FormatError(f"{features[0].entries[line].where}: frames {lengths_of}; expected the same in all streams")
    num_frames = next(iter(lengths.values()))
    for stream in features:
        entry = stream.entries[line]
        fault = vectors_fault(stream.num_frames(entry), stream.frames_per_vector, num_frames) if stream.expand else None
        if fault:
            raise FormatError(f"{entry.place}: {fault}")
    if max_frames is not None and num_frames > max_frames:
        raise FormatError(
            f"{features[0].entries[line].where}: {num_frames} frames; expected at most {max_frames}; "
            "raise maxUtteranceFrames to use it"
        )
    return num_frames


def build_corpus(
    features: Sequence[CorpusFeatures],
    labels: Sequence[CorpusLabels],
    max_frames: int | None,
    progress: Progress | None = None,
    subsampling: int = 1,
) -> Corpus:
    """Check every utterance and return the usable ones.

    max_frames: longer utterances are skipped; None for no limit.  subsampling: frames of a column; an utterance with
    more labels than columns is skipped if the beginning of each label is marked.
    Raises FormatError or ShapeError for errors that do not concern a single utterance: SCPs of different lengths, files
    that do not match each other, states missing in the state list, classes beyond labelDim, labels with gaps.
    """
    check_same_length(features)
    entries = features[0].entries
    for label_stream in labels:
        label_stream.load(UtteranceKeys(entries, np.arange(len(entries))))
    corpus = _Collector(labels, subsampling)
    for line, entry in enumerate(entries):
        try:
            length = utterance_frames(features, line, max_frames)
            if length < MIN_FRAMES:
                raise FormatError(f"{entry.where}: {length} frame; expected at least {MIN_FRAMES}")
        except (FormatError, OSError) as fault:
            corpus.skip(entry.key, describe(fault))
        else:
            # Outside of the try block: wrong labels, unlike missing ones, end the run.
            corpus.add(line, entry, length, features[0].period)
        if progress is not None:
            progress(line + 1, len(entries))
    for stream in features:
        stream.forget_headers()
    for label_stream in labels:
        label_stream.forget_mlf()
    return corpus.finish()


def refuse_too_few(corpus: Corpus, features: CorpusFeatures, max_skipped: float) -> None:
    """Raise FormatError if too many utterances are skipped: then the lists are wrong, not the utterances."""
    total = len(features.entries)
    num_bad = len(corpus.skipped)
    if num_bad <= max_skipped * total and len(corpus.lines):
        return
    reasons = "; ".join(f"{key}: {reason}" for key, reason in corpus.skipped[:3])
    raise FormatError(
        f"{features.scp}: {num_bad} of {total} utterances cannot be used; expected at most {max_skipped:.0%} "
        f"(maxSkippedFraction); the first are {reasons}"
    )


class LabelsDoNotFit(FormatError):
    """An utterance has no labels, or not one for each frame; other faults concern all utterances."""


def classes_of(stream: CorpusLabels, entry: Entry, length: int, period: int) -> np.ndarray:
    """Return the class of every frame of an utterance with this number of frames.

    Raises LabelsDoNotFit, and FormatError as `CorpusLabels.classes`.
    """
    classes = stream.classes(entry, period)
    if classes is None:
        raise LabelsDoNotFit(f"{entry.where}: no labels in {stream.source}; expected an entry {entry.key!r}")
    if len(classes) != length:
        raise LabelsDoNotFit(
            f"{entry.where}: {len(classes)} frames of labels in {stream.name}; expected {length}, as in the features"
        )
    return classes


def require_columns(stream: CorpusLabels, entry: Entry, classes: np.ndarray, num_columns: int) -> None:
    """Raise LabelsDoNotFit for more labels than columns, if each has to begin in a column of its own."""
    if not stream.marks_begins:
        return
    num_labels = int((classes >= stream.num_classes).sum())
    if num_labels > num_columns:
        raise LabelsDoNotFit(
            f"{entry.where}: {num_labels} labels in {stream.name}; expected at most {num_columns}, the columns with "
            "frameSubsampling"
        )


def settle(stream: CorpusFeatures) -> None:
    """Read headers until one is valid, which determines the dimensions of the stream."""
    first_fault: Exception | None = None
    for entry in stream.entries:
        try:
            stream.header(entry)
            return
        except (FormatError, OSError) as fault:
            first_fault = first_fault or fault
    raise FormatError(
        f"{stream.scp}: none of {len(stream.entries)} files can be read; first error: {first_fault}"
    ) from first_fault


class UtteranceKeys(Sequence[str]):
    """The keys of the entries on some lines of an SCP, made when they are asked for.

    lines: (U,) int64, from 0.
    """

    def __init__(self, entries: Sequence[Entry], lines: np.ndarray):
        self._entries = entries
        self._lines = lines

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._entries[line].key for line in self._lines[index].tolist()]
        return self._entries[int(self._lines[index])].key

    def __len__(self) -> int:
        return len(self._lines)


class _Column:
    """An array that grows at its end; its memory is moved, not copied, where the system can do that."""

    def __init__(self, dtype: type):
        self._values: np.ndarray = np.empty(1 << 16, dtype)
        self._size = 0

    def append(self, values: np.ndarray) -> None:
        end = self._size + len(values)
        if end > len(self._values):
            self._values.resize(max(end, len(self._values) * 5 // 4), refcheck=False)
        self._values[self._size : end] = values
        self._size = end

    def finish(self) -> np.ndarray:
        """Return the values; nothing can be appended afterwards."""
        self._values.resize(self._size, refcheck=False)
        return self._values


class _Collector:
    """Collects utterances for a Corpus."""

    def __init__(self, labels: Sequence[CorpusLabels], subsampling: int):
        self._labels = labels
        self._subsampling = subsampling
        self._lines = array("q")
        self._lengths = array("q")
        self._classes = [
            _Column(np.uint16 if stream.num_classes << stream.marks_begins <= 65536 else np.int32) for stream in labels
        ]
        self._skipped: list[tuple[str, str]] = []

    def skip(self, key: str, reason: str) -> None:
        self._skipped.append((key, reason))

    def add(self, line: int, entry: Entry, length: int, period: int) -> None:
        """Add the utterance, or skip it if its labels are missing or of another length."""
        try:
            by_stream = [classes_of(stream, entry, length, period) for stream in self._labels]
            for stream, classes in zip(self._labels, by_stream):
                require_columns(stream, entry, classes, -(-length // self._subsampling))
        except LabelsDoNotFit as fault:
            self.skip(entry.key, str(fault))
            return
        self._lines.append(line)
        self._lengths.append(length)
        for part, classes in zip(self._classes, by_stream):
            part.append(classes)

    def finish(self) -> Corpus:
        lines, lengths = (np.frombuffer(column, np.int64) for column in (self._lines, self._lengths))
        return Corpus(lines, lengths, [column.finish() for column in self._classes], self._skipped)
