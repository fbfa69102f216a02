"""Executes a network: evaluates roots from inputs, and differentiates a criterion (CNTK book 2.2, 2.3).

Nodes are pure functions between buffers. The engine decides which nodes run, in which order, in which thread, and where
their values are stored.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from acoustic.engine.execution.gradient_sink import GradientSink, sink_of
from acoustic.engine.execution.inputs import PassInputs
from acoustic.engine.execution.memory import EngineMemory
from acoustic.engine.execution.program import Program
from acoustic.engine.planning.buffer_sharing import MatrixKey
from acoustic.engine.planning.execution_graph import build_graph
from acoustic.engine.planning.pass_plan import gradient_of, lay_out, value_of
from acoustic.kernels.shape import Shape
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.sequence_state import SequenceState
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.operations import Operation
from readers.common.environment import one_blas_thread
from readers.errors import ModelError

if TYPE_CHECKING:
    from readers.minibatches.sequence_layout import SequenceLayout

LAYOUTS_KEPT = 32  # numbers of columns whose programs are kept; all programs share the same memory
MIN_COLUMNS = 32  # of a worker: with fewer, starting it costs more than it saves


class Engine:
    """Forward and backward passes over the part of a network below `roots`.

    Parameters
    ----------
    network : Network
    roots : sequence of str
        Names of the nodes to evaluate.
    options : EngineOptions, optional
        The optimisations to use; by default those of the environment variable ARGONAUT_ENGINE, else all.
    threads : int, optional
        Number of threads that share a minibatch; by default that of the network's backend. It affects the rounding of
        sums over frames.

    Attributes
    ----------
    inputs : list of str
        Names of the inputs that the roots depend on.

    Raises
    ------
    ModelError
        If a root does not exist, or a recurrent loop cannot be computed.
    ShapeError
        If the shapes of operands do not fit.

    Notes
    -----
    An engine serves one caller at a time. Any number of engines may use the same network while its values do not
    change.
    """

    def __init__(
        self,
        network: Network,
        roots: Sequence[str],
        *,
        options: EngineOptions | None = None,
        threads: int | None = None,
    ) -> None:
        self.options = options or EngineOptions.default()
        self.network, self.backend = network, network.backend
        self.roots = list(dict.fromkeys(network[name].name for name in roots))
        self.graph = build_graph(network, self.roots, self.options)
        num_threads = min(self.backend.team.size, threads or self.backend.team.size)
        self.max_workers = num_threads if self.graph.splits_frames() else 1
        # If the frames cannot be divided among the threads, large products are.
        divides_products = self.max_workers < num_threads
        kernels = self.backend.kernels_with(self.backend.team) if divides_products else self.backend.kernels
        self._blas = one_blas_thread if divides_products else nullcontext()
        self._pass_inputs = PassInputs(network, self.graph, self.roots, kernels)
        self.inputs = self._pass_inputs.names
        self._criterion = self.default_criterion()
        self._programs: OrderedDict[tuple[int | None, str | None], Program] = OrderedDict()
        self._memory = EngineMemory(self.backend)
        self._owner: dict[int, MatrixKey] = {}  # the matrix that each slab holds now
        self._program: Program | None = None  # of the last pass, unless that failed
        self._differentiable: str | None = None  # the criterion whose backward may follow

    # ---- construction

    def default_criterion(self) -> str | None:
        """Return the criterion that a training pass differentiates by default: the first root that can be one."""
        needed = [name for name in self.roots if name in self.graph.needed and self.network[name].backward_reads]
        scalars = [name for name in needed if self.network.shapes[name] == Shape(1, 1)]
        return next((name for name in scalars if name in self.network.criteria), next(iter(scalars), None))

    def learnable(self, criterion: str | None = None) -> list[Node]:
        """Return the parameters below the roots, or below one criterion, that training changes."""
        parameters = [node for node in self.graph.order if node.is_stored and node.needs_gradient]
        if criterion is None:
            return parameters
        names_below = {node.name for node in forward_order([self.network[criterion]])}
        return [node for node in parameters if node.name in names_below]

    # ---- forward

    def forward(
        self,
        matrices: Mapping[str, Any] | None = None,
        training: bool = False,
        *,
        criterion: str | None = None,
        dropout_rate: float = 0.0,
        seed: int | Sequence[int] = 0,
        layout: "SequenceLayout | None" = None,
        first_column: int = 0,
    ) -> None:
        """Evaluate the roots. What depends on no input is computed again only if a stored value has changed.

        Parameters
        ----------
        matrices : mapping of str to array (rows, T) or Indicators
            Values of the inputs, all with the same number of columns T. An input that is left out keeps its last
            value. A matrix of the network's type in Fortran order is not copied: do not change it before `backward`
            has returned.
        training : bool
            Apply dropout, and allow `backward` of `criterion`.
        criterion : str, optional
            The criterion to differentiate; by default the first root that can be one.
        dropout_rate : float
            Probability with which dropout sets an element to zero.
        seed : int or sequence of int
            Seed of the dropout masks, for instance (seed, epoch, minibatch).
        layout : SequenceLayout, optional
            Which columns hold which steps of which sequences; required by recurrent networks. A slot that continues a
            sequence sees its last steps in the previous pass. Sums over frames ignore gaps.
        first_column : int
            Number of the first column, if the matrices are a part of a minibatch without a layout; dropout masks depend
            on it.

        Raises
        ------
        ShapeError
            If a matrix does not fit its input, or the numbers of columns differ.
        ModelError
            If an input has no value, no root is a criterion, or a node cannot handle the gaps of the layout.
        """
        criterion = (criterion or self._criterion) if training else None
        if training and criterion is None:
            raise ModelError(f"roots {', '.join(self.roots)}: none is a criterion; expected one for a training pass")
        self._differentiable = None
        self._pass_inputs.begin(matrices or {}, training, dropout_rate, seed, layout, first_column)
        before, self._program = self._program, None
        program = self._program_for(criterion)
        try:
            with self._blas:
                program.begin()
                program.forward(self._pass_inputs.is_changed or program is not before)
        except BaseException:
            self._pass_inputs.sequences.forget()
            raise
        self._program, self._owner, self._differentiable = program, program.layout.after_forward, criterion

    # ---- backward

    def backward(
        self, criterion: str | None = None, on_gradient: GradientSink | Callable[[Node, Any], None] | None = None
    ) -> None:
        """Compute the gradient of a criterion with respect to every learnable parameter below it.

        Parameters
        ----------
        criterion : str, optional
            The criterion of the preceding forward pass, which must have had training=True.
        on_gradient : GradientSink or callable, optional
            A function is called as on_gradient(node, gradient) as soon as a parameter's gradient is complete and this
            pass needs the parameter's value no longer: it may update the parameter, and use the gradient as scratch
            memory. A GradientSink can also take gradients in parts. If given, nodes that keep running statistics
            update them with those of this minibatch.

        Raises
        ------
        ModelError
            If the preceding pass was not a training pass of this criterion.
        """
        criterion = criterion or self._differentiable
        program = self._program
        if program is None or criterion is None or criterion != self._differentiable:
            raise ModelError(
                f"backward of {criterion!r}: the last pass was laid out for {self._differentiable!r};"
                " expected forward(..., training=True) for it just before"
            )
        self._differentiable = None  # gradients overwrite values, so that backward cannot run twice
        self._owner = program.layout.after_backward
        sequences = self._pass_inputs.context.sequences
        with self._blas:
            program.backward(sink_of(on_gradient), None if sequences is None else sequences.idle)
        if on_gradient is not None:
            self._take_up_statistics(program)

    def _take_up_statistics(self, program: Program) -> None:
        context = self._pass_inputs.context
        for node, work in program.statistics:
            operands = self.graph.operands[node.name]
            stored = [operand.value if operand.is_stored else None for operand in operands]
            for k, value in node.updated_statistics(context, stored, work, program.columns or 0).items():
                operands[k].value[...] = value
                operands[k].touch()

    # ---- results

    def gradient(self, name: str) -> Any:
        """Return the gradient (rows, cols) of the last backward pass with respect to a parameter.

        Raises
        ------
        ModelError
            If the parameter has no gradient in this engine.
        """
        if gradient_of(name) in self._memory.own:
            return self._memory.own[gradient_of(name)]
        raise ModelError(f"node {name!r}: has no gradient here; expected a parameter that needs one")

    def value(self, name: str) -> Any:
        """Return the value of a root, or of another node whose value is still stored; the next pass overwrites it.

        Raises
        ------
        ModelError
            If the value has been overwritten.
        """
        node = self.network[name]
        if name in self._pass_inputs.inputs:
            return self.backend.asarray(self._pass_inputs.inputs[name])
        if node.is_stored and node.value is not None:
            return node.value
        program = self._program
        if program is not None and name in program.values:
            slab = program.slab_of.get(value_of(name))
            if slab is None or self._owner.get(slab) == value_of(name):
                return program.values[name]
        raise ModelError(f"{node.where}: its value is not kept; expected one of the roots {', '.join(self.roots)}")

    def reorder(self, slots: Sequence[int]) -> None:
        """Let slot s of the next minibatch continue the sequence that slot slots[s] held in the last one."""
        self._pass_inputs.sequences.reorder(np.asarray(slots))

    @property
    def sequence_state(self) -> SequenceState | None:
        """What the next minibatch continues, None for nothing; it may be given to another engine of the network."""
        return self._pass_inputs.sequences.state

    @sequence_state.setter
    def sequence_state(self, state: SequenceState | None) -> None:
        self._pass_inputs.sequences.state = state

    @property
    def program(self) -> Iterable[Operation]:
        """The operations of the last passes, in an order in which they may run one after the other."""
        return self._program or ()

    def allocated(self) -> int:
        """Return the bytes of the buffers whose size depends on the number of columns."""
        return sum(slab.nbytes for slab in self._memory.slabs)

    # ---- memory

    def _program_for(self, criterion: str | None) -> Program:
        """Return the program for the inputs' number of columns, with the gradients of `criterion` if there is one."""
        columns = next((matrix.shape[1] for matrix in self._pass_inputs.inputs.values()), None)
        key = (columns, criterion)
        program = self._programs.get(key)
        if program is None:
            node = next((node for node in self.graph.order if node.name == criterion), None)
            if criterion is not None and node is None:
                raise ModelError(f"criterion {criterion!r}: is not below the roots {', '.join(self.roots)}")
            num_workers = max(1, min(self.max_workers, (columns or 0) // MIN_COLUMNS))
            sharing = self.options.buffer_sharing
            layout = lay_out(self.graph, self.roots, columns, node, sharing, num_workers > 1)
            if self._memory.grow(layout.plan.sizes):  # views of the old memory are invalid
                self._programs.clear()
            program = self._programs[key] = Program(
                self._memory, layout, columns, criterion, num_workers, self._pass_inputs, self.options
            )
            if len(self._programs) > LAYOUTS_KEPT:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        return program
