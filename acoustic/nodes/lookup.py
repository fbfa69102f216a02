"""Tables of word vectors (not in the book; LookupTable of CNTK in 2016, see lookupTableOrder in the book's 3.2.1)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.indicator_products import add_to_columns, take_columns
from readers.minibatches.indicators import Indicators


@register_node("LookupTable")
class LookupTable(Node):
    """Word vectors looked up in a table: ``V = E X`` for one or more stacked words per column.

    With X as (words, n cols) and G as (dim, n cols), the gradients are ``dJ/dE = G X'`` and ``dJ/dX = E' G``. For an
    input given as `Indicators` vectors are copied, not multiplied: the cost of both passes and of the update depends on
    the words of the minibatch, not on the size of the vocabulary. Not in the book: it is the LookupTable of CNTK in
    2016.

    Parameters
    ----------
    E : (dim, words)
        One vector per word.
    X : (n words, cols)
        n indicator columns on top of each other. V has shape (n dim, cols).
    """

    operand_names = ("E", "X")
    backward_reads = ((1,), (0,))

    def splits_frames(self, e: Shape, x: Shape) -> bool:
        return x.cols is None

    def infer_shape(self, e: Shape, x: Shape) -> Shape:
        if not isinstance(e.cols, int) or not e.cols or x.rows % e.cols:
            raise self.shape_error((e, x), "rows of X to be columns of E, or a multiple of them")
        return Shape(x.rows // e.cols * e.rows, x.cols)

    def forward(self, context: PassContext, e: Any, x: Any, *, out: Any) -> None:
        if isinstance(x, Indicators) and x.size == e.shape[1]:
            take_columns(context, e, x.numbers.T.reshape(-1), unstacked(out, e.shape[0]))
        else:
            context.matmul(e, unstacked(context.backend.asarray(x), e.shape[1]), unstacked(out, e.shape[0]))

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        e, x = inputs
        if grads.needs(1):
            out_rows = e.shape[1]
            grads.add(1, lambda out: context.matmul(e.T, unstacked(grad, e.shape[0]), unstacked(out, out_rows)))
        if grads.needs(0):
            rows, words = grads.targets[0].shape
            if isinstance(x, Indicators) and x.size == words:
                add_to_columns(context, grads, 0, x.numbers.T.reshape(-1), [unstacked(grad, rows)])
            else:
                grads.add_product(0, unstacked(grad, rows), unstacked(context.backend.asarray(x), words).T)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        e, x = inputs
        dim, words = graph.shapes[e]
        rows = graph.shapes[x].rows
        vectors = graph.add("MatMul", graph.reshape(x, [-1, words]), e)
        return graph.reshape(vectors, [-1, rows // words * dim])

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        e, x = inputs
        de, dx = tangents
        words = e.shape[1]
        blocks = range(0, x.shape[0], words)
        return context.xp.concatenate([de @ x[k : k + words] + e @ dx[k : k + words] for k in blocks])


def unstacked(matrix: Any, rows: int) -> Any:
    """View a matrix with `rows` rows: the blocks of a column become columns side by side."""
    return matrix.reshape((rows, matrix.size // rows), order="F")
