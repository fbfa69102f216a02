"""Options of an HTKMLFReader block, and its blocks of features and labels.

Source: CNTK book 3.4.2; lookAheadFrames, specAugment and excerpts are extensions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from readers.config.config import Config
from readers.config.feature_record import MismatchOptions
from readers.config.options import Options, given, option
from readers.config.values import did_you_mean
from readers.errors import ConfigError
from readers.minibatches.base import IDLE
from readers.minibatches.excerpts import ExcerptOptions
from readers.minibatches.randomisation import VisitOptions
from readers.sources.frames.streams import CorpusFeatures, CorpusLabels

MAX_UTTERANCE_FRAMES = 65535  # CNTK's limit, only for blockRandomize
# Options of CNTK without effect here, and the reason.
WITHOUT_EFFECT = {
    **IDLE,
    "useMersenneTwisterRand": "randomSeed determines the order",
    "unigram": "a language model of states is used only by sequence training",
}


@dataclass(frozen=True, kw_only=True)
class LatticeOptions(Options):
    """A block of lattices."""

    denominators: Path = option(
        help="table of contents of the lattices, or a pattern for several", cntk="denLatTocFile", own=True
    )
    numerators: Path | None = option(
        None, "table of contents of lattices of the references, or a pattern", cntk="numLatTocFile", own=True
    )
    prefix: str = option("", "directory before the paths of the archives in the tables", cntk="prefixPathInToc")


@dataclass(frozen=True, kw_only=True)
class HmmOptions(Options):
    """A block of HMMs, for lattices in HTK's format."""

    phones: Path = option(help="file of the HMMs: each with its matrix and its senones", cntk="phoneFile", own=True)
    transitions: Path | None = option(
        None, "file of the matrices of transition probabilities", cntk="transPFile", own=True
    )


@dataclass(frozen=True, kw_only=True)
class ChainOptions(Options):
    """A block for lattice-free criteria."""

    denominator: Path = option(help="denominator graph, as argonaut chain writes it", own=True)
    numerators: Path | None = option(None, "numerator graphs of the utterances", own=True)


SUPERVISIONS: dict[str, type[Options]] = {  # role -> options of such a block
    "denLatTocFile": LatticeOptions,
    "phoneFile": HmmOptions,
    "denominator": ChainOptions,
}


