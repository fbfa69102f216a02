"""Matrix products and their like (book 2.4.3); element by element they are in element_products."""

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

    def wanted_operand(self, k: int, a: Shape, b: Shape) -> Shape | None:
        return Shape(a.rows, b.rows) if k == 0 else None

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

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0] @ inputs[1] + inputs[0] @ tangents[1]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        a, b = inputs
        return graph.add("MatMul", b, a)  # V' = B' A'


@register_node("TransposeTimes")
class TransposeTimes(Node):
    """Matrix product V = A' B.

    A (k, m), a fixed number of columns; B (k, cols); V (m, cols).  dJ/dA = B G', dJ/dB = A G.  [book 4.1.4.16]
    """

    operand_names = ("A", "B")
    backward_reads = ((1,), (0,))
    frame_products = (0,)

    def splits_frames(self, a: Shape, b: Shape) -> bool:
        return b.cols is None

    def infer_shape(self, a: Shape, b: Shape) -> Shape:
        if a.rows != b.rows:
            raise self.shape_error((a, b), "rows of A = rows of B")
        if a.has_frames:
            raise self.shape_error((a, b), "a fixed number of columns in A: they become rows")
        return Shape(a.cols, b.cols)

    def forward(self, run: Run, a: Any, b: Any, *, out: Any) -> None:
        matmul_into(run.xp, a.T, b, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        a, b = inputs
        if into.needs(1):
            into.add_product(1, a, grad)
        if into.needs(0):
            into.add_product(0, b, grad.T)

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0].T @ inputs[1] + inputs[0].T @ tangents[1]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        a, b = inputs
        return graph.add("MatMul", b, graph.add("Transpose", a, perm=(1, 0)))


@register_node("KhatriRaoProduct", "ColumnwiseCrossProduct")
class KhatriRaoProduct(Node):
    """Column j of V = the Kronecker product of columns j of X and Y: v_(i Y.rows + k)j = x_ij y_kj.

    X (m, cols); Y (n, cols); V (m n, cols).  With column j of G as an (n, m) matrix M: dJ/dx = M' y, dJ/dy = M x.
    [eq. 2.98 to 2.102]
    """

    operand_names = ("X", "Y")
    backward_reads = ((1,), (0,))

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        if x.cols != y.cols:
            raise self.shape_error((x, y), "equal numbers of columns")
        return Shape(x.rows * y.rows, x.cols)

    def _cube(self, v: Any, x_rows: int) -> Any:
        """A value as (Y.rows, X.rows, cols): Y's rows run fastest."""
        return v.reshape((v.shape[0] // x_rows, x_rows, v.shape[1]), order="F")

    def forward(self, run: Run, x: Any, y: Any, *, out: Any) -> None:
        run.xp.multiply(y[:, None, :], x[None, :, :], out=self._cube(out, x.shape[0]))

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        x, y = inputs
        rows = grad.shape[0] // y.shape[0] if x is None else x.shape[0]
        cube = self._cube(grad, rows)
        into.add(0, lambda out: run.xp.copyto(out, run.xp.einsum("nmt,nt->mt", cube, y)))
        into.add(1, lambda out: run.xp.copyto(out, run.xp.einsum("nmt,mt->nt", cube, x)))

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x, y), (dx, dy) = inputs, tangents
        cube = dx[:, None, :] * y[None, :, :] + x[:, None, :] * dy[None, :, :]
        return cube.reshape((x.shape[0] * y.shape[0], x.shape[1]))  # C order within a column: Y's rows run fastest


@register_node("LookupTable")
class LookupTable(Node):
    """The columns of E that an input names: V = E X, X holding one or more words a column, one above the other.

    E (dim, words), a fixed number of columns; X (n words, cols), n indicator columns stacked; V (n dim, cols).  With X
    as (words, n cols) and G as (dim, n cols): dJ/dE = G X', dJ/dX = E' G.  [not in the book; 2016's LookupTable]
    """

    operand_names = ("E", "X")
    backward_reads = ((1,), (0,))

    def splits_frames(self, e: Shape, x: Shape) -> bool:
        return x.cols is None

    def infer_shape(self, e: Shape, x: Shape) -> Shape:
        if e.has_frames or x.rows % e.cols:
            raise self.shape_error((e, x), "rows of X to be columns of E, or a multiple of them")
        return Shape(x.rows // e.cols * e.rows, x.cols)

    def forward(self, run: Run, e: Any, x: Any, *, out: Any) -> None:
        matmul_into(run.xp, e, stacked(x, e.shape[1]), stacked(out, e.shape[0]))

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        e, x = inputs
        if into.needs(1):
            out_rows = e.shape[1]
            into.add(1, lambda out: matmul_into(run.xp, e.T, stacked(grad, e.shape[0]), stacked(out, out_rows)))
        if into.needs(0):
            rows, words = into.targets[0].shape
            into.add_product(0, stacked(grad, rows), stacked(x, words).T)

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (e, x), (de, dx) = inputs, tangents
        words = e.shape[1]
        blocks = range(0, x.shape[0], words)
        return run.xp.concatenate([de @ x[k : k + words] + e @ dx[k : k + words] for k in blocks])


def stacked(matrix: Any, rows: int) -> Any:
    """A view of a matrix with so many rows, what stood below them in a column in columns of its own."""
    return matrix.reshape((rows, matrix.size // rows), order="F")


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

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0] * inputs[1] + inputs[0] * tangents[1]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("Mul", *inputs)
