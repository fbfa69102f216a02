"""The job `compare_ivectors`: scores of pairs of i-vectors, and how often they tell speakers apart."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from features.ivectors.comparison.error_rates import DetectionCurve, detection_curve
from features.ivectors.comparison.options import IvectorCompareOptions
from features.ivectors.comparison.plda import train_plda
from features.ivectors.comparison.trials import (
    NONTARGET,
    TARGET,
    Side,
    SpeakerVectors,
    Trials,
    pairs_of_halves,
    pairs_of_utterances,
    read_trials,
)
from features.ivectors.options import UnitOptions
from features.ivectors.shards import read_units
from readers.common.faults import loss_reason
from readers.common.files import require_writable, write_lines
from readers.common.report import RunReport
from readers.corpora.directory import read_speakers
from readers.errors import ArgonautError, ConfigError, FormatError

ALL = "all"
PAIRS_AT_ONCE = 100_000

Floats = npt.NDArray[np.float64]
Scorer = Callable[[Trials, slice], Floats]


@dataclass(frozen=True)
class ClassErrors:
    """Errors of the pairs of two classes of speakers, at the threshold where the errors of all pairs are equal.

    Attributes
    ----------
    classes : (str, str)
    misses, targets : int
        Pairs of one speaker that are rejected, and all of them.
    false_alarms, others : int
        Pairs of two speakers that are accepted, and all of them.
    """

    classes: tuple[str, str]
    misses: int
    targets: int
    false_alarms: int
    others: int


@dataclass(frozen=True)
class IvectorCompareResult:
    """How well i-vectors tell speakers apart.

    Attributes
    ----------
    report : RunReport
        The utterances whose i-vectors were read, and those, also of the training, that could not be, with
        the reasons.
    curves : dict of str to DetectionCurve
        Of all pairs, under "all", and of the pairs within each class.
    num_targets, num_others : int
        Pairs of one speaker, and of two.
    errors : list of ClassErrors
        Of each pair of classes.
    """

    report: RunReport
    curves: dict[str, DetectionCurve]
    num_targets: int
    num_others: int
    errors: list[ClassErrors] = field(default_factory=list)


def compare_ivectors(options: IvectorCompareOptions) -> IvectorCompareResult:
    """Score pairs of i-vectors and count errors; write the scores to `options.output`.

    Parameters
    ----------
    options : IvectorCompareOptions

    Returns
    -------
    IvectorCompareResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share, and pairs that are all of one kind; the report lists faults
        of single utterances.
    """
    for path in (options.output, options.report_path):
        inputs = (options.features, options.speakers, options.training, options.trials, options.classes)
        require_writable(path, inputs)
    report = RunReport("utterances")
    speakers = read_vectors(options, report)
    if options.trials is not None:
        trials = read_trials(options.trials, speakers)
    else:
        trials = pairs_of_halves(speakers) if options.halves else pairs_of_utterances(speakers)
    if trials.is_target.all() or not trials.is_target.any():
        kind = "two speakers" if trials.is_target.any() else "one speaker"
        raise ConfigError(f"{options.trials or options.features}: no pair of {kind}; expected pairs of both kinds")
    if options.training is not None:
        scorer = _plda_scorer(options, options.training, trials.sides, report)
    else:
        scorer = _cosine_scorer(trials.sides)
    count = len(trials.is_target)
    scores = np.concatenate(
        [scorer(trials, slice(first, first + PAIRS_AT_ONCE)) for first in range(0, count, PAIRS_AT_ONCE)]
    )
    curves = {ALL: detection_curve(scores, trials.is_target)}
    errors = []
    if options.classes is not None:
        class_of = _classes_of(options, trials.sides)
        curves |= _curves_of_classes(scores, trials, class_of)
        errors = _errors_of_classes(scores >= curves[ALL].equal_error[1], trials, class_of)
    write_lines(options.output, _score_lines(scores, trials))
    report.write(options.report_path)
    num_targets = int(trials.is_target.sum())
    return IvectorCompareResult(report, curves, num_targets, count - num_targets, errors)


def read_vectors(options: UnitOptions, report: RunReport) -> SpeakerVectors:
    """Return the i-vectors of the utterances of each speaker; utterances without one go to the report.

    Raises FormatError for vectors of different sizes.
    """
    speakers: dict[str, dict[str, Floats]] = {}
    size = 0
    for unit in read_units(options, report):
        for utterance in unit.utterances:
            try:
                frames = utterance.frames()
                if len(frames) != 1:
                    raise FormatError(f"{utterance.path}: {len(frames)} vectors; expected one for a whole utterance")
            except (ArgonautError, OSError) as fault:
                report.fail(utterance.name, loss_reason(fault))
                continue
            size = size or frames.shape[1]
            if frames.shape[1] != size:
                raise FormatError(f"{utterance.path}: {frames.shape[1]} values; expected {size} as in the others")
            speakers.setdefault(unit.name, {})[utterance.name] = frames[0]
            report.done()
    if not speakers:
        raise FormatError(f"{options.features}: no i-vector can be read; the first: {report.lost[0][2]}")
    return speakers


def _cosine_scorer(sides: list[Side]) -> Scorer:
    units = [side.vectors / np.maximum(np.linalg.norm(side.vectors, axis=1, keepdims=True), 1e-30) for side in sides]
    means = np.array([vectors.mean(axis=0) for vectors in units])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-30)
    return lambda trials, pairs: np.einsum("nd,nd->n", means[trials.left[pairs]], means[trials.right[pairs]])


def _plda_scorer(options: IvectorCompareOptions, vectors_list: Path, sides: list[Side], report: RunReport) -> Scorer:
    """Train the model; utterances without an i-vector go to the report.

    Raises ConfigError for too few speakers, and for vectors of another size.
    """
    training_report = RunReport("utterances")
    training_vectors = read_vectors(replace(options, features=vectors_list), training_report)
    for name, _, reason in training_report.lost:
        report.fail(name, reason)
    vectors = [np.array(list(of_speaker.values())) for of_speaker in training_vectors.values()]
    if len(vectors) < 2 or max(map(len, vectors)) < 2:
        raise ConfigError(f"{vectors_list}: {len(vectors)} speakers; expected two at least, with several utterances")
    if vectors[0].shape[1] != sides[0].vectors.shape[1]:
        raise ConfigError(
            f"{vectors_list}: i-vectors of {vectors[0].shape[1]} values; expected "
            f"{sides[0].vectors.shape[1]} as in {options.features}"
        )
    plda = train_plda(vectors, options.dim)
    means = np.array([plda.project(side.vectors).mean(axis=0) for side in sides])
    counts = np.array([len(side.vectors) for side in sides], float)

    def score(trials: Trials, pairs: slice) -> Floats:
        left, right = trials.left[pairs], trials.right[pairs]
        return plda.scores(means[left], counts[left], means[right], counts[right])

    return score


def _classes_of(options: IvectorCompareOptions, sides: list[Side]) -> list[str]:
    """Return the class of each side.  Raises FormatError for a speaker without one."""
    assert options.classes is not None
    class_of = read_speakers(options.classes)
    for side in sides:
        if side.speaker not in class_of:
            raise FormatError(f"{options.classes}: no line `{side.speaker} CLASS`; expected one for each speaker")
    return [class_of[side.speaker] for side in sides]


def _curves_of_classes(scores: Floats, trials: Trials, class_of: list[str]) -> Mapping[str, DetectionCurve]:
    names, number = np.unique(class_of, return_inverse=True)
    left, right = number[trials.left], number[trials.right]
    curves = {}
    for index, name in enumerate(names):
        inside = (left == index) & (right == index)
        is_target = trials.is_target[inside]
        if is_target.any() and not is_target.all():
            curves[str(name)] = detection_curve(scores[inside], is_target)
    return curves


def _errors_of_classes(accepted: npt.NDArray[np.bool_], trials: Trials, class_of: list[str]) -> list[ClassErrors]:
    names, number = np.unique(class_of, return_inverse=True)
    low, high = np.sort([number[trials.left], number[trials.right]], axis=0)
    is_target = trials.is_target
    errors = []
    for first in range(len(names)):
        for second in range(first, len(names)):
            inside = (low == first) & (high == second)
            if inside.any():
                errors.append(
                    ClassErrors(
                        (str(names[first]), str(names[second])),
                        int((inside & is_target & ~accepted).sum()),
                        int((inside & is_target).sum()),
                        int((inside & ~is_target & accepted).sum()),
                        int((inside & ~is_target).sum()),
                    )
                )
    return errors


def _score_lines(scores: Floats, trials: Trials) -> list[str]:
    names = [side.name for side in trials.sides]
    return [
        f"{names[left]} {names[right]} {score:.5g} {TARGET if is_target else NONTARGET}"
        for left, right, score, is_target in zip(
            trials.left.tolist(), trials.right.tolist(), scores.tolist(), trials.is_target.tolist()
        )
    ]
