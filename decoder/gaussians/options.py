"""The options of a flat start."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readers.config.options import Options, group, option
from readers.dictionaries.options import DictionaryOptions

MOST_GAUSSIANS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class SpokenDictionary(DictionaryOptions):
    """The pronunciations of the words of transcripts."""

    dict: Path = option(help="pronunciations of these words")


@dataclass(frozen=True, kw_only=True)
class FlatStartSettings(Options):
    """How models are trained.

    The first four passes are always Baum-Welch: the best paths of states that are nearly equal lead to a poor optimum.
    """

    method: Literal["baum-welch", "viterbi"] = option(
        "baum-welch", "count all paths by their probabilities, or only the best one", heading="training"
    )
    gaussians: int = option(
        1000, "number of Gaussians in all, at the end; at least one per state", least=1, most=MOST_GAUSSIANS
    )
    first_passes: int = option(12, "passes with one Gaussian per state", least=1)
    passes: int = option(4, "passes after each doubling of the Gaussians", least=1)
    variance_floor: float = option(
        0.01, "least variance, as a fraction of the variance of all frames", above=0, below=1
    )
    silence: str | None = option(
        None, "model of silence (the phone of <s>, else sil)", metavar="PHONE", heading="transcripts"
    )
    silence_topology: Literal["left-to-right", "any-order"] = option(
        "any-order", "how the states of silence may follow each other", flag="--sil-topology"
    )
    silence_probability: float = option(
        0.5, "probability of silence between words, and before and after them", above=0, below=1, flag="--sil-prob",
        metavar="P",
    )  # fmt: skip
    silence_frames: int = option(
        10, "frames at both ends of each utterance from which silence begins; 0 if recordings are cut tightly", least=0,
        flag="--sil-frames",
    )  # fmt: skip
    pronunciation_scale: float = option(
        1.0, "factor on -ln of pronunciation probabilities", least=0, flag="--pron-scale"
    )
    beam: float | None = option(None, "drop states that are worse than the best by more than X (exact)", above=0)


@dataclass(frozen=True, kw_only=True)
class FlatStartOptions(Options):
    """Options of a flat start."""

    features: Path = option(help="list of the utterances' HTK feature files", metavar="SCP", heading="files")
    words: Path = option(help="the words of the utterances", metavar="MLF")
    dictionary: SpokenDictionary = group(SpokenDictionary)
    out: Path = option(help="directory for the results", metavar="DIR")
    training: FlatStartSettings = group(FlatStartSettings)
