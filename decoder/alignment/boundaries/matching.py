"""Finds the boundaries of two alignments and their counterparts: by the labels, and by time.

A boundary is the start of a counted label, and its end unless another counted label follows immediately.  Labels that
do not count (silence) leave a pause.

By the labels: the names of an utterance are matched by a minimum-cost alignment (decoder.scoring.error_counts); a
boundary is compared with the same boundary of the label with which its own was matched.  That of a label without an
equal counterpart is missed, and one that only the hypothesis has is extra.

By time: the largest number of pairs of a reference boundary and a hypothesis boundary that are at most TOLERANCE apart,
each boundary in one pair at most, whatever their labels are.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from decoder.scoring.error_counts import align, match_names
from readers.common.arrays import BoolArray, Float64Array, Int64Array
from readers.errors import FormatError
from readers.htk.mlf import Label
from readers.htk.trees import split_triphone

TICKS_PER_MILLISECOND = 10_000
TOLERANCE = 20  # milliseconds; the literature counts hits within these
ROUNDING = 1  # ticks by which a distance may exceed a tolerance
JOINER = "\N{WORD JOINER}"  # in names that `rename` returns, and in no others

Segment = tuple[str, int, int]  # name, start and end
Rename = Callable[[str], str]


class BoundaryCounts(NamedTuple):
    """Boundaries of an utterance, or of several.

    Attributes
    ----------
    reference, hypothesis : int
        Distinct times at which there is a boundary.
    hits : int
        Pairs of such times at most TOLERANCE apart.
    extra : int
        Boundaries of labels that only the hypothesis has.
    """

    reference: int = 0
    hypothesis: int = 0
    hits: int = 0
    extra: int = 0


@dataclass
class BoundaryComparison:
    """The boundaries of a reference, and how far those of a hypothesis are from them.

    Attributes
    ----------
    errors : (n,) float64
        Hypothesis minus reference, 100 ns units, of each boundary of the reference; nan for a missed one.
    left, right : list of str
        Names of the labels on both sides of each boundary; "" for a pause and beyond the ends of the utterance.
    owners : (n,) int64
        Index of the utterance of each boundary.
    utterances : list of str
        Names of the utterances that both alignments have.
    counts : list of BoundaryCounts
        Of each utterance.
    missing : list of str
        Utterances without a hypothesis, which are not counted.
    """

    errors: Float64Array = field(default_factory=lambda: np.zeros(0))
    left: list[str] = field(default_factory=list)
    right: list[str] = field(default_factory=list)
    owners: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    utterances: list[str] = field(default_factory=list)
    counts: list[BoundaryCounts] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def distances(self) -> Float64Array:
        """Hypothesis minus reference, 100 ns units, of the boundaries that are not missed."""
        return self.errors[~np.isnan(self.errors)]

    @property
    def total(self) -> int:
        """Number of boundaries of the reference."""
        return len(self.errors)

    @property
    def num_missed(self) -> int:
        """Boundaries of labels without an equal counterpart in the hypothesis."""
        return self.total - len(self.distances)

    @property
    def num_extra(self) -> int:
        """Boundaries of labels without an equal counterpart in the reference."""
        return sum(count.extra for count in self.counts)

    @property
    def num_utterances(self) -> int:
        """Number of utterances that both alignments have."""
        return len(self.utterances)

    def percent_within(self, milliseconds: float) -> float:
        """Percentage of all boundaries within `milliseconds` of the reference, allowing for rounding to ticks."""
        return 100.0 * int(is_within(self.distances, milliseconds).sum()) / self.total if self.total else 0.0


def is_within(distances: Float64Array, milliseconds: float) -> BoolArray:
    """Return which distances (100 ns units) are at most so many milliseconds, allowing for rounding to ticks."""
    return np.abs(distances) <= milliseconds * TICKS_PER_MILLISECOND + ROUNDING


def compare_boundaries(
    references: Mapping[str, Sequence[Label]],
    hypotheses: Mapping[str, Sequence[Label]],
    level: int = 0,
    ignore: Collection[str] = (),
    rename: Rename = lambda name: split_triphone(name)[1],
    hypothesis_level: int | None = None,
    hypothesis_rename: Rename | None = None,
) -> BoundaryComparison:
    """Compare the label boundaries of two alignments.

    Parameters
    ----------
    references, hypotheses : mapping of str to sequence of Label
        Utterance -> labels with times in 100 ns ticks.
    level : int
        0: the labels; 1 and up: the columns beside them, each of which lasts until the next one of its level.
    ignore : collection of str
        Names (after `rename`) that are left out.
    rename : callable
        The name that a label counts as; by default a triphone counts as its centre phone.  Names joined by `JOINER`:
        the label becomes one with an immediately following label of one of these names, or else has the first of them.
    hypothesis_level : int, optional
        The level of the hypotheses, if it differs from that of the references.
    hypothesis_rename : callable, optional
        The name that a label of the hypotheses counts as, if it is another.

    Returns
    -------
    BoundaryComparison

    Raises
    ------
    FormatError
        For an utterance whose labels have no times.
    """
    hypothesis_names = match_names(references, hypotheses)
    result = BoundaryComparison(missing=[name for name in references if name not in hypothesis_names])
    if hypothesis_level is None:
        hypothesis_level = level
    errors: list[float] = []
    owners: list[int] = []
    for number, (name, hypothesis_name) in enumerate(hypothesis_names.items()):
        reference = segments(references[name], level, ignore, rename, f"reference {name}")
        hypothesis = segments(
            hypotheses[hypothesis_name],
            hypothesis_level,
            ignore,
            hypothesis_rename or rename,
            f"hypothesis {hypothesis_name}",
        )
        partners = _partners(reference, hypothesis)
        edges = _edges(reference)
        hypothesis_edges = _edges(hypothesis)
        for edge in edges:
            if edge.label in partners:
                _, start, end = hypothesis[partners[edge.label]]
                errors.append((end if edge.is_end else start) - edge.time)
            else:
                errors.append(np.nan)
        owners += [number] * len(edges)
        result.left += [edge.left for edge in edges]
        result.right += [edge.right for edge in edges]
        matched = set(partners.values())
        times = sorted({edge.time for edge in edges})
        hypothesis_times = sorted({edge.time for edge in hypothesis_edges})
        result.counts.append(
            BoundaryCounts(
                reference=len(times),
                hypothesis=len(hypothesis_times),
                hits=count_hits(times, hypothesis_times),
                extra=sum(edge.label not in matched for edge in hypothesis_edges),
            )
        )
    result.errors = np.array(errors, dtype=np.float64)
    result.owners = np.array(owners, dtype=np.int64)
    result.utterances = list(hypothesis_names)
    return result


class _Edge(NamedTuple):
    """A boundary: the start of a label, or its end; the names on both sides."""

    time: int
    label: int
    is_end: bool
    left: str
    right: str


def _edges(labels: Sequence[Segment]) -> list[_Edge]:
    """Return the boundaries of labels, by label."""
    edges = []
    for i, (name, start, end) in enumerate(labels):
        follows = i > 0 and labels[i - 1][2] == start
        edges.append(_Edge(start, i, False, labels[i - 1][0] if follows else "", name))
        if i + 1 == len(labels) or labels[i + 1][1] != end:
            edges.append(_Edge(end, i, True, name, ""))
    return edges


def _partners(reference: Sequence[Segment], hypothesis: Sequence[Segment]) -> dict[int, int]:
    """Return index of a label -> that of the equal label of the hypothesis with which it is matched.

    What is missed in one direction is extra in the other, so equally cheap alignments must not depend on the order.
    """
    names = [segment[0] for segment in reference]
    hypothesis_names = [segment[0] for segment in hypothesis]
    if is_swapped := names < hypothesis_names:
        names, hypothesis_names = hypothesis_names, names
    partners = {}
    i = j = 0
    for name, hypothesis_name in align(names, hypothesis_names):
        if name == hypothesis_name:
            partners[j if is_swapped else i] = i if is_swapped else j
        i += name is not None
        j += hypothesis_name is not None
    return partners


def count_hits(
    times: Sequence[int],
    hypothesis_times: Sequence[int],
    tolerance: int = TOLERANCE * TICKS_PER_MILLISECOND + ROUNDING,
) -> int:
    """Return the largest number of pairs of times, one of each sequence, at most `tolerance` apart.

    Both sequences rise, and each time is in one pair at most.  To pair the earliest times that can be paired is best:
    later ones have more to choose from.
    """
    i = j = hits = 0
    while i < len(times) and j < len(hypothesis_times):
        distance = hypothesis_times[j] - times[i]
        hits += abs(distance) <= tolerance
        i += distance >= -tolerance
        j += distance <= tolerance
    return hits


def segments(labels: Sequence[Label], level: int, ignore: Collection[str], rename: Rename, where: str) -> list[Segment]:
    """(name, start, end) of the labels of a level, without those to ignore.

    A label of a higher level lasts until the next one, or until a label to ignore begins below it: a silence after a
    word has no word beside it.
    """
    bounds: list[tuple[int, int]] = []
    for label in labels:
        if label.start is None or label.end is None:
            raise FormatError(f"{where}: label '{label.name}' has no start and end; expected both")
        bounds.append((label.start, label.end))
    if level == 0:
        named = [(rename(label.name), start, end) for label, (start, end) in zip(labels, bounds)]
    else:
        begins = [i for i, label in enumerate(labels) if len(label.aux) >= level or _is_pause(label, ignore, rename)]
        named = [
            (rename(labels[first].aux[level - 1][0]), bounds[first][0], bounds[last - 1][1])
            for first, last in zip(begins, [*begins[1:], len(labels)])
            if len(labels[first].aux) >= level
        ]
    return [segment for segment in _joined(named) if segment[0] not in ignore]


def _joined(labels: Sequence[Segment]) -> list[Segment]:
    """Return labels, those named with JOINER as one with the next label if it has such a name."""
    joined: list[Segment] = []
    for name, start, end in reversed(labels):
        first_name, *other_names = name.split(JOINER)
        if other_names and joined and joined[-1][1] == end and joined[-1][0] in (first_name, *other_names):
            joined[-1] = (joined[-1][0], start, joined[-1][2])
        else:
            joined.append((first_name, start, end))
    return joined[::-1]


def _is_pause(label: Label, ignore: Collection[str], rename: Rename) -> bool:
    """Whether a label that begins no unit of a level is one to ignore, or the first of one."""
    return any(rename(name) in ignore for name in (label.name, *(name for name, _ in label.aux)))
