"""Deterministic lattices: every word sequence once, with the scores and segments of its best path.

Subset construction over a lattice whose links without words are treated as epsilons.  A node of the result stands for
the nodes that a word sequence reaches, each with the residual of its best path: the score beyond the best node's, and
the segments that the paths to these nodes do not share.

References
----------
Mohri, Finite-state transducers in language and speech processing, Computational Linguistics 23(2), 1997; with segments
as in Povey et al., Generating exact lattices in the WFST framework, ICASSP 2012.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from decoder.lattices.links import ScoredLinks, weigh
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.common.text import SENT_START
from readers.errors import GraphError
from readers.htk.units import TICKS_PER_SECOND
from readers.results.lattice import NULL_WORD, SENT_END, Lattice, Segment, Segments, numbered

MAX_NODES = 100_000
DECIMALS = 6  # of scores when subsets are compared


class Residual(NamedTuple):
    """The part of a path that is not yet on links of the result: total, acoustic and LM score, segments."""

    total: float
    acoustic: float
    lm: float
    segments: tuple[Segment, ...]

    def plus(self, other: "Residual") -> "Residual":
        return Residual(
            self.total + other.total, self.acoustic + other.acoustic, self.lm + other.lm, self.segments + other.segments
        )


NOTHING = Residual(0.0, 0.0, 0.0, ())
Subset = dict[int, Residual]
Leaving = list[list[tuple[int, str, Residual]]]  # of each node: end, word and scores of links


@dataclass
class _Found:
    """The result under construction; links: (start, end, word, scores)."""

    numbers: dict[tuple[object, ...], int]
    times: list[float]
    links: list[tuple[int, int, str, Residual]]


def determinise(lattice: Lattice, max_nodes: int = MAX_NODES) -> Lattice:
    """The deterministic lattice; links without a word remain only at the end of sentences.

    The scores of the links are exact for every path: for a word sequence, acoustic and LM scores sum to those of its
    best path in the lattice.  Links that are on no path of a probability above zero are left out.  Segments move to the
    following word where paths differ in them; times are those of the segments.  Raises GraphError for a
    lattice with a loop, without a path, with more than one start or end, and when the result would have more than
    max_nodes nodes, as it may for a lattice that was not pruned.
    """
    links = weigh(lattice)
    silent, spoken = _by_node(links)
    position = {node: k for k, node in enumerate(lattice.order)}
    result = _Found({}, [], [])
    first = _closed({links.first: NOTHING}, silent, position)
    waiting = [_node(result, lattice, first)]
    subsets = {0: first}
    ends: list[tuple[int, Residual]] = []
    while waiting:
        node = waiting.pop()
        subset = subsets.pop(node)
        if links.last in subset:
            ends.append((node, subset[links.last]))
        for word, reached in _after(subset, spoken).items():
            closed = _closed(reached, silent, position)
            shared = _shared(closed)
            residual = {at: _minus(weight, shared) for at, weight in closed.items()}
            number = len(result.times)
            end = _node(result, lattice, residual)
            result.links.append((node, end, word, shared))
            if end == number:
                if number >= max_nodes:
                    raise GraphError(
                        f"{lattice.where}: more than {max_nodes} nodes after determinisation; "
                        "expected a pruned lattice: a smaller lattice beam"
                    )
                waiting.append(end)
                subsets[end] = residual
    return _finished(result, ends, lattice, links)


def _by_node(links: ScoredLinks) -> tuple[Leaving, Leaving]:
    """Possible links that leave each node as (end, word, scores): those without a word, and the others.

    The beginning of another sentence stays, like a word, since what follows has another history.
    """
    lattice = links.lattice
    scale = links.lattice.acoustic_scale
    rows = links.lattice.segments.rows()
    silent: Leaving = [[] for _ in range(lattice.num_nodes)]
    spoken: Leaving = [[] for _ in range(lattice.num_nodes)]
    for link in np.flatnonzero(links.possible).tolist():
        word = lattice.word[link]
        acoustic = float(lattice.acoustic[link])
        is_mark = word in SENTENCE_MARKS and not links.begins_sentence[link]
        if is_mark and scale:  # the mark's word penalty is removed with it, its score kept
            acoustic = float(links.acoustic[link]) / scale
        has = Residual(float(links.total[link]), acoustic, float(lattice.lm[link]), rows[link])
        where = silent if is_mark else spoken
        where[int(lattice.start[link])].append((int(lattice.end[link]), word, has))
    return silent, spoken


def _better(subset: Subset, node: int, residual: Residual) -> bool:
    return node not in subset or residual.total > subset[node].total


def _closed(subset: Subset, silent: Leaving, place: dict[int, int]) -> Subset:
    """The subset with all nodes that are reached without a word (epsilon closure)."""
    closed = dict(subset)
    waiting = set(subset)
    while waiting:
        node = min(waiting, key=place.__getitem__)  # all links into it have been followed
        waiting.discard(node)
        for end, _, has in silent[node]:
            longer = closed[node].plus(has)
            if _better(closed, end, longer):
                closed[end] = longer
                waiting.add(end)
    return closed


def _after(subset: Subset, spoken: Leaving) -> dict[str, Subset]:
    """word -> the subset that it leads to."""
    reached: dict[str, Subset] = {}
    for node, residual in subset.items():
        for end, word, has in spoken[node]:
            longer = residual.plus(has)
            nodes = reached.setdefault(word, {})
            if _better(nodes, end, longer):
                nodes[end] = longer
    return reached


def _shared(subset: Subset) -> Residual:
    """The scores of the best path and the segments that all paths share: these go on the link."""
    best = max(subset.values(), key=lambda residual: residual.total)
    length = min(len(residual.segments) for residual in subset.values())
    while any(residual.segments[:length] != best.segments[:length] for residual in subset.values()):
        length -= 1
    return best._replace(segments=best.segments[:length])


def _minus(residual: Residual, shared: Residual) -> Residual:
    return Residual(
        residual.total - shared.total, residual.acoustic - shared.acoustic, residual.lm - shared.lm,
        residual.segments[len(shared.segments) :],
    )  # fmt: skip


def _node(found: _Found, lattice: Lattice, subset: Subset) -> int:
    """The number of the node that stands for a subset."""
    key = tuple(
        (node, *(round(value, DECIMALS) + 0.0 for value in residual[:3]), residual.segments)
        for node, residual in sorted(subset.items())
    )
    number = found.numbers.setdefault(key, len(found.times))
    if number == len(found.times):
        # With segments it is the same for all nodes; without, the earliest, so that no link goes back in time.
        found.times.append(min(_time_before(lattice, node, residual.segments) for node, residual in subset.items()))
    return number


def _time_before(lattice: Lattice, node: int, segments: tuple[Segment, ...]) -> float:
    """The time of a node less the length of some segments, in seconds.

    Computed in HTK's units of 100 ns: a difference of two sums of seconds may be negative by a rounding error.
    """
    time = float(lattice.time[node])
    if math.isnan(time):
        return time
    lengths = sum(round((length or 0.0) * TICKS_PER_SECOND) for _, length, _ in segments)
    return (round(time * TICKS_PER_SECOND) - lengths) / TICKS_PER_SECOND


def _end_empty_sentence(found: _Found, lattice: Lattice) -> None:
    """Put the end of a sentence before the link at the start that begins another one.

    The first sentence then has no words, and without its mark nothing says that the link is not the first beginning.
    """
    at_start = (k for k, (start, _, word, _) in enumerate(found.links) if start == 0 and word == SENT_START)
    link = next(at_start, None)
    if link is not None:
        scale = lattice.acoustic_scale
        mark = NOTHING._replace(acoustic=-lattice.word_penalty / scale if scale else 0.0)  # which has a word penalty
        middle = len(found.times)
        found.times.append(found.times[0])
        found.links[link] = (middle, *found.links[link][1:])
        found.links.append((0, middle, SENT_END, mark))


def _finished(found: _Found, ends: list[tuple[int, Residual]], lattice: Lattice, links: ScoredLinks) -> Lattice:
    """The lattice with nodes in topological order and one end.

    The residuals of final nodes go on links to the end without a word.
    """
    _end_empty_sentence(found, lattice)
    last = len(found.times)
    rows = [*found.links, *((node, last, NULL_WORD, residual) for node, residual in ends)]
    times = [*found.times, float(lattice.time[links.last])]
    entering = [0] * (last + 1)
    leaving: list[list[int]] = [[] for _ in range(last + 1)]
    for start, end, *_ in rows:
        entering[end] += 1
        leaving[start].append(end)
    order: dict[int, int] = {}
    ready = [0]
    while ready:
        node = ready.pop()
        order[node] = len(order)
        for end in leaving[node]:
            entering[end] -= 1
            if not entering[end]:
                ready.append(end)
    rows = sorted(rows, key=lambda row: (order[row[0]], order[row[1]], row[2]))
    label, words = numbered([row[2] for row in rows])
    return replace(
        lattice,
        time=np.array([times[node] for node in order]),
        start=np.array([order[row[0]] for row in rows], np.int32),
        end=np.array([order[row[1]] for row in rows], np.int32),
        label=label,
        words=words,
        acoustic=np.array([row[3].acoustic for row in rows]),
        lm=np.array([row[3].lm for row in rows]),
        variant=np.zeros(len(rows), np.int32),
        segments=Segments.of_rows(row[3].segments for row in rows),
        path="",
    )
