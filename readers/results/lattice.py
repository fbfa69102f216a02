"""Word lattices as arrays, in a form that no file format determines.

`readers.htk.slf` and `readers.kaldi.lattice` read and write it; all algorithms on lattices work on it.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from readers.errors import GraphError

NULL_WORD = "!NULL"
SENT_END = "!SENT_END"

Segment = tuple[str, float | None, float | None]  # label, seconds, score


def numbered(names: Sequence[str]) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the number of each name, and the names by number, in order of their first occurrence."""
    table = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([table[name] for name in names], np.int32), tuple(table)


@dataclass(frozen=True, eq=False)
class Segments:
    """The S segments of all links, such as HMM states, one link after the other.

    Attributes
    ----------
    first : (L + 1,) int64
        Link i has the segments first[i] to first[i + 1] - 1; there may be none.
    label : (S,) int32
        Number of each segment's label in `names`.
    seconds, score : (S,) float64
        Duration and log likelihood; NaN where it is not known.
    names : tuple of str
    """

    first: npt.NDArray[np.int64]
    label: npt.NDArray[np.int32]
    seconds: npt.NDArray[np.float64]
    score: npt.NDArray[np.float64]
    names: tuple[str, ...]

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[Segment]]) -> Self:
        """Join the segments of each link."""
        rows = list(rows)
        segments = [segment for row in rows for segment in row]
        label, names = numbered([row[0] for row in segments])
        seconds, score = (np.array([row[i] for row in segments], np.float64) for i in (1, 2))  # None becomes NaN
        return cls(np.cumsum([0, *map(len, rows)]), label, seconds, score, names)

    def rows(self) -> list[tuple[Segment, ...]]:
        """Return the segments of each link."""
        labels = [self.names[label] for label in self.label.tolist()]
        seconds, score = (
            [None if math.isnan(value) else value for value in values.tolist()] for values in (self.seconds, self.score)
        )
        segments = list(zip(labels, seconds, score))
        return [tuple(segments[first:end]) for first, end in pairwise(self.first.tolist())]

    def of_links(self, links: npt.NDArray[np.integer]) -> "Segments":
        """Return the segments of some links, in the order of `links`."""
        counts = np.diff(self.first)[links]
        first = np.concatenate([[0], np.cumsum(counts)])
        chosen = np.arange(first[-1]) + np.repeat(self.first[links] - first[:-1], counts)
        return Segments(first, self.label[chosen], self.seconds[chosen], self.score[chosen], self.names)


