"""How far the boundaries of one alignment lie from those of another.

The labels of an utterance are matched by the cheapest alignment of their names (decoder.scoring.error_counts), labels
to be ignored
(silence) left out.  A boundary is where a counted label of the reference begins, and where it ends if no counted label
follows it at once; it is compared with the same boundary of the label matched to it.  A boundary of a label that the
hypothesis has not is worse than any tolerance.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from decoder.scoring.error_counts import align, match_names
from readers.errors import FormatError
from readers.htk.mlf import Label
from readers.htk.trees import split_triphone


@dataclass
class Boundaries:
    """distances: of each boundary of the reference, 100 ns, hypothesis minus reference; num_unmatched: boundaries more
    whose label has no partner; missing: utterances without a hypothesis, not counted.
    """

    distances: np.ndarray = field(default_factory=lambda: np.zeros(0))
    num_unmatched: int = 0
    num_utterances: int = 0
    missing: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.distances) + self.num_unmatched

    def percent_within(self, milliseconds: float) -> float:
        """Of all boundaries, those at most so far from the reference; rounding of times to ticks is no distance."""
        close = int((np.abs(self.distances) <= milliseconds * 10_000 + 1).sum())
        return 100.0 * close / self.total if self.total else 0.0


def compare_boundaries(
    references: Mapping[str, Sequence[Label]],
    hypotheses: Mapping[str, Sequence[Label]],
    level: int = 0,
    ignore: Collection[str] = (),
    rename: Callable[[str], str] = lambda name: split_triphone(name)[1],
) -> Boundaries:
    """references, hypotheses: utterance -> labels with times; level: 0 the labels, 1 and up the columns beside them,
    each lasting to the next one of its level; rename: what a label counts as (triphones as their middle phone).

    Raises FormatError naming an utterance whose labels have no times.
    """
    found = match_names(references, hypotheses)
    result = Boundaries(missing=[name for name in references if name not in found])
    distances: list[int] = []
    for name in found:
        there = segments(references[name], level, ignore, rename, f"reference {name}")
        here = segments(hypotheses[found[name]], level, ignore, rename, f"hypothesis {found[name]}")
        pairs = align([label for label, _, _ in there], [label for label, _, _ in here])
        i = j = 0
        for reference, hypothesis in pairs:
            if reference is not None:
                _, start, end = there[i]
                closes = i + 1 == len(there) or there[i + 1][1] != end
                if reference == hypothesis:
                    distances.append(here[j][1] - start)
                    distances += [here[j][2] - end] if closes else []
                else:
                    result.num_unmatched += 1 + closes
            i, j = i + (reference is not None), j + (hypothesis is not None)
    result.distances = np.array(distances, dtype=np.float64)
    result.num_utterances = len(found)
    return result


def segments(
    labels: Sequence[Label], level: int, ignore: Collection[str], rename: Callable[[str], str], where: str
) -> list[tuple[str, int, int]]:
    """(name, start, end) of a level, those to be ignored left out."""
    for label in labels:
        if label.start is None or label.end is None:
            raise FormatError(f"{where}: label '{label.name}' has no start and end; expected both")
    if level == 0:
        found = [(rename(label.name), label.start, label.end) for label in labels]
    else:
        begins = [i for i, label in enumerate(labels) if len(label.aux) >= level]
        found = [
            (rename(labels[first].aux[level - 1][0]), labels[first].start, labels[last - 1].end)
            for first, last in zip(begins, [*begins[1:], len(labels)])
        ]
    return [segment for segment in found if segment[0] not in ignore]
