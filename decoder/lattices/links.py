"""The scored links of a lattice, in topological order: the basis of all algorithms on lattices."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from readers.common.text import SENT_START
from readers.errors import GraphError
from readers.htk.slf import NULL_WORD, Lattice

STARTS = frozenset({NULL_WORD, SENT_START, "<s>"})  # what comes before the first word
MOST = 1e30  # sums of so large scores stay finite in float32


@dataclass(frozen=True)
class ScoredLinks:
    """A lattice with the scores of its L links.

    Attributes
    ----------
    acoustic : (L,) float64
        Scaled acoustic score with the word penalty, natural logarithm.
    total : (L,) float64
        The same with the scaled LM score.
    leaving : list of list of int
        The links that leave each node.
    first, last : int
        Start and end node.
    lattice : Lattice
    """

    acoustic: np.ndarray
    total: np.ndarray
    leaving: list[list[int]]
    first: int
    last: int
    lattice: Lattice

    @cached_property
    def nodes(self) -> list[int]:
        """The nodes in topological order.  Raises GraphError for a loop."""
        entering = np.bincount(self.lattice.end, minlength=self.lattice.num_nodes)
        order = [self.first]
        for node in order:
            for link in self.leaving[node]:
                end = int(self.lattice.end[link])
                entering[end] -= 1
                if entering[end] == 0:
                    order.append(end)
        if len(order) != self.lattice.num_nodes:
            raise GraphError(f"{self.lattice.where}: has a loop; expected none")
        return order

    @cached_property
    def in_order(self) -> np.ndarray:
        """(L,) the links, each after all links that enter its start node."""
        place = np.empty(self.lattice.num_nodes, np.int64)
        place[self.nodes] = np.arange(len(self.nodes))
        return np.argsort(place[self.lattice.start], kind="stable")

    @cached_property
    def possible(self) -> np.ndarray:
        """(L,) bool, the links on paths from start to end of a probability above zero.  Raises GraphError for none."""
        finite = np.isfinite(self.total)
        order = self.in_order[finite[self.in_order]].tolist()
        start, end = self.lattice.start.tolist(), self.lattice.end.tolist()
        reached, leads_on = {self.first}, {self.last}
        reached.update(end[link] for link in order if start[link] in reached)
        leads_on.update(start[link] for link in reversed(order) if end[link] in leads_on)
        if self.last not in reached:
            raise self.no_path()
        return finite & [a in reached and b in leads_on for a, b in zip(start, end)]

    @cached_property
    def begins_sentence(self) -> np.ndarray:
        """(L,) bool, whether a link begins another sentence: it bears !SENT_START, and words or time lie before it."""
        lattice = self.lattice
        marked = np.array([word == SENT_START for word in lattice.word], bool)
        if not marked.any():
            return marked
        said = np.zeros(lattice.num_nodes, bool)
        for link in self.in_order.tolist():
            said[lattice.end[link]] |= said[lattice.start[link]] or lattice.word[link] not in STARTS
        return marked & (said | (lattice.time > lattice.time[self.first]))[lattice.start]

    def no_path(self) -> GraphError:
        """The error for a lattice without a path."""
        return GraphError(f"{self.lattice.where}: no path from start to end; expected one")


def weigh(lattice: Lattice) -> ScoredLinks:
    """Score the links of a lattice with the scales and the word penalty of its header.

    Parameters
    ----------
    lattice : Lattice

    Returns
    -------
    ScoredLinks
        Scores are natural logs: acscale * a + wdpenalty (if there is a word) + lmscale * l.

    Raises
    ------
    GraphError
        Unless there is exactly one start and one end node, and for scores of NaN, +inf and beyond 1e30.

    References
    ----------
    HTK Book, standard lattice format.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the sums are checked below
        penalty = lattice.scale("wdpenalty", 0.0) * np.array([word != NULL_WORD for word in lattice.word])
        acoustic = lattice.scale("acscale", 1.0) * lattice.acoustic + penalty
        total = acoustic + lattice.scale("lmscale", 1.0) * lattice.lm
    leaving: list[list[int]] = [[] for _ in range(lattice.num_nodes)]
    for link, node in enumerate(lattice.start.tolist()):
        leaving[node].append(link)
    entered = np.bincount(lattice.end, minlength=lattice.num_nodes)
    first = np.flatnonzero(entered == 0)
    last = [node for node, links in enumerate(leaving) if not links]
    if len(first) != 1 or len(last) != 1:
        raise GraphError(f"{lattice.where}: {len(first)} start nodes and {len(last)} end nodes; expected one of each")
    odd = np.flatnonzero(~((np.abs(total) <= MOST) | (total == -np.inf)))  # NaN too
    if odd.size:
        found = f"link {odd[0]} scores {total[odd[0]]}"
        raise GraphError(f"{lattice.where}: {found}; expected a log-likelihood")
    return ScoredLinks(acoustic, total, leaving, int(first[0]), last[0], lattice)
