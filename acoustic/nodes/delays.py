"""Delays: the value of another time step of the same sequence (CNTK book 2.6 and 4.1.4.36)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.option import Option
from acoustic.nodes.properties import DELAY
from acoustic.nodes.sequence_state import Sequences
from readers.errors import ModelError


class DelayNode(Node):
    """Base of delays: the value of step t is the operand's value of step t - delay of the same sequence.

    It is defaultHiddenActivity where the sequence has no such step. The gradient of step t is G of step t + delay. A
    sequence that continues from the previous minibatch sees the last values of that minibatch, without a gradient.
    See the CNTK book, eq. 2.174 to 2.177.
    """

    operand_names = ("m",)
    backward_reads = ((),)
    arguments = ("rows", "cols", "m")
    options = (
        Option("rows", int, positional=True),
        Option("cols", int, 1, positional=True),
        Option("timeStep", int, 1, aliases=("delayTime",)),
        Option("defaultHiddenActivity", float, 0.1, aliases=("defaultPastValue",)),
    )
    properties = frozenset({DELAY})
    sign = 1

    def _check_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        checked = super()._check_settings(settings)
        if checked["timeStep"] < 1:
            raise ModelError(f"{self.where}: timeStep={checked['timeStep']}; expected at least 1")
        if not abs(checked["defaultHiddenActivity"]) < float("inf"):
            raise ModelError(f"{self.where}: defaultHiddenActivity is not finite; expected a finite number")
        return checked

    @property
    def delay(self) -> int:
        return self.sign * self.settings["timeStep"]

    def infer_shape(self, *operand: Shape) -> Shape:
        """Return the declared shape; a delay in a loop is created before its operand, and then has none."""
        rows = self.settings["rows"]
        if operand and operand[0].rows != rows:
            raise self.shape_error(operand, f"{rows} rows, one column per frame")
        return operand[0] if operand else Shape(rows, None)

    def splits_frames(self, *shapes: Shape) -> bool:
        return False

    def sequences(self, context: PassContext) -> Sequences:
        """Return the sequences of the columns; raise ModelError for independent frames."""
        if context.sequences is None:
            raise ModelError(f"{self.where}: independent frames; expected whole sequences, or parts of them in order")
        return context.sequences

    def _moves(self, sequences: Sequences, num_columns: int) -> tuple[slice, slice, Any]:
        """Return the columns of V and of the operand that they are, and which of V's, as (1, T), have such a value."""
        shift = self.delay * sequences.num_slots
        count = max(0, num_columns - abs(shift))
        usable = sequences.usable(self.delay).reshape(1, -1)
        if shift > 0:
            return slice(shift, None), slice(0, count), usable
        return slice(0, count), slice(num_columns - count, None), usable

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        sequences = self.sequences(context)
        shift = self.delay * sequences.num_slots
        before = None
        if self.delay > 0 and not sequences.whole:
            before = sequences.held(self.name, x.shape[0], self.delay, x)
            sequences.hold(self.name, self.delay, before, x)
        default = self.settings["defaultHiddenActivity"]
        context.kernels.delay(x, before, sequences.usable(self.delay), shift, default, out)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Delay the direction; the held values and the default do not move."""
        (moved,) = tangents
        value_columns, operand_columns, usable = self._moves(self.sequences(context), moved.shape[1])
        out = context.xp.zeros_like(moved)
        context.xp.multiply(moved[:, operand_columns], usable[:, value_columns], out=out[:, value_columns])
        return out

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        """Shift the rows of one sequence and fill in the default, outside a loop."""
        (x,) = inputs
        steps = abs(self.delay)
        rows = self.settings["rows"]
        default = graph.constant(np.full((steps, rows), self.settings["defaultHiddenActivity"]))
        if self.delay > 0:
            return graph.rows(graph.add("Concat", default, x, axis=0), 0, -steps)
        return graph.rows(graph.add("Concat", x, default, axis=0), steps, None)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        sequences = self.sequences(context)
        shift = self.delay * sequences.num_slots
        usable = sequences.usable(self.delay)
        grads.add(0, lambda out: context.kernels.delay_gradient(grad, usable, shift, out))


@register_node("PastValue", "Delay")
class PastValue(DelayNode):
    """Value of `timeStep` steps earlier in the same sequence.

    Parameters
    ----------
    rows : int
        The number of rows, as the operand may not exist yet.
    cols : int
        Without effect.
    m : (rows, T)
    timeStep : int
        At least 1.
    defaultHiddenActivity : float
        The value before the beginning of a sequence.

    References
    ----------
    CNTK book 4.1.4.36 and eq. 2.174 to 2.177.
    """


@register_node("FutureValue")
class FutureValue(DelayNode):
    """Value of `timeStep` steps later in the same sequence.

    Parameters
    ----------
    rows : int
        The number of rows, as the operand may not exist yet.
    cols : int
        Without effect.
    m : (rows, T)
    timeStep : int
        At least 1.
    defaultHiddenActivity : float
        The value after the end of a sequence.

    References
    ----------
    CNTK book 4.1.4.36 and eq. 2.174 to 2.177.
    """

    sign = -1
