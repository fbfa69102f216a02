"""Work on a part of the data: sums over aligned utterances for the estimates of transforms and Gaussians.

A shard can be sent to another process or machine.  The division of the data into shards does not depend on the number
of threads or machines, and shards add up in their order, so that the results do not either.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from decoder.gaussians.adaptation.fmllr import FmllrSums
from decoder.gaussians.adaptation.kernels import add_fmllr, add_gaussians, add_mllt, posteriors, product
from decoder.gaussians.adaptation.lda import LdaSums
from decoder.gaussians.models import GaussianModels, mixture_arrays
from decoder.gaussians.shards import LEAST_SHARE, SHARD_FRAMES, SHARD_UTTERANCES
from decoder.gaussians.statistics import Accumulator
from readers.common.faults import loss_reason
from readers.common.jobs.durations import divided
from readers.config.feature_record import FeatureRecord
from readers.config.side_files import SideFiles
from readers.errors import ArgonautError, FormatError, ShapeError
from readers.htk.parameter_file import read_features, unlike


class AlignedUtterance(NamedTuple):
    """An utterance with the states of its frames.

    Attributes
    ----------
    name : str
    path : str
        HTK parameter file.
    start, end : int or None
        First and last frame, inclusive; None for the whole file.
    speaker : str
        Empty if it is unknown.
    states : (n,) int32
        States in order; empty if they are unknown.
    lengths : (n,) int32
        Number of frames in each of them.
    """

    name: str
    path: str
    start: int | None
    end: int | None
    speaker: str
    states: np.ndarray
    lengths: np.ndarray

    @property
    def num_frames(self) -> int:
        """Number of frames of the alignment."""
        return int(self.lengths.sum())


@dataclass(frozen=True, eq=False)
class Projection:
    """The linear transform of all speakers: the first values of some frames in a row become d values.

    Attributes
    ----------
    matrix : (d, n * (2 splice + 1)) float64
        Its columns belong to the n values of the first of these frames, then of the second and so on.
    splice : int
        Frames on each side.
    kind, period, dim : str, int, int
        Form of the features: HTK's name of their kind, 100 ns units from frame to frame, values of a frame.
    record : FeatureRecord
        How the features were computed, as far as it is known.
    """

    matrix: np.ndarray
    splice: int
    kind: str
    period: int
    dim: int
    record: FeatureRecord = field(default_factory=FeatureRecord)

    @property
    def num_values(self) -> int:
        """Number n of values that are used of each frame."""
        return self.matrix.shape[1] // (2 * self.splice + 1)

    @property
    def form(self) -> tuple[str, int, int]:
        """Kind, number of values and period of the features."""
        return self.kind, self.dim, self.period

    def apply(self, features: np.ndarray) -> np.ndarray:
        """Features (dim, T) as frames (T, d) float64; the first and last frame are repeated at the ends."""
        used = features[: self.num_values].astype(np.float64)
        padded = np.ascontiguousarray(np.pad(used, ((0, 0), (self.splice, self.splice)), mode="edge"))
        return np.ascontiguousarray(product(self.matrix, padded, features.shape[1]).T)

    def read(self, utterance: AlignedUtterance) -> np.ndarray:
        """The frames (T, d) float64 of an utterance.

        Raises ShapeError for features of another form, and of another number of frames than the alignment, and
        FormatError for features that were computed in another way.
        """
        features, kind, period = read_features(utterance)
        form = kind, len(features), period
        if form != self.form:
            raise ShapeError(f"{utterance.path}: {unlike(form, self.form)}")
        record = SideFiles().record(utterance.path, kind, period)
        if fault := record.mismatch(utterance.path, self.record, "with which the transforms were trained"):
            raise FormatError(fault)
        if len(utterance.states) and features.shape[1] != utterance.num_frames:
            raise ShapeError(
                f"{utterance.path}: {features.shape[1]} frames; expected {utterance.num_frames}, as in the alignment"
            )
        return self.apply(features)


def transformed(frames: np.ndarray, transform: np.ndarray | None) -> np.ndarray:
    """Frames (T, d) after the affine transform (d, d + 1) of their speaker, or None."""
    if transform is None:
        return frames
    columns = np.ascontiguousarray(frames.T)
    moved = product(np.ascontiguousarray(transform[:, :-1]), columns, len(frames)) + transform[:, -1:]
    return np.ascontiguousarray(moved.T)


AlignedShard = list[AlignedUtterance]


def aligned_shards(utterances: Iterable[AlignedUtterance]) -> Iterator[AlignedShard]:
    """Divide utterances into shards; those of a speaker follow each other."""
    order: dict[str, int] = {}
    by_speaker = sorted(utterances, key=lambda utterance: order.setdefault(utterance.speaker, len(order)))
    return divided(((utterance, utterance.num_frames) for utterance in by_speaker), SHARD_FRAMES, SHARD_UTTERANCES)


def lda_sums(shard: AlignedShard, projection: Projection, num_states: int) -> LdaSums:
    """The sums of a shard's spliced frames; utterances that cannot be used are listed as failures."""
    sums = LdaSums.empty(num_states, len(projection.matrix))
    for utterance in shard:
        try:
            sums.add_frames(projection.read(utterance), np.repeat(utterance.states, utterance.lengths))
        except (ArgonautError, OSError) as fault:
            sums.failures.append((utterance.name, loss_reason(fault)))
    return sums


