"""Products element by element, with broadcasting (CNTK book 2.4.3 and 4.1.4.17 to 4.1.4.19)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import PassContext, register_node
from acoustic.nodes.properties import ELEMENT_PRODUCT
from acoustic.nodes.sums import BroadcastNode, broadcast_copies, combine


@register_node("ElementTimes")
class ElementTimes(BroadcastNode):
    """Product element by element: ``V = X Y``; the smaller operand is repeated to the size of the larger one.

    The gradients are ``dJ/dX = G Y`` and ``dJ/dY = G X``, summed over the repetitions.

    Parameters
    ----------
    X, Y : (rows, cols)
        Of one shape, or of shapes that broadcast as those of Plus.

    References
    ----------
    CNTK book, eq. 2.73 to 2.75, for equal shapes.
    """

    properties = frozenset({ELEMENT_PRODUCT})
    onnx_operator = "Mul"
    backward_reads = ((1,), (0,))

    def forward(self, context: PassContext, x: Any, y: Any, *, out: Any) -> None:
        combine(context.xp.multiply, x, y, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        for k, factor in ((0, inputs[1]), (1, inputs[0])):
            if not grads.needs(k):
                continue
            if grads.targets[k].shape == grad.shape:
                grads.add(k, lambda out, factor=factor: combine(context.xp.multiply, grad, factor, out))
            else:
                product = context.backend.empty(*grad.shape)
                combine(context.xp.multiply, grad, factor, product)
                grads.add_reduced(k, product)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        x, y, dx, dy = broadcast_copies(context, (*inputs, *tangents))
        return dx * y + x * dy


@register_node("RowElementTimes")
class RowElementTimes(ElementTimes):
    """Each row of X multiplied element by element by one row r: ``v_ij = x_ij r_j``.

    The gradients are ``dJ/dX = G r`` and ``dJ/dr = column sums of G X``.

    Parameters
    ----------
    X : (rows, cols)
    row : (1, cols)

    References
    ----------
    CNTK book 4.1.4.19.
    """

    operand_names = ("X", "row")

    def infer_shape(self, x: Shape, row: Shape) -> Shape:
        if row != Shape(1, x.cols):
            raise self.shape_error((x, row), f"row to be {Shape(1, x.cols)}")
        return x


@register_node("ColumnElementTimes")
class ColumnElementTimes(ElementTimes):
    """Each column of X multiplied element by element by one column c: ``v_ij = x_ij c_i``.

    The gradients are ``dJ/dX = G c`` and ``dJ/dc = row sums of G X``.

    Parameters
    ----------
    X : (rows, cols)
    column : (rows, 1)

    References
    ----------
    CNTK book 4.1.4.19.
    """

    operand_names = ("X", "column")

    def infer_shape(self, x: Shape, column: Shape) -> Shape:
        if column != Shape(x.rows, 1):
            raise self.shape_error((x, column), f"column to be {x.rows}x1")
        return x


@register_node("DiagTimes")
class DiagTimes(ElementTimes):
    """Product of a diagonal matrix, given by its diagonal d, and a matrix: ``V = diag(d) Y``.

    The gradients are ``dJ/dd = row sums of G Y`` and ``dJ/dY = diag(d) G``.

    Parameters
    ----------
    d : (rows, 1)
    Y : (rows, cols)

    References
    ----------
    CNTK book, eq. 2.88 to 2.90.
    """

    operand_names = ("d", "Y")

    def infer_shape(self, d: Shape, y: Shape) -> Shape:
        if d != Shape(y.rows, 1):
            raise self.shape_error((d, y), f"d to be {y.rows}x1")
        return y
