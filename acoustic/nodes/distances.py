"""Cosine similarities of the columns of two matrices (CNTK book 2.4.3, 4.1.4.26 and 4.1.4.27)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.option import Option


def unit_columns(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return the columns of x divided by their lengths, and the lengths (cols,); a column of zeros gets length 1."""
    length = xp.sqrt((x * x).sum(axis=0))
    length[length == 0] = 1
    return x / length, length


def cosine_gradient(xp: Any, grad: Any, x: Any, unit_y: Any) -> Any:
    """Return dJ/dX for the cosines of the columns of x and y (eq. 2.104), 0 for zero columns; grad is (1, cols)."""
    unit_x, length = unit_columns(xp, x)
    slope = grad / length * (unit_y - unit_x * (unit_x * unit_y).sum(axis=0))
    return xp.multiply(slope, x.any(axis=0), out=slope)


def cosine_tangent(xp: Any, x: Any, y: Any, dx: Any, dy: Any) -> Any:
    """Return the derivative (cols,) of x'y / sqrt(x'x y'y) by the quotient rule; 0 for columns of zeros."""
    s = (x * y).sum(axis=0)
    a = (x * x).sum(axis=0)
    b = (y * y).sum(axis=0)
    ds = (dx * y + x * dy).sum(axis=0)
    da = 2 * (x * dx).sum(axis=0)
    db = 2 * (y * dy).sum(axis=0)
    zero = a * b == 0
    a = xp.where(zero, 1, a)
    b = xp.where(zero, 1, b)
    return xp.where(zero, 0, ds / xp.sqrt(a * b) - s * (da * b + a * db) / (2 * (a * b) ** 1.5))


@register_node("CosDistance", "CosDist")
class CosDistance(Node):
    """Cosine of the angle between the same columns of X and Y: ``v = x'y / (|x| |y|)``, and 0 where x or y is 0.

    The gradient of a column is ``dJ/dx = G (y / (|x| |y|) - v x / |x|^2)``, and likewise for y.

    Parameters
    ----------
    X, Y : (rows, cols)
        V has shape (1, cols).

    References
    ----------
    CNTK book, eq. 2.103 to 2.105.
    """

    operand_names = ("X", "Y")
    backward_reads = ((0, 1), (0, 1))

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        if x != y:
            raise self.shape_error((x, y), "equal shapes")
        return Shape(1, x.cols)

    def forward(self, context: PassContext, x: Any, y: Any, *, out: Any) -> None:
        unit_x = unit_columns(context.xp, x)[0]
        unit_y = unit_columns(context.xp, y)[0]
        (unit_x * unit_y).sum(axis=0, keepdims=True, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        for k in (0, 1):
            if grads.needs(k):
                partner = unit_columns(context.xp, inputs[1 - k])[0]
                grads.add_matrix(k, cosine_gradient(context.xp, grad, inputs[k], partner))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return cosine_tangent(context.xp, *inputs, *tangents)[None, :]


@register_node("CosDistanceWithNegativeSamples", "CosWithNegSamples")
class CosDistanceWithNegativeSamples(Node):
    """Cosines of each column of X with the same column of Y and with later columns of Y as negative samples.

    ``v_0j = cos(x_j, y_j)`` and ``v_kj = cos(x_j, y_(j + numShifts + k - 1))`` for k from 1 to numNegSamples. Column
    numbers wrap around at the end of the minibatch.

    Parameters
    ----------
    X, Y : (rows, cols)
        V has shape (numNegSamples + 1, cols).
    numShifts : int
        At least 1.
    numNegSamples : int
        At least 0.

    References
    ----------
    CNTK book 4.1.4.27.
    """

    operand_names = ("X", "Y")
    options = (Option("numShifts", int, positional=True), Option("numNegSamples", int, positional=True))
    backward_reads = ((0, 1), (0, 1))

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        if x != y:
            raise self.shape_error((x, y), "equal shapes")
        shift = self.settings["numShifts"]
        count = self.settings["numNegSamples"]
        if shift < 1 or count < 0:
            options_text = f"numShifts={shift}, numNegSamples={count}"
            raise self.shape_error(
                (x, y), f"numShifts of at least 1 and numNegSamples of at least 0, not {options_text}"
            )
        return Shape(1 + count, x.cols)

    def splits_frames(self, x: Shape, y: Shape) -> bool:
        return False  # a column is combined with others

    def _shifts(self) -> list[int]:
        """Return the shift of the partner column in Y for each row of V."""
        first = self.settings["numShifts"]
        return [0, *range(first, first + self.settings["numNegSamples"])]

    def forward(self, context: PassContext, x: Any, y: Any, *, out: Any) -> None:
        unit_x = unit_columns(context.xp, x)[0]
        unit_y = unit_columns(context.xp, y)[0]
        for row, shift in enumerate(self._shifts()):
            (unit_x * context.xp.roll(unit_y, -shift, axis=1)).sum(axis=0, out=out[row])

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        xp = context.xp
        x, y = inputs
        unit_x = unit_columns(xp, x)[0]
        unit_y = unit_columns(xp, y)[0]
        rows = list(enumerate(self._shifts()))
        if grads.needs(0):
            terms = (cosine_gradient(xp, grad[row], x, xp.roll(unit_y, -shift, axis=1)) for row, shift in rows)
            grads.add_matrix(0, sum(terms))
        if grads.needs(1):  # y_j is the partner of x_(j - shift)
            terms = (
                cosine_gradient(xp, xp.roll(grad[row], shift), y, xp.roll(unit_x, shift, axis=1)) for row, shift in rows
            )
            grads.add_matrix(1, sum(terms))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        xp = context.xp
        x, y = inputs
        dx, dy = tangents
        partner = [(xp.roll(y, -shift, axis=1), xp.roll(dy, -shift, axis=1)) for shift in self._shifts()]
        return xp.stack([cosine_tangent(xp, x, rolled_y, dx, change) for rolled_y, change in partner])
