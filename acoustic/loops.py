"""Recurrent loops as composite nodes: step by step inside, one node among others outside (book 2.6.1, Algorithm 2.6).

A loop computes its nodes on the columns of one step after another, forward in time or, with FutureValue, backward.
What it takes from outside is there for all steps already, and what its users see of it is there for all steps again.
Backward goes through the steps in reverse, but only for gradients inside; those of parameters and of everything else
that comes from outside follow afterwards, from all steps in one batch.  Nodes do not know that they are in a loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acoustic.fused_loop import FusedLoop, fused_loop
from acoustic.gradients import Into
from acoustic.loop_steps import DelayReader, by_all, shares_of, steps_of
from acoustic.node import Node, Run, Shape
from acoustic.nodes.products import Times
from acoustic.nodes.sums import Plus
from acoustic.sequences import Sequences
from readers.errors import ModelError


@dataclass
class Member:
    """A node of a loop: where its operands come from, and its matrices of all steps.

    operands: per operand whether it is inside, and its position there or among the loop's operands.
    """

    node: Node
    shape: Shape
    operands: list[tuple[bool, int]]
    work_shape: Shape | None
    value: Any = None
    work: Any = None
    gradient: Any = None


class Loop(Node):
    """A strongly connected component of a network, in place of its nodes; its own value means nothing.

    members: in the order of one step, delays first; shapes: of all nodes; fusion: see acoustic.fused_loop.  Raises
    ModelError for a node that does not take the frames one by one.
    """

    type_name = "Loop"

    def __init__(self, members: Sequence[Node], shapes: dict[str, Shape], fusion: bool = True) -> None:
        self.inside = {node.name: k for k, node in enumerate(members)}
        outside = {one.name: one for node in members for one in node.operands if one.name not in self.inside}
        position = {name: k for k, name in enumerate(outside)}
        self.members: list[Member] = []
        for node in members:
            operands = [
                (True, self.inside[one.name]) if one.name in self.inside else (False, position[one.name])
                for one in node.operands
            ]
            below = [shapes[one.name] for one in node.operands]
            self._check(node, shapes[node.name], below)
            self.members.append(Member(node, shapes[node.name], operands, node.work_shape(*below)))
        self.framed = [shapes[name].has_frames for name in outside]
        self.delays = [member for member in self.members if member.node.delay]
        self.computed = [member for member in self.members if not member.node.delay]
        self.reads_run = any(member.node.reads_run for member in self.members)
        self._reads = self._outside_reads()
        places = [member.operands for member in self.members]
        below = [shapes[name] for name in outside]
        self.fused = fused_loop(members, [member.shape for member in self.members], places, below) if fusion else None
        self._received: set[int] = set()
        self._forward: _Bound | None = None
        self._backward: _Bound | None = None
        super().__init__(f"loop of {', '.join(self.inside)}", list(outside.values()))

    def _check_number_of_operands(self) -> None:
        pass

    def _check(self, node: Node, shape: Shape, below: Sequence[Shape]) -> None:
        one_by_one = node.delay or (node.splits_frames(*below) and not node.sums_frames and not node.keeps_statistics)
        if shape.cols is not None or not one_by_one:
            raise ModelError(
                f"{node.where}: in the loop of {', '.join(sorted(self.inside))}; expected nodes there that take frames "
                "one by one"
            )

    def _outside_reads(self) -> list[tuple[int, ...] | None]:
        """Per operand what its gradient reads; None where the way to it has no gradient."""
        reads: set[int] = set()
        dead: set[int] = set()
        whole = False
        for member in self.members:
            for k, (inside, position) in enumerate(member.operands):
                wanted = member.node.gradient_reads(k)
                whole |= wanted is None and inside
                if wanted is None and not inside:
                    dead.add(position)
                places = [member.operands[read] for read in wanted or () if isinstance(read, int)]
                reads.update(at for is_inside, at in places if not is_inside)
        count = 1 + max((at for m in self.members for inside, at in m.operands if not inside), default=-1)
        return [None if whole or k in dead else tuple(sorted(reads)) for k in range(count)]

    def gradient_reads(self, k: int) -> tuple[int | str, ...] | None:
        return self._reads[k]

    def infer_shape(self, *shapes: Shape) -> Shape:
        framed = next((shape for shape, has in zip(shapes, self.framed) if has), None)
        return Shape(1, framed.cols if framed else None)

    def splits_frames(self, *shapes: Shape) -> bool:
        return False

    # ---- forward

    def forward(self, run: Run, *inputs: Any, out: Any) -> None:
        sequences = self._sequences(run)
        self._received.clear()
        self._allocate(run, sequences)
        fused = self._fused_for(run)
        if fused is not None:
            fused.take(inputs)
        if fused is not None:
            self._forward_fused(run, sequences, fused)
            return
        bound = self._bound_forward(inputs, sequences)
        readers = self._readers(run, sequences)
        for t in self._time(sequences):
            for reader in readers:
                reader.read(t)
            now = self._run_of(run, t, sequences)
            for forward, operands, buffers in bound.steps[t]:
                forward(now, *operands, **buffers)
        for reader in readers:
            reader.hold()

    def _readers(self, run: Run, sequences: Sequences, slots: slice | None = None) -> list["DelayReader"]:
        return [
            DelayReader(
                self.members[member.operands[0][1]], member, sequences, run, slots or slice(0, sequences.num_slots)
            )
            for member in self.delays
        ]

    def _forward_fused(self, run: Run, sequences: Sequences, fused: FusedLoop) -> None:
        """Every thread takes some of the slots through all steps."""
        shares = shares_of(sequences)
        arrays = [member.value for member in self.members]
        if self._forward is None or not self._forward.fits(arrays, sequences, shares=shares):
            steps = [fused.forward_steps(steps_of(sequences, slots)) for slots in shares]
            self._forward = _Bound(arrays, sequences.num_slots, frozenset(), steps, shares)
        readers = [self._readers(run, sequences, slots) for slots in shares]
        bound, time = self._forward, self._time(sequences)

        def part(worker: int) -> None:
            steps = bound.steps[worker]
            for t in time:
                for reader in readers[worker]:
                    reader.read(t)
                for function, arguments in steps[t]:
                    function(*arguments)

        by_all(part, len(shares))
        for reader in readers[0]:
            reader.hold()

    def _fused_for(self, run: Run) -> FusedLoop | None:
        """The fused form, where it can be computed."""
        return self.fused if run.xp is np and run.backend.dtype is np.float32 else None

    def _sequences(self, run: Run) -> Sequences:
        return self.delays[0].node.sequences(run)

    def _time(self, sequences: Sequences) -> range:
        steps = range(sequences.num_steps)
        return steps if self.delays[0].node.delay > 0 else steps[::-1]

    def _run_of(self, run: Run, t: int, sequences: Sequences) -> Run:
        return replace(run, first_column=t * sequences.num_slots) if self.reads_run and t else run

    def _allocate(self, run: Run, sequences: Sequences) -> None:
        """Matrices for so many columns; they stay until the number changes."""
        columns = sequences.num_steps * sequences.num_slots
        fused = self._fused_for(run)
        if fused is not None:
            if fused.allocate(run.backend, columns, run.training):
                for position, member in enumerate(self.members):
                    member.value = fused.block(fused.values, position)
                    member.gradient = None if fused.gradients is None else fused.block(fused.gradients, position)
            return
        for member in self.members:
            if member.value is None or member.value.shape[1] != columns:
                member.value = run.backend.empty(member.shape.rows, columns)
                member.gradient = None
                if member.work_shape is not None:
                    member.work = run.backend.empty(member.work_shape.rows, columns)
            if run.training and member.gradient is None:
                member.gradient = run.backend.empty(member.shape.rows, columns)

    def _operands(self, member: Member, inputs: Sequence[Any], columns: slice | None) -> list[Any]:
        """The operands of all steps, or of one."""
        arrays = []
        for inside, position in member.operands:
            array = self.members[position].value if inside else inputs[position]
            cut = columns is not None and array is not None and (inside or self.framed[position])
            arrays.append(array[:, columns] if cut else array)
        return arrays

    def _bound_forward(self, inputs: Sequence[Any], sequences: Sequences) -> "_Bound":
        arrays = [*inputs, *(member.value for member in self.members)]
        if self._forward is None or not self._forward.fits(arrays, sequences):
            steps = []
            for columns in steps_of(sequences):
                step = []
                for member in self.computed:
                    buffers = {"out": member.value[:, columns]}
                    if member.work is not None:
                        buffers["work"] = member.work[:, columns]
                    step.append((member.node.forward, self._operands(member, inputs, columns), buffers))
                steps.append(step)
            self._forward = _Bound(arrays, sequences.num_slots, frozenset(), steps)
        return self._forward

    # ---- backward

    def receive(self, name: str, gradient: Any) -> None:
        """Take the gradient with respect to one of the nodes that a pass backward has reached from outside."""
        position = self.inside[name]
        member = self.members[position]
        member.gradient[...] = gradient
        self._received.add(position)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Into) -> None:
        sequences = self._sequences(run)
        delayed = {member.operands[0][1] for member in self.delays}
        for position in delayed - self._received:
            self.members[position].gradient.fill(0)
        fused = self._fused_for(run)
        if fused is not None:
            self._backward_fused(run, sequences, fused, delayed)
        else:
            bound = self._bound_backward(inputs, sequences, delayed, into)
            readers = self._readers(run, sequences)
            for t in reversed(self._time(sequences)):
                now = self._run_of(run, t, sequences)
                for backward, gradient, operands, mine, inner, work in bound.steps[t]:
                    inner.reset()
                    backward(now, gradient, operands, mine, inner, **work)
                for reader in readers:
                    reader.add_gradient(t)
        for member in self.computed:
            self._backward_outside(run, member, inputs, into, fused is not None)
        self._received.clear()

    def _backward_fused(self, run: Run, sequences: Sequences, fused: FusedLoop, delayed: set[int]) -> None:
        shares, received = shares_of(sequences), frozenset(self._received)
        arrays = [matrix for member in self.members for matrix in (member.value, member.gradient)]
        if self._backward is None or not self._backward.fits(arrays, sequences, received, shares):
            steps = [fused.backward_steps(steps_of(sequences, slots), delayed | received) for slots in shares]
            self._backward = _Bound(arrays, sequences.num_slots, received, steps, shares)
        readers = [self._readers(run, sequences, slots) for slots in shares]
        bound, time = self._backward, self._time(sequences)[::-1]
        fused.turn()

        def part(worker: int) -> None:
            steps = bound.steps[worker]
            for t in time:
                for function, arguments in steps[t]:
                    function(*arguments)
                for reader in readers[worker]:
                    reader.add_gradient(t)

        by_all(part, len(shares))

    def _bound_backward(self, inputs: Sequence[Any], sequences: Sequences, delayed: set[int], into: Into) -> "_Bound":
        """Per step what gives the gradients inside: a node after its users, delays left out."""
        arrays = [*inputs, *(matrix for member in self.members for matrix in (member.value, member.gradient))]
        received = frozenset(self._received)
        if self._backward is None or not self._backward.fits(arrays, sequences, received):
            steps = []
            for columns in steps_of(sequences):
                step = []
                touched = delayed | received
                for member in reversed(self.computed):
                    targets = [
                        self.members[at].gradient[:, columns] if inside else None for inside, at in member.operands
                    ]
                    # One matrix, one object: an operand that stands twice has one gradient.
                    first = {at: k for k, (inside, at) in reversed(list(enumerate(member.operands))) if inside}
                    targets = [targets[first[at]] if inside else None for inside, at in member.operands]
                    if not first:
                        continue
                    fresh = [inside and at not in touched for inside, at in member.operands]
                    touched |= first.keys()
                    inner = Into(into.backend, targets, fresh, into.scratch, rows=self._rows(member, into))
                    work = {} if member.work is None else {"work": member.work[:, columns]}
                    operands = self._operands(member, inputs, columns)
                    mine = member.value[:, columns]
                    step.append((member.node.backward, member.gradient[:, columns], operands, mine, inner, work))
                steps.append(step)
            self._backward = _Bound(arrays, sequences.num_slots, received, steps)
        return self._backward

    def _rows(self, member: Member, into: Into) -> list[int]:
        return [self.members[at].shape.rows if inside else into.rows[at] for inside, at in member.operands]

    def _backward_outside(self, run: Run, member: Member, inputs: Sequence[Any], into: Into, fused: bool) -> None:
        """A node's share of the gradients of what comes from outside, from all steps at once."""
        targets = [None if inside else into.targets[at] for inside, at in member.operands]
        if all(target is None for target in targets):
            return
        fresh, taken = [], {}
        for (_, at), target in zip(member.operands, targets):
            if target is not None and at not in taken:
                taken[at] = into.take_fresh(at)
            fresh.append(taken.get(at, False) if target is not None else False)
        inner = Into(into.backend, targets, fresh, into.scratch, rows=self._rows(member, into))
        work = {} if member.work is None else {"work": member.work}
        operands, gradient, value = self._operands(member, inputs, None), member.gradient, member.value
        copied = all(target is None or target.shape == gradient.shape for target in targets)
        if fused and not (type(member.node) is Times or (type(member.node) is Plus and copied)):
            # Rows of a larger matrix, which kernels do not take.
            operands = [None if one is None else run.xp.asfortranarray(one) for one in operands]
            gradient, value = run.xp.asfortranarray(gradient), run.xp.asfortranarray(value)
        member.node.backward(run, gradient, operands, value, inner, **work)


