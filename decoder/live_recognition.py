"""Audio that goes on and on, in words: features, scores and search of what comes in, cut into utterances at pauses.

    recognition = Recognition(decoder, [FeatureStream(config, rate), ScoreStream(scorer)], period)
    for samples in blocks:
        for event in recognition.push(samples):
            ...
    events = recognition.finish()

What is found does not depend on how the audio is cut into blocks.  With endpoint = None there is one utterance, and its
result is that of `Decoder.decode`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from decoder.search.decoder import Decoder
from decoder.search.path import WordTimes
from decoder.search.search_stream import Partial, SearchStream
from readers.errors import ConfigError
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import TimedWord


class Stage(Protocol):
    """Turns what comes in, (rows, n) or samples (n,), into what comes out, (rows, n), in its own time."""

    def push(self, data: np.ndarray) -> np.ndarray: ...

    def finish(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Endpoint:
    """When an utterance is over, in seconds.

    pause: silence after words that ends it.  longest: an utterance as long ends wherever it is; from half of that on,
    shorter and shorter pauses end it.  no_speech: silence without words before it after which the search begins anew.
    Where every token has crossed </s> it is over, too.
    Raises ConfigError for times that make no sense.
    """

    pause: float = 0.8
    longest: float = 30.0
    no_speech: float = 5.0

    def __post_init__(self):
        if not 0 < self.pause <= self.no_speech or not self.pause <= self.longest:
            raise ConfigError(
                f"end of utterances: a pause of {self.pause:g} s, at the latest after {self.longest:g} s, without "
                f"words after {self.no_speech:g} s; expected a pause above 0 and the others at least as long"
            )

    def needed(self, seconds: float) -> float:
        """The pause that ends an utterance of so many seconds."""
        return self.pause * min(1.0, max(0.0, 2.0 - 2.0 * seconds / self.longest))


@dataclass(frozen=True)
class Event:
    """What has been found of an utterance that begins at `start` and is heard until `end`, in seconds of the audio.

    words: num_stable of them can change no more.  is_final: the utterance is over; reason: "" if a path reached its
    end, else why these are the words of an unfinished one, or none.
    """

    start: float
    end: float
    words: list[TimedWord]
    num_stable: int
    is_final: bool = False
    reason: str = ""

    @property
    def text(self) -> str:
        return " ".join(word.word for word in self.words)

    @property
    def stable(self) -> str:
        return " ".join(word.word for word in self.words[: self.num_stable])

    @property
    def unstable(self) -> str:
        return " ".join(word.word for word in self.words[self.num_stable :])


class Recognition:
    """One stream: `push` what the first stage takes, `finish` once; both return Events.

    decoder: without a lattice; unfinished paths are given where no token is final.  stages: what makes scores of what
    is pushed, in order; none: scores (K, n) are pushed.  period: 100 ns ticks per frame.  block: after so many frames
    each it is looked what has been found.
    """

    def __init__(
        self,
        decoder: Decoder,
        stages: Sequence[Stage],
        period: int,
        endpoint: Endpoint | None = None,
        block: int = 10,
    ):
        if block < 1:
            raise ConfigError(f"blocks of {block} frames; expected at least 1")
        self.decoder = decoder if decoder.options.partial else decoder.with_options(partial=True)
        self.stages, self.endpoint, self.block = stages, endpoint, block
        self._period = period
        self._waiting: list[np.ndarray] = []  # scores of less than a block
        self._recent = np.zeros((0, 0), np.float32)  # scores of the last frames, of which the next utterance has some
        self._lead = 0 if endpoint is None else round(endpoint.pause / 2 / self._seconds(1))
        self._first = 0  # frame that the utterance begins with
        self._told: tuple[list[str], int] = ([], 0)
        self._search = SearchStream(self.decoder)

    def push(self, data: np.ndarray) -> list[Event]:
        for stage in self.stages:
            data = stage.push(data)
        return self._take(data, False)

    def finish(self) -> list[Event]:
        data = None
        for stage in self.stages:
            data = stage.finish() if data is None else np.concatenate([stage.push(data), stage.finish()], axis=1)
        events = self._take(data, True)
        heard = self._search.partial().heard
        last = self._end()
        if self.endpoint is None or last.words or (last.reason and heard):
            events.append(last)
        return events

    @property
    def num_frames(self) -> int:
        """Frames that the search has eaten since the beginning of the audio."""
        return self._first + self._search.num_frames

    def _take(self, scores: np.ndarray | None, ended: bool) -> list[Event]:
        """Search block by block; what is left of the last one waits, unless the audio has ended."""
        self._waiting += [] if scores is None else [scores]
        count = sum(part.shape[1] for part in self._waiting)
        if not count or (count < self.block and not ended):
            return []
        scores, events, begin = np.concatenate(self._waiting, axis=1), [], 0
        while count - begin >= self.block or (ended and begin < count):
            events += self._search_block(scores[:, begin : begin + self.block])
            begin += self.block
        self._waiting = [scores[:, begin:]] if begin < count else []
        return events

    def _search_block(self, scores: np.ndarray) -> list[Event]:
        self._search.push(scores)
        if self._lead:
            self._recent = np.concatenate([self._recent, scores], axis=1) if self._recent.size else scores
            self._recent = self._recent[:, -self._lead :]
        partial, alive = self._search.partial(), self._search.alive
        if self.endpoint is not None and (not alive or self._is_over(partial)):
            last = self._end()
            self._begin(partial.silence if alive else 0)
            return [last] if last.words or partial.heard or not alive else []
        told = [word.word for word in partial.words], partial.num_stable
        if told == self._told or not partial.words:
            return []
        self._told = told
        return [self._event(partial.words, partial.num_stable)]

    def _is_over(self, partial: Partial) -> bool:
        if partial.over:
            return True
        silence = self._seconds(partial.silence) + 1e-9
        if not partial.heard:
            return silence >= self.endpoint.no_speech
        return silence >= self.endpoint.needed(self._seconds(partial.num_frames))

    def _end(self) -> Event:
        result = self._search.finish()
        return self._event(result.words, len(result.words), True, result.reason)

    def _event(self, words: Sequence[WordTimes], num_stable: int, is_final: bool = False, reason: str = "") -> Event:
        seconds, first = self._seconds, self._first
        timed = [TimedWord(word.word, seconds(first + word.start), seconds(first + word.end)) for word in words]
        return Event(seconds(first), seconds(self.num_frames), timed, num_stable, is_final, reason)

    def _seconds(self, num_frames: int) -> float:
        return num_frames * self._period / TICKS_PER_SECOND

    def _begin(self, silence: int) -> None:
        """The next utterance; the second half of the silence, in frames, is its, too."""
        lead = min(silence // 2, self._recent.shape[1])
        self._first = self.num_frames - lead
        self._told = ([], 0)
        self._search = SearchStream(self.decoder)
        if lead:
            self._search.push(self._recent[:, -lead:])
