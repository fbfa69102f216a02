"""Options of the blocks of features and labels in a reader of frames.

Source: CNTK book 3.4.2; specAugment and framesPerVector are extensions.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from readers.config.feature_record import MismatchOptions
from readers.config.options import Options, option
from readers.minibatches.masks import MaskOptions

NO_MARKS = "is given; expected it only with an MLF, as alignments do not tell where equal labels meet"


@dataclass(frozen=True, kw_only=True)
class FeatureOptions(MismatchOptions):
    """A block of features."""

    scp_file: Path | None = option(help="list of the feature files, one for each utterance", own=True)
    dim: int = option(
        help="rows that the network gets for each frame: the values of a frame in the files, or an odd multiple of "
        "them for a window of so many frames",
        least=1,
    )
    context_window: tuple[int, ...] = option(
        (1,), "frames of the window, or those before and after each frame; 1: dim determines it",
        expected="an odd number or left:right",
    )  # fmt: skip
    type: Literal["real"] = option("real", "what the files contain", own=True)
    prefix: str = option(
        "",
        "prefix of every path in the list, before a slash; without it `...` in a path is the directory of the list",
        cntk="prefixPathInSCP",
    )
    expand: bool = option(
        False, "repeat the only frame of each file for all frames of its utterance", cntk="expandToUtterance"
    )
    frames_per_vector: int = option(
        1, "frames of the utterance for which each frame of a file is repeated", unit="frames", least=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        window = self.context_window
        text = ":".join(map(str, self.context_window))
        fits = min(window) >= 0 if len(window) == 2 else len(window) == 1 and window[0] > 0 and window[0] % 2
        self.require("context_window", bool(fits), f"is {text}; expected an odd number or left:right")
        repeated = "expand" if self.expand else "frames_per_vector"
        self.require(
            "frames_per_vector",
            not self.expand or self.frames_per_vector == 1,
            "is given beside {expand}; expected only one of them",
        )
        self.require(
            repeated,
            self.repeats == 1 or self.context in (None, (0, 0)),
            "is given beside {context_window}; expected only one of them",
        )

    @property
    def context(self) -> tuple[int, int] | None:
        """Frames before and after each frame; None if `dim` determines them."""
        if len(self.context_window) == 2:
            return self.context_window
        around = self.context_window[0] // 2
        return (around, around) if around else None

    @property
    def repeats(self) -> int:
        """Frames for which each frame of a file is repeated; 0 for a whole utterance, 1 if it is not repeated."""
        return 0 if self.expand else self.frames_per_vector


@dataclass(frozen=True, kw_only=True)
class HTKFeatureOptions(FeatureOptions):
    """A block of features of HTKMLFReader."""

    masks: MaskOptions | None = option(None, "random masks of training", cntk="specAugment", own=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        repeated = "{expand}" if self.expand else "{frames_per_vector}"
        fault = f"is given beside {repeated}; expected only one of them"
        self.require("masks", self.masks is None or self.repeats == 1, fault)


@dataclass(frozen=True, kw_only=True)
class KaldiFeatureOptions(FeatureOptions):
    """A block of features of KaldiReader."""

    scp_file: Path | None = option(None, "script file of the features", own=True)
    ark_file: Path | None = option(None, "archive of the features, in place of a script file", own=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("scp_file", bool(self.scp_file or self.ark_file), "is empty; expected it or {ark_file}")


@dataclass(frozen=True, kw_only=True)
class Kaldi2FeatureOptions(FeatureOptions):
    """A block of features of Kaldi2Reader."""

    scp_file: Path | None = option(help="list of the utterances, one name at the start of each line", own=True)
    rx: Path | None = option(
        None, "file that names the archive or script file of the features, as scp:FILE or ark:FILE", own=True
    )
    transform: Literal["NO_FEATURE_TRANSFORM"] = option(
        "NO_FEATURE_TRANSFORM",
        "transform of the features; those that nnet-forward of Kaldi has transformed need none",
        cntk="featureTransform",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("rx", self.rx is not None, "is missing; expected a file, beside {scp_file}")


@dataclass(frozen=True, kw_only=True)
class LabelOptions(Options):
    """A block of labels."""

    mlf_file: Path | None = option(None, "master label file of all utterances", own=True)
    mlf_file_list: Path | None = option(None, "list of master label files, in place of one", own=True)
    num_classes: int = option(help="number of classes", least=1, cntk="labelDim dim")
    label_type: Literal["category"] = option("category", "what the labels are", own=True)
    type: Literal["category"] = option("category", "older name of {label_type}", own=True)
    state_list: Path | None = option(
        None, "names of the classes, one on each line; without it labels are class numbers", cntk="labelMappingFile"
    )
    targets: Path | None = option(
        None,
        "for each class a line with its name and {target_dim} bits, the column to deliver in place of a one-hot one",
        cntk="labelToTargetMappingFile",
    )
    target_dim: int | None = option(None, "bits of each line of {targets}", least=1)
    marks_begins: bool = option(
        False,
        "deliver 2 instead of 1 in the first frame of each label, for LabelsToGraph; in whole utterances only",
        cntk="phoneBoundaries",
    )
    sources: ClassVar[tuple[str, ...]] = ("mlf_file", "mlf_file_list")

    def __post_init__(self) -> None:
        super().__post_init__()
        complete = self.targets is None or self.target_dim is not None
        self.require("target_dim", complete, "is missing; expected it beside {targets}")
        self.require(
            "marks_begins", not (self.marks_begins and self.targets), "is given beside {targets}; expected one"
        )
        source = next((name for name in self.sources if getattr(self, name)), None)
        self.require("mlf_file", source is not None, "is empty; expected a file")


@dataclass(frozen=True, kw_only=True)
class AlignmentOptions(LabelOptions):
    """A block of labels of KaldiReader."""

    archives: tuple[str, ...] = option((), "archives of alignments, as ali-to-pdf writes them", cntk="aliFile")
    scripts: tuple[str, ...] = option(
        (), "script files of alignments, in place of archives", cntk="aliScpFile", own=True
    )
    sources = (*LabelOptions.sources, "archives", "scripts")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("marks_begins", not self.marks_begins, NO_MARKS)


@dataclass(frozen=True, kw_only=True)
class Kaldi2LabelOptions(LabelOptions):
    """A block of labels of Kaldi2Reader."""

    mlf_file: Path | None = option(
        help="file that names the archive or script file of alignments, as scp:FILE or ark:FILE", own=True
    )
    delay: int = option(
        0, "frames by which the labels are late; the first one is repeated", unit="frames", least=0,
        cntk="targets_delay",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("marks_begins", not self.marks_begins, NO_MARKS)
