"""The scored links of a lattice, in topological order: the basis of all algorithms on lattices."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from readers.common.text import SENT_START
from readers.errors import GraphError
from readers.results.lattice import NULL_WORD, Lattice

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
    first, last : int
        Start and end node.
    lattice : Lattice
    """

    acoustic: np.ndarray
    total: np.ndarray
    first: int
    last: int
    lattice: Lattice

    @cached_property
    def possible(self) -> np.ndarray:
        """(L,) bool, the links on paths from start to end of a probability above zero.  Raises GraphError for none."""
        finite = np.isfinite(self.total)
        order = self.lattice.in_order[finite[self.lattice.in_order]].tolist()
        start, end = self.lattice.start.tolist(), self.lattice.end.tolist()
        reached = {self.first}
        leads_on = {self.last}
        reached.update(end[link] for link in order if start[link] in reached)
        leads_on.update(start[link] for link in reversed(order) if end[link] in leads_on)
        if self.last not in reached:
            raise self.lattice.no_path()
        return finite & np.array([a in reached and b in leads_on for a, b in zip(start, end)], bool)

    @cached_property
    def begins_sentence(self) -> np.ndarray:
        """(L,) bool, whether a link begins another sentence: it bears !SENT_START, and words or time lie before it."""
        lattice = self.lattice
        marked = lattice.bears({SENT_START})
        if not marked.any():
            return marked
        said = np.zeros(lattice.num_nodes, bool)
        speaks = ~lattice.bears(STARTS)
        for link in self.lattice.in_order.tolist():
            said[lattice.end[link]] |= said[lattice.start[link]] or speaks[link]
        return marked & (said | (lattice.time > lattice.time[self.first]))[lattice.start]


def weigh(lattice: Lattice) -> ScoredLinks:
    """Score the links of a lattice with its scales and its word penalty.

    Parameters
    ----------
    lattice : Lattice

    Returns
    -------
    ScoredLinks
        Scores are natural logs.

    Raises
    ------
    GraphError
        Unless there is exactly one start and one end node, and for scores of NaN, +inf and beyond 1e30.

    References
    ----------
    HTK Book, standard lattice format.
    """
    first, last = lattice.ends
    with np.errstate(over="ignore", invalid="ignore"):  # the sums are checked below
        acoustic = lattice.acoustic_scale * lattice.acoustic + lattice.word_penalty * ~lattice.bears({NULL_WORD})
        total = acoustic + lattice.lm_scale * lattice.lm
    odd = np.flatnonzero(~((np.abs(total) <= MOST) | (total == -np.inf)))  # NaN too
    if odd.size:
        raise GraphError(f"{lattice.where}: link {odd[0]} scores {total[odd[0]]}; expected a log-likelihood")
    return ScoredLinks(acoustic, total, first, last, lattice)
