"""Softmax and its logarithm, column by column: each column is a frame (book 2.4, one operand)."""

from collections.abc import Sequence
from typing import Any

from acoustic.node import VALUE, Run, register_node
from acoustic.nodes.elementwise import ElementwiseNode


@register_node("Softmax")
class Softmax(ElementwiseNode):
    """v_ij = exp(x_ij) / sum_k exp(x_kj); dJ/dX = (G - column sums of G V) V.  [eq. 2.31 to 2.35]"""

    backward_reads = ((VALUE,),)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        run.kernels.softmax(x, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        def write(out: Any) -> None:
            inner = (grad * value).sum(axis=0, keepdims=True)
            run.xp.subtract(grad, inner, out=out)
            run.xp.multiply(out, value, out=out)

        into.add(0, write)


@register_node("LogSoftmax")
class LogSoftmax(ElementwiseNode):
    """v_ij = x_ij - ln sum_k exp(x_kj); dJ/dX = G - exp(V) times the column sums of G.  [eq. 2.38 to 2.42]"""

    backward_reads = ((VALUE,),)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        run.kernels.log_softmax(x, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        def write(out: Any) -> None:
            spread = run.xp.exp(value) * grad.sum(axis=0, keepdims=True)
            run.xp.subtract(grad, spread, out=out)

        into.add(0, write)
