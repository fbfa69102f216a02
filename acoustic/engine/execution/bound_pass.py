"""A layout bound to memory: for every worker, the steps with the arrays that they read and write.

Each of several workers has a contiguous share of the minibatch's columns, and computes all their values and gradients
independently of the others: these are column slices of shared matrices, and every sum over frames has a part per
worker. Only the gradients of parameters need all frames: when all workers are done, each computes some columns of the
products over frames, and the parts of other gradients are added up.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from acoustic.engine.execution.memory import EngineMemory
from acoustic.engine.execution.staleness import Placement
from acoustic.engine.execution.steps import (
    BoundBackward,
    FactorStep,
    ForwardStep,
    LateProducts,
    LateSum,
    Operands,
    Taken,
)
from acoustic.engine.planning.pass_plan import BackwardStep, Layout, MatrixKey, gradient_of, value_of, work_of
from acoustic.nodes.base import VALUE, WORK, Node, Run, Shape
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.runtime import replay
from acoustic.runtime.replay import ReplayedSteps
from acoustic.runtime.thread_team import share_of


@dataclass
class Worker:
    """The columns and steps of one worker; inputs: its columns of the inputs, set for each pass."""

    index: int
    columns: slice
    forward: dict[str, ForwardStep] = field(default_factory=dict)
    backward: list[BoundBackward] = field(default_factory=list)
    factor_steps: dict[str, FactorStep] = field(default_factory=dict)  # by the node whose backward each follows
    late: list[LateProducts | LateSum] = field(default_factory=list)
    forward_pass: ReplayedSteps | None = None
    backward_pass: ReplayedSteps | None = None
    late_pass: ReplayedSteps | None = None
    runs: tuple[Run, Run] | None = None  # the Run of the last pass, and this worker's copy of it
    inputs: Mapping[str, Any] = field(default_factory=dict)
    partial_gradients: dict[str, Any] = field(default_factory=dict)
    scratch: Any = None

    @property
    def backward_and_factors(self) -> list[BoundBackward | FactorStep]:
        steps = [(one, self.factor_steps.get(one.node.name)) for one in self.backward]
        return [step for both in steps for step in both if step is not None]


class Program(Placement):
    """A layout bound to an engine's memory for a number of workers.

    values: whole matrices by node name; columns: the number of frames; criterion: the criterion to differentiate, or
    None; split: whether several workers divide the frames.
    Forward, in this order: `alone`, the nodes that depend on no input; `shared`, those that each worker computes on its
    columns; `after`, those computed once from sums over frames.
    Backward: `steps`, of which the first `num_together` depend on inputs; `first` and `last` are computed once, before
    and after the workers' steps; partials_wait: whether the workers' parts of gradients may be added up after the
    deferred products; taken_late: the parameters that workers can update themselves.
    """

    def __init__(
        self, memory: EngineMemory, layout: Layout, columns: int | None, criterion: str | None, num_workers: int
    ):
        super().__init__(layout, memory.graph)
        self.memory, self.backend, self.columns, self.criterion = memory, memory.backend, columns, criterion
        self._views: dict[tuple, Any] = {}
        self.one = self.backend.empty(1, 1)
        self.workers = [Worker(w, share_of(w, num_workers, columns or 0)) for w in range(num_workers)]
        self.split = num_workers > 1
        self.values = {node.name: self._full(value_of(node.name), node.name) for node in layout.forward}
        self.parts = self._parts_of_sums() if self.split else {}
        self.alone = {node.name: self._bind_forward(node, None) for node in layout.forward if self._is_alone(node)}
        self.together = [node.name for node in layout.forward if not self._is_alone(node)]
        after = {node.name: node for node in layout.forward if self._is_after(node)}
        self.after = {name: self._bind_forward(node, None) for name, node in after.items()}
        shared = [node for node in layout.forward if not self._is_alone(node) and node.name not in after]
        self.shared = [node.name for node in shared]
        for worker in self.workers:
            worker.forward = {node.name: self._bind_forward(node, worker) for node in shared}
        self.statistics = self._statistics()
        self.steps = layout.backward
        self._bind_all_backward()
        self._bind_passes()

    # ---- arrays

    def _is_alone(self, node: Node) -> bool:
        """Whether a node depends on no input, so that it is computed once and not by every worker."""
        return node.name not in self.graph.from_input

    def _is_after(self, node: Node) -> bool:
        """Whether a node is computed once, when all workers are done: it depends on sums over frames."""
        return self.split and node.name in self.graph.after_sums

    def _shape(self, key: MatrixKey) -> Shape:
        if key[0] != "work":
            return self.layout.shapes[key[1]]
        node = next(node for node in self.layout.forward if node.name == key[1])
        return node.work_shape(*self.graph.operand_shapes(node, self.layout.shapes))

    def _view(self, key: MatrixKey, shape: Shape) -> Any:
        """The matrix of a key: one object for each slab and shape, so that `is` detects shared memory."""
        place = (self.slab_of[key], shape)
        if place not in self._views:
            flat = self.memory.slab(place[0])[: shape.rows * shape.cols]
            self._views[place] = flat.reshape(tuple(shape), order="F")
        return self._views[place]

    def _full(self, key: MatrixKey, name: str) -> Any:
        shape = self._shape(key)
        if key in self.slab_of:
            return self._view(key, shape)
        return self.memory.own_gradient(name, shape) if key[0] == "gradient" else self.memory.own_value(key, shape)

    def _part(self, key: MatrixKey, name: str, worker: Worker | None) -> Any:
        """A worker's columns of a matrix; the whole matrix if it has no frames or there is one worker."""
        full = self._full(key, name)
        if worker is None or not self.split or not self.graph.has_frames(name):
            return full
        place = (id(full), worker.columns.start)
        if place not in self._views:
            self._views[place] = full[:, worker.columns]
        return self._views[place]

    def _parts_of_sums(self) -> dict[str, list[Any]]:
        """For each sum over frames, a matrix for every worker's part."""
        return {
            node.name: [self.backend.empty(*self.layout.shapes[node.name]) for _ in self.workers]
            for node in self.layout.forward
            if node.sums_frames and not self._is_alone(node) and not self._is_after(node)
        }

    # ---- forward

    def _bind_forward(self, node: Node, worker: Worker | None) -> ForwardStep:
        if worker is not None and node.name in self.parts:
            out = self.parts[node.name][worker.index]
        else:
            out = self._part(value_of(node.name), node.name, worker)
        buffers = {"out": out}
        if self._keeps_work(node):
            buffers["work"] = self._work(node, worker)
        return ForwardStep(node, self._operands(node, worker), buffers)

    def _operands(self, node: Node, worker: Worker | None, reads: Collection[int | str] | None = None) -> Operands:
        """A node's operands; with `reads`, only those at its positions."""
        operands = enumerate(self.graph.operands[node.name])
        wanted = [(k, operand) for k, operand in operands if reads is None or k in reads]
        arrays: list[Any] = [None] * len(self.graph.operands[node.name])
        for k, operand in wanted:
            if not operand.is_leaf:
                arrays[k] = self._part(value_of(operand.name), operand.name, worker)
        return Operands(arrays, [(k, operand) for k, operand in wanted if operand.is_leaf])

    def _keeps_work(self, node: Node) -> bool:
        """Whether `backward` will read the node's workspace."""
        if self._is_alone(node):
            return any(step.node is node and WORK in step.reads(step.wanted) for step in self.layout.backward)
        return work_of(node.name) in self.slab_of

    def _work(self, node: Node, worker: Worker | None) -> Any:
        """A worker's columns of a workspace, which has a column per frame."""
        shape = self._shape(work_of(node.name))
        if self._is_alone(node):
            return self.memory.own_value(work_of(node.name), shape)
        full = self._view(work_of(node.name), shape)
        return full[:, worker.columns] if worker is not None and self.split else full

    def _statistics(self) -> list[tuple[Node, Any]]:
        """The nodes that keep statistics, each with the workspace that holds those of the minibatch."""
        first = self.workers[0].forward
        return [
            (node, first[node.name].buffers["work"])
            for node in self.layout.forward
            if node.keeps_statistics and node.name in first and "work" in first[node.name].buffers
        ]

    def add_parts(self, names: list[str]) -> None:
        """Add up the workers' parts of the sums among `names`."""
        for name in names:
            if name in self.parts:
                total, parts = self.values[name], self.parts[name]
                self.backend.xp.copyto(total, parts[0])
                for part in parts[1:]:
                    self.backend.xp.add(total, part, out=total)

    def _bind_passes(self) -> None:
        """Join the steps of each worker into passes, which are replayed as far as possible."""
        # A single worker's products are divided among the threads, and not replayed.
        possible = self.memory.options.replay and self.split and replay.is_possible(self.backend)

        def repeats(step: ForwardStep | BoundBackward | FactorStep | LateProducts | LateSum) -> bool:
            if isinstance(step, LateSum):
                return possible
            return possible and step.node.repeats_calls(*self.graph.operand_shapes(step.node, self.layout.shapes))

        for worker in self.workers:
            worker.forward_pass = ReplayedSteps(list(worker.forward.values()), repeats)
            worker.backward_pass = ReplayedSteps(worker.backward_and_factors, repeats)
            worker.late_pass = ReplayedSteps(worker.late, repeats)

    # ---- backward

    def _bind_all_backward(self) -> None:
        """Bind, in this order, the steps before the workers', theirs, the deferred products, and the steps after them.

        The order decides which contribution to a gradient is the first. partials_wait: no deferred product adds to a
        gradient of which workers have parts, so that adding these up can wait.
        """
        before: set[str] = set()
        first = [step for step in self.steps if self._is_after(step.node)]
        self.first = [self._bind_backward(step, step.wanted, None, before) for step in first]
        together = [step for step in self.steps[len(first) :] if not self._is_alone(step.node)]
        touched: set[str] = set()
        for worker in self.workers:
            # Gradients without frames: the first worker adds to the final matrix, the others to their own parts.
            touched = set(before) if worker is self.workers[0] else set()
            worker.backward = [self._bind_backward(step, step.wanted, worker, touched) for step in together]
        after = before | touched
        for worker in self.workers:
            touched = set(after)
            worker.late = [self._late_products(step, worker, touched) for step in together if step.deferred]
        made_whole = {self.graph.operands[step.node.name][k].name for step in together for k in step.deferred}
        self.partials_wait = made_whole.isdisjoint(self.workers[-1].partial_gradients)
        self.num_together = len(first) + len(together)
        last = self.steps[self.num_together :]
        self.last = [self._bind_backward(step, step.wanted, None, touched) for step in last]
        self.layer_products = [
            (self.graph.operands[step.node.name][k], k, self._product_steps(step), self._factor_steps(step))
            for step in together
            for k in step.layer_products
        ]
        self.handed_out, self.touched_columns = (
            [
                (self.graph.operands[step.node.name][k], k, bound.into)
                for step in together
                for k in which(step)
                for bound in self._product_steps(step)
            ]
            for which in (attrgetter("handed_out"), attrgetter("touched_columns"))
        )
        self._share_late_sums(together)
        late = [step for worker in self.workers for step in worker.late]
        taken = [one for step in late for one in (step.taken if isinstance(step, LateProducts) else [step.whole])]
        self.taken_late = {one.parameter.name: one.parameter for one in taken}

    def _late_products(self, step: BackwardStep, worker: Worker, touched: set[str]) -> LateProducts:
        parameters = {operand.name: operand for operand in self.graph.operands[step.node.name]}
        taken = []
        for name in step.finished_products:
            columns = share_of(worker.index, len(self.workers), self.layout.shapes[name].cols)
            taken.append(Taken(parameters[name], columns))
        return self._bind_backward(step, step.deferred, worker, touched, LateProducts, taken)

    def _share_late_sums(self, together: Sequence[BackwardStep]) -> None:
        """Divide among the workers the sums that complete gradients of parameters which nothing reads any more."""
        if not self.split or not self.partials_wait:
            return
        read = {k for step in together for k in ((step.node.name, j) for j in step.reads(step.deferred))}
        names = {self.graph.operands[name][k].name for name, k in read if isinstance(k, int)}
        partials = self.workers[-1].partial_gradients
        finished = [name for step in together for name in step.finished if name in partials and name not in names]
        parameters = {one.name: one for step in together for one in self.graph.operands[step.node.name]}
        for k, name in enumerate(finished):
            gradient = self._gradient(name, None)
            whole = Taken(parameters[name], slice(0, gradient.shape[1]))
            parts = [worker.partial_gradients[name] for worker in self.workers[1:]]
            self.workers[k % len(self.workers)].late.append(LateSum(self.backend.kernels, whole, gradient, parts))

    def _product_steps(self, step: BackwardStep) -> list[BoundBackward]:
        """The bound steps, one for each worker, that compute a step's products."""
        if step.deferred:
            late = [one for worker in self.workers for one in worker.late if isinstance(one, LateProducts)]
            return [one for one in late if one.node is step.node]
        return [bound for worker in self.workers for bound in worker.backward if bound.node is step.node]

    def _factor_steps(self, step: BackwardStep) -> list[FactorStep]:
        """The steps that give the workers' factors to the layers of a step's products, if workers divide the frames."""
        found = []
        for worker in self.workers if step.deferred else ():
            more = FactorStep, worker.columns, self.columns or 0
            bound = self._bind_backward(step, step.layer_products, worker, set(), *more)
            found.append(worker.factor_steps.setdefault(step.node.name, bound))
        return found

    def _bind_backward(
        self,
        step: BackwardStep,
        wanted: tuple[int, ...],
        worker: Worker | None,
        touched: set[str],
        kind: type[BoundBackward] = BoundBackward,
        *more: Any,
    ) -> Any:
        """Bind the computation of the gradients of the operands `wanted` as a step of a kind.

        worker: computes its columns or, if the kind is LateProducts, its columns of products over all frames; None:
        computed once. A FactorStep adds nothing to a gradient. more: further fields of the step.
        """
        share = (worker.index, len(self.workers)) if kind is LateProducts else None
        lender, worker = worker, None if kind is LateProducts else worker
        node, names = step.node, [operand.name for operand in self.graph.operands[step.node.name]]
        to = None if kind is FactorStep else worker
        targets = [self._target(name, to) if k in wanted else None for k, name in enumerate(names)]
        fresh = [name not in touched for name in names]
        touched.update(names[k] for k in wanted)
        reads = step.reads(wanted)
        gradient = self.one if node.name == self.criterion else self._gradient(node.name, worker)
        value = self._part(value_of(node.name), node.name, worker) if VALUE in reads else None
        work = {}
        if node.work_shape(*self.graph.operand_shapes(node, self.layout.shapes)) is not None:
            work["work"] = self._work(node, worker) if WORK in reads else None
        rows = [shape.rows for shape in self.graph.operand_shapes(node, self.layout.shapes)]
        into = GradientTargets(self.backend, targets, fresh, self._scratch(lender), share, rows)
        return kind(node, self._operands(node, worker, reads), gradient, value, work, into, *more)

    def _gradient(self, name: str, worker: Worker | None) -> Any:
        return self._part(gradient_of(name), name, worker)

    def _target(self, name: str, worker: Worker | None) -> Any:
        """The matrix that contributions go to: for gradients without frames, later workers have parts of their own."""
        if worker is None or worker is self.workers[0] or self.graph.has_frames(name):
            return self._gradient(name, worker)
        if name not in worker.partial_gradients:
            worker.partial_gradients[name] = self.backend.empty(*self.layout.shapes[name])
        return worker.partial_gradients[name]

    def _scratch(self, worker: Worker | None) -> Callable[[int, int], Any]:
        """A function that lends temporary memory; each worker has its own."""
        owner = worker or self.workers[0]

        def lend(rows: int, cols: int) -> Any:
            if owner.scratch is None or owner.scratch.size < rows * cols:
                owner.scratch = self.backend.xp.empty(rows * cols, dtype=self.backend.dtype)
            return owner.scratch[: rows * cols].reshape((rows, cols), order="F")

        return lend

    def add_partial_gradients(self, but: Collection[str] = ()) -> None:
        """Add the other workers' parts of gradients to the first one's, except for the names in `but`."""
        for worker in self.workers[1:]:
            for name, partial in worker.partial_gradients.items():
                if name not in but:
                    total = self._gradient(name, None)
                    self.backend.xp.add(total, partial, out=total)
