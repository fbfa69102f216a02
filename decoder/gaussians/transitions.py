"""Transition probabilities of HMM states, and transcripts' graphs with them.

A state has a self-loop.  When it is left, it goes on to the next state, except in the silence model with any-order
topology: there, any state may follow any other, the model is entered by its first state and left from its last one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from decoder.alignment.kernels import AlignmentArrays
from decoder.graph.options import GraphOptions
from decoder.graph.phone_models import PhoneModels
from decoder.graph.transcript import TranscriptGraph, TranscriptGraphs
from readers.htk.dictionary import Pronunciation

STAY = 0.6  # P(self) at the start, as in HTK's prototypes


@dataclass(frozen=True)
class Topology:
    """The models: phones of states from left to right, silence in any order or from left to right.

    Attributes
    ----------
    models : dict of str to tuple of str
        Model -> its states.
    silence : str
        Model of silence.
    any_order : bool
        Whether the states of silence may follow each other in any order.
    """

    models: Mapping[str, tuple[str, ...]]
    silence: str
    any_order: bool = True

    @property
    def states(self) -> list[str]:
        """All states, in order."""
        return [state for states in self.models.values() for state in states]

    @property
    def ways(self) -> list[tuple[int, int]]:
        """(from, to) of the transitions of silence other than self-loops.

        States are counted from 1; the exit is one more than their number.  Empty if silence is left-to-right.
        """
        last = len(self.models[self.silence])
        if not self.any_order or last == 1:
            return []
        jumps = [(i, j) for i in range(1, last + 1) for j in range(1, last + 1) if i != j]
        return sorted([*jumps, (last, last + 1)])

    def graphs(
        self,
        dictionary: Sequence[Pronunciation],
        silence_probability: float | None = None,
        pronunciation_scale: float = 1.0,
    ) -> TranscriptGraphs:
        """The builder of transcripts' graphs, whose costs are those of pronunciations and of optional silence."""
        options = GraphOptions(
            silence=self.silence,
            optional_silence=True,
            silence_probability=silence_probability,
            silence_topology="any-order" if self.ways else "left-to-right",
            pronunciation_scale=pronunciation_scale,
        )
        rows = {state: row for row, state in enumerate(self.states)}
        return TranscriptGraphs(PhoneModels(self.models), dictionary, rows, options)


@dataclass(frozen=True, eq=False)
class Transitions:
    """Transition probabilities of K states.

    Attributes
    ----------
    stay : (K,) float64
        P(self).
    ways : (W,) float64
        P(to | from is left) of each of the topology's `ways`.
    """

    stay: np.ndarray
    ways: np.ndarray

    @classmethod
    def flat(cls, topology: Topology) -> "Transitions":
        """Equal probabilities for all states."""
        source = np.array([start for start, _ in topology.ways], dtype=np.int64)
        return cls(
            np.full(len(topology.states), STAY), 1.0 / np.bincount(source)[source] if len(source) else np.zeros(0)
        )

    def matrices(self, topology: Topology) -> dict[str, np.ndarray]:
        """Model -> (n, n) transition probabilities as in HTK, with the entry and the exit."""
        result = {}
        row = 0
        for model, states in topology.models.items():
            size = len(states) + 2
            matrix = np.zeros((size, size))
            matrix[0, 1] = 1.0
            for state in range(1, size - 1):
                matrix[state, state] = self.stay[row]
                matrix[state, state + 1] = 1 - self.stay[row]
                row += 1
            if model == topology.silence and topology.ways:
                leave = 1 - matrix.diagonal()
                matrix[np.arange(1, size - 1), np.arange(2, size)] = 0.0
                for (start, end), probability in zip(topology.ways, self.ways):
                    matrix[start, end] = leave[start] * probability
            result[model] = matrix
        return result


@dataclass(frozen=True, eq=False)
class UtteranceGraph:
    """A transcript's graph without transition probabilities, ready for the kernels.

    Attributes
    ----------
    states : (S,) int32
        The states that occur, ascending.
    arrays : AlignmentArrays
        Rows are indices into `states`; costs without transition probabilities.
    arc_way, final_way : (A,) and (P,) int64
        Index of the way of silence that an arc, or the end, takes; W for none.
    """

    states: np.ndarray
    arrays: AlignmentArrays
    arc_way: np.ndarray
    final_way: np.ndarray

    @classmethod
    def of(cls, graph: TranscriptGraph, topology: Topology) -> "UtteranceGraph":
        """Compile a graph of `Topology.graphs`."""
        states, local = np.unique(graph.row, return_inverse=True)
        arrays = AlignmentArrays(
            row=local.astype(np.int32),
            self_cost=graph.stay,
            first_arc=graph.first_arc,
            arc_source=graph.arc_source,
            arc_cost=graph.arc_cost,
            entry_cost=graph.entry,
            final_cost=graph.final,
            to_end=graph.to_end,
        )
        ways = topology.ways
        arc_way = np.full(len(graph.arc_source), len(ways))
        final_way = np.full(len(graph.row), len(ways))
        if ways:
            last = len(topology.models[topology.silence])
            silent = np.array([unit.model == topology.silence for unit in graph.units])[graph.unit]
            position = np.arange(len(graph.row)) - np.searchsorted(graph.unit, graph.unit) + 1
            number = np.full((last + 2, last + 2), len(ways))
            number[tuple(np.array(ways).T)] = np.arange(len(ways))
            target = np.repeat(np.arange(len(graph.row)), np.diff(graph.first_arc))
            source = graph.arc_source
            stays_inside = graph.unit[source] == graph.unit[target]
            way = number[
                np.where(silent[source], position[source], 0), np.where(stays_inside, position[target], last + 1)
            ]
            arc_way = np.where(silent[source], way, len(ways))
            final_way[silent & (position == last)] = number[last, last + 1]
        return cls(states.astype(np.int32), arrays, arc_way.astype(np.int64), final_way.astype(np.int64))

    def with_transitions(self, transitions: Transitions) -> AlignmentArrays:
        """The arrays with the costs of transitions."""
        arrays = self.arrays
        stay = transitions.stay[self.states][arrays.row]
        with np.errstate(divide="ignore"):
            leave = -np.log1p(-stay)
            ways = np.append(-np.log(transitions.ways), 0.0)
            staying = -np.log(stay)
        return arrays._replace(
            self_cost=arrays.self_cost + staying,
            arc_cost=arrays.arc_cost + leave[arrays.arc_source] + ways[self.arc_way],
            final_cost=arrays.final_cost + leave + ways[self.final_way],
        )