@dataclass(frozen=True, kw_only=True)
class ReaderOptions(MismatchOptions, VisitOptions):
    """The block of a reader of frames."""

    method: Literal["blockRandomize", "rollingWindow"] = option(
        "blockRandomize",
        "read the feature files (blockRandomize), or first copy all of them into one page file (rollingWindow)",
        cntk="readMethod",
    )
    frame_mode: bool = option(True, "visit independent frames in random order, not whole utterances")
    truncated: bool = option(False, "cut utterances into pieces that continue from one minibatch to the next")
    parallel: Sequence[int] = option(
        (1,), "number of utterances side by side, for each epoch", least=1, cntk="nbruttsineachrecurrentiter"
    )
    similar_lengths: bool = option(
        False, "fill a minibatch with whole utterances of similar length, so that few of its columns are gaps"
    )
    page_directory: Path | None = option(
        None, "directory of the page file (default: that of temporary files)", cntk="pageFilePath"
    )
    read_ahead: bool = option(True, "load the next data in the background")
    ahead: int = option(
        0, "frames that follow each piece as context, with {truncated}", unit="frames", least=0, cntk="lookAheadFrames"
    )
    longest: int | None = option(
        None,
        f"longest utterance; longer ones are skipped (default: {MAX_UTTERANCE_FRAMES} with readMethod=blockRandomize, "
        "else any)",
        unit="frames",
        least=1,
        cntk="maxUtteranceFrames",
    )
    max_skipped: float = option(
        0.5, "fraction of the utterances that may be skipped", least=0, most=1, cntk="maxSkippedFraction"
    )
    excerpts: ExcerptOptions = given(ExcerptOptions(), "what part of an utterance is a sequence")

    def __post_init__(self) -> None:
        super().__post_init__()
        text = "is true; expected false in frameMode; frameMode=false keeps the frames of an utterance in order"
        self.require("truncated", not (self.frame_mode and self.truncated), text)
        single = not self.frame_mode or set(self.parallel) == {1}
        self.require("parallel", single, f"is {':'.join(map(str, self.parallel))}; expected 1 in frameMode")
        whole = "is true; expected false in frameMode and with {truncated}, where there are no whole utterances"
        self.require("similar_lengths", not (self.similar_lengths and (self.frame_mode or self.truncated)), whole)
        needed = "expected {truncated}=true with it: whole utterances need no look-ahead"
        self.require("ahead", self.truncated or not self.ahead, f"is {self.ahead}; {needed}")
        self.excerpts.check(self.frame_mode, self.truncated)

    @classmethod
    def from_block(cls, block: Config, **values: Any) -> Self:
        """Return the options that a reader block sets.  Raises ConfigError with file, line and full name."""
        return super().from_block(block, excerpts=ExcerptOptions.from_block(block), **values)

    @classmethod
    def option_keys(cls) -> list[str]:
        return [*super().option_keys(), *ExcerptOptions.option_keys()]

    def to_settings(self, complete: bool = False) -> list[str]:
        return [*super().to_settings(complete), *self.excerpts.to_settings(complete)]

    def check_marks(self, labels: Sequence[CorpusLabels]) -> None:
        """Raise ConfigError for labels whose beginnings are marked, where frames of utterances may be left out."""
        whole = not (self.frame_mode or self.truncated or self.excerpts.num_columns)
        for stream in labels:
            if stream.marks_begins and not whole:
                raise ConfigError(
                    f"{stream.where}: phoneBoundaries of {stream.name}; expected frameMode=false, truncated=false and "
                    "no chunkFrames with it, so that no label is lost"
                )

    @property
    def max_utterance(self) -> int | None:
        """Longer utterances are skipped; None for no limit."""
        return MAX_UTTERANCE_FRAMES if self.longest is None and self.method == "blockRandomize" else self.longest


def check_streams(
    config: Config, features: Sequence[CorpusFeatures], labels: Sequence[CorpusLabels], write: bool
) -> None:
    """Raise ConfigError for streams that do not form training data or, with `write`, have no features."""
    if not features:
        raise ConfigError(f"{config.where()}: {config.full_name()} has no features; expected a block with scpFile=...")
    needs_no_labels = any(supervision_role(block) == "denominator" for _, block in config.blocks())
    if not write and not needs_no_labels and len(features) + len(labels) < 2:
        raise ConfigError(
            f"{config.where()}: {config.full_name()} has one stream, {features[0].name}; "
            "expected another for training or test: a block with mlfFile=... or with scpFile=..."
        )
    if features[0].expand:
        raise ConfigError(
            f"{features[0].where}: {features[0].name} repeats "
            f"{'its frames' if features[0].frames_per_vector else 'one frame'} and is the first stream; "
            "expected another feature stream before it"
        )


def supervision_role(block: Config) -> str | None:
    """Return the name that makes a block one of SUPERVISIONS; None for other blocks.

    Raises ConfigError for a block chain without its denominator.
    """
    role_set = next((role for role in SUPERVISIONS if block.has_own(role)), None)
    if role_set is None and block.has_own("numerators"):
        raise ConfigError(f"{block.where('numerators')}: {block.full_name()} without denominator; expected a file")
    return role_set


def refuse_block(block: Config, roles: Sequence[str]) -> None:
    """Raise ConfigError for a block without any of the names that define its role."""
    hints = [did_you_mean(name, roles) for name in block.names()]
    raise ConfigError(
        f"{block.where()}: block {block.full_name()} has none of {', '.join(roles)}; "
        f"expected one of them, for features or labels{max(hints, default='')}"
    )
