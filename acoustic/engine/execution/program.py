"""A layout bound to memory: the operations of its passes, listed for every worker before anything runs.

Workers compute the values and gradients of their columns. Only the gradients of parameters need all frames: when all
workers are done, each computes some columns of the products over frames, and the parts of other gradients are added up.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any

from acoustic.engine.execution.arrays import BoundArrays, Worker
from acoustic.engine.execution.backward import BackwardLister, Operations
from acoustic.engine.execution.gradient_sink import GradientSink, LayerUpdate, RealFrames
from acoustic.engine.execution.inputs import PassInputs
from acoustic.engine.execution.listing import CheckedPass, text_of
from acoustic.engine.execution.memory import EngineMemory
from acoustic.engine.planning.node_table import calls_kernels
from acoustic.engine.planning.pass_plan import Layout, value_of, work_of
from acoustic.nodes.base import Node, PassContext
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.recurrence.compiled_loop import BoundLoop, Resolve
from acoustic.recurrence.loop_node import Loop
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.operations import Emitter, Moving, Operation, Pass, Phase, PythonCall, in_phases
from acoustic.runtime.products import is_divided
from acoustic.runtime.tables import is_possible, same
from acoustic.runtime.thread_team import ThreadTeam
from readers.minibatches.indicators import Indicators

ONE_THREAD = ThreadTeam(1)


class Program(BoundArrays):
    """The operations of a layout for a number of workers.

    criterion: the criterion to differentiate, or None; pass_inputs: what passes receive; tables: whether calls of
    kernels may be listed; team: the threads that divide large products and updates; sink, real: of the present
    backward pass, what receives its gradients, and the columns with a frame, None if all have one.
    """

    def __init__(
        self,
        memory: EngineMemory,
        layout: Layout,
        columns: int | None,
        criterion: str | None,
        num_workers: int,
        pass_inputs: PassInputs,
        options: EngineOptions,
    ):
        super().__init__(pass_inputs.graph, memory, layout, columns, num_workers)
        self.pass_inputs, self.options, self.criterion = pass_inputs, options, criterion
        self.tables = options.tables and is_possible(self.backend)
        # Where frames cannot be divided, large products and updates are.
        self.team = ONE_THREAD if self.split else pass_inputs.kernels.product_team or ONE_THREAD
        self.sink = GradientSink()
        self.real: RealFrames | None = None
        plans = [plan for plan in layout.backward if not self.is_alone(plan.node) and not self.is_after(plan.node)]
        self._layer_products = [
            (self.graph.operands[plan.node.name][k], plan.node, k) for plan in plans for k in plan.layer_products
        ]
        finished = {name for plan in layout.backward for name in plan.finished}
        self._finished = [node for node in self.graph.order if node.name in finished]
        self._stored = [node for node in self.graph.order if node.is_stored]
        loops = [node.compiled for node in self.graph.order if isinstance(node, Loop)]
        self._loops = [loop for loop in loops if loop is not None]
        self._bound_loops: dict[str, BoundLoop] = {}
        self._listed: tuple[Any, list[Any]] = (None, [])  # what the lists depend on, and the stored matrices
        self._traced: set[str] = set()
        self._of_parameters = self._forward = self._backward = Pass(self.backend.team, [], compiled=False)
        self._backward_lists: dict[bool, tuple[Any, list[Any], Pass]] = {}  # with gaps and without

    def __iter__(self) -> Iterator[Operation]:
        """The operations of the last passes, in an order in which they may run one after the other."""
        yield from self._of_parameters
        yield from self._forward
        yield from self._backward

    # ---- lists

    def emitter(self, node: str) -> Emitter:
        return Emitter(self.backend.kernels, node, tuple(self.moving.values()))

    def is_listed(self, node: Node) -> bool:
        """Whether a node is listed as calls of kernels."""
        if node.name not in self._is_listed:
            shapes = self.graph.operand_shapes(node, self.layout.shapes)
            words, in_sequences = self._key
            self._is_listed[node.name] = self.tables and calls_kernels(node, shapes, words, bool(in_sequences))
        return self._is_listed[node.name]

    def listed(
        self,
        node: Node,
        worker: Worker,
        way: str,
        call: Callable[[PassContext, Mapping[str, Any]], None],
        by_python: bool = False,
    ) -> Operations:
        """The calls of kernels that ``call(context, inputs)`` of a node makes or, by Python, this call."""
        if by_python or not self.is_listed(node):
            function = lambda: call(worker.context, worker.inputs)  # noqa: E731
            return [PythonCall(f"{node.type_name}.{way}", function, node=node.name)]
        emitter = self.emitter(node.name)
        inputs = {name: moving.stand_in[:, worker.columns] for name, moving in self.moving.items()}
        call(PassContext(self.backend, kernels=emitter), inputs)
        divided: Operations = []
        for layer, calls in groupby(emitter.operations, _taking_layer):
            operations = list(calls)
            if layer is None or len(operations) == 1:
                divided += map(self._divided, operations)
            else:  # a share of the frames for each thread
                divided.append(Phase([[operation] for operation in operations]))
        return divided

    def _divided(self, operation: Operation) -> Operation | Phase:
        """The operation or, for a large product that the team divides, what each thread does."""
        if operation.kernel == "matmul":
            a, b, out, *factors = operation.arguments
            if is_divided(self.team, a, out):
                emitters = [self.emitter(operation.node) for _ in range(self.team.size)]
                for worker, emitter in enumerate(emitters):
                    columns = self.team.share(worker, out.shape[1])
                    emitter.matmul(a, b[:, columns], out[:, columns], *factors)
                return Phase([emitter.operations for emitter in emitters])
        return operation

    def _pass(self, phases: list[list[Operations]], title: str) -> Pass:
        listed = (CheckedPass if self.options.check else Pass)(self.backend.team, phases, self.tables)
        if self.options.trace and listed.phases and title not in self._traced:
            self._traced.add(title)
            print(text_of(self, listed, title), file=sys.stderr)
        return listed

    # ---- forward

    def begin(self) -> None:
        """Take the inputs of the pass; list the operations again if they differ from those of the last pass."""
        pass_inputs = self.pass_inputs
        for worker in {id(worker): worker for worker in (self.whole, *self.workers)}.values():
            if worker is self.whole:
                worker.context, worker.inputs = pass_inputs.context, pass_inputs.inputs
            else:
                worker.context = pass_inputs.context_from(worker.columns.start)
                worker.inputs = {name: matrix[:, worker.columns] for name, matrix in pass_inputs.inputs.items()}
        words = frozenset(name for name, matrix in pass_inputs.inputs.items() if isinstance(matrix, Indicators))
        slots = None if pass_inputs.context.sequences is None else pass_inputs.context.sequences.num_slots
        key = words, slots if self._loops else slots is not None
        if self._listed[0] != key or not same(self._arrays(), self._listed[1]):
            self._listed, self._backward_lists, self._key = (None, []), {}, key  # also if listing is interrupted
            self._list_forward()
            self._listed = key, self._arrays()

    def _arrays(self) -> list[Any]:
        """The arrays that may be replaced: stored matrices, and the memory of loops."""
        return [node.value for node in self._stored] + [matrix for loop in self._loops for matrix in loop.memory]

    def _list_forward(self) -> None:
        """List, in this order, nodes that depend on no input, those of each worker, and sums over frames."""
        self.moving: dict[str, Moving] = {}
        self._is_listed: dict[str, bool] = {}
        if self.tables or self._loops:
            inputs = self.pass_inputs.inputs
            self.moving = {name: Moving(inputs, name, inputs[name]) for name in inputs if name not in self._key[0]}
        alone: list[Node] = []
        after: list[Node] = []
        shared: list[Node] = []
        for node in self.layout.forward:
            (alone if self.is_alone(node) else after if self.is_after(node) else shared).append(node)
        lists = [
            [operation for node in shared for operation in self._forward_of(node, worker)] for worker in self.workers
        ]
        end = [operation for node in shared if node.name in self.parts for operation in self._sum_of_parts(node.name)]
        end += [operation for node in after for operation in self._forward_of(node, self.whole)]
        of_parameters = [operation for node in alone for operation in self._forward_of(node, self.whole)]
        self._of_parameters = self._pass(in_phases(of_parameters), "parameters")
        self._forward = self._pass([*(in_phases(lists[0]) if not self.split else [lists]), [end]], "forward")

    def _forward_of(self, node: Node, worker: Worker) -> Operations:
        """The operations that compute a node on a worker's columns."""
        if isinstance(node, Loop) and node.compiled is not None:
            slots = node.sequences(self.pass_inputs.context).num_slots
            operands, training = self.graph.operands[node.name], self.criterion is not None
            bound = BoundLoop(node.compiled, operands, training, self.columns or 0, slots, self.team)
            self._bound_loops[node.name] = bound
            return bound.list_forward(*self._for_loop(node))
        if worker is not self.whole and node.name in self.parts:
            buffers = {"out": self.parts[node.name][worker.index]}
        else:
            buffers = {"out": self.matrix(value_of(node.name), worker)}
        if self.keeps_work(node):
            buffers["work"] = self.matrix(work_of(node.name), worker)
        resolve = self.operands(node, worker)
        return self.listed(
            node, worker, "forward", lambda context, inputs: node.forward(context, *resolve(inputs), **buffers)
        )

    def _for_loop(self, node: Loop, reads: Any = None) -> tuple[list[Any], Emitter, Resolve]:
        """The operands of a loop, an emitter, and what gives the operands and the sequences of the present pass."""
        operands, worker = self.operands(node, self.whole, reads), self.whole
        stand_ins = {name: moving.stand_in for name, moving in self.moving.items()}
        present = lambda: (operands(worker.inputs), node.sequences(worker.context))  # noqa: E731
        return operands(stand_ins), self.emitter(node.name), present

    def loop_backward(self, node: Loop, received: frozenset[int], grads: GradientTargets, reads: Any) -> Operations:
        """The operations that compute the gradients of a compiled loop."""
        inputs, emitter, present = self._for_loop(node, reads)
        bound = self._bound_loops[node.name]
        return bound.list_backward(inputs, received, grads, emitter, self.pass_inputs.kernels, present)

    def forward(self, is_changed: bool) -> None:
        """Compute all values; is_changed: whether those may differ that depend on no input."""
        if is_changed:
            self._of_parameters.run()
        self._forward.run()

    def _sum_of_parts(self, name: str) -> Operations:
        """The operations that add up the workers' parts of a sum over frames."""
        emitter = self.emitter(name)
        emitter.copy(self.parts[name][0], self.values[name])
        for part in self.parts[name][1:]:
            emitter.accumulate(self.values[name], part)
        return emitter.operations

    @property
    def statistics(self) -> list[tuple[Node, Any]]:
        """The nodes that keep statistics, each with the workspace that holds those of the minibatch."""
        nodes = [node for node in self.layout.forward if node.keeps_statistics and work_of(node.name) in self.slab_of]
        return [(node, self.matrix(work_of(node.name), self.workers[0])) for node in nodes]

    # ---- backward

    def backward(self, sink: GradientSink, gaps: Any) -> None:
        """Compute the gradients, and hand them to a sink; gaps: which columns have no frame, None: none."""
        self.criterion_gradient.fill(1)
        shares = [worker.columns for worker in self.workers] if self.split else []
        self.sink = sink
        self.real = None if gaps is None else RealFrames.of_gaps(self.backend.xp, gaps, shares)
        layers = [self._layer_of(*product) for product in self._layer_products]
        key = sink.takes_parts, sink.takes_touched, sink.key if sink.takes_parts else None
        listed = self._backward_lists.pop(gaps is None, None)  # also if listing is interrupted
        if listed is None or listed[0] != key or not same(layers, listed[1]):
            updates = {parameter.name: layer for (parameter, *_), layer in zip(self._layer_products, layers) if layer}
            listed = key, layers, self._pass(BackwardLister(self, updates).phases(), "backward")
        self._backward_lists[gaps is None] = listed
        self._backward = listed[2]
        for node in self._finished:
            node.touch()  # it is about to be changed
        self._backward.run()

    def _layer_of(self, parameter: Node, node: Node, k: int) -> LayerUpdate | None:
        by_words = any(operand.name in self._key[0] for operand in self.graph.operands[node.name])
        return None if by_words else self.sink.layer(parameter, node, k)


def _taking_layer(operation: Operation) -> LayerUpdate | None:
    """Return the layer to which an operation gives frames of factors."""
    return operation.owner if isinstance(operation.owner, LayerUpdate) and operation.kernel == "frames" else None
