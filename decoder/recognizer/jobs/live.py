"""The job that recognises one recording while it arrives."""

from collections.abc import Callable
from dataclasses import dataclass

from decoder.recognizer.front_end import FULL_SCALE
from decoder.recognizer.jobs.options import TranscribeOptions
from decoder.recognizer.jobs.recordings import find_recordings
from decoder.recognizer.jobs.transcription import open_recognizer, rejection
from decoder.results.live_recognition import RecognitionEvent
from readers.audio.audio_stream import open_audio
from readers.audio.raw import PCM_16
from readers.common.environment import Stopwatch, available_cores, using_cores
from readers.common.faults import one_line
from readers.common.report import IRREGULAR, Log, RunReport, silent
from readers.errors import ArgonautError
from readers.htk.units import TICKS_PER_SECOND

BLOCK = 1600  # samples read at a time


@dataclass(frozen=True)
class LiveResult:
    """What was recognised while a recording arrived.

    Attributes
    ----------
    report : RunReport
        Its utterances; a fault that ended the recording.
    num_frames : int
    real_time_factor : float
        Seconds that recognition took, waiting included, per second of audio.
    """

    report: RunReport
    num_frames: int = 0
    real_time_factor: float = 0.0


def transcribe_live(
    options: TranscribeOptions,
    *,
    take: Callable[[RecognitionEvent], None] = silent,
    log: Log = silent,
    confidences: bool = True,
) -> LiveResult:
    """Recognise one recording while it arrives.  Ctrl-C ends the recording, and what has arrived is finished.

    Parameters
    ----------
    options : TranscribeOptions
        Its `audio` is one file, or `-`.
    take : callable
        Receives each event: words so far, and those of an utterance that has ended.
    log : callable
        Receives lines about hotwords.
    confidences : bool
        Whether what `take` receives has confidences and lattices; without them the search is faster.

    Returns
    -------
    LiveResult

    Raises
    ------
    ArgonautError, OSError
        Before the first event; a fault of the audio after it ends the recording, and the report has it.

    Examples
    --------
    ``transcribe_live(TranscribeOptions(bundle="en.argo", audio=["-"]), take=lambda event: print(event.text))``
    """
    recordings, _ = find_recordings(options.audio, options.reading.raw is not None)
    options.require("stream", len(recordings) == 1, f"is given for {len(recordings)} files; expected one")
    where = recordings[0].where
    report = RunReport("utterances")
    with using_cores(options.threads or available_cores()):
        recognizer = open_recognizer(options, confidences, log)
        front_end = recognizer.front_end
        raw = options.reading.raw
        channel = front_end.config.channel if options.reading.channel is None else options.reading.channel
        rate, encoding, channels = raw or (None, PCM_16, 1)
        audio = open_audio(recordings[0].path, BLOCK, rate, encoding, channels, channel)
        period = front_end.period(front_end.target_rate(audio.rate, where, options.reading.upsample))
        recognition = recognizer.with_audio(channel="mix").stream(audio.rate)  # of the one that was opened
        stopwatch = Stopwatch()
        try:
            for event in recognition.events(block / FULL_SCALE for block in audio.blocks):
                take(event)
                utterance = f"{where} {event.start:.2f}-{event.end:.2f} s"
                if event.is_final and event.reason:
                    report.mark(utterance, "unfinished", event.reason)
                elif event.accepted is False:
                    report.mark(utterance, "rejected", rejection(recognizer, event.grammar_score))
                elif event.is_final:
                    report.done()
        except ArgonautError as fault:  # the words recognised before have been handed over
            report.fail(where, one_line(fault))
        report.marked += [(where, IRREGULAR, note) for note in audio.notes]
    seconds = recognition.num_frames * period / TICKS_PER_SECOND
    return LiveResult(report, recognition.num_frames, stopwatch.seconds / seconds if seconds else 0.0)
