"""Compiled loops of products and elementwise nodes, float32 on the CPU: all steps of a pass in one compiled call.

Each thread computes its part of all steps without Python. Products with operands outside the loop, and gradients of
parameters, are computed for all steps at once, before and after the steps, divided among the same threads. See
loop_plan.py for the computation and its memory, work_split.py for the division among threads.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from acoustic.kernels.backend import Backend
from acoustic.nodes.base import Run
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.nodes.sequence_state import Sequences
from acoustic.recurrence.loop_plan import LoopNodes, Place, Plan, Product, plan_loop
from acoustic.recurrence.weight_layout import LAID_OUT_FROM
from acoustic.recurrence.work_split import Listed, WorkSplit, laid_out
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.operations import Emitter, Moving, Operation, Pass, PythonCall
from acoustic.runtime.products import SHARE_FROM
from acoustic.runtime.tables import is_possible
from acoustic.runtime.thread_team import ThreadTeam, share_of

PADDING = 64
SPLITS_KEPT = 8  # numbers of slots whose divisions are kept
ALONE = ThreadTeam(1)
Job = tuple[Any, Any, Any, float]  # a, b, out and keep of a product


class CompiledLoop:
    """Computes the nodes of a loop; values, gradients: of all nodes and steps, after `forward`."""

    def __init__(self, plan: Plan, options: EngineOptions) -> None:
        self.plan = plan
        self.options = options
        self.outside = plan.loop.outside
        self.delays = plan.loop.delays
        self.values: Any = None
        self.gradients: Any = None
        self._memory: Any = None
        self._gradient_memory: Any = None
        self._constants = np.zeros(plan.num_constants, np.float32)
        self._parameters = {product.parameter for product in plan.products} | plan.columns.keys()
        self._steps = sorted({delay.steps for delay in self.delays})
        defaults = [delay.node.settings["defaultHiddenActivity"] for delay in self.delays]
        self._defaults = np.array(defaults, np.float32)
        self._versions: Sequence[int | None] = ()
        self._splits: dict[tuple[int, int, bool], WorkSplit] = {}

    @property
    def frame_products(self) -> tuple[int, ...]:
        """See Node. Columns are included: their gradient is the product of the threads' sums and ones."""
        framed = {product.operand[1] for product in self.plan.before} | self.plan.framed.keys()
        return tuple(self._parameters - framed)

    def _threads_for(self, sequences: Sequences, num_threads: int) -> int:
        """How many threads compute the loop: one if its products take no longer than waking another thread."""
        loop = self.plan.loop
        products = [step for segment in self.plan.segments for step in segment if isinstance(step, Product)]
        size = sum(loop.shapes[product.home].rows * loop.shape(product.operand).rows for product in products)
        return num_threads if sequences.num_steps * sequences.num_slots * size >= SHARE_FROM else 1

    def _split_for(self, sequences: Sequences, num_threads: int) -> WorkSplit:
        """The division of minibatches with this number of slots."""
        in_panels = self.options.weight_panels and sequences.num_steps >= LAID_OUT_FROM
        key = sequences.num_slots, num_threads, in_panels
        if key not in self._splits:
            if len(self._splits) == SPLITS_KEPT:
                self._splits.clear()
            self._splits[key] = WorkSplit(self.plan, *key)
        return self._splits[key]

    # ---- memory

    def allocate(self, backend: Backend, num_columns: int, training: bool) -> None:
        """Make the matrices for a number of columns.

        Their memory only grows: minibatches of whole utterances differ in their columns, and new memory for each would
        take longer than the computation.
        """
        # The distance of columns is no power of two: else those of a step would compete for a few cache lines.
        rows = self.plan.num_rows + PADDING - self.plan.num_rows % PADDING + 16
        if self.values is None or self.values.shape[1] != num_columns:
            self._memory = _at_least(self._memory, backend, rows, num_columns)
            self.values = self._memory[:, :num_columns]
            self.gradients = None
        if training and self.gradients is None:
            self._gradient_memory = _at_least(self._gradient_memory, backend, rows, num_columns)
            self.gradients = self._gradient_memory[:, :num_columns]

    def value(self, position: int) -> Any:
        """The values of a visible node at all steps."""
        return self._block(self.values, (True, position))

    def gradient(self, position: int) -> Any:
        return self._block(self.gradients, (True, position))

    def _block(self, matrix: Any, place: Place) -> Any:
        start = self.plan.row_of(place)
        return matrix[start : start + self.plan.loop.shape(place).rows]

    # ---- forward

    def forward(self, run: Run, inputs: Sequence[Any], versions: Sequence[int | None], sequences: Sequences) -> None:
        """Compute all steps; the last values of the delays are kept for the next minibatch.

        versions: for each input a number that changes with its elements, or None.
        """
        self.allocate(run.backend, sequences.num_steps * sequences.num_slots, run.training)
        self._versions = versions
        for at, start in self.plan.columns.items():
            self._constants[start : start + self.outside[at].rows] = inputs[at][:, 0]
        held = None if sequences.whole else self._held(sequences)
        team = run.kernels.product_team or ALONE
        with team.hold() as count:
            count = self._threads_for(sequences, count)
            split = self._split_for(sequences, count)
            split.before[:] = 0 if held is None else np.concatenate([array.ravel(order="F") for array in held])
            listed = split.ahead
            fixed = [self.values, *self._take_present(listed, inputs, sequences)]
            with self._forgetting():
                due = split.due(inputs, versions, run.training)
                if listed.needs((run.training, laid_out(due)), fixed):
                    listed.listed = self._list_forward(run, split, due, inputs, listed.present, team)
                listed.run()
        if held is not None:
            for delay, array in zip(self.delays, held):
                if delay.steps > 0:
                    sequences.hold(delay.node.name, delay.steps, array, self.value(delay.source))

    def _list_forward(
        self, run: Run, split: WorkSplit, due: Sequence[Any], inputs: Sequence[Any], present: Any, team: ThreadTeam
    ) -> Pass:
        """List the operations of each thread: those that fill its rows, then all steps."""
        inputs, moving = self._stand_ins(inputs, present)
        usable = next(each.stand_in for each in moving if each.key == "usable")
        begin = []
        steps = []
        for number in range(len(due)):
            emitter = Emitter(run.backend.kernels, "loop", moving)
            for factor, matrix in due[number]:
                factor.take(matrix, emitter)
            self._begin(inputs, number, len(due), present, emitter)
            begin.append(emitter.operations)
            emitter = Emitter(None, "loop", moving)
            if number < len(split.parts):
                arrays = self._constants, self._defaults, usable, split.before
                emitter.of(split.parts[number]).forward(self.values, *arrays)
            steps.append(emitter.operations)
        return Pass(team, [begin, steps], self.options.tables)

    def _take_present(self, listed: Listed, inputs: Sequence[Any], sequences: Sequences) -> list[Any]:
        """Note the arrays whose address changes; return the others, and the shapes of those."""
        framed = [shape.has_frames for shape in self.outside]
        listed.present["usable"] = sequences.usable_by(self._steps)
        for at, matrix in enumerate(inputs):
            if framed[at] and matrix is not None:
                listed.present[str(at)] = matrix
        return [matrix for at, matrix in enumerate(inputs) if not framed[at]]

    def _stand_ins(self, inputs: Sequence[Any], present: dict[str, Any]) -> tuple[list[Any], tuple[Moving, ...]]:
        """The inputs with stand-ins for those with frames, and what they stand for."""
        moving = {key: Moving(present, key, array) for key, array in present.items()}
        arrays = [moving[str(at)].stand_in if str(at) in moving else matrix for at, matrix in enumerate(inputs)]
        return arrays, tuple(moving.values())

    def _held(self, sequences: Sequences) -> list[Any]:
        """For each delay the values before the first step; empty for delays that look ahead."""
        return [
            sequences.held(delay.node.name, delay.rows, delay.steps, self.values)
            if delay.steps > 0
            else np.zeros(0, np.float32)
            for delay in self.delays
        ]

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        """Forget the taken parameters if a pass fails, which may not have taken all."""
        try:
            yield
        except BaseException:
            self._splits.clear()
            raise

    def _begin(self, inputs: Sequence[Any], worker: int, count: int, present: dict[str, Any], emitter: Emitter) -> None:
        """Before the steps, fill a thread's rows with operands and products from outside."""
        for at in self.plan.framed:
            rows = share_of(worker, count, self.outside[at].rows)
            emitter.operations.append(PythonCall("copy", self._copy_in, at, rows, present, node="loop"))
        for product in self.plan.before:
            rows = share_of(worker, count, self.plan.loop.shapes[product.home].rows)
            out = self._block(self.values, (True, product.home))[rows]
            if rows.start != rows.stop:
                parameter = inputs[product.parameter][rows]
                operand = inputs[product.operand[1]]
                emitter.matmul(parameter, operand, out, 1.0, float(product.keep))

    def _copy_in(self, at: int, mine: slice, present: dict[str, Any]) -> None:
        """Copy or add some rows of an operand to those of the values."""
        _, keep = self.plan.copied.get(at, (None, False))
        rows = self._block(self.values, (False, at))[mine]
        if keep:
            np.add(rows, present[str(at)][mine], out=rows)
        else:
            np.copyto(rows, present[str(at)][mine])

    # ---- backward

    def backward(
        self, run: Run, inputs: Sequence[Any], sequences: Sequences, received: Collection[int], grads: GradientTargets
    ) -> None:
        """Compute all gradients; received: the nodes whose gradient holds that from outside."""
        team = run.kernels.product_team or ALONE
        with team.hold() as count:
            count = self._threads_for(sequences, count)
            split = self._split_for(sequences, count)
            received = frozenset(received)
            listed = split.back
            fixed = self._take_present(listed, inputs, sequences)
            fixed += [self.values, self.gradients, *grads.targets, *grads.routes.values()]
            with self._forgetting():
                # Factors are due only if the forward pass had another number of threads.
                due = split.due(inputs, self._versions, True)
                if listed.needs((received, laid_out(due), tuple(grads.routes)), fixed):
                    listed.listed = self._list_backward(run, split, due, inputs, received, grads, team)
                listed.run()
        self._hand_out_factors(run, inputs, grads)
        multiplied = {product.operand[1] for product in self.plan.products if not product.operand[0]}
        for at in self.plan.framed:
            if grads.needs(at):
                if at in multiplied:
                    grads.take_fresh(at)  # a listed product has written it
                grads.add_matrix(at, self._block(self.gradients, (False, at)))

    def _list_backward(
        self,
        run: Run,
        split: WorkSplit,
        due: Sequence[Any],
        inputs: Sequence[Any],
        received: frozenset[int],
        grads: GradientTargets,
        team: ThreadTeam,
    ) -> Pass:
        """List the operations of each thread: all steps, then the products for operands and for parameters outside."""
        inputs, moving = self._stand_ins(inputs, split.back.present)
        usable = next(each.stand_in for each in moving if each.key == "usable")
        count = len(due)
        phases: list[list[list[Operation]]] = [[], [], [], []]
        for number in range(count):
            taking = Emitter(None, "loop", moving)
            steps = Emitter(None, "loop", moving)
            for factor, matrix in due[number]:
                factor.take(matrix, taking)
            if number < len(split.parts):
                part = steps.of(split.parts[number])
                part.backward(received, self.gradients, self.values, self._constants, usable)
            # A parameter changes as soon as its gradient is complete: all threads must have read it.
            operand_jobs, parameter_jobs = self._products_outside(inputs, split.sums, grads.through(None))
            outside, parameters = (Emitter(run.backend.kernels, "loop", moving) for _ in range(2))
            for job in operand_jobs:
                _multiply_columns(outside, job, share_of(number, count, job[2].shape[1]))
            for k, jobs in parameter_jobs.items():
                columns = share_of(number, count, jobs[0][2].shape[1])
                for job in jobs:
                    _multiply_columns(parameters, job, columns)
                update = grads.route(k).parts
                if update is not None and columns.start != columns.stop:
                    parameters.operations.extend(update(columns))
            for phase, emitter in zip(phases, (taking, steps, outside, parameters)):
                phase.append(emitter.operations)
        return Pass(team, phases, self.options.tables)

    def _hand_out_factors(self, run: Run, inputs: Sequence[Any], grads: GradientTargets) -> None:
        """Give the factors of products to the layers that take them: copies, because nodes share rows."""
        for product in self.plan.products:
            give = grads.route(product.parameter).factors
            if give is not None and grads.needs(product.parameter):
                in_loop, at = product.operand
                operand = self._block(self.values, product.operand) if in_loop else inputs[at]
                gradient = self._block(self.gradients, (True, product.home))
                give(run.kernels, gradient.copy(order="F"), np.asfortranarray(operand))

    def _products_outside(
        self, inputs: Sequence[Any], sums: np.ndarray, grads: GradientTargets
    ) -> tuple[list[Job], dict[int, list[Job]]]:
        """The products that compute gradients outside: of operands with frames, in order, and of others, by operand.

        sums: parts of the gradients of columns.
        """
        operand_jobs: list[Job] = []
        parameter_jobs: dict[int, list[Job]] = {}
        for product in self.plan.products:
            in_loop, at = product.operand
            gradient = self._block(self.gradients, (True, product.home))
            if grads.needs(product.parameter) and grads.route(product.parameter).factors is None:
                operand = self._block(self.values, product.operand) if in_loop else inputs[at]
                parameter_jobs.setdefault(product.parameter, []).append(
                    (gradient, operand.T, grads.targets[product.parameter], grads.keep(product.parameter))
                )
            if not in_loop and grads.needs(at):
                operand_jobs.append((inputs[product.parameter].T, gradient, grads.targets[at], grads.keep(at)))
        column_of_ones = np.ones((len(sums), 1), np.float32, order="F")
        for at, start in self.plan.columns.items():
            if grads.needs(at):
                parts = sums.T[start : start + self.outside[at].rows]
                parameter_jobs.setdefault(at, []).append((parts, column_of_ones, grads.targets[at], grads.keep(at)))
        return operand_jobs, parameter_jobs


def _multiply_columns(emitter: Emitter, job: Job, columns: slice) -> None:
    a, b, out, keep = job
    if columns.start != columns.stop:
        emitter.matmul(a, b[:, columns], out[:, columns], 1.0, keep)


def _at_least(memory: Any, backend: Backend, rows: int, cols: int) -> Any:
    """A matrix with at least this number of columns: the given one, or a new one with some to spare."""
    return memory if memory is not None and memory.shape[1] >= cols else backend.empty(rows, cols + cols // 4)


def compile_loop(
    backend: Backend, options: EngineOptions, loop: LoopNodes, visible: Collection[int]
) -> CompiledLoop | None:
    """The compiled form of a loop; None if its nodes (see `plan_loop`) or the backend do not allow it."""
    if not is_possible(backend):
        return None
    plan = plan_loop(loop, visible)
    return None if plan is None else CompiledLoop(plan, options)
