"""The job that scores how well recordings of known words are pronounced."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from decoder.recognizer.jobs.delivery import Delivery
from decoder.recognizer.jobs.pronunciation.assessor import PronunciationAssessor
from decoder.recognizer.jobs.pronunciation.options import PronounceOptions
from decoder.recognizer.jobs.pronunciation.result import Pronunciation
from decoder.recognizer.jobs.recordings import RecordingFile, by_name
from decoder.recognizer.recording import AudioOptions
from decoder.scoring.error_counts import match_names
from decoder.scoring.words import read_words
from readers.common.environment import available_cores, using_cores
from readers.common.report import Progress, RunReport, silent
from readers.errors import ConfigError

EXTENSIONS = {"text": "txt", "json": "json", "csv": "csv", "textgrid": "TextGrid"}  # format -> that of its files


@dataclass(frozen=True)
class PronouncedFile:
    """A recording and its scores.

    Attributes
    ----------
    recording : RecordingFile
    pronunciation : Pronunciation
    num_files : int
        Number of recordings of the job.
    """

    recording: RecordingFile
    pronunciation: Pronunciation
    num_files: int


@dataclass(frozen=True)
class PronounceResult:
    """What was scored.

    Attributes
    ----------
    report : RunReport
        The recordings that were scored, and those that were not, with the reasons.
    num_files : int
        Number of recordings.
    paths : tuple of Path
        Files that were written.
    """

    report: RunReport
    num_files: int = 0
    paths: tuple[Path, ...] = ()


def pronounce(
    options: PronounceOptions, *, take: Callable[[PronouncedFile], None] = silent, progress: Progress = silent
) -> PronounceResult:
    """Score the pronunciation of recordings in threads; write a file for each if `options.output` is given.

    Parameters
    ----------
    options : PronounceOptions
    take : callable
        Receives each recording that was scored, in order.
    progress : callable
        Called as ``progress(files done, files)``.

    Returns
    -------
    PronounceResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in what all recordings share; the report lists faults of single recordings.

    Examples
    --------
    ``pronounce(PronounceOptions(bundle="en.argo", audio=["a.wav"], text="it is only for you"), take=print)``
    """
    inputs = (options.bundle, options.transcripts)
    delivery = Delivery[Pronunciation](options, EXTENSIONS[options.format], inputs)
    recordings = delivery.recordings
    texts = _texts(options, recordings)
    with using_cores(options.threads or available_cores()):
        reading = options.reading
        audio = AudioOptions(channel=reading.channel, upsample=reading.upsample, raw=reading.raw)
        assessor = PronunciationAssessor.load(options.bundle, audio)

        def assess(recording: RecordingFile) -> Pronunciation:
            if recording.name not in texts:
                raise ConfigError(f"{recording.where}: not in {options.transcripts}; expected its words there")
            return assessor.assess(recording.path, texts[recording.name])

        def deliver(recording: RecordingFile, pronunciation: Pronunciation, file: Path | None) -> None:
            if file is not None:
                pronunciation.save(file, recording.path)
            take(PronouncedFile(recording, pronunciation, len(recordings)))

        for number, (_, pronunciation) in enumerate(delivery.results(assess, deliver), 1):
            delivery.report.done(pronunciation is not None)
            progress(number, len(recordings))
    return PronounceResult(delivery.report, len(recordings), tuple(delivery.paths))


def _texts(options: PronounceOptions, recordings: Sequence[RecordingFile]) -> Mapping[str, str]:
    """Return what should be said in each recording, by name."""
    if options.text is not None:
        return {recording.name: options.text for recording in recordings}
    assert options.transcripts is not None
    words = read_words(options.transcripts, named_lines=True)
    names = match_names(words, by_name(recordings))
    return {recording: " ".join(words[name]) for name, recording in names.items()}
