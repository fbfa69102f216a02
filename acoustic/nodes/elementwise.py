"""Functions of one operand X, applied to every element; V has X's shape, G = dJ/dV (book 2.4, one operand)."""

from collections.abc import Sequence
from typing import Any

from acoustic.array_kernels import LOG_FLOOR
from acoustic.node import VALUE, Node, Run, Shape, register_node


class ElementwiseNode(Node):
    """Base: the shape rule, and leave to compute in the operand's memory."""

    operand_names = ("X",)
    value_in_place = (0,)
    gradient_in_place = (0,)

    def infer_shape(self, x: Shape) -> Shape:
        return x


@register_node("Negate")
class Negate(ElementwiseNode):
    """V = -X; dJ/dX = -G.  [eq. 2.7, 2.8]"""

    backward_reads = ((),)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        run.xp.negative(x, out=out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.xp.negative(grad, out=out))


@register_node("Sigmoid")
class Sigmoid(ElementwiseNode):
    """V = 1 / (1 + exp(-X)); dJ/dX = G V (1 - V).  [eq. 2.11, 2.12]"""

    backward_reads = ((VALUE,),)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        run.kernels.sigmoid(x, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.kernels.sigmoid_gradient(grad, value, out))


@register_node("Tanh")
class Tanh(ElementwiseNode):
    """V = tanh X; dJ/dX = G (1 - V^2).  [eq. 2.15, 2.16]"""

    backward_reads = ((VALUE,),)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        run.kernels.tanh(x, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.kernels.tanh_gradient(grad, value, out))


@register_node("RectifiedLinear", "ReLU")
class RectifiedLinear(ElementwiseNode):
    """V = max(0, X); dJ/dX = G where X > 0, which is where V > 0.  [eq. 2.19, 2.20]"""

    backward_reads = ((VALUE,),)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        run.kernels.relu(x, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.kernels.relu_gradient(grad, value, out))


@register_node("Log")
class Log(ElementwiseNode):
    """V = ln X, -85.1 where X < 1e-37; dJ/dX = G / X, 0 where V is that constant.  [eq. 2.23, 2.24]"""

    backward_reads = ((0,),)
    value_in_place = (0,)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        run.kernels.log(x, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        def write(out: Any) -> None:
            low = inputs[0] < LOG_FLOOR
            run.xp.divide(grad, run.xp.where(low, 1, inputs[0]), out=out)
            out[low] = 0

        into.add(0, write)


@register_node("Exp")
class Exp(ElementwiseNode):
    """V = exp X; dJ/dX = G V.  [eq. 2.27, 2.28]"""

    backward_reads = ((VALUE,),)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        run.xp.exp(x, out=out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.xp.multiply(grad, value, out=out))
