"""The options of the jobs that score pronunciations."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decoder.recognizer.jobs.options import file_name
from readers.audio.options import AudioFileOptions
from readers.config.options import Options, group, option


@dataclass(frozen=True, kw_only=True)
class _RecordingOptions(Options):
    """What is aligned, and with what."""

    bundle: Path = option(
        help="file that argonaut pack made, or an installed one such as en",
        flag="bundle",
        metavar="BUNDLE",
        parse=file_name,
    )
    audio: tuple[str, ...] = option(
        help="audio files, folders, or - for standard input", check=bool, expected="a file name", flag="audio",
        metavar="AUDIO",
    )  # fmt: skip
    threads: int | None = option(None, "number of cores to use (default: all)", least=1, flag="-j --threads")


@dataclass(frozen=True, kw_only=True)
class PronounceOptions(_RecordingOptions):
    """What is scored, and what is written.

    Raises
    ------
    OptionFault
        For a value out of range, without a text, and with two.
    """

    text: str | None = option(None, "what should be said, in every recording", metavar="TEXT")
    transcripts: Path | None = option(
        None, "what should be said in each recording: lines NAME WORDS, or an MLF, trn or CTM file", metavar="FILE"
    )
    format: Literal["text", "json", "csv", "textgrid"] = option("text", "what is written (default text)")
    output: Path | None = option(
        None, "write a file for each recording to this directory, instead of printing", flag="-o --output",
        metavar="DIR", parse=file_name,
    )  # fmt: skip
    reading: AudioFileOptions = group(AudioFileOptions, heading="audio")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()

    def _check(self) -> None:
        num_texts = (self.text is not None) + (self.transcripts is not None)
        wrong = "is given with {transcripts}" if num_texts else "is missing"
        self.require("text", num_texts == 1, f"{wrong}; expected one of {{text}} and {{transcripts}}")
        has_words = self.text is None or bool(self.text.split())
        self.require("text", has_words, "is empty; expected the words that should be said")
        is_folder = self.output is None or not self.output.exists() or self.output.is_dir()
        self.require("output", is_folder, f"is {self.output}, a file; expected a directory")


@dataclass(frozen=True, kw_only=True)
class TrainPronunciationOptions(_RecordingOptions):
    """What a map of pronunciation scores is fitted to.

    Raises
    ------
    OptionFault
        For a value out of range.
    """

    scores: Path = option(help="scores of experts: scores.json as of speechocean762, or lines with an object each")
    output: Path = option(help="bundle with the map", flag="-o --output", metavar="BUNDLE", parse=file_name)
    also: tuple[Path, ...] = option(
        (),
        "bundle of another network, for speakers whom that of {bundle} heard in its training (repeatable)",
        flag="--also",
        metavar="BUNDLE",
        parse=file_name,
    )
    also_scores: tuple[Path, ...] = option(
        (), "scores of the speakers for {also}, a file for each", flag="--also-scores", metavar="SCORES",
        parse=file_name,
    )  # fmt: skip
    test: Path | None = option(None, "scores of other speakers, with which the map is measured", metavar="SCORES")
    speakers: Path | None = option(
        None, "lines UTTERANCE SPEAKER, as Kaldi's utt2spk (default: the folder of a recording is its speaker)"
    )
    folds: int = option(
        0, "measure the map by leaving out this many groups of speakers in turn (default: no)", least=0, most=100
    )
    reading: AudioFileOptions = group(AudioFileOptions, heading="audio")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("folds", self.folds != 1, "is 1; expected 0, or at least 2 groups")
        are_pairs = len(self.also) == len(self.also_scores)
        self.require(
            "also_scores", are_pairs, f"is given {len(self.also_scores)} times; expected once for each {{also}}"
        )
