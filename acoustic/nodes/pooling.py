"""Max and average pooling of images, channel by channel (CNTK book 2.5 and 4.1.4.35)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.image_geometry import ImageShape, ImageWindows, image_of
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import WORK, Node, PassContext, register_node
from acoustic.nodes.convolution import IMAGE_LAYOUT, columns_in_onnx, planes_in_onnx, sliding_windows
from acoustic.nodes.option import Option


class Pooling(Node):
    """Base of pooling: one image per column of the operand, and V holds one value per window and channel."""

    operand_names = ("m",)
    options = (
        Option("windowWidth", int, positional=True),
        Option("windowHeight", int, positional=True),
        Option("stepW", int, positional=True, aliases=("horizontalSubsample",)),
        Option("stepH", int, positional=True, aliases=("verticalSubsample",)),
        IMAGE_LAYOUT,
    )
    windows: ImageWindows  # set by infer_shape

    def splits_frames(self, m: Shape) -> bool:
        return True

    def infer_shape(self, m: Shape) -> Shape:
        sides = [self.settings[name] for name in ("windowWidth", "windowHeight", "stepW", "stepH")]
        self.windows = sliding_windows(self, (m,), image_of(m), *sides)
        return ImageShape(self.windows.output(self.windows.image.channels), m.cols)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        (columns,) = inputs
        windows = self.windows
        planes = planes_in_onnx(graph, columns, windows.image)
        pooled = graph.add(self.onnx_operator, planes, **windows.in_onnx())
        return columns_in_onnx(graph, pooled, windows.count * windows.image.channels)


@register_node("MaxPooling")
class MaxPooling(Pooling):
    """Max pooling: the largest element of every window of an image, channel by channel.

    The gradient goes to the largest element, the first of equal ones; the workspace holds its number in the window.

    Parameters
    ----------
    m : (width * height * channels, T)
        One image per column.
    windowWidth, windowHeight : int
    stepW, stepH : int
        Steps of the window, in pixels.
    imageLayout : str

    References
    ----------
    CNTK book 4.1.4.35 and eq. 2.170 and 2.171.
    """

    onnx_operator = "MaxPool"
    backward_reads = ((WORK,),)

    def work_shape(self, m: Shape) -> Shape:
        return Shape(self.windows.count * self.windows.image.channels, m.cols)

    def forward(self, context: PassContext, m: Any, *, out: Any, work: Any = None) -> None:
        context.kernels.max_pool(self.windows, m, out, context.backend.empty(*out.shape) if work is None else work)

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any, work: Any = None
    ) -> None:
        grads.add(0, lambda out: context.kernels.max_pool_gradient(self.windows, grad, work, out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        x = inputs[0]
        step = tangents[0]
        out, winner = (
            context.backend.empty(self.windows.count * self.windows.image.channels, x.shape[1]) for _ in range(2)
        )
        context.kernels.max_pool(self.windows, x, out, winner)
        index = context.kernels.rows_per_channel(self.windows)
        rows = index[winner.astype(int), context.xp.arange(len(index.T))[:, None]]
        return context.xp.asfortranarray(step[rows, context.xp.arange(x.shape[1])])


@register_node("AveragePooling")
class AveragePooling(Pooling):
    """Average pooling: the mean of every window of an image, channel by channel.

    The gradient is distributed evenly over the window.

    Parameters
    ----------
    m : (width * height * channels, T)
        One image per column.
    windowWidth, windowHeight : int
    stepW, stepH : int
        Steps of the window, in pixels.
    imageLayout : str

    References
    ----------
    CNTK book 4.1.4.35 and eq. 2.172 and 2.173.
    """

    onnx_operator = "AveragePool"
    backward_reads = ((),)

    def forward(self, context: PassContext, m: Any, *, out: Any) -> None:
        context.kernels.average_pool(self.windows, m, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.kernels.average_pool_gradient(self.windows, grad, out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        out = context.backend.empty(self.windows.count * self.windows.image.channels, inputs[0].shape[1])
        context.kernels.average_pool(self.windows, tangents[0], out)
        return out
