"""The options of the alignment of a corpus."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decoder.g2p.guessing import CompletedDictionary
from decoder.recognizer.jobs.options import file_name
from readers.audio.audio_file import MIX, Channel
from readers.audio.options import ChannelOptions
from readers.config.options import Options, like, option
from readers.config.options.options import several
from readers.corpora.annotations import KINDS

THRESHOLD = 0.1
LONG = 120.0  # seconds


@dataclass(frozen=True, kw_only=True)
class _CorpusOptions(Options):
    """The corpus, and how its words are looked up."""

    corpus: Path = option(help="recordings with transcripts, or one recording", flag="CORPUS", metavar="CORPUS")
    train: bool = option(False, "train Gaussian models of phones on the corpus first")
    threads: int | None = option(None, "number of threads (default: one per core)", least=1, flag="-j --threads")
    tiers: tuple[str, ...] = option(
        (), "names of the tiers with utterances in TextGrids and .eaf files, separated by commas", separator=",",
        metavar="NAMES",
    )  # fmt: skip
    case: Literal["auto", "keep", "upper", "lower"] = option(
        "auto",
        "look up words in this case (auto, the default: as {dict} has the most words)",
        heading="words and pronunciations",
    )


@dataclass(frozen=True, kw_only=True)
class AlignOptions(ChannelOptions, CompletedDictionary, _CorpusOptions):
    """What is aligned, with what, and what is written.

    Raises
    ------
    OptionFault
        For a value out of range, and for options that contradict each other.
    """

    dict: Path | None = option(
        None,
        "dictionary of any form, with the phones of {model}; without it, the dictionary and the pronunciation model of "
        "the bundle",
        flag="DICT",
        metavar="DICT",
    )
    g2p: Path | None = like(
        CompletedDictionary,
        "g2p",
        help="guess the pronunciations of words of the transcripts that {dict} lacks, with a model of "
        "`argonaut g2p train`, and write them to a dictionary for review",
    )
    words: Path | None = option(
        None, "dictionary of further words, such as names and loanwords, whose pronunciations stand in place of others",
        metavar="FILE", heading="words and pronunciations",
    )  # fmt: skip
    model: Path | None = option(
        None,
        "bundle, or an installed one such as en, or directory of argonaut flatstart (default: the installed bundle of "
        "the {language}); none with {train}",
        flag="MODEL",
        metavar="MODEL",
    )
    language: str = option("en", "name of the installed bundle that is used without {model}", metavar="NAME")
    out: Path = option(help="directory for the results", flag="OUT", metavar="OUT", parse=file_name)
    channel: Channel = like(
        ChannelOptions,
        "channel",
        help="channel of recordings with several, counted from 0, or mix for their mean",
        heading="audio",
    )
    upsample: bool = option(
        False, "accept audio of a lower sample rate than that of the model's training", heading="audio"
    )
    format: tuple[Literal["textgrid", "eaf", "json", "ctm", "csv", "mlf"], ...] = option(
        ("textgrid",), "formats, separated by commas: textgrid, eaf (ELAN), json, ctm, csv, mlf", separator=",",
        metavar="NAMES", heading="results",
    )  # fmt: skip
    times: Literal["fine", "frames"] = option(
        "fine",
        "fine: boundaries where they were spoken, between frames, too; frames: on HTK's grid of frames, which is early "
        "by half of window minus frame period",
    )
    doubtful: float = option(
        THRESHOLD, "confidence from 0 to 1 below which words are doubtful", least=0, most=1, metavar="X"
    )
    doubtful_tier: bool = option(False, "add a tier of doubtful stretches to TextGrids and ELAN files")
    annotations: tuple[str, ...] = option(
        (), "further annotations NAME=KIND, separated by commas, such as xxx=unknown; kinds are cutoff, laughter, "
        "breath, noise, unknown", separator=",", metavar="NAMES",
    )  # fmt: skip
    dictionary_probabilities: bool = option(
        False,
        "estimate the probabilities of pronunciations and of silence beside them, and write the dictionary to "
        "{out}/dictionary",
    )
    beam: float | None = option(
        None, "beam of the search, doubled while no path survives (default: exact)", above=0, most=math.inf,
        heading="search",
    )  # fmt: skip
    frame_cost: float | None = option(
        None, "cost of each frame of a sound or an unknown word (default: 1, for Gaussians 2.5)", unit="nats",
        least=0, most=1e6,
    )  # fmt: skip
    long: float = option(
        LONG, "seconds of an utterance above which its transcript may differ from the recording", unit="seconds",
        least=0, most=math.inf,
    )  # fmt: skip

    def __post_init__(self) -> None:
        formats = self.format.split(",") if isinstance(self.format, str) else several(self.format)
        names = [form.lower() if isinstance(form, str) else form for form in formats]
        object.__setattr__(self, "format", tuple(form for at, form in enumerate(names) if form not in names[:at]))
        if not self.train and self.model is None:  # CORPUS MODEL OUT, or CORPUS OUT
            object.__setattr__(self, "model", self.dict or Path(self.language))
            object.__setattr__(self, "dict", None)
        super().__post_init__()
        for text in self.annotations:
            _, _, kind = text.rpartition("=")
            self.require("annotations", kind in KINDS, f"are {text}; expected NAME=KIND, kind {', '.join(KINDS)}")
        if self.train:
            self.require("dict", self.dict is not None, "is missing; expected {corpus}, {dict} and {out} with {train}")
            self.require(
                "train", self.model is None, f"is given with {{model}} {self.model}; expected only one of them"
            )
            self.require("train", self.channel != MIX, f"is given with {{channel}} {MIX}; expected only one of them")
