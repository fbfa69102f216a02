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

import numpy as np

from readers.common.faults import OnFault
from readers.common.text import read_lines, read_text
from readers.config.config import Config
from readers.errors import ConfigError, FormatError
from readers.kaldi.ark import ArkEntry, read_ark_scp, scan_ark
from readers.kaldi.specifiers import Specifier, parse_specifier
from readers.sources.frames.frame_reader import FrameReader
from readers.sources.frames.htk_mlf_options import READER_NAMES, check_streams, refuse_block, supervision_role
from readers.sources.frames.kaldi_reader import AlignmentStream, KaldiStream
from readers.sources.frames.streams import FEATURE_NAMES, LABEL_NAMES, CorpusFeatures, CorpusLabels, naming

KALDI2_READER_NAMES = (*READER_NAMES, "maxUtteranceLength", "targets_delay")
KALDI2_FEATURE_NAMES = (*FEATURE_NAMES, "rx", "featureTransform")
ROLE_NAMES = ("scpFile", "mlfFile")
NO_TRANSFORM = "NO_FEATURE_TRANSFORM"
SEQUENCE_NAMES = ("seqTrainCriterion", "denlats", "alignments")


def _specifier(config: Config, key: str) -> Specifier:
    """Return what the file says that `key` names. Raises ConfigError and FormatError."""
    path = config.path(key)
    with naming(config, key):
        return parse_specifier(read_text(path, exact=True), str(path))


class Kaldi2Stream(KaldiStream):
    """Features of the utterances in a list."""

    @staticmethod
    def _read_entries(config: Config, on_fault: OnFault | None) -> tuple[str, list[ArkEntry]]:
        if config.text("featureTransform", NO_TRANSFORM) != NO_TRANSFORM:
            raise ConfigError(
                f"{config.where('featureTransform')}: featureTransform is {config.text('featureTransform')}; expected "
                f"{NO_TRANSFORM}, and features that nnet-forward of Kaldi has transformed"
            )
        if not config.has_own("rx"):
            raise ConfigError(f"{config.where()}: {config.full_name()} has no rx; expected one beside scpFile")
        found = _specifier(config, "rx")
        with naming(config, "rx"):
            entries = read_ark_scp(found.paths[0]) if found.kinds == ("scp",) else scan_ark(found.paths[0])
        prefix = config.text("prefixPathInSCP", "").replace("\\", "/").rstrip("/")
        known = {one.key: one._replace(path=f"{prefix}/{one.path}") if prefix else one for one in entries}
        counts = config.path("scpFile")
        with naming(config, "scpFile"):
            keys = [line.split(None, 1)[0] for line in read_lines(counts) if line.strip()]
        repeated = {key for key in keys if keys.count(key) > 1} if len(set(keys)) < len(keys) else set()
        if repeated:
            raise FormatError(f"{counts}: {min(repeated)!r} is repeated; expected each utterance once")
        return str(counts), [known.get(key) or ArkEntry(key, "", source_file=found.paths[0]) for key in keys]


class Kaldi2Labels(AlignmentStream):
    """Classes of all utterances, in a script file or archive; `delay`: the number of frames by which they are late."""

    delay: int = 0

    @classmethod
    def from_config(cls, name: str, config: Config, on_fault: OnFault | None = None) -> "Kaldi2Labels":
        stream = super().from_config(name, config, on_fault)
        stream.from_scp = _specifier(config, "mlfFile").kinds == ("scp",)
        stream.delay = config.int("targets_delay", 0)
        if stream.delay < 0:
            raise ConfigError(f"{config.where('targets_delay')}: targets_delay is {stream.delay}; expected 0 or more")
        return stream

    @staticmethod
    def _find_paths(config: Config) -> tuple[str, list[str]]:
        return "mlfFile", [_specifier(config, "mlfFile").paths[0]]

    def _numbers(self, classes: np.ndarray | list[str], where: str) -> np.ndarray:
        if self.state_ids is not None and not isinstance(classes, list):  # the names in labelMappingFile are pdf ids
            pdfs, frames = np.unique(classes, return_inverse=True)
            found = super()._numbers([str(pdf) for pdf in pdfs], where)[frames]
        else:
            found = super()._numbers(classes, where)
        late = min(self.delay, len(found))
        return np.concatenate([np.repeat(found[:1], late), found[: len(found) - late]])


class Kaldi2Reader(FrameReader):
    """Reads frames and labels as CNTK's Kaldi2Reader does.

    See FrameReader for parameters, attributes and errors, and the module's description for an example. Lattices of
    Kaldi and commands in place of files are refused.
    """

    @staticmethod
    def find_streams(config: Config, write: bool) -> tuple[list[CorpusFeatures], list[CorpusLabels], list[str]]:
        for name in SEQUENCE_NAMES:
            if config.has_own(name):
                raise ConfigError(
                    f"{config.where(name)}: {config.full_name(name)} needs Kaldi's lattices and transition model; "
                    "expected lattices=[denLatTocFile=...], made by argonaut denominator, and a criterion "
                    "SequenceWithSoftmax(..., sequenceCriterion=smbr)"
                )
        features: list[CorpusFeatures] = []
        labels: list[CorpusLabels] = []
        blocks = list(config.blocks())
        warnings = [str(one) for one in config.unknown([*KALDI2_READER_NAMES, *(name for name, _ in blocks)])]
        for name, block in blocks:
            if block.has_own("scpFile"):
                features.append(Kaldi2Stream.from_config(name, block))
                warnings.extend(map(str, block.unknown(KALDI2_FEATURE_NAMES)))
            elif supervision_role(block) is not None:
                continue
            elif not block.has_own("mlfFile"):
                refuse_block(block, ROLE_NAMES)
            elif not write:
                labels.append(Kaldi2Labels.from_config(name, block))
                warnings.extend([*labels[-1].warnings, *map(str, block.unknown(LABEL_NAMES))])
        check_streams(config, features, labels, write)
        for stream in features[1:]:
            stream.arrange([entry.key for entry in features[0].entries])
        return features, labels, warnings
