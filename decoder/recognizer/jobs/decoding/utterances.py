"""Decodes one utterance of a list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decoder.recognizer.jobs.decoding.fit import NO_FIT, ScoreFit, measure, used_rows
from decoder.recognizer.jobs.decoding.opening import open_decoder
from decoder.recognizer.jobs.decoding.options import DecodeOptions
from decoder.recognizer.jobs.decoding.scores import open_source
from decoder.results.outputs import slf_lattice, state_labels, word_labels
from decoder.results.unheard import unheard_speech
from decoder.search.decoder import DecodingResult
from decoder.search.lattice import WordLattice
from decoder.search.options import SearchOptions
from readers.common.faults import naming
from readers.common.file_part import FilePart
from readers.common.report import Log
from readers.htk.dictionary import Pronunciation
from readers.htk.mlf import Label
from readers.htk.slf import write_slf
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import Word

if TYPE_CHECKING:
    from decoder.g2p.completion import Guesses

Numbered = tuple[int, Any]  # number of an entry from 1, entry


@dataclass(frozen=True)
class Decoded:
    """Result of one utterance.

    labels is None if there is nothing to write; words and phones (lists of Word) are None if no output needs them.
    seconds is the duration of the utterance; fit is that of the path to the scores; wider describes how much wider the
    search was than the options say, "" if it was not; unheard says where speech is in no word.
    """

    num_frames: int
    period: int
    reason: str
    labels: list[Label] | FilePart | None
    tokens_per_frame: float
    words: list[Word] | None = None
    phones: list[Word] | None = None
    seconds: float = 0.0
    fit: ScoreFit = NO_FIT
    wider: str = ""
    unheard: str = ""


class DecodingPipeline:
    """Decodes one utterance: computes labels and writes the lattice file.  All threads share one instance."""

    guesses: "Guesses | None" = None
    guess_lines: Sequence[str] = ()

    def __init__(self, options: DecodeOptions, log: Log, guessed: Sequence[Pronunciation] = ()):
        self.output = options.output
        self.lm = options.lm or options.lm_collection
        self.decoder = open_decoder(options, log)
        self.source = open_source(options.acoustic, log)
        if self.source.num_outputs is not None:
            self.decoder.check_outputs(self.source.num_outputs, self.source.name)
        self.rows = used_rows(self.decoder)
        self.acweight = self.decoder.options.acweight

    def __call__(self, numbered: Numbered) -> Decoded:
        number, entry = numbered
        with naming(entry.path):
            scores, period, seconds, last = self.source.scores(entry)
            result = self.decoder.decode(scores)
        labels = words = None
        if result.path.label.size:
            labels = self.labels(result, period, last)
            words = timed(word_labels(result, period, last)) if self.output.words else None
        if result.lattice is not None:
            self.write_lattice(number, entry, result.lattice, period, last)
        return Decoded(
            *(result.num_frames, period, result.reason, labels, result.tokens_per_frame, words, None, seconds),
            measure(scores, self.rows, result),
            wider_search(self.decoder.options, result.widenings),
            unheard_speech(result, period),
        )

    def labels(self, result: DecodingResult, period: int, last: int) -> list[Label]:
        if self.output.detailed_alignment:
            return state_labels(result, self.decoder, period, last)
        return word_labels(result, period, last)

    def write_lattice(self, number: int, entry: Any, lattice: WordLattice, period: int, last: int) -> None:
        name = self.lm.name if self.lm else ""
        slf = slf_lattice(lattice, self.decoder.graph, self.decoder.options, entry.key, period, name, last)
        write_slf(f"{self.output.lattice_prefix}{number}.lat", slf)


def wider_search(options: SearchOptions, widenings: int) -> str:
    """Describe how a search differs from its SearchOptions after so many widenings; "" for none."""
    if not widenings:
        return ""
    factor = 2**widenings
    if options.beam * factor == options.beam:  # 0 or infinite
        return f"{options.max_tokens * factor} tokens instead of {options.max_tokens}"
    return wider_beam(options.beam * factor, options.beam)


def wider_beam(beam: float, given: float) -> str:
    return f"a beam of {beam:g} instead of {given:g}"


def timed(labels: list[Any]) -> list[Word]:
    """Convert labels with times to words in seconds."""
    return [
        Word(label.name, (label.start or 0) / TICKS_PER_SECOND, (label.end or 0) / TICKS_PER_SECOND) for label in labels
    ]


def mlf_name(key: str) -> str:
    """Return the entry's name in the MLF: `*/key.rec` like HVite's, so that it matches in any directory."""
    return f"{key}.rec" if "/" in key else f"*/{key}.rec"
