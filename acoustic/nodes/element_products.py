"""Products element by element, one operand possibly repeated over rows or columns (book 2.4.3, 4.1.4.17, 4.1.4.19)."""

from collections.abc import Sequence
from typing import Any

from acoustic.nodes.base import Run, Shape, register_node
from acoustic.nodes.sums import BroadcastNode, combine, widened


@register_node("ElementTimes")
class ElementTimes(BroadcastNode):
    """v_ij = x_ij y_ij, the smaller operand repeated; dJ/dX = G Y, dJ/dY = G X, summed over the repetitions.

    [eq. 2.73 to 2.75, where the shapes are equal]
    """

    onnx_operator = "Mul"
    backward_reads = ((1,), (0,))

    def forward(self, run: Run, x: Any, y: Any, *, out: Any) -> None:
        combine(run.xp.multiply, x, y, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        for k, other in ((0, inputs[1]), (1, inputs[0])):
            if not into.needs(k):
                continue
            if into.targets[k].shape == grad.shape:
                into.add(k, lambda out, other=other: combine(run.xp.multiply, grad, other, out))
            else:
                product = run.backend.empty(*grad.shape)
                combine(run.xp.multiply, grad, other, product)
                into.add_reduced(k, product)

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        x, y, dx, dy = widened(run, (*inputs, *tangents))
        return dx * y + x * dy


@register_node("RowElementTimes")
class RowElementTimes(ElementTimes):
    """v_ij = x_ij r_j with a row r (1, cols); dJ/dX = G r, dJ/dr = the column sums of G X.  [book 4.1.4.19]"""

    operand_names = ("X", "row")
    value_in_place = (0,)

    def infer_shape(self, x: Shape, row: Shape) -> Shape:
        if row != Shape(1, x.cols):
            raise self.shape_error((x, row), f"row to be {Shape(1, x.cols)}")
        return x


@register_node("ColumnElementTimes")
class ColumnElementTimes(ElementTimes):
    """v_ij = x_ij c_i with a column c (rows, 1); dJ/dX = G c, dJ/dc = the row sums of G X.  [book 4.1.4.19]"""

    operand_names = ("X", "column")
    value_in_place = (0,)

    def infer_shape(self, x: Shape, column: Shape) -> Shape:
        if column != Shape(x.rows, 1):
            raise self.shape_error((x, column), f"column to be {x.rows}x1")
        return x


@register_node("DiagTimes")
class DiagTimes(ElementTimes):
    """V = diag(d) Y with a column d (rows, 1); dJ/dd = the row sums of G Y, dJ/dY = diag(d) G.  [eq. 2.88 to 2.90]"""

    operand_names = ("d", "Y")
    value_in_place = (1,)

    def infer_shape(self, d: Shape, y: Shape) -> Shape:
        if d != Shape(y.rows, 1):
            raise self.shape_error((d, y), f"d to be {y.rows}x1")
        return y
