"""Norms of a whole matrix, for regularisation (CNTK book 2.4.2 and 4.1.4.28)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import VALUE, Node, PassContext, register_node


class NormNode(Node):
    """Base of norms: one operand X (rows, cols) and a scalar value."""

    operand_names = ("X",)

    def infer_shape(self, x: Shape) -> Shape:
        return Shape(1, 1)


@register_node("MatrixL1Reg", "L1Reg", "L1Norm")
class MatrixL1Reg(NormNode):
    """L1 norm of X: the sum of the absolute values of its elements, a scalar.

    The gradient is ``dJ/dX = G sign X``.

    References
    ----------
    CNTK book, eq. 2.49 and 2.50.
    """

    backward_reads = ((0,),)
    sums_frames = True

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.absolute(x).sum(keepdims=True, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.multiply(context.xp.sign(inputs[0]), grad, out=out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        x = inputs[0]
        dx = tangents[0]
        return (dx[x > 0].sum() - dx[x < 0].sum()).reshape(1, 1)


@register_node("MatrixL2Reg", "L2Reg", "L2Norm")
class MatrixL2Reg(NormNode):
    """L2 (Frobenius) norm of X: the square root of the sum of its squared elements, a scalar.

    The gradient is ``dJ/dX = G X / V``, and 0 where V = 0.

    References
    ----------
    CNTK book, eq. 2.53 and 2.54.
    """

    backward_reads = ((0, VALUE),)

    def splits_frames(self, x: Shape) -> bool:
        return False  # the root is of the sum over all columns

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.sqrt(context.xp.square(x).sum(keepdims=True), out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        scale = grad / context.xp.where(value == 0, 1, value)  # X is 0 where v is
        grads.add(0, lambda out: context.xp.multiply(inputs[0], scale, out=out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """d sqrt(s) = ds / (2 sqrt(s)), where s is the sum of x^2 and ds twice the sum of x dx."""
        s = (inputs[0] ** 2).sum()
        ds = 2 * (inputs[0] * tangents[0]).sum()
        return (ds / (2 * context.xp.sqrt(s)) if s > 0 else 0 * s).reshape(1, 1)
