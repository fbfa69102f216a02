"""The jobs `train_fmllr` and `apply_fmllr`: transforms of features, for all speakers and for each of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from decoder.gaussians.adaptation.adaptation import Adaptation
from decoder.gaussians.adaptation.aligned import read_aligned, silent_states
from decoder.gaussians.adaptation.options import FmllrApplyOptions, FmllrTrainOptions
from decoder.gaussians.adaptation.shards import AlignedUtterance, aligned_shards
from decoder.gaussians.adaptation.speakers import new_speakers, write_features
from decoder.gaussians.adaptation.training import AdaptationTraining
from readers.common.faults import one_line
from readers.common.files import held_alone, require_writable, write_lines
from readers.common.jobs.runner import Runner, thread_runner
from readers.common.report import Log, Progress, RunReport, silent
from readers.errors import ConfigError, FormatError, ShapeError
from readers.htk.frame_labels import read_state_list
from readers.htk.scp import ScpEntry, write_scp

MODEL, PASSES, REPORT = "fmllr.safetensors", "passes.jsonl", "report"
EXTENSION = "fmllr"
FRAMES_PER_SECOND = 100  # about


@dataclass(frozen=True)
class FmllrTrainResult:
    """What a training of transforms made.

    Attributes
    ----------
    report : RunReport
        The utterances that were used, and those that could not be, with the reasons.
    dim, num_gaussians : int
        Values of a transformed frame, and Gaussians.
    log_likelihood_per_frame : float
        In the last pass.
    num_speakers, num_transforms : int
        Speakers, and those with a transform.
    """

    report: RunReport
    dim: int = 0
    num_gaussians: int = 0
    log_likelihood_per_frame: float = 0.0
    num_speakers: int = 0
    num_transforms: int = 0


def train_fmllr(
    options: FmllrTrainOptions, *, runner: Runner | None = None, progress: Progress = silent, log: Log = silent
) -> FmllrTrainResult:
    """Estimate LDA, MLLT, transforms of speakers and Gaussians from aligned utterances; write them to `options.out`.

    A run that was stopped goes on from there.

    Parameters
    ----------
    options : FmllrTrainOptions
    runner : Runner, optional
        One thread by default.
    progress : callable
        Called as ``progress(parts of the data done, parts)`` in each pass.
    log : callable
        Receives a line for each pass.

    Returns
    -------
    FmllrTrainResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.
    """
    out = options.out
    report = RunReport("utterances")
    for name in (MODEL, PASSES, REPORT):
        require_writable(out / name, [options.features, options.alignment, options.state_list, options.speakers])
    states = read_state_list(options.state_list)
    utterances = read_aligned(options, states, report)
    if not utterances:
        report.write(out / REPORT)
        return FmllrTrainResult(report)
    settings = options.training if options.speakers else replace(options.training, rounds=0)
    silent_numbers = silent_states(options, states)
    with held_alone(out / "fmllr.lock", out):
        training = AdaptationTraining(utterances, states, silent_numbers, settings, runner or thread_runner(1), report)

        try:
            adaptation = training.train(
                out / MODEL, log, lambda adaptation: log(training.last_pass(adaptation)), progress
            )
        except ShapeError as fault:
            raise ShapeError(f"{options.features}: {fault}") from fault
        write_lines(out / PASSES, map(json.dumps, adaptation.history))
    report.write(out / REPORT)
    return FmllrTrainResult(
        report, adaptation.models.dim, len(adaptation.models.weights),
        adaptation.history[-1]["log_likelihood_per_frame"], len(adaptation.counts), len(adaptation.transforms),
    )  # fmt: skip


@dataclass(frozen=True)
class FmllrApplyResult:
    """What a transformation of features made.

    Attributes
    ----------
    report : RunReport
        The utterances whose features were written, and those that were lost, with the reasons.
    dim : int
        Values of a transformed frame.
    num_transforms : int
        Speakers with a transform.
    """

    report: RunReport
    dim: int
    num_transforms: int


def apply_fmllr(
    options: FmllrApplyOptions, *, runner: Runner | None = None, progress: Progress = silent
) -> FmllrApplyResult:
    """Write the transformed features of utterances to `options.out`, and a list of them.

    Parameters
    ----------
    options : FmllrApplyOptions
    runner : Runner, optional
        One thread by default.
    progress : callable
        Called as ``progress(utterances done, utterances)``.

    Returns
    -------
    FmllrApplyResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.
    """
    model = options.model / MODEL
    out = options.out
    report = RunReport("utterances")
    runner = runner or thread_runner(1)
    adaptation = _load(options, model)
    for path in (out / REPORT, options.scp):
        require_writable(path, [options.features, options.alignment, options.speakers, model])
    utterances = read_aligned(options, adaptation.models.states, report)
    transforms, counts = (adaptation.transforms, adaptation.counts) if options.speakers else ({}, {})
    if options.alignment:
        numbers = silent_states(options, adaptation.models.states)
        shards = list(aligned_shards(utterances))
        speakers = new_speakers(shards, adaptation, numbers, runner, options.estimation)
        transforms = speakers.transforms
        counts = speakers.counts
    elif options.speakers:
        utterances = _of_training(utterances, adaptation, model, report)
    present = {utterance.speaker for utterance in utterances}
    few = {name: count for name, count in counts.items() if name not in transforms and name in present}
    if few:
        report.remarks["speakers without a transform, because of few frames"] = ", ".join(
            f"{name} ({count:.0f})" for name, count in few.items()
        )
    targets = _target_files(utterances, out)
    outcomes = runner.each(
        write_features, utterances, adaptation.projection, transforms, targets,
        seconds=lambda utterance: utterance.num_frames / FRAMES_PER_SECOND,
    )  # fmt: skip
    written = []
    for number, (utterance, reason) in enumerate(outcomes, start=1):
        if reason:
            report.fail(utterance.name, one_line(reason) if isinstance(reason, Exception) else reason)
        else:
            written.append(utterance)
        progress(number, len(utterances))
    report.done(len(written))
    if written:
        write_scp(options.scp, [ScpEntry(f"{each.name}.{EXTENSION}", targets[each.name]) for each in written])
    report.write(out / REPORT)
    num_transforms = len({utterance.speaker for utterance in written} & transforms.keys())
    return FmllrApplyResult(report, adaptation.models.dim, num_transforms)


def _load(options: FmllrApplyOptions, model: Path) -> Adaptation:
    """Return the transforms of a training.  Raises ConfigError or FormatError if they do not serve."""
    if not model.exists():
        raise ConfigError(f"{options.model}: no {MODEL}; expected a directory that `argonaut fmllr train` wrote")
    adaptation = Adaptation.load(model)
    if not adaptation.complete:
        raise FormatError(f"{model}: the training is not complete; expected that `argonaut fmllr train` is run again")
    if options.speakers and not adaptation.prior.size:
        raise ConfigError(f"{model}: trained without speakers; expected none, or a training with them")
    return adaptation


def _of_training(
    utterances: Sequence[AlignedUtterance], adaptation: Adaptation, model: Path, report: RunReport
) -> list[AlignedUtterance]:
    """Return the utterances of the training's speakers; the others go to the report."""
    for utterance in utterances:
        if utterance.speaker not in adaptation.counts:
            text = f"{model}: speaker '{utterance.speaker}' is not in the training; expected an alignment"
            report.fail(utterance.name, text)
    return [utterance for utterance in utterances if utterance.speaker in adaptation.counts]


def _target_files(utterances: Sequence[AlignedUtterance], out: Path) -> Mapping[str, str]:
    """Return the feature file to write for each utterance.  Raises ConfigError for names that lead out of `out`."""
    targets = {}
    for utterance in utterances:
        name = Path(utterance.name)
        if ".." in name.parts:
            raise ConfigError(f"'{name}': a name of a feature file in another directory; expected no '..' in names")
        relative = Path(*name.parts[1:]) if name.is_absolute() else name
        target = str((out / f"{relative}.{EXTENSION}").absolute())
        if Path(target) == Path(utterance.path):
            raise ConfigError(f"{target}: features to read; expected another directory")
        targets[utterance.name] = target
    return targets
