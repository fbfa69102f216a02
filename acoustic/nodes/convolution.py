"""Image inputs and convolutions (CNTK book 2.5 and 4.1.4.34)."""

from collections.abc import Iterator, Sequence
from typing import Any

from acoustic.kernels.image_geometry import Image, ImageShape, ImageWindows, image_of, spread
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.leaves import InputValue
from acoustic.nodes.option import Option

IMAGE_LAYOUT = Option("imageLayout", str, "HWC", choices=("HWC",))


@register_node("ImageInput", "Image")
class ImageInput(InputValue):
    """Input of images, a matrix (width * height * channels, T) with one image per frame.

    Channels vary fastest in a column; see acoustic/kernels/image_geometry.py for the order of the elements.

    Parameters
    ----------
    width, height, channels : int
    numImages : int
        Without effect: the minibatch determines the number of images.
    tag, imageLayout : str

    References
    ----------
    CNTK book 4.1.4.2.
    """

    options = (
        Option("width", int, positional=True),
        Option("height", int, positional=True),
        Option("channels", int, positional=True),
        Option("numImages", int, 1, positional=True),  # without effect, as the minibatch determines it
        Option("tag", str, ""),
        IMAGE_LAYOUT,
    )

    def infer_shape(self) -> Shape:
        return ImageShape(Image(*(self.settings[name] for name in ("width", "height", "channels"))), None)


