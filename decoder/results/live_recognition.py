"""Recognition of continuous audio: features, scores and search block by block, divided into utterances at pauses.

    recognition = Recognition(decoder, [FeatureStream(config, rate), ScoreStream(scorer)], period)
    for samples in blocks:
        for event in recognition.push(samples):
            ...
    events = recognition.finish()

The result does not depend on how the audio is cut into blocks, except for the rounding of the scores that a stage
computes from them.  With endpoint = None there is one utterance, and its result is that of `Decoder.decode`.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from decoder.grammars.slots import Slot, SlotParse, slots_of
from decoder.lattices.posteriors import calibrated, confident_hypotheses, word_confidences
from decoder.results.outputs import slf_lattice
from decoder.results.unheard import unheard_speech
from decoder.search.decoder import Decoder, DecodingResult
from decoder.search.path import WordTimes
from decoder.search.search_stream import PartialResult, SearchStream
from readers.errors import ArgonautError, ConfigError
from readers.htk.units import TICKS_PER_SECOND
from readers.results.lattice import Lattice
from readers.results.timed_words import Word

if TYPE_CHECKING:
    from features.ivectors.adapted import ChunkStream


class StreamStage(Protocol):
    """A step of the pipeline from audio to scores, such as `FeatureStream` and `ScoreStream`."""

    def push(self, data: np.ndarray) -> np.ndarray:
        """Take samples (n,) or columns (rows, n); return the columns (rows, m) float32 that are complete."""
        ...

    def finish(self) -> np.ndarray:
        """End the input; return the remaining columns."""
        ...


@dataclass(frozen=True)
class Endpoint:
    """When an utterance ends.  An utterance also ends when every token has crossed </s>.

    Parameters
    ----------
    pause : float
        Seconds of silence after words that end the utterance.
    longest : float
        Seconds after which an utterance ends in any case; from half of it on, the pause that ends it becomes shorter.
    no_speech : float
        Seconds of silence without words after which the search starts again.

    Raises
    ------
    ConfigError
        Unless 0 < pause <= no_speech and pause <= longest.
    """

    pause: float = 0.8
    longest: float = 30.0
    no_speech: float = 5.0

    def __post_init__(self) -> None:
        if not 0 < self.pause <= self.no_speech or not self.pause <= self.longest:
            raise ConfigError(
                f"endpoint: pause {self.pause:g} s, longest {self.longest:g} s, no_speech {self.no_speech:g} s; "
                "expected a pause above 0 and the others at least as long"
            )

    def needed(self, seconds: float) -> float:
        """Seconds of silence that end an utterance of `seconds`."""
        return self.pause * min(1.0, max(0.0, 2.0 - 2.0 * seconds / self.longest))


@dataclass(frozen=True)
class RecognitionEvent:
    """What has been recognised of an utterance.

    Attributes
    ----------
    start, end : float
        Seconds of the audio.
    words : list of Word
        With confidences in [0, 1] if the decoder keeps lattices; otherwise they are None.
    num_stable : int
        Number of words, from the first one, that cannot change any more.
    is_final : bool
        Whether the utterance has ended.
    reason : str
        Why the words are incomplete: no path reached a final state, or speech is in no word; "" if they are not.
    lattice : Lattice or None
        Of an utterance that has ended: its lattice, if the decoder keeps lattices.
    slots : tuple of Slot
        Of an utterance that has ended: what was said for each tag of the grammar, if there is one.
    grammar_score : float or None
        Of an utterance that has ended: how well it matches the grammar, if there is one, as `Transcript.grammar_score`.
    accepted : bool or None
        Of an utterance that has ended: whether grammar_score is at least the threshold of the grammar.
    """

    start: float
    end: float
    words: list[Word]
    num_stable: int
    is_final: bool = False
    reason: str = ""
    lattice: Lattice | None = field(default=None, repr=False, compare=False)
    calibrate: Callable[[float], float] | None = field(default=None, repr=False, compare=False)
    slots: tuple[Slot, ...] = ()
    grammar_score: float | None = None
    accepted: bool | None = None

    @property
    def text(self) -> str:
        """All words."""
        return " ".join(word.text for word in self.words)

    @property
    def stable(self) -> str:
        """The words that cannot change any more."""
        return " ".join(word.text for word in self.words[: self.num_stable])

    @property
    def unstable(self) -> str:
        """The words that may still change."""
        return " ".join(word.text for word in self.words[self.num_stable :])

    def hypotheses(self, count: int) -> list[list[Word]]:
        """Return the words of the best hypotheses with times and confidences.

        Parameters
        ----------
        count : int
            At most so many.

        Returns
        -------
        list of list of Word
            Different texts, `words` first, then the best others; only `words` if there is no lattice.
        """
        return alternatives(self.words, self.lattice, count, self.calibrate)


class Rescored(NamedTuple):
    """An utterance after the second pass.

    Attributes
    ----------
    words : list of Word
        With times, and posterior probabilities as confidences.
    lattice : Lattice
    """

    words: list[Word]
    lattice: Lattice


class Recognition:
    """Recognises one stream of audio: call `push` with each block and `finish` once.

    Parameters
    ----------
    decoder : Decoder
        Where no token is final, the best unfinished path is given.  With a lattice_beam, words have confidences; memory
        then grows until the end of an utterance.
    stages : sequence of StreamStage
        Turn the input into scores, in order; with none, scores (K, n) are pushed.  A ChunkStream among them hears of
        the search after each of its blocks.
    period : int
        Frame period in 100 ns ticks.
    endpoint : Endpoint, optional
        When an utterance ends.  None: at `finish` only.
    block : int
        Frames between two looks at the words and the endpoint.
    calibrate : callable, optional
        From the posterior probability of a word to its confidence.
    parse_slots : callable, optional
        Of a grammar: from the words to their tags, see `SlotParser`.
    rescore : callable, optional
        From the result of an utterance that has ended, and the period, to what a second pass makes of it, or None.
    judge : callable, optional
        Of a grammar: from the result of an utterance and its scores (K, T), which are kept for it, to the grammar score
        and whether it is accepted.

    Raises
    ------
    ConfigError
        For a block without frames.
    """

    def __init__(
        self,
        decoder: Decoder,
        stages: Sequence[StreamStage],
        period: int,
        endpoint: Endpoint | None = None,
        block: int = 10,
        calibrate: Callable[[float], float] | None = None,
        parse_slots: SlotParse | None = None,
        rescore: Callable[[DecodingResult, int], Rescored | None] | None = None,
        judge: Callable[[DecodingResult, np.ndarray], tuple[float, bool]] | None = None,
    ):
        if block < 1:
            raise ConfigError(f"blocks of {block} frames; expected at least 1 frame")
        # An utterance of a stream ends with its sentence: the next one begins with a search of its own.
        self.decoder = decoder.with_options(partial=True, new_sentence=None)
        self.endpoint = endpoint
        self.block = block
        self._period = period
        self._calibrate = calibrate
        self._parse_slots = parse_slots
        self._rescore = rescore
        # Stages before the one whose i-vectors follow the search, that one, if there is any, and all from it on.
        following = [number for number, stage in enumerate(stages) if hasattr(stage, "hear")]
        self._chunks: ChunkStream | None = stages[following[0]] if following else None  # type: ignore[assignment]
        self._before = stages[: following[0]] if following else []
        self._following = stages[len(self._before) :]
        self._judge = judge
        self._judged: list[np.ndarray] = []  # scores of the utterance, if it is judged
        self._waiting: list[np.ndarray] = []  # scores of an incomplete block
        self._recent = np.zeros((0, 0), np.float32)  # scores of the last frames, which may begin the next utterance
        self._lead = 0 if endpoint is None else round(endpoint.pause / 2 / self._seconds(1))
        self._first = 0  # first frame of the utterance
        self._reported: tuple[list[str], int] = ([], 0)
        self._search = SearchStream(self.decoder)

    def push(self, data: np.ndarray) -> list[RecognitionEvent]:
        """Process a block of input.

        Parameters
        ----------
        data : array
            What the first stage takes: samples (n,), feature columns, or scores (K, n).

        Returns
        -------
        list of RecognitionEvent
            New words, and utterances that have ended.
        """
        for stage in self._before:
            data = stage.push(data)
        pieces = [data] if self._chunks is None else self._chunks.pieces(data)
        return [event for piece in pieces for event in self._push(piece)]

    def _push(self, data: np.ndarray) -> list[RecognitionEvent]:
        """Process a block of the input of the stages that follow the search."""
        for stage in self._following:
            data = stage.push(data)
        events = self._take(data, False)
        if self._chunks is not None:
            self._chunks.hear(self._search.silent(), self._first)
        return events

    def finish(self) -> list[RecognitionEvent]:
        """End the audio.

        Returns
        -------
        list of RecognitionEvent
            The remaining words, with the last utterance.
        """
        events: list[RecognitionEvent] = []
        data = _finish(self._before, None)
        if self._chunks is not None:
            pieces = [] if data is None else self._chunks.pieces(data)
            events += [event for piece in [*pieces, self._chunks.rest()] for event in self._push(piece)]
            data = None
        events += self._take(_finish(self._following, data), True)
        heard = self._search.partial().heard
        last, unheard = self._end()
        if self.endpoint is None or last.words or unheard or (last.reason and heard):
            events.append(last)
        return events

    def events(self, blocks: Iterable[np.ndarray]) -> Iterator[RecognitionEvent]:
        """Recognise blocks as they come; Ctrl-C ends the audio, and what came before a fault is finished.

        Parameters
        ----------
        blocks : iterable of array
            As for `push`.

        Yields
        ------
        RecognitionEvent

        Raises
        ------
        ArgonautError
            That of the blocks, after the events of what came before.
        """
        try:
            for block in blocks:
                yield from self.push(block)
        except KeyboardInterrupt:  # the usual end of a microphone recording
            pass
        except ArgonautError:
            with contextlib.suppress(ArgonautError):  # such as no samples, of which the fault is the cause
                yield from self.finish()
            raise
        yield from self.finish()

    @property
    def start(self) -> float:
        """Where the current utterance begins, in seconds of the audio."""
        return self._seconds(self._first)

    @property
    def num_frames(self) -> int:
        """Frames searched since the beginning of the audio."""
        return self._first + self._search.num_frames

    def _take(self, scores: np.ndarray | None, ended: bool) -> list[RecognitionEvent]:
        """Search complete blocks; an incomplete one waits, unless the audio has ended."""
        self._waiting += [] if scores is None else [scores]
        count = sum(part.shape[1] for part in self._waiting)
        if not count or (count < self.block and not ended):
            return []
        scores = np.concatenate(self._waiting, axis=1)
        events = []
        begin = 0
        while count - begin >= self.block or (ended and begin < count):
            events += self._search_block(scores[:, begin : begin + self.block])
            begin += self.block
        self._waiting = [scores[:, begin:]] if begin < count else []
        return events

    def _search_block(self, scores: np.ndarray) -> list[RecognitionEvent]:
        self._advance(scores)
        if self._lead:
            self._recent = np.concatenate([self._recent, scores], axis=1) if self._recent.size else scores
            self._recent = self._recent[:, -self._lead :]
        partial = self._search.partial()
        alive = self._search.alive
        if self.endpoint is not None and (not alive or self._is_over(partial, self.endpoint)):
            last, unheard = self._end()
            self._begin(partial.silence if alive else 0)
            return [last] if last.words or unheard or partial.heard or not alive else []
        partial_words = [word.text for word in partial.words], partial.num_stable
        if partial_words == self._reported or not partial.words:
            return []
        self._reported = partial_words
        return [self._event(partial.words, partial.num_stable, self._search.confidences())]

    def _advance(self, scores: np.ndarray) -> None:
        self._search.push(scores)
        if self._judge is not None:
            self._judged.append(scores)

    def _is_over(self, partial: PartialResult, endpoint: Endpoint) -> bool:
        if partial.over:
            return True
        silence = self._seconds(partial.silence) + 1e-9
        if not partial.heard:
            return silence >= endpoint.no_speech
        return silence >= endpoint.needed(self._seconds(partial.num_frames))

    def _end(self) -> tuple[RecognitionEvent, str]:
        """Return the result of the utterance, and what `unheard_speech` says of it."""
        result = self._search.finish()
        rescored = None if self._rescore is None else self._rescore(result, self._period)
        if rescored is None:
            lattice = self._lattice(result)
            words = [word.text for word in result.words]
            event = self._event(result.words, len(words), None if lattice is None else word_confidences(lattice, words))
        else:
            lattice = self._later(rescored.lattice)
            first = self.start
            event = self._event_of(
                [word._replace(start=first + word.start, end=first + word.end) for word in rescored.words]
            )
        unheard = unheard_speech(result, self._period, self.start)
        reason = result.reason or unheard
        slots = () if self._parse_slots is None else slots_of(event.words, self._parse_slots)
        event = replace(event, is_final=True, reason=reason, lattice=lattice, calibrate=self._calibrate, slots=slots)
        if self._judge is not None and self._judged:
            score, accepted = self._judge(result, np.concatenate(self._judged, axis=1))
            event = replace(event, grammar_score=score, accepted=accepted)
        return event, unheard

    def _lattice(self, result: DecodingResult) -> Lattice | None:
        """Return the lattice of an utterance, with times since the beginning of the audio."""
        if result.lattice is None:
            return None
        return self._later(slf_lattice(result.lattice, self.decoder.graph, self.decoder.options, period=self._period))

    def _later(self, lattice: Lattice) -> Lattice:
        return replace(lattice, time=lattice.time + self._seconds(self._first))

    def _event(
        self, words: Sequence[WordTimes], num_stable: int, confidences: Sequence[float | None] | None
    ) -> RecognitionEvent:
        seconds = self._seconds
        first = self._first
        timed = [
            Word(word.text, seconds(first + word.start), seconds(first + word.end), confidence)
            for word, confidence in zip(words, confidences or [None] * len(words), strict=True)
        ]
        return self._event_of(timed, num_stable)

    def _event_of(self, words: Sequence[Word], num_stable: int | None = None) -> RecognitionEvent:
        """Return the event of words with posterior probabilities; num_stable: by default all of them."""
        known = calibrated(words, self._calibrate)
        num_stable = len(known) if num_stable is None else num_stable
        return RecognitionEvent(self._seconds(self._first), self._seconds(self.num_frames), known, num_stable)

    def _seconds(self, num_frames: int) -> float:
        return num_frames * self._period / TICKS_PER_SECOND

    def _begin(self, silence: int) -> None:
        """Start the next utterance; it includes the second half of the silence, given in frames."""
        lead = min(silence // 2, self._recent.shape[1])
        self._first = self.num_frames - lead
        self._reported = ([], 0)
        self._search = SearchStream(self.decoder)
        self._judged = []
        if lead:
            self._advance(self._recent[:, -lead:])


def _finish(stages: Sequence[StreamStage], data: np.ndarray | None) -> np.ndarray | None:
    """End the input of stages, after `data` if there is any; return what the last one gives, `data` without stages."""
    for stage in stages:
        data = stage.finish() if data is None else np.concatenate([stage.push(data), stage.finish()], axis=-1)
    return data


def alternatives(
    words: list[Word], lattice: Lattice | None, count: int, calibrate: Callable[[float], float] | None
) -> list[list[Word]]:
    """Return the words of up to `count` hypotheses: those of the search, then the best others of a lattice."""
    try:
        hypotheses = [] if lattice is None else confident_hypotheses(lattice, count)
    except ArgonautError:  # a lattice without a path, for instance after an unfinished search
        hypotheses = []
    hypotheses = [calibrated(hypothesis, calibrate) for hypothesis in hypotheses]
    text = [word.text for word in words]
    other_hypotheses = [hypothesis for hypothesis in hypotheses if [word.text for word in hypothesis] != text]
    return [words, *other_hypotheses][: max(count, 1)]
