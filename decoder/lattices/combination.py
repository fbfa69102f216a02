"""The union of lattices of one utterance, from several systems.

The consensus network of the union (`consensus.py`) gives the words with the fewest expected errors over all systems:
system combination by minimum Bayes risk, as Kaldi's lattice-combine followed by lattice-mbr-decode.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from decoder.lattices.links import weigh
from decoder.lattices.posteriors import link_posteriors
from decoder.lattices.times import silence_words, word_begins
from readers.errors import ArgonautError
from readers.results.lattice import NULL_WORD, Lattice, Segment, Segments

SILENCE, SPEECH = "sil", "speech"  # segments of the union: states of different systems have nothing in common


def combine(lattices: Sequence[Lattice], weights: Sequence[float] | None = None) -> Lattice:
    """Return the union of lattices, in which each has a share of the probability.

    Parameters
    ----------
    lattices : sequence of Lattice
        Of one utterance, one from each system.
    weights : sequence of float, optional
        Above 0, one for each lattice; default: all equal.  Only their ratios matter.

    Returns
    -------
    Lattice
        All paths of all lattices, between a new start node and a new end node.  The posterior of a path is the one that
        it has in its own lattice times the share of that lattice.  Scores are scaled, and word penalties included, so
        that the scales are 1.  Segments are reduced to silence and speech.

    Raises
    ------
    ArgonautError
        Unless there are as many weights as lattices, all above 0.
    GraphError
        For a lattice with a loop, without a path, or with more than one start or end.
    FormatError
        For a header that cannot be read.

    References
    ----------
    Xu, Povey, Mangu and Zhu, Minimum Bayes Risk decoding and system combination based on a recursion for edit distance,
    Computer Speech and Language 25(4), 2011.
    """
    weights = [1.0] * len(lattices) if weights is None else list(weights)
    if len(weights) != len(lattices) or not lattices or not all(0 < w < math.inf for w in weights):
        shown = ",".join(f"{weight:g}" for weight in weights)
        raise ArgonautError(f"weights {shown}: for {len(lattices)} lattices; expected a number above 0 for each")
    times: list[npt.ArrayLike] = [[0.0]]
    columns: list[tuple[Iterable[Any], ...]] = []
    segments: list[Sequence[Segment]] = []
    offset = 1  # nodes: start, all others, end
    last = 1 + sum(lattice.num_nodes for lattice in lattices)
    ends = []
    for lattice, weight in zip(lattices, weights):
        links = weigh(lattice)
        share = math.log(weight / sum(weights)) - link_posteriors(links).total
        columns.append(([0], [offset + links.first], [NULL_WORD], [share], [0.0], [0]))
        with np.errstate(invalid="ignore"):  # of minus infinity; that of the acoustic score remains
            scores = np.where(np.isneginf(links.acoustic), 0.0, links.total - links.acoustic)
        nodes = lattice.start + offset, lattice.end + offset
        columns.append((*nodes, lattice.word, links.acoustic, scores, lattice.variant))
        columns.append(([offset + links.last], [last], [NULL_WORD], [0.0], [0.0], [0]))
        segments += [(), *_segments(lattice), ()]
        times.append(lattice.time)
        ends.append(lattice.time[links.last])
        offset += lattice.num_nodes
    start, end, word, acoustic, lm, variants = (
        [value for part in column for value in part] for column in zip(*columns)
    )
    return Lattice.of_words(
        *(np.concatenate([*times, [max(ends)]]), start, end, word, acoustic, lm),
        variant=np.array(variants, np.int32),
        segments=Segments.of_rows(segments),
        silence={SILENCE: [SILENCE]},
        utterance=lattices[0].utterance,
        header=_shared_header(lattices),
    )


def _segments(lattice: Lattice) -> list[list[Segment]]:
    """Silence and speech of each link; nothing for a link without segments or without times."""
    segments: list[list[Segment]] = []
    silences = silence_words(lattice)
    times = lattice.time[lattice.start], word_begins(lattice), lattice.time[lattice.end]
    for word, count, *bounds in zip(lattice.word, np.diff(lattice.segments.first).tolist(), *times):
        if not count or np.isnan(bounds).any():
            segments.append([])
            continue
        if word in silences:
            bounds = [bounds[0], bounds[2], bounds[2]]
        lengths = [float(after - before) for before, after in pairwise(bounds)]
        segments.append([(name, length, None) for name, length in zip((SILENCE, SPEECH), lengths) if length > 0])
    return segments


def _shared_header(lattices: Sequence[Lattice]) -> dict[str, str]:
    """The fields that are the same in all headers."""
    first, *later_headers = (lattice.header for lattice in lattices)
    return {name: value for name, value in first.items() if all(header.get(name) == value for header in later_headers)}
