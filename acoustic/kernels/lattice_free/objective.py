"""The objective of lattice-free MMI for the sequences of a minibatch, and its gradient."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from acoustic.kernels.lattice_free import numerator_loops
from acoustic.kernels.lattice_free.denominator import denominator
from acoustic.runtime.thread_team import ThreadTeam
from readers.errors import ModelError
from readers.minibatches.supervision import ChainSupervision, DenominatorGraph, NumeratorGraph, PlacedSupervision


class Objective(NamedTuple):
    """The terms of the objective, natural logarithms of probabilities, by sequence.

    Attributes
    ----------
    numerator, denominator : (S,) float64
    has_path : (S,) bool
        Whether the numerator has a path; the gradient of a sequence without one is 0.
    """

    numerator: np.ndarray
    denominator: np.ndarray
    has_path: np.ndarray


@dataclass(frozen=True, eq=False)
class LatticeFree:
    """The sequences of a minibatch with their graphs.

    Parameters
    ----------
    placed : sequence of PlacedSupervision
        At least one, in different columns of the minibatch, with a ChainSupervision each and one denominator.
    num_slots : int
        Of the minibatch: the number of columns from a frame of a sequence to the next.
    num_outputs : int
        Of the network.

    Raises
    ------
    ModelError
        For graphs that do not fit the sequences or the network, and several denominators.
    """

    placed: Sequence[PlacedSupervision]
    num_slots: int
    num_outputs: int

    def __post_init__(self) -> None:
        for chain in self.chains:
            if chain.denominator is not self.graph:
                raise ModelError(f"{chain.name}: another denominator graph; expected one for all sequences")
            _check_numerator(chain)
        if self.graph.num_outputs != self.num_outputs:
            expected = f"{self.graph.num_outputs}, as in the denominator graph"
            raise ModelError(f"{self.num_outputs} outputs; expected {expected}")

    @property
    def names(self) -> list[str]:
        """The names of the sequences."""
        return [chain.name for chain in self.chains]

    @cached_property
    def chains(self) -> list[ChainSupervision]:
        """The graphs of the sequences."""
        return [placed.supervision for placed in self.placed if isinstance(placed.supervision, ChainSupervision)]

    @property
    def graph(self) -> DenominatorGraph:
        """The denominator."""
        return self.chains[0].denominator

    @cached_property
    def firsts(self) -> np.ndarray:
        """(S,) int64: the first column of each sequence."""
        return np.array([sequence.step * self.num_slots + sequence.slot for sequence in self.placed], np.int64)

    @cached_property
    def counts(self) -> np.ndarray:
        """(S,) int64: the number of frames of each sequence."""
        return np.array([sequence.num_frames for sequence in self.placed], np.int64)

    def compute(self, x: np.ndarray, leaky: float, team: ThreadTeam, gradient: np.ndarray | None = None) -> Objective:
        """Return the objective of outputs x (outputs, N); fill the gradient (outputs, N) of its negative, if given.

        The gradient, posterior of the denominator less that of the numerator, is 0 in columns without supervision.
        """
        if gradient is not None:
            gradient.fill(0)
        rows = None if gradient is None else gradient.T
        denominators = denominator(self.graph, x.T, self.firsts, self.counts, self.num_slots, leaky, team, rows)
        numerators = self.numerators(x, team, rows)
        has_path = numerators > -np.inf
        if gradient is not None and not has_path.all():
            for k in np.flatnonzero(~has_path).tolist():
                gradient[:, self.slice_of(k)] = 0
        return Objective(numerators, denominators, has_path)

    def numerators(self, x: np.ndarray, team: ThreadTeam, posteriors: np.ndarray | None = None) -> np.ndarray:
        """Return the numerator's logarithm for each sequence; subtract its posteriors from (N, outputs), if given.

        The logarithm is -inf for a sequence without a path.
        """
        results = np.empty(len(self.placed))
        target = np.empty((0, self.num_outputs), x.dtype) if posteriors is None else posteriors

        def compute(k: int) -> None:
            span = self._place(k)
            graph = graph_arrays(self.chains[k].numerator)
            status, results[k] = numerator_loops.forward_backward(x.T, span, *graph, -1.0, target, span)
            self._check(k, status)

        self._each(compute, team)
        return results

    def cross_entropy(
        self, x: np.ndarray, z: np.ndarray, team: ThreadTeam, gradient: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cross entropy of the numerators' posteriors and softmax(z), and `has_path`, for each sequence.

        x and z are (outputs, N); the gradient (outputs, N) of z is filled, if given. It is 0 in columns without
        supervision and for sequences without a path.
        """
        results = np.zeros(len(self.placed))
        has_path = np.ones(len(self.placed), bool)
        target = np.empty((0, self.num_outputs), x.dtype) if gradient is None else gradient.T
        target[...] = 0

        def compute(k: int) -> None:
            graph = graph_arrays(self.chains[k].numerator)
            status, results[k] = numerator_loops.cross_entropy(x.T, z.T, self._place(k), *graph, target)
            self._check(k, status)
            has_path[k] = status == numerator_loops.FINE

        self._each(compute, team)
        return results, has_path

    def regularise(
        self,
        x: np.ndarray,
        scales: Mapping[str, float],
        has_path: np.ndarray,
        team: ThreadTeam,
        gradient: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return l2 / 2 times the squares of the outputs and penalty / 2 times those of the excess over +-limit, (S,).

        scales: l2, limit and penalty. The derivatives are added to the gradient (outputs, N), if given. A sequence
        without a path has none.
        """
        results = np.zeros(len(self.placed))
        target = np.empty((0, self.num_outputs), x.dtype) if gradient is None else gradient.T
        number = x.dtype.type
        l2, limit, penalty = number(scales["l2"]), number(scales["limit"]), number(scales["penalty"])

        def compute(k: int) -> None:
            if has_path[k]:
                results[k] = numerator_loops.regularise(x.T, self._place(k), l2, limit, penalty, target)

        self._each(compute, team)
        return results

    def columns_of(self, chosen: np.ndarray) -> np.ndarray:
        """Return the columns of the sequences where (S,) bool is true, one sequence after the other, (F,) int64."""
        steps = [
            first + self.num_slots * np.arange(count) for first, count in zip(self.firsts[chosen], self.counts[chosen])
        ]
        return np.concatenate([np.zeros(0, np.int64), *steps])

    def slice_of(self, k: int) -> slice:
        """Return the columns of a sequence."""
        first = self.firsts[k]
        last = self.firsts[k] + (self.counts[k] - 1) * self.num_slots
        return slice(int(first), int(last) + 1, self.num_slots)

    def _place(self, k: int) -> tuple[int, int, int]:
        """Return the first column of a sequence, the columns from a frame to the next, and the number of frames."""
        return self.firsts[k], self.num_slots, self.counts[k]

    def _check(self, k: int, status: int) -> None:
        if status == numerator_loops.FAULT:
            name = self.chains[k].name
            expected = "expected states, outputs, arcs"
            raise ModelError(f"{name}: numerator graph with an index out of range; {expected}")

    def _each(self, compute: Callable[[int], None], team: ThreadTeam) -> None:
        """Call compute(k) for every sequence, in the threads of the team."""

        def work(worker: int) -> None:
            for k in range(worker, len(self.placed), team.size):
                compute(k)

        team.run(work, min(team.size, len(self.placed)))


def graph_arrays(graph: NumeratorGraph) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Return the arrays of a numerator and frame_arcs as the loops take them; copies: a mapped file is read-only."""
    indices = (np.array(numbers, np.int32) for numbers in (graph.from_state, graph.to_state, graph.output))
    logarithms = (np.array(values, np.float32) for values in (graph.log_probability, graph.initial, graph.final))
    frame_arcs = np.array([] if graph.frame_arcs is None else graph.frame_arcs, np.int32)
    return (*indices, *logarithms), frame_arcs


def _check_numerator(chain: ChainSupervision) -> None:
    graph = chain.numerator
    arcs = {len(array) for array in (graph.from_state, graph.to_state, graph.output, graph.log_probability)}
    states = {graph.num_states, len(graph.initial), len(graph.final)}
    if len(arcs) != 1 or len(states) != 1:
        raise ModelError(
            f"{chain.name}: arrays of different lengths in the numerator graph; expected one for arcs, one for states"
        )
    if graph.frame_arcs is not None and len(graph.frame_arcs) != chain.num_frames + 1:
        arc_text = f"arcs for {len(graph.frame_arcs) - 1} frames in the numerator graph"
        raise ModelError(f"{chain.name}: {arc_text}; expected {chain.num_frames}")
