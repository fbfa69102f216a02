"""Functions of one operand, applied to every element (CNTK book 2.4.2)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.arrays.elementwise import LOG_FLOOR, LOG_OF_FLOOR
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import VALUE, LinearNode, Node, PassContext, register_node
from acoustic.nodes.option import Option
from acoustic.nodes.properties import NEGATIVE, RELU, RISING, SIGMOID, TANH
from readers.errors import ModelError


class ElementwiseNode(Node):
    """Base of functions of one operand X whose value V has the shape of X.

    The value may overwrite X and the gradient may overwrite G. A subclass defines `derivative`, or `tangent` where an
    element of V depends on more than one element of X.
    """

    operand_names = ("X",)

    def infer_shape(self, x: Shape) -> Shape:
        return x

    def derivative(self, xp: Any, x: Any) -> Any:
        """Return f'(x) of every element of `x` (rows, cols), from the formula of the function."""
        raise NotImplementedError

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return self.derivative(context.xp, inputs[0]) * tangents[0]


@register_node("Negate")
class Negate(LinearNode, ElementwiseNode):
    """Negative of every element: ``V = -X``.

    The gradient is ``dJ/dX = -G``.

    References
    ----------
    CNTK book, eq. 2.7 and 2.8.
    """

    properties = frozenset({NEGATIVE})
    onnx_operator = "Neg"
    backward_reads = ((),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.negative(x, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.negative(grad, out=out))


@register_node("Sigmoid")
class Sigmoid(ElementwiseNode):
    """Logistic sigmoid of every element: ``V = 1 / (1 + exp(-X))``.

    The gradient is ``dJ/dX = G V (1 - V)``.

    References
    ----------
    CNTK book, eq. 2.11 and 2.12.
    """

    onnx_operator = "Sigmoid"
    properties = frozenset({SIGMOID, RISING})
    backward_reads = ((VALUE,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.kernels.sigmoid(x, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.kernels.sigmoid_gradient(grad, value, out))

    def derivative(self, xp: Any, x: Any) -> Any:
        decay = xp.exp(-xp.abs(x))
        return decay / (1 + decay) ** 2


@register_node("Tanh")
class Tanh(ElementwiseNode):
    """Hyperbolic tangent of every element: ``V = tanh X``.

    The gradient is ``dJ/dX = G (1 - V^2)``.

    References
    ----------
    CNTK book, eq. 2.15 and 2.16.
    """

    onnx_operator = "Tanh"
    properties = frozenset({TANH, RISING})
    backward_reads = ((VALUE,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.kernels.tanh(x, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.kernels.tanh_gradient(grad, value, out))

    def derivative(self, xp: Any, x: Any) -> Any:
        decay = xp.exp(-2 * xp.abs(x))
        return 4 * decay / (1 + decay) ** 2  # 1 / cosh^2 x


@register_node("RectifiedLinear", "ReLU")
class RectifiedLinear(ElementwiseNode):
    """Rectified linear unit (ReLU) of every element: ``V = max(0, X)``.

    The gradient is ``dJ/dX = G`` where X > 0, which is where V > 0, and 0 elsewhere.

    References
    ----------
    CNTK book, eq. 2.19 and 2.20.
    """

    onnx_operator = "Relu"
    properties = frozenset({RELU, RISING})
    backward_reads = ((VALUE,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.kernels.relu(x, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.kernels.relu_gradient(grad, value, out))

    def derivative(self, xp: Any, x: Any) -> Any:
        return x > 0


@register_node("Log")
class Log(ElementwiseNode):
    """Natural logarithm of every element: ``V = ln X``, and -85.1 where X < 1e-37.

    The gradient is ``dJ/dX = G / X``, and 0 where X < 1e-37.

    References
    ----------
    CNTK book, eq. 2.23 and 2.24.
    """

    backward_reads = ((0,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.kernels.log(x, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        def write(out: Any) -> None:
            low = inputs[0] < LOG_FLOOR
            context.xp.divide(grad, context.xp.where(low, 1, inputs[0]), out=out)
            out[low] = 0

        grads.add(0, write)

    def derivative(self, xp: Any, x: Any) -> Any:
        return xp.where(x < LOG_FLOOR, 0, 1 / xp.maximum(x, LOG_FLOOR))

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        floor = graph.constant(LOG_FLOOR)
        logarithm = graph.add("Log", graph.add("Max", inputs[0], floor))
        return graph.add("Where", graph.add("Less", inputs[0], floor), graph.constant(LOG_OF_FLOOR), logarithm)


@register_node("Exp")
class Exp(ElementwiseNode):
    """Exponential of every element: ``V = exp X``.

    The gradient is ``dJ/dX = G V``.

    References
    ----------
    CNTK book, eq. 2.27 and 2.28.
    """

    onnx_operator = "Exp"
    backward_reads = ((VALUE,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.exp(x, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.multiply(grad, value, out=out))

    def derivative(self, xp: Any, x: Any) -> Any:
        return xp.exp(x)


@register_node("Sqrt")
class Sqrt(ElementwiseNode):
    """Square root of every element: ``V = sqrt X``, and 0 where X < 0.

    The gradient is ``dJ/dX = G / (2 V)``, and 0 where V = 0. Not in the book.
    """

    backward_reads = ((VALUE,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.maximum(x, 0, out=out)
        context.xp.sqrt(out, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        def write(out: Any) -> None:
            flat = value == 0
            context.xp.divide(grad, context.xp.where(flat, 1, 2 * value), out=out)
            out[flat] = 0

        grads.add(0, write)

    def derivative(self, xp: Any, x: Any) -> Any:
        return xp.where(x > 0, 0.5 * xp.where(x > 0, x, 1) ** -0.5, 0)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("Sqrt", graph.add("Relu", *inputs))


@register_node("Abs")
class Abs(ElementwiseNode):
    """Absolute value of every element: ``V = |X|``.

    The gradient is ``dJ/dX = G sign X``. Not in the book.
    """

    onnx_operator = "Abs"
    backward_reads = ((0,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.absolute(x, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.multiply(grad, context.xp.sign(inputs[0]), out=out))

    def derivative(self, xp: Any, x: Any) -> Any:
        return xp.where(x > 0, 1, xp.where(x < 0, -1, 0))


@register_node("Reciprocal")
class Reciprocal(ElementwiseNode):
    """Reciprocal of every element: ``V = 1 / X``.

    The gradient is ``dJ/dX = -G V^2``. Not in the book.
    """

    onnx_operator = "Reciprocal"
    backward_reads = ((VALUE,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.divide(1, x, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.multiply(grad, -value * value, out=out))

    def derivative(self, xp: Any, x: Any) -> Any:
        return -1 / x**2


@register_node("Floor")
class Floor(ElementwiseNode):
    """Largest integer that is not above the element, for every element of X.

    The gradient is 0, the derivative wherever V is continuous. Not in the book.
    """

    onnx_operator = "Floor"
    backward_reads = ((),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.floor(x, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: out.fill(0))

    def derivative(self, xp: Any, x: Any) -> Any:
        return xp.zeros_like(x)


@register_node("Sin")
class Sin(ElementwiseNode):
    """Sine of every element: ``V = sin X``.

    The gradient is ``dJ/dX = G cos X``. Not in the book.
    """

    onnx_operator = "Sin"
    backward_reads = ((0,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.sin(x, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.multiply(grad, context.xp.cos(inputs[0]), out=out))

    def derivative(self, xp: Any, x: Any) -> Any:
        return xp.cos(x)


@register_node("Cosine", "Cos")
class Cosine(ElementwiseNode):
    """Cosine of every element: ``V = cos X``.

    The gradient is ``dJ/dX = -G sin X``. Not in the book, whose Cos is CosDistance.
    """

    onnx_operator = "Cos"
    backward_reads = ((0,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.cos(x, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.multiply(grad, -context.xp.sin(inputs[0]), out=out))

    def derivative(self, xp: Any, x: Any) -> Any:
        return -xp.sin(x)


@register_node("Clip")
class Clip(ElementwiseNode):
    """Every element limited to the range from `minValue` to `maxValue`.

    The gradient is ``dJ/dX = G`` strictly between the limits, and 0 elsewhere. Not in the book.

    Parameters
    ----------
    minValue, maxValue : float
    X : (rows, cols)

    Raises
    ------
    ModelError
        When minValue > maxValue.
    """

    options = (Option("minValue", float, positional=True), Option("maxValue", float, positional=True))
    arguments = ("minValue", "maxValue", "X")
    backward_reads = ((0,),)

    def infer_shape(self, x: Shape) -> Shape:
        low, high = self._limits()
        if not low <= high:
            raise ModelError(f"{self.where}: minValue={low}, maxValue={high}; expected minValue <= maxValue")
        return x

    def _limits(self) -> tuple[float, float]:
        return self.settings["minValue"], self.settings["maxValue"]

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.clip(x, *self._limits(), out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.multiply(grad, self.derivative(context.xp, inputs[0]), out=out))

    def derivative(self, xp: Any, x: Any) -> Any:
        low, high = self._limits()
        return (x > low) & (x < high)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("Clip", *inputs, *(graph.constant(limit) for limit in self._limits()))
