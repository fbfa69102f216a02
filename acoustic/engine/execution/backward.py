"""The list of a backward pass: steps before the workers', theirs, the products over all frames, and what comes after.

Every step is bound to matrices as it is listed; the order decides which contribution to a gradient is the first, which
is written instead of added. A parameter's gradient goes to the sink as soon as nothing reads the parameter any more:
columns of it in the thread that computed them, the columns that are not zero, the factors of a product, or the matrix.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from acoustic.engine.execution.arrays import Worker
from acoustic.engine.execution.gradient_sink import LayerUpdate, taken
from acoustic.engine.planning.pass_plan import BackwardPlan, gradient_of, value_of, work_of
from acoustic.kernels.compiled.operands import SPLIT_FROM
from acoustic.nodes.base import VALUE, WORK, Node, PassContext
from acoustic.nodes.gradient_targets import GradientRoute, GradientTargets
from acoustic.recurrence.loop_node import Loop, LoopOutput
from acoustic.runtime.operations import Emitter, Phase, PythonCall, in_phases
from acoustic.runtime.thread_team import share_of

if TYPE_CHECKING:
    from acoustic.engine.execution.program import Program

Operations = list[Any]  # operations and, where a team divides work, phases


class BackwardLister:
    """Lists a backward pass; layers: what takes the factors of some parameters' gradients, by name.

    The sink and the frames without gaps are those that the program has when the operations run.
    """

    def __init__(self, program: "Program", layers: Mapping[str, LayerUpdate]) -> None:
        self.program, self.graph, self.layers = program, program.graph, layers
        self.plans = program.layout.backward
        sink = program.sink
        self.takes_parts, self.takes_touched = sink.takes_parts, sink.takes_touched
        self.lists_updates = sink.takes_parts and sink.key is not None
        operands = [operand for plan in self.plans for operand in self.graph.operands[plan.node.name]]
        self.parameters = {operand.name: operand for operand in operands}
        biases = {layer.bias for layer in layers.values() if layer.bias is not None}
        self.done: set[str] = {*layers, *biases}  # parameters that are handed over elsewhere
        self.sparse: set[str] = set()  # parameters of which a node may name columns
        self._in_parts: set[str] = set()  # parameters that the sink takes in parts
        self._columns: dict[str, tuple[Any, Callable[[slice], Any]]] = {}  # that a node has named in this pass
        # Of layers, which are updated when nothing reads the parameter.
        self._factors: dict[str, tuple[Any, Any]] = {}
        self._routes = {plan.node.name: self._routes_of(plan) for plan in self.plans}

    def phases(self) -> list[list[Operations]]:
        """For each phase a list of operations for each worker."""
        program, touched = self.program, set[str]()
        after = [plan for plan in self.plans if program.is_after(plan.node)]
        first = [operation for plan in after for operation in self._whole(plan, touched)]
        if not program.split:
            return in_phases([*first, *self._remaining(self.plans, touched)])
        together = [plan for plan in self.plans if not program.is_after(plan.node) and not program.is_alone(plan.node)]
        # Gradients without frames: the first worker adds to the final matrix, the others to their own parts.
        touched_by = [touched, *(set() for _ in program.workers[1:])]
        workers = [self._by_worker(together, *each) for each in zip(program.workers, touched_by)]
        deferred = [plan for plan in together if plan.deferred]
        products = {self._name(plan, k) for plan in deferred for k in plan.deferred}
        sums, late = [], []
        # If no product adds to one of the sums, they can wait for the products, and complete gradients.
        wait = products.isdisjoint(program.workers[-1].partial_gradients)
        for worker in program.workers:
            late_touched = set(touched)
            listed = [operation for plan in deferred for operation in self._late_product(plan, worker, late_touched)]
            added = self._sums(together, worker, completes=wait)
            sums.append([] if wait else added)
            late.append([*listed, *added] if wait else listed)
        end = [operation for plan in together for operation in self._finish(plan.finished)]
        last = [plan for plan in self.plans if program.is_alone(plan.node)]
        return [[first], workers, sums, late, [[*end, *self._remaining(last, late_touched)]]]

    def _remaining(self, plans: list[BackwardPlan], touched: set[str]) -> Operations:
        """The operations of steps that compute whole gradients, each with what it finishes."""
        return [
            operation for plan in plans for operation in (*self._whole(plan, touched), *self._finish(plan.finished))
        ]

    def _name(self, plan: BackwardPlan, k: int) -> str:
        return self.graph.operands[plan.node.name][k].name

    # ---- steps

    def _whole(self, plan: BackwardPlan, touched: set[str]) -> Operations:
        return self._step(plan, plan.wanted, self.program.whole, touched, self._routes[plan.node.name])

    def _by_worker(self, plans: list[BackwardPlan], worker: Worker, touched: set[str]) -> Operations:
        """A worker's steps, each with that which gives its factors to layers."""
        operations: Operations = []
        for plan in plans:
            routes = self._routes[plan.node.name]
            operations += self._step(plan, plan.wanted, worker, touched, {} if plan.deferred else routes)
            factors = [k for k in plan.layer_products if plan.deferred and self._name(plan, k) in self.layers]
            if factors:
                routes_of_frames = {k: self._route_of_frames(self._name(plan, k), worker) for k in factors}
                operations += self._step(plan, tuple(factors), worker, set(), routes_of_frames)
        return operations

    def _late_product(self, plan: BackwardPlan, worker: Worker, touched: set[str]) -> Operations:
        """A worker's columns of products over all frames, and the updates of the parameters that these complete."""
        share = worker.index, len(self.program.workers)
        routes = self._routes[plan.node.name]
        for k in plan.layer_products:
            if self._name(plan, k) in self.layers:
                layer = self.layers[self._name(plan, k)]
                routes = {**routes, k: GradientRoute(factors=partial(self._update_layer, layer, share))}
        operations = self._step(plan, plan.deferred, worker, touched, routes, share)
        for name in plan.finished_products:
            columns = share_of(*share, self.program.layout.shapes[name].num_columns)
            operations += self._hand_over_part(name, columns)
        return operations

    def _step(
        self,
        plan: BackwardPlan,
        wanted: tuple[int, ...],
        worker: Worker,
        touched: set[str],
        routes: dict[int, GradientRoute],
        share: tuple[int, int] | None = None,
    ) -> Operations:
        """The computation of the gradients of the operands `wanted` on a worker's columns.

        touched: the nodes whose gradients are not empty, to which `wanted` are added. share: (worker, workers) if the
        step computes some columns of products over all frames.
        """
        program, node = self.program, plan.node
        source = program.whole if share is not None else worker  # products over all frames read those of all workers
        names = [operand.name for operand in self.graph.operands[node.name]]
        gives_factors = share is None and worker is not program.whole and any(routes[k].factors for k in routes)
        destination = program.whole if gives_factors else source  # a step that gives factors computes no gradient
        targets = [program.gradient_target(name, destination) if k in wanted else None for k, name in enumerate(names)]
        fresh = [name not in touched for name in names]
        touched.update(names[k] for k in wanted)
        reads = plan.reads(wanted)
        key = gradient_of(node.name)
        gradient = program.criterion_gradient if node.name == program.criterion else program.matrix(key, source)
        value = program.matrix(value_of(node.name), source) if VALUE in reads else None
        work = {}
        if node.name in program.layout.work:
            work["work"] = program.matrix(work_of(node.name), source) if WORK in reads else None
        rows = [program.layout.shapes[name].rows for name in names]
        scratch = program.scratch(worker)
        grads = GradientTargets(program.backend, targets, fresh, scratch, share, rows, routes=routes)
        if isinstance(node, Loop) and node.compiled is not None:
            outputs = [step.node for step in self.plans if isinstance(step.node, LoopOutput)]
            received = frozenset(output.position for output in outputs if output.operands[0] is node)
            return program.loop_backward(node, received, grads, reads)
        resolve = program.operands(node, source, reads)

        def call(context: PassContext, inputs: Mapping[str, Any]) -> None:
            grads.begin(context.kernels)
            node.backward(context, gradient, resolve(inputs), value, grads, **work)
            grads.complete()

        # Copies of factors without gaps differ from pass to pass.
        by_python = program.real is not None and any(route.factors for route in routes.values())
        return program.listed(node, source, "backward", call, by_python)

    def _sums(self, together: list[BackwardPlan], worker: Worker, completes: bool) -> Operations:
        """A worker's share of the sums of parts of gradients; completes: whether these are then whole."""
        program, operations = self.program, []
        # Nothing may read a parameter that is handed over.
        read = {self._name(plan, k) for plan in together for k in plan.reads(plan.deferred) if isinstance(k, int)}
        finished = {name for plan in together for name in plan.finished} - read
        for name in list(program.workers[-1].partial_gradients)[worker.index :: len(program.workers)]:
            gradient, emitter = program.matrix(gradient_of(name), program.whole), program.emitter(name)
            for later_worker in program.workers[1:]:
                emitter.accumulate(gradient, later_worker.partial_gradients[name])
            operations += emitter.operations
            if completes and name in finished:
                operations += self._hand_over_part(name, slice(0, gradient.shape[1]))
        return operations

    # ---- the way to the sink

    def _routes_of(self, plan: BackwardPlan) -> dict[int, GradientRoute]:
        """The routes of a step's gradients that do not stay in their matrices."""
        routes: dict[int, GradientRoute] = {}
        if self.program.is_alone(plan.node) or self.program.is_after(plan.node):
            return routes
        for k in plan.layer_products:
            if self._name(plan, k) in self.layers:
                routes[k] = GradientRoute(factors=partial(self._take_factors, self._name(plan, k)))
        for k in plan.handed_out if self.takes_parts else ():
            name = self._name(plan, k)
            if name not in self.done:
                routes[k] = GradientRoute(parts=partial(self._part_operations, name, self.program.tables))
                self.done.add(name)
        for k in plan.touched_columns if self.takes_touched else ():
            name = self._name(plan, k)
            if name not in self.done and not self.program.is_listed(plan.node):
                routes[k] = GradientRoute(columns=partial(self._take_columns, name))
                self.sparse.add(name)
        return routes

    def _hand_over_part(self, name: str, columns: slice) -> Operations:
        """The operations that hand over columns of a gradient, if that is possible."""
        if name in self.layers or not self.takes_parts or (name in self.done and name not in self._in_parts):
            return []
        self._in_parts.add(name)
        self.done.add(name)
        return self._part_operations(name, self.program.tables, columns)

    def _part_operations(self, name: str, may_list: bool, columns: slice) -> Operations:
        program, parameter = self.program, self.parameters[name]
        gradient = program.matrix(gradient_of(name), program.whole)[:, columns]
        if may_list and self.lists_updates and name not in self.sparse:
            return program.sink.operations(parameter, gradient, columns)

        def hand_over() -> None:
            if name not in self._columns:
                program.sink.part(parameter, gradient, columns)

        return [PythonCall("update", hand_over, node=name)]

    def _finish(self, names: tuple[str, ...]) -> Operations:
        """The operations that hand over the complete gradients of parameters, where that is still to do."""
        program, operations = self.program, []
        for name in names:
            if name in self.layers and not program.split:
                operations += self._finish_layer(name)
            elif name in self.done and name not in self.sparse:
                continue
            elif program.tables and self.lists_updates and name not in self.sparse:
                operations += self._update_in_parts(name)
            else:
                operations.append(PythonCall("update", self._hand_over, self.parameters[name], node=name))
        return operations

    def _update_in_parts(self, name: str) -> Operations:
        """The update of a parameter: a phase of the team or, for a small one, the operations of one thread."""
        shape = self.program.layout.shapes[name]
        count = self.program.team.size if shape.rows * shape.num_columns >= SPLIT_FROM else 1
        shares = [share_of(worker, count, shape.num_columns) for worker in range(count)]
        parts = [self._part_operations(name, True, share) for share in shares]
        return parts[0] if count == 1 else [Phase(parts)]

    def _hand_over(self, parameter: Node) -> None:
        program, columns = self.program, self._columns.pop(parameter.name, None)
        if columns is not None:
            program.sink.touched(parameter, *columns)
        elif parameter.name not in self.done:
            program.sink(parameter, program.matrix(gradient_of(parameter.name), program.whole))

    def _take_columns(self, name: str, columns: Any, fill: Callable[[slice], Any]) -> None:
        self._columns[name] = columns, fill

    # ---- layers

    def _route_of_frames(self, name: str, worker: Worker) -> GradientRoute:
        """The route of a worker's factors to a layer, which it sees before any worker updates it."""
        layer, share = self.layers[name], worker.columns
        workers = worker.index, len(self.program.workers)

        def give(kernels: Any, a: Any, b: Any) -> None:
            real = self.program.real
            if real is None:
                kernels.of(layer).frames(a, b, share.start, self.program.columns, *workers)
                return
            first, columns = real.within(share)
            left, right = taken(a, columns), taken(b, columns)
            right *= real.is_real[share][columns]
            layer.frames(left, right, first, len(real.columns), *workers)
            a[:, columns] = left

        return GradientRoute(factors=give)

    def _real_columns(self, a: Any, b: Any) -> tuple[Any, Any]:
        real = self.program.real
        return (a, b) if real is None else (taken(a, real.columns), taken(b, real.columns))

    def _update_layer(self, layer: LayerUpdate, share: tuple[int, int], kernels: Any, a: Any, b: Any) -> None:
        kernels.of(layer).update(*self._real_columns(a, b), *share)

    def _take_factors(self, name: str, kernels: Any, a: Any, b: Any) -> None:
        """Take all factors at once; the layer is updated by `_finish_layer`."""
        a, b = self._factors[name] = self._real_columns(a, b)
        layer, num_frames = self.layers[name], a.shape[1]
        if not layer.reads_frames:
            return
        count = self._num_shares(name, num_frames)

        def take_share(worker: int) -> None:
            share = share_of(worker, count, num_frames)
            kernels.of(layer).frames(a[:, share], b[:, share], share.start, num_frames, worker, count)

        if isinstance(kernels, Emitter):  # Program.listed divides them among threads
            for worker in range(count):
                take_share(worker)
        else:
            self.program.team.run(take_share, count)

    def _num_shares(self, name: str, num_frames: int) -> int:
        """Return in how many threads a layer takes factors and is updated."""
        shape, size = self.program.layout.shapes[name], self.program.team.size
        return size if shape.rows * shape.num_columns >= SPLIT_FROM and num_frames >= size else 1

    def _finish_layer(self, name: str) -> Operations:
        layer, factors = self.layers[name], self._factors.pop(name, None)
        if factors is not None:  # they are listed
            count = self._num_shares(name, factors[0].shape[1])
            emitters = [self.program.emitter(name) for _ in range(count)]
            for worker, emitter in enumerate(emitters):
                emitter.of(layer).update(*factors, worker, count)
            return emitters[0].operations if count == 1 else [Phase([emitter.operations for emitter in emitters])]

        def update() -> None:
            factors = self._factors.pop(name)  # copies without gaps must not outlive the pass
            count = self._num_shares(name, factors[0].shape[1])
            self.program.team.run(lambda worker: layer.update(*factors, worker, count), count)

        return [PythonCall("update", update, node=name)]  # the node gives them when it is called
