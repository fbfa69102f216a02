"""What a pass receives: inputs, random numbers, sequences; and whether stored values have changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from acoustic.engine.planning.execution_graph import indicator_inputs, mixes_gaps
from acoustic.engine.planning.pass_plan import Graph
from acoustic.network.network import Network
from acoustic.nodes.base import Node, PassContext
from acoustic.nodes.sequence_state import Sequences
from readers.errors import ModelError, ShapeError
from readers.minibatches.indicators import Indicators

if TYPE_CHECKING:
    from readers.minibatches.sequence_layout import SequenceLayout


class PassInputs:
    """What the nodes of a graph receive for a pass.

    roots: for messages; kernels: those of the nodes; names: of the inputs; inputs: their matrices (rows, T) or
    Indicators; context: what nodes see; sequences: the state of sequences that continue in the next minibatch;
    is_changed: whether a stored value, or the context, differs from those of the last pass.
    """

    def __init__(self, network: Network, graph: Graph, roots: Sequence[str], kernels: Any) -> None:
        self.network, self.backend, self.graph, self.roots = network, network.backend, graph, roots
        self.names = [node.name for node in graph.order if node.is_input]
        self.inputs: dict[str, Any] = {}
        self.kernels = kernels
        self.context = PassContext(self.backend, kernels=kernels)
        self._contexts: dict[int, PassContext] = {}  # of the workers whose columns begin later
        self.sequences = Sequences(self.backend.xp)
        self.is_changed = True
        self._indicators = indicator_inputs(graph)
        self._stored = [node for node in graph.order if node.is_stored]
        self._seen: tuple[PassContext, list[int]] | None = None  # the context, and the versions of the stored nodes
        self._mixers: list[Node] | None = None  # nodes that cannot handle gaps; None: not known yet

    def begin(
        self,
        matrices: Mapping[str, Any],
        training: bool,
        dropout_rate: float,
        seed: int | Sequence[int],
        layout: "SequenceLayout | None",
        first_column: int = 0,
    ) -> None:
        """Take the arguments of Engine.forward. Raises ShapeError and ModelError."""
        self._take_inputs(matrices)
        self._take_context(training, dropout_rate, seed, first_column)
        self._take_sequences(layout)
        self._look_at_stored()

    def context_from(self, column: int) -> PassContext:
        """The context of the worker whose columns begin there."""
        if column not in self._contexts:
            self._contexts[column] = replace(self.context, first_column=self.context.first_column + column)
        self._contexts[column].sequences = self.context.sequences
        return self._contexts[column]

    def _take_inputs(self, matrices: Mapping[str, Any]) -> None:
        for name in self.names:
            if name in matrices:
                matrix = matrices[name]
                rows = self.network.shapes[name].rows
                if matrix.ndim != 2 or matrix.shape[0] != rows:
                    dims = "x".join(map(str, matrix.shape))
                    raise ShapeError(f"{self.network[name].where}: fed a matrix of {dims}; expected {rows}x*")
                sparse = name in self._indicators and isinstance(matrix, Indicators)
                self.inputs[name] = matrix if sparse else self.backend.asarray(matrix)
            elif name not in self.inputs:
                raise ModelError(f"{self.network[name].where}: has no value; fed: {', '.join(matrices) or 'nothing'}")
        columns = {name: self.inputs[name].shape[1] for name in self.names}
        if len(set(columns.values())) > 1:
            counts = ", ".join(f"{name} has {count}" for name, count in columns.items())
            raise ShapeError(f"inputs: {counts} columns; expected one number of frames")
        if 0 in columns.values():
            raise ShapeError(f"inputs: {', '.join(columns)} have 0 columns; expected at least one frame")

    def _take_context(self, training: bool, dropout_rate: float, seed: int | Sequence[int], first_column: int) -> None:
        if not 0 <= dropout_rate < 1:
            raise ModelError(f"dropout rate {dropout_rate}; expected 0 <= rate < 1")
        settings = training, float(dropout_rate), (seed,) if isinstance(seed, int) else tuple(seed), first_column
        if settings != (self.context.training, self.context.dropout_rate, self.context.seed, self.context.first_column):
            self.context, self._contexts = PassContext(self.backend, *settings, kernels=self.kernels), {}
        self.context.sequences = None

    def _take_sequences(self, layout: "SequenceLayout | None") -> None:
        """Take the layout of sequences."""
        if layout is None:
            return
        if not self.names:
            raise ModelError(f"sequences for {', '.join(self.roots)}: depends on no input; expected one")
        self.sequences.begin(layout, self.inputs[self.names[0]].shape[1])
        self._check_gaps()
        self.context.sequences = self.sequences

    def _check_gaps(self) -> None:
        """Raise ModelError if the minibatch has gaps and a node would mix them with frames."""
        if self.sequences.gaps is None:
            return
        if self._mixers is None:
            self._mixers = [node for node in self.graph.order if mixes_gaps(self.graph, node)]
        if self._mixers:
            raise ModelError(
                f"{self._mixers[0].where}: mixes the frames of a minibatch that has columns without a frame; expected "
                "sequences of one length, or one at a time"
            )

    def _look_at_stored(self) -> None:
        for node in self._stored:
            if node.value is None:
                raise ModelError(f"{node.where}: not computed yet; expected the precompute pass before this one")
        state = self.context, [node.version for node in self._stored]
        self.is_changed = self._seen is None or state[0] is not self._seen[0] or state[1] != self._seen[1]
        self._seen = state
