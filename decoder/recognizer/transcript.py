"""What a recogniser returns: words with times and confidences, and on request the lattice."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from decoder.alignment.aligner import StateAlignment
from decoder.alignment.goodness import PhoneGoodness
from decoder.grammars.slots import Slot, SlotParse, judgement_object, slot_objects, slots_of
from decoder.lattices.nbest import nbest
from decoder.lattices.posteriors import word_confidences
from decoder.results.live_recognition import alternatives
from decoder.results.outputs import slf_lattice
from decoder.results.unheard import unheard_speech
from decoder.search.decoder import Decoder, DecodingResult
from readers.common.arrays import Float64Array
from readers.common.files import write_lines
from readers.errors import ConfigError
from readers.htk.mlf import Label, write_mlf
from readers.htk.slf import write_slf
from readers.htk.trees import phone_of
from readers.htk.units import TICKS_PER_SECOND
from readers.results.lattice import Lattice
from readers.results.timed_words import ALONE, TOGETHER, Word, label_objects, sentence_object, write_textgrid

if TYPE_CHECKING:
    from decoder.results.alignment import Alignment

SUFFIXES = ("txt", "json", "srt", "vtt", "ctm", "stm", "TextGrid", "mlf", "slf")  # of `Transcript.save`


@dataclass(frozen=True, repr=False)
class Transcript:
    """The words of one recording.

    Printed, it is the words, each with its confidence: `AB [0.98] C [0.87]`.

    Attributes
    ----------
    spoken : tuple of Word
        The words without confidences; `words` has them.
    reason : str
        Why the words are incomplete: the search did not reach the end of a sentence, and the words are those of the
        best unfinished path, or none; or speech is in no word.  "" if they are not.
    seconds : float
        Duration of the audio.
    phones, states : tuple of Word
        The phones, of an alignment or after `Recognizer.with_phones`, and the states of an alignment, which have the
        confidences of their phones.
    make_lattice : callable or None
        Returns the lattice; None if there is none.
    calibrate : callable or None
        From the posterior probability of a word to its confidence.
    grammar_score : float or None
        Of a recogniser with a grammar: how much better or worse the words match than any sequence of phones, in nats
        per frame, a soft minimum over the words; -inf if no sentence of the grammar was recognised.
    accepted : bool or None
        Of a recogniser with a grammar: whether grammar_score is at least the threshold of its options.
    parse_slots : callable or None
        Of a recogniser with a grammar: from the words to their tags, see `SlotParser`.
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
    parse_slots: SlotParse | None = field(default=None, repr=False, compare=False)
    notes: tuple[str, ...] = ()
    states: tuple[Word, ...] = ()

    def __str__(self) -> str:
        marks = ("" if word.confidence is None else f" [{word.confidence:.2f}]" for word in self.words)
        return " ".join(word.text + mark for word, mark in zip(self.words, marks)) or f"(no words{self._why()})"

    def __repr__(self) -> str:
        return f"<Transcript of {self.seconds:.2f} s: {self}>"

    def _why(self) -> str:
        return f": {self.reason}" if self.reason else ""

    @property
    def text(self) -> str:
        """All words, with a blank between them."""
        return " ".join(word.text for word in self.spoken)

    @cached_property
    def lattice(self) -> Lattice | None:
        """The lattice, made when it is first asked for; None if the recogniser keeps none."""
        return None if self.make_lattice is None else self.make_lattice()

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words with times and, if there is a lattice, confidences."""
        if not self.spoken or self.spoken[0].confidence is not None or self.lattice is None:
            return self.spoken
        confidences = word_confidences(self.lattice, [word.text for word in self.spoken], self.calibrate)
        return tuple(
            word._replace(confidence=confidence) for word, confidence in zip(self.spoken, confidences, strict=True)
        )

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """What was said for each tag of the grammar, in the order of the words; empty without a grammar."""
        return () if self.parse_slots is None else slots_of(self.words, self.parse_slots)

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
        sentences = [" ".join(hypothesis.words) for hypothesis in nbest(self.lattice, count)]
        return [self.text, *(text for text in sentences if text != self.text)][:count]

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
        sentences = alternatives(list(self.words), self.lattice, count, self.calibrate)
        return [replace(self, spoken=tuple(words), make_lattice=None) for words in sentences]

    def as_dict(self, alternatives: int = 1) -> dict[str, object]:
        """Return the transcript as an object of JSON.

        Parameters
        ----------
        alternatives : int
            If it is above 1, at most so many sentences are listed under `alternatives`.

        Returns
        -------
        dict
            `text`, `seconds` and `words` with `word`, `start`, `end` and `confidence`; `phones` likewise, `notes` and
            `reason` unless they are empty; `accepted`, `grammar_score` and `slots` of a recogniser with a grammar.
        """
        content = {"text": self.text, "seconds": round(self.seconds, 3)} | sentence_object(self.words)
        content |= {"phones": label_objects("phone", self.phones)} if self.phones else {}
        if alternatives > 1:
            content["alternatives"] = [sentence_object(sentence.words) for sentence in self.hypotheses(alternatives)]
        if self.accepted is not None:
            content |= judgement_object(self.accepted, self.grammar_score)
            content["slots"] = slot_objects(self.slots)
        content |= {"notes": list(self.notes)} if self.notes else {}
        return content | ({"reason": self.reason} if self.reason else {})

    def alignment(self, name: str, audio: str | Path = "") -> "Alignment":
        """Return the words, phones and states as the alignment of a recording.

        Parameters
        ----------
        name : str
            Of the recording.
        audio : path
            The recording, for programs that open it with the alignment.

        Returns
        -------
        Alignment
            Without inserted silence.

        Examples
        --------
        >>> aligned = ForcedAligner.load("digits.argo").align("speech.wav", "AB C")
        >>> [row["label"] for row in aligned.alignment("speech").rows(["words"])]
        ['AB', 'C']
        """
        from decoder.results.alignment import AlignedUtterance, Alignment  # only what aligns loads it

        phones, states = (
            tuple(label for label in labels if label.confidence is not None) for labels in (self.phones, self.states)
        )
        utterance = AlignedUtterance(name, "", None, 0.0, self.seconds, self.words, phones, states=states)
        return Alignment(name, str(audio), self.seconds, (utterance,))

    def save(self, path: str | Path, name: str | None = None) -> None:
        """Write the transcript to a file, in the format that its suffix selects.

        Parameters
        ----------
        path : str or Path
            `x.txt`: the words; `.json`: see `as_dict`; `.srt`, `.vtt`: subtitles; `.ctm`, `.stm` (NIST), `.mlf` (HTK),
            `.TextGrid` (Praat; with a tier of phones if it has them): times; `.slf`: the lattice.
        name : str, optional
            Of the recording, for formats that contain it; by default that of the file.

        Raises
        ------
        ConfigError
            For another suffix, and for a lattice that does not exist.
        OSError

        Examples
        --------
        >>> Recognizer.load("digits.argo").transcribe("speech.wav").save("speech.TextGrid")
        """
        path, form = Path(path), Path(path).suffix.lower().removeprefix(".")
        name = path.stem if name is None else name
        if form not in map(str.lower, SUFFIXES):
            raise ConfigError(f"{path}: unknown format; expected a name that ends in .{', .'.join(SUFFIXES)}")
        if form == "txt":
            write_lines(path, [self.text])
        elif form == "json":
            write_lines(path, [json.dumps(self.as_dict(), ensure_ascii=False)])
        elif form == "mlf":
            ticks = [(round(word.start * TICKS_PER_SECOND), round(word.end * TICKS_PER_SECOND)) for word in self.words]
            labels = [Label(*times, word.text) for times, word in zip(ticks, self.words)]
            write_mlf(path, [(f"*/{name}.rec", labels)])
        elif form == "slf":
            if self.lattice is None:
                long = ", as the recording is long; recognised as a whole, it has one"
                why = ", as its words were aligned" if self.states else self._why() or long
                raise ConfigError(f"{path.name}: no lattice{why}; expected one")
            write_slf(path, self.lattice)
        elif form == "textgrid":
            write_textgrid(path, self.words, self.phones or None, self.seconds)
        elif form in TOGETHER:
            TOGETHER[form](path, {name: self.words})
        else:
            ALONE[form](path, self.words)


def transcript_of(
    result: DecodingResult,
    decoder: Decoder,
    period: int,
    seconds: float,
    calibrate: Callable[[float], float] | None = None,
    start: float = 0.0,
) -> Transcript:
    """Return what was decoded.

    period: of the frames in 100 ns units; seconds: duration of the audio; start: seconds of the recording before it,
    for the times in `reason`.
    """
    words = [_word(word.text, word.start * period, word.end * period) for word in result.words]
    make_lattice = None
    if result.lattice is not None:
        make_lattice = partial(slf_lattice, result.lattice, decoder.graph, decoder.options, period=period)
    reason = result.reason or unheard_speech(result, period, start)
    return Transcript(tuple(words), reason, seconds, make_lattice=make_lattice, calibrate=calibrate)


def aligned_transcript(
    alignment: StateAlignment, times: Float64Array, seconds: float, goodness: np.ndarray
) -> Transcript:
    """Return the words, phones and states of an alignment.

    times: of `boundary_times`; seconds: duration of the audio; goodness (n,): of each phone, see `PhoneGoodness`.
    """
    of_word: dict[int, list[float]] = {}
    phones = []
    states = []
    for (unit, span), good in zip(alignment.phones, goodness.tolist(), strict=True):
        phone = _word(phone_of(unit.model), times[span.first], times[span.last])
        if unit.word >= 0:
            of_word.setdefault(unit.word, []).append(good)
            phone = phone._replace(confidence=math.exp(good))
        phones.append(phone)
        for visit in range(span.first, span.last):
            state = alignment.graph.state[alignment.position[visit]]
            states.append(_word(state, times[visit], times[visit + 1])._replace(confidence=phone.confidence))
    words = [
        _word(unit.output, times[span.first], times[span.last])._replace(
            confidence=math.exp(sum(of_word[unit.word]) / len(of_word[unit.word]))
        )
        for unit, span in alignment.words
        if unit.output
    ]
    return Transcript(tuple(words), "", seconds, tuple(phones), states=tuple(states))


def recognised_phones(
    result: DecodingResult, period: int, goodness: PhoneGoodness, scores: np.ndarray
) -> tuple[Word, ...]:
    """Return the phones of what was decoded: silence without, the others with a confidence.

    period: of the frames in 100 ns units; scores (K, T): those that were decoded.
    """
    spoken = [(phone_of(phone.model), phone.start, phone.end) for phone in result.phones if not phone.is_silence]
    confidences = iter(np.exp(goodness.of_spans(spoken, scores)).tolist())
    phones = []
    for phone in result.phones:
        word = _word(phone_of(phone.model), phone.start * period, phone.end * period)
        phones.append(word if phone.is_silence else word._replace(confidence=next(confidences)))
    return tuple(phones)


def _word(text: str, start: float, end: float) -> Word:
    return Word(text, float(start) / TICKS_PER_SECOND, float(end) / TICKS_PER_SECOND)
