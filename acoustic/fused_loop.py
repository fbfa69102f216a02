"""Loops of products and elementwise nodes, float32 on the CPU: all steps of a pass in one call of compiled code.

Every thread takes some of the slots through all steps, with the interpreter out of the way.  What can be made of all
steps at once is made before and after them, shared out among the same threads: products of what comes from outside,
and gradients of parameters.  See loop_plan.py for what is computed and where it lies.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from acoustic.backend import Backend, matmul_into
from acoustic.blas import general_function
from acoustic.gradients import Into
from acoustic.loop_plan import ADD, COLUMN, SKIP, TIMES_COLUMN, WRITE, Operation, Plan, Product, plan_loop
from acoustic.loop_steps import in_phases, num_workers, shares_of
from acoustic.node import Node, Run, Shape
from acoustic.packing import Factor, packed_product_address
from acoustic.sequences import Sequences
from acoustic.team import share_of

PRODUCTS, OPERATIONS = range(2)  # kinds of segments of _loop_kernels
PADDING = 64
PACKED_FROM = 8  # steps: for fewer, packing parameters costs more than it gives
LAYOUTS_KEPT = 16  # of parameters, for so many directions and numbers of slots
Place = tuple[bool, int]
Job = tuple[Any, Any, Any, float, float]  # a, b, out, scale and keep of a product


class FusedLoop:
    """How the nodes of a loop are computed.  values, gradients: of all nodes and steps, once `forward` has run."""

    def __init__(self, plan: Plan, nodes: Sequence[Node], shapes: Sequence[Shape], operands: Sequence[Sequence[Place]],
                 outside: Sequence[Shape]) -> None:  # fmt: skip
        self.plan, self.nodes, self.shapes, self.operands, self.outside = plan, nodes, shapes, operands, outside
        self.delays = [position for position, node in enumerate(nodes) if node.delay]
        self.values: Any = None
        self.gradients: Any = None
        self._memory: Any = None
        self._gradient_memory: Any = None
        self.constants = np.zeros(plan.num_constants, np.float32)
        inside = [one for segment in plan.segments for one in segment if isinstance(one, Product)]
        self._position = {product.position: k for k, product in enumerate(inside)}
        self._inside = inside
        self._factors: dict[tuple[bool, int], list[Factor]] = {}  # by direction and width
        self._packs = False
        self._segments, self._operations = self._forward_tables()
        self._delays = np.zeros((len(self.delays), 5), np.int64)
        self._defaults = np.zeros(len(self.delays), np.float32)
        for k, position in enumerate(self.delays):
            rows, source = shapes[position].rows, plan.rows[operands[position][0][1]]
            self._delays[k, :4] = source, plan.rows[position], rows, nodes[position].delay
            self._defaults[k] = nodes[position].settings["defaultHiddenActivity"]

    # ---- tables

    def _forward_tables(self) -> tuple[np.ndarray, np.ndarray]:
        segments, operations = [], []
        for segment in self.plan.segments:
            if isinstance(segment[0], Product):
                first = self._position[segment[0].position]
                segments.append((PRODUCTS, first, first + len(segment)))
            else:
                segments.append((OPERATIONS, len(operations), len(operations) + len(segment)))
                operations += [(*self._operation(one), int(one.keep), 0) for one in segment]
        return _table(segments, 3), _table(operations, 7)

    def _operation(self, operation: Operation) -> tuple[int, ...]:
        """Code, first rows of result and operands, how many."""
        starts = [0 if place is None else self._start(place) for place in (operation.x, operation.y)]
        return operation.code, self.plan.rows[operation.out], *starts, self.shapes[operation.out].rows

    def _start(self, place: Place) -> int:
        inside, at = place
        return self.plan.columns[at] if not inside and at in self.plan.columns else self.plan.row_of(place)

    def _backward_tables(self, touched: Collection[int]) -> tuple[np.ndarray, np.ndarray, dict[int, bool]]:
        """Segments, operations, and of each product whether its operand's gradient holds something already.

        touched: nodes whose gradient does when a step begins.
        """
        seen = {self.plan.rows[position] for position in touched}
        segments, operations, keeps = [], [], {}
        for segment in reversed(self.plan.segments):
            if isinstance(segment[0], Product):
                first = self._position[segment[0].position]
                segments.append((PRODUCTS, first, first + len(segment)))
                row = self.plan.row_of(segment[0].operand)
                for product in segment:
                    keeps[product.position] = row in seen
                    seen.add(row)
                continue
            start = len(operations)
            for operation in reversed(segment):
                numbers, whats = self._operation(operation), [SKIP, SKIP]
                for side, place in ((1, operation.y), (0, operation.x)):  # as the kernel goes about it
                    if place is None or (operation.code, side) in ((COLUMN, 0), (TIMES_COLUMN, 1)):
                        continue
                    whats[side] = ADD if numbers[2 + side] in seen else WRITE
                    seen.add(numbers[2 + side])
                operations.append((*numbers, *whats))
            segments.append((OPERATIONS, start, len(operations)))
        return _table(segments, 3), _table(operations, 7), keeps

    def _products(self, backward: bool, width: int, keeps: dict[int, bool]) -> np.ndarray:
        """The table of the products of a thread with so many slots."""
        factors, rows = self._factors[backward, width], []
        for product, factor in zip(self._inside, factors):
            ends = [self.plan.row_of(product.operand), self.plan.rows[product.home]]
            keep = keeps[product.position] if backward else product.keep
            ends = ends[::-1] if backward else ends
            rows.append((factor.address, factor.packed, factor.distance, *factor.shape, *ends, keep))
        return _table(rows, 8)

    # ---- memory

    def allocate(self, backend: Backend, num_columns: int, training: bool) -> None:
        """Make the matrices for so many columns.

        They lie in memory that only grows: minibatches of whole utterances differ in their columns, and memory that is
        new each time costs more than what is computed in it.
        """
        # Columns not a power of two apart: a step's would all fall on a few lines of the cache.
        rows = self.plan.num_rows + PADDING - self.plan.num_rows % PADDING + 16
        if self.values is None or self.values.shape[1] != num_columns:
            self._memory = _at_least(self._memory, backend, rows, num_columns)
            self.values, self.gradients = self._memory[:, :num_columns], None
        if training and self.gradients is None:
            self._gradient_memory = _at_least(self._gradient_memory, backend, rows, num_columns)
            self.gradients = self._gradient_memory[:, :num_columns]

    def value(self, position: int) -> Any:
        """The values of a node that is visible, of all steps."""
        return self._block(self.values, (True, position))

    def gradient(self, position: int) -> Any:
        return self._block(self.gradients, (True, position))

    def _block(self, matrix: Any, place: Place) -> Any:
        inside, at = place
        start = self.plan.row_of(place)
        return matrix[start : start + (self.shapes if inside else self.outside)[at].rows]

    def _functions(self) -> np.ndarray:
        address, wide = general_function()
        return np.array([address, wide, packed_product_address()], np.int64)

    # ---- forward

    def forward(self, run: Run, inputs: Sequence[Any], versions: Sequence[int | None], sequences: Sequences) -> None:
        """Compute all steps; the delays' last values are kept for the minibatch that follows.

        versions: of each input a number that changes with its elements, or None.
        """
        from acoustic import _loop_kernels  # numba: only a job that computes loads it

        self.allocate(run.backend, sequences.num_steps * sequences.num_slots, run.training)
        for at, start in self.plan.columns.items():
            self.constants[start : start + self.outside[at].rows] = inputs[at][:, 0]
        shares, count = shares_of(sequences), num_workers()
        self._packs = sequences.num_steps >= PACKED_FROM and packed_product_address() != 0
        tasks = self._factor_tasks(run.training, {self._width(share) for share in shares}, inputs, versions)
        delays, before, held = self._delays_of(sequences)
        functions, usable = self._functions(), self._usable(sequences)

        def prepare(worker: int) -> None:
            for task in tasks[worker::count]:
                task()
            self._begin(inputs, share_of(worker, count, self.values.shape[1]))

        def steps(worker: int) -> None:
            if worker >= len(shares):
                return
            share = shares[worker]
            products = self._products(False, self._width(share), {})
            _loop_kernels.forward(
                functions, self.values.T, self.constants, self._segments, products, self._operations, delays,
                self._defaults, usable, before, sequences.num_slots, share.start, share.stop,
            )  # fmt: skip

        in_phases((prepare, steps), count)
        for position, array in zip(self.delays, held):
            if array is not None:
                source = self.value(self.operands[position][0][1])
                sequences.hold(self.nodes[position].name, self.nodes[position].delay, array, source)

    def _width(self, share: slice) -> int:
        """The number of columns that a thread's factors are laid out for; 0: for any."""
        return share.stop - share.start if self._packs else 0

    def _factor_tasks(
        self, training: bool, widths: Collection[int], inputs: Sequence[Any], versions: Sequence[int | None]
    ) -> list[Callable[[], None]]:
        """What lays the parameters out for products forward, and backward if there will be any."""
        wanted = [(backward, width) for backward in (False, True)[: 1 + training] for width in widths]
        if len(self._factors.keys() | wanted) > LAYOUTS_KEPT:
            self._factors.clear()
        tasks = []
        for backward, width in wanted:
            if (backward, width) not in self._factors:
                self._factors[backward, width] = [Factor(backward, width) for _ in self._inside]
            for factor, product in zip(self._factors[backward, width], self._inside):
                at = product.parameter
                tasks.append(partial(factor.take, inputs[at], versions[at]))
        return tasks

    def _begin(self, inputs: Sequence[Any], columns: slice) -> None:
        """Before the steps, in some columns: what comes from outside."""
        for at in self.plan.framed:
            _, keep = self.plan.copied.get(at, (None, False))
            rows = self._block(self.values, (False, at))[:, columns]
            if keep:
                np.add(rows, inputs[at][:, columns], out=rows)
            else:
                np.copyto(rows, inputs[at][:, columns])
        for product in self.plan.before:
            out = self._block(self.values, (True, product.home))[:, columns]
            operand = inputs[product.operand[1]][:, columns]
            matmul_into(np, inputs[product.parameter], operand, out, 1.0, float(product.keep))

    def _delays_of(self, sequences: Sequences) -> tuple[np.ndarray, np.ndarray, list[Any]]:
        """The table of delays, the values before the first step one after the other, and each one's."""
        table, held = self._delays.copy(), []
        start, parts = 0, [np.zeros(0, np.float32)]
        for k, position in enumerate(self.delays):
            node = self.nodes[position]
            table[k, 4] = start
            if node.delay < 0:
                held.append(None)
                continue
            array = sequences.held(node.name, self.shapes[position].rows, node.delay, self.values)
            held.append(array)
            parts.append(array.ravel(order="F"))
            start += array.size
        return table, np.concatenate(parts), held

    def _usable(self, sequences: Sequences) -> np.ndarray:
        return np.stack([sequences.usable(self.nodes[position].delay) for position in self.delays])

    # ---- backward

    def backward(
        self, run: Run, inputs: Sequence[Any], sequences: Sequences, received: Collection[int], into: Into
    ) -> None:
        """Gradients inside and outside; received: the nodes whose gradient holds what came from outside."""
        from acoustic import _loop_kernels

        delayed = {self.operands[position][0][1] for position in self.delays}
        segments, operations, keeps = self._backward_tables(delayed | set(received))
        shares, count = shares_of(sequences), num_workers()
        sums = np.zeros((len(shares), len(self.constants)), np.float32)
        delays, functions, usable = self._delays, self._functions(), self._usable(sequences)
        jobs = self._products_outside(inputs, into)
        by_step = self.gradients.T.reshape(sequences.num_steps, sequences.num_slots, -1)

        def steps(worker: int) -> None:
            if worker >= len(shares):
                return
            share = shares[worker]
            for position in delayed - set(received):
                start = self.plan.rows[position]
                by_step[:, share, start : start + self.shapes[position].rows] = 0
            products = self._products(True, self._width(share), keeps)
            _loop_kernels.backward(
                functions, self.gradients.T, self.values.T, self.constants, sums[worker], segments, products,
                operations, delays, usable, sequences.num_slots, share.start, share.stop,
            )  # fmt: skip

        def outside(worker: int) -> None:
            for a, b, out, scale, keep in jobs:
                columns = share_of(worker, count, out.shape[1])
                if columns.start != columns.stop:
                    matmul_into(np, a, b[:, columns], out[:, columns], scale, keep)

        in_phases((steps, outside), count)
        total = sums.sum(axis=0) if len(shares) > 1 else sums[0]
        for at, start in self.plan.columns.items():
            if into.needs(at):
                into.add_matrix(at, total[start : start + self.outside[at].rows, np.newaxis])
        for at in self.plan.framed:
            if into.needs(at):
                into.add_matrix(at, self._block(self.gradients, (False, at)))

    def _products_outside(self, inputs: Sequence[Any], into: Into) -> list[Job]:
        """The products that add to gradients outside, in order."""
        jobs: list[Job] = []
        for product in self.plan.products:
            inside, at = product.operand
            gradient = self._block(self.gradients, (True, product.home))
            operand = self._block(self.values, product.operand) if inside else inputs[at]
            jobs += self._job(into, product.parameter, gradient, operand.T)
            if not inside:
                jobs += self._job(into, at, inputs[product.parameter].T, gradient)
        return jobs

    def _job(self, into: Into, k: int, a: Any, b: Any) -> list[Job]:
        if not into.needs(k):
            return []
        return [(a, b, into.targets[k], 1.0, 0.0 if into.take_fresh(k) else 1.0)]


def _at_least(memory: Any, backend: Backend, rows: int, cols: int) -> Any:
    """A matrix of so many columns or more: the one that is there, or a new one with some to spare."""
    return memory if memory is not None and memory.shape[1] >= cols else backend.empty(rows, cols + cols // 4)


def _table(rows: Sequence[tuple], width: int) -> np.ndarray:
    return np.array(rows, np.int64).reshape(len(rows), width)


def fused_loop(
    backend: Backend,
    nodes: Sequence[Node],
    shapes: Sequence[Shape],
    operands: Sequence[Sequence[Place]],
    outside: Sequence[Shape],
    visible: Collection[int],
) -> FusedLoop | None:
    """The compiled form of a loop; None where there is none: for its nodes, see `plan_loop`, or for the backend."""
    if backend.xp is not np or backend.dtype is not np.float32 or general_function() is None or not _compiles():
        return None
    plan = plan_loop(nodes, shapes, operands, outside, visible)
    return None if plan is None else FusedLoop(plan, nodes, shapes, operands, outside)


def _compiles() -> bool:
    from numba import config

    return not config.DISABLE_JIT
