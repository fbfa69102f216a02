"""Kaldi2Reader of CNTK: a KaldiReader whose blocks name files that contain the names of archives.

    reader=[
      readerType=Kaldi2Reader
      features=[ scpFile=train.counts; rx=train.feats; dim=440 ]          # train.feats: scp:data/train/feats.scp
      labels=[ mlfFile=train.labels; labelDim=2000; labelMappingFile=pdf.list ]      # train.labels: ark:pdf.ark
    ]

scpFile lists the utterances to use, one on each line (feat-to-len writes such a list). rx is a file that contains the
name of the archive or script file of their features, as Kaldi's programs take it, and mlfFile that of alignments
(ali-to-pdf) or posteriors with one class per frame (ali-to-post). labelMappingFile has the pdf id of each class.
Source: HTKMLFReader.cpp and htkfeatio.h of CNTK's Kaldi2Reader, 2016.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from readers.common.faults import OnFault
from readers.common.text import read_lines, read_text
from readers.config.config import Config
from readers.config.options import option
from readers.errors import ConfigError, FormatError
from readers.kaldi.ark import ArkEntry, read_ark_scp, scan_ark
from readers.kaldi.specifiers import Specifier, parse_specifier
from readers.sources.frames.frame_reader import FrameReader
from readers.sources.frames.htk_mlf_options import ReaderOptions
from readers.sources.frames.kaldi_reader import AlignmentStream, KaldiStream, prefixed
from readers.sources.frames.stream_options import FeatureOptions, Kaldi2FeatureOptions, Kaldi2LabelOptions, LabelOptions
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels, naming

SEQUENCE_NAMES = ("seqTrainCriterion", "denlats", "alignments")


@dataclass(frozen=True, kw_only=True)
class Kaldi2Options(ReaderOptions):
    """The block of Kaldi2Reader."""

    max_utterance_length: int | None = option(
        None, "longest utterance with frameMode=false, in place of {longest}", unit="frames", least=1, own=True
    )

    @property
    def max_utterance(self) -> int | None:
        length = None if self.frame_mode else self.max_utterance_length
        return super().max_utterance if length is None else length


def _specifier(config: Config, key: str, path: Path | None) -> Specifier:
    """Return what the file says that `key` names. Raises ConfigError and FormatError."""
    assert path is not None
    with naming(config, key):
        return parse_specifier(read_text(path, exact=True), str(path))


class Kaldi2Stream(KaldiStream):
    """Features of the utterances in a list."""

    options: ClassVar[type[FeatureOptions]] = Kaldi2FeatureOptions

    @staticmethod
    def _read_entries(options: Any, config: Config, on_fault: OnFault | None) -> tuple[str, Sequence[ArkEntry]]:
        specifier = _specifier(config, "rx", options.rx)
        with naming(config, "rx"):
            entries = read_ark_scp(specifier.paths[0]) if specifier.kinds == ("scp",) else scan_ark(specifier.paths[0])
        by_key = {entry.key: entry for entry in prefixed(entries, options.prefix)}
        counts = options.scp_file
        with naming(config, "scpFile"):
            keys = [line.split(None, 1)[0] for line in read_lines(counts) if line.strip()]
        repeated = {key for key in keys if keys.count(key) > 1} if len(set(keys)) < len(keys) else set()
        if repeated:
            raise FormatError(f"{counts}: {min(repeated)!r} is repeated; expected each utterance once")
        return str(counts), [by_key.get(key) or ArkEntry(key, "", source_file=specifier.paths[0]) for key in keys]


class Kaldi2Labels(AlignmentStream):
    """Classes of all utterances, in a script file or archive; `delay`: the number of frames by which they are late."""

    options: ClassVar[type[LabelOptions]] = Kaldi2LabelOptions
    delay: int = 0

    @classmethod
    def from_config(cls, name: str, config: Config, on_fault: OnFault | None = None) -> Self:
        stream = super().from_config(name, config, on_fault)
        options = Kaldi2LabelOptions.from_block(config)
        stream.from_scp = _specifier(config, "mlfFile", options.mlf_file).kinds == ("scp",)
        stream.delay = options.delay
        return stream

    @staticmethod
    def _find_paths(options: Any, config: Config) -> tuple[str, list[str]]:
        return "mlfFile", [_specifier(config, "mlfFile", options.mlf_file).paths[0]]

    def _numbers(self, classes: np.ndarray | list[str], where: str) -> np.ndarray:
        if self.state_ids is not None and not isinstance(classes, list):  # the names in labelMappingFile are pdf ids
            pdfs, frames = np.unique(classes, return_inverse=True)
            numbers = super()._numbers([str(pdf) for pdf in pdfs], where)[frames]
        else:
            numbers = super()._numbers(classes, where)
        late = min(self.delay, len(numbers))
        return np.concatenate([np.repeat(numbers[:1], late), numbers[: len(numbers) - late]])


class Kaldi2Reader(FrameReader):
    """Reads frames and labels as CNTK's Kaldi2Reader does.

    See FrameReader for parameters, attributes and errors, and the module's description for an example. Lattices of
    Kaldi and commands in place of files are refused.
    """

    options_class = Kaldi2Options
    roles = {"scpFile": Kaldi2Stream, "mlfFile": Kaldi2Labels}  # noqa: RUF012
    warns_of_labels = False

    @classmethod
    def find_streams(
        cls, config: Config, write: bool = False
    ) -> tuple[list[CorpusFeatures], list[CorpusLabels], list[str]]:
        for name in SEQUENCE_NAMES:
            if config.has_own(name):
                raise ConfigError(
                    f"{config.where(name)}: {config.full_name(name)} needs Kaldi's lattices and transition model; "
                    "expected lattices=[denLatTocFile=...], made by argonaut denominator, and a criterion "
                    "SequenceWithSoftmax(..., sequenceCriterion=smbr)"
                )
        return super().find_streams(config, write)

    @classmethod
    def option_names(cls) -> list[str]:
        return [*super().option_names(), Kaldi2LabelOptions.declaration("delay").key]
