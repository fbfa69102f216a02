"""The options of a comparison of speakers."""

from dataclasses import dataclass
from pathlib import Path

from features.ivectors.options import UnitOptions
from readers.config.options import option


@dataclass(frozen=True, kw_only=True)
class IvectorCompareOptions(UnitOptions):
    """Options of a comparison of speakers.

    Raises
    ------
    OptionFault
        Unless there are speakers.
    """

    features: Path = option(help="list of the i-vectors of utterances", flag="VECTORS", metavar="VECTORS")
    speakers: Path | None = option(None, "lines `NAME SPEAKER`")
    training: Path | None = option(
        None,
        "list of the i-vectors of other speakers, on which a model of speakers is trained (PLDA; default: the cosine "
        "of two i-vectors is their score)",
        metavar="SCP",
    )
    dim: int | None = option(None, "directions of the model of speakers (default: all)", least=1)
    halves: bool = option(False, "compare the first half of a speaker's utterances with the second half of another's")
    trials: Path | None = option(
        None,
        "pairs to compare, lines `NAME NAME target|nontarget`, with names of utterances, or of speakers for all of "
        "their utterances (default: each utterance with each other one)",
    )
    classes: Path | None = option(None, "lines `SPEAKER CLASS`: errors of the pairs of each class, too")
    output: Path = option(help="scores to write", flag="-o --output", metavar="FILE")

    def __post_init__(self) -> None:
        super().__post_init__()
        named = self.speakers is not None or self.speaker_pattern is not None
        self.require("speakers", named, "is missing; expected it or {speaker_pattern}")
        self.require("halves", not (self.halves and self.trials), "is given with {trials}; expected one of them")
        self.require("dim", self.dim is None or self.training is not None, "is given without {training}")

    @property
    def report_path(self) -> Path:
        """Where the report is written."""
        return Path(f"{self.output}.report")
