"""Training of LDA, MLLT, Gaussian mixtures and speaker transforms on a fixed alignment of states.

Frames are spliced and projected by LDA.  The states get Gaussians, whose number grows by equal factors of at most 2;
before each growth MLLT turns the frames.  Then transforms of the speakers (fMLLR) and Gaussians are estimated in turn:
speaker-adaptive training.

References
----------
Gales 1998 and 1999, see fmllr.py and mllt.py.  Povey et al., The Kaldi speech recognition toolkit, ASRU 2011.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from decoder.gaussians.adaptation.adaptation import FORMAT, VERSION, Adaptation
from decoder.gaussians.adaptation.lda import LdaSums, estimate_lda
from decoder.gaussians.adaptation.mllt import estimate_mllt
from decoder.gaussians.adaptation.options import AdaptationOptions
from decoder.gaussians.adaptation.shards import (
    AlignedShard,
    AlignedUtterance,
    Projection,
    aligned_shards,
    gaussian_sums,
    lda_sums,
)
from decoder.gaussians.adaptation.speakers import mean_prior, speaker_transforms
from decoder.gaussians.models import GaussianModels
from decoder.gaussians.statistics import Accumulator, estimate_gaussians, growth, split, state_occupancy, targets
from readers.common.jobs.runner import Runner
from readers.common.report import Log, Progress, RunReport
from readers.config.side_files import SideFiles
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.htk.parameter_file import HAS_A, HAS_D, HAS_N, HAS_T, parse_kind, read_features
from readers.tables.passes import PassTraining, file_mark

LDA, GAUSSIANS, MLLT, FMLLR = "lda", "gaussians", "mllt", "fmllr"  # kinds of passes


class AdaptationTraining(PassTraining[Adaptation]):
    """Trains transforms and Gaussians.

    Parameters
    ----------
    utterances : sequence of AlignedUtterance
        At least one.
    states : sequence of str
        Names of the states.
    silent : sequence of int
        States whose frames do not count for the transforms of speakers.
    options : AdaptationOptions
    runner : Runner
    report : RunReport
        Receives the utterances that cannot be used.
    """

    state_format = FORMAT, VERSION
    pass_kind = "kind"

    def __init__(
        self,
        utterances: Sequence[AlignedUtterance],
        states: Sequence[str],
        silent: Sequence[int],
        options: AdaptationOptions,
        runner: Runner,
        report: RunReport,
    ):
        self.utterances = list(utterances)
        self.states = tuple(states)
        self.silent = list(silent)
        self.options = options
        self.runner = runner
        self.report = report
        self.shards = list(aligned_shards(self.utterances))

    @cached_property
    def spliced(self) -> Projection:
        """The projection that only splices frames of the form of the first utterance that can be read.

        Raises FormatError if features were computed in different ways.
        """
        for utterance in self.utterances:
            try:
                features, kind, period = read_features(utterance)
            except (ArgonautError, OSError):
                continue
            used = statics(kind, len(features)) if self.options.splice else len(features)
            width = used * (2 * self.options.splice + 1)
            if self.options.dim > width:
                raise ConfigError(
                    f"fmllr: {self.options.dim} values after LDA; expected at most {width}, the number before it"
                )
            paths = [entry.path for entry in self.utterances]
            record = SideFiles().common(paths, kind, period, "the feature list")
            return Projection(np.eye(width), self.options.splice, kind, period, len(features), record)
        first = self.utterances[0]
        read_features(first)  # raises its error
        raise FormatError(f"{first.path}: changed while it was read")

    @property
    def schedule(self) -> list[tuple[str, int]]:
        """Kind of each pass and number of Gaussians in it."""
        counts = growth(len(self.states), max(self.options.gaussians, len(self.states)))
        steps = [(LDA, counts[0])]
        for number, count in enumerate(counts):
            passes = self.options.passes if number else 2  # on a fixed alignment, one Gaussian per state needs no more
            last = GAUSSIANS if number and count == counts[-1] else MLLT
            steps += [(GAUSSIANS, count)] * (passes - 1) + [(last, count)]
        return steps + [(FMLLR, counts[-1]), (GAUSSIANS, counts[-1])] * self.options.rounds

    def begin(self, progress: Progress | None = None) -> Adaptation:
        """LDA, and one Gaussian per state."""
        sums: LdaSums = self.sums_of(lda_sums, progress, self.spliced, len(self.states))
        if not sums.count.any():
            raise FormatError(f"{sums.failures[0][0]}: {sums.failures[0][1]} (nor can any other utterance be used)")
        matrix = estimate_lda(sums, self.options.dim)
        means = sums.means() @ matrix.T
        size = len(self.states)
        models = GaussianModels(self.states, np.arange(size + 1), np.ones(size), means, np.ones(means.shape))
        row = {
            "pass": 1,
            "kind": LDA,
            "gaussians": size,
            "log_likelihood_per_frame": None,
            "frames": int(sums.count.sum()),
            "failures": sums.failures,
        }
        return Adaptation(replace(self.spliced, matrix=matrix), models, models, history=(row,))

    def next_pass(self, training: Adaptation | None, progress: Progress | None = None) -> Adaptation:
        """One pass over the data, and what follows from it."""
        if training is None:
            return self.begin(progress)
        number = len(training.history)
        steps = self.schedule
        kind, _ = steps[number]
        complete = number + 1 == len(steps)
        if kind == FMLLR:
            return replace(self._fmllr(training, progress), complete=complete)
        following = None if complete else steps[number + 1][1]
        return replace(self._gaussians(training, kind == MLLT, following, progress), complete=complete)

    def _gaussians(
        self, training: Adaptation, with_mllt: bool, following: int | None, progress: Progress | None
    ) -> Adaptation:
        models = training.models
        projection = training.projection
        arguments = (projection, training.transforms, models, with_mllt)
        sums: Accumulator = self.sums_of(gaussian_sums, progress, *arguments, shards=self.used_shards(training))
        new = estimate_gaussians(models, sums, np.full(models.dim, self.options.variance_floor))
        row = self._row(training, MLLT if with_mllt else GAUSSIANS, sums.log_likelihood, sums.frames)
        if with_mllt:
            lower = np.tril(sums.mllt)
            turn = estimate_mllt(lower + np.tril(lower, -1).transpose(0, 2, 1), float(sums.frames))
            row["log_determinant"] = float(np.linalg.slogdet(turn)[1])
            projection = replace(projection, matrix=turn @ projection.matrix)
            new = replace(new, means=new.means @ turn.T)
        if following and following > len(new.weights):
            new = split(new, targets(new, state_occupancy(models, sums.occupancy), following))
        history = (*training.history, row)
        # Before the first transforms of speakers, both models are the same.
        independent = training.independent if training.prior.size else new
        return replace(training, projection=projection, models=new, independent=independent, history=history)

    def _fmllr(self, training: Adaptation, progress: Progress | None) -> Adaptation:
        shards = self.used_shards(training)
        prior = training.prior
        arguments = (training.projection, training.models, self.silent, self.runner)
        if not prior.size:
            prior = mean_prior(shards, *arguments)
        speakers = speaker_transforms(shards, *arguments, training.transforms, prior, self.options.speakers, progress)
        row = self._row(training, FMLLR, speakers.log_likelihood, speakers.frames)
        return replace(
            training,
            transforms=speakers.transforms,
            counts=speakers.counts,
            prior=prior,
            history=(*training.history, row),
        )

    def _row(self, training: Adaptation, kind: str, log_likelihood: float, frames: int) -> dict[str, Any]:
        """A row of the history; MLLT's determinant counts, so that values before and after it compare."""
        turned = sum(row.get("log_determinant", 0.0) for row in training.history)
        return {
            "pass": len(training.history) + 1,
            "kind": kind,
            "gaussians": len(training.models.weights),
            "log_likelihood_per_frame": log_likelihood / frames + turned,
            "frames": frames,
            "speakers": len(training.transforms),
        }

    def used_shards(self, training: Adaptation) -> Sequence[AlignedShard]:
        """The shards without the utterances that could not be used."""
        failed = {name for name, _ in training.history[0]["failures"]}
        if not failed:
            return self.shards
        return list(aligned_shards(utterance for utterance in self.utterances if utterance.name not in failed))

    def contents(self) -> dict[str, Any]:
        """What the result depends on."""
        files = []
        for utterance in self.utterances:
            with contextlib.suppress(OSError):
                files.append((utterance.name, utterance.start, utterance.end, *file_mark(utterance.path)))
        return {
            "settings": asdict(self.options),
            "alignment": [
                self.states,
                self.silent,
                [(u.name, u.states.tolist(), u.lengths.tolist()) for u in self.utterances],
            ],
            "speakers": [(utterance.name, utterance.speaker) for utterance in self.utterances],
            "features": files,
        }

    def parts_of(self, training: Adaptation) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and metadata of the result so far."""
        return training.parts()

    def state_of(self, arrays: dict[str, Any], metadata: dict[str, Any], path: Path) -> Adaptation:
        """The result so far that a file holds."""
        return Adaptation.of_parts(arrays, metadata, path)

    def train(
        self, path: Path, log: Log, after: Callable[[Adaptation], None], progress: Progress | None = None
    ) -> Adaptation:
        """All passes, see `PassTraining.train`; then the report receives what became of the utterances."""
        training = super().train(path, log, after, progress)
        for name, reason in training.history[0]["failures"]:
            self.report.fail(name, reason)
        self.report.done(len(self.utterances) - len(training.history[0]["failures"]))
        return training


def statics(kind: str, dim: int) -> int:
    """Number of values of a frame without deltas, which come after them."""
    code = parse_kind(kind)
    if not code & HAS_D:
        return dim
    without_energy = bool(code & HAS_N)  # the statics lack the energy, which the deltas have
    blocks = 2 + bool(code & HAS_A) + bool(code & HAS_T)
    return (dim + without_energy) // blocks - without_energy
