"""Compiled loops of products and elementwise nodes, float32 on the CPU: all steps of a pass in one compiled call.

Each thread computes its part of all steps without Python. Products with operands outside the loop, and gradients of
parameters, are computed for all steps at once, before and after the steps, divided among the same threads. See
loop_plan.py for the computation and its memory, work_split.py for the division among threads.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from acoustic.kernels.backend import Backend
from acoustic.nodes.base import Node
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.nodes.sequence_state import Sequences
from acoustic.recurrence.loop_plan import Place, Plan
from acoustic.recurrence.weight_layout import LAID_OUT_FROM
from acoustic.recurrence.work_split import WorkSplit
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.operations import Emitter, Operation, Phase, PythonCall
from acoustic.runtime.products import SHARE_FROM
from acoustic.runtime.thread_team import ThreadTeam, share_of

PADDING = 64
SPLITS_KEPT = 8  # numbers of slots whose divisions are kept
Job = tuple[Any, Any, Any, float]  # a, b, out and keep of a product
Resolve = Callable[[], tuple[Sequence[Any], Sequences]]


class CompiledLoop:
    """What passes of a compiled loop share: its plan, memory, and parameters in the order of the steps."""

    def __init__(self, plan: Plan, backend: Backend, options: EngineOptions) -> None:
        self.plan = plan
        self.backend = backend
        self.options = options
        self.memory: list[Any] = [None, None]  # of the values and of the gradients
        self.bound: BoundLoop | None = None  # of the present pass
        # See Traits. Columns are included: their gradient is the product of the threads' sums and ones.
        parameters = {product.parameter for product in plan.products} | plan.columns.keys()
        framed = {product.operand[1] for product in plan.before} | plan.framed.keys()
        self.frame_products: tuple[int, ...] = tuple(parameters - framed)
        self._splits: dict[tuple[int, int, bool], WorkSplit] = {}

    def split_for(self, num_steps: int, num_slots: int, num_threads: int) -> WorkSplit:
        """The division of minibatches with this number of slots."""
        key = num_slots, num_threads, self.options.weight_panels and num_steps >= LAID_OUT_FROM
        if key not in self._splits:
            if len(self._splits) == SPLITS_KEPT:
                self._splits.clear()
            self._splits[key] = WorkSplit(self.plan, *key)
        return self._splits[key]

    def matrices(self, num_columns: int, training: bool) -> list[Any]:
        """The matrices of values and, in training, gradients, for a number of columns.

        Their memory only grows: minibatches of whole utterances differ in their columns, and new memory for each would
        take longer than the computation.
        """
        # The distance of columns is no power of two: else those of a step would compete for a few cache lines.
        rows = self.plan.num_rows + PADDING - self.plan.num_rows % PADDING + 16
        for k in range(1 + training):
            if self.memory[k] is None or self.memory[k].shape[1] < num_columns:
                self.memory[k] = self.backend.empty(rows, num_columns + num_columns // 4)
        return [None if memory is None else memory[:, :num_columns] for memory in self.memory]

    def value(self, position: int) -> Any:
        """The values of a visible node at all steps of the present pass."""
        assert self.bound is not None
        return self.bound._block(self.bound.values, (True, position))

    def gradient(self, position: int) -> Any:
        assert self.bound is not None
        return self.bound._block(self.bound.gradients, (True, position))


class BoundLoop:
    """A compiled loop bound to its matrices for a number of columns and slots, which lists its operations.

    Parameters
    ----------
    compiled : CompiledLoop
    operands : sequence of Node
        Of the loop.
    training : bool
        Whether a backward pass follows.
    num_columns, num_slots : int
    team : ThreadTeam
        Threads that divide the work.
    """

    def __init__(
        self,
        compiled: CompiledLoop,
        operands: Sequence[Node],
        training: bool,
        num_columns: int,
        num_slots: int,
        team: ThreadTeam,
    ) -> None:
        self.compiled = compiled
        self.plan = compiled.plan
        self.operands = operands
        self.training = training
        self.outside = self.plan.loop.outside
        self.delays = self.plan.loop.delays
        self.values, self.gradients = compiled.matrices(num_columns, training)
        loop = self.plan.loop
        size = sum(loop.shapes[product.home].rows * loop.shape(product.operand).rows for product in self.plan.inside)
        # One thread if the products take no longer than waking another one.
        self.count = team.size if num_columns * size >= SHARE_FROM else 1
        self.split = compiled.split_for(num_columns // num_slots, num_slots, self.count)
        self._steps = sorted({delay.steps for delay in self.delays})
        self._usable = np.zeros((len(self._steps), num_columns // num_slots, num_slots), bool)
        self._constants = np.zeros(self.plan.num_constants, np.float32)
        defaults = [delay.node.settings["defaultHiddenActivity"] for delay in self.delays]
        self._defaults = np.array(defaults, np.float32)
        self._held: list[Any] | None = None

    def _block(self, matrix: Any, place: Place) -> Any:
        start = self.plan.row_of(place)
        return matrix[start : start + self.plan.loop.shape(place).rows]

    # ---- forward

    def list_forward(self, inputs: Sequence[Any], emitter: Emitter, resolve: Resolve) -> list[Any]:
        """List what comes before, the rows that each thread fills, all steps, and what comes after.

        resolve() gives the operands of the present pass.
        """
        # The parameters of the backward pass come first, so that those of the forward pass are in the cache.
        pairs = [pair for way in self.split.factors[self.training :: -1] for pair in zip(way, self.plan.inside)]
        bindings = [(factor, self.operands[product.parameter], inputs[product.parameter]) for factor, product in pairs]
        for factor, _, matrix in bindings:
            factor.bind(matrix)
        often = [each for each in bindings if not each[1].is_stored or (self.training and each[1].needs_gradient)]
        seldom = [each for each in bindings if each[1].is_stored and not (self.training and each[1].needs_gradient)]
        begin = []
        steps = []
        for number in range(self.count):
            fill = emitter.apart()
            step = emitter.apart()
            for factor, _, matrix in often[number :: self.count]:
                factor.copy(matrix, fill.of(factor))
            self._begin(inputs, number, fill, resolve)
            if number < len(self.split.parts):
                arrays = self._constants, self._defaults, self._usable, self.split.before
                step.of(self.split.parts[number]).all_steps(self.values, *arrays)
            begin.append(fill.operations)
            steps.append(step.operations)

        def prepare() -> None:
            self.compiled.bound = self
            inputs, sequences = resolve()
            for at, start in self.plan.columns.items():
                self._constants[start : start + self.outside[at].rows] = inputs[at][:, 0]
            self._usable[...] = sequences.usable_by(self._steps)
            self._held = None if sequences.whole else self._held_values(sequences)
            held = [values.ravel(order="F") for values in self._held or ()]
            self.split.before[:] = np.concatenate(held) if held else 0
            for factor, node, matrix in seldom:
                factor.renew(matrix, node.version)
            for factor, _, _ in often:
                factor.version = None

        def finish() -> None:
            _, sequences = resolve()
            for factor, node, _ in often:
                factor.version = node.version if node.is_stored else None
            for delay, array in zip(self.delays, self._held or ()):
                if delay.steps > 0:
                    sequences.hold(delay.node.name, delay.steps, array, self._block(self.values, (True, delay.source)))

        start, end = (PythonCall(f"loop.{function.__name__}", function, node="loop") for function in (prepare, finish))
        return [start, Phase(begin), Phase(steps), end]

    def _held_values(self, sequences: Sequences) -> list[Any]:
        """For each delay the values before the first step; empty for delays that look ahead."""
        return [
            sequences.held(delay.node.name, delay.rows, delay.steps, self.values)
            if delay.steps > 0
            else np.zeros(0, np.float32)
            for delay in self.delays
        ]

    def _begin(self, inputs: Sequence[Any], worker: int, emitter: Emitter, resolve: Resolve) -> None:
        """Before the steps, fill a thread's rows with operands and products from outside."""
        for at in self.plan.framed:
            rows = share_of(worker, self.count, self.outside[at].rows)
            emitter.operations.append(PythonCall("copy", self._copy_in, at, rows, resolve, node="loop"))
        for product in self.plan.before:
            rows = share_of(worker, self.count, self.plan.loop.shapes[product.home].rows)
            out = self._block(self.values, (True, product.home))[rows]
            if rows.start != rows.stop:
                parameter = inputs[product.parameter][rows]
                operand = inputs[product.operand[1]]
                emitter.matmul(parameter, operand, out, 1.0, float(product.keep))

    def _copy_in(self, at: int, rows: slice, resolve: Resolve) -> None:
        """Copy or add some rows of an operand to those of the values."""
        _, keep = self.plan.copied.get(at, (None, False))
        out = self._block(self.values, (False, at))[rows]
        operand_rows = resolve()[0][at][rows]
        if keep:
            np.add(out, operand_rows, out=out)
        else:
            np.copyto(out, operand_rows)

    # ---- backward

    def list_backward(
        self,
        inputs: Sequence[Any],
        received: frozenset[int],
        grads: GradientTargets,
        emitter: Emitter,
        kernels: Any,
        resolve: Resolve,
    ) -> list[Any]:
        """List for each thread all steps, then the products for operands and for parameters outside.

        received: the nodes whose gradient holds that from outside.
        """
        phases: list[list[list[Operation]]] = [[], [], []]
        for number in range(self.count):
            steps, outside, parameters = (emitter.apart() for _ in phases)
            if number < len(self.split.parts):
                part = steps.of(self.split.parts[number])
                part.all_steps_back(received, self.gradients, self.values, self._constants, self._usable)
            # A parameter changes as soon as its gradient is complete: all threads must have read it.
            grads.begin(None)
            operand_jobs, parameter_jobs = self._products_outside(inputs, self.split.sums, grads)
            for job in operand_jobs:
                _multiply_columns(outside, job, share_of(number, self.count, job[2].shape[1]))
            for k, jobs in parameter_jobs.items():
                columns = share_of(number, self.count, jobs[0][2].shape[1])
                for job in jobs:
                    _multiply_columns(parameters, job, columns)
                update = grads.route(k).parts
                if update is not None and columns.start != columns.stop:
                    parameters.operations.extend(update(columns))
            for phase, each in zip(phases, (steps, outside, parameters)):
                phase.append(each.operations)
        end = PythonCall("loop.hand_out", self._hand_out, grads, kernels, resolve, node="loop")
        return [*(Phase(phase) for phase in phases), end]

    def _hand_out(self, grads: GradientTargets, kernels: Any, resolve: Resolve) -> None:
        """Hand out factors and the gradients of operands with frames."""
        self._hand_out_factors(kernels, resolve()[0], grads)
        grads.begin(kernels)
        multiplied = {product.operand[1] for product in self.plan.products if not product.operand[0]}
        for at in self.plan.framed:
            if grads.needs(at):
                if at in multiplied:
                    grads.take_fresh(at)  # a listed product has written it
                grads.add_matrix(at, self._block(self.gradients, (False, at)))

    def _hand_out_factors(self, kernels: Any, inputs: Sequence[Any], grads: GradientTargets) -> None:
        """Give the factors of products to the layers that take them: copies, because nodes share rows."""
        for product in self.plan.products:
            give = grads.route(product.parameter).factors
            if give is not None and grads.needs(product.parameter):
                in_loop, at = product.operand
                operand = self._block(self.values, product.operand) if in_loop else inputs[at]
                gradient = self._block(self.gradients, (True, product.home))
                give(kernels, gradient.copy(order="F"), np.asfortranarray(operand))

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
