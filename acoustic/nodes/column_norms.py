"""Normalisation of each column: to a root mean square of 1, or to mean 0 and variance 1."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.arrays.group import SQUARE_FLOOR
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.elementwise import ElementwiseNode
from acoustic.nodes.option import Option


@register_node("RMSNormalization", "Renormalize")
class RMSNormalization(ElementwiseNode):
    """Every column divided by its root mean square: ``V = X r``; a column of n rows gets length sqrt(n).

    The gradient is ``dJ/dX = r (G - V q)``, where q are the column means of ``G V``. Where the mean square is below
    2^-66, r is constant and q is 0. This is Kaldi's NormalizeComponent with target-rms 1.
    """

    backward_reads = ((0,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.kernels.root_mean_square_one(x, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.kernels.root_mean_square_one_gradient(grad, inputs[0], out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """d(x s^-1/2) = dx s^-1/2 - x s^-3/2 ds / 2, where s is the mean square and ds twice the mean of x dx."""
        xp = context.xp
        x = inputs[0]
        dx = tangents[0]
        s = (x**2).mean(axis=0)
        ds = 2 * (x * dx).mean(axis=0)
        moving = s > SQUARE_FLOOR
        s = xp.where(moving, s, SQUARE_FLOOR)
        return dx * s**-0.5 - xp.where(moving, x * s**-1.5 * ds / 2, 0)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        square = graph.add("ReduceMean", graph.add("Mul", *inputs, *inputs), axes=[1], keepdims=1)
        return graph.add("Div", *inputs, graph.add("Sqrt", graph.add("Max", square, graph.constant(SQUARE_FLOOR))))


@register_node("LayerNormalization")
class LayerNormalization(Node):
    """Layer normalisation of every column: ``V = scale Z + bias`` with ``Z = (X - m) / sqrt(v + epsilon)``.

    m and v are the mean and variance of the column. With ``D = G scale`` and ``r = 1 / sqrt(v + epsilon)``, the
    gradients are ``dJ/dX = r (D - mean of D - Z * mean of D Z)``, ``dJ/dscale = row sums of G Z`` and ``dJ/dbias = row
    sums of G``.

    Parameters
    ----------
    X : (rows, cols)
    scale, bias : (rows, 1)
    epsilon : float

    References
    ----------
    J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer normalization", 2016.
    """

    operand_names = ("X", "scale", "bias")
    options = (Option("epsilon", float, 1e-5),)
    backward_reads = ((0, 1), (0,), ())

    def infer_shape(self, x: Shape, scale: Shape, bias: Shape) -> Shape:
        if scale != Shape(x.rows, 1) or bias != Shape(x.rows, 1):
            raise self.shape_error((x, scale, bias), f"scale and bias to be {x.rows}x1")
        if not self.settings["epsilon"] > 0:
            raise self.shape_error((x, scale, bias), f"epsilon={self.settings['epsilon']:g} to be above 0")
        return x

    def _normalised(self, xp: Any, x: Any) -> tuple[Any, Any]:
        """Return Z and r."""
        centred = x - x.mean(axis=0, keepdims=True)
        r = 1 / xp.sqrt((centred * centred).mean(axis=0, keepdims=True) + self.settings["epsilon"])
        return xp.multiply(centred, r, out=centred), r

    def forward(self, context: PassContext, x: Any, scale: Any, bias: Any, *, out: Any) -> None:
        context.xp.multiply(self._normalised(context.xp, x)[0], scale, out=out)
        context.xp.add(out, bias, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        xp = context.xp
        grads.add_reduced(2, grad)
        if not (grads.needs(0) or grads.needs(1)):
            return
        z, r = self._normalised(xp, inputs[0])
        if grads.needs(1):
            grads.add_reduced(1, grad * z)
        if grads.needs(0):

            def write(out: Any) -> None:
                xp.multiply(grad, inputs[1], out=out)
                along = (out * z).mean(axis=0, keepdims=True)
                xp.subtract(out, out.mean(axis=0, keepdims=True), out=out)
                xp.subtract(out, z * along, out=out)
                xp.multiply(out, r, out=out)

            grads.add(0, write)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Apply the quotient rule to (x - m) / s with s = sqrt(v + epsilon)."""
        x, scale, _ = inputs
        dx, dscale, dbias = tangents
        s = context.xp.sqrt(x.var(axis=0) + self.settings["epsilon"])
        y = x - x.mean(axis=0)
        dy = dx - dx.mean(axis=0)
        ds = (y * dy).mean(axis=0) / s
        return dscale * y / s + scale * (dy * s - y * ds) / s**2 + dbias

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        x, scale, bias = inputs
        columns = [graph.reshape(column, (-1,)) for column in (scale, bias)]
        return graph.add("LayerNormalization", x, *columns, axis=1, epsilon=self.settings["epsilon"])
