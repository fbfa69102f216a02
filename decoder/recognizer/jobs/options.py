"""The options of the jobs of a recogniser."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from decoder.recognizer.jobs.recordings import STANDARD_INPUT
from decoder.search.hotword_options import GuessedHotwordOptions
from readers.audio.options import AudioFileOptions
from readers.config.options import Options, group, option
from readers.errors import ConfigError

MAX_NBEST = 10_000
LIVE = WITH_ALTERNATIVES = ("text", "json")  # formats
JOINED = ("text", "json", "ctm", "mlf")  # several recordings can be printed one after the other
WITH_PHONES = ("json", "textgrid")
CONFIDENT = ("json", "ctm", "slf")  # contain confidences or the lattice itself
NAMED = ("ctm", "mlf")  # contain the name of the recording, by which its words are found


def file_name(text: str) -> Path:
    """Return a path; raises ConfigError for an empty text, which would be the current directory."""
    if not text:
        raise ConfigError("an empty file name; expected a name")
    return Path(text)


@dataclass(frozen=True, kw_only=True)
class TranscribeOptions(Options):
    """What is recognised, with what, and what is written.

    Raises
    ------
    OptionFault
        For a value out of range, and for options that contradict each other.
    """

    bundle: Path = option(
        help="file that argonaut pack made, or an installed one such as en",
        flag="bundle",
        metavar="BUNDLE",
        parse=file_name,
    )
    audio: tuple[str, ...] = option(
        help="audio files, folders, or - for standard input",
        check=bool,
        expected="a file name",
        flag="audio",
        metavar="AUDIO",
    )
    format: Literal["text", "json", "srt", "vtt", "ctm", "textgrid", "mlf", "slf"] = option(
        "text", "what is written (default text)"
    )
    phones: bool = option(False, "write phones with times and confidences, too, with json and textgrid")
    nbest: int = option(1, "number of alternatives, with text and json (default 1)", least=1, most=MAX_NBEST)
    output: Path | None = option(
        None, "write a file for each recording to this directory, instead of printing", flag="-o --output",
        metavar="DIR", parse=file_name,
    )  # fmt: skip
    grammar: Path | None = option(
        None,
        "recognise sentences of a grammar only: JSGF, HParse's notation, an SLF network or a JSON list of phrases",
    )
    threshold: float | None = option(
        None,
        "grammar score below which speech is rejected as none of the sentences of {grammar}: lower accepts more "
        "(default -0.47, tuned on AN4)",
        metavar="X",
    )
    stream: bool = option(
        False, "recognise one recording while it arrives, and print the words of each utterance when it has ended"
    )
    whole: bool = option(
        False,
        "recognise recordings of more than 2 minutes as a whole, too, not divided at pauses; needs more memory",
    )
    threads: int | None = option(None, "number of cores to use (default: all)", least=1, flag="-j --threads")
    hotwords: GuessedHotwordOptions = group(GuessedHotwordOptions)
    reading: AudioFileOptions = group(AudioFileOptions, heading="audio")

    @property
    def needs_lattice(self) -> bool:
        """Whether the output contains confidences, alternatives or lattices."""
        return self.nbest > 1 or self.format in CONFIDENT

    def __post_init__(self) -> None:
        super().__post_init__()
        is_once = self.audio.count(STANDARD_INPUT) < 2
        self.require("audio", is_once, f"is {STANDARD_INPUT} twice; expected standard input once")
        has_form = self.nbest == 1 or self.format in WITH_ALTERNATIVES
        self.require("nbest", has_form, f"is given with {{format}} {self.format}; expected text or json")
        has_tier = not self.phones or self.format in WITH_PHONES
        self.require("phones", has_tier, f"is given with {{format}} {self.format}; expected json or textgrid")
        is_folder = self.output is None or not self.output.exists() or self.output.is_dir()
        self.require("output", is_folder, f"is {self.output}, a file; expected a directory")
        self.require("threshold", self.threshold is None or self.grammar is not None, "is given without {grammar}")
        has_words = self.grammar is None or self.hotwords.g2p is None or self.hotwords.words is not None
        self.hotwords.require(
            "g2p", has_words, "is given with a grammar, whose words are given; expected only one, or {words}"
        )
        if self.stream:
            self.require(
                "stream", self.format in LIVE, f"is given with {{format}} {self.format}; expected text or json"
            )
            contradictions = {"output": self.output is not None, "nbest": self.nbest > 1}
            contradictions |= {"whole": self.whole, "phones": self.phones}
            for name, is_given in contradictions.items():
                self.require("stream", not is_given, f"is given with {{{name}}}; expected only one of them")


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(Options):
    """What the confidences of a bundle are fitted to or measured with.

    Raises
    ------
    OptionFault
        For a value out of range, and for options that contradict each other.
    """

    bundle: Path = option(
        help="file that argonaut pack made, or an installed one such as en", flag="bundle", metavar="BUNDLE"
    )
    words: Path = option(help="MLF, trn or CTM with the words that were spoken", flag="words", metavar="WORDS")
    audio: tuple[str, ...] = option((), "audio files, or folders of them", flag="audio", metavar="AUDIO")
    list: Path | None = option(None, "more audio: list of HCopy, whose second column names utterances")
    output: Path | None = option(
        None, "calibrated bundle; without {output}, the bundle is measured", flag="-o --output", metavar="BUNDLE"
    )
    test: Path | None = option(None, "words of other recordings, with which the result is measured", metavar="WORDS")
    fold: Path | None = option(None, "phone map, as of argonaut score", metavar="MAP")
    threads: int | None = option(None, "number of cores to use (default: all)", least=1, flag="-j --threads")

    def __post_init__(self) -> None:
        super().__post_init__()
        has_output = self.test is None or self.output is not None
        self.require("test", has_output, "is given without {output}; expected the test set as {words}, or {output}")
