"""The job that finds the times of the words and phones of a corpus, and writes them for Praat and other programs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decoder.alignment.annotated import labels_of, words_to_pronounce
from decoder.alignment.dictionary.job import write_probabilities
from decoder.alignment.dictionary.probabilities import DictionaryCounts
from decoder.alignment.dictionary.spoken import SILENCE, spoken_of
from decoder.g2p.completion import Guesses
from decoder.recognizer.assembly import bundle_dictionary
from decoder.recognizer.bundle import Bundle
from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.jobs.alignment.aligning import RecordingAligner
from decoder.recognizer.jobs.alignment.corpora import in_case, open_corpus, with_channel
from decoder.recognizer.jobs.alignment.options import AlignOptions
from decoder.recognizer.jobs.alignment.output import (
    DAMAGE,
    files_of,
    result_files,
    transcript_of,
    write_recording,
    write_together,
    write_variants,
)
from decoder.recognizer.jobs.alignment.recordings import Recording, check_output, recordings_of
from decoder.recognizer.jobs.alignment.results import NO_TRANSCRIPT, KeptResults, file_marks, has_failed
from decoder.recognizer.jobs.alignment.training import Training
from decoder.recognizer.recording import AudioOptions
from decoder.results.alignment import Alignment
from decoder.results.doubtful import DoubtfulStretch
from decoder.search.batch import in_order
from decoder.storage.installed import find_model
from readers.audio.audio_file import MIX
from readers.common.environment import available_cores, using_cores
from readers.common.faults import listed, one_line
from readers.common.files import require_writable
from readers.common.report import Log, Progress, RunReport, silent
from readers.corpora.annotations import KINDS, Annotations
from readers.dictionaries.case import AUTO, CASES, case_of
from readers.dictionaries.forms import read_any_dictionary
from readers.errors import ArgonautError, ConfigError
from readers.htk.dictionary import Pronunciation

REPORT, GUESSED, DICTIONARY = "report", "guessed.dict", "dictionary"
MOST_SHOWN = 12  # words of a stretch in messages


@dataclass(frozen=True)
class AlignResult:
    """What was aligned, and where the results are.

    Attributes
    ----------
    report : RunReport
        The utterances that were aligned, with those that are doubtful or damaged, and those that were not, with the
        reasons; the file `report` has the same.
    recordings : tuple of Alignment
        The words and phones of each recording, with their times.
    doubtful : tuple of DoubtfulStretch
        Stretches of words that match the audio badly.
    paths : mapping of str to tuple of Path
        Files of the results by format.
    model : Path
        The model that was used.
    num_recordings, num_unchanged : int
        Number of recordings of the corpus, and of those that were aligned by an earlier run.
    guesses : Guesses
        Pronunciations that the dictionary lacks.
    variants : list of (str, tuple of str, int)
        Word, phones and count of each pronunciation of the words that have several.
    annotations : mapping of str to int
        How many cut-off words, laughs, breaths, noises and unknown words were aligned.
    """

    report: RunReport
    recordings: tuple[Alignment, ...]
    doubtful: tuple[DoubtfulStretch, ...]
    paths: Mapping[str, tuple[Path, ...]]
    model: Path
    num_recordings: int = 0
    num_unchanged: int = 0
    guesses: Guesses = field(default_factory=Guesses)
    variants: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)
    annotations: Mapping[str, int] = field(default_factory=dict)


def align(options: AlignOptions, *, progress: Progress = silent, log: Log = silent, note: Log = silent) -> AlignResult:
    """Align the recordings of a corpus that are new or have changed, and write their words and phones to `options.out`.

    A training spawns worker processes, so a script that calls this with `train` needs `if __name__ == "__main__":`.

    Parameters
    ----------
    options : AlignOptions
    progress : callable
        Called as ``progress(recordings done, recordings)``; of a training as ``progress(done, total, stage="features",
        unit="files")``, then with "flat start" and "align".
    log : callable
        Receives lines about the case of words, guessed pronunciations and the stages of a training.
    note : callable
        Receives remarks on the dictionary and the training.

    Returns
    -------
    AlignResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in what all recordings share; the report lists faults of single recordings and utterances.

    Examples
    --------
    ``align(AlignOptions(corpus="corpus", model="en", out="aligned")).report.summary()``

    ``align(AlignOptions(corpus="corpus", dict="words.dict", out="aligned", train=True)).model``
    """
    out = options.out
    _check_directory(options)
    require_writable(out / REPORT)
    model = None if options.model is None else find_model(options.model)
    g2p = None
    if model is None or options.dict is not None:
        dictionary = options.read(note)
    else:
        dictionary, g2p = bundle_dictionary(Bundle.open(model))
    if options.words is not None:
        change = CASES[case_of(entry.word for entry in dictionary) if options.case == AUTO else options.case]
        own = [entry._replace(word=change(entry.word)) for entry in read_any_dictionary(options.words)]
        replaced = {entry.word for entry in own}
        dictionary = [*(entry for entry in dictionary if entry.word not in replaced), *own]
    cores = options.threads or available_cores()
    with using_cores(cores):
        annotations = Annotations.of(options.annotations, options.frame_cost)
        known = {entry.word for entry in dictionary}
        corpus, case = open_corpus(options.corpus, known, options.case, options.tiers, annotations)
        if case not in ("keep", options.case):
            log(f"{options.corpus}: words are looked up in {case} case, of which the dictionary has more")
        corpus = with_channel(corpus, options.channel)
        recordings = recordings_of(corpus, options.corpus)
        check_output(recordings, out)
        texts = [utterance.words or () for utterance in corpus.utterances]
        spoken = words_to_pronounce(label for text in texts for label in labels_of(text, known, case, annotations))
        guesses = options.guess(dictionary, spoken, out / GUESSED, log, g2p)
        dictionary += guesses.for_decoding()
        if spoken and {entry.word for entry in dictionary}.isdisjoint(spoken):
            raise ConfigError(
                f"{options.corpus}: no pronunciation of any word, such as {spoken[0]}; expected words of the "
                "dictionary, perhaps in another case, or a pronunciation model"
            )
        if model is None:
            model = Training(in_case(corpus, case), dictionary, out, cores).run(progress, log, note)
        # A number is the channel of recordings with several; the others keep theirs.
        audio = AudioOptions(channel=MIX if options.channel == MIX else None, upsample=options.upsample)
        aligner = ForcedAligner.load(model, dictionary, options.beam, audio, case, options.times, annotations)
        results = _Results(options, model, aligner)
        faults, num_unchanged = _align_changed(options, aligner, recordings, results, progress)
    aligned = [results.aligned[recording.name] for recording in recordings if recording.name in results.aligned]
    doubtful = write_together(aligned, options.format, out, options.doubtful)
    report = RunReport("utterances", lost=[*corpus.report.lost])
    annotated = _count(report, recordings, results.aligned, faults, doubtful, aligner)
    report.write(out / REPORT)
    counts = _count_pronunciations(aligned, dictionary, case)
    variants = counts.variants()
    write_variants(variants, out)
    if options.dictionary_probabilities and counts.counts:
        write_probabilities(counts, aligner.graphs.silence or SILENCE[0], out / DICTIONARY)
    paths = result_files([recording.name for recording in aligned], options.format, out)
    return AlignResult(
        report,
        tuple(aligned),
        tuple(doubtful),
        paths,
        model,
        len(recordings),
        num_unchanged,
        guesses,
        variants,
        annotated,
    )


def _count_pronunciations(
    recordings: Sequence[Alignment], dictionary: Sequence[Pronunciation], case: str
) -> DictionaryCounts:
    """Count the pronunciations that were chosen; case: in which words are looked up."""
    utterances = (u for recording in recordings for u in recording.utterances if u.words)
    counts = DictionaryCounts(dictionary, SILENCE)
    counts.add((spoken_of(u.words, u.phones, u.start, u.end) for u in utterances), case)
    return counts


def _check_directory(options: AlignOptions) -> None:
    """Raise ConfigError for an output directory in the corpus, or one that is a file."""
    if options.out.resolve().is_relative_to(options.corpus.resolve()):
        raise ConfigError(
            f"{options.out}: inside of {options.corpus}, where TextGrids are transcripts; expected a directory outside "
            "of it"
        )
    if options.out.exists() and not options.out.is_dir():
        raise ConfigError(f"{options.out}: a file; expected a directory")


class _Results:
    """The results of the recordings, in their files and in those that keep them for the next run.

    Attributes
    ----------
    aligned : dict of str to Alignment
        By name of the recording.
    """

    def __init__(self, options: AlignOptions, model: Path, aligner: ForcedAligner):
        self.options = options
        self.aligned: dict[str, Alignment] = {}
        channel = None if options.channel is None else str(options.channel)
        spoken = (options.annotations, options.frame_cost)
        common = (file_marks(model), options.beam, channel, options.upsample, options.long, options.times, spoken)
        self.kept = KeptResults(options.out, common, aligner)
        self.in_tiers = [options.doubtful] if options.doubtful_tier else []

    def _shown(self, recording: Recording) -> dict[str, object]:
        """Return what the files of each format depend on, apart from the results."""
        transcript = transcript_of(recording.audio)
        marks = file_marks(transcript) if transcript else []
        depend = {
            "textgrid": self.in_tiers,
            "eaf": [*self.in_tiers, *map(list, marks)],
            "json": [self.options.doubtful],
        }
        return {form: depend[form] for form in files_of("", self.options.format, self.options.out)}

    def write(self, recording: Recording, result: Alignment, shown: Mapping[str, object] | None) -> None:
        """Take the result of a recording, and write those of its files that are not as wanted.

        shown: the options of the files of an earlier run with this very result; None if there was none.
        """
        options = self.options
        before = dict(shown or {})
        wanted = self._shown(recording)
        files = files_of(recording.name, options.format, options.out)
        stale = [form for form, path in files.items() if before.get(form) != wanted[form] or not path.exists()]
        formats = files if shown is None else stale
        write_recording(result, formats, options.out, options.doubtful, options.doubtful_tier)
        if shown is None or before | wanted != before:
            self.kept.write(recording, result, before | wanted)
        self.aligned[recording.name] = result


def _align_changed(
    options: AlignOptions,
    aligner: ForcedAligner,
    recordings: Sequence[Recording],
    results: _Results,
    progress: Progress,
) -> tuple[dict[str, str], int]:
    """Align the recordings that are new or have changed; return faults by name, and the number of the others."""
    earlier = {recording.name: stored for recording in recordings if (stored := results.kept.read(recording))}
    # Failed ones are tried again, since what they lacked, such as a model of a phone, is not part of the digest.
    unchanged = {name for name, (result, _) in earlier.items() if not has_failed(result)}
    faults = {}

    def write(recording: Recording, *result: Any) -> None:
        try:
            results.write(recording, *result)
        except ArgonautError as fault:  # of a file beside the recording
            faults[recording.name] = one_line(fault)

    for recording in recordings:
        if recording.name in unchanged:
            write(recording, *earlier[recording.name])
    waiting = [recording for recording in recordings if recording.name not in unchanged]

    def heard(name: str, seconds: float) -> None:
        progress(0, 1, **{name: f"{seconds / 60:.1f} minutes"})

    threads = max(1, available_cores() // max(1, len(waiting)))
    align_one = RecordingAligner(aligner, options.long, threads, heard if len(waiting) == 1 else None)
    for number, (recording, result) in enumerate(in_order(align_one, waiting, options.threads), 1):
        if isinstance(result, Exception):
            faults[recording.name] = one_line(result)
        else:
            before = earlier.get(recording.name)
            write(recording, result, before[1] if before and before[0] == result else None)
        progress(number, len(waiting))
    return faults, len(unchanged)


def _count(
    report: RunReport,
    recordings: Sequence[Recording],
    aligned: Mapping[str, Alignment],
    faults: Mapping[str, str],
    stretches: Sequence[DoubtfulStretch],
    aligner: ForcedAligner,
) -> Counter[str]:
    """Enter every utterance into the report; return how many annotations and unknown words there are by kind."""
    counts: Counter[str] = Counter()
    doubtful: dict[str, list[str]] = {}
    for stretch in stretches:
        text = f"{stretch.start:.2f}-{stretch.end:.2f} s {shown_words(stretch.words)}"
        doubtful.setdefault(stretch.utterance, []).append(text)
    for recording in recordings:
        if recording.name in faults:
            for lost in recording.utterances:
                report.fail(lost.name, faults[recording.name])
            continue
        for utterance in aligned[recording.name].utterances:
            words = [word.text for word in utterance.words]
            counts.update(kind for kind in aligner.kinds(words) if kind)
            unknown = aligner.unknown(words)
            if utterance.reason == NO_TRANSCRIPT:
                report.skip(utterance.name, utterance.reason)
            elif utterance.reason:
                report.fail(utterance.name, utterance.reason)
            elif utterance.damage:
                first = utterance.damage[0]
                num_more = len(utterance.damage) - 1
                text = f"{first.start:.2f}-{first.end:.2f} s {first.kind} {shown_words(first.words)}".rstrip()
                more = f" and {num_more} more, see {DAMAGE}" if num_more else ""
                report.mark(utterance.name, "damaged", text + more)
            elif utterance.name in doubtful:
                report.mark(utterance.name, "doubtful", "; ".join(doubtful[utterance.name]))
            elif unknown:
                report.mark(utterance.name, "unknown", f"no pronunciation of {listed(unknown)}")
            else:
                report.done()
    if counts:
        report.remarks["annotations"] = annotation_counts(counts)
    return counts


def annotation_counts(counts: Mapping[str, int]) -> str:
    """Return the line for a report, such as `3 cutoff, 1 noise`."""
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts.get(kind))


def shown_words(words: str) -> str:
    """Return words for a message, without the middle ones of many."""
    parts = words.split()
    if len(parts) <= MOST_SHOWN:
        return words
    half = MOST_SHOWN // 2
    return " ".join((*parts[:half], "...", *parts[-half:], f"({len(parts)} words)"))