@dataclass
class _Bound:
    """The calls of each step, of every share of the slots where they are shared out, for certain arrays."""

    arrays: list[Any]
    num_slots: int
    received: frozenset[int]
    steps: list[Any]
    shares: Sequence[slice] = ()

    def fits(
        self,
        arrays: Sequence[Any],
        sequences: Sequences,
        received: frozenset[int] = frozenset(),
        shares: Sequence[slice] = (),
    ) -> bool:
        mine, asked = (self.num_slots, self.received, self.shares), (sequences.num_slots, received, shares)
        same = mine == asked and len(arrays) == len(self.arrays)
        return same and all(one is other for one, other in zip(arrays, self.arrays))


class LoopOutput(Node):
    """A node of a loop as its users outside see it, under its name: the value of all steps."""

    type_name = "LoopOutput"
    operand_names = ("loop",)
    backward_reads = ((),)

    def __init__(self, loop: Loop, name: str) -> None:
        super().__init__(name, [loop])
        self.member = loop.members[loop.inside[name]]

    def infer_shape(self, loop: Shape) -> Shape:
        return Shape(self.member.shape.rows, loop.cols)

    def forward(self, run: Run, loop: Any, *, out: Any) -> None:
        run.xp.copyto(out, self.member.value)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Into) -> None:
        self.operands[0].receive(self.name, grad)
        into.add(0, lambda out: out.fill(0))
