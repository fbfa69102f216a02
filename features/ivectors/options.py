"""The options of i-vectors: how they are estimated, and how an extractor of them is trained."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from features.ivectors.frames import PRIOR, WINDOW
from readers.config.options import Options, group, option

MOST_GAUSSIANS, MOST_DIM = 1 << 16, 2000
DIAGONAL, FULL, FRAMES, EXTRACTOR = "diagonal", "full", "statistics", "extractor"  # stages of a training


@dataclass(frozen=True, kw_only=True)
class IvectorOptions(Options):
    """How i-vectors are estimated; the defaults are those of Kaldi's online recognition."""

    select: int = option(
        5, "Gaussians of a frame, at most, chosen by the mixture with diagonal covariances", least=1,
        most=MOST_GAUSSIANS, heading="estimation",
    )  # fmt: skip
    min_posterior: float = option(0.025, "probability below which a Gaussian is left out", least=0, below=0.5)
    posterior_scale: float = option(0.1, "factor on the probabilities of Gaussians", above=0, most=1)
    max_count: float = option(
        100.0, "scaled frames from which on the prior grows with them; 0: never", least=0, most=1e9
    )
    period: int = option(10, "frames between two i-vectors online", least=1, most=100_000)


@dataclass(frozen=True, kw_only=True)
class ChunkSchedule(Options):
    """When Kaldi estimates i-vectors online: the latest one for each chunk of frames that its network scores.

    Source: online-ivector-feature.cc, decodable-online-looped.cc of Kaldi.
    """

    size: int = option(24, "frames of a chunk", least=1, most=100_000)
    ahead: int = option(0, "frames after a chunk that must have arrived before it is scored", least=0, most=100_000)
    step: int = option(3, "frames of which the search knows whether they are silence", least=1, most=1000)
    block: float = option(0.2, "seconds of audio that arrive at a time", least=0.01, most=60)
    silence_weight: float = option(1e-3, "weight of frames that the search takes for silence", least=0, most=1)


@dataclass(frozen=True, kw_only=True)
class ExtractorOptions(Options):
    """How an extractor of i-vectors is trained."""

    gaussians: int = option(256, "Gaussians of the background model", least=1, most=MOST_GAUSSIANS, heading="model")
    dim: int = option(50, "values of an i-vector", least=2, most=MOST_DIM)
    covariance: Literal["diagonal", "full"] = option(DIAGONAL, "covariances of the background model")
    split_passes: int = option(3, "passes after each doubling of the Gaussians", least=1, most=1000, heading="training")
    passes: int = option(6, "passes with all Gaussians", least=1, most=1000)
    full_passes: int = option(4, "passes with full covariances", least=1, most=1000)
    extractor_passes: int = option(10, "passes that train the extractor", least=1, most=1000)
    variance_floor: float = option(0.01, "least variance, as a fraction of that of all frames", above=0, below=1)
    window: int = option(
        WINDOW, "frames whose mean is subtracted for the background model", least=1, most=10**6, flag="--mean-window"
    )
    prior_frames: int = option(
        PRIOR, "frames as which the mean of the training data counts", least=0, most=10**6, flag=None
    )
    background_frames: int = option(
        2_000_000, "frames on which the background model is trained, about", least=1, most=10**12
    )
    seed: int = option(0, "seed of the random numbers", least=0, most=2**63 - 1)
    ivector: IvectorOptions = group(IvectorOptions)

    @property
    def schedule(self) -> list[tuple[str, int]]:
        """Stage and number of Gaussians of each pass."""
        counts = [self.gaussians]
        while counts[0] > 1:
            counts.insert(0, (counts[0] + 1) // 2)
        growing = [(DIAGONAL, count) for count in counts[:-1] for _ in range(self.split_passes if count > 1 else 1)]
        stages = [*growing, *[(DIAGONAL, self.gaussians)] * self.passes]
        if self.covariance == FULL:
            stages += [(FULL, self.gaussians)] * self.full_passes
        return [*stages, (FRAMES, self.gaussians), *[(EXTRACTOR, self.gaussians)] * self.extractor_passes]


@dataclass(frozen=True, kw_only=True)
class UnitOptions(Options):
    """The utterances, and which of them share an i-vector."""

    features: Path = option(help="list of the utterances' HTK feature files", metavar="SCP")
    speakers: Path | None = option(None, "lines `NAME SPEAKER`: one i-vector for each speaker")
    speaker_pattern: str | None = option(
        None, "instead: a regular expression, whose first group in the name of an utterance is the speaker",
        metavar="REGEX",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        is_single = self.speakers is None or self.speaker_pattern is None
        self.require("speaker_pattern", is_single, "is given with {speakers}; expected only one of them")


@dataclass(frozen=True, kw_only=True)
class IvectorTrainOptions(UnitOptions):
    """Options of the training of an extractor."""

    output: Path = option(help="model to write", flag="-o --output", metavar="MODEL")
    training: ExtractorOptions = group(ExtractorOptions)

    @property
    def report_path(self) -> Path:
        """Where the report is written."""
        return Path(f"{self.output}.report")


@dataclass(frozen=True, kw_only=True)
class EstimationChanges(Options):
    """Values in place of those of a model; see IvectorOptions."""

    select: int | None = option(
        None, "Gaussians of a frame, at most", heading="estimation, by default as in the training of the model"
    )
    min_posterior: float | None = option(None, "probability below which a Gaussian is left out")
    posterior_scale: float | None = option(None, "factor on the probabilities of Gaussians")
    max_count: float | None = option(None, "scaled frames from which on the prior grows with them; 0: never")
    period: int | None = option(None, "frames between two i-vectors online")


@dataclass(frozen=True, kw_only=True)
class IvectorExtractOptions(UnitOptions):
    """Options of the computation of i-vectors."""

    model: Path = option(help="model of ivector train", flag="MODEL", metavar="MODEL")
    out: Path = option(help="directory for the files of i-vectors", metavar="DIR")
    scp: Path = option(help="list of the utterances' i-vectors to write")
    online: bool = option(False, "a vector for each period of frames, estimated from the frames before it")
    estimation: EstimationChanges = group(EstimationChanges)

    @property
    def report_path(self) -> Path:
        """Where the report is written."""
        return Path(f"{self.scp}.report")
