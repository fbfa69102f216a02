"""The options of hotwords: phrases that a recogniser prefers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from readers.common.faults import one_line
from readers.common.report import Log, silent
from readers.config.options import Options, option
from readers.language.hotwords import MAX_SCORE

DEFAULT_SCORE = 5.0  # bonus per word of a phrase without a score


class Preferring(Protocol):
    """A decoder or recogniser."""

    def with_hotwords(self, *arguments: Any, **options: Any) -> Self:
        """Return one that prefers phrases."""


Target = TypeVar("Target", bound=Preferring)


@dataclass(frozen=True, kw_only=True)
class HotwordOptions(Options):
    """Phrases to prefer.

    Raises
    ------
    OptionFault
        For a value out of range, and for a score without phrases.
    """

    hotwords: Path | None = option(
        None, "phrases to prefer, one per line: PHRASE or PHRASE :SCORE; the score is a bonus for each word"
    )
    hotwords_score: float | None = option(
        None, f"score of phrases without one in {{hotwords}} (default {DEFAULT_SCORE:g})", least=-MAX_SCORE,
        most=MAX_SCORE,
    )  # fmt: skip
    hotwords_strict: bool = option(
        False, "refuse {hotwords} with words that the graph lacks, instead of leaving out their phrases"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        has_phrases = self.hotwords is not None or self.hotwords_score is None
        self.require("hotwords_score", has_phrases, "is given without {hotwords}; expected both")

    def applied_to(self, target: Target, log: Log = silent, **others: object) -> Target:
        """Return a decoder or recogniser that prefers the phrases, if there are any.

        Parameters
        ----------
        target : Decoder or Recognizer
        log : callable
            Receives a line about phrases that are left out.
        **others : object
            Further keywords of the target's `with_hotwords`.
        """
        if self.hotwords is None:
            return target

        def left_out(fault: Exception) -> None:
            log(f"left out of the hotwords: {one_line(fault)}")

        score = DEFAULT_SCORE if self.hotwords_score is None else self.hotwords_score
        return target.with_hotwords(self.hotwords, score, None if self.hotwords_strict else left_out, **others)


@dataclass(frozen=True, kw_only=True)
class GuessedHotwordOptions(HotwordOptions):
    """Phrases to prefer, words to add, and how words are pronounced that the graph lacks.

    Raises
    ------
    OptionFault
        For a value out of range, for a score without phrases, and a model without phrases or words.
    """

    words: Path | None = option(
        None, "words to add, one per line: WORD or WORD PHONE PHONE ..., with a number after WORD as its weight; below "
        "[CLASS], those said in the place of the word CLASS; by default they are pronounced as in the dictionary of "
        "the bundle, or as its pronunciation model guesses"
    )  # fmt: skip
    g2p: Path | None = option(
        None, "guess the pronunciations of words in {words} and {hotwords} that the graph lacks, with a model of "
        "`argonaut g2p train`", metavar="MODEL",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        has_words = self.hotwords is not None or self.words is not None or self.g2p is None
        self.require("g2p", has_words, "is given without {hotwords} or {words}; expected words that it can guess")

    @property
    def _guessing(self) -> dict[str, Path]:
        return {} if self.g2p is None else {"g2p": self.g2p}

    def with_words(self, recognizer: Any, log: Log = silent) -> Any:
        """Return a recogniser that knows the words, if there are any; call it before a grammar, which may have them."""
        if self.words is None:
            return recognizer
        return recognizer.with_words(
            self.words, on_fault=lambda fault: log(f"left out: {one_line(fault)}"), **self._guessing
        )

    def applied_to(self, target: Target, log: Log = silent, **others: object) -> Target:
        """Return a recogniser that prefers the phrases.

        `log` receives the pronunciations that were guessed, those of its words and its grammar among them, and its
        notes, too.
        """
        recognizer: Any = super().applied_to(target, log, **self._guessing, **others)
        for entry in recognizer.guessed:
            log(f"guessed: {entry.word}: {' '.join(entry.phones)}")
        for note in recognizer.notes:
            log(f"note: {note}")
        preferring: Target = recognizer
        return preferring
