"""Flat start: monophone HMMs with Gaussian mixtures from features and transcripts alone.

All states begin with the mean and variance of all frames, those of silence with the ones of the frames at both ends of
the utterances.  Each pass computes the sums over the paths through the transcripts' graphs, by Baum-Welch or Viterbi,
and estimates Gaussians and transitions anew.  The number of Gaussians grows by equal factors of at
most 2.

References
----------
HTK Book 3.4, sections 3.2 and 8 (HCompV, HERest, HHEd's MU).  Povey et al., The Kaldi speech recognition toolkit,
ASRU 2011 (numbers of Gaussians by the power 0.2 of the frames).
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from decoder.gaussians.models import GaussianModels
from decoder.gaussians.options import FlatStartSettings
from decoder.gaussians.shards import (
    GraphSettings,
    Shard,
    TrainingUtterance,
    align_shard,
    shard_sums,
    shards_of,
    survey,
    survey_of_most,
)
from decoder.gaussians.statistics import (
    Accumulator,
    estimate_gaussians,
    estimate_transitions,
    growth,
    split,
    state_occupancy,
    targets,
)
from decoder.gaussians.transitions import Topology, Transitions
from decoder.graph.phone_models import distil
from decoder.lm.language_model import SENTENCE_START
from readers.common.jobs.runner import Runner
from readers.common.report import Progress, RunReport
from readers.errors import FormatError, GraphError
from readers.htk.dictionary import Pronunciation
from readers.htk.hmm_set import HmmSet
from readers.htk.mlf import Label
from readers.tables.passes import PassTraining, file_mark

FORMAT, VERSION = "argonaut-flatstart", 1
STATES = (2, 3, 4)  # emitting states of each model, as HTK counts
BLANKS = " \t\n"
ALL_PATHS = 4  # first passes, which are Baum-Welch with either method


@dataclass(frozen=True, eq=False)
class Training:
    """The state of a training between two passes.

    Attributes
    ----------
    models : GaussianModels
    transitions : Transitions
    history : tuple of dict
        A row for each pass: pass, method, gaussians, log_likelihood_per_frame, frames, utterances.  The log-likelihood
        is that of the models before the pass.
    """

    models: GaussianModels
    transitions: Transitions
    history: tuple[dict[str, Any], ...] = ()


class FlatStart(PassTraining[Training]):
    """Trains models, and aligns the utterances.

    Parameters
    ----------
    utterances : sequence of TrainingUtterance
    dictionary : sequence of Pronunciation
    options : FlatStartSettings
    runner : Runner
    report : RunReport
        Receives the utterances that cannot be used.

    Raises
    ------
    ConfigError, FormatError, GraphError
        For phones that cannot be names of models, and when no utterance can be used.
    """

    state_format = FORMAT, VERSION
    pass_kind = "method"

    def __init__(
        self,
        utterances: Sequence[TrainingUtterance],
        dictionary: Sequence[Pronunciation],
        options: FlatStartSettings,
        runner: Runner,
        report: RunReport,
    ):
        self.options = options
        self.runner = runner
        self.report = report
        vocabulary = {entry.word for entry in dictionary}
        spoken = {
            word for utterance in utterances if vocabulary.issuperset(utterance.words) for word in utterance.words
        }
        self.topology = _topology([entry for entry in dictionary if entry.word in spoken], dictionary, options)
        settings = GraphSettings(
            self.topology, options.silence_probability, options.pronunciation_scale, options.silence_frames
        )
        everything = list(shards_of(((utterance, 1) for utterance in utterances), dictionary, settings))
        self.survey = survey_of_most(itertools.chain.from_iterable(runner.results(survey, everything)))
        reasons = dict(self.survey.failures)
        for utterance in utterances:
            if utterance.name in reasons:
                report.fail(utterance.name, reasons[utterance.name])
        self.shards = list(shards_of(self.survey.used, dictionary, settings))

    def size_of(self, shard: Shard) -> int:
        """Number of utterances."""
        return len(shard.utterances)

    @property
    def num_used(self) -> int:
        """Number of utterances to train on."""
        return len(self.survey.used)

    def begin(self) -> Training:
        """The flat models."""
        mean, variance = self.survey.gaussian()
        models = GaussianModels.flat(self.topology.states, mean, variance, self.survey.kind)
        if self.options.silence_frames:
            silent = [models.states.index(state) for state in self.topology.models[self.topology.silence]]
            means = models.means.copy()
            variances = models.variances.copy()
            mean, silent_variance = self.survey.gaussian(ends=True)
            means[silent] = mean
            variances[silent] = np.maximum(silent_variance, self.options.variance_floor * variance)
            models = replace(models, means=means, variances=variances)
        return Training(models, Transitions.flat(self.topology))

    @property
    def schedule(self) -> list[int]:
        """Number of Gaussians in each pass; it grows by equal factors of at most 2."""
        counts = growth(len(self.topology.states), self.options.gaussians)
        return [n for i, n in enumerate(counts) for _ in range(self.options.passes if i else self.options.first_passes)]

    def next_pass(self, training: Training | None, progress: Progress | None = None) -> Training:
        """One pass over the data, and the models that follow from it, with more Gaussians if the schedule says so."""
        training = training or self.begin()
        number = len(training.history)
        schedule = self.schedule
        options = self.options
        method = options.method if number >= ALL_PATHS else "baum-welch"
        models = training.models
        transitions = training.transitions
        sums, used = self.sums(models, transitions, method, progress)
        row = {
            "pass": number + 1,
            "method": method,
            "gaussians": len(models.weights),
            "log_likelihood_per_frame": sums.log_likelihood / max(sums.frames, 1),
            "frames": sums.frames,
            "utterances": used,
        }
        if not used:
            name, reason = sums.failures[0]
            raise GraphError(f"{name}: {reason} (nor has any other utterance a path)")
        new = estimate_gaussians(models, sums, options.variance_floor * self.survey.gaussian()[1])
        transitions = estimate_transitions(transitions, self.topology, sums)
        if number + 1 < len(schedule) and schedule[number + 1] > schedule[number]:
            new = split(new, targets(new, state_occupancy(models, sums.occupancy), schedule[number + 1]))
        return Training(new, transitions, (*training.history, row))

    def sums(
        self, models: GaussianModels, transitions: Transitions, method: str, progress: Progress | None = None
    ) -> tuple[Accumulator, int]:
        """The sums over all utterances, and how many of them had a path."""
        beam = math.inf if self.options.beam is None else self.options.beam
        sums: Accumulator = self.sums_of(shard_sums, progress, models, transitions, method, beam)
        return sums, self.num_used - len(sums.failures)

    def hmm_set(self, training: Training) -> HmmSet:
        """The models as an HTK model set."""
        return training.models.hmm_set(self.topology.models, training.transitions.matrices(self.topology))

    def align(self, training: Training, progress: Progress | None = None) -> Iterator[tuple[str, list[Label]]]:
        """The best path of each utterance, as labels of its states with phones and words beside them.

        Utterances without a path go to the report.
        """
        arguments = (training.models, distil(self.hmm_set(training)), self.survey.period)
        number = 0
        for part in self.runner.results(align_shard, self.shards, *arguments):
            for name, labels in part:
                number += 1
                if isinstance(labels, str):
                    self.report.fail(name, labels)
                else:
                    self.report.done()
                    yield name, labels
            if progress:
                progress(number, self.num_used)

    def contents(self) -> dict[str, Any]:
        """What the result depends on."""
        dictionary = {entry for shard in self.shards for entry in shard.dictionary}
        used = [utterance for utterance, _ in self.survey.used]
        return {
            "settings": asdict(self.options),
            "transcripts": [(utterance.name, utterance.words) for utterance in used],
            "dictionary": sorted(map(repr, dictionary)),
            "features": [
                self.survey.kind,
                self.survey.total.tolist(),
                [(utterance.name, utterance.start, utterance.end, *file_mark(utterance.path)) for utterance in used],
            ],
        }

    def parts_of(self, training: Training) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and metadata of a state."""
        models = training.models
        transitions = training.transitions
        arrays = {name: getattr(models, name) for name in ("first", "weights", "means", "variances")}
        return arrays | {"stay": transitions.stay, "ways": transitions.ways}, {}

    def state_of(self, arrays: dict[str, Any], metadata: dict[str, Any], path: Path) -> Training:
        """The state that a file holds."""
        flat = self.begin()
        models = replace(flat.models, **{name: arrays[name] for name in ("first", "weights", "means", "variances")})
        transitions = Transitions(arrays["stay"], arrays["ways"])
        for name in ("stay", "ways"):
            values = getattr(transitions, name)
            if values.shape != getattr(flat.transitions, name).shape:
                raise FormatError(f"{path}: '{name}' has another size")
            if not np.all((values > 0) & (values <= 1)):
                raise FormatError(f"{path}: '{name}' has a value that is no probability")
        if models.dim != flat.models.dim:
            raise FormatError(f"{path}: means of {models.dim} values; expected {flat.models.dim}")
        return Training(models, transitions, tuple(metadata["history"]))


def _topology(
    spoken: Sequence[Pronunciation], dictionary: Sequence[Pronunciation], options: FlatStartSettings
) -> Topology:
    """The models of the phones of some words.  Raises FormatError for phones that cannot be names of models."""
    silence = options.silence
    if silence is None:
        marks = [entry.phones for entry in dictionary if entry.word == SENTENCE_START]
        silence = marks[0][0] if len(marks) == 1 and len(marks[0]) == 1 else "sil"
    phones = sorted({phone for entry in spoken for phone in entry.phones} | {silence})
    for phone in phones:
        if not phone or set(phone) & set("-+" + BLANKS):
            raise FormatError(
                f"dictionary: phone '{phone}'; expected names without - and +, which separate the phones of a "
                "triphone (l-c+r), and without blanks; the option map-phones renames it"
            )
    models = {phone: tuple(f"{phone}_s{state}" for state in STATES) for phone in phones}
    return Topology(models, silence, options.silence_topology == "any-order")
