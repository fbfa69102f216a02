"""Long recordings: a search of the stream finds the pauses, then each utterance is recognised on its own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from decoder.grammars.slots import SlotParse, SlotSpan
from decoder.recognizer.front_end import FrontEnd
from decoder.recognizer.recording import Progress, Recording
from decoder.recognizer.transcript import Transcript
from decoder.results.live_recognition import Endpoint, Recognition, RecognitionEvent
from decoder.search.decoder import Decoder
from features import RunningMean, frame_period
from readers.audio.resampling import Resampler
from readers.errors import ConfigError, ModelError
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import Word

FRAMES = 10  # between two looks at the words
SHORTEST = 0.1  # seconds of an utterance


def transcribe_long(
    recording: Recording,
    front_end: FrontEnd,
    decoder: Decoder,
    recognize: Callable[[Recording, np.ndarray, float], Transcript],
    progress: Progress | None,
) -> Transcript:
    """Recognise a recording in bounded memory.

    recognize: returns the transcript of samples at the target rate, from that second of the recording on.  The result
    has no lattice.  With a grammar, its score is the lowest of all utterances.
    """
    division = _Division(recording, front_end, decoder)
    words: list[Word] = []
    phones: list[Word] = []
    reasons: list[str] = []
    scores: list[float] = []
    accepted: list[bool | None] = []
    lengths: list[int] = []
    for start, samples in division.utterances(progress):
        transcript = recognize(recording, samples, start)
        words += _later(transcript.words, start)
        phones += _later(transcript.phones, start)
        lengths.append(len(transcript.words))
        scores += [] if transcript.grammar_score is None else [transcript.grammar_score]
        accepted.append(transcript.accepted)
        end = start + len(samples) / recording.target
        reasons += [f"{start:.2f}-{end:.2f} s: {transcript.reason}"] if transcript.reason else []
    more = f", and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    joined = Transcript(tuple(words), reasons[0] + more if reasons else "", recording.seconds, tuple(phones))
    if len(scores) < len(accepted) or not scores:
        return joined
    parse = None if transcript.parse_slots is None else partial(_slots_of_each, transcript.parse_slots, lengths)
    return replace(joined, grammar_score=min(scores), accepted=all(accepted), parse_slots=parse)


def _later(labels: Sequence[Word], seconds: float) -> list[Word]:
    """Return labels with times that are so much later."""
    return [label._replace(start=label.start + seconds, end=label.end + seconds) for label in labels]


def _slots_of_each(parse: SlotParse, lengths: Sequence[int], words: Sequence[str]) -> list[SlotSpan]:
    """Return the tags of utterances of so many words: each is a sentence of its own."""
    spans: list[SlotSpan] = []
    first = 0
    for length in lengths:
        of_utterance = parse(words[first : first + length])
        spans += [SlotSpan(tag, first + begin, first + end) for tag, begin, end in of_utterance]
        first += length
    return spans


class _Division:
    """Divides a recording into utterances; keeps the samples from the beginning of the current one."""

    def __init__(self, recording: Recording, front_end: FrontEnd, decoder: Decoder):
        self.recording = recording
        self.rate = recording.target
        # The window of the last frame ends after the time of the next frame.
        beyond = front_end.config.window_size - frame_period(front_end.config, self.rate)
        self.overlap = max(0, round(beyond * self.rate / TICKS_PER_SECOND))
        try:
            block = front_end.block(FRAMES)
            stages = front_end.stages(self.rate, RunningMean(), block)
        except (ConfigError, ModelError) as fault:
            raise ConfigError(
                f"{recording.where}: long, so that it must be divided at pauses, but {fault}; without the limit "
                "longest (transcribe: whole) it is recognised as a whole"
            ) from fault
        searching = decoder.with_options(lattice_beam=None)
        columns = front_end.scorer.num_columns(block)
        self.recognition = Recognition(searching, stages, front_end.period(self.rate), Endpoint(), columns)
        self.kept = np.zeros(0, np.float32)
        self.first = 0  # position of the first sample that is kept

    def utterances(self, progress: Progress | None) -> Iterator[tuple[float, np.ndarray]]:
        """Yield (start in seconds, samples) of each utterance."""
        recording = self.recording
        resampler = None if recording.rate == self.rate else Resampler(recording.rate, self.rate)
        for block in recording.blocks():
            yield from self.push(block if resampler is None else resampler.push(block))
            if progress is not None:
                progress(recording.seconds, recording.total and recording.total / recording.rate)
        if resampler is not None:
            yield from self.push(resampler.finish())
        yield from self.cut(self.recognition.finish())

    def push(self, samples: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        self.kept = np.concatenate([self.kept, samples])
        yield from self.cut(self.recognition.push(samples))
        begin = round(self.recognition.start * self.rate)
        self.kept = self.kept[begin - self.first :]
        self.first = begin

    def cut(self, events: list[RecognitionEvent]) -> Iterator[tuple[float, np.ndarray]]:
        for event in events:
            if event.is_final and event.end - event.start >= SHORTEST:
                begin, end = round(event.start * self.rate), round(event.end * self.rate) + self.overlap
                yield event.start, self.kept[begin - self.first : end - self.first]