class Visits(NamedTuple):
    """Visits of components, as `posteriors` gives them: those of frame t are begin[t] .. begin[t + 1] - 1."""

    begin: np.ndarray
    component: np.ndarray
    share: np.ndarray


def _visits(
    utterance: AlignedUtterance, projection: Projection, transform: np.ndarray | None, models: GaussianModels
) -> tuple[np.ndarray, np.ndarray, Visits, float]:
    """Frames before and after the speaker's transform, visits of the components, and the log-likelihood."""
    frames = projection.read(utterance)
    moved = transformed(frames, transform)
    state = np.repeat(utterance.states, utterance.lengths)
    log_likelihood, begin, component, share = posteriors(moved, state, mixture_arrays(models), LEAST_SHARE)
    total = float(log_likelihood.sum())
    if transform is not None:
        total += len(frames) * float(np.linalg.slogdet(transform[:, :-1])[1])
    return frames, moved, Visits(begin, component, share), total


def gaussian_sums(
    shard: AlignedShard,
    projection: Projection,
    transforms: Mapping[str, np.ndarray],
    models: GaussianModels,
    with_mllt: bool,
) -> Accumulator:
    """The sums of a shard for the Gaussians and, if asked for, for MLLT.

    Raises the errors of the utterances, which have been read before.
    """
    shape = models.means.shape
    sums = Accumulator(np.zeros(shape[0]), np.zeros(shape), np.zeros(shape))
    if with_mllt:
        sums.mllt = np.zeros((shape[1], shape[1], shape[1]))
    for utterance in shard:
        _, moved, visits, log_likelihood = _visits(utterance, projection, transforms.get(utterance.speaker), models)
        add_gaussians(moved, *visits, sums.occupancy, sums.total, sums.square)
        if with_mllt:
            add_mllt(moved, *visits, mixture_arrays(models), sums.mllt)
        sums.log_likelihood += log_likelihood
        sums.frames += len(moved)
    return sums


@dataclass
class SpeakerSums:
    """The sums of a shard for fMLLR, by speaker, and what is found on the way.

    Attributes
    ----------
    speakers : dict of str to FmllrSums
    log_likelihood : float
        With the transforms so far.
    frames : int
        All frames, those that are not counted among them.
    failures : list of (str, str)
        Utterances that cannot be used, and the reasons.
    """

    speakers: dict[str, FmllrSums]
    log_likelihood: float
    frames: int
    failures: list[tuple[str, str]]


def fmllr_sums(
    shard: AlignedShard,
    projection: Projection,
    transforms: Mapping[str, np.ndarray],
    models: GaussianModels,
    silent: Sequence[int],
) -> SpeakerSums:
    """The sums of a shard for fMLLR; frames in the states `silent` do not count.

    Posterior probabilities are those after the transforms so far.
    """
    result = SpeakerSums({}, 0.0, 0, [])
    for utterance in shard:
        try:
            frames, _, visits, log_likelihood = _visits(
                utterance, projection, transforms.get(utterance.speaker), models
            )
        except (ArgonautError, OSError) as fault:
            result.failures.append((utterance.name, loss_reason(fault)))
            continue
        counted = np.repeat(~np.isin(utterance.states, silent), utterance.lengths)
        sums = result.speakers.setdefault(utterance.speaker, FmllrSums.empty(models.dim))
        sums.count += add_fmllr(frames, counted, *visits, mixture_arrays(models), sums.linear, sums.quadratic)
        result.log_likelihood += log_likelihood
        result.frames += len(frames)
    return result
