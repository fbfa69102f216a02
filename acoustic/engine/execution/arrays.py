"""A layout's matrices in memory: those of the whole minibatch, and each worker's columns of them.

Each of several workers has a contiguous share of the minibatch's columns, and computes all their values and gradients
independently of the others: these are column slices of shared matrices, and every sum over frames has a part per
worker.
"""

from collections.abc import Callable, Collection
from typing import Any

from acoustic.engine.execution.memory import EngineMemory
from acoustic.engine.execution.staleness import Placement
from acoustic.engine.execution.steps import BackwardStep, ForwardStep, Operands, Worker
from acoustic.engine.planning.pass_plan import BackwardPlan, Layout, MatrixKey, gradient_of, value_of, work_of
from acoustic.nodes.base import VALUE, WORK, Node, Shape
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.runtime.thread_team import share_of


class BoundArrays(Placement):
    """The matrices of a layout, and steps bound to them.

    whole: a worker with all columns; workers: those who divide the columns; split: whether there are several; values:
    whole matrices by node name; parts: the workers' parts of sums over frames; one: the gradient of the criterion.
    """

    def __init__(
        self, memory: EngineMemory, layout: Layout, columns: int | None, criterion: str | None, num_workers: int
    ) -> None:
        super().__init__(layout, memory.graph)
        self.memory, self.backend, self.columns, self.criterion = memory, memory.backend, columns, criterion
        self._views: dict[tuple, Any] = {}
        self.one = self.backend.empty(1, 1)
        self.whole = Worker(0, slice(0, columns or 0))
        self.split = num_workers > 1
        shares = [share_of(w, num_workers, columns or 0) for w in range(num_workers)]
        self.workers = [Worker(w, share) for w, share in enumerate(shares)] if self.split else [self.whole]
        self.values = {node.name: self._full(value_of(node.name), node.name) for node in layout.forward}
        self.parts = self._parts_of_sums() if self.split else {}

    def is_alone(self, node: Node) -> bool:
        """Whether a node depends on no input, so that it is computed once and not by every worker."""
        return node.name not in self.graph.from_input

    def is_after(self, node: Node) -> bool:
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

    def _part(self, key: MatrixKey, name: str, worker: Worker) -> Any:
        """A worker's columns of a matrix; the whole matrix if it has no frames."""
        full = self._full(key, name)
        if worker is self.whole or not self.graph.has_frames(name):
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
            if node.sums_frames and not self.is_alone(node) and not self.is_after(node)
        }

    # ---- steps

    def bind_forward(self, node: Node, worker: Worker) -> ForwardStep:
        if worker is not self.whole and node.name in self.parts:
            out = self.parts[node.name][worker.index]
        else:
            out = self._part(value_of(node.name), node.name, worker)
        buffers = {"out": out}
        if self._keeps_work(node):
            buffers["work"] = self._work(node, worker)
        return ForwardStep(node, self._operands(node, worker), worker, buffers)

    def _operands(self, node: Node, worker: Worker, reads: Collection[int | str] | None = None) -> Operands:
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
        if self.is_alone(node):
            return any(step.node is node and WORK in step.reads(step.wanted) for step in self.layout.backward)
        return work_of(node.name) in self.slab_of

    def _work(self, node: Node, worker: Worker) -> Any:
        """A worker's columns of a workspace, which has a column per frame."""
        shape = self._shape(work_of(node.name))
        if self.is_alone(node):
            return self.memory.own_value(work_of(node.name), shape)
        full = self._view(work_of(node.name), shape)
        return full if worker is self.whole else full[:, worker.columns]

    def bind_backward(
        self,
        step: BackwardPlan,
        wanted: tuple[int, ...],
        worker: Worker,
        touched: set[str],
        *,
        share: tuple[int, int] | None = None,
        whole_targets: bool = False,
    ) -> BackwardStep:
        """Bind the computation of the gradients of the operands `wanted` on a worker's columns.

        touched: the nodes whose gradients are not empty, to which `wanted` are added. share: (worker, workers) if the
        step computes some columns of products over all frames. whole_targets: the step computes no gradient, but hands
        out the factors of one.
        """
        place = self.whole if share is not None else worker
        node, names = step.node, [operand.name for operand in self.graph.operands[step.node.name]]
        to = self.whole if whole_targets else place
        targets = [self._target(name, to) if k in wanted else None for k, name in enumerate(names)]
        fresh = [name not in touched for name in names]
        touched.update(names[k] for k in wanted)
        reads = step.reads(wanted)
        gradient = self.one if node.name == self.criterion else self.gradient(node.name, place)
        value = self._part(value_of(node.name), node.name, place) if VALUE in reads else None
        work = {}
        if node.work_shape(*self.graph.operand_shapes(node, self.layout.shapes)) is not None:
            work["work"] = self._work(node, place) if WORK in reads else None
        rows = [shape.rows for shape in self.graph.operand_shapes(node, self.layout.shapes)]
        into = GradientTargets(self.backend, targets, fresh, self._scratch(worker), share, rows, self.memory.kernels)
        return BackwardStep(node, self._operands(node, place, reads), place, gradient, value, work, into)

    def gradient(self, name: str, worker: Worker) -> Any:
        """A worker's columns of a gradient; the whole matrix if it has no frames."""
        return self._part(gradient_of(name), name, worker)

    def _target(self, name: str, worker: Worker) -> Any:
        """The matrix that contributions go to: for gradients without frames, later workers have parts of their own."""
        if worker is self.whole or worker is self.workers[0] or self.graph.has_frames(name):
            return self.gradient(name, worker)
        if name not in worker.partial_gradients:
            worker.partial_gradients[name] = self.backend.empty(*self.layout.shapes[name])
        return worker.partial_gradients[name]

    def _scratch(self, worker: Worker) -> Callable[[int, int], Any]:
        """A function that lends temporary memory; each worker has its own."""

        def lend(rows: int, cols: int) -> Any:
            if worker.scratch is None or worker.scratch.size < rows * cols:
                worker.scratch = self.backend.xp.empty(rows * cols, dtype=self.backend.dtype)
            return worker.scratch[: rows * cols].reshape((rows, cols), order="F")

        return lend
