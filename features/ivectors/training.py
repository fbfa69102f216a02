"""Trains an i-vector extractor: the background model, then the total-variability matrix, by passes over the data.

The background model begins as one Gaussian of all frames without their sliding means.  Its Gaussians are split until
there are enough, with some passes of EM for each number; a mixture with full covariances may follow.  The extractor
takes the posterior probabilities of the background model and the frames as they are in the files, so that i-vectors
describe the mean that was subtracted for the background model, too.

References
----------
Kaldi's steps/online/nnet2/train_diag_ubm.sh and train_ivector_extractor.sh.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from features.ivectors import shards
from features.ivectors.background import (
    Background,
    array,
    background_of,
    covariance_array,
    mixture_arrays,
    number,
)
from features.ivectors.extractor import Extractor, ExtractorSums, initial_extractor
from features.ivectors.frames import SlidingMean
from features.ivectors.mixtures import DiagonalMixture, symmetric
from features.ivectors.model import IvectorModel
from features.ivectors.options import DIAGONAL, EXTRACTOR, FRAMES, FULL, ExtractorOptions
from features.ivectors.shards import Surveyed, Unit
from readers.common.jobs.runner import Runner
from readers.common.report import Progress, RunReport
from readers.config.feature_record import FeatureRecord
from readers.htk.parameter_file import unlike
from readers.tables.passes import GaussianSums, PassTraining, file_mark

FORMAT, VERSION = "argonaut-ivector-training", 1
FULL_SELECT = 20  # Gaussians of a frame in training with full covariances


@dataclass(frozen=True, eq=False)
class Training:
    """The state of a training between two passes.

    Attributes
    ----------
    background : Background
    extractor : Extractor or None
        None before the pass of the statistics.
    floor : (d, d) float64, or None
        Least covariances of the extractor.
    occupancy : (C,) float64, or None
        Scaled frames of each Gaussian.
    square : (C, d, d) float64, or None
        Sums of the products of all frames.
    history : tuple of dict
        A row for each pass: pass, stage, gaussians, log_likelihood_per_frame, frames.  The log-likelihood is that of
        the model before the pass.
    """

    background: Background
    extractor: Extractor | None = None
    floor: np.ndarray | None = None
    occupancy: np.ndarray | None = None
    square: np.ndarray | None = None
    history: tuple[dict[str, Any], ...] = ()


class IvectorTraining(PassTraining[Training]):
    """Trains a model on units: utterances, or speakers with several.

    Parameters
    ----------
    units : sequence of Unit
    options : ExtractorOptions
    runner : Runner
    report : RunReport
        Receives the utterances that cannot be used, and those that can.
    """

    state_format = FORMAT, VERSION
    pass_kind = "stage"

    def __init__(self, units: Sequence[Unit], options: ExtractorOptions, runner: Runner, report: RunReport):
        self.options = options
        self.runner = runner
        self.report = report
        parts = list(shards.shards_of((unit, shards.SHARD_FRAMES // 10) for unit in units))
        surveyed = [survey for part in runner.results(shards.survey, parts) for survey in part]
        self.used, self.form = _usable(surveyed, report)
        names = {survey.utterance.name: survey.frames for survey in self.used}
        usable = []
        for unit in units:
            utterances = tuple(utterance for utterance in unit.utterances if utterance.name in names)
            if utterances:
                usable.append((Unit(unit.name, utterances), sum(names[utterance.name] for utterance in utterances)))
        self.num_units = len(usable)
        self.shards = list(shards.shards_of(usable))
        self.frames = sum(names.values())

    @property
    def schedule(self) -> list[tuple[str, int]]:
        """Stage of each pass and number of Gaussians in it."""
        return self.options.schedule

    @property
    def stride(self) -> int:
        """The background model is trained on every stride-th frame."""
        return -(-self.frames // self.options.background_frames)

    def begin(self) -> Training:
        """One Gaussian of all frames."""
        mean, variance = self._gaussian
        sliding = SlidingMean(mean, self.options.window, self.options.prior_frames)
        mixture = DiagonalMixture(np.ones(1), np.zeros((1, len(mean))), variance[None])
        return Training(Background(sliding, mixture))

    @cached_property
    def _gaussian(self) -> tuple[np.ndarray, np.ndarray]:
        totals = (used.total for used in self.used if used.total is not None)
        squares = (used.square for used in self.used if used.square is not None)
        mean = sum(totals, np.zeros(1)) / self.frames
        variance = sum(squares, np.zeros(1)) / self.frames - mean**2
        return mean, np.maximum(variance, 1e-10 * np.maximum(mean**2, 1.0))

    def next_pass(self, training: Training | None, progress: Progress | None = None) -> Training:
        """One pass over the data, and the model that follows from it."""
        training = training or self.begin()
        passes = len(training.history)
        schedule = self.schedule
        stage, count = schedule[passes]
        advance = {DIAGONAL: self._diagonal, FULL: self._full, FRAMES: self._statistics, EXTRACTOR: self._extractor}
        new, log_likelihood, frames = advance[stage](training, progress)
        row = {
            "pass": passes + 1, "stage": stage, "gaussians": count,
            "log_likelihood_per_frame": log_likelihood / frames, "frames": frames,
        }  # fmt: skip
        background = new.background
        if stage == DIAGONAL and schedule[passes + 1][0] == DIAGONAL and schedule[passes + 1][1] > count:
            larger = schedule[passes + 1][1]
            random = np.random.default_rng([self.options.seed, larger])
            background = replace(background, diagonal=background.diagonal.split(larger, random))
        elif stage == DIAGONAL and schedule[passes + 1][0] == FULL:
            background = replace(background, full=background.diagonal.full())
        return replace(new, background=background, history=(*training.history, row))

    @property
    def _floor(self) -> np.ndarray:
        return self.options.variance_floor * self._gaussian[1]

    def _diagonal(self, training: Training, progress: Progress | None) -> tuple[Training, float, float]:
        old = training.background
        sums: GaussianSums = self.sums_of(shards.diagonal_sums, progress, old.mean, old.diagonal, self.stride)
        background = replace(old, diagonal=old.diagonal.estimate(sums, self._floor))
        return replace(training, background=background), sums.log_likelihood, sums.frames

    def _full(self, training: Training, progress: Progress | None) -> tuple[Training, float, float]:
        old = training.background
        assert old.full is not None
        arguments = (old.mean, old.diagonal, old.full, FULL_SELECT, self.stride)
        sums: GaussianSums = self.sums_of(shards.full_sums, progress, *arguments)
        background = replace(old, full=old.full.estimate(sums, self._floor))
        return replace(training, background=background), sums.log_likelihood, sums.frames

    def _statistics(self, training: Training, progress: Progress | None) -> tuple[Training, float, float]:
        sums: GaussianSums = self.sums_of(shards.frame_sums, progress, training.background, self.options.ivector)
        square = symmetric(sums.square)
        extractor, floor = initial_extractor(sums.occupancy, sums.total, square, self.options.dim, self.options.seed)
        new = replace(training, extractor=extractor, floor=floor, occupancy=sums.occupancy, square=square)
        return new, sums.log_likelihood, sums.frames

    def _extractor(self, training: Training, progress: Progress | None) -> tuple[Training, float, float]:
        old = training.extractor
        occupancy = training.occupancy
        square = training.square
        floor = training.floor
        assert old is not None
        assert occupancy is not None
        assert square is not None
        assert floor is not None
        sums: ExtractorSums = self.sums_of(shards.unit_sums, progress, training.background, self.options.ivector, old)
        likelihood = sums.log_likelihood + old.square_likelihood(occupancy, square)
        extractor = old.estimate(sums, square, floor)
        return replace(training, extractor=extractor), likelihood, float(occupancy.sum())

    def model(self, training: Training, record: FeatureRecord) -> IvectorModel:
        """The model of a finished training.  record: how the features were computed."""
        assert training.extractor is not None
        return IvectorModel(training.background, training.extractor, self.options.ivector, record)

    def contents(self) -> dict[str, Any]:
        """What the result depends on."""
        files = [
            (unit.name, utterance.name, utterance.start, utterance.end, *file_mark(utterance.path))
            for shard in self.shards
            for unit in shard
            for utterance in unit.utterances
        ]
        return {
            "settings": asdict(self.options),
            "features": [self.form, self._gaussian[0].tolist(), files],
        }

    def parts_of(self, training: Training) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and metadata of a state."""
        arrays = {"mean": training.background.mean.mean, **mixture_arrays(training.background)}
        if training.extractor is None:
            return arrays, {}
        arrays |= {name: getattr(training.extractor, name) for name in ("projections", "covariances")}
        arrays |= {name: getattr(training, name) for name in ("floor", "occupancy", "square")}
        return arrays, {"offset": training.extractor.offset}

    def state_of(self, arrays: dict[str, Any], metadata: dict[str, Any], path: Path) -> Training:
        """The state that a file holds."""
        background = background_of(arrays, self.options.window, self.options.prior_frames)
        training = Training(background, history=tuple(metadata["history"]))
        if "projections" not in arrays:
            return training
        count, size = shape = background.diagonal.means.shape
        extractor = Extractor(
            array(arrays, "projections", (*shape, self.options.dim)),
            covariance_array(arrays, "covariances", shape),
            float(number(metadata["offset"], "offset")),
        )
        return replace(
            training,
            extractor=extractor,
            floor=array(arrays, "floor", (size, size)),
            occupancy=array(arrays, "occupancy", (count,)),
            square=array(arrays, "square", (count, size, size)),
        )


def _usable(surveyed: Sequence[Surveyed], report: RunReport) -> tuple[list[Surveyed], tuple[str, int, int]]:
    """Return the utterances with features of the most frequent form, and this form; the others go to the report."""
    forms = Counter(survey.form for survey in surveyed if not survey.reason)
    main_form = max(forms, key=forms.__getitem__, default=("", 0, 0))
    used = []
    for survey in surveyed:
        if survey.reason:
            report.fail(survey.utterance.name, survey.reason)
        elif survey.form != main_form:
            report.fail(survey.utterance.name, f"features {unlike(survey.form, main_form)}, as in most utterances")
        else:
            used.append(survey)
            report.done()
    return used, main_form
