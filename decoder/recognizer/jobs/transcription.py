"""The job that recognises recordings with a bundle, and hands over or writes their words."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from decoder.recognizer.jobs.delivery import Delivery
from decoder.recognizer.jobs.options import JOINED, NAMED, TranscribeOptions
from decoder.recognizer.jobs.recordings import RecordingFile, by_name
from decoder.recognizer.jobs.transcript_files import FORMATS, write_transcript
from decoder.recognizer.recognizer import Recognizer
from decoder.recognizer.transcript import Transcript
from readers.common.environment import available_cores, using_cores
from readers.common.report import Log, Progress, RunReport, silent


@dataclass(frozen=True)
class TranscribedFile:
    """A recording and its words.

    Attributes
    ----------
    recording : RecordingFile
    transcript : Transcript
    num_files : int
        Number of recordings of the job.
    """

    recording: RecordingFile
    transcript: Transcript
    num_files: int


@dataclass(frozen=True)
class TranscribeResult:
    """What was recognised.

    Attributes
    ----------
    report : RunReport
        The recordings that were recognised, and those that were not, with the reasons.
    num_files, num_words : int
        Number of recordings, and of the words that were recognised.
    seconds : float
        Duration of the audio.
    paths : tuple of Path
        Files that were written.
    """

    report: RunReport
    num_files: int = 0
    num_words: int = 0
    seconds: float = 0.0
    paths: tuple[Path, ...] = ()


def transcribe(
    options: TranscribeOptions,
    *,
    take: Callable[[TranscribedFile], None] = silent,
    progress: Progress = silent,
    log: Log = silent,
    confidences: bool = True,
) -> TranscribeResult:
    """Recognise recordings in threads; write a file for each if `options.output` is given.

    Parameters
    ----------
    options : TranscribeOptions
    take : callable
        Receives each recording that was recognised, in order, as soon as it and those before are done.  A recording
        for which it raises an ArgonautError or OSError is one that failed.
    progress : callable
        Called as ``progress(files done, files, unit="files", audio="0:01:30")``, for a single recording as
        ``progress(seconds done, seconds or None, unit="seconds")``.
    log : callable
        Receives lines about hotwords, new words and guessed pronunciations.
    confidences : bool
        Whether what `take` receives has confidences and lattices; without them the search is faster.

    Returns
    -------
    TranscribeResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in what all recordings share; the report lists faults of single recordings.

    Examples
    --------
    ``transcribe(TranscribeOptions(bundle="en.argo", audio=["talks/"], format="srt", output="subtitles")).paths``
    """
    options.require("stream", not options.stream, "is given; expected a job of live audio")
    hotwords = options.hotwords
    inputs = (options.bundle, options.grammar, hotwords.hotwords, hotwords.words, hotwords.g2p)
    delivery = Delivery[Transcript](options, FORMATS[options.format], inputs)
    recordings = delivery.recordings
    _check_names(options, recordings)
    counter = _Counter(len(recordings), progress)
    num_words = 0
    seconds = 0.0
    with using_cores(options.threads or available_cores()):
        recognizer = open_recognizer(options, confidences, log)

        def recognise(recording: RecordingFile) -> Transcript:
            transcript = recognizer.transcribe(recording.path, progress=partial(counter.heard, recording.path))
            counter.heard(recording.path, transcript.seconds, transcript.seconds)
            return transcript

        def deliver(recording: RecordingFile, transcript: Transcript, file: Path | None) -> None:
            if file is not None:
                write_transcript(file, options.format, recording, transcript, options.nbest)
            take(TranscribedFile(recording, transcript, len(recordings)))

        for recording, transcript in delivery.results(recognise, deliver):
            if transcript is not None:
                num_words += len(transcript.spoken)
                seconds += transcript.seconds
                _count(delivery.report, recording, transcript, recognizer)
            counter.done()
    return TranscribeResult(delivery.report, len(recordings), num_words, seconds, tuple(delivery.paths))


def open_recognizer(options: TranscribeOptions, confidences: bool, log: Log = silent) -> Recognizer:
    """Open the bundle, with the grammar and the hotwords, for the audio that the options describe."""
    reading = options.reading
    recognizer = Recognizer.load(options.bundle).with_audio(
        channel=reading.channel, upsample=reading.upsample, raw=reading.raw
    )
    if not confidences and not options.needs_lattice and recognizer.second_pass is None:
        recognizer = recognizer.with_options(lattice_beam=None)
    recognizer = options.hotwords.with_words(recognizer, log)
    if options.grammar is not None:
        chosen: dict[str, Any] = {} if options.threshold is None else {"threshold": options.threshold}
        recognizer = recognizer.with_grammar(options.grammar, **chosen)
    recognizer = options.hotwords.applied_to(recognizer, log)
    recognizer = recognizer.with_phones() if options.phones else recognizer
    return recognizer.with_audio(longest=None) if options.whole else recognizer


def _check_names(options: TranscribeOptions, recordings: Sequence[RecordingFile]) -> None:
    """Raise ConfigError if the results of the recordings cannot be told apart."""
    form = options.format
    fits = options.output is not None or form in JOINED or len(recordings) == 1
    wrong = f"is {form} for {len(recordings)} files without {{output}}; expected a directory"
    options.require("format", fits, wrong)
    if form in NAMED:
        by_name(recordings)


def _count(report: RunReport, recording: RecordingFile, transcript: Transcript, recognizer: Recognizer) -> None:
    """Enter a recording into the report."""
    if transcript.reason:
        report.mark(recording.where, "unfinished", transcript.reason)
    elif transcript.accepted is False:
        report.mark(recording.where, "rejected", rejection(recognizer, transcript.grammar_score))
    else:
        report.done()


def rejection(recognizer: Recognizer, score: float | None) -> str:
    """Return why the grammar of a recogniser rejects an utterance with this score."""
    assert recognizer.grammar is not None
    return f"grammar score {score:.3f}; expected at least {recognizer.grammar.options.threshold:g}"


class _Counter:
    """Tells how many recordings are done, or of a single one, how many seconds."""

    def __init__(self, total: int, progress: Progress):
        self.total = total
        self.progress = progress
        self.count = 0
        self.seconds: dict[str, float] = {}
        self.lock = threading.Lock()

    def heard(self, path: str, seconds: float, total: float | None) -> None:
        """Take how many seconds of a recording are done; called by any thread."""
        with self.lock:
            self.seconds[path] = seconds
            if self.total == 1:
                self.progress(round(seconds), None if total is None else round(total), unit="seconds")
            else:
                self._tell_files()

    def done(self) -> None:
        """Count a recording."""
        with self.lock:
            self.count += 1
            if self.total > 1:
                self._tell_files()

    def _tell_files(self) -> None:
        self.progress(self.count, self.total, unit="files", audio=clock(sum(self.seconds.values())))


def clock(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds, such as 1:02:05."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
