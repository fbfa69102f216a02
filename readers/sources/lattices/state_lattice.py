"""Lattices of HMM states: made of the links of a word lattice whose states are known, with the reference as a path."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from readers.errors import ShapeError
from readers.minibatches.supervision import LatticeSupervision


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
    """Arcs sorted by start node; node 0 is the start, node num_nodes - 1 the end.  See LatticeSupervision.

    Attributes
    ----------
    num_nodes : int
    start, end, first_frame, num_frames, senone, phone : (A,) int32
    lm, transition : (A,) float64
    starts_word : (A,) bool
    """

    num_nodes: int
    start: np.ndarray
    end: np.ndarray
    first_frame: np.ndarray
    num_frames: np.ndarray
    senone: np.ndarray
    phone: np.ndarray
    lm: np.ndarray
    transition: np.ndarray
    starts_word: np.ndarray

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

        def arcs(values: np.ndarray, of_empty: np.ndarray | int, kind: type) -> np.ndarray:
            return np.concatenate([values, np.broadcast_to(of_empty, empty.shape)]).astype(kind)

        lattice = cls(
            num_nodes=len(position),
            start=arcs(position[before], position[start[empty]], np.int32),
            end=arcs(position[after], position[end[empty]], np.int32),
            first_frame=arcs(states.first, time[start[empty]], np.int32),
            num_frames=arcs(states.end - states.first, 0, np.int32),
            senone=arcs(states.senone, -1, np.int32),
            phone=arcs(states.phone, -1, np.int32),
            lm=arcs(share, lm[empty], np.float64),
            transition=arcs(states.transition, 0, np.float64),
            starts_word=arcs(starts_word, word[empty], bool),
        )
        return lattice.in_order()

    def in_order(self) -> "StateLattice":
        """The same with arcs in the order of start nodes, then of end nodes."""
        order = np.lexsort((self.end, self.start))
        arcs: dict[str, Any] = {
            name: array[order] for name, array in vars(self).items() if isinstance(array, np.ndarray)
        }
        return replace(self, **arcs)

    def with_path(self, path: StatePath) -> "StateLattice":
        """The lattice with another path from the start to the end.  Raises ShapeError if it has other frames."""
        time = np.zeros(self.num_nodes, np.int64)
        time[self.end] = self.first_frame + self.num_frames
        if path.start[0] != 0 or path.end[-1] != time[-1]:
            raise ShapeError(f"{path.end[-1]} frames in the reference; expected {time[-1]}, as in the lattice")
        position = _places(np.concatenate([time, path.end[:-1]]))
        inner = np.arange(self.num_nodes, self.num_nodes + len(path.start) - 1)
        start, end = np.concatenate([[0], inner]), np.concatenate([inner, [self.num_nodes - 1]])

        def joined(old: np.ndarray, new: np.ndarray) -> np.ndarray:
            return np.concatenate([old, new.astype(old.dtype)])

        lattice = StateLattice(
            num_nodes=len(position),
            start=joined(position[self.start].astype(np.int32), position[start]),
            end=joined(position[self.end].astype(np.int32), position[end]),
            first_frame=joined(self.first_frame, path.start),
            num_frames=joined(self.num_frames, path.end - path.start),
            senone=joined(self.senone, path.senone),
            phone=joined(self.phone, path.phone),
            lm=joined(self.lm, path.lm),
            transition=joined(self.transition, path.transition),
            starts_word=joined(self.starts_word, path.starts_word),
        )
        return lattice.in_order()

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
            start_node=self.start,
            end_node=self.end,
            first_frame=self.first_frame,
            num_arc_frames=self.num_frames,
            senone=self.senone,
            phone=self.phone,
            lm_score=self.lm.astype(np.float32),
            transition_score=self.transition.astype(np.float32),
            starts_word=self.starts_word,
            num_nodes=self.num_nodes,
            silence=silence,
            reference_transition_score=float(scores[1]),
            num_reference_words=int(reference.starts_word.sum()),
        )


def _places(time: np.ndarray) -> np.ndarray:
    """The place of each node in the order of time; nodes of equal time stay in order."""
    position = np.empty(len(time), np.int64)
    position[np.argsort(time, kind="stable")] = np.arange(len(time))
    return position
