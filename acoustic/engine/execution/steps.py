"""The steps of a program: calls of nodes with the matrices that they read and write."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from acoustic.nodes.base import Node, Run
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.runtime.operations import Emitter, Operation, PythonCall


@dataclass
class Worker:
    """A thread with its columns of a minibatch; run and inputs: of the present pass."""

    index: int
    columns: slice
    run: Run = field(init=False)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    partial_gradients: dict[str, Any] = field(default_factory=dict)
    scratch: Any = None


@dataclass
class Operands:
    """The arrays of a step's operands: those of computed values are fixed, those of leaves are set for each pass.

    arrays: by position, None where the step may not read; leaves: positions and nodes of the leaves.
    """

    arrays: list[Any]
    leaves: list[tuple[int, Node]]

    def resolve(self, inputs: Mapping[str, Any]) -> list[Any]:
        arrays = list(self.arrays)
        for position, node in self.leaves:
            arrays[position] = inputs[node.name] if node.is_input else node.value
        return arrays


@dataclass
class ForwardStep:
    """A node's forward: its operands and, by keyword, its buffers."""

    node: Node
    operands: Operands
    worker: Worker
    buffers: dict[str, Any]

    def run(self) -> None:
        self.node.forward(self.worker.run, *self.operands.resolve(self.worker.inputs), **self.buffers)

    def emit(self, run: Run, stand_ins: Mapping[str, Any]) -> None:
        self.node.forward(run, *self.operands.resolve(stand_ins), **self.buffers)


@dataclass
class BackwardStep:
    """A node's backward: the operands, gradient and value that it may read, its workspace, and its targets."""

    node: Node
    operands: Operands
    worker: Worker
    gradient: Any
    value: Any
    work: dict[str, Any]
    into: GradientTargets

    def run(self) -> None:
        self.into.reset()
        operands = self.operands.resolve(self.worker.inputs)
        self.node.backward(self.worker.run, self.gradient, operands, self.value, self.into, **self.work)

    def emit(self, run: Run, stand_ins: Mapping[str, Any]) -> None:
        into = self.into.through(run.kernels)
        self.node.backward(run, self.gradient, self.operands.resolve(stand_ins), self.value, into, **self.work)


Step = ForwardStep | BackwardStep


class Lister:
    """Lists the operations of steps; stand_ins: the columns of the inputs that a worker reads."""

    def __init__(self, backend: Any, moving: Mapping[str, Any], emitted: Any) -> None:
        self.backend, self.moving, self.emitted = backend, moving, emitted

    def operations(self, step: Step) -> list[Operation]:
        """The calls of kernels that a step makes, or the call of its node."""
        if not self.emitted(step):
            way = "forward" if isinstance(step, ForwardStep) else "backward"
            return [PythonCall(f"{step.node.type_name}.{way}", step.run, node=step.node.name)]
        emitter = self.emitter(step.node.name)
        columns = step.worker.columns
        stand_ins = {name: moving.stand_in[:, columns] for name, moving in self.moving.items()}
        step.emit(Run(self.backend, kernels=emitter), stand_ins)
        return emitter.operations

    def emitter(self, node: str) -> Emitter:
        return Emitter(self.backend.kernels, node, tuple(self.moving.values()))
