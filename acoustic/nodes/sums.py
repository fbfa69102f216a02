"""Sums and differences of two operands with broadcasting, and sums over a matrix (CNTK book 2.4.2 and 2.4.3)."""

from collections.abc import Callable, Sequence
from typing import Any

from acoustic.kernels.image_geometry import keep_image
from acoustic.kernels.shape import Shape, broadcast_shape
from acoustic.nodes.base import VALUE, LinearNode, Node, PassContext, register_node
from acoustic.nodes.properties import DIFFERENCE, SUM
from readers.errors import ModelError

BROADCASTS = "rows equal or 1 (or a column that fits them), and the columns of one a multiple of the other's"


def combine(operation: Callable[..., Any], x: Any, y: Any, out: Any) -> None:
    """Compute ``out = operation(x, y)``, repeating the operand with fewer rows or columns."""
    rows = min(x.shape[0], y.shape[0])
    if rows not in (1, out.shape[0]):  # a column is repeated downwards: fold the other operand to its height
        x, y, out = (matrix.reshape((rows, -1), order="F") for matrix in (x, y, out))
    cols = out.shape[1]
    fewest = min(x.shape[1], y.shape[1])
    if fewest in (1, cols):
        operation(x, y, out=out)
        return

    def fold(matrix: Any) -> Any:
        """Split column j into (j modulo fewest, j // fewest); the repeated operand broadcasts over the latter."""
        return matrix.reshape((matrix.shape[0], fewest, matrix.shape[1] // fewest), order="F")

    operation(fold(x), fold(y), out=fold(out))


class BroadcastNode(Node):
    """Base of functions of two operands, element by element, with broadcasting."""

    operand_names = ("X", "Y")

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        shape = broadcast_shape(x, y)
        if shape is None:
            raise self.shape_error((x, y), BROADCASTS)
        return keep_image(shape, x, y)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        shapes = [graph.shapes[tensor] for tensor in inputs]
        if len({shape.cols for shape in shapes} - {1}) > 1:
            raise ModelError(f"{self.where}: repeats several columns; expected a single one, which ONNX supports")
        fewest, most = sorted(shape.rows for shape in shapes)
        if fewest in (1, most):
            return self.combine_in_onnx(graph, *inputs)
        folded = [graph.reshape(tensor, (-1, fewest)) for tensor in inputs]  # a column repeated downwards
        return graph.reshape(self.combine_in_onnx(graph, *folded), (-1, most))

    def combine_in_onnx(self, graph: Any, x: str, y: str) -> str:
        """Add the function of two tensors whose shapes broadcast by ONNX's rules."""
        return super().to_onnx(graph, x, y)


class SumNode(LinearNode, BroadcastNode):
    """Base of Plus and Minus."""

    backward_reads = ((), ())


@register_node("Plus")
class Plus(SumNode):
    """Sum of two matrices: ``V = X + Y``; the smaller operand is repeated to the size of the larger one.

    The gradients are ``dJ/dX = G`` and ``dJ/dY = G``, summed over the repetitions.

    Parameters
    ----------
    X, Y : (rows, cols)
        The numbers of rows are equal, or one of them is 1; the number of columns of one is a multiple of the other's. A
        single column whose height divides the rows of the other operand is repeated downwards.

    References
    ----------
    CNTK book, eq. 2.78 to 2.80.
    """

    properties = frozenset({SUM})
    onnx_operator = "Add"

    def forward(self, context: PassContext, x: Any, y: Any, *, out: Any) -> None:
        if x.shape == y.shape:
            context.kernels.add(x, y, out)
        elif x.shape[0] == y.shape[0] and y.shape[1] == 1:
            context.kernels.add_column(x, y, out)
        else:
            combine(context.xp.add, x, y, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add_reduced(1, grad)
        grads.add_reduced(0, grad)


@register_node("Minus")
class Minus(SumNode):
    """Difference of two matrices: ``V = X - Y``; the smaller operand is repeated to the size of the larger one.

    The gradients are ``dJ/dX = G`` and ``dJ/dY = -G``, summed over the repetitions.

    Parameters
    ----------
    X, Y : (rows, cols)
        Of shapes that broadcast as those of Plus.

    References
    ----------
    CNTK book, eq. 2.85 to 2.87.
    """

    properties = frozenset({DIFFERENCE})
    onnx_operator = "Sub"

    def forward(self, context: PassContext, x: Any, y: Any, *, out: Any) -> None:
        combine(context.xp.subtract, x, y, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        if grads.needs(1):
            grads.add_reduced(1, context.xp.negative(grad))
        grads.add_reduced(0, grad)


@register_node("LogPlus")
class LogPlus(BroadcastNode):
    """Sum of two matrices of logarithms: ``V = ln(exp X + exp Y)``; the smaller operand is repeated.

    The gradients are ``dJ/dX = G exp(X - V)`` and ``dJ/dY = G exp(Y - V)``, summed over the repetitions. Not in the
    book.

    Parameters
    ----------
    X, Y : (rows, cols)
        Of shapes that broadcast as those of Plus.
    """

    backward_reads = ((0, VALUE), (1, VALUE))

    def forward(self, context: PassContext, x: Any, y: Any, *, out: Any) -> None:
        combine(context.xp.logaddexp, x, y, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        for k, operand in enumerate(inputs):
            if grads.needs(k):
                share = context.backend.empty(*grad.shape)
                combine(context.xp.subtract, operand, value, share)
                context.xp.exp(share, out=share)
                grads.add_reduced(k, context.xp.multiply(share, grad, out=share))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """(exp(x) dx + exp(y) dy) / (exp(x) + exp(y)), with the larger of x and y subtracted from both."""
        x, y, dx, dy = broadcast_copies(context, (*inputs, *tangents))
        larger = context.xp.maximum(x, y)
        x = context.xp.exp(x - larger)
        y = context.xp.exp(y - larger)
        return (x * dx + y * dy) / (x + y)

    def combine_in_onnx(self, graph: Any, x: str, y: str) -> str:
        small = graph.add("Exp", graph.add("Neg", graph.add("Abs", graph.add("Sub", x, y))))
        return graph.add("Add", graph.add("Max", x, y), graph.add("Log", graph.add("Add", small, graph.constant(1.0))))


def broadcast_copies(context: PassContext, matrices: Sequence[Any]) -> list[Any]:
    """Return copies of the matrices, repeated to the largest number of rows and columns among them."""
    rows = max(matrix.shape[0] for matrix in matrices)
    cols = max(matrix.shape[1] for matrix in matrices)
    return [context.xp.tile(matrix, (rows // matrix.shape[0], cols // matrix.shape[1])) for matrix in matrices]


@register_node("SumElements")
class SumElements(LinearNode):
    """Sum of all elements of X, a scalar.

    The gradient is the scalar G in every element.

    References
    ----------
    CNTK book, eq. 2.45 and 2.46.
    """

    operand_names = ("X",)
    backward_reads = ((),)
    sums_frames = True

    def infer_shape(self, x: Shape) -> Shape:
        return Shape(1, 1)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        x.sum(keepdims=True, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.copyto(out, grad))


@register_node("SumColumnElements")
class SumColumnElements(LinearNode):
    """Sum of each column of X, a row (1, cols).

    The gradient is the row G in every row.

    References
    ----------
    CNTK book 4.1.4.9.
    """

    operand_names = ("X",)
    backward_reads = ((),)

    def infer_shape(self, x: Shape) -> Shape:
        return Shape(1, x.cols)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        x.sum(axis=0, keepdims=True, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.copyto(out, grad))

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("ReduceSum", *inputs, graph.constant([1]), keepdims=1)