class WindowProduct(Node):
    """Base of nodes that multiply every window of an image by one matrix: ``V = W X`` with ``X = Pack(Y)``.

    W is (m, k), k elements of a window; Y is (rows, T), one image per column; V is (m places, T), the image of the m
    products of every window, with channels varying fastest. With G as (m, places T), the gradients are ``dJ/dW = G X'``
    and ``dJ/dY = Unpack(W' G)``. A few images are packed at a time, and packed again for the gradient, because X is
    several times as large as Y. See the CNTK book, eq. 2.165 to 2.169.
    """

    operand_names = ("w", "image")
    backward_reads = ((1,), (0,))
    windows: ImageWindows  # set by infer_shape

    def splits_frames(self, w: Shape, image: Shape) -> bool:
        return w.cols is not None

    def images_at_a_time(self, context: PassContext) -> int:
        """Return the number of images that one thread packs together."""
        return max(1, context.kernels.packed_elements // (self.windows.size * self.windows.count))

    def infer_product(self, w: Shape, image: Shape) -> Shape:
        """Return the shape of the value, given `windows`; raise ShapeError for weights that do not fit a window."""
        if w.cols != self.windows.size:
            raise self.shape_error((w, image), f"w to have {self.windows.size} columns, the elements of a window")
        return ImageShape(self.windows.output(w.rows), image.cols)

    def forward(self, context: PassContext, w: Any, image: Any, *, out: Any) -> None:
        product = out.reshape((w.shape[0], -1), order="F")
        for images, places, packed in self._blocks(context, image.shape[1]):
            context.kernels.pack(self.windows, image[:, images], packed)
            context.matmul(w, packed, product[:, places])

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        w, image = inputs
        if grads.needs(0):
            grads.add(0, lambda out: self._weight_gradient(context, grad, image, out))
        if grads.needs(1):
            grads.add(1, lambda out: self._image_gradient(context, grad, w, out))

    def _weight_gradient(self, context: PassContext, grad: Any, image: Any, out: Any) -> None:
        products = grad.reshape((out.shape[0], -1), order="F")
        for images, places, packed in self._blocks(context, image.shape[1]):
            context.kernels.pack(self.windows, image[:, images], packed)
            context.matmul(products[:, places], packed.T, out, keep=1.0 if images.start else 0.0)

    def _image_gradient(self, context: PassContext, grad: Any, w: Any, out: Any) -> None:
        products = grad.reshape((w.shape[0], -1), order="F")
        for images, places, packed in self._blocks(context, out.shape[1]):
            context.matmul(w.T, products[:, places], packed)
            context.kernels.unpack(self.windows, packed, out[:, images])

    def _blocks(self, context: PassContext, num_images: int) -> Iterator[tuple[slice, slice, Any]]:
        """Yield the images of a block, their places among all windows, and the memory to pack them in."""
        size = self.windows.size
        count = self.windows.count
        step = min(num_images, self.images_at_a_time(context))
        memory = context.backend.empty(size, count * step)
        for start in range(0, num_images, step):
            images = slice(start, min(start + step, num_images))
            yield images, slice(count * start, count * images.stop), memory[:, : count * (images.stop - start)]

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """The value is linear in each operand."""
        w, image = inputs
        w_step, image_step = tangents
        parts = [context.backend.empty(w.shape[0] * self.windows.count, image.shape[1]) for _ in range(2)]
        self.forward(context, w_step, image, out=parts[0])
        self.forward(context, w, image_step, out=parts[1])
        return context.xp.add(*parts, out=parts[0])

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        w, image = inputs
        windows = self.windows
        if not windows.contiguous:  # gather the elements of all windows, as ONNX has no such kernel
            packed = graph.add("Gather", image, graph.constant(windows.index.T), axis=1)
            products = graph.add("MatMul", packed, w)
            return graph.reshape(products, (-1, windows.count * graph.shapes[w].rows))
        # Kernels have the memory order of images: their transposed matrix can be read as a batch of images.
        kernels = graph.add("Transpose", w, perm=(1, 0))
        kernels = planes_in_onnx(graph, kernels, Image(len(windows.offsets), windows.height, windows.image.channels))
        planes = planes_in_onnx(graph, image, windows.image)
        return columns_in_onnx(
            graph, graph.add("Conv", planes, kernels, **windows.in_onnx()), graph.shapes[w].rows * windows.count
        )


@register_node("Convolution", "Convolve")
class Convolution(WindowProduct):
    """Convolution of images: every window of an image is multiplied by the kernels, ``V = W Pack(Y)``.

    Parameters
    ----------
    w : (outputChannels, kernelWidth * kernelHeight * channels)
        One row per output channel, its elements in the order of an image.
    image : (width * height * channels, T)
        One image per column. V holds images of `outputChannels` channels.
    kernelWidth, kernelHeight : int
    outputChannels : int
    horizontalSubsample, verticalSubsample : int
        Steps of the window, in pixels.
    zeroPadding : bool
        Whether windows may reach beyond the image, where pixels are 0.
    padTop, padBottom : int
        Without zeroPadding, rows of zeros before the first row of the image and after the last.
    maxTempMemSizeInSamples : int
        The largest number of images that are packed at a time; 0 for the fastest number.
    imageLayout : str

    References
    ----------
    CNTK book 4.1.4.34 and eq. 2.162 to 2.169.
    """

    options = (
        Option("kernelWidth", int, positional=True),
        Option("kernelHeight", int, positional=True),
        Option("outputChannels", int, positional=True),
        Option("horizontalSubsample", int, positional=True),
        Option("verticalSubsample", int, positional=True),
        Option("zeroPadding", bool, False),
        Option("padTop", int, 0),
        Option("padBottom", int, 0),
        Option("maxTempMemSizeInSamples", int, 0),
        IMAGE_LAYOUT,
    )

    def images_at_a_time(self, context: PassContext) -> int:
        fastest = super().images_at_a_time(context)
        limit = self.settings["maxTempMemSizeInSamples"]
        return max(1, min(fastest, limit // context.backend.team.size)) if limit > 0 else fastest

    def wanted_operand(self, k: int, w: Shape, image: Shape) -> Shape | None:
        """Return the shape of weights whose dimensions are left open (CNTK book 4.1.4.34)."""
        pixels = image_of(image)
        if k != 0 or pixels is None:
            return None
        width, height, rows = (self.settings[name] for name in ("kernelWidth", "kernelHeight", "outputChannels"))
        return Shape(rows, width * height * pixels.channels)

    def infer_shape(self, w: Shape, image: Shape) -> Shape:
        names = ("kernelWidth", "kernelHeight", "horizontalSubsample", "verticalSubsample")
        padding = self.settings["padTop"], self.settings["padBottom"]
        if min(padding) < 0 or (self.settings["zeroPadding"] and max(padding)):
            raise self.shape_error(
                (w, image), f"padTop={padding[0]} and padBottom={padding[1]} to be at least 0, and 0 with zeroPadding"
            )
        width, height, step_right, step_down = (self.settings[name] for name in names)
        self.windows = sliding_windows(
            self,
            (w, image),
            image_of(image),
            width,
            height,
            step_right,
            step_down,
            self.settings["zeroPadding"],
            padding,
        )
        if w.rows != self.settings["outputChannels"]:
            raise self.shape_error((w, image), f"w to have {self.settings['outputChannels']} rows, outputChannels")
        return self.infer_product(w, image)


def limit_packing(network: Any, samples: int) -> None:
    """Let each convolution pack at most `samples` images at a time (maxTempMemSizeInSamplesForCNN)."""
    for node in network.nodes.values():
        if isinstance(node, Convolution):
            node.settings["maxTempMemSizeInSamples"] = samples


def planes_in_onnx(graph: Any, columns: str, image: Image) -> str:
    """Reshape columns of images to ONNX's (images, channels, width, height); our pixel columns are ONNX rows."""
    pixels = graph.reshape(columns, (-1, image.width, image.height, image.channels))
    return graph.add("Transpose", pixels, perm=(0, 3, 1, 2))


def columns_in_onnx(graph: Any, planes: str, size: int) -> str:
    """Reshape ONNX planes to columns of images of `size` elements, the inverse of planes_in_onnx."""
    return graph.reshape(graph.add("Transpose", planes, perm=(0, 2, 3, 1)), (-1, size))


def sliding_windows(
    node: Node,
    shapes: Sequence[Shape],
    image: Image | None,
    width: int,
    height: int,
    step_right: int,
    step_down: int,
    padded: bool = False,
    padding: tuple[int, int] = (0, 0),
) -> ImageWindows:
    """Return the windows over an image; raise ShapeError with the operands' shapes if none fits.

    padding: rows of zeros before the first row and after the last.
    """
    if image is None:
        raise node.shape_error(shapes, "an image, which comes from ImageInput or Reshape with imageWidth and so on")
    if min(width, height, step_right, step_down) < 1:
        raise node.shape_error(shapes, f"window {width}x{height} and steps {step_right}, {step_down} to be at least 1")
    rows = spread(image.height + sum(padding), height, step_down, padded)
    cols = spread(image.width, width, step_right, padded)
    if not rows or not cols:
        raise node.shape_error(shapes, f"a window of at most {image.width}x{image.height}, not {width}x{height}")
    rows = range(rows.start - padding[0], rows.stop - padding[0], rows.step)
    return ImageWindows(image, rows, cols, height, range(width))
