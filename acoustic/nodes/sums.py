"""Sums and differences of two operands with the broadcasts of book 2.4.3, and the sum over a matrix."""

from collections.abc import Callable, Sequence
from typing import Any

from acoustic.node import Node, Run, Shape, register_node


def broadcast_shape(x: Shape, y: Shape) -> Shape | None:
    """The shape that both operands are expanded to, None when they do not fit.

    Rows are equal or 1 in one of them; columns are equal, or the larger number is a multiple of the smaller.  A column
    per frame (None) is taken as a multiple of any number until the number of frames is known.
    """
    if x.rows != y.rows and 1 not in (x.rows, y.rows):
        return None
    rows = max(x.rows, y.rows)
    if x.cols is None or y.cols is None:
        return Shape(rows, None)
    cols = max(x.cols, y.cols)
    if min(x.cols, y.cols) == 0 or cols % min(x.cols, y.cols):
        return None
    return Shape(rows, cols)


def combine(operation: Callable[..., Any], x: Any, y: Any, out: Any) -> None:
    """out = operation(x, y), the operand with fewer columns repeated side by side."""
    cols = out.shape[1]
    fewest = min(x.shape[1], y.shape[1])
    if fewest in (1, cols):
        operation(x, y, out=out)
        return

    def fold(matrix: Any) -> Any:
        """Column j as (j modulo fewest, j // fewest); a repeated operand has one repetition, which broadcasts."""
        return matrix.reshape((matrix.shape[0], fewest, matrix.shape[1] // fewest), order="F")

    operation(fold(x), fold(y), out=fold(out))


class SumNode(Node):
    """Base of Plus and Minus."""

    operand_names = ("X", "Y")
    backward_reads = ((), ())
    value_in_place = (0, 1)
    gradient_in_place = (0,)  # passed on unchanged

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        shape = broadcast_shape(x, y)
        if shape is None:
            raise self.shape_error((x, y), "rows equal or 1, and the columns of one a multiple of the other's")
        return shape


@register_node("Plus")
class Plus(SumNode):
    """V = X + Y, the smaller repeated; dJ/dX = dJ/dY = G, summed over the repetitions.  [eq. 2.78 to 2.80]"""

    def forward(self, run: Run, x: Any, y: Any, *, out: Any) -> None:
        combine(run.xp.add, x, y, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add_reduced(1, grad)
        into.add_reduced(0, grad)


@register_node("Minus")
class Minus(SumNode):
    """V = X - Y, the smaller repeated; dJ/dX = G, dJ/dY = -G, summed over the repetitions.  [eq. 2.85 to 2.87]"""

    def forward(self, run: Run, x: Any, y: Any, *, out: Any) -> None:
        combine(run.xp.subtract, x, y, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        if into.needs(1):
            into.add_reduced(1, run.xp.negative(grad))
        into.add_reduced(0, grad)


@register_node("SumElements")
class SumElements(Node):
    """v (1, 1) = the sum of all elements of X; dJ/dX = G everywhere.  [eq. 2.45, 2.46]"""

    operand_names = ("X",)
    backward_reads = ((),)
    sums_frames = True

    def infer_shape(self, x: Shape) -> Shape:
        return Shape(1, 1)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        x.sum(keepdims=True, out=out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.xp.copyto(out, grad))
