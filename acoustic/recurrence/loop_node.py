"""Recurrent loops as composite nodes, computed step by step (CNTK book 2.6.1, Algorithm 2.6).

A loop computes its nodes on the columns of one step after another, forward in time or, with FutureValue, backward. Its
operands outside are complete for all steps before, and its values for all steps afterwards. The backward pass goes
through the steps in reverse for the gradients inside the loop; the gradients of parameters and other operands outside
follow, from all steps at once. Nodes do not know that they are in a loop.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from acoustic.kernels.backend import Backend
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext
from acoustic.nodes.delays import DelayNode
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.nodes.properties import RANDOM
from acoustic.nodes.sequence_state import Sequences
from acoustic.recurrence.compiled_loop import CompiledLoop
from acoustic.recurrence.loop_plan import LoopNodes, plan_loop
from acoustic.recurrence.loop_steps import DelayReader, steps_of
from acoustic.runtime.engine_options import EngineOptions
from acoustic.runtime.tables import is_possible, same
from readers.errors import ModelError

if TYPE_CHECKING:
    from acoustic.recurrence.cuda_loop import CudaLoop


@dataclass
class Member:
    """A node of a loop, and its matrices for all steps.

    operands: for each operand, whether it is inside, and its position there or among the loop's operands.
    """

    node: Node
    shape: Shape
    operands: list[tuple[bool, int]]
    work_shape: Shape | None
    value: Any = None
    work: Any = None
    gradient: Any = None

    def workspace(self, columns: slice = slice(None)) -> dict[str, Any]:
        """The workspace as an argument of `forward` and `backward`."""
        return {} if self.work is None else {"work": self.work[:, columns]}


class Loop(Node):
    """Replaces the nodes of a strongly connected component; its own value has no meaning.

    Parameters
    ----------
    members : sequence of Node
        The nodes in the order of one step, delays first.
    shapes : dict of str to Shape
        Shapes of all nodes of the network.
    visible : collection of str
        Names of the members whose values are needed outside.
    backend : Backend, optional
        If given, the loop is compiled where that is possible (see compiled_loop.py and cuda_loop.py); otherwise it is
        interpreted.
    options : EngineOptions, optional
        Options of the compiled loop.

    Raises
    ------
    ModelError
        For a member that does not compute frames one by one.

    References
    ----------
    CNTK book, section 2.6.1, Algorithm 2.6.
    """

    type_name = "Loop"

    def __init__(
        self,
        members: Sequence[Node],
        shapes: dict[str, Shape],
        visible: Collection[str],
        backend: Backend | None = None,
        options: EngineOptions | None = None,
    ) -> None:
        self.inside = {node.name: k for k, node in enumerate(members)}
        outside = {
            operand.name: operand for node in members for operand in node.operands if operand.name not in self.inside
        }
        position = {name: k for k, name in enumerate(outside)}
        self.members: list[Member] = []
        for node in members:
            operands = [
                (True, self.inside[operand.name]) if operand.name in self.inside else (False, position[operand.name])
                for operand in node.operands
            ]
            operand_shapes = [shapes[operand.name] for operand in node.operands]
            self._check(node, shapes[node.name], operand_shapes)
            self.members.append(Member(node, shapes[node.name], operands, node.work_shape(*operand_shapes)))
        self.framed = [shapes[name].has_frames for name in outside]
        self.delays = [member for member in self.members if member.node.delay]
        self.computed = [member for member in self.members if not member.node.delay]
        self._is_random = any(member.node.has(RANDOM) for member in self.members)
        self._reads = self._outside_reads()
        self.compiled: CompiledLoop | None = None
        self.on_gpu: CudaLoop | None = None
        if backend is not None:
            member_shapes = [member.shape for member in self.members]
            places = [member.operands for member in self.members]
            loop = LoopNodes(members, member_shapes, places, [shapes[name] for name in outside])
            on_gpu = backend.xp is not np
            is_planned = on_gpu or is_possible(backend)
            plan = plan_loop(loop, {self.inside[name] for name in visible}) if is_planned else None
            if plan is not None and on_gpu:
                from acoustic.recurrence import cuda_loop  # only a job on a GPU loads it

                self.on_gpu = cuda_loop.CudaLoop(plan, backend)
            elif plan is not None:
                self.compiled = CompiledLoop(plan, backend, options or EngineOptions())
        self._received: set[int] = set()
        self._forward: _Bound | None = None
        self._backward: _Bound | None = None
        super().__init__(f"loop of {', '.join(self.inside)}", list(outside.values()))

    @property
    def planned(self) -> Any:
        """What computes all steps from a plan; None if the nodes are called step by step."""
        return self.compiled or self.on_gpu

    def _check_number_of_operands(self) -> None:
        pass

    def _check(self, node: Node, shape: Shape, below: Sequence[Shape]) -> None:
        one_by_one = node.delay or (node.splits_frames(*below) and not node.sums_frames and not node.keeps_statistics)
        if shape.cols is not None or not one_by_one:
            raise ModelError(
                f"{node.where}: in the loop of {', '.join(sorted(self.inside))}; expected nodes there that take frames "
                "one by one"
            )

    def sole_products(self, of_member: Callable[[Node], Mapping[int, int]]) -> dict[int, int]:
        """The numbers that a function gives for operands of members, by operand of the loop that has no other use."""
        uses = Counter(at for member in self.members for in_loop, at in member.operands if not in_loop)
        numbers = {}
        for member in self.members:
            for k, number in of_member(member.node).items():
                in_loop, at = member.operands[k]
                if not in_loop and uses[at] == 1 and not self.framed[at]:
                    numbers[at] = number
        return numbers

    def _outside_reads(self) -> list[tuple[int, ...] | None]:
        """For each operand what its gradient reads; None if it has none."""
        reads: set[int] = set()
        dead: set[int] = set()
        without_gradient = False
        for member in self.members:
            for k, (in_loop, position) in enumerate(member.operands):
                operand_reads = member.node.gradient_reads(k)
                without_gradient |= operand_reads is None and in_loop
                if operand_reads is None and not in_loop:
                    dead.add(position)
                places = [member.operands[read] for read in operand_reads or () if isinstance(read, int)]
                reads.update(at for is_inside, at in places if not is_inside)
        count = 1 + max((at for m in self.members for in_loop, at in m.operands if not in_loop), default=-1)
        return [None if without_gradient or k in dead else tuple(sorted(reads)) for k in range(count)]

    def gradient_reads(self, k: int) -> tuple[int | str, ...] | None:
        return self._reads[k]

    def infer_shape(self, *shapes: Shape) -> Shape:
        framed = next((shape for shape, has in zip(shapes, self.framed) if has), None)
        return Shape(1, framed.cols if framed else None)

    def splits_frames(self, *shapes: Shape) -> bool:
        return False

    # ---- forward

    def forward(self, context: PassContext, *inputs: Any, out: Any) -> None:
        sequences = self.sequences(context)
        self._received.clear()
        if self.on_gpu is not None:
            self.on_gpu.forward(inputs, sequences, context.training)
            return
        self._allocate(context, sequences)
        bound = self._bound_forward(inputs, sequences)
        readers = self._readers(context, sequences)
        for t in self._time(sequences):
            for reader in readers:
                reader.read(t)
            now = self._context_of(context, t, sequences)
            for forward, operands, buffers in bound.steps[t]:
                forward(now, *operands, **buffers)
        for reader in readers:
            reader.hold()

    def value_of(self, position: int) -> Any:
        """The value of a member at all steps."""
        return self.members[position].value if self.planned is None else self.planned.value(position)

    def _readers(self, context: PassContext, sequences: Sequences) -> list[DelayReader]:
        return [DelayReader(self.members[member.operands[0][1]], member, sequences, context) for member in self.delays]

    def sequences(self, context: PassContext) -> Sequences:
        """The sequences of a pass. Raises ModelError without them."""
        delay = self.delays[0].node
        assert isinstance(delay, DelayNode)
        return delay.sequences(context)

    def _time(self, sequences: Sequences) -> range:
        steps = range(sequences.num_steps)
        return steps if self.delays[0].node.delay > 0 else steps[::-1]

    def _context_of(self, context: PassContext, t: int, sequences: Sequences) -> PassContext:
        return replace(context, first_column=t * sequences.num_slots) if self._is_random and t else context

    def _allocate(self, context: PassContext, sequences: Sequences) -> None:
        """Allocate the matrices when the number of columns changes."""
        columns = sequences.num_steps * sequences.num_slots
        for member in self.members:
            if member.value is None or member.value.shape[1] != columns:
                member.value = context.backend.empty(member.shape.rows, columns)
                member.gradient = None
                if member.work_shape is not None:
                    member.work = context.backend.empty(member.work_shape.rows, columns)
            if context.training and member.gradient is None:
                member.gradient = context.backend.empty(member.shape.rows, columns)

    def _operands(self, member: Member, inputs: Sequence[Any], columns: slice | None) -> list[Any]:
        """The operands of all steps, or of the columns of one step."""
        arrays = []
        for in_loop, position in member.operands:
            array = self.members[position].value if in_loop else inputs[position]
            cut = columns is not None and array is not None and (in_loop or self.framed[position])
            arrays.append(array[:, columns] if cut else array)
        return arrays

    def _bound_forward(self, inputs: Sequence[Any], sequences: Sequences) -> "_Bound":
        arrays = [*inputs, *(member.value for member in self.members)]
        if self._forward is None or not self._forward.fits(arrays, sequences):
            steps = []
            for columns in steps_of(sequences):
                step = []
                for member in self.computed:
                    buffers = {"out": member.value[:, columns], **member.workspace(columns)}
                    step.append((member.node.forward, self._operands(member, inputs, columns), buffers))
                steps.append(step)
            self._forward = _Bound(arrays, sequences.num_slots, frozenset(), steps)
        return self._forward

    # ---- backward

    def receive(self, name: str, gradient: Any) -> None:
        """Take the gradient with respect to a member from its users outside."""
        position = self.inside[name]
        member_gradient = self.members[position].gradient if self.planned is None else self.planned.gradient(position)
        member_gradient[...] = gradient
        self._received.add(position)

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: GradientTargets
    ) -> None:
        sequences = self.sequences(context)
        if self.on_gpu is not None:
            self.on_gpu.backward(self._received, inputs, sequences, grads)
            self._received.clear()
            return
        delayed = {member.operands[0][1] for member in self.delays}
        for position in delayed - self._received:
            self.members[position].gradient.fill(0)
        bound = self._bound_backward(inputs, sequences, delayed, grads)
        readers = self._readers(context, sequences)
        for t in reversed(self._time(sequences)):
            now = self._context_of(context, t, sequences)
            for backward, gradient, operands, member_value, inner, work in bound.steps[t]:
                inner.begin(grads.kernels)
                backward(now, gradient, operands, member_value, inner, **work)
                inner.complete()
            for reader in readers:
                reader.add_gradient(t)
        for member in self.computed:
            self._backward_outside(context, member, inputs, grads)
        self._received.clear()

    def _bound_backward(
        self, inputs: Sequence[Any], sequences: Sequences, delayed: set[int], grads: GradientTargets
    ) -> "_Bound":
        """For each step the calls that compute the gradients inside: users before operands, without delays."""
        arrays = [*inputs, *(matrix for member in self.members for matrix in (member.value, member.gradient))]
        received = frozenset(self._received)
        if self._backward is None or not self._backward.fits(arrays, sequences, received):
            steps = []
            for columns in steps_of(sequences):
                step = []
                touched = delayed | received
                # An operand that occurs twice has one gradient: the same object.
                gradients = [member.gradient[:, columns] for member in self.members]
                for member in reversed(self.computed):
                    inside = {at for in_loop, at in member.operands if in_loop}
                    if not inside:
                        continue
                    targets = [gradients[at] if in_loop else None for in_loop, at in member.operands]
                    fresh = [in_loop and at not in touched for in_loop, at in member.operands]
                    touched |= inside
                    rows = self._rows(member, grads)
                    inner = GradientTargets(
                        grads.backend, targets, fresh, grads.scratch, rows=rows, kernels=grads.kernels
                    )
                    work = member.workspace(columns)
                    operands = self._operands(member, inputs, columns)
                    member_value = member.value[:, columns]
                    step.append(
                        (member.node.backward, member.gradient[:, columns], operands, member_value, inner, work)
                    )
                steps.append(step)
            self._backward = _Bound(arrays, sequences.num_slots, received, steps)
        return self._backward

    def _rows(self, member: Member, grads: GradientTargets) -> list[int]:
        return [self.members[at].shape.rows if in_loop else grads.rows[at] for in_loop, at in member.operands]

    def _backward_outside(
        self, context: PassContext, member: Member, inputs: Sequence[Any], grads: GradientTargets
    ) -> None:
        """Add a member's contribution to the gradients of operands outside, from all steps at once."""
        targets = [None if in_loop else grads.targets[at] for in_loop, at in member.operands]
        if all(target is None for target in targets):
            return
        fresh = [target is not None and grads.take_fresh(at) for (_, at), target in zip(member.operands, targets)]
        outside = [(k, at) for k, (in_loop, at) in enumerate(member.operands) if not in_loop]
        routes = {k: grads.routes[at] for k, at in outside if at in grads.routes}
        rows = self._rows(member, grads)
        inner = GradientTargets(
            grads.backend, targets, fresh, grads.scratch, rows=rows, kernels=grads.kernels, routes=routes
        )
        operands = self._operands(member, inputs, None)
        member.node.backward(context, member.gradient, operands, member.value, inner, **member.workspace())
        inner.complete()


@dataclass
class _Bound:
    """The calls of each step, bound to arrays."""

    arrays: list[Any]
    num_slots: int
    received: frozenset[int]
    steps: list[Any]

    def fits(self, arrays: Sequence[Any], sequences: Sequences, received: frozenset[int] = frozenset()) -> bool:
        return (self.num_slots, self.received) == (sequences.num_slots, received) and same(arrays, self.arrays)


class LoopOutput(Node):
    """Stands for a member of a loop outside, under its name: its value at all steps."""

    type_name = "LoopOutput"
    operand_names = ("loop",)
    backward_reads = ((),)

    def __init__(self, loop: Loop, name: str) -> None:
        super().__init__(name, [loop])
        self.loop = loop
        self.position = loop.inside[name]

    def infer_shape(self, loop: Shape) -> Shape:
        return Shape(self.loop.members[self.position].shape.rows, loop.cols)

    def forward(self, context: PassContext, loop: Any, *, out: Any) -> None:
        out[...] = self.loop.value_of(self.position)

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: GradientTargets
    ) -> None:
        self.loop.receive(self.name, grad)
        grads.add(0, lambda out: out.fill(0))
