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
from acoustic.loop_plan import Place, Plan, plan_loop
from acoustic.loop_steps import in_phases, num_workers, shares_of
from acoustic.loop_tables import Table, Tables
from acoustic.node import Node, Run, Shape
from acoustic.packing import Factor, packed_product_address
from acoustic.playback import Repeat
from acoustic.sequences import Sequences
from acoustic.team import share_of

PADDING = 64
PACKED_FROM = 8  # steps: for fewer, packing parameters costs more than it gives
WAYS_KEPT = 8  # numbers of slots that parameters are laid out for
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
        self._parameters = {product.parameter for product in plan.products} | plan.columns.keys()
        self._delayed = frozenset(operands[position][0][1] for position in self.delays)
        self._tables = Tables(plan, shapes, outside)
        self._table = self._tables.forward()
        self._ways: dict[tuple[int, int, bool], _Way] = {}
        self._way: _Way | None = None
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
        """The operands whose gradient is products alone: see Node.  Columns are: sums of the threads, times ones."""
        framed = {product.operand[1] for product in self.plan.before} | self.plan.framed.keys()
        return tuple(self._parameters - framed)

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
                (backward, width): [Factor(backward, width) for _ in self._tables.inside]
                for backward in (False, True)
                for width in set(widths)
            }
            sums = np.zeros((len(shares), len(self.constants)), np.float32)
            self._ways[key] = _Way(shares, widths, factors, sums)
        return self._ways[key]

    def _back(self, way: "_Way", received: frozenset[int]) -> Table:
        """The tables backward where these nodes have a gradient from outside."""
        if received not in way.backward:
            way.backward[received] = self._tables.backward(self._delayed | received)
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
        return matrix[start : start + self._tables.rows_of(place)]

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
            for factor, product in zip(factors, self._tables.inside)
        ]
        due = [(factor, matrix) for factor, matrix, version in factors if factor.is_due(matrix, version)]
        # What is the same in the next pass is repeated without Python: see playback.py.
        repeated = not self.plan.framed and len(due) in (0, len(factors)) and all(one.packed for one, _ in due)
        key = (run.training, len(due)) if repeated else None
        arrays, moving = self._split(inputs)
        delays, before, held = self._delays_of(sequences)
        usable, ahead = self._usable(sequences), self._table

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
                _functions(), self.values.T, self.constants, ahead.segments, way.products(False, worker, ahead),
                ahead.operations, delays, self._defaults, usable, before, sequences.num_slots, share.start, share.stop,
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
        usable, untouched = self._usable(sequences), self._delayed - received
        by_step = self.gradients.T.reshape(sequences.num_steps, sequences.num_slots, -1)
        arrays, moving = self._split(inputs)
        arrays += [self.values, self.gradients, *into.targets, *(place.matrix for place in into.elsewhere.values())]
        repeats = [way.repeat(what, worker) for worker in range(count) for what in ("pass down", "make")]
        below: list[Job] = []
        made: dict[int, list[Job]] = {}
        if self.plan.framed or not all(repeat.holds(into.key, arrays, moving) for repeat in repeats):
            below, made = self._products_outside(inputs, into, way.sums)

        def steps(worker: int) -> None:
            if worker >= len(way.shares):
                return
            share = way.shares[worker]
            for position in untouched:
                start = self.plan.rows[position]
                by_step[:, share, start : start + self.shapes[position].rows] = 0
            way.sums[worker] = 0
            _loop_kernels.backward(
                _functions(), self.gradients.T, self.values.T, self.constants, way.sums[worker], back.segments,
                way.products(True, worker, back), back.operations, self._delays, usable, sequences.num_slots,
                share.start, share.stop,
            )  # fmt: skip

        def pass_down(worker: int) -> None:
            def work() -> None:
                for job in below:
                    _multiply_columns(job, share_of(worker, count, job[2].shape[1]))

            way.repeat("pass down", worker).run(work, into.key, arrays, moving)

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
        passes_down = any(into.needs(product.operand[1]) for product in self.plan.before)
        in_phases((steps, pass_down, make) if passes_down else (steps, make), count)
        into.taken = self._parameters & into.on_columns.keys()
        self._hand_out_factors(inputs, into)
        for at in self.plan.framed:
            if into.needs(at):
                into.add_matrix(at, self._block(self.gradients, (False, at)))

    def _hand_out_factors(self, inputs: Sequence[Any], into: Into) -> None:
        """Where a layer takes a product's factors instead: copies, for nodes of the loop share rows."""
        for product in self.plan.products:
            if product.parameter in into.factored and into.needs(product.parameter):
                inside, at = product.operand
                operand = self._block(self.values, product.operand) if inside else inputs[at]
                gradient = self._block(self.gradients, (True, product.home))
                into.factored[product.parameter](gradient.copy(order="F"), np.asfortranarray(operand))

    def _products_outside(
        self, inputs: Sequence[Any], into: Into, sums: np.ndarray
    ) -> tuple[list[Job], dict[int, list[Job]]]:
        """The products that add to gradients outside: of what has frames, in order, and of all else, by operand.

        sums: those of the gradients of columns in each thread.
        """
        below: list[Job] = []
        made: dict[int, list[Job]] = {}
        for product in self.plan.products:
            inside, at = product.operand
            gradient = self._block(self.gradients, (True, product.home))
            if into.needs(product.parameter) and product.parameter not in into.factored:
                operand = self._block(self.values, product.operand) if inside else inputs[at]
                made.setdefault(product.parameter, []).append((gradient, operand.T, *into.place(product.parameter)))
            if not inside and into.needs(at):
                below.append((inputs[product.parameter].T, gradient, *into.place(at)))
        ones = np.ones((len(sums), 1), np.float32, order="F")
        for at, start in self.plan.columns.items():
            if into.needs(at):
                parts = sums.T[start : start + self.outside[at].rows]
                made.setdefault(at, []).append((parts, ones, *into.place(at)))
        return below, made


@dataclass
class _Way:
    """How threads share out the slots: each one's, and the width of its factors; factors by direction and width.

    sums: of each thread the gradients of columns; backward: tables by who has a gradient from outside; repeats: of each
    thread and phase.
    """

    shares: list[slice]
    widths: list[int]
    factors: dict[tuple[bool, int], list[Factor]]
    sums: np.ndarray
    backward: dict[frozenset[int], Table] = field(default_factory=dict)
    repeats: dict[tuple[str, int], Repeat] = field(default_factory=dict)

    def repeat(self, what: str, worker: int) -> Repeat:
        """What a thread does in each pass besides the steps."""
        return self.repeats.setdefault((what, worker), Repeat())

    def products(self, backward: bool, worker: int, table: Table) -> np.ndarray:
        """The products of a thread."""
        products = table.products.copy()
        for row, factor in zip(products, self.factors[backward, self.widths[worker]]):
            row[:3] = factor.address, factor.packed, factor.distance
        return products


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
