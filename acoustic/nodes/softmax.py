"""Softmax, log softmax and hardmax of every column (CNTK book 2.4.2)."""

from collections.abc import Sequence
from typing import Any

from acoustic.nodes.base import VALUE, PassContext, register_node
from acoustic.nodes.elementwise import ElementwiseNode
from acoustic.nodes.properties import LOG_SOFTMAX, SOFTMAX


@register_node("Softmax")
class Softmax(ElementwiseNode):
    """Softmax of every column: ``v_ij = exp(x_ij) / sum_k exp(x_kj)``.

    The gradient is ``dJ/dX = (G - s) V``, where s is the row of the column sums of ``G V``.

    References
    ----------
    CNTK book, eq. 2.31 to 2.35.
    """

    properties = frozenset({SOFTMAX})
    backward_reads = ((VALUE,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.kernels.softmax(x, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        def write(out: Any) -> None:
            inner = (grad * value).sum(axis=0, keepdims=True)
            context.xp.subtract(grad, inner, out=out)
            context.xp.multiply(out, value, out=out)

        grads.add(0, write)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Apply the quotient rule: d(e / s) = (s de - e ds) / s^2."""
        e = context.xp.exp(inputs[0] - inputs[0].max(axis=0))
        s = e.sum(axis=0)
        change = e * tangents[0]
        return (s * change - e * change.sum(axis=0)) / s**2

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("Softmax", *inputs, axis=1)


@register_node("LogSoftmax")
class LogSoftmax(ElementwiseNode):
    """Natural logarithm of the softmax of every column: ``v_ij = x_ij - ln sum_k exp(x_kj)``.

    The gradient is ``dJ/dX = G - exp(V) s``, where s is the row of the column sums of G.

    References
    ----------
    CNTK book, eq. 2.38 to 2.42.
    """

    properties = frozenset({LOG_SOFTMAX})
    backward_reads = ((VALUE,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.kernels.log_softmax(x, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        def write(out: Any) -> None:
            spread = context.xp.exp(value) * grad.sum(axis=0, keepdims=True)
            context.xp.subtract(grad, spread, out=out)

        grads.add(0, write)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """d(x - ln s) = dx - ds / s, where s is the column sum of exp x."""
        e = context.xp.exp(inputs[0] - inputs[0].max(axis=0))
        return tangents[0] - (e * tangents[0]).sum(axis=0) / e.sum(axis=0)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("LogSoftmax", *inputs, axis=1)


@register_node("Hardmax")
class Hardmax(ElementwiseNode):
    """Indicator of the largest element of every column: 1 in its row, 0 in the others.

    Of equal largest elements the first counts. The node has no gradient. Not in the book.
    """

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        largest = x.argmax(axis=0)
        out.fill(0)
        out[largest, context.xp.arange(x.shape[1])] = 1

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("Hardmax", *inputs, axis=1)
