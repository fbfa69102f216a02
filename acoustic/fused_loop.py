"""Loops of products and elementwise nodes, float32 on the CPU: all steps of a pass in one call of compiled code.

Every thread takes some of the slots through all steps, with the interpreter out of the way.  What can be made of all
steps at once is made before and after them, shared out among the same threads: products of what comes from outside,
and gradients of parameters.  See loop_plan.py for what is computed and where it lies.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from acoustic.backend import Backend, matmul_into
from acoustic.blas import general_function
from acoustic.gradients import Into
from acoustic.loop_plan import ADD, COLUMN, SKIP, TIMES_COLUMN, WRITE, Operation, Plan, Product, plan_loop
from acoustic.loop_steps import in_phases, num_workers, shares_of
from acoustic.node import Node, Run, Shape
from acoustic.packing import Factor, packed_product_address
from acoustic.playback import Repeat
from acoustic.sequences import Sequences
from acoustic.team import share_of

PRODUCTS, OPERATIONS = range(2)  # kinds of segments of _loop_kernels
PADDING = 64
PACKED_FROM = 8  # steps: for fewer, packing parameters costs more than it gives
WAYS_KEPT = 8  # numbers of slots that parameters are laid out for
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
        self._delayed = frozenset(operands[position][0][1] for position in self.delays)
        inside = [one for segment in plan.segments for one in segment if isinstance(one, Product)]
        self._position = {product.position: k for k, product in enumerate(inside)}
        self._inside = inside
        self._ways: dict[tuple[int, int, bool], _Way] = {}
        self._way: _Way | None = None
        self._segments, self._operations = self._forward_tables()
        self._steps = sorted({nodes[position].delay for position in self.delays})
        self._delays = np.zeros((len(self.delays), 6), np.int64)
        self._defaults = np.zeros(len(self.delays), np.float32)
        for k, position in enumerate(self.delays):
            rows, source = shapes[position].rows, plan.rows[operands[position][0][1]]
            delay = nodes[position].delay
            self._delays[k] = source, plan.rows[position], rows, delay, 0, self._steps.index(delay)
            self._defaults[k] = nodes[position].settings["defaultHiddenActivity"]

    @property
    def frame_products(self) -> tuple[int, ...]:
        """The operands whose gradient is products alone: see Node."""
        others = (
            {product.operand[1] for product in self.plan.before} | self.plan.framed.keys() | self.plan.columns.keys()
        )
        return tuple({product.parameter for product in self.plan.products} - others)

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

    def _products(self, backward: bool, keeps: dict[int, bool]) -> np.ndarray:
        """The table of the products of a step, but for where the parameters lie."""
        rows = []
        for product in self._inside:
            m, k = self.shapes[product.home].rows, self._place_rows(product.operand)
            ends = [self.plan.row_of(product.operand), self.plan.rows[product.home]]
            if backward:
                ends, (m, k) = ends[::-1], (k, m)
            rows.append((0, 0, 0, m, k, *ends, keeps[product.position] if backward else product.keep))
        return _table(rows, 8)

    def _place_rows(self, place: Place) -> int:
        inside, at = place
        return (self.shapes if inside else self.outside)[at].rows

    def _find_way(self, sequences: Sequences) -> "_Way":
        """How the slots of this minibatch are shared out, with what is known of that from earlier ones."""
        packs = sequences.num_steps >= PACKED_FROM and packed_product_address() != 0
        key = sequences.num_slots, num_workers(), packs
        if key not in self._ways:
            if len(self._ways) == WAYS_KEPT:
                self._ways.clear()
            shares = shares_of(sequences)
            widths = [share.stop - share.start if packs else 0 for share in shares]
            factors = {
                (backward, width): [Factor(backward, width) for _ in self._inside]
                for backward in (False, True)
                for width in set(widths)
            }
            self._ways[key] = _Way(shares, widths, factors, self._products(False, {}))
        return self._ways[key]

    def _back(self, way: "_Way", received: frozenset[int]) -> "_Back":
        """The tables backward where these nodes have a gradient from outside."""
        if received not in way.backward:
            segments, operations, keeps = self._backward_tables(self._delayed | received)
            way.backward[received] = _Back(segments, operations, self._products(True, keeps))
        return way.backward[received]

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
        start = self.plan.row_of(place)
        return matrix[start : start + self._place_rows(place)]

    # ---- forward

    def forward(self, run: Run, inputs: Sequence[Any], versions: Sequence[int | None], sequences: Sequences) -> None:
        """Compute all steps; the delays' last values are kept for the minibatch that follows.

        versions: of each input a number that changes with its elements, or None.
        """
        from acoustic import _loop_kernels  # numba: only a job that computes loads it

        self.allocate(run.backend, sequences.num_steps * sequences.num_slots, run.training)
        for at, start in self.plan.columns.items():
            self.constants[start : start + self.outside[at].rows] = inputs[at][:, 0]
        way, count = self._find_way(sequences), num_workers()
        self._way = way
        factors = [
            (factor, inputs[product.parameter], versions[product.parameter])
            for (backward, _), factors in way.factors.items()
            if run.training or not backward
            for factor, product in zip(factors, self._inside)
        ]
        due = [(factor, matrix) for factor, matrix, version in factors if factor.is_due(matrix, version)]
        # What is the same in the next pass is repeated without Python: see playback.py.
        repeated = not self.plan.framed and len(due) in (0, len(factors)) and all(one.packed for one, _ in due)
        key = (run.training, len(due)) if repeated else None
        arrays, moving = self._split(inputs)
        delays, before, held = self._delays_of(sequences)
        usable = self._usable(sequences)

        def prepare(worker: int) -> None:
            def work() -> None:
                for factor, matrix in due[worker::count]:
                    factor.take(matrix)
                self._begin(inputs, share_of(worker, count, self.values.shape[1]))

            way.repeat("prepare", worker).run(work, key, [self.values, *arrays], moving)

        def steps(worker: int) -> None:
            if worker >= len(way.shares):
                return
            share = way.shares[worker]
            _loop_kernels.forward(
                _functions(), self.values.T, self.constants, self._segments, way.products(False, worker),
                self._operations, delays, self._defaults, usable, before, sequences.num_slots, share.start, share.stop,
            )  # fmt: skip

        in_phases((prepare, steps), count)
        for position, array in zip(self.delays, held):
            if array is not None:
                source = self.value(self.operands[position][0][1])
                sequences.hold(self.nodes[position].name, self.nodes[position].delay, array, source)

    def _split(self, inputs: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """What comes from outside: parameters and the like, and what has frames, by a name."""
        framed = [shape.has_frames for shape in self.outside]
        moving = {str(at): matrix for at, matrix in enumerate(inputs) if framed[at]}
        return [matrix for at, matrix in enumerate(inputs) if not framed[at]], moving

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
        """(D, T, S) for each number of steps that something is delayed by."""
        return np.array([sequences.usable(delay) for delay in self._steps])

    # ---- backward

    def backward(
        self, run: Run, inputs: Sequence[Any], sequences: Sequences, received: Collection[int], into: Into
    ) -> None:
        """Gradients inside and outside; received: the nodes whose gradient holds what came from outside."""
        from acoustic import _loop_kernels

        way, count, received = self._way, num_workers(), frozenset(received)
        back = self._back(way, received)
        sums = np.zeros((len(way.shares), len(self.constants)), np.float32)
        usable, untouched = self._usable(sequences), self._delayed - received
        by_step = self.gradients.T.reshape(sequences.num_steps, sequences.num_slots, -1)
        below, made = self._products_outside(inputs, into)
        arrays, moving = self._split(inputs)
        arrays += [self.values, self.gradients, *(job[2] for jobs in (below, *made.values()) for job in jobs)]

        def steps(worker: int) -> None:
            if worker >= len(way.shares):
                return
            share = way.shares[worker]
            for position in untouched:
                start = self.plan.rows[position]
                by_step[:, share, start : start + self.shapes[position].rows] = 0
            _loop_kernels.backward(
                _functions(), self.gradients.T, self.values.T, self.constants, sums[worker], back.segments,
                way.products(True, worker, back.products), back.operations, self._delays, usable, sequences.num_slots,
                share.start, share.stop,
            )  # fmt: skip

        def pass_down(worker: int) -> None:
            def work() -> None:
                for job in below:
                    _multiply_columns(job, share_of(worker, count, job[2].shape[1]))

            way.repeat("pass down", worker).run(work, (), arrays, moving)

        def make(worker: int) -> None:
            def work() -> None:
                for k, jobs in made.items():
                    columns = share_of(worker, count, jobs[0][2].shape[1])
                    for job in jobs:
                        _multiply_columns(job, columns)
                    if k in into.on_columns and columns.start != columns.stop:
                        into.on_columns[k](columns)

            way.repeat("make", worker).run(work, into.key, arrays, moving)

        # Parameters change as soon as their gradients are there: not before all who read them have done so.
        in_phases((steps, pass_down, make) if below else (steps, make), count)
        into.taken = made.keys() & into.on_columns.keys()
        total = sums.sum(axis=0)
        for at, start in self.plan.columns.items():
            if into.needs(at):
                into.add_matrix(at, total[start : start + self.outside[at].rows, np.newaxis])
        for at in self.plan.framed:
            if into.needs(at):
                into.add_matrix(at, self._block(self.gradients, (False, at)))

    def _products_outside(self, inputs: Sequence[Any], into: Into) -> tuple[list[Job], dict[int, list[Job]]]:
        """The products that add to gradients outside: of what has frames, in order, and of parameters, by operand."""
        below: list[Job] = []
        made: dict[int, list[Job]] = {}
        for product in self.plan.products:
            inside, at = product.operand
            gradient = self._block(self.gradients, (True, product.home))
            if into.needs(product.parameter):
                operand = self._block(self.values, product.operand) if inside else inputs[at]
                made.setdefault(product.parameter, []).append((gradient, operand.T, *into.place(product.parameter)))
            if not inside and into.needs(at):
                below.append((inputs[product.parameter].T, gradient, *into.place(at)))
        return below, made


@dataclass
class _Back:
    """Tables of the steps backward: see _loop_kernels; products without where the parameters lie."""

    segments: np.ndarray
    operations: np.ndarray
    products: np.ndarray


@dataclass
class _Way:
    """How threads share out the slots: each one's, and the width of its factors; factors by direction and width.

    forward: the table of products forward, without where the parameters lie; backward: tables by who has a gradient
    from outside; repeats: of each thread and phase.
    """

    shares: list[slice]
    widths: list[int]
    factors: dict[tuple[bool, int], list[Factor]]
    forward: np.ndarray
    backward: dict[frozenset[int], _Back] = field(default_factory=dict)
    repeats: dict[tuple[str, int], Repeat] = field(default_factory=dict)

    def repeat(self, what: str, worker: int) -> Repeat:
        """What a thread does in each pass besides the steps."""
        return self.repeats.setdefault((what, worker), Repeat())

    def products(self, backward: bool, worker: int, table: np.ndarray | None = None) -> np.ndarray:
        """The table of a thread's products."""
        table = (self.forward if table is None else table).copy()
        for row, factor in zip(table, self.factors[backward, self.widths[worker]]):
            row[:3] = factor.address, factor.packed, factor.distance
        return table


def _multiply_columns(job: Job, columns: slice) -> None:
    a, b, out, scale, keep = job
    if columns.start != columns.stop:
        matmul_into(np, a, b[:, columns], out[:, columns], scale, keep)


@cache
def _functions() -> np.ndarray:
    return np.array([*general_function(), packed_product_address()], np.int64)


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
