"""The job that recognises recordings with a bundle, and hands over or writes their words."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from decoder.recognizer.jobs.options import JOINED, NAMED, TranscribeOptions
from decoder.recognizer.jobs.recordings import RecordingFile, by_name, find_recordings
from decoder.recognizer.jobs.transcript_files import FORMATS, write_transcript
from decoder.recognizer.recognizer import Recognizer
from decoder.recognizer.transcript import Transcript
from decoder.search.batch import in_order
from readers.common.environment import available_cores, using_cores
from readers.common.faults import one_line
from readers.common.files import require_writable
from readers.common.report import IRREGULAR, Log, Progress, RunReport, silent
from readers.errors import ArgonautError


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
        Receives lines about hotwords and guessed pronunciations.
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
    recordings, unread = find_recordings(options.audio, options.reading.raw is not None)
    _check_names(options, recordings)
    if options.output is not None:
        require_writable(options.output / "transcript")
    counter = _Counter(len(recordings), progress)
    with using_cores(options.threads or available_cores()):
        recognizer = open_recognizer(options, confidences, log)
        delivery = _Delivery(options, recognizer, len(recordings), take)
        for path in unread:
            delivery.report.skip(path, f"{path}: {Path(path).suffix} cannot be read; convert it to WAV")

        def recognise(recording: RecordingFile) -> Transcript:
            transcript = recognizer.transcribe(recording.path, progress=partial(counter.heard, recording.path))
            counter.heard(recording.path, transcript.seconds, transcript.seconds)
            return transcript

        for recording, transcript in in_order(recognise, recordings, options.threads):
            delivery.add(recording, transcript)
            counter.done()
    return TranscribeResult(
        delivery.report, len(recordings), delivery.num_words, delivery.seconds, tuple(delivery.paths)
    )


def open_recognizer(options: TranscribeOptions, confidences: bool, log: Log = silent) -> Recognizer:
    """Open the bundle, with the grammar and the hotwords, for the audio that the options describe."""
    reading = options.reading
    recognizer = Recognizer.load(options.bundle).with_audio(
        channel=reading.channel, upsample=reading.upsample, raw=reading.raw
    )
    if not confidences and not options.needs_lattice:
        recognizer = recognizer.with_options(lattice_beam=None)
    if options.grammar is not None:
        recognizer = recognizer.with_grammar(options.grammar)
        for entry in recognizer.guessed:
            log(f"guessed: {entry.word}: {' '.join(entry.phones)}")
    recognizer = options.hotwords.applied_to(recognizer, log)
    return recognizer.with_audio(longest=None) if options.whole else recognizer


def _check_names(options: TranscribeOptions, recordings: Sequence[RecordingFile]) -> None:
    """Raise ConfigError if the results of the recordings cannot be told apart."""
    form = options.format
    is_written = options.output is not None
    fits = is_written or form in JOINED or len(recordings) == 1
    wrong = f"is {form} for {len(recordings)} files without {{output}}; expected a directory"
    options.require("format", fits, wrong)
    if is_written or form in NAMED:
        by_name(recordings)


class _Delivery:
    """Writes and hands over transcripts, and counts them."""

    def __init__(
        self,
        options: TranscribeOptions,
        recognizer: Recognizer,
        num_files: int,
        take: Callable[[TranscribedFile], None],
    ):
        self.options = options
        self.recognizer = recognizer
        self.num_files = num_files
        self.take = take
        self.report = RunReport("files")
        self.paths = list[Path]()
        self.num_words = 0
        self.seconds = 0.0

    def add(self, recording: RecordingFile, transcript: Transcript | Exception) -> None:
        """Deliver a transcript, or an error in its place, and count it."""
        if not isinstance(transcript, Exception):
            self.report.marked += [(recording.where, IRREGULAR, note) for note in transcript.notes]
            try:
                self._deliver(recording, transcript)
            except BrokenPipeError:
                raise
            except (ArgonautError, OSError) as fault:
                transcript = fault
        if isinstance(transcript, Exception):
            self.report.fail(recording.where, one_line(transcript))
            return
        self.num_words += len(transcript.spoken)
        self.seconds += transcript.seconds
        if transcript.reason:
            self.report.mark(recording.where, "unfinished", transcript.reason)
        elif transcript.accepted is False and self.recognizer.grammar is not None:
            score = transcript.grammar_score
            threshold = self.recognizer.grammar.options.threshold
            reason = f"grammar score {score:.2f}; expected at least {threshold:g}"
            self.report.mark(recording.where, "rejected", reason)
        else:
            self.report.done()

    def _deliver(self, recording: RecordingFile, transcript: Transcript) -> None:
        options = self.options
        if options.output is not None:
            file = options.output / f"{recording.name}.{FORMATS[options.format]}"
            write_transcript(file, options.format, recording, transcript, options.nbest)
            self.paths.append(file)
        self.take(TranscribedFile(recording, transcript, self.num_files))


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
