"""`argon --stream`: recognise audio while it arrives from a pipe, a microphone program or a long file.

Text output: a line `start end words` for each utterance when it has ended; on a terminal the current partial result is
shown below.
JSON output: one object per line, {"type": "partial", ...} for each change and {"type": "final", ...} for each end.
"""

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from readers.common.environment import Stopwatch
from readers.common.report import IRREGULAR, RunReport
from readers.common.stop_signals import stopping_signal
from readers.errors import ArgonautError, ConfigError
from readers.htk.units import TICKS_PER_SECOND
from recipes.cli.argon.decoding import note_files
from recipes.cli.argon.options import RUNNING_MEAN, spelled
from recipes.cli.argon.scores import chosen_channel, open_front_end, open_scorer, target_rate
from recipes.cli.argon.setup import INPUT_FILES, open_decoder
from recipes.cli.console import SIGNAL_BASE, one_line, show_losses
from recipes.cli.live_display import JsonDisplay, TextDisplay, recognised
from recipes.cli.raw_audio import raw_format

SAMPLES = 1600  # read per block
NOT_FOR_STREAMS = (
    "infiles", "scores", "alignmlf", "detailed_alignment", "lattice_prefix", "report", "widenings", "no_partial"
)  # fmt: skip


def stream(arguments: argparse.Namespace) -> int:
    from readers.common.files import require_writable
    from readers.results.timed_words import check_form

    for name in NOT_FOR_STREAMS:
        if getattr(arguments, name):
            raise ConfigError(f"command line: {spelled(name)} with --stream; expected it only without --stream")
    for name in ("am", "cntkmap", "features"):
        if not getattr(arguments, name):
            raise ConfigError(
                f"command line: {spelled(name)} is missing; expected it with --stream; argon -help shows the options"
            )
    if arguments.words:
        check_form(arguments.words)
    read = [getattr(arguments, name, None) for name in (*INPUT_FILES, "features", "stream")]
    for path in (arguments.words, arguments.outmlf):
        if path:
            require_writable(path, read)
    return Streaming(arguments).run()


class Streaming:
    """Recognition of one stream: displays events, keeps words and reports losses."""

    def __init__(self, arguments: argparse.Namespace):
        from acoustic.scoring.score_stream import ScoreStream
        from decoder.results.live_recognition import Recognition
        from readers.audio.audio_stream import STANDARD_INPUT, open_audio
        from readers.audio.resampling import Resampler

        self.arguments = arguments
        end, mean = endpoint(arguments), running_mean(arguments)
        decoder, scorer = open_decoder(arguments), open_scorer(arguments)
        decoder.check_outputs(scorer.num_outputs, arguments.am)
        ignore = arguments.ignore_feature_mismatch
        front_end = open_front_end(arguments, scorer)
        scores = ScoreStream(scorer, arguments.block)
        piped = arguments.stream == STANDARD_INPUT
        self.name, self.source = (
            ("stdin", "standard input") if piped else (Path(arguments.stream).stem, arguments.stream)
        )
        raw = raw_format(arguments)
        channel = chosen_channel(arguments, front_end)
        self.audio = open_audio(arguments.stream, SAMPLES, *(raw or (None,)), channel=channel)
        if front_end.config.speech_mean and arguments.running_mean != RUNNING_MEAN:
            raise ConfigError(
                f"command line: --running-mean with {arguments.features}, which has SPEECHMEAN; expected it for "
                "features without"
            )
        if front_end.config.has("Z") and not front_end.config.speech_mean:
            print(f"{arguments.features}: {mean_text(mean)}", file=sys.stderr)
        rate = self.audio.rate
        target = target_rate(front_end, rate, self.source, arguments.upsample, ignore)
        front_end.check_rate(target, self.source)
        resampling = [] if target == rate else [Resampler(rate, target)]
        with self.naming(f"{arguments.features} and {self.source}"):
            features = front_end.feature_stream(target, mean)
        self.period, columns = front_end.period(target), scorer.num_columns(arguments.block)
        self.recognition = Recognition(decoder, [*resampling, features, scores], self.period, end, columns)
        self.show = JsonDisplay() if arguments.json else TextDisplay(times=True)
        self.report = RunReport("utterances")
        self.words: list = []

    @contextlib.contextmanager
    def naming(self, name: str) -> Iterator[None]:
        """Prefix errors raised in the body with `name`."""
        try:
            yield
        except ArgonautError as fault:
            if str(fault).startswith(f"{name}: "):
                raise
            raise type(fault)(f"{name}: {fault}") from fault

    def run(self) -> int:
        stopwatch = Stopwatch()
        try:
            with self.naming(self.source):
                for event in recognised(self.recognition, self.audio.blocks):
                    self.take(event)
        except ArgonautError as fault:  # keep the words recognised before
            if not self.recognition.num_frames:
                raise
            self.report.fail(self.name, one_line(fault))
        self.report.marked += [(self.name, IRREGULAR, note) for note in self.audio.notes]
        self.write()
        frames = self.recognition.num_frames
        show_losses(self.report, None, self.arguments.verbose, self.arguments.stream)
        self.show.close(self.report, frames, stopwatch.seconds * TICKS_PER_SECOND / (frames * self.period))
        stopped = stopping_signal()
        return self.report.exit_status if stopped == signal.SIGINT else SIGNAL_BASE + stopped

    def take(self, event) -> None:
        self.show(event)
        if not event.is_final:
            return
        if event.reason:
            name = f"{self.name} {event.start:.2f}-{event.end:.2f} s"
            self.report.mark(name, "unfinished", event.reason)
        else:
            self.report.done()
        if self.arguments.words or self.arguments.outmlf:
            self.words += event.words

    def write(self) -> None:
        from readers.htk.mlf import Label, write_mlf
        from readers.results.timed_words import write_words

        if self.arguments.words:
            seconds = self.recognition.num_frames * self.period / TICKS_PER_SECOND
            written = write_words(self.arguments.words, {self.name: self.words}, durations={self.name: seconds})
            note_files(self.arguments.words, written)
        if self.arguments.outmlf:
            labels = [Label(_ticks(word.start), _ticks(word.end), word.text) for word in self.words]
            write_mlf(self.arguments.outmlf, [(f"*/{self.name}.rec", labels)])


def _ticks(seconds: float) -> int:
    return round(seconds * TICKS_PER_SECOND)


def endpoint(arguments: argparse.Namespace):
    from decoder.results.live_recognition import Endpoint

    return None if arguments.whole else Endpoint(arguments.pause, arguments.longest, arguments.no_speech)


def running_mean(arguments: argparse.Namespace):
    from features.streaming import RunningMean
    from readers.common.text import is_count

    text = arguments.running_mean
    if text == "whole":
        return RunningMean(None)
    start, _, memory = text.partition(":")
    if not is_count(start) or not is_count(memory or start):
        raise ConfigError(
            f"command line: --running-mean {text}; expected START:MEMORY in frames, such as 100:600, or whole"
        )
    return RunningMean(int(start), int(memory or start))


def mean_text(mean) -> str:
    """Return what is subtracted for _Z, whose mean over the utterance a stream does not know."""
    if mean.start is None:
        return "_Z subtracts the mean of the whole input, so words appear only at its end"
    return (
        f"_Z subtracts the mean of the last {mean.memory} frames instead of that of the utterance, and words are "
        f"delayed by the first {mean.start} frames (--running-mean)"
    )
