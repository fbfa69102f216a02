"""The links of a pair of networks: values from the encoder to the decoder, and gradients back."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from acoustic.kernels.shape import Shape
from acoustic.network.traversal import forward_order, need_gradient
from acoustic.nodes.base import Node, PassContext
from acoustic.nodes.gradient_targets import GradientTargets
from acoustic.nodes.pair_network import FIRST
from acoustic.nodes.properties import SOCKET
from readers.errors import ModelError


class ExternalInput(Node):
    """Stands for a PairNetwork node in the decoder: it has no operands, and receives its values before each pass.

    source: the encoder's node; from_first: whether it takes the first frames of the sequences, not the last; learns:
    whether a parameter below the source learns; gradient (rows, K): of the last backward pass, None without one.
    """

    type_name = "PairNetwork"
    properties = frozenset({SOCKET})

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
        """Receive the values (rows, K) of K sequences.

        starts (K,): the column in which each sequence begins, -1 if before this minibatch; sequence (N,): the number of
        each column's sequence, -1 for a gap.
        """
        self._values, self.gradient = values, None
        numbers = np.arange(len(starts)) if self.first_only else sequence
        columns = starts if self.first_only else np.arange(len(sequence))
        is_real = (numbers >= 0) & (columns >= 0)
        self._sequence, self._columns = numbers[is_real], columns[is_real]

    def forward(self, context: PassContext, *, out: Any) -> None:
        if self._values is None:
            raise ModelError(
                f"{self.where}: takes the values of another network; expected an action for pairs of networks, such as "
                "trainEncoderDecoder"
            )
        out.fill(0)
        out[:, context.xp.asarray(self._columns)] = self._values[:, context.xp.asarray(self._sequence)]

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: GradientTargets
    ) -> None:
        mine, sequence = grad[:, context.xp.asarray(self._columns)], context.xp.asarray(self._sequence)
        if self.first_only:
            self.gradient = mine  # each sequence has one first step, and these are in order
            if len(self._sequence) != self._values.shape[1]:
                self.gradient = context.xp.zeros_like(self._values)
                self.gradient[:, sequence] = mine
            return
        member = context.xp.zeros((len(self._columns), self._values.shape[1]), dtype=grad.dtype)
        member[context.xp.arange(len(self._columns)), sequence] = 1
        self.gradient = mine @ member


class GradientReturn(Node):
    """A criterion of the encoder that is always 0 and whose gradient is that which the decoder returned.

    gradients: for each operand pairs of column numbers (K,) and gradients (rows, K).
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

    def forward(self, context: PassContext, *inputs: Any, out: Any) -> None:
        out.fill(0)

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: GradientTargets
    ) -> None:
        for k, gradients in enumerate(self.gradients):
            grads.add(k, partial(self._write, context, gradients))

    def _write(self, context: PassContext, gradients: list[tuple[Any, Any]], out: Any) -> None:
        out.fill(0)
        for columns, gradient in gradients:
            out[:, context.xp.asarray(columns)] += gradient
