"""Units, which are utterances or speakers, and work on a part of them: sums over their frames.

A shard can be sent to another process or machine.  The division of the data does not depend on the number of threads
or machines, and the sums of shards are added in their order, so that results do not either.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from features.ivectors.background import Background, pieces
from features.ivectors.extractor import Extractor, ExtractorSums, Statistics
from features.ivectors.frames import SlidingMean
from features.ivectors.kernels import add_first_order, add_second_order, select_best
from features.ivectors.mixtures import DiagonalMixture, FullMixture
from features.ivectors.options import IvectorOptions, UnitOptions
from readers.common.faults import loss_reason
from readers.common.names import compile_expression
from readers.common.report import RunReport
from readers.corpora.directory import read_speakers
from readers.errors import ArgonautError, FormatError
from readers.htk.parameter_file import read_features, read_htk
from readers.htk.scp import read_feature_list
from readers.tables.passes import GaussianSums

SHARD_FRAMES = 20_000  # frames of a shard, about


class Utterance(NamedTuple):
    """An utterance: name, HTK parameter file, and its first and last frame, None for the whole file."""

    name: str
    path: str
    start: int | None
    end: int | None

    def frames(self) -> np.ndarray:
        """Read the frames (T, d), float64.  Raises ArgonautError and OSError."""
        return np.ascontiguousarray(read_htk(self.path, self.start or 0, self.end).frames.T, np.float64)


class Unit(NamedTuple):
    """Utterances that share an i-vector."""

    name: str
    utterances: tuple[Utterance, ...]


Shard = tuple[Unit, ...]
Finder = Callable[[str], tuple[str, str]]  # from the name of an utterance to (speaker, ""), or to ("", reason)


def read_units(options: UnitOptions, report: RunReport) -> list[Unit]:
    """Return the utterances of the list, those of a speaker together if speakers are given.

    Utterances without a speaker go to the report.  Raises FormatError for lists without entries and repeated names.
    """
    entries = read_feature_list(options.features)
    find_speaker = _speaker_finder(options)
    units: dict[str, list[Utterance]] = {}
    for entry in entries:
        speaker, reason = find_speaker(entry.key)
        if reason:
            report.fail(entry.key, reason)
        else:
            path = str(Path(entry.path).absolute())
            units.setdefault(speaker, []).append(Utterance(entry.key, path, entry.start, entry.end))
    if not units:
        raise FormatError(f"{options.features}: {report.lost[0][0]}: {report.lost[0][2]}; no utterance has a speaker")
    return [Unit(name, tuple(utterances)) for name, utterances in units.items()]


def _speaker_finder(options: UnitOptions) -> Finder:
    if options.speaker_pattern:
        return _matcher(options, options.speaker_pattern)
    if not options.speakers:
        return lambda name: (name, "")
    speakers = read_speakers(options.speakers)

    def look_up(name: str) -> tuple[str, str]:
        directory, slash, last = name.rpartition("/")
        if name in speakers:
            return speakers[name], ""
        if last in speakers:  # a copy such as warp92/NAME, in which the speaker sounds like another one
            return f"{directory}{slash}{speakers[last]}", ""
        return "", f"{options.speakers}: no line `{name} SPEAKER`; expected one"

    return look_up


def _matcher(options: UnitOptions, expression: str) -> Finder:
    pattern = compile_expression(expression, "speaker pattern")
    options.require(
        "speaker_pattern", pattern.groups > 0, f"is {expression}, without a group; expected the speaker in parentheses"
    )

    def match(name: str) -> tuple[str, str]:
        match = pattern.search(name)
        reason = f"no match of the speaker pattern {expression}; expected one with a speaker"
        return (match[1], "") if match and match[1] else ("", reason)

    return match


class Surveyed(NamedTuple):
    """What the features of an utterance are like.

    form: kind, values of a frame, and ticks of 100 ns from frame to frame; total and square (d,) float64: sums of the
    frames and of their squares; reason: why it cannot be used, "" if it can.
    """

    utterance: Utterance
    frames: int = 0
    form: tuple[str, int, int] = ("", 0, 0)
    total: np.ndarray | None = None
    square: np.ndarray | None = None
    reason: str = ""


def survey(shard: Shard) -> list[Surveyed]:
    """Read the utterances of a shard."""
    return [_survey(utterance) for unit in shard for utterance in unit.utterances]


def _survey(utterance: Utterance) -> Surveyed:
    try:
        features, kind, period = read_features(utterance)
    except (ArgonautError, OSError) as fault:
        return Surveyed(utterance, reason=loss_reason(fault))
    frames = np.ascontiguousarray(features.T, np.float64)
    return Surveyed(utterance, len(frames), (kind, len(features), period), frames.sum(axis=0), (frames**2).sum(axis=0))


def diagonal_sums(shard: Shard, mean: SlidingMean, mixture: DiagonalMixture, stride: int) -> GaussianSums:
    """Sums over every stride-th frame for an EM step of the background model."""
    sums = mixture.empty_sums()
    for frames in _normalised(shard, mean):
        mixture.add_sums(sums, frames[::stride])
    return sums


def full_sums(
    shard: Shard, mean: SlidingMean, diagonal: DiagonalMixture, mixture: FullMixture, select: int, stride: int
) -> GaussianSums:
    """Sums for an EM step of the mixture with full covariances, among Gaussians that the diagonal mixture selects."""
    sums = mixture.empty_sums()
    for frames in _normalised(shard, mean):
        sampled = frames[::stride]
        index, _ = select_best(diagonal.scores(sampled), min(select, len(diagonal.weights)))
        mixture.add_sums(sums, sampled, index)
    return sums


def frame_sums(shard: Shard, background: Background, options: IvectorOptions) -> GaussianSums:
    """Sums of all frames as they are in the files, with the posterior probabilities of the background model."""
    size = background.diagonal.means.shape
    sums = GaussianSums(np.zeros(size[0]), np.zeros(size), np.zeros((*size, size[1])))
    for unit in shard:
        for utterance in unit.utterances:
            frames = utterance.frames()
            for part, centred in zip(pieces(frames), pieces(background.mean.subtract(frames))):
                index, weights, log_likelihood = background.select(centred, options)
                add_first_order(part, index, weights, sums.occupancy, sums.total)
                add_second_order(part, index, weights, sums.square)
                sums.log_likelihood += log_likelihood
                sums.frames += len(part)
    return sums


def unit_sums(shard: Shard, background: Background, options: IvectorOptions, extractor: Extractor) -> ExtractorSums:
    """Sums over the units of a shard for an EM step of the extractor."""
    size = background.diagonal.means.shape
    occupancy = np.zeros((len(shard), size[0]))
    total = np.zeros((len(shard), *size))
    for u, unit in enumerate(shard):
        for utterance in unit.utterances:
            more, sums = background.statistics(utterance.frames(), options)
            occupancy[u] += more
            total[u] += sums
    return extractor.sums(Statistics(occupancy, total))


def shards_of(units: Iterable[tuple[Unit, int]]) -> Iterator[Shard]:
    """Divide units, with their numbers of frames, into shards of about SHARD_FRAMES frames."""
    shard: list[Unit] = []
    frames = 0
    for unit, count in units:
        if shard and frames + count > SHARD_FRAMES:
            yield tuple(shard)
            shard = []
            frames = 0
        shard.append(unit)
        frames += count
    if shard:
        yield tuple(shard)


def _normalised(shard: Shard, mean: SlidingMean) -> Iterator[np.ndarray]:
    """Yield the frames of a shard without their means, in parts."""
    for unit in shard:
        for utterance in unit.utterances:
            yield from pieces(mean.subtract(utterance.frames()))
