"""Loops of products and elementwise nodes on a GPU: a launch or a few for each step; see cuda_source.py."""

from collections.abc import Collection, Sequence
from typing import Any

from acoustic.kernels.backend import Backend
from acoustic.kernels.cuda.module import CudaModule
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.nodes.sequence_state import Sequences
from acoustic.recurrence.codes import COLUMN, TIMES_COLUMN
from acoustic.recurrence.cuda_source import ROWS, SLOTS, LoopSource
from acoustic.recurrence.loop_plan import Operation, Place, Plan


class CudaLoop:
    """A loop with its plan on a GPU.

    Parameters
    ----------
    plan : Plan
    backend : Backend
        Whose array module is cupy.
    """

    def __init__(self, plan: Plan, backend: Backend) -> None:
        self.plan = plan
        self.backend = backend
        self.source = LoopSource(plan, backend.dtype)
        self.delays = plan.loop.delays
        self._modules: dict[frozenset[int] | None, CudaModule] = {}
        self._memory: list[Any] = [None, None]  # of the values and of the gradients
        self._columns = 0
        self._before: list[Any] = []  # the values of each delay before the minibatch

    def value(self, position: int) -> Any:
        """The value of a node at all steps."""
        return self._matrix(0, (True, position))

    def gradient(self, position: int) -> Any:
        return self._matrix(1, (True, position))

    def _matrix(self, kind: int, place: Place) -> Any:
        """The values, 0, or the gradients, 1, of a node or an operand with frames at all steps."""
        start = self.plan.row_of(place) * self._columns
        rows = self.plan.loop.shape(place).rows
        return self._memory[kind][start : start + rows * self._columns].reshape((rows, self._columns), order="F")

    def _allocate(self, num_columns: int, training: bool) -> None:
        """Memory for a number of columns, which only grows."""
        self._columns = num_columns
        size = self.plan.num_rows * num_columns
        for kind in range(1 + training):
            if self._memory[kind] is None or self._memory[kind].size < size:
                self._memory[kind] = self.backend.memory(size)

    def _module(self, received: frozenset[int] | None) -> CudaModule:
        if received not in self._modules:
            self._modules[received] = CudaModule(self.backend.xp, self.backend.dtype, self.source.text(received))
        return self._modules[received]

    def _run(self, received: frozenset[int] | None, inputs: Sequence[Any], sequences: Sequences, before: Any) -> None:
        """Launch the kernels of all steps: forward or, with the nodes that have a gradient from outside, backward."""
        module = self._module(received)
        way = "forward" if received is None else "backward"
        ahead = (self.delays[0].steps > 0) == (received is None)
        steps = range(sequences.num_steps) if ahead else reversed(range(sequences.num_steps))
        pointers = [each for delay, held in zip(self.delays, before) for each in (sequences.usable(delay.steps), held)]
        for at in self.source.outside:  # None: no gradient reads it
            pointers.append(None if inputs[at] is None else self.backend.xp.asfortranarray(inputs[at]))
        blocks = -(-self.source.most_rows // ROWS[way]) * -(-sequences.num_slots // SLOTS)
        numbers = sequences.num_slots, self._columns, *self._memory
        for step in steps:
            for number in range(len(self.source.launches)):
                module.launch(f"{way}{number}", blocks, step, *numbers, *pointers)

    def forward(self, inputs: Sequence[Any], sequences: Sequences, training: bool) -> None:
        """Compute all steps; inputs: the values of the operands outside."""
        plan, kernels = self.plan, self.backend.kernels
        self._allocate(sequences.num_steps * sequences.num_slots, training)
        for at in plan.framed:
            values = self._matrix(0, (False, at))
            if plan.copied.get(at, (None, False))[1]:
                kernels.accumulate(values, inputs[at])
            else:
                kernels.copy(inputs[at], values)
        for product in plan.before:
            out = self.value(product.home)
            kernels.matmul(inputs[product.parameter], inputs[product.operand[1]], out, 1.0, float(product.keep))
        self._before = [None] * len(self.delays)
        if not sequences.whole:
            like = self.value(self.delays[0].source)
            self._before = [
                sequences.held(delay.node.name, delay.rows, delay.steps, like) if delay.steps > 0 else None
                for delay in self.delays
            ]
        self._run(None, inputs, sequences, self._before)
        for delay, before in zip(self.delays, self._before):
            if before is not None:
                sequences.hold(delay.node.name, delay.steps, before, self.value(delay.source))

    def backward(
        self, received: Collection[int], inputs: Sequence[Any], sequences: Sequences, grads: GradientTargets
    ) -> None:
        """Compute the gradients of all steps, then those of operands outside.

        received: the nodes whose gradient holds that from outside.
        """
        self._run(frozenset(received), inputs, sequences, self._before)
        plan = self.plan
        for product in plan.products:
            gradient = self.gradient(product.home)
            at = product.operand[1]
            operand = self.value(at) if product.operand[0] else inputs[at]
            if grads.needs(product.parameter) and grads.route(product.parameter).factors is not None:
                gradient = gradient.copy(order="F")  # what takes it changes it, and products share their rows
            grads.add_product(product.parameter, gradient, None if operand is None else operand.T)
            if not product.operand[0] and grads.needs(at):
                grads.add_product(at, inputs[product.parameter].T, self.gradient(product.home))
        for at in plan.framed:
            grads.add_matrix(at, self._matrix(1, (False, at)))
        for segment in plan.segments:
            for operation in segment:
                if isinstance(operation, Operation) and operation.code in (COLUMN, TIMES_COLUMN):
                    self._add_column(operation, grads)

    def _add_column(self, operation: Operation, grads: GradientTargets) -> None:
        """Add to the gradient of a column that an operation adds or multiplies."""
        place = operation.x if operation.code == COLUMN else operation.y
        assert place is not None
        if not grads.needs(place[1]):
            return
        terms = self.gradient(operation.out)
        if operation.code == TIMES_COLUMN:
            terms = self.backend.xp.multiply(terms, self._matrix(0, operation.x))
        grads.add(place[1], lambda out: grads.kernels.sum_columns(terms, out))