@dataclass(frozen=True, eq=False)
class Lattice:
    """A word lattice with N nodes and L links, whose words are on the links.

    The score of a link is acoustic_scale * acoustic + lm_scale * lm, plus word_penalty if it has a word.

    Attributes
    ----------
    time : (N,) float64
        Seconds from the start of the utterance; NaN if not known.
    start, end : (L,) int32
        Nodes of each link.
    label : (L,) int32
        Number of each link's word in `words`.
    words : tuple of str
        `!NULL` stands for no word.
    acoustic, lm : (L,) float64
        Natural-log likelihoods, 0 if not known; lm is not scaled and contains no word penalty.
    variant : (L,) int32
        Pronunciation number, 0 if not known.
    segments : Segments
    silence : mapping of str to sequence of str, or None
        Silence model -> the labels of its segments; None if not known.
    acoustic_scale, lm_scale, word_penalty : float
    utterance : str
        Name of the utterance.
    header : mapping of str to str
        What else a file says of the lattice, such as the name of the language model (lmname).
    path : str
        The file from which it was read.
    """

    time: npt.NDArray[np.float64]
    start: npt.NDArray[np.int32]
    end: npt.NDArray[np.int32]
    label: npt.NDArray[np.int32]
    words: tuple[str, ...]
    acoustic: npt.NDArray[np.float64]
    lm: npt.NDArray[np.float64]
    variant: npt.NDArray[np.int32]
    segments: Segments
    silence: Mapping[str, Sequence[str]] | None = None
    acoustic_scale: float = 1.0
    lm_scale: float = 1.0
    word_penalty: float = 0.0
    utterance: str = ""
    header: Mapping[str, str] = field(default_factory=dict)
    path: str = ""

    @classmethod
    def of_words(
        cls,
        time: npt.ArrayLike,
        start: npt.ArrayLike,
        end: npt.ArrayLike,
        word: Sequence[str],
        acoustic: npt.ArrayLike,
        lm: npt.ArrayLike,
        **others: Any,
    ) -> Self:
        """Make a lattice from the word of each link and, in `others`, further fields, by default without variants."""
        label, words = numbered(word)
        fields: dict[str, Any] = {"variant": np.zeros(len(word), np.int32)}
        fields |= {"segments": Segments.of_rows([()] * len(word)), **others}
        scores = np.asarray(acoustic, np.float64), np.asarray(lm, np.float64)
        nodes = np.asarray(start, np.int32), np.asarray(end, np.int32)
        return cls(np.asarray(time, np.float64), *nodes, label, words, *scores, **fields)

    @property
    def where(self) -> str:
        """File or utterance, for messages."""
        return self.path or f"lattice {self.utterance}".rstrip()

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.time)

    @property
    def num_links(self) -> int:
        """Number of links."""
        return len(self.start)

    @cached_property
    def word(self) -> list[str]:
        """The word of each link."""
        return [self.words[label] for label in self.label.tolist()]

    def bears(self, words: Container[str]) -> npt.NDArray[np.bool_]:
        """(L,) whether the word of each link is one of `words`."""
        return np.array([word in words for word in self.words], bool)[self.label]

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The start and the end node.  Raises GraphError unless there is one of each."""
        firsts, lasts = (np.setdiff1d(np.arange(self.num_nodes), nodes) for nodes in (self.end, self.start))
        if len(firsts) != 1 or len(lasts) != 1:
            counts = f"{len(firsts)} start nodes and {len(lasts)} end nodes"
            raise GraphError(f"{self.where}: {counts}; expected one of each")
        return int(firsts[0]), int(lasts[0])

    @cached_property
    def leaving(self) -> list[list[int]]:
        """The links that leave each node."""
        leaving: list[list[int]] = [[] for _ in range(self.num_nodes)]
        for link, node in enumerate(self.start.tolist()):
            leaving[node].append(link)
        return leaving

    @cached_property
    def order(self) -> list[int]:
        """The nodes in topological order.  Raises GraphError for a loop, and unless there is one start and one end."""
        entering = np.bincount(self.end, minlength=self.num_nodes).tolist()
        ends = self.end.tolist()
        order = [self.ends[0]]
        for node in order:
            for link in self.leaving[node]:
                entering[ends[link]] -= 1
                if entering[ends[link]] == 0:
                    order.append(ends[link])
        if len(order) != self.num_nodes:
            raise GraphError(f"{self.where}: has a loop; expected none")
        return order

    @cached_property
    def in_order(self) -> npt.NDArray[np.int64]:
        """(L,) the links, each after all links that enter its start node."""
        position = np.empty(self.num_nodes, np.int64)
        position[self.order] = np.arange(self.num_nodes)
        return np.argsort(position[self.start], kind="stable")

    def best_scores(self, score: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the best scores of paths from the start to each node, and from each node to the end, (N,) each.

        score (L,): of the links.  Raises GraphError if no path has a score above minus infinity.
        """
        forward, backward = np.full((2, self.num_nodes), -np.inf).tolist()
        forward[self.ends[0]] = backward[self.ends[1]] = 0.0
        links = list(zip(*(column[self.in_order].tolist() for column in (self.start, self.end, score))))
        for start, end, value in links:
            forward[end] = max(forward[end], forward[start] + value)
        for start, end, value in reversed(links):
            backward[start] = max(backward[start], value + backward[end])
        if not np.isfinite(forward[self.ends[1]]):
            raise self.no_path()
        return np.array(forward), np.array(backward)

    def best_path(self, score: npt.NDArray[np.float64]) -> list[int]:
        """Return the links of the best path; of equal ones, that whose links come first.  See `best_scores`."""
        forward, _ = self.best_scores(score)
        entering = {}
        for link in self.in_order[::-1].tolist():
            if forward[self.start[link]] + score[link] == forward[self.end[link]]:
                entering[int(self.end[link])] = link
        path = []
        node = self.ends[1]
        while node != self.ends[0]:
            path.append(entering[node])
            node = int(self.start[path[-1]])
        return path[::-1]

    def no_path(self) -> GraphError:
        """The error for a lattice without a path."""
        return GraphError(f"{self.where}: no path from start to end; expected one")
