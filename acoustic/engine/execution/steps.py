"""The steps of a program, each with the matrices that it reads and writes.

Replay asks every step which stored nodes it reads or changes (`stored`), and tells it to drop the arrays of the
minibatch (`forget`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acoustic.engine.execution.gradient_sink import GradientRoutes
from acoustic.nodes.base import Node, Run
from acoustic.nodes.gradient_targets import GradientTargets


@dataclass
class Operands:
    """The arrays of a step's operands: those of computed values are fixed, those of leaves are set for each pass.

    arrays: by position, None where the step may not read; leaves: positions and nodes of the leaves.
    """

    arrays: list[Any]
    leaves: list[tuple[int, Node]]

    def resolve(self, inputs: Mapping[str, Any]) -> list[Any]:
        for position, node in self.leaves:
            self.arrays[position] = inputs[node.name] if node.is_input else node.value
        return self.arrays

    @property
    def stored(self) -> list[Node]:
        """The leaves whose values are stored in the network."""
        return [node for _, node in self.leaves if not node.is_input]

    def forget(self) -> None:
        """Drop the arrays of the leaves."""
        for position, _ in self.leaves:
            self.arrays[position] = None


@dataclass
class OperandStep:
    """A step of a node, which reads operands."""

    node: Node
    operands: Operands

    @property
    def stored(self) -> list[Node]:
        return self.operands.stored

    def forget(self) -> None:
        self.operands.forget()


@dataclass
class ForwardStep(OperandStep):
    """A node with its operands and, by keyword, its buffers."""

    buffers: dict[str, Any]

    def run(self, run: Run, inputs: Mapping[str, Any]) -> None:
        self.node.forward(run, *self.operands.resolve(inputs), **self.buffers)


@dataclass
class BoundBackward(OperandStep):
    """A node's backward: the operands, gradient and value that it may read, its workspace, and its targets."""

    gradient: Any
    value: Any
    work: dict[str, Any]
    into: GradientTargets

    def run(self, run: Run, inputs: Mapping[str, Any]) -> None:
        self.into.reset()
        self.node.backward(run, self.gradient, self.operands.resolve(inputs), self.value, self.into, **self.work)


@dataclass
class FactorStep(BoundBackward):
    """Gives a layer, where there is one, a worker's columns of the factors of its gradient once they are computed."""

    columns: slice
    num_frames: int

    def run(self, run: Run, inputs: Mapping[str, Any]) -> None:
        if self.into.routes:
            super().run(run, inputs)


@dataclass
class Taken:
    """Some columns of a parameter, which one worker updates if the parameter's route takes parts."""

    parameter: Node
    columns: slice

    def hand_over(self, routes: GradientRoutes) -> None:
        if (route := routes.of(self.parameter)).takes_parts:
            route.part(self.columns)


@dataclass
class LateProducts(BoundBackward):
    """One worker's columns of products over all frames, and of the parameters whose gradients these complete."""

    taken: Sequence[Taken]

    @property
    def stored(self) -> list[Node]:
        return [*super().stored, *(one.parameter for one in self.taken)]

    def run(self, context: tuple[Run, GradientRoutes], inputs: Mapping[str, Any]) -> None:
        run, routes = context
        super().run(run, inputs)
        for one in self.taken:
            one.hand_over(routes)


@dataclass
class LateSum:
    """A gradient of which each worker has a part: added up by one of them, if the parameter's route takes parts."""

    kernels: Any
    whole: Taken
    gradient: Any
    parts: Sequence[Any]

    @property
    def stored(self) -> list[Node]:
        return [self.whole.parameter]

    def forget(self) -> None:
        pass

    def run(self, context: tuple[Run, GradientRoutes], inputs: Mapping[str, Any]) -> None:
        _, routes = context
        if routes.of(self.whole.parameter).takes_parts:
            for part in self.parts:
                self.kernels.accumulate(self.gradient, part)
            self.whole.hand_over(routes)
