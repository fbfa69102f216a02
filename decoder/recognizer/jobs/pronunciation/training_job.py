"""The job that fits a map of pronunciation scores to those of experts, and adds it to a bundle."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np

from decoder.recognizer.bundle import PRONUNCIATION, Bundle
from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.recognizer.jobs.pronunciation.fitting import (
    Agreement,
    JudgedUtterance,
    agreement,
    cross_validate,
    fit_pronunciation,
)
from decoder.recognizer.jobs.pronunciation.measures import measure
from decoder.recognizer.jobs.pronunciation.model import Scores
from decoder.recognizer.jobs.pronunciation.options import TrainPronunciationOptions
from decoder.recognizer.jobs.recordings import by_name, find_recordings
from decoder.recognizer.packing import add_member, require_bundle_path
from decoder.recognizer.recording import AudioOptions
from decoder.scoring.error_counts import match_names
from decoder.search.batch import in_order
from readers.common.environment import available_cores, using_cores
from readers.common.faults import one_line
from readers.common.report import Progress, RunReport, silent
from readers.common.text import read_lines
from readers.errors import ConfigError, FormatError
from readers.results.expert_scores import SentenceScores, read_expert_scores


@dataclass(frozen=True)
class TrainPronunciationResult:
    """A map of pronunciation scores, and how well it does.

    Attributes
    ----------
    report : RunReport
        The recordings that were aligned, and those that were not, with the reasons.
    bundle : Bundle
        With the map.
    cross_validated, tested : dict of str to Agreement
        Agreement with the experts on phones, words and sentences: of speakers that were left out of the fit, and of
        those of `test`; empty if it was not measured.
    num_utterances, num_speakers : int
        To which the map was fitted.
    shared_speakers : tuple of str
        Those of `test` to whom it was fitted, too: the agreement with the experts on them is too good.
    """

    report: RunReport
    bundle: Bundle
    cross_validated: dict[str, Agreement] = field(default_factory=dict)
    tested: dict[str, Agreement] = field(default_factory=dict)
    num_utterances: int = 0
    num_speakers: int = 0
    shared_speakers: tuple[str, ...] = ()


def train_pronunciation(options: TrainPronunciationOptions, *, progress: Progress = silent) -> TrainPronunciationResult:
    """Align recordings, fit a map from their measures to the scores of experts, and write a bundle that has it.

    The acoustic model should not have been trained on these speakers, as it is too sure of them.  The recordings of
    those on whom it was trained can be aligned by another one, `also`, of a training without them.

    Parameters
    ----------
    options : TrainPronunciationOptions
    progress : callable
        Called as ``progress(files done, files, stage="align")``, ``progress(folds done, folds, stage="folds")`` and
        ``progress(files done, files, stage="test")``.

    Returns
    -------
    TrainPronunciationResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in what all recordings share, with too few scores, and for another network with other phones; the
        report lists faults of single recordings.

    Examples
    --------
    ``train_pronunciation(TrainPronunciationOptions(bundle="en.argo", audio=["wav/"], scores="scores.json",
    output="scored.argo", folds=6)).cross_validated["phones"].correlation``
    """
    bundle = Bundle.open(options.bundle)
    require_bundle_path(
        options.output,
        bundle.is_compact,
        [options.scores, *options.also, *options.also_scores, options.test, options.speakers],
    )
    recordings, _ = find_recordings(options.audio, options.reading.raw is not None)
    audio = by_name(recordings)
    speakers = _speakers(options.speakers, audio)
    report = RunReport("files")
    cross_validated: dict[str, Agreement] = {}
    tested: dict[str, Agreement] = {}
    test_set: list[JudgedUtterance] = []
    with using_cores(options.threads or available_cores()):
        reading = options.reading
        settings = AudioOptions(channel=reading.channel, upsample=reading.upsample, raw=reading.raw)
        aligner = ForcedAligner.load(options.bundle, audio=settings)
        inventory = list(aligner.goodness.phones)
        others = [ForcedAligner.load(other, audio=settings) for other in options.also]
        for other, other_aligner in zip(options.also, others, strict=True):
            if list(other_aligner.goodness.phones) != inventory:
                raise ConfigError(f"{other}: a network with other phones than {options.bundle}; expected the same")
        paths = [options.scores, *options.also_scores, *([] if options.test is None else [options.test])]
        judgements = {path: _judgements(path, audio) for path in paths}  # faults come before the first alignment
        missing = sorted({*chain(*(names.values() for _, names in judgements.values()))} - speakers.keys())
        if missing:
            raise ConfigError(f"{options.speakers}: no speaker of {missing[0]}; expected each recording with scores")

        def judged(path: Path, aligner: ForcedAligner, stage: str) -> list[JudgedUtterance]:
            """Align the recordings that a file has scores of."""
            scores, names = judgements[path]
            utterances = []

            def align(name: str) -> JudgedUtterance:
                return _judged(aligner, audio[names[name]], scores[name], speakers[names[name]])

            for number, (name, utterance) in enumerate(in_order(align, sorted(names), options.threads), 1):
                if isinstance(utterance, Exception):
                    report.fail(audio[names[name]], one_line(utterance))
                else:
                    utterances.append(utterance)
                    report.done()
                progress(number, len(names), stage=stage)
            if not utterances:
                file, _, reason = report.lost[-1]
                raise ConfigError(f"{path}: none of {len(names)} recordings can be aligned; the last: {file}: {reason}")
            return utterances

        utterances = judged(options.scores, aligner, "align")
        for path, other_aligner in zip(options.also_scores, others, strict=True):
            utterances += judged(path, other_aligner, "align")
        model = fit_pronunciation(utterances, inventory)
        about = dict(model.about)
        if options.folds:
            cross_validated = cross_validate(utterances, inventory, options.folds, progress=progress)
            about["cross_validated"] = _figures(cross_validated)
        if options.test is not None:
            test_set = judged(options.test, aligner, "test")
            tested = agreement(test_set, [model(utterance.measures) for utterance in test_set])
            about["tested"] = _figures(tested)
    content = replace(model, about=about).as_bytes()
    bundle = add_member(bundle, PRONUNCIATION, content, options.output)
    shared_speakers = sorted({each.speaker for each in utterances} & {each.speaker for each in test_set})
    return TrainPronunciationResult(
        report, bundle, cross_validated, tested, model.about["utterances"], model.about["speakers"],
        tuple(shared_speakers),
    )  # fmt: skip


def _judgements(path: Path, audio: Mapping[str, str]) -> tuple[dict[str, SentenceScores], dict[str, str]]:
    """Return the scores of a file, and the recording of each.  Raises FormatError for scores of no recording."""
    scores = read_expert_scores(path)
    names = match_names(scores, audio)
    if not names:
        some = ", ".join(sorted(scores)[:3])
        raise FormatError(f"{path}: scores of {some}; expected those of the audio files, such as {min(audio)}")
    return scores, names


def _figures(agreements: Mapping[str, Agreement]) -> dict[str, dict[str, float | None]]:
    """Return the figures for a file; JSON has no NaN."""
    return {
        kind: {name: value if np.isfinite(value) else None for name, value in figures._asdict().items()}
        for kind, figures in agreements.items()
    }


def _judged(aligner: ForcedAligner, audio: str, scores: SentenceScores, speaker: str) -> JudgedUtterance:
    """Return the measures of a recording with its scores; those of phones only where as many were aligned."""
    frames = aligner.align_frames(audio, [word.text for word in scores.words])
    measures = measure(frames.log_posteriors, frames.phones, frames.period)
    phones = np.full(len(measures.rows), np.nan)
    for number, word in enumerate(scores.words):
        of_word = measures.words == number
        if of_word.sum() == len(word.phone_scores):
            phones[of_word] = word.phone_scores
    words = np.array([word.score for word in scores.words])
    return JudgedUtterance(speaker, measures, Scores(phones, words, scores.score))


def _speakers(path: Path | None, audio: Mapping[str, str]) -> dict[str, str]:
    """Return the speaker of each recording, by name: from a file, or its folder."""
    if path is None:
        return {name: Path(file).resolve().parent.name for name, file in audio.items()}
    table: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        match line.split():
            case []:
                continue
            case [utterance, speaker]:
                if table.setdefault(utterance, speaker) != speaker:
                    raise FormatError(f"{path}:{number}: {utterance} again; expected one speaker, {table[utterance]}")
            case _:
                raise FormatError(f"{path}:{number}: {line.strip()[:40]!r}; expected an utterance and its speaker")
    return {recording: table[name] for name, recording in match_names(table, audio).items()}
