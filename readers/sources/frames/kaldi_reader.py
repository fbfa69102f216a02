"""KaldiReader: minibatches of frames from Kaldi archives of features and alignments.

    reader=[
      readerType=KaldiReader
      features=[ scpFile=feats.scp; dim=440; contextWindow=1 ]     # or arkFile=feats.ark
      labels=[ aliFile=pdf.1.gz:pdf.2.gz; labelDim=2000 ]          # or mlfFile=..., or aliScpFile=pdf.scp
    ]

Streams are matched by key, so their files may be in any order.  Context windows, randomisation and the handling of
faulty utterances are those of HTKMLFReader.  Alignments contain classes (pdf ids, from ali-to-pdf), not transition ids;
in text archives they may be names that labelMappingFile lists.  The frame shift is taken to be 10 ms.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from readers.common.faults import OnFault
from readers.config.config import Config
from readers.config.feature_record import FeatureRecord
from readers.errors import ConfigError, FormatError
from readers.htk.parameter_file import USER, HTKHeader
from readers.htk.units import TICKS_PER_FRAME
from readers.kaldi.alignments import parse_tokens, read_alignment, read_alignments
from readers.kaldi.ark import (
    ArkEntry,
    read_ark_scp,
    read_matrix,
    read_matrix_header,
    scan_ark,
)
from readers.sources.frames.frame_reader import FrameReader
from readers.sources.frames.stream_options import AlignmentOptions, FeatureOptions, KaldiFeatureOptions, LabelOptions
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels, Entry, describe, naming


class KaldiStream(CorpusFeatures):
    """Features of all utterances of a script file or archive."""

    options: ClassVar[type[FeatureOptions]] = KaldiFeatureOptions

    @staticmethod
    def _read_entries(options: Any, config: Config, on_fault: OnFault | None) -> tuple[str, Sequence[ArkEntry]]:
        if options.scp_file is None:
            with naming(config, "arkFile"):
                return str(options.ark_file), scan_ark(options.ark_file)
        with naming(config, "scpFile"):
            return str(options.scp_file), prefixed(read_ark_scp(options.scp_file), options.prefix)

    def _read_header(self, entry: ArkEntry) -> HTKHeader:
        if not entry.path:
            raise FormatError(f"{entry.source_file}: no features of {entry.name}; expected an entry with that key")
        header = read_matrix_header(entry.path, entry.offset)
        return HTKHeader(header.num_frames, TICKS_PER_FRAME, 4 * header.dim, USER, data_offset=header.data)

    def _read_record(self, entry: ArkEntry, header: HTKHeader) -> FeatureRecord:
        return FeatureRecord()

    def _read_frames(self, entry: ArkEntry) -> np.ndarray:
        return read_matrix(entry.path, entry.offset, entry.start or 0, entry.end)

    def arrange(self, first: CorpusFeatures) -> None:
        by_key = {entry.key: entry for entry in self.entries}
        keys = [entry.key for entry in first.entries]
        self.entries = [by_key.get(key) or ArkEntry(key, "", source_file=self.scp) for key in keys]


def prefixed(entries: list[ArkEntry], prefix: str) -> list[ArkEntry]:
    """Return entries of archives in another directory; an empty prefix changes nothing."""
    prefix = prefix.replace("\\", "/").rstrip("/")
    return [entry._replace(path=f"{prefix}/{entry.path}") for entry in entries] if prefix else entries


@dataclass(eq=False)
class AlignmentStream(CorpusLabels):
    """Classes of all utterances from archives of integer vectors.  from_scp: the file is a script file."""

    options: ClassVar[type[LabelOptions]] = AlignmentOptions
    from_scp: bool = False
    _classes: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def from_config(cls, name: str, config: Config, on_fault: OnFault | None = None) -> Self:
        stream = super().from_config(name, config, on_fault)
        stream.from_scp = config.has_own("aliScpFile")
        return stream

    @staticmethod
    def _find_paths(options: Any, config: Config) -> tuple[str, list[str]]:
        key = "aliScpFile" if options.scripts else "aliFile"
        return key, [path.replace("\\", "/") for path in options.scripts or options.archives]

    def load(self, keys: Collection[str], on_fault: OnFault | None = None) -> None:
        """Read the alignments of these utterances.  Raises FormatError if there are none."""
        for path in self.mlf_paths:
            try:
                self._load_file(path, set(keys))
            except OSError as fault:
                raise ConfigError(f"{self.where}: {describe(fault)}; expected alignments") from fault
        if not self._classes:
            raise FormatError(
                f"{self.source}: no labels for any of {len(keys)} utterances; expected the keys of the features, such "
                f"as {min(keys)!r}"
            )

    def _load_file(self, path: str, keys: set[str]) -> None:
        alignments: Iterator[tuple[str, np.ndarray | list[str]]]
        if self.from_scp:
            alignments = ((entry.key, read_alignment(entry.path, entry.offset)) for entry in read_ark_scp(path)
                     if entry.key in keys)  # fmt: skip
        else:
            alignments = read_alignments(path)
        for key, classes in alignments:
            if key not in keys:
                continue
            if key in self._classes:
                raise FormatError(f"{path}: key {key!r} is repeated; expected one alignment per utterance")
            self._classes[key] = self._numbers(classes, f"{path}: {key}")

    def _numbers(self, classes: np.ndarray | list[str], where: str) -> np.ndarray:
        """Return the classes (T,) int32 of what an archive contains. Raises FormatError."""
        return parse_tokens(classes, self.state_ids, where) if isinstance(classes, list) else classes

    def forget_mlf(self) -> None:
        self._classes = {}

    def classes(self, entry: Entry, period: int) -> np.ndarray | None:
        classes = self._classes.get(entry.key)
        if classes is not None and len(classes) and not 0 <= classes.min() <= classes.max() < self.num_classes:
            raise FormatError(
                f"{self.source}: {entry.key}: classes {classes.min()} to {classes.max()}; expected 0 to "
                f"{self.num_classes - 1}, by labelDim of {self.name}; ali-to-pdf converts transition ids to classes"
            )
        return classes


class KaldiReader(FrameReader):
    """Reads frames and labels from Kaldi archives.

    See FrameReader for parameters, attributes and errors, and the module's description for an example.
    """

    roles = {  # noqa: RUF012
        **dict.fromkeys(("scpFile", "arkFile"), KaldiStream),
        **dict.fromkeys(("aliFile", "aliScpFile"), AlignmentStream),
        **dict.fromkeys(("mlfFile", "mlfFileList"), CorpusLabels),
    }
    warns_of_labels = False
