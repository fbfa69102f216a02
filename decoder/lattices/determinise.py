"""Deterministic lattices: every word sequence once, with the scores and segments of its best path.

Subset construction over a lattice without links that say nothing: a node of the result stands for the nodes that one
word sequence reaches, each with what its path costs beyond the cheapest one's, and with the segments that not all of
these paths share.  Mohri, Finite-state transducers in language and speech processing, Computational Linguistics 23(2),
1997; with segments kept beside the costs as Povey et al., Generating exact lattices in the WFST framework, ICASSP 2012.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decoder.lattices.links import Links, weigh
from decoder.scoring.error_counts import SENTENCE_MARKS
from readers.errors import GraphError
from readers.htk.slf import NULL_WORD, Division, Lattice
from readers.htk.units import TICKS_PER_SECOND

MAX_NODES = 100_000
DECIMALS = 6  # of scores, where two sets of nodes count as one


class Rest(NamedTuple):
    """What a path has that is not on the links of the result yet: whole score, acoustic and lm, segments."""

    total: float
    acoustic: float
    lm: float
    segments: tuple[Division, ...]

    def plus(self, other: "Rest") -> "Rest":
        return Rest(*(a + b for a, b in zip(self, other)))


NOTHING = Rest(0.0, 0.0, 0.0, ())
Subset = dict[int, Rest]


@dataclass
class _Found:
    """The result as it grows; link: (start, end, word, what it has)."""

    numbers: dict[tuple, int]
    times: list[float]
    links: list[tuple[int, int, str, Rest]]


def determinise(lattice: Lattice, max_nodes: int = MAX_NODES) -> Lattice:
    """The deterministic lattice; links that say nothing are left only where a sentence ends.

    A link's scores are exact for every path: of a word sequence, acoustic and lm sum to those of its best path in the
    lattice.  Segments move to the word after them where paths differ in them; times are those of the segments.
    Raises GraphError for a lattice with a loop, without a path, with more than one start or end, and when more than
    max_nodes nodes would come out, as they may where a lattice was not pruned.
    """
    links = weigh(lattice)
    silent, spoken = _by_node(links)
    place = {node: k for k, node in enumerate(links.nodes)}
    found = _Found({}, [], [])
    first = _closed({links.first: NOTHING}, silent, place)
    waiting, subsets = [_node(found, lattice, first)], {0: first}
    ends: list[tuple[int, Rest]] = []
    while waiting:
        node = waiting.pop()
        subset = subsets.pop(node)
        if links.last in subset:
            ends.append((node, subset[links.last]))
        for word, reached in _after(subset, spoken).items():
            closed = _closed(reached, silent, place)
            shared = _shared(closed)
            rest = {at: _minus(one, shared) for at, one in closed.items()}
            known = len(found.times)
            end = _node(found, lattice, rest)
            found.links.append((node, end, word, shared))
            if end == known:
                if known >= max_nodes:
                    raise GraphError(
                        f"{lattice.where}: more than {max_nodes} nodes when made deterministic; "
                        "expected a pruned lattice: a smaller --lattice-beam"
                    )
                waiting.append(end)
                subsets[end] = rest
    if not ends:
        raise links.no_path()
    return _finished(found, ends, lattice, links)


def _by_node(links: Links) -> tuple[list[list], list[list]]:
    """Links that leave each node as (end, word, what they have): those that say nothing, and the others."""
    lattice, scale = links.lattice, links.lattice.scale("acscale", 1.0)
    silent: list[list] = [[] for _ in range(lattice.num_nodes)]
    spoken: list[list] = [[] for _ in range(lattice.num_nodes)]
    for link in np.flatnonzero(np.isfinite(links.total)).tolist():
        segments = () if lattice.div is None else lattice.div[link] or ()
        word, acoustic = lattice.word[link], float(lattice.acoustic[link])
        if word in SENTENCE_MARKS and scale:  # the mark goes, and its penalty with it; its score stays
            acoustic = float(links.acoustic[link]) / scale
        has = Rest(float(links.total[link]), acoustic, float(lattice.lm[link]), segments)
        where = silent if word in SENTENCE_MARKS else spoken
        where[int(lattice.start[link])].append((int(lattice.end[link]), word, has))
    return silent, spoken


def _better(subset: Subset, node: int, rest: Rest) -> bool:
    return node not in subset or rest.total > subset[node].total


def _closed(subset: Subset, silent: list[list], place: dict[int, int]) -> Subset:
    """With the nodes that are reached without a word."""
    closed = dict(subset)
    waiting = set(subset)
    while waiting:
        node = min(waiting, key=place.__getitem__)  # all that enter it are done
        waiting.discard(node)
        for end, _, has in silent[node]:
            longer = closed[node].plus(has)
            if _better(closed, end, longer):
                closed[end] = longer
                waiting.add(end)
    return closed


def _after(subset: Subset, spoken: list[list]) -> dict[str, Subset]:
    """word -> the nodes that it leads to."""
    reached: dict[str, Subset] = {}
    for node, rest in subset.items():
        for end, word, has in spoken[node]:
            longer, nodes = rest.plus(has), reached.setdefault(word, {})
            if _better(nodes, end, longer):
                nodes[end] = longer
    return reached


def _shared(subset: Subset) -> Rest:
    """What goes onto the link: the best path's scores, and the segments that all begin with."""
    best = max(subset.values(), key=lambda rest: rest.total)
    length = min(len(rest.segments) for rest in subset.values())
    while any(rest.segments[:length] != best.segments[:length] for rest in subset.values()):
        length -= 1
    return best._replace(segments=best.segments[:length])


