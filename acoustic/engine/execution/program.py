"""A layout bound to memory: the operations of its passes, listed for every worker before anything runs.

Workers compute the values and gradients of their columns. Only the gradients of parameters need all frames: when all
workers are done, each computes some columns of the products over frames, and the parts of other gradients are added up.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from acoustic.engine.execution.arrays import BoundArrays
from acoustic.engine.execution.backward_steps import BackwardSteps, LateStep
from acoustic.engine.execution.gradient_sink import (
    GradientSink,
    LayerRoute,
    LayerUpdate,
    ParameterRoute,
    RealFrames,
    Receiver,
)
from acoustic.engine.execution.inputs import Feed
from acoustic.engine.execution.listing import CheckedPass, text_of
from acoustic.engine.execution.memory import EngineMemory
from acoustic.engine.execution.steps import BackwardStep, Lister, Step
from acoustic.engine.planning.node_table import calls_kernels
from acoustic.engine.planning.pass_plan import Layout
from acoustic.nodes.base import Node
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.operations import Moving, Operation, Pass, PythonCall
from acoustic.runtime.tables import is_possible, same
from readers.minibatches.indicators import Indicators

Operations = list[Operation]


class Program(BoundArrays):
    """The operations of a layout for a number of workers.

    columns: the number of frames; criterion: the criterion to differentiate, or None; feed: what passes receive;
    tables: whether calls of kernels may be listed; lists_kernels: whether those of nodes are.
    Forward, in this order: `alone`, the nodes that depend on no input; `shared`, those that each worker computes on its
    columns; `after`, those computed once from sums over frames.
    """

    def __init__(
        self,
        memory: EngineMemory,
        layout: Layout,
        columns: int | None,
        criterion: str | None,
        num_workers: int,
        feed: Feed,
        options: EngineOptions,
    ):
        super().__init__(memory, layout, columns, criterion, num_workers)
        self.feed, self.options = feed, options
        self.tables = options.tables and not options.branches and is_possible(self.backend)
        # Where frames cannot be divided, kernels and products are, each among all threads: they are called by Python.
        divided = self.split or memory.kernels.product_team is None
        self.lists_kernels = self.tables and (divided or options.check)
        forward = layout.forward
        self.alone = {node.name: self.bind_forward(node, self.whole) for node in forward if self.is_alone(node)}
        self.after = {node.name: self.bind_forward(node, self.whole) for node in forward if self.is_after(node)}
        shared = [node for node in forward if node.name not in self.alone and node.name not in self.after]
        self.shared = {node.name: [self.bind_forward(node, worker) for worker in self.workers] for node in shared}
        self.together = [*self.shared, *self.after]
        self.backward_steps = BackwardSteps(self)
        self._stored = [node for node in self.graph.order if node.is_stored]
        self._listed: tuple[Any, list[Any]] = (None, [])  # what the lists depend on, and the stored matrices
        self._traced: set[str] = set()
        self._forward = self._backward = Pass(self.backend.team, [], compiled=False)
        self._backward_key: Any = None
        self._layers: list[LayerUpdate | None] = []
        self._receiver = Receiver(GradientSink())

    def __iter__(self) -> Iterator[Operation]:
        """The operations of the last passes, in an order in which they may run one after the other."""
        yield from self._forward
        yield from self._backward

    # ---- forward

    def begin(self) -> None:
        """Take what the feed holds; list the operations again if they differ from those of the last pass."""
        feed = self.feed
        for worker in {id(worker): worker for worker in (self.whole, *self.workers)}.values():
            if worker is self.whole:
                worker.run, worker.inputs = feed.run, feed.inputs
            else:
                worker.run = feed.run_from(worker.columns.start)
                worker.inputs = {name: matrix[:, worker.columns] for name, matrix in feed.inputs.items()}
        words = frozenset(name for name, matrix in feed.inputs.items() if isinstance(matrix, Indicators))
        key, stored = (words, feed.run.sequences is not None), [node.value for node in self._stored]
        if self._listed[0] != key or not same(stored, self._listed[1]):
            self._listed, self._backward_key = (None, []), None  # also if listing is interrupted
            self._list_forward(words, *key[1:])
            self._listed = key, stored

    def _list_forward(self, words: frozenset[str], in_sequences: bool) -> None:
        def emitted(step: Step) -> bool:
            shapes = self.graph.operand_shapes(step.node, self.layout.shapes)
            return self.lists_kernels and calls_kernels(step.node, shapes, words, in_sequences)

        inputs = {name: matrix for name, matrix in self.feed.inputs.items() if name not in words}
        moving = {}
        if self.lists_kernels:
            moving = {name: Moving(self.feed.inputs, name, matrix) for name, matrix in inputs.items()}
        self.lister = Lister(self.backend, moving, emitted)
        operations = self.lister.operations
        self._operations = {name: [operations(step) for step in steps] for name, steps in self.shared.items()}
        self._forward = self.pass_of(self.together)

    def pass_of(self, names: Sequence[str]) -> Pass:
        """The operations of some nodes that depend on inputs."""
        shared = [name for name in names if name in self.shared]
        lists = [[one for name in shared for one in self._operations[name][k]] for k in range(len(self.workers))]
        end = [one for name in shared if name in self.parts for one in self._sum_of_parts(name)]
        end += [one for name in names if name in self.after for one in self.lister.operations(self.after[name])]
        return self._pass([lists, [end]], "forward")

    def _pass(self, phases: list[list[Operations]], title: str) -> Pass:
        listed = (CheckedPass if self.options.check else Pass)(self.backend.team, phases, self.lists_kernels)
        if self.options.trace and title not in self._traced:
            self._traced.add(title)
            print(text_of(self, listed, title), file=sys.stderr)
        return listed

    def forward(self, names: Sequence[str]) -> None:
        """Compute some nodes, of those that depend on inputs."""
        (self._forward if len(names) == len(self.together) else self.pass_of(names)).run()

    def _sum_of_parts(self, name: str) -> Operations:
        """The operations that add up the workers' parts of a sum over frames."""
        emitter = self.lister.emitter(name)
        emitter.copy(self.parts[name][0], self.values[name])
        for part in self.parts[name][1:]:
            emitter.accumulate(self.values[name], part)
        return emitter.operations

    @property
    def statistics(self) -> list[tuple[Node, Any]]:
        """The nodes that keep statistics, each with the workspace that holds those of the minibatch."""
        steps = [self.shared[node.name][0] for node in self.layout.forward if node.name in self.shared]
        return [(s.node, s.buffers["work"]) for s in steps if s.node.keeps_statistics and "work" in s.buffers]

    # ---- backward

    def backward(self, sink: GradientSink, gaps: Any) -> None:
        """Compute the gradients, and hand them to a sink; gaps: which columns have no frame, None: none."""
        steps = self.backward_steps
        self.one.fill(1)
        shares = [worker.columns for worker in self.workers] if self.split else []
        self._receiver.sink = sink
        self._receiver.real = None if gaps is None else RealFrames.of_gaps(self.backend.xp, gaps, shares)
        words = self._listed[0][0]
        layers = []
        for parameter, k, products, _ in steps.layer_products:
            by_words = any(leaf.name in words for _, leaf in products[0].operands.leaves)
            layers.append(None if by_words else sink.layer(parameter, products[0].node, k))
        key = gaps is None, sink.takes_parts, sink.takes_touched, sink.key if sink.takes_parts else None
        if key != self._backward_key or not same(layers, self._layers):
            self._backward_key = None  # also if listing is interrupted
            self._backward = self._list_backward(layers)
            self._backward_key, self._layers = key, layers
        for node in steps.finished:
            node.touch()  # it is about to be changed
        self._backward.run()

    def _connect(self, layers: Sequence[LayerUpdate | None]) -> dict[str, ParameterRoute | LayerRoute]:
        """Make the routes of the gradients that do not stay in their matrices, and give them to the steps."""
        steps, receiver = self.backward_steps, self._receiver
        routes: dict[str, ParameterRoute | LayerRoute] = {}
        self._in_layers: set[str] = set()
        for _, k, step in (*steps.handed_out, *steps.touched_columns):
            step.into.routes.pop(k, None)  # of the last pass, which may have had another sink
        for (parameter, k, products, factor_steps), layer in zip(steps.layer_products, layers):
            for step in (*products, *factor_steps):
                step.into.routes.pop(k, None)
            if layer is None:
                continue
            for worker, product in enumerate(products):
                workers = worker, len(products)
                product.into.routes[k] = LayerRoute(receiver, layer, workers, updates=bool(factor_steps))
                if factor_steps:
                    share, frames = factor_steps[worker].worker.columns, self.columns or 0
                    factor_steps[worker].into.routes[k] = LayerRoute(receiver, layer, workers, share, frames)
            routes[parameter.name] = products[0].into.routes[k]
            self._in_layers.update(name for name in (parameter.name, layer.bias) if name is not None)
        self._handed_out: set[str] = set()
        sink = receiver.sink
        for parameter, k, step in steps.handed_out if sink.takes_parts else ():
            if parameter.name not in self._in_layers:
                step.into.routes[k] = routes.setdefault(parameter.name, self._route(parameter, routes, self.tables))
                self._handed_out.add(parameter.name)
        for parameter, k, step in steps.touched_columns if sink.takes_touched else ():
            if parameter.name not in self._in_layers and not self.lister.emitted(step):
                route = ParameterRoute(receiver, parameter, self.memory.gradients[parameter.name], columns=True)
                step.into.routes[k] = routes.setdefault(parameter.name, route)
        return routes

    def _route(self, parameter: Node, routes: dict[str, Any], lists: bool) -> ParameterRoute | LayerRoute:
        if parameter.name in routes:
            return routes[parameter.name]
        sink, gradient = self._receiver.sink, self.memory.gradients[parameter.name]
        lists = lists and sink.takes_parts and sink.key is not None
        return ParameterRoute(self._receiver, parameter, gradient, lists=lists)

    def _list_backward(self, layers: Sequence[LayerUpdate | None]) -> Pass:
        """List the operations of a backward pass."""
        steps, routes = self.backward_steps, self._connect(layers)
        in_parts: set[str] = set()  # the parameters whose gradients workers hand over
        start = [one for step in steps.first for one in self._backward_operations(step)]
        if self.split:
            phases = [[start], [self._worker_operations(each) for each in steps.of_worker]]
            for late in (steps.sums, steps.late):
                phases.append([self._late_operations(each, routes, in_parts) for each in late])
            end: Operations = []
            for names in steps.finished_by[: steps.num_together]:
                end += self._finish(names, routes, in_parts)
            remaining = zip(steps.last, steps.finished_by[steps.num_together :])
        else:
            phases, end = [], start
            remaining = zip((*(step for step, _ in steps.of_worker[0]), *steps.last), steps.finished_by)
        for step, names in remaining:
            end += self._backward_operations(step)
            end += self._finish(names, routes, in_parts)
        return self._pass([*phases, [end]], "backward")

    def _backward_operations(self, step: BackwardStep) -> Operations:
        """The operations of a step; copies of factors without gaps differ from pass to pass."""
        gaps = self._receiver.real is not None
        if gaps and any(route.takes_factors for route in step.into.routes.values()):
            return [PythonCall(f"{step.node.type_name}.backward", step.run, node=step.node.name)]
        return self.lister.operations(step)

    def _worker_operations(self, steps: Sequence[tuple[BackwardStep, BackwardStep | None]]) -> Operations:
        """The operations of a worker's steps, each with that which gives factors to a layer."""
        operations = []
        for step, factors in steps:
            operations += self._backward_operations(step)
            if factors is not None and factors.into.routes:
                operations += self._backward_operations(factors)
        return operations

    def _late_operations(self, late: Sequence[LateStep], routes: dict[str, Any], in_parts: set[str]) -> Operations:
        """The operations of a worker when all frames are done; in_parts: receives the parameters that it hands out."""
        operations = []
        for step in late:
            if step.product is not None:
                operations += self._backward_operations(step.product)
            else:
                emitter = self.lister.emitter(step.name)
                for part in step.partials:
                    emitter.accumulate(step.gradient, part)
                operations += emitter.operations
            for parameter, columns in step.taken:
                if self._takes_parts(parameter):
                    in_parts.add(parameter.name)
                    if parameter.name not in self._in_layers:
                        operations += self._route(parameter, routes, self.lists_kernels).operations(columns)
        return operations

    def _takes_parts(self, parameter: Node) -> bool:
        return parameter.name in self._in_layers or self._receiver.sink.takes_parts

    def _finish(self, names: Iterable[str], routes: dict[str, Any], in_parts: set[str]) -> Operations:
        """The operations that hand over the complete gradients of parameters."""
        operations: Operations = []
        for name in names:
            route = self._route(self.backward_steps.parameters[name], routes, self.lists_kernels)
            if isinstance(route, LayerRoute):
                if route.share is None and not route.updates:
                    operations += self._update_of_layer(route)
            elif name in self._in_layers or name in self._handed_out or (name in in_parts and not route.takes_columns):
                continue
            elif route.lists and not route.takes_columns:
                operations += route.operations(slice(0, route.gradient.shape[1]))
            else:
                operations.append(PythonCall("update", route.finish, name in in_parts, node=name))
        return operations

    def _update_of_layer(self, route: LayerRoute) -> Operations:
        if not route.has_factors:  # the node gives them when it is called
            return [PythonCall("update", route.finish, self.memory.kernels)]
        emitter = self.lister.emitter("")
        route.finish(emitter)
        return emitter.operations
