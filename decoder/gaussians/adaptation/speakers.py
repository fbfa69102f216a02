"""Transforms of speakers: estimated from aligned utterances, and applied to features."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from decoder.gaussians.adaptation.adaptation import Adaptation
from decoder.gaussians.adaptation.fmllr import FmllrSums, estimate_fmllr
from decoder.gaussians.adaptation.options import SpeakerOptions
from decoder.gaussians.adaptation.shards import AlignedShard, AlignedUtterance, Projection, fmllr_sums, transformed
from decoder.gaussians.models import GaussianModels
from readers.common.faults import loss_reason
from readers.common.jobs.runner import Runner
from readers.common.report import Progress
from readers.errors import ArgonautError
from readers.htk.parameter_file import write_htk

ESTIMATES = 2


@dataclass
class SpeakerTransforms:
    """Transforms of speakers, and what was found on the way.

    Attributes
    ----------
    transforms : dict of str to (d, d + 1) float64
        Speaker -> transform; speakers with few frames have none, nor those whose frames depend
        linearly on each other.
    counts : dict of str to float
        Speaker -> frames, without silence.
    gains : dict of str to float
        Speaker with a transform -> gain of the auxiliary function per frame.
    log_likelihood, frames : float, int
        Of all frames, with the transforms before.
    failures : list of (str, str)
        Utterances that cannot be used, and the reasons.
    """

    transforms: dict[str, np.ndarray]
    counts: dict[str, float]
    gains: dict[str, float]
    log_likelihood: float
    frames: int
    failures: list[tuple[str, str]]


def mean_prior(
    shards: Sequence[AlignedShard],
    projection: Projection,
    models: GaussianModels,
    silent: Sequence[int],
    runner: Runner,
) -> np.ndarray:
    """(d, d + 1, d + 1): the prior for `FmllrSums.with_prior`, of all speakers."""
    total = FmllrSums.empty(models.dim)
    for part in runner.results(fmllr_sums, shards, projection, {}, models, silent):
        for sums in part.speakers.values():
            total.add(sums)
    return total.mean_quadratic()


def speaker_transforms(
    shards: Sequence[AlignedShard],
    projection: Projection,
    models: GaussianModels,
    silent: Sequence[int],
    runner: Runner,
    before: Mapping[str, np.ndarray],
    prior: np.ndarray,
    options: SpeakerOptions,
    progress: Progress | None = None,
) -> SpeakerTransforms:
    """Estimate the transform of each speaker.

    Parameters
    ----------
    shards : sequence of AlignedShard
        The utterances of a speaker must follow each other, as `aligned_shards` arranges them.
    projection : Projection
    models : GaussianModels
    silent : sequence of int
        States whose frames do not count.
    runner : Runner
    before : mapping of str to (d, d + 1) float64
        The transforms so far, with which the posterior probabilities are computed and the estimates begin.
    prior : (d, d + 1, d + 1) float64
        See `mean_prior`.
    options : SpeakerOptions
    progress : callable, optional
        progress(done, total) counts shards.

    Returns
    -------
    SpeakerTransforms
    """
    result = SpeakerTransforms({}, {}, {}, 0.0, 0, [])
    speaker = ""
    sums = FmllrSums.empty(models.dim)

    def finish() -> None:
        if not speaker:
            return
        result.counts[speaker] = sums.count
        if sums.count >= options.min_frames:
            with contextlib.suppress(np.linalg.LinAlgError):  # frames that depend on each other, without a prior
                transform, gain = estimate_fmllr(sums.with_prior(prior, options.prior_frames), before.get(speaker))
                result.transforms[speaker] = transform
                result.gains[speaker] = gain

    parts = runner.results(fmllr_sums, shards, projection, before, models, silent)
    for number, part in enumerate(parts, start=1):
        for name, more in part.speakers.items():
            if name != speaker:
                finish()
                speaker = name
                sums = FmllrSums.empty(models.dim)
            sums.add(more)
        result.log_likelihood += part.log_likelihood
        result.frames += part.frames
        result.failures += part.failures
        if progress:
            progress(number, len(shards))
    finish()
    return result


def new_speakers(
    shards: Sequence[AlignedShard],
    adaptation: Adaptation,
    silent: Sequence[int],
    runner: Runner,
    options: SpeakerOptions,
) -> SpeakerTransforms:
    """Estimate the transforms of other speakers than those of the training.

    The first estimate uses the Gaussians of frames without transforms, and ESTIMATES more those of the training's
    transformed frames.
    """
    arguments = (adaptation.prior, options)
    speakers = speaker_transforms(shards, adaptation.projection, adaptation.independent, silent, runner, {}, *arguments)
    for _ in range(ESTIMATES):
        before = speakers.transforms
        speakers = speaker_transforms(
            shards, adaptation.projection, adaptation.models, silent, runner, before, *arguments
        )
    return speakers


def write_features(
    utterances: Sequence[AlignedUtterance],
    projection: Projection,
    transforms: Mapping[str, np.ndarray],
    targets: Mapping[str, str],
) -> list[str]:
    """Write the transformed features of utterances as HTK files.

    transforms: speaker -> transform; other speakers' frames are only projected.  targets: utterance -> file to write.
    Returns for each one the reason why it cannot be read or written; "" if it is done.
    """
    reasons = []
    for utterance in utterances:
        try:
            frames = transformed(projection.read(utterance), transforms.get(utterance.speaker))
            write_htk(targets[utterance.name], frames.T.astype(np.float32), "USER", projection.period)
        except (ArgonautError, OSError) as fault:
            reasons.append(loss_reason(fault))
        else:
            reasons.append("")
    return reasons
