"""Lattices of HMM states: made of the links of a word lattice whose states are known, with the reference as a path."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from readers.errors import ShapeError
from readers.minibatches.supervision import LatticeSupervision
from readers.sources.lattices.lattice_archive import ARCS

# Columns of LatticeSupervision; scores are sums, and stay float64 until they are stored.
ARC = np.dtype([(name, "<f8" if kind == "<f4" else kind) for name, kind in ARCS.items()])


@dataclass(frozen=True)
class StatePath:
    """A path as n visits of HMM states.

    Attributes
    ----------
    start, end : (n,) int64
        Frames, end exclusive.
    senone, phone : (n,) int32
    lm, transition : (n,) float64
        ln P; lm has the language model and the costs of pronunciations.
    starts_word : (n,) bool
    words : tuple of str
    """

    start: np.ndarray
    end: np.ndarray
    senone: np.ndarray
    phone: np.ndarray
    lm: np.ndarray
    transition: np.ndarray
    starts_word: np.ndarray
    words: tuple[str, ...]

    @property
    def scores(self) -> tuple[float, float]:
        """The (lm, transition) score of the path."""
        return float(self.lm.sum()), float(self.transition.sum())

    def of_frames(self, values: np.ndarray) -> np.ndarray:
        """The value of each frame, (T,) int32, for values (n,) of the visits."""
        return np.repeat(values, self.end - self.start).astype(np.int32)


@dataclass(frozen=True)
class LinkStates:
    """The states of L links, one link after the other.

    Attributes
    ----------
    link : (S,) int64
        The link of each state, rising; a link may have none.
    first, end : (S,) int64
        Frames, end exclusive.
    senone, phone : (S,) int32
    transition : (S,) float64
        ln P.
    silent : (S,) bool
        Whether the phone is silence.
    """

    link: np.ndarray
    first: np.ndarray
    end: np.ndarray
    senone: np.ndarray
    phone: np.ndarray
    transition: np.ndarray
    silent: np.ndarray


@dataclass(frozen=True)
class StateLattice:
    """A lattice of HMM states; node 0 is the start, node num_nodes - 1 the end.

    Attributes
    ----------
    num_nodes : int
    arcs : (A,) ARC
        Sorted by start node, then by end node.
    """

    num_nodes: int
    arcs: np.ndarray

    @classmethod
    def of_links(
        cls, time: np.ndarray, start: np.ndarray, end: np.ndarray, lm: np.ndarray, word: np.ndarray, states: LinkStates
    ) -> "StateLattice":
        """Make the lattice of links.

        Parameters
        ----------
        time : (N,) int array
            Frames before each node; nodes are in topological order.
        start, end : (L,) int array
            Nodes of the links.
        lm : (L,) array
            ln P, which goes to the link's first arc.
        word : (L,) bool array
            Whether a link has a word, which begins with its first state that is not silence.
        states : LinkStates
            They fill the time of their links.

        Returns
        -------
        StateLattice
        """
        link = states.link
        count = np.bincount(states.link, minlength=len(start))
        some = np.flatnonzero(count > 0)
        empty = np.flatnonzero(count == 0)
        is_first, is_last = np.zeros((2, len(link)), bool)
        ends = np.cumsum(count)
        is_first[(ends - count)[some]] = is_last[ends[some] - 1] = True
        inner = len(time) + np.cumsum(~is_last) - 1  # the node after each state that is not the last of its link
        before = np.where(is_first, start[link], np.roll(inner, 1))
        after = np.where(is_last, end[link], inner)
        position = _places(np.concatenate([time, states.end[~is_last]]))

        begins = ends - count  # the state with which a word begins
        speech = np.flatnonzero(~states.silent)[::-1]
        begins[link[speech]] = speech  # the first one of each link is assigned last
        starts_word = np.zeros(len(link), bool)
        share = np.zeros(len(link))
        starts_word[begins[some]] = word[some]
        share[is_first] = lm[some]

        columns = (states.senone, states.phone, share, states.transition, starts_word)
        with_frames = _arcs(position[before], position[after], states.first, states.end, *columns)
        at = time[start[empty]]
        without = _arcs(position[start[empty]], position[end[empty]], at, at, -1, -1, lm[empty], 0, word[empty])
        return cls(len(position), _in_order(with_frames, without))

    def with_path(self, path: StatePath) -> "StateLattice":
        """The lattice with another path from the start to the end.  Raises ShapeError if it has other frames."""
        time = np.zeros(self.num_nodes, np.int64)
        time[self.arcs["end_node"]] = self.arcs["first_frame"] + self.arcs["num_arc_frames"]
        if path.start[0] != 0 or path.end[-1] != time[-1]:
            raise ShapeError(f"{path.end[-1]} frames in the reference; expected {time[-1]}, as in the lattice")
        position = _places(np.concatenate([time, path.end[:-1]]))
        inner = np.arange(self.num_nodes, self.num_nodes + len(path.start) - 1)
        nodes = position[np.concatenate([[0], inner, [self.num_nodes - 1]])]
        columns = (path.senone, path.phone, path.lm, path.transition, path.starts_word)
        added = _arcs(nodes[:-1], nodes[1:], path.start, path.end, *columns)
        arcs = self.arcs.copy()
        for side in ("start_node", "end_node"):
            arcs[side] = position[arcs[side]]
        return StateLattice(len(position), _in_order(arcs, added))

    def supervision(
        self, name: str, reference: StatePath, scores: Sequence[float], silence: np.ndarray
    ) -> LatticeSupervision:
        """Return the lattice as criteria take it.

        Parameters
        ----------
        name : str
            The utterance.
        reference : StatePath
        scores : (float, float)
            lm and transition score of its path in the lattice.
        silence : (P,) bool array
            Whether each phone is silence.

        Returns
        -------
        LatticeSupervision
        """
        return LatticeSupervision(
            name=name,
            num_frames=int(reference.end[-1]),
            reference_senones=reference.of_frames(reference.senone),
            reference_phones=reference.of_frames(reference.phone),
            reference_score=float(scores[0]),
            num_nodes=self.num_nodes,
            silence=silence,
            reference_transition_score=float(scores[1]),
            num_reference_words=int(reference.starts_word.sum()),
            **{key: self.arcs[key].astype(kind) for key, kind in ARCS.items()},
        )


def _arcs(
    start: np.ndarray, end: np.ndarray, first: np.ndarray, last: np.ndarray, *others: npt.ArrayLike
) -> np.ndarray:
    """Make arcs between nodes, with frames from first to last; others: the other columns, in the order of ARC."""
    arcs = np.zeros(len(start), ARC)
    for name, column in zip(ARC.names or (), (start, end, first, last - first, *others)):
        arcs[name] = column
    return arcs


def _in_order(*arcs: np.ndarray) -> np.ndarray:
    joined = np.concatenate(arcs)
    return joined[np.lexsort((joined["end_node"], joined["start_node"]))]


def _places(time: np.ndarray) -> np.ndarray:
    """The place of each node in the order of time; nodes of equal time stay in order."""
    position = np.empty(len(time), np.int64)
    position[np.argsort(time, kind="stable")] = np.arange(len(time))
    return position
