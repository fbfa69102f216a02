"""A layout's matrices in memory: those of the whole minibatch, and each worker's columns of them.

Each of several workers has a contiguous share of the minibatch's columns, and computes all their values and gradients
independently of the others: these are column slices of shared matrices, and every sum over frames has a part per
worker.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from acoustic.engine.execution.memory import EngineMemory
from acoustic.engine.planning.buffer_sharing import MatrixKey
from acoustic.engine.planning.pass_plan import Graph, Layout, gradient_of, value_of, work_of
from acoustic.nodes.base import WORK, Node, PassContext
from acoustic.runtime.thread_team import share_of

Resolve = Callable[[Mapping[str, Any]], list[Any]]  # the operands of a node, given the inputs


@dataclass
class Worker:
    """A thread with its columns of a minibatch; context and inputs: of the present pass.

    partial_gradients: its parts of gradients without frames, of all workers but the first.
    """

    index: int
    columns: slice
    context: PassContext = field(init=False)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    partial_gradients: dict[str, Any] = field(default_factory=dict)
    scratch: Any = None


class BoundArrays:
    """The matrices of a layout.

    columns: the number of frames; whole: a worker with all columns; workers: those who divide the columns; split:
    whether there are several; values: whole matrices by node name; parts: the workers' parts of sums over frames;
    criterion_gradient: (1, 1), of the criterion with respect to itself, 1.
    """

    def __init__(
        self, graph: Graph, memory: EngineMemory, layout: Layout, columns: int | None, num_workers: int
    ) -> None:
        self.graph = graph
        self.layout = layout
        self.memory = memory
        self.backend = memory.backend
        self.columns = columns
        self.slab_of = layout.plan.slab
        self._views: dict[tuple[Any, ...], Any] = {}
        self.criterion_gradient = self.backend.empty(1, 1)
        self.whole = Worker(0, slice(0, columns or 0))
        self.split = num_workers > 1
        shares = [share_of(w, num_workers, columns or 0) for w in range(num_workers)]
        self.workers = [Worker(w, share) for w, share in enumerate(shares)] if self.split else [self.whole]
        self.values = {node.name: self.matrix(value_of(node.name), self.whole) for node in layout.forward}
        self.parts = {
            node.name: [
                memory.own_matrix((f"part {w.index}", node.name), layout.shapes[node.name]) for w in self.workers
            ]
            for node in layout.forward
            if self.split and node.sums_frames and not self.is_alone(node) and not self.is_after(node)
        }

    def is_alone(self, node: Node) -> bool:
        """Whether a node depends on no input, so that it is computed once and not by every worker."""
        return node.name not in self.graph.from_input

    def is_after(self, node: Node) -> bool:
        """Whether a node is computed once, when all workers are done: it depends on sums over frames."""
        return self.split and node.name in self.graph.after_sums

    def matrix(self, key: MatrixKey, worker: Worker) -> Any:
        """A worker's columns of a matrix; the whole matrix if it has no frames.

        Matrices of one slab and shape are one object, so that `is` detects shared memory.
        """
        kind, name = key
        shape = self.layout.work[name] if kind == "work" else self.layout.shapes[name]
        slab = self.slab_of.get(key)
        if slab is None:
            matrix = self.memory.own_matrix(key, shape)
        elif (slab, shape) not in self._views:
            flat = self.memory.slabs[slab][: shape.rows * shape.num_columns]
            matrix = self._views[slab, shape] = flat.reshape(tuple(shape), order="F")
        else:
            matrix = self._views[slab, shape]
        if worker is self.whole or not (kind == "work" or self.graph.has_frames(name)):
            return matrix
        start = worker.columns.start
        if (slab, shape, start) not in self._views:
            self._views[slab, shape, start] = matrix[:, worker.columns]
        return self._views[slab, shape, start]

    def keeps_work(self, node: Node) -> bool:
        """Whether `backward` will read the node's workspace."""
        if self.is_alone(node):
            return any(step.node is node and WORK in step.reads(step.wanted) for step in self.layout.backward)
        return work_of(node.name) in self.slab_of

    def operands(self, node: Node, worker: Worker, reads: Any = None) -> Resolve:
        """What gives a node's operands, or those at positions `reads`, the others being None, on a worker's columns."""
        leaves: list[tuple[int, Node]] = []
        arrays: list[Any] = [None] * len(self.graph.operands[node.name])
        for k, operand in enumerate(self.graph.operands[node.name]):
            if reads is not None and k not in reads:
                continue
            if operand.is_leaf:
                leaves.append((k, operand))
            else:
                arrays[k] = self.matrix(value_of(operand.name), worker)

        def resolve(inputs: Mapping[str, Any]) -> list[Any]:
            present = list(arrays)
            for k, leaf in leaves:
                present[k] = inputs[leaf.name] if leaf.is_input else leaf.value
            return present

        return resolve

    def gradient_target(self, name: str, worker: Worker) -> Any:
        """The matrix that contributions go to: for gradients without frames, later workers have parts of their own."""
        if worker is self.whole or worker is self.workers[0] or self.graph.has_frames(name):
            return self.matrix(gradient_of(name), worker)
        if name not in worker.partial_gradients:
            key, shape = (f"partial gradient {worker.index}", name), self.layout.shapes[name]
            worker.partial_gradients[name] = self.memory.own_matrix(key, shape)
        return worker.partial_gradients[name]

    def scratch(self, worker: Worker) -> Callable[[int, int], Any]:
        """A function that lends temporary memory; each worker has its own."""

        def lend(rows: int, cols: int) -> Any:
            if worker.scratch is None or worker.scratch.size < rows * cols:
                worker.scratch = self.backend.xp.empty(rows * cols, dtype=self.backend.dtype)
            return worker.scratch[: rows * cols].reshape((rows, cols), order="F")

        return lend
