"""Products of two operands (book 2.4.3)."""

from collections.abc import Sequence
from typing import Any

from acoustic.backend import matmul_into
from acoustic.node import Node, Run, Shape, register_node


@register_node("Times")
class Times(Node):
    """Matrix product V = A B.

    A (m, k); B (k, T), one column per frame; V (m, T).  With G = dJ/dV (m, T): dJ/dA = G B', dJ/dB = A' G.
    [eq. 2.66 to 2.68]
    """

    operand_names = ("A", "B")
    backward_reads = ((1,), (0,))
    frame_products = (0,)

    def splits_frames(self, a: Shape, b: Shape) -> bool:
        return a.cols is not None

    def infer_shape(self, a: Shape, b: Shape) -> Shape:
        if a.cols != b.rows:
            raise self.shape_error((a, b), "columns of A = rows of B")
        return Shape(a.rows, b.cols)

    def forward(self, run: Run, a: Any, b: Any, *, out: Any) -> None:
        matmul_into(run.xp, a, b, out)  # out stays column-major; a @ b would not

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        a, b = inputs
        if into.needs(1):
            into.add_product(1, a.T, grad)
        if into.needs(0):
            into.add_product(0, grad, b.T)


@register_node("ElementTimes")
class ElementTimes(Node):
    """v_ij = x_ij y_ij, shapes equal; dJ/dX = G Y, dJ/dY = G X.  [eq. 2.73 to 2.75]"""

    operand_names = ("X", "Y")
    backward_reads = ((1,), (0,))
    value_in_place = (0, 1)

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        if x != y:
            raise self.shape_error((x, y), "equal shapes")
        return x

    def forward(self, run: Run, x: Any, y: Any, *, out: Any) -> None:
        run.xp.multiply(x, y, out=out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        x, y = inputs
        into.add(0, lambda out: run.xp.multiply(grad, y, out=out))
        into.add(1, lambda out: run.xp.multiply(grad, x, out=out))


@register_node("Scale")
class Scale(Node):
    """V = s Y with a scalar s (1, 1); dJ/ds = the sum of G Y, dJ/dY = s G.  [eq. 2.59 to 2.61]"""

    operand_names = ("s", "Y")
    backward_reads = ((1,), (0,))
    value_in_place = (1,)
    gradient_in_place = (1,)

    def infer_shape(self, s: Shape, y: Shape) -> Shape:
        if s != Shape(1, 1):
            raise self.shape_error((s, y), "s to be 1x1")
        return y

    def forward(self, run: Run, s: Any, y: Any, *, out: Any) -> None:
        run.xp.multiply(s, y, out=out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        s, y = inputs
        into.add(0, lambda out: (grad * y).sum(keepdims=True, out=out))
        into.add(1, lambda out: run.xp.multiply(s, grad, out=out))
