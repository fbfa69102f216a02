"""The job that fits the confidences of a bundle to recordings of known words, or measures them."""

from dataclasses import dataclass
from pathlib import Path

from decoder.recognizer.bundle import Bundle
from decoder.recognizer.calibration import Calibration, MeasuredConfidence, fit_calibration, measure
from decoder.recognizer.jobs.options import CalibrateOptions
from decoder.recognizer.jobs.recordings import RecordingFile, by_name, find_recordings
from decoder.recognizer.packing import add_calibration, require_bundle_path
from decoder.recognizer.recognizer import Recognizer
from decoder.scoring.confidence import JudgedWords, judge_words
from decoder.scoring.error_counts import match_names
from decoder.scoring.words import read_words
from readers.common.environment import available_cores, using_cores
from readers.common.faults import one_line
from readers.common.report import Progress, RunReport, silent
from readers.errors import FormatError
from readers.htk.scp import read_pairs
from readers.tables.timit import read_phone_map


@dataclass(frozen=True)
class CalibrateResult:
    """How good the confidences of a bundle are.

    Attributes
    ----------
    report : RunReport
        The recordings that were recognised, and those that were not, with the reasons.
    words : JudgedWords
        The words that were measured last, with their posteriors.
    calibration : Calibration or None
        The map that was fitted or, without `output`, that of the bundle; None if it has none.
    measured : MeasuredConfidence or None
        The quality on the words of `test` or, without `output`, of `words`.
    bundle : Bundle or None
        The calibrated bundle.
    """

    report: RunReport
    words: JudgedWords
    calibration: Calibration | None
    measured: MeasuredConfidence | None
    bundle: Bundle | None = None


def calibrate(options: CalibrateOptions, *, progress: Progress = silent) -> CalibrateResult:
    """Fit the confidences of a bundle to recordings, and write it again; without `options.output`, measure them.

    Parameters
    ----------
    options : CalibrateOptions
    progress : callable
        Called as ``progress(files done, files, stage="calibrate")``, for the words of `test` with "test".

    Returns
    -------
    CalibrateResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in what all recordings share, and without any word; the report lists faults of single recordings.

    Examples
    --------
    ``calibrate(CalibrateOptions(bundle="my.argo", words="test.mlf", audio=["recordings/"])).measured.ece``
    """
    if options.output is not None:
        is_compact = Bundle.open(options.bundle).is_compact
        require_bundle_path(options.output, is_compact, [options.words, options.test])
    audio = _audio_of(options)
    report = RunReport("files")
    with using_cores(options.threads or available_cores()):
        recognizer = Recognizer.load(options.bundle)
        former = recognizer.calibration
        recognizer.calibration = None
        fold = read_phone_map(options.fold, -1) if options.fold else None

        def words_of(path: Path, stage: str) -> JudgedWords:
            """Recognise the recordings whose words a file has; return the words with posteriors and which are right."""
            references = read_words(path)
            names = sorted(match_names(references, audio).values())
            if not names:
                some = ", ".join(sorted(references)[:3])
                raise FormatError(f"{path}: words of {some}; expected those of the audio files, such as {min(audio)}")
            recognised = {}
            results = recognizer.transcribe_many([audio[name] for name in names], options.threads)
            for number, (name, (_, transcript)) in enumerate(zip(names, results, strict=True), 1):
                if isinstance(transcript, Exception):
                    report.fail(audio[name], one_line(transcript))
                else:
                    recognised[name] = [(word.text, word.confidence) for word in transcript.words]
                    report.done()
                progress(number, len(names), stage=stage)
            return judge_words(references, recognised, fold)

        words = words_of(options.words, "calibrate")
        if options.output is None:
            return CalibrateResult(report, words, former, measure(words, _set_name(options.words), former))
        calibration = fit_calibration(words)
        measured = None
        if options.test is not None:
            words = words_of(options.test, "test")
            calibration = calibration.measure(words, _set_name(options.test))
            measured = calibration.measured[-1]
        assert recognizer.bundle is not None
        bundle = add_calibration(recognizer.bundle, calibration, options.output)
    return CalibrateResult(report, words, calibration, measured, bundle)


def _set_name(path: Path) -> str:
    """Return the name of a set in messages: test for test.words.mlf."""
    return path.name.partition(".")[0]


def _audio_of(options: CalibrateOptions) -> dict[str, str]:
    """Return the recordings, utterance -> path.  Raises ConfigError for none, and for two of one name."""
    recordings, _ = find_recordings(options.audio)
    pairs = read_pairs(options.list) if options.list else ()
    recordings += [RecordingFile(Path(target).stem, source) for source, target in pairs]
    options.require("audio", bool(recordings), "is missing; expected files or folders, or {list}")
    return by_name(dict.fromkeys(recordings))
