"""The options of transforms of features."""

from dataclasses import dataclass
from pathlib import Path

from decoder.gaussians.options import MOST_GAUSSIANS
from readers.config.options import Options, group, option

MOST_SPLICE = 20
FEATURES, ALIGNMENT = "list of the utterances' HTK feature files", "state alignment of the utterances"
SPEAKERS = "lines `utterance speaker`; without it LDA and MLLT only"


@dataclass(frozen=True, kw_only=True)
class SpeakerOptions(Options):
    """Which speakers get a transform."""

    min_frames: float = option(
        300, "speakers with fewer frames than these, without silence, get no transform", unit="frames", least=1,
        metavar="N", heading="speakers",
    )  # fmt: skip
    prior_frames: float = option(
        100, "weight of a prior for the transform that changes nothing, in frames", unit="frames", least=0, metavar="N"
    )


@dataclass(frozen=True, kw_only=True)
class AdaptationOptions(Options):
    """How transforms and Gaussians are trained."""

    splice: int = option(
        4, "frames on each side that LDA sees, without deltas", least=0, most=MOST_SPLICE, heading="training"
    )
    dim: int = option(40, "values of a frame after LDA", least=1, most=10_000)
    gaussians: int = option(2000, "number of Gaussians at the end", least=1, most=MOST_GAUSSIANS)
    passes: int = option(4, "passes after each doubling of them", least=1, most=1000)
    rounds: int = option(3, "how often the transforms of speakers are estimated", least=0, most=1000)
    speakers: SpeakerOptions = group(SpeakerOptions)
    variance_floor: float = option(
        0.01, "least variance, as a fraction of the variance within states", above=0, below=1, flag=None
    )


@dataclass(frozen=True, kw_only=True)
class FmllrTrainOptions(Options):
    """Options of the training of transforms."""

    features: Path = option(help=FEATURES, metavar="SCP", heading="files")
    alignment: Path = option(help=ALIGNMENT, metavar="MLF")
    state_list: Path = option(help="names of the states, one per line")
    speakers: Path | None = option(None, SPEAKERS)
    out: Path = option(help="directory for the results", metavar="DIR")
    training: AdaptationOptions = group(AdaptationOptions)
    silence: str = option("sil", "frames of this phone do not count for speakers", metavar="PHONE")


@dataclass(frozen=True, kw_only=True)
class FmllrApplyOptions(Options):
    """Options of the transformation of features."""

    model: Path = option(help="directory of fmllr train", flag="MODEL", metavar="MODEL", heading="files")
    features: Path = option(help="list of HTK feature files, as in the training", metavar="SCP")
    speakers: Path | None = option(None, SPEAKERS)
    alignment: Path | None = option(
        None, "state alignment, from which the speakers' transforms are estimated", metavar="MLF"
    )
    out: Path = option(help="directory for the transformed features", metavar="DIR")
    scp: Path = option(help="list of these features to write", metavar="SCP")
    estimation: SpeakerOptions = group(SpeakerOptions)
    silence: str = option("sil", "frames of this phone do not count for speakers", metavar="PHONE")

    def __post_init__(self) -> None:
        super().__post_init__()
        is_complete = self.alignment is None or self.speakers is not None
        self.require("alignment", is_complete, "is given without {speakers}; expected both, or neither")
