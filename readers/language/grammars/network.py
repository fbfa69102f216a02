"""Word networks: the sentences of a grammar as the paths of a network whose arcs carry words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from readers.errors import FormatError

MOST_ARCS = 200_000  # of a network; nested rules multiply, so that a short file could fill the memory
TAG_END = ""
UNKNOWN = "[unk]"  # in a grammar: anything that is not in it


class WordArc(NamedTuple):
    """An arc of a word network.

    Attributes
    ----------
    source, target : int
        Nodes.
    word : str or None
        None for an arc without a word.
    cost : float
        -ln of the weight, at least 0.
    tag : str or None
        Of an arc without a word, which is the only one to its target: the tag of the words from here on; or TAG_END
        where it ends, on the only arc from its source.
    """

    source: int
    target: int
    word: str | None = None
    cost: float = 0.0
    tag: str | None = None


@dataclass(frozen=True)
class WordNetwork:
    """A network of words; every path from node 0 to node 1 is a sentence.

    Attributes
    ----------
    num_nodes : int
        At least 2.
    arcs : sequence of WordArc
    where : str
        The file, for messages.
    """

    num_nodes: int
    arcs: Sequence[WordArc]
    where: str = "grammar"

    START, END = 0, 1

    @property
    def words(self) -> list[str]:
        """The words, each once, in the order of the arcs."""
        return list(dict.fromkeys(arc.word for arc in self.arcs if arc.word is not None))

    def without_tags(self) -> "WordNetwork":
        """Return the network of the same grammar without tags, whose parts begin and end where their tags did."""
        node = list(range(self.num_nodes))
        for arc in self.arcs:  # those of a tag before those of the tags inside it
            if arc.tag == TAG_END:
                node[arc.source] = node[arc.target]
            elif arc.tag:
                node[arc.target] = node[arc.source]
        arcs = [WordArc(node[arc.source], node[arc.target], *arc[2:]) for arc in self.arcs if arc.tag is None]
        return WordNetwork(self.num_nodes, arcs, self.where)


class NetworkBuilder:
    """Collects nodes and arcs, and raises FormatError when there are too many."""

    def __init__(self, where: str):
        self.where = where
        self.arcs: list[WordArc] = []
        self.num_nodes = 2
        self._num_tags = 0  # arcs with a tag: two for each

    def node(self) -> int:
        """Create a node and return its number."""
        self.num_nodes += 1
        return self.num_nodes - 1

    def add(self, source: int, target: int, word: str | None = None, cost: float = 0.0, tag: str | None = None) -> None:
        """Add an arc.

        Raises FormatError for one arc too many, those with tags apart, and for a cost that is negative or not finite.
        """
        if not 0 <= cost < math.inf:
            raise FormatError(f"{self.where}: cost {cost:g} of {word or 'an arc'}; expected a number of at least 0")
        self._num_tags += tag is not None
        if len(self.arcs) - self._num_tags >= MOST_ARCS or self._num_tags > 2 * MOST_ARCS:
            raise FormatError(
                f"{self.where}: more than {MOST_ARCS} arcs when its rules are expanded; expected a smaller grammar, "
                "without rules that multiply each other"
            )
        self.arcs.append(WordArc(source, target, word, cost, tag))

    def network(self) -> WordNetwork:
        """Return what has been collected."""
        return WordNetwork(self.num_nodes, self.arcs, self.where)