def _minus(rest: Rest, shared: Rest) -> Rest:
    scores = (a - b for a, b in zip(rest[:3], shared[:3]))
    return Rest(*scores, rest.segments[len(shared.segments) :])


def _node(found: _Found, lattice: Lattice, subset: Subset) -> int:
    """The number of the node that stands for a subset."""
    key = tuple(
        (node, *(round(value, DECIMALS) + 0.0 for value in rest[:3]), rest.segments)
        for node, rest in sorted(subset.items())
    )
    number = found.numbers.setdefault(key, len(found.times))
    if number == len(found.times):
        # With segments the same for all; without, the earliest, so that no link goes back in time.
        found.times.append(min(_time_before(lattice, node, rest.segments) for node, rest in subset.items()))
    return number


def _time_before(lattice: Lattice, node: int, segments: tuple[Division, ...]) -> float:
    """The time of a node less the length of some segments, in seconds.

    Counted in HTK's units of 100 ns: a difference of two sums of seconds may be less than 0 by a rounding error.
    """
    time = float(lattice.time[node])
    if math.isnan(time):
        return time
    lengths = sum(round((length or 0.0) * TICKS_PER_SECOND) for _, length, _ in segments)
    return (round(time * TICKS_PER_SECOND) - lengths) / TICKS_PER_SECOND


def _finished(found: _Found, ends: list[tuple[int, Rest]], lattice: Lattice, links: Links) -> Lattice:
    """Nodes in topological order, one end; what paths still have goes on links to it that say nothing."""
    last = len(found.times)
    rows = [*found.links, *((node, last, NULL_WORD, rest) for node, rest in ends)]
    times = [*found.times, float(lattice.time[links.last])]
    entering = [0] * (last + 1)
    leaving: list[list[int]] = [[] for _ in range(last + 1)]
    for start, end, *_ in rows:
        entering[end] += 1
        leaving[start].append(end)
    order, ready = {}, [0]
    while ready:
        node = ready.pop()
        order[node] = len(order)
        for end in leaving[node]:
            entering[end] -= 1
            if not entering[end]:
                ready.append(end)
    rows = sorted(rows, key=lambda row: (order[row[0]], order[row[1]], row[2]))
    return Lattice(
        time=np.array([times[node] for node in order]),
        start=np.array([order[row[0]] for row in rows], np.int32),
        end=np.array([order[row[1]] for row in rows], np.int32),
        word=[row[2] for row in rows],
        acoustic=np.array([row[3].acoustic for row in rows]),
        lm=np.array([row[3].lm for row in rows]),
        div=None if lattice.div is None else [row[3].segments or None for row in rows],
        utterance=lattice.utterance,
        header=dict(lattice.header),
    )
