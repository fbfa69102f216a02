"""Sums and differences of two operands with the broadcasts of book 2.4.3, and sums over a matrix."""

from collections.abc import Callable, Sequence
from typing import Any

from acoustic.kernels.image_geometry import keep_image
from acoustic.kernels.shape import broadcast_shape
from acoustic.nodes.base import VALUE, LinearNode, Node, Run, Shape, register_node
from readers.errors import ModelError

BROADCASTS = "rows equal or 1 (or a column that fits them), and the columns of one a multiple of the other's"


def combine(operation: Callable[..., Any], x: Any, y: Any, out: Any) -> None:
    """out = operation(x, y), the operand with fewer columns repeated side by side."""
    rows = min(x.shape[0], y.shape[0])
    if rows not in (1, out.shape[0]):  # a column repeated downwards: fold the other one to its height
        x, y, out = (matrix.reshape((rows, -1), order="F") for matrix in (x, y, out))
    cols = out.shape[1]
    fewest = min(x.shape[1], y.shape[1])
    if fewest in (1, cols):
        operation(x, y, out=out)
        return

    def fold(matrix: Any) -> Any:
        """Column j as (j modulo fewest, j // fewest); a repeated operand has one repetition, which broadcasts."""
        return matrix.reshape((matrix.shape[0], fewest, matrix.shape[1] // fewest), order="F")

    operation(fold(x), fold(y), out=fold(out))


class BroadcastNode(Node):
    """Base of the functions of two operands, element by element, the smaller one repeated to the size of the other."""

    operand_names = ("X", "Y")
    value_in_place = (0, 1)

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        shape = broadcast_shape(x, y)
        if shape is None:
            raise self.shape_error((x, y), BROADCASTS)
        return keep_image(shape, x, y)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        shapes = [graph.shapes[tensor] for tensor in inputs]
        if len({shape.cols for shape in shapes} - {1}) > 1:
            raise ModelError(f"{self.where}: repeats several columns; expected a single one, as ONNX can do it")
        fewest, most = sorted(shape.rows for shape in shapes)
        if fewest in (1, most):
            return self.combine_in_onnx(graph, *inputs)
        folded = [graph.reshape(tensor, (-1, fewest)) for tensor in inputs]  # a column repeated downwards
        return graph.reshape(self.combine_in_onnx(graph, *folded), (-1, most))

    def combine_in_onnx(self, graph: Any, x: str, y: str) -> str:
        """The function of two tensors that fit as ONNX wants it."""
        return super().to_onnx(graph, x, y)


class SumNode(LinearNode, BroadcastNode):
    """Base of Plus and Minus."""

    backward_reads = ((), ())
    gradient_in_place = (0,)  # passed on unchanged


@register_node("Plus")
class Plus(SumNode):
    """V = X + Y, the smaller repeated; dJ/dX = dJ/dY = G, summed over the repetitions.  [eq. 2.78 to 2.80]"""

    onnx_operator = "Add"

    def repeats_calls(self, *shapes: Shape) -> bool:
        x, y = shapes
        return x.rows == y.rows and y.cols in (1, x.cols)

    def forward(self, run: Run, x: Any, y: Any, *, out: Any) -> None:
        if x.shape == y.shape:
            run.kernels.add(x, y, out)
        elif x.shape[0] == y.shape[0] and y.shape[1] == 1:
            run.kernels.add_column(x, y, out)
        else:
            combine(run.xp.add, x, y, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add_reduced(1, grad)
        into.add_reduced(0, grad)


@register_node("Minus")
class Minus(SumNode):
    """V = X - Y, the smaller repeated; dJ/dX = G, dJ/dY = -G, summed over the repetitions.  [eq. 2.85 to 2.87]"""

    onnx_operator = "Sub"

    def forward(self, run: Run, x: Any, y: Any, *, out: Any) -> None:
        combine(run.xp.subtract, x, y, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        if into.needs(1):
            into.add_reduced(1, run.xp.negative(grad))
        into.add_reduced(0, grad)


@register_node("LogPlus")
class LogPlus(BroadcastNode):
    """V = ln(exp X + exp Y), the smaller repeated; dJ/dX = G exp(X - V), dJ/dY = G exp(Y - V).  [not in the book]"""

    backward_reads = ((0, VALUE), (1, VALUE))

    def forward(self, run: Run, x: Any, y: Any, *, out: Any) -> None:
        combine(run.xp.logaddexp, x, y, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        for k, operand in enumerate(inputs):
            if into.needs(k):
                share = run.backend.empty(*grad.shape)
                combine(run.xp.subtract, operand, value, share)
                run.xp.exp(share, out=share)
                into.add_reduced(k, run.xp.multiply(share, grad, out=share))

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """(exp(x) dx + exp(y) dy) / (exp(x) + exp(y)), with x and y less their larger one."""
        x, y, dx, dy = widened(run, (*inputs, *tangents))
        larger = run.xp.maximum(x, y)
        x, y = run.xp.exp(x - larger), run.xp.exp(y - larger)
        return (x * dx + y * dy) / (x + y)

    def combine_in_onnx(self, graph: Any, x: str, y: str) -> str:
        small = graph.add("Exp", graph.add("Neg", graph.add("Abs", graph.add("Sub", x, y))))
        return graph.add("Add", graph.add("Max", x, y), graph.add("Log", graph.add("Add", small, graph.constant(1.0))))


def widened(run: Run, matrices: Sequence[Any]) -> list[Any]:
    """Matrices repeated to the largest number of rows and columns among them, as new matrices."""
    rows, cols = max(matrix.shape[0] for matrix in matrices), max(matrix.shape[1] for matrix in matrices)
    return [run.xp.tile(matrix, (rows // matrix.shape[0], cols // matrix.shape[1])) for matrix in matrices]


@register_node("SumElements")
class SumElements(LinearNode):
    """v (1, 1) = the sum of all elements of X; dJ/dX = G everywhere.  [eq. 2.45, 2.46]"""

    operand_names = ("X",)
    backward_reads = ((),)
    sums_frames = True

    def infer_shape(self, x: Shape) -> Shape:
        return Shape(1, 1)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        x.sum(keepdims=True, out=out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.xp.copyto(out, grad))


@register_node("SumColumnElements")
class SumColumnElements(LinearNode):
    """V (1, cols) = the sum of each column of X; dJ/dX = G in every row.  [book 4.1.4.9]"""

    operand_names = ("X",)
    backward_reads = ((),)

    def infer_shape(self, x: Shape) -> Shape:
        return Shape(1, x.cols)

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        x.sum(axis=0, keepdims=True, out=out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.xp.copyto(out, grad))

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("ReduceSum", *inputs, graph.constant([1]), keepdims=1)
