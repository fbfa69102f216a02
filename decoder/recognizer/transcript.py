"""What a recogniser returns: words with times and confidences, and on request the lattice."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from decoder.alignment.aligner import Alignment
from decoder.lattices.nbest import nbest
from decoder.lattices.posteriors import word_confidences
from decoder.results.live_recognition import alternatives
from decoder.results.outputs import slf_lattice
from decoder.search.decoder import Decoder, DecodingResult
from readers.htk.slf import Lattice
from readers.htk.trees import phone_of
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import TimedWord


@dataclass(frozen=True)
class Word:
    """A recognised or aligned word.

    Attributes
    ----------
    text : str
    start, end : float
        Seconds.
    confidence : float or None
        In [0, 1]: the probability that the word is right if the recogniser is calibrated, otherwise the posterior
        probability of the word in the lattice; None if the decoder keeps no lattices.  Of an alignment: how well the
        audio matches the word's phones, see `decoder.alignment.PhoneGoodness`.
    """

    text: str
    start: float
    end: float
    confidence: float | None = None

    @property
    def timed(self) -> TimedWord:
        """The word as `readers.results` writes it."""
        return TimedWord(self.text, self.start, self.end, self.confidence)


@dataclass(frozen=True)
class Transcript:
    """The words of one recording.

    Attributes
    ----------
    spoken : tuple of Word
        The words without confidences; `words` has them.
    reason : str
        "" if the search reached the end of a sentence; otherwise why not.  The words are then those of the best
        unfinished path, or none.
    seconds : float
        Duration of the audio.
    phones : tuple of Word
        Of an alignment: the phones; empty after recognition.
    make_lattice : callable or None
        Returns the lattice; None if there is none.
    calibrate : callable or None
        From the posterior probability of a word to its confidence.
    grammar_score : float or None
        Of a recogniser with a grammar: how much better or worse the words match than any sequence of phones, in nats
        per frame, a soft minimum over the words; -inf if no sentence of the grammar was recognised.
    accepted : bool or None
        Of a recogniser with a grammar: whether grammar_score is at least the threshold of its options.
    notes : tuple of str
        What is unusual about the audio file, such as an end before that of its header.
    """

    spoken: tuple[Word, ...]
    reason: str = ""
    seconds: float = 0.0
    phones: tuple[Word, ...] = ()
    make_lattice: Callable[[], Lattice] | None = field(default=None, repr=False, compare=False)
    calibrate: Callable[[float], float] | None = field(default=None, repr=False, compare=False)
    grammar_score: float | None = None
    accepted: bool | None = None
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All words, with a blank between them."""
        return " ".join(word.text for word in self.spoken)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The lattice in HTK's form, made when it is first asked for; None if the recogniser keeps none."""
        return None if self.make_lattice is None else self.make_lattice()

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words with times and, if there is a lattice, confidences."""
        if self.lattice is None or not self.spoken:
            return self.spoken
        found = word_confidences(self.lattice, [word.text for word in self.spoken], self.calibrate)
        return tuple(replace(word, confidence=one) for word, one in zip(self.spoken, found, strict=True))

    def alternatives(self, count: int) -> list[str]:
        """Return the text of the best sentences.

        Parameters
        ----------
        count : int
            At most so many.

        Returns
        -------
        list of str
            Different texts, that of the words first, then the best others; only it if there is no lattice.
        """
        if self.lattice is None:
            return [self.text]
        found = [" ".join(one.words) for one in nbest(self.lattice, count)]
        return [self.text, *(text for text in found if text != self.text)][:count]

    def hypotheses(self, count: int) -> list["Transcript"]:
        """Return the best sentences with times and confidences of their words.

        Parameters
        ----------
        count : int
            At most so many.

        Returns
        -------
        list of Transcript
            Different texts, this one first, then the best others; only this one if there is no lattice.
        """
        found = alternatives([word.timed for word in self.words], self.lattice, count, self.calibrate)
        return [replace(self, spoken=tuple(Word(*word) for word in one), make_lattice=None) for one in found]


def transcript_of(
    result: DecodingResult,
    decoder: Decoder,
    period: int,
    seconds: float,
    calibrate: Callable[[float], float] | None = None,
) -> Transcript:
    """Return what was decoded; period: of the frames in 100 ns units, seconds: duration of the audio."""
    words = [_word(word.word, word.start * period, word.end * period) for word in result.words]
    make_lattice = None
    if result.lattice is not None:

        def make_lattice():
            return slf_lattice(result.lattice, decoder.graph, decoder.options, period=period)

    return Transcript(tuple(words), result.reason, seconds, make_lattice=make_lattice, calibrate=calibrate)


def aligned_transcript(alignment: Alignment, period: int, seconds: float, goodness: np.ndarray) -> Transcript:
    """Return the words and phones of an alignment.

    goodness (n,): of each phone, see `PhoneGoodness`; the other arguments are as for `transcript_of`.
    """
    of_word: dict[int, list[float]] = {}
    phones = []
    for (unit, span), good in zip(alignment.phones, goodness.tolist(), strict=True):
        one = _word(phone_of(unit.model), span.start * period, span.end * period)
        if unit.word >= 0:
            of_word.setdefault(unit.word, []).append(good)
            one = replace(one, confidence=math.exp(good))
        phones.append(one)
    words = [
        replace(
            _word(unit.output, span.start * period, span.end * period),
            confidence=math.exp(sum(of_word[unit.word]) / len(of_word[unit.word])),
        )
        for unit, span in alignment.words
        if unit.output
    ]
    return Transcript(tuple(words), "", seconds, tuple(phones))


def _word(text: str, start: int, end: int) -> Word:
    return Word(text, start / TICKS_PER_SECOND, end / TICKS_PER_SECOND)
