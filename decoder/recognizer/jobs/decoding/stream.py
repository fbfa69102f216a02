"""Recognises audio while it arrives from a pipe, a microphone program or a long file."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from acoustic.scoring.score_stream import ScoreStream
from decoder.recognizer.jobs.decoding.audio import chosen_channel, open_front_end, target_rate
from decoder.recognizer.jobs.decoding.network import open_scorer
from decoder.recognizer.jobs.decoding.opening import open_decoder
from decoder.recognizer.jobs.decoding.options import DecodeOptions, StreamOptions, flag_of
from decoder.recognizer.jobs.live import BLOCK, LiveResult
from decoder.results.live_recognition import Endpoint, Recognition, RecognitionEvent
from features.streaming import RunningMean
from readers.audio.audio_stream import STANDARD_INPUT, open_audio
from readers.audio.raw import PCM_16
from readers.audio.resampling import Resampler
from readers.common.environment import Stopwatch, using_cores
from readers.common.faults import one_line, prefixing
from readers.common.files import require_writable
from readers.common.report import IRREGULAR, Log, RunReport, silent
from readers.errors import ArgonautError
from readers.htk.mlf import Label, write_mlf
from readers.htk.units import TICKS_PER_SECOND
from readers.results.timed_words import Word, check_form, words_note, write_words


def decode_stream(
    options: DecodeOptions, *, take: Callable[[RecognitionEvent], None] = silent, log: Log = silent
) -> LiveResult:
    """Recognise audio while it arrives.  Ctrl-C ends it, and what has arrived is finished.

    Parameters
    ----------
    options : DecodeOptions
        With `streaming.stream`.
    take : callable
        Receives each event: words so far, and those of an utterance that has ended.
    log : callable
        Receives notes on the search, on the mean of features and about files.

    Returns
    -------
    LiveResult

    Raises
    ------
    ArgonautError, OSError
        Before the first event; a fault of the audio after it ends the stream, and the report has it.

    Examples
    --------
    ``decode_stream(options, take=lambda event: print(event.text))``
    """
    options.streaming.require("stream", bool(options.streaming.stream), "is missing; expected audio")
    output = options.output
    if output.words:
        check_form(output.words)
    for path in (output.words, output.outmlf):
        if path:
            require_writable(path, options.inputs)
    threads = options.search.threads
    with using_cores(threads) if threads else contextlib.nullcontext():
        return _Stream(options, log).run(take)


class _Stream:
    """Recognition of one stream: keeps words and reports losses."""

    def __init__(self, options: DecodeOptions, log: Log):
        self.output = options.output
        streaming = options.streaming
        acoustic = options.acoustic
        self.log = log
        end = None if streaming.whole else Endpoint(streaming.pause, streaming.longest, streaming.no_speech)
        mean = _running_mean(streaming.running_mean)
        decoder = open_decoder(options, log)
        scorer = open_scorer(acoustic, log)
        decoder.check_outputs(scorer.num_outputs, f"{acoustic.am}")
        front_end = open_front_end(acoustic, scorer, log)
        scores = ScoreStream(scorer, streaming.block)
        is_piped = streaming.stream == STANDARD_INPUT
        self.name = "stdin" if is_piped else Path(streaming.stream).stem
        self.source = "standard input" if is_piped else streaming.stream
        raw = acoustic.reading.raw
        channel = chosen_channel(acoustic, front_end)
        rate, encoding, channels = raw or (None, PCM_16, 1)
        self.audio = open_audio(streaming.stream, BLOCK, rate, encoding, channels, channel)
        has_speech_mean = front_end.config.speech_mean
        is_default = streaming.running_mean == StreamOptions.running_mean
        fault = f"is given with {acoustic.features}, which has SPEECHMEAN; expected it for features without"
        options.require("running_mean", is_default or not has_speech_mean, fault)
        if front_end.config.has("Z") and not has_speech_mean:
            log(f"{acoustic.features}: {_mean_text(mean)}")
        rate = self.audio.rate
        target = target_rate(acoustic, front_end, rate, self.source)
        front_end.check_rate(target, self.source)
        resampling = [] if target == rate else [Resampler(rate, target)]
        with prefixing(f"{acoustic.features} and {self.source}"):
            features = front_end.feature_stream(target, mean)
        self.period = front_end.period(target)
        columns = scorer.num_columns(streaming.block)
        self.recognition = Recognition(decoder, [*resampling, features, scores], self.period, end, columns)
        self.report = RunReport("utterances")
        self.words: list[Word] = []

    def run(self, take: Callable[[RecognitionEvent], None]) -> LiveResult:
        stopwatch = Stopwatch()
        try:
            with prefixing(self.source):
                for event in self.recognition.events(self.audio.blocks):
                    take(event)
                    self.count(event)
        except ArgonautError as fault:  # keep the words recognised before
            if not self.recognition.num_frames:
                raise
            self.report.fail(self.name, one_line(fault))
        self.report.marked += [(self.name, IRREGULAR, note) for note in self.audio.notes]
        self.write()
        frames = self.recognition.num_frames
        return LiveResult(self.report, frames, stopwatch.seconds * TICKS_PER_SECOND / (frames * self.period))

    def count(self, event: RecognitionEvent) -> None:
        if not event.is_final:
            return
        if event.reason:
            name = f"{self.name} {event.start:.2f}-{event.end:.2f} s"
            self.report.mark(name, "unfinished", event.reason)
        else:
            self.report.done()
        if self.output.words or self.output.outmlf:
            self.words += event.words

    def write(self) -> None:
        if self.output.words:
            seconds = self.recognition.num_frames * self.period / TICKS_PER_SECOND
            written = write_words(self.output.words, {self.name: self.words}, durations={self.name: seconds})
            if note := words_note(self.output.words, written):
                self.log(note)
        if self.output.outmlf:
            labels = [Label(_ticks(word.start), _ticks(word.end), word.text) for word in self.words]
            write_mlf(self.output.outmlf, [(f"*/{self.name}.rec", labels)])


def _ticks(seconds: float) -> int:
    return round(seconds * TICKS_PER_SECOND)


def _running_mean(text: str) -> RunningMean:
    if text == "whole":
        return RunningMean(None)
    start, _, memory = text.partition(":")
    return RunningMean(int(start), int(memory or start))


def _mean_text(mean: RunningMean) -> str:
    """Return what is subtracted for _Z, whose mean over the utterance a stream does not know."""
    if mean.start is None:
        return "_Z subtracts the mean of the whole input, so words appear only at its end"
    return (
        f"_Z subtracts the mean of the last {mean.memory} frames instead of that of the utterance, and words are "
        f"delayed by the first {mean.start} frames ({flag_of('running_mean')})"
    )
