"""Delays: the value of another step of the same sequence (book 2.6, 4.1.4.36)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.nodes.base import Node, Option, Run, Shape, register_node
from acoustic.nodes.sequence_state import Sequences
from readers.errors import ModelError


class DelayNode(Node):
    """Base: V of step t = X of step t - delay where that is of the same sequence, else defaultHiddenActivity.

    dJ/dX of step t = G of step t + delay.  Sequences that go on from the minibatch before see its last values, which
    have no gradient.  rows is needed because the operand may not be there yet; cols is without effect.
    [eq. 2.174 to 2.177]
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
    is_delay = True
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
        """The declared one; without an operand, too, for a node in a loop comes before what it delays."""
        rows = self.settings["rows"]
        if operand and operand[0].rows != rows:
            raise self.shape_error(operand, f"{rows} rows, one column per frame")
        return operand[0] if operand else Shape(rows, None)

    def splits_frames(self, *shapes: Shape) -> bool:
        return False

    def sequences(self, run: Run) -> Sequences:
        """How the columns hold sequences.  Raises ModelError when they hold frames on their own."""
        if run.sequences is None:
            raise ModelError(f"{self.where}: frames on their own; expected whole sequences, or parts of them in order")
        return run.sequences

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        sequences, default = self.sequences(run), self.settings["defaultHiddenActivity"]
        usable, shift = sequences.usable(self.delay).reshape(1, -1), self.delay * sequences.num_slots
        count = max(0, x.shape[1] - abs(shift))
        out[...] = default
        if shift > 0:
            out[:, shift:] = x[:, :count]
            before = sequences.held(self.name, x.shape[0], self.delay, x)
            some = min(shift, x.shape[1])
            out[:, :some] = before[:, :some]
            sequences.hold(self.name, self.delay, before, x)
        else:
            out[:, :count] = x[:, x.shape[1] - count :]
        run.xp.copyto(out, default, where=~usable)

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """The direction, delayed; what is held from before and the default do not move."""
        (moved,) = tangents
        usable, shift = self.sequences(run).usable(self.delay).reshape(1, -1), self.delay * run.sequences.num_slots
        out, count = run.xp.zeros_like(moved), max(0, moved.shape[1] - abs(shift))
        given = slice(shift, None) if shift > 0 else slice(0, count)
        taken = slice(0, count) if shift > 0 else slice(moved.shape[1] - count, None)
        if count:
            run.xp.multiply(moved[:, taken], usable[:, given], out=out[:, given])
        return out

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        """Outside a loop: the rows of one sequence, shifted; what is shifted in is the default."""
        (x,) = inputs
        steps, rows = abs(self.delay), self.settings["rows"]
        default = graph.constant(np.full((steps, rows), self.settings["defaultHiddenActivity"]))
        if self.delay > 0:
            return graph.rows(graph.add("Concat", default, x, axis=0), 0, -steps)
        return graph.rows(graph.add("Concat", x, default, axis=0), steps, None)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        sequences = self.sequences(run)
        usable, shift = sequences.usable(self.delay).reshape(1, -1), self.delay * sequences.num_slots
        count = max(0, grad.shape[1] - abs(shift))

        def write(out: Any) -> None:
            out[...] = 0
            given = slice(shift, None) if shift > 0 else slice(0, count)
            taken = slice(0, count) if shift > 0 else slice(grad.shape[1] - count, None)
            if count:
                run.xp.multiply(grad[:, given], usable[:, given], out=out[:, taken])

        into.add(0, write)


@register_node("PastValue", "Delay")
class PastValue(DelayNode):
    """V of step t = X of step t - timeStep."""


@register_node("FutureValue")
class FutureValue(DelayNode):
    """V of step t = X of step t + timeStep."""

    sign = -1
