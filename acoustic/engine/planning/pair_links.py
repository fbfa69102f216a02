"""What stands for a PairNetwork in the graph of the network that takes, and what gives back in the one that gives."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.network.traversal import forward_order, need_gradient
from acoustic.nodes.base import Node, Run, Shape
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.nodes.pair_network import FIRST
from readers.errors import ModelError


class Socket(Node):
    """A PairNetwork as its engine sees it: without operands, its values handed in before each pass.

    source: the other network's node; from_first: whether its first frames are taken, not the last; learns: whether
    there is anything below it that does; gradient (rows, K): that of the last pass backward, None if none came.
    """

    type_name = "PairNetwork"
    is_socket = True

    def __init__(self, node: Node, shape: Shape) -> None:
        super().__init__(node.name, (), None, node.origin)
        self.first_only, self.from_first = node.settings["steps"] == FIRST, node.settings["frame"] == FIRST
        self.shape, self.source = shape, node.operands[0]
        self.learns = bool(need_gradient(forward_order([self.source])))
        self.gradient: Any = None
        self._values: Any = None
        self._sequence: Any = np.zeros(0, int)
        self._columns: Any = np.zeros(0, int)

    @property
    def needs_gradient(self) -> bool:
        return self.learns

    def infer_shape(self) -> Shape:
        return self.shape

    def take(self, values: Any, starts: np.ndarray, sequence: np.ndarray) -> None:
        """values (rows, K): of each sequence; starts (K,): the columns they begin in, -1 if before this minibatch;
        sequence (N,): that of every column, -1 where none is."""
        self._values, self.gradient = values, None
        numbers = np.arange(len(starts)) if self.first_only else sequence
        columns = starts if self.first_only else np.arange(len(sequence))
        here = (numbers >= 0) & (columns >= 0)
        self._sequence, self._columns = numbers[here], columns[here]

    def forward(self, run: Run, *, out: Any) -> None:
        if self._values is None:
            raise ModelError(
                f"{self.where}: takes the values of another network; expected an action for pairs of networks, such as "
                "trainEncoderDecoder"
            )
        out.fill(0)
        out[:, run.xp.asarray(self._columns)] = self._values[:, run.xp.asarray(self._sequence)]

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: GradientTargets) -> None:
        mine, sequence = grad[:, run.xp.asarray(self._columns)], run.xp.asarray(self._sequence)
        if self.first_only:
            self.gradient = mine  # a sequence has one first step, and they are in order
            if len(self._sequence) != self._values.shape[1]:
                self.gradient = run.xp.zeros_like(self._values)
                self.gradient[:, sequence] = mine
            return
        member = run.xp.zeros((len(self._columns), self._values.shape[1]), dtype=grad.dtype)
        member[run.xp.arange(len(self._columns)), sequence] = 1
        self.gradient = mine @ member


class GradientReturn(Node):
    """A criterion that is always 0, and whose gradient is what other networks gave for some of the operands' columns.

    gradients: per operand pairs (columns (K,), (rows, K)).
    """

    type_name = "GradientReturn"
    operand_names = ("m",)
    variadic = True
    backward_reads = ((),)

    def __init__(self, name: str, operands: Sequence[Node]) -> None:
        super().__init__(name, operands)
        self.gradients: list[list[tuple[Any, Any]]] = [[] for _ in operands]

    def infer_shape(self, *shapes: Shape) -> Shape:
        return Shape(1, 1)

    def forward(self, run: Run, *inputs: Any, out: Any) -> None:
        out.fill(0)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: GradientTargets) -> None:
        for k, gradients in enumerate(self.gradients):
            into.add(k, lambda out, gradients=gradients: self._write(run, gradients, out))

    def _write(self, run: Run, gradients: list[tuple[Any, Any]], out: Any) -> None:
        out.fill(0)
        for columns, gradient in gradients:
            out[:, run.xp.asarray(columns)] += gradient
