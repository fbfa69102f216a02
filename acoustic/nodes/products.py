"""Matrix products and related products (CNTK book 2.4.3); for element products see element_products."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.indicator_products import add_product_with_indicators, multiply_indicators
from acoustic.nodes.properties import PRODUCT, SCALED
from readers.minibatches.indicators import Indicators


@register_node("Times")
class Times(Node):
    """Matrix product ``V = A B``, for instance of the weights and the input of a layer.

    The gradients are ``dJ/dA = G B'`` and ``dJ/dB = A' G``. If B is an input of words given as `Indicators`, the
    columns of A that it names are copied instead of multiplied.

    Parameters
    ----------
    A : (m, k)
    B : (k, T)
        V has shape (m, T).

    References
    ----------
    CNTK book, eq. 2.66 to 2.68.
    """

    properties = frozenset({PRODUCT})
    operand_names = ("A", "B")
    backward_reads = ((1,), (0,))

    def splits_frames(self, a: Shape, b: Shape) -> bool:
        return a.cols is not None

    def wanted_operand(self, k: int, a: Shape, b: Shape) -> Shape | None:
        return Shape(a.rows, b.rows) if k == 0 else None

    def infer_shape(self, a: Shape, b: Shape) -> Shape:
        if a.cols != b.rows:
            raise self.shape_error((a, b), "columns of A = rows of B")
        return Shape(a.rows, b.cols)

    def forward(self, context: PassContext, a: Any, b: Any, *, out: Any) -> None:
        if isinstance(b, Indicators):
            multiply_indicators(context, a, b, out)
        else:
            context.matmul(a, b, out)  # out stays column-major; a @ b would not

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        a, b = inputs
        if grads.needs(1):
            grads.add_product(1, a.T, grad)
        if isinstance(b, Indicators):
            add_product_with_indicators(context, grads, 0, grad, b)
        elif grads.needs(0):
            grads.add_product(0, grad, b.T)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0] @ inputs[1] + inputs[0] @ tangents[1]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        a, b = inputs
        return graph.add("MatMul", b, a)  # V' = B' A'


@register_node("TransposeTimes")
class TransposeTimes(Node):
    """Matrix product ``V = A' B``.

    The gradients are ``dJ/dA = B G'`` and ``dJ/dB = A G``.

    Parameters
    ----------
    A : (k, m)
        With a fixed number of columns.
    B : (k, cols)
        V has shape (m, cols).

    References
    ----------
    CNTK book 4.1.4.16.
    """

    operand_names = ("A", "B")
    backward_reads = ((1,), (0,))

    def splits_frames(self, a: Shape, b: Shape) -> bool:
        return b.cols is None

    def infer_shape(self, a: Shape, b: Shape) -> Shape:
        if a.rows != b.rows:
            raise self.shape_error((a, b), "rows of A = rows of B")
        if not isinstance(a.cols, int):
            raise self.shape_error((a, b), "a fixed number of columns in A: they become rows")
        return Shape(a.cols, b.cols)

    def forward(self, context: PassContext, a: Any, b: Any, *, out: Any) -> None:
        context.matmul(a.T, b, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        a, b = inputs
        if grads.needs(1):
            grads.add_product(1, a, grad)
        if grads.needs(0):
            grads.add_product(0, b, grad.T)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0].T @ inputs[1] + inputs[0].T @ tangents[1]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        a, b = inputs
        return graph.add("MatMul", b, graph.add("Transpose", a, perm=(1, 0)))


@register_node("KhatriRaoProduct", "ColumnwiseCrossProduct")
class KhatriRaoProduct(Node):
    """Kronecker product of each column of X with the same column of Y (Khatri-Rao product).

    ``v_(i n + k)j = x_ij y_kj``. With column j of G as an (n, m) matrix M, the gradients of column j are ``dJ/dx = M'
    y`` and ``dJ/dy = M x``.

    Parameters
    ----------
    X : (m, cols)
    Y : (n, cols)
        V has shape (m n, cols).

    References
    ----------
    CNTK book, eq. 2.98 to 2.102.
    """

    operand_names = ("X", "Y")
    backward_reads = ((1,), (0,))

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        if x.cols != y.cols:
            raise self.shape_error((x, y), "equal numbers of columns")
        return Shape(x.rows * y.rows, x.cols)

    def _cube(self, v: Any, x_rows: int) -> Any:
        """Reshape a value to (Y.rows, X.rows, cols); rows of Y vary fastest."""
        return v.reshape((v.shape[0] // x_rows, x_rows, v.shape[1]), order="F")

    def forward(self, context: PassContext, x: Any, y: Any, *, out: Any) -> None:
        context.xp.multiply(y[:, None, :], x[None, :, :], out=self._cube(out, x.shape[0]))

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        x, y = inputs
        rows = grad.shape[0] // y.shape[0] if x is None else x.shape[0]
        cube = self._cube(grad, rows)
        grads.add(0, lambda out: context.xp.copyto(out, context.xp.einsum("nmt,nt->mt", cube, y)))
        grads.add(1, lambda out: context.xp.copyto(out, context.xp.einsum("nmt,mt->nt", cube, x)))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        x, y = inputs
        dx, dy = tangents
        cube = dx[:, None, :] * y[None, :, :] + x[:, None, :] * dy[None, :, :]
        return cube.reshape((x.shape[0] * y.shape[0], x.shape[1]))  # rows of Y vary fastest


@register_node("Scale")
class Scale(Node):
    """Product of a scalar and a matrix: ``V = s Y``.

    The gradients are ``dJ/ds = sum of G Y`` and ``dJ/dY = s G``.

    Parameters
    ----------
    s : (1, 1)
    Y : (rows, cols)

    References
    ----------
    CNTK book, eq. 2.59 to 2.61.
    """

    properties = frozenset({SCALED})
    operand_names = ("s", "Y")
    backward_reads = ((1,), (0,))

    def infer_shape(self, s: Shape, y: Shape) -> Shape:
        if s != Shape(1, 1):
            raise self.shape_error((s, y), "s to be 1x1")
        return y

    def forward(self, context: PassContext, s: Any, y: Any, *, out: Any) -> None:
        context.xp.multiply(s, y, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        s, y = inputs
        grads.add(0, lambda out: (grad * y).sum(keepdims=True, out=out))
        grads.add(1, lambda out: context.xp.multiply(s, grad, out=out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0] * inputs[1] + inputs[0] * tangents[1]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("Mul", *inputs)
