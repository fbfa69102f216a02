"""Compares the boundaries of two alignments.

The labels of an utterance are matched by a minimum-cost alignment of their names (decoder.scoring.error_counts),
without the labels to ignore (silence).  A boundary is the start of a counted label of the reference, and its end unless
another counted label follows immediately; it is compared with the same boundary of the matching label.  A boundary of a
label that the hypothesis does not have is outside every tolerance.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from decoder.scoring.error_counts import align, match_names
from readers.errors import FormatError
from readers.htk.mlf import Label
from readers.htk.trees import split_triphone


@dataclass
class BoundaryComparison:
    """Distances between the boundaries of two alignments.

    Attributes
    ----------
    distances : (n,) float64
        Hypothesis minus reference, 100 ns units, of each boundary whose label has a match.
    num_unmatched : int
        Boundaries of labels without a match.
    num_utterances : int
    missing : list of str
        Utterances without a hypothesis, which are not counted.
    """

    distances: np.ndarray = field(default_factory=lambda: np.zeros(0))
    num_unmatched: int = 0
    num_utterances: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Number of boundaries of the reference."""
        return len(self.distances) + self.num_unmatched

    def percent_within(self, milliseconds: float) -> float:
        """Percentage of all boundaries within `milliseconds` of the reference, allowing for rounding to ticks."""
        close = int((np.abs(self.distances) <= milliseconds * 10_000 + 1).sum())
        return 100.0 * close / self.total if self.total else 0.0


def compare_boundaries(
    references: Mapping[str, Sequence[Label]],
    hypotheses: Mapping[str, Sequence[Label]],
    level: int = 0,
    ignore: Collection[str] = (),
    rename: Callable[[str], str] = lambda name: split_triphone(name)[1],
    hypothesis_level: int | None = None,
) -> BoundaryComparison:
    """Distances between the label boundaries of two alignments.

    Parameters
    ----------
    references, hypotheses : mapping of str to sequence of Label
        Utterance -> labels with times in 100 ns ticks.
    level : int
        0: the labels; 1 and up: the columns beside them, each of which lasts until the next one of its level.
    ignore : collection of str
        Names (after `rename`) that are left out.
    rename : callable
        The name that a label counts as; by default a triphone counts as its centre phone.
    hypothesis_level : int, optional
        The level of the hypotheses, if it differs from that of the references.

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
    distances: list[int] = []
    level_here = level if hypothesis_level is None else hypothesis_level
    for name in hypothesis_names:
        reference_segments = segments(references[name], level, ignore, rename, f"reference {name}")
        hypothesis_segments = segments(
            hypotheses[hypothesis_names[name]], level_here, ignore, rename, f"hypothesis {hypothesis_names[name]}"
        )
        pairs = align([label for label, _, _ in reference_segments], [label for label, _, _ in hypothesis_segments])
        i = j = 0
        for reference, hypothesis in pairs:
            if reference is not None:
                _, start, end = reference_segments[i]
                closes = i + 1 == len(reference_segments) or reference_segments[i + 1][1] != end
                if reference == hypothesis:
                    distances.append(hypothesis_segments[j][1] - start)
                    distances += [hypothesis_segments[j][2] - end] if closes else []
                else:
                    result.num_unmatched += 1 + closes
            i += reference is not None
            j += hypothesis is not None
    result.distances = np.array(distances, dtype=np.float64)
    result.num_utterances = len(hypothesis_names)
    return result


def segments(
    labels: Sequence[Label], level: int, ignore: Collection[str], rename: Callable[[str], str], where: str
) -> list[tuple[str, int, int]]:
    """(name, start, end) of the labels of a level, without those to ignore."""
    bounds: list[tuple[int, int]] = []
    for label in labels:
        if label.start is None or label.end is None:
            raise FormatError(f"{where}: label '{label.name}' has no start and end; expected both")
        bounds.append((label.start, label.end))
    if level == 0:
        named = [(rename(label.name), start, end) for label, (start, end) in zip(labels, bounds)]
    else:
        begins = [i for i, label in enumerate(labels) if len(label.aux) >= level]
        named = [
            (rename(labels[first].aux[level - 1][0]), bounds[first][0], bounds[last - 1][1])
            for first, last in zip(begins, [*begins[1:], len(labels)])
        ]
    return [segment for segment in named if segment[0] not in ignore]
