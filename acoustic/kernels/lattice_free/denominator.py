"""The denominator of lattice-free MMI: forward-backward in scaled probabilities over all states of one graph."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from acoustic.kernels.lattice_free import denominator_loops as loops
from acoustic.runtime.lanes import LANES
from acoustic.runtime.thread_team import ThreadTeam
from readers.minibatches.supervision import DenominatorGraph
from readers.sources.chain.denominator_file import check_denominator

MOST_KEPT = 64 << 20  # bytes of a thread

Span = tuple[np.ndarray, np.ndarray, int]  # first column and number of frames of each lane, columns between frames

_tables: "WeakKeyDictionary[DenominatorGraph, DenominatorTables]" = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class DenominatorTables:
    """The arcs of a denominator graph as the loops read them.

    Attributes
    ----------
    States are in another order than in the graph.

    num_states, num_outputs : int
    run_state, run_output : (R,) int32
        Where the arcs of a run lead to, and their output.
    run_arcs : (R + 1,) int32
        Arcs run_arcs[r]:run_arcs[r + 1] of the next two arrays are those of run r.
    arc_from : (A,) int32
    into_probability : (A,) float32
    state_arcs : (num_states + 1,) int32
        Arcs state_arcs[i]:state_arcs[i + 1] of the next two arrays leave state i.
    arc_run : (A,) int32
    from_probability : (A,) float32
    initial : (num_states,) float64
    """

    num_states: int
    num_outputs: int
    run_state: np.ndarray
    run_output: np.ndarray
    run_arcs: np.ndarray
    arc_from: np.ndarray
    into_probability: np.ndarray
    state_arcs: np.ndarray
    arc_run: np.ndarray
    from_probability: np.ndarray
    initial: np.ndarray

    def forward_tables(self, dtype: type) -> tuple[np.ndarray, ...]:
        """Return the arrays that the forward loop reads, probabilities in a type."""
        return self.run_state, self.run_output, self.run_arcs, self.arc_from, self.into_probability.astype(dtype)

    def backward_tables(self, dtype: type) -> tuple[np.ndarray, ...]:
        """Return the arrays that the backward loop reads, probabilities in a type."""
        return self.run_state, self.run_output, self.state_arcs, self.arc_run, self.from_probability.astype(dtype)


def tables_of(graph: DenominatorGraph) -> DenominatorTables:
    """Return the tables of a graph, made once for each graph.

    Raises
    ------
    FormatError
        If an index or a probability of the graph is out of range.
    """
    if graph not in _tables:
        check_denominator(graph, "denominator graph")
        _tables[graph] = _make_tables(graph)
    return _tables[graph]


def _make_tables(graph: DenominatorGraph) -> DenominatorTables:
    fewest_first = np.argsort(np.bincount(graph.from_state, minlength=graph.num_states), kind="stable")
    new_number = np.empty(graph.num_states, np.int32)
    new_number[fewest_first] = np.arange(graph.num_states)
    from_state = new_number[graph.from_state]
    to_state = new_number[graph.to_state]
    runs, run_of_arc = np.unique(to_state.astype(np.int64) * graph.num_outputs + graph.output, return_inverse=True)
    count = np.bincount(run_of_arc)
    by_count = np.argsort(count, kind="stable")
    rank = np.empty(len(runs), np.int32)
    rank[by_count] = np.arange(len(runs))
    arc_run = rank[run_of_arc]
    entering = np.lexsort((from_state, arc_run))
    leaving = np.lexsort((arc_run, from_state))
    leaving_count = np.bincount(from_state, minlength=graph.num_states)
    return DenominatorTables(
        num_states=graph.num_states,
        num_outputs=graph.num_outputs,
        run_state=(runs[by_count] // graph.num_outputs).astype(np.int32),
        run_output=(runs[by_count] % graph.num_outputs).astype(np.int32),
        run_arcs=np.append(0, np.cumsum(count[by_count])).astype(np.int32),
        arc_from=from_state[entering],
        into_probability=graph.probability[entering].astype(np.float32),
        state_arcs=np.append(0, np.cumsum(leaving_count)).astype(np.int32),
        arc_run=arc_run[leaving],
        from_probability=graph.probability[leaving].astype(np.float32),
        initial=np.asarray(graph.initial, np.float64)[fewest_first] / np.sum(graph.initial),
    )


def denominator(
    graph: DenominatorGraph,
    x: np.ndarray,
    firsts: np.ndarray,
    counts: np.ndarray,
    stride: int,
    leaky: float,
    team: ThreadTeam,
    gradient: np.ndarray | None = None,
) -> np.ndarray:
    """Return the logarithm of the sum over all paths for each sequence; fill its columns of the gradient.

    The paths of a sequence begin in a state with its initial probability, follow arcs and end in any state. Before the
    first frame and after each frame, a path may go on from any state at which probability, `leaky` times its initial
    probability.

    Parameters
    ----------
    graph : DenominatorGraph
    x : (N, outputs) float32 or float64
        Outputs of the network, a row for each column.
    firsts, counts : (S,) int64
        The first column and the number of frames of each sequence.
    stride : int
        Columns from a frame of a sequence to the next.
    leaky : float
    team : ThreadTeam
        The threads that divide the sequences; the result does not depend on their number.
    gradient : (N, outputs), optional
        Receives the posterior probabilities of the outputs in the columns of the sequences.

    Returns
    -------
    (S,) float64
        NaN for a sequence whose outputs are not finite.

    References
    ----------
    Povey et al., Purely sequence-trained neural networks for ASR based on lattice-free MMI, Interspeech 2016, and
    chain-denominator.cc of Kaldi, which limits outputs to +-30 here; the sum over the paths is exact instead.
    """
    tables = tables_of(graph)
    results = np.empty(len(firsts))
    blocks = _blocks(counts, team.size)

    def work(worker: int) -> None:
        block = _Block(tables, x, leaky, int(counts.max()))
        for chosen in blocks[worker :: team.size]:
            results[chosen] = block.compute(firsts[chosen], counts[chosen], stride, gradient)

    team.run(work, min(team.size, len(blocks)))
    return results


def _blocks(counts: np.ndarray, workers: int) -> list[np.ndarray]:
    """Return the numbers of the sequences of each block: sequences of similar length, the longest ones first."""
    order = np.argsort(-counts, kind="stable")
    fewest = -(-len(order) // LANES)
    number = min(max(-(-fewest // workers) * workers, 1), len(order))
    return np.array_split(order, number)


class _Block:
    """Working memory of a thread, for one block of sequences at a time.

    Of long sequences, what backward reads is kept for a segment of steps at a time, and computed again from alpha at
    the beginning of the segment.
    """

    def __init__(self, tables: DenominatorTables, x: np.ndarray, leaky: float, most_steps: int) -> None:
        self.tables = tables
        self.x = x
        self.initial = tables.initial.astype(x.dtype)
        self.leak = (tables.initial * leaky).astype(x.dtype)
        self.into = tables.forward_tables(x.dtype.type)
        self.out_of = tables.backward_tables(x.dtype.type)
        states = tables.num_states
        runs = len(tables.run_output)
        outputs = tables.num_outputs
        self.alpha, self.after, self.beta, self.run_beta, self.posteriors = (
            np.empty((rows, LANES), x.dtype) for rows in (states, states, states, runs, outputs)
        )
        self.rows = np.empty((LANES, outputs), x.dtype)
        self.segment = max(1, min(most_steps, MOST_KEPT // ((runs + outputs) * LANES * x.dtype.itemsize)))
        shapes = (runs, LANES), (outputs, LANES), (LANES,)
        self.kept = tuple(np.empty((self.segment, *shape), x.dtype) for shape in shapes)

    def compute(self, firsts: np.ndarray, counts: np.ndarray, stride: int, gradient: np.ndarray | None) -> np.ndarray:
        lanes = np.zeros((2, LANES), np.int64)  # unused lanes have no frames
        lanes[:, : len(counts)] = firsts, counts
        span = *lanes, stride
        results = np.full(LANES, np.log1p(self.leak.sum()))
        starts = []
        steps = int(counts.max())
        loops.begin(self.alpha, self.initial, self.leak)
        for first in range(0, steps, self.segment):
            if first + self.segment < steps and gradient is not None:
                starts.append(self.alpha.copy())
            self._forward(span, first, steps, results)
        if gradient is None:
            return results[: len(counts)]
        betas = self.beta, self.run_beta
        for number in reversed(range(-(-steps // self.segment))):
            first = number * self.segment
            if number < len(starts):
                self.alpha[...] = starts[number]
                self._forward(span, first, steps, np.empty(LANES))
            kept_steps = tuple(array[: steps - first] for array in self.kept)
            loops.backward(span, self.out_of, self.leak, betas, kept_steps, first, self.posteriors, gradient)
        return results[: len(counts)]

    def _forward(self, span: Span, first: int, steps: int, results: np.ndarray) -> None:
        kept_steps = tuple(array[: steps - first] for array in self.kept)
        alphas = self.alpha, self.after
        loops.forward(self.x, span, self.into, self.leak, alphas, self.rows, kept_steps, first, results)
