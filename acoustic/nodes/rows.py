"""Nodes that rearrange elements: slice, stack, repeat, reshape, transpose (CNTK book 4.1.4.11 to 4.1.4.13)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.image_geometry import Image, ImageShape
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import LinearNode, PassContext, register_node
from acoustic.nodes.option import Option


@register_node("Reshape")
class Reshape(LinearNode):
    """The elements of X, read column by column, in columns of `numRows` elements.

    The gradient is G in the shape of X. For a matrix with one column per frame the number of columns changes in
    proportion: 12 rows per frame become two columns of 6 rows per frame.

    Parameters
    ----------
    X : (rows, cols)
    numRows : int
    imageWidth, imageHeight, imageChannels : int
        The dimensions of the image that a column of V holds, for a following Convolution or pooling; they change no
        value.
    imageLayout : str

    References
    ----------
    CNTK book 4.1.4.11.
    """

    operand_names = ("X",)
    options = (
        Option("numRows", int, positional=True),
        Option("imageWidth", int, 0),
        Option("imageHeight", int, 0),
        Option("imageChannels", int, 0),
        Option("imageLayout", str, "HWC", choices=("HWC",)),
    )
    backward_reads = ((),)

    def infer_shape(self, x: Shape) -> Shape:
        rows = self.settings["numRows"]
        shape = x.with_rows(rows)
        if shape is None:
            raise self.shape_error((x,), f"a number of elements that is a multiple of numRows={rows}")
        image = [self.settings[name] for name in ("imageWidth", "imageHeight", "imageChannels")]
        if any(image) and image[0] * image[1] * image[2] != rows:
            sizes = "x".join(map(str, image))
            raise self.shape_error((x,), f"imageWidth x imageHeight x imageChannels = {sizes} to be numRows={rows}")
        return ImageShape(Image(*image), shape.cols) if any(image) else shape

    def splits_frames(self, x: Shape) -> bool:
        return x.cols is None and x.rows == self.settings["numRows"]

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.copyto(out, x.reshape(out.shape, order="F"))

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.copyto(out, grad.reshape(out.shape, order="F")))

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.reshape(*inputs, (-1, self.settings["numRows"]))


@register_node("RowSlice")
class RowSlice(LinearNode):
    """`numRows` consecutive rows of X, beginning with row `startRow`, counted from 0.

    The gradient is G in those rows and 0 in the others.

    Parameters
    ----------
    startRow, numRows : int
    X : (rows, cols)
        V has shape (numRows, cols).

    References
    ----------
    CNTK book 4.1.4.12.
    """

    operand_names = ("X",)
    options = (Option("startRow", int, positional=True), Option("numRows", int, positional=True))
    arguments = ("startRow", "numRows", "X")
    backward_reads = ((),)

    def _rows(self) -> slice:
        start = self.settings["startRow"]
        return slice(start, start + self.settings["numRows"])

    def infer_shape(self, x: Shape) -> Shape:
        rows = self._rows()
        if not 0 <= rows.start < rows.stop <= x.rows:
            range_text = f"startRow={rows.start}, numRows={self.settings['numRows']}"
            raise self.shape_error((x,), f"rows in it, counted from 0, for {range_text}")
        return Shape(self.settings["numRows"], x.cols)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.copyto(out, x[self._rows()])

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        def write(out: Any) -> None:
            out.fill(0)
            out[self._rows()] = grad

        grads.add(0, write)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        rows = self._rows()
        return graph.add("Slice", *inputs, *(graph.constant([number]) for number in (rows.start, rows.stop, 1)))


@register_node("RowStack")
class RowStack(LinearNode):
    """The operands stacked vertically, the first one on top.

    The gradient of each operand is the rows of G that hold its value.

    Parameters
    ----------
    X, ... : (rows of the operand, cols)
        Any number of operands, at least one, with equal numbers of columns.

    References
    ----------
    CNTK book 4.1.4.13.
    """

    operand_names = ("X",)
    variadic = True
    backward_reads = ((),)

    def infer_shape(self, *shapes: Shape) -> Shape:
        if any(shape.cols != shapes[0].cols for shape in shapes):
            raise self.shape_error(shapes, "equal numbers of columns")
        return Shape(sum(shape.rows for shape in shapes), shapes[0].cols)

    def forward(self, context: PassContext, *operands: Any, out: Any) -> None:
        context.xp.concatenate(operands, axis=0, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        start = 0
        for k, rows in enumerate(grads.rows):
            grads.add_matrix(k, grad[start : start + rows])
            start += rows

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("Concat", *inputs, axis=1)


@register_node("RowRepeat")
class RowRepeat(LinearNode):
    """X stacked vertically `numRepeats` times.

    The gradient is the sum of the corresponding parts of G. Not in the book.

    Parameters
    ----------
    X : (rows, cols)
    numRepeats : int
        V has shape (rows numRepeats, cols).
    """

    operand_names = ("X",)
    options = (Option("numRepeats", int, positional=True),)
    backward_reads = ((),)

    def infer_shape(self, x: Shape) -> Shape:
        count = self.settings["numRepeats"]
        if count < 1:
            raise self.shape_error((x,), f"numRepeats={count} to be at least 1")
        return Shape(x.rows * count, x.cols)

    def _cube(self, v: Any) -> Any:
        """Reshape a value to (rows, repetitions, cols)."""
        count = self.settings["numRepeats"]
        return v.reshape((v.shape[0] // count, count, v.shape[1]), order="F")

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.copyto(self._cube(out), x[:, None, :])

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: self._cube(grad).sum(axis=1, out=out))

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("Concat", *inputs * self.settings["numRepeats"], axis=1)


@register_node("Transpose")
class Transpose(LinearNode):
    """Transpose of a matrix with a fixed number of columns: ``V = X'``.

    The gradient is ``dJ/dX = G'``. Not in the book.

    Parameters
    ----------
    X : (rows, cols)
        Not with one column per frame.
    """

    operand_names = ("X",)
    backward_reads = ((),)

    def infer_shape(self, x: Shape) -> Shape:
        if not isinstance(x.cols, int):
            raise self.shape_error((x,), "a fixed number of columns: they become rows")
        return Shape(x.cols, x.rows)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.xp.copyto(out, x.T)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.copyto(out, grad.T))

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("Transpose", *inputs, perm=(1, 0))
