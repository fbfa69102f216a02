"""The steps that programs are made of, each with the very arrays that it reads and writes.

Of every step recorder.py asks which stored nodes it reads or changes (`stored`), and that it lets go of the minibatch
(`forget`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from acoustic.engine.execution.gradient_sinks import Factors, Taker
from acoustic.nodes.base import Node, Run
from acoustic.nodes.gradient_targets import Into


@dataclass
class Operands:
    """The arrays of a step's operands: computed values lie where they lie, leaves are looked up for each pass.

    arrays: by position, None for what may not be read; leaves: position and node of the others.
    """

    arrays: list[Any]
    leaves: list[tuple[int, Node]]

    def resolve(self, inputs: Mapping[str, Any]) -> list[Any]:
        for position, node in self.leaves:
            self.arrays[position] = inputs[node.name] if node.is_input else node.value
        return self.arrays

    @property
    def stored(self) -> list[Node]:
        """The leaves that hold a matrix of their own."""
        return [node for _, node in self.leaves if not node.is_input]

    def forget(self) -> None:
        """Let go of the leaves."""
        for position, _ in self.leaves:
            self.arrays[position] = None


@dataclass
class ForwardStep:
    """A node with its operands and, by keyword, its buffers."""

    node: Node
    operands: Operands
    buffers: dict[str, Any]

    @property
    def stored(self) -> list[Node]:
        return self.operands.stored

    def forget(self) -> None:
        self.operands.forget()

    def run(self, run: Run, inputs: Mapping[str, Any]) -> None:
        self.node.forward(run, *self.operands.resolve(inputs), **self.buffers)


@dataclass
class BoundBackward:
    """A node's backward: its own gradient, the operands it may read, its value, its workspace, and where it adds."""

    node: Node
    gradient: Any
    operands: Operands
    value: Any
    work: dict[str, Any]
    into: Into

    @property
    def stored(self) -> list[Node]:
        return self.operands.stored

    def forget(self) -> None:
        self.operands.forget()

    def run(self, run: Run, inputs: Mapping[str, Any]) -> None:
        self.into.reset()
        self.node.backward(run, self.gradient, self.operands.resolve(inputs), self.value, self.into, **self.work)


@dataclass
class LayerLook:
    """Gives a layer one worker's frames of the factors of its gradient, as soon as they are there, if there is one.

    bound: makes all frames' gradient from them; columns: the worker's.
    """

    bound: BoundBackward
    columns: slice
    num_frames: int

    @property
    def stored(self) -> list[Node]:
        return self.bound.stored

    def forget(self) -> None:
        self.bound.forget()

    def take(self, k: int, factors: Factors | None) -> None:
        """Who gets those of operand k's gradient in the passes to come."""
        self.bound.into.factored.pop(k, None)
        if factors is not None:
            self.bound.into.factored[k] = partial(factors.look, self.num_frames)

    def run(self, run: Run, inputs: Mapping[str, Any]) -> None:
        if self.bound.into.factored:
            self.bound.run(run, inputs)


@dataclass
class Taken:
    """A parameter, its gradient, and the columns of it that a worker brings up to date."""

    parameter: Node
    gradient: Any
    columns: slice

    def hand_over(self, taker: Taker) -> None:
        if taker.takes_parts(self.parameter):
            taker.columns(self.parameter, self.gradient, self.columns)


@dataclass
class LateProducts:
    """One worker's columns of products over all frames, and of the parameters whose gradients these complete."""

    bound: BoundBackward
    taken: Sequence[Taken]

    @property
    def stored(self) -> list[Node]:
        return [*self.bound.stored, *(one.parameter for one in self.taken)]

    def forget(self) -> None:
        self.bound.forget()

    def run(self, told: tuple[Run, Taker], inputs: Mapping[str, Any]) -> None:
        run, taker = told
        self.bound.run(run, inputs)
        for one in self.taken:
            one.hand_over(taker)


@dataclass
class LateSum:
    """A gradient that the workers have parts of, added up and handed over by one of them, if that may be."""

    kernels: Any
    whole: Taken
    parts: Sequence[Any]

    @property
    def stored(self) -> list[Node]:
        return [self.whole.parameter]

    def forget(self) -> None:
        pass

    def run(self, told: tuple[Run, Taker], inputs: Mapping[str, Any]) -> None:
        _, taker = told
        if taker.takes_parts(self.whole.parameter):
            for part in self.parts:
                self.kernels.accumulate(self.whole.gradient, part)
            self.whole.hand_over(taker)
