"""Convolution over time within a context window: the layer of a time-delay neural network (TDNN)."""

from acoustic.kernels.image_geometry import Image, ImageWindows
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import register_node
from acoustic.nodes.convolution import WindowProduct
from acoustic.nodes.option import Option
from readers.errors import ModelError


@register_node("TimeConvolution", "TDNN")
class TimeConvolution(WindowProduct):
    """Time-delay layer: one matrix applied at each place t of a context window, ``V = W [x(t + o1); x(t + o2); ...]``.

    t runs over the places at which all offsets o lie in the window.

    Parameters
    ----------
    w : (m, k d)
        For k offsets and frames of d values; d follows from its columns.
    X : (n d, T)
        Each column is a window of n frames, one frame after another. V has shape (m p, T), p results per window, which
        the next layer takes as a window of p frames of m values.
    offsets : str
        In frames, separated by colons: ``-2:0:2``.
    step : int
        Frames from one t to the next.

    Raises
    ------
    ModelError
        For offsets that are not distinct integers.

    Examples
    --------
    In the network description language::

        features = Input(440)                                      # 11 frames of 40
        W1 = Parameter(64, 200)                                    # 5 offsets of 40
        h1 = RectifiedLinear(Plus(TimeConvolution(W1, features, -2:-1:0:1:2), B1))    # 7 frames of 64, B1 is 64x1
        h2 = TimeConvolution(W2, h1, -3:0:3)                       # W2 is m x 192; 1 frame of m

    References
    ----------
    A. Waibel et al., "Phoneme recognition using time-delay neural networks", 1989; V. Peddinti, D. Povey, S. Khudanpur,
    "A time delay neural network architecture", 2015.
    """

    operand_names = ("w", "X")
    options = (Option("offsets", str, positional=True), Option("step", int, 1))

    def infer_shape(self, w: Shape, x: Shape) -> Shape:
        offsets = self._offsets()
        step = self.settings["step"]
        if not isinstance(w.cols, int) or w.cols % len(offsets) or x.rows % (w.cols // len(offsets) or 1):
            raise self.shape_error((w, x), f"w to have {len(offsets)} d columns and X n d rows, d numbers a frame")
        dim = w.cols // len(offsets)
        frames = x.rows // dim
        span = max(offsets) - min(offsets) + 1
        if step < 1 or span > frames:
            raise self.shape_error((w, x), f"offsets that span at most {frames} frames, not {span}, and step >= 1")
        places = range(0, frames - span + 1, step)
        first = min(offsets)
        self.windows = ImageWindows(Image(frames, dim, 1), (0,), places, dim, tuple(o - first for o in offsets))
        return self.infer_product(w, x)

    def _offsets(self) -> list[int]:
        text = self.settings["offsets"]
        try:
            offsets = [int(part) for part in text.split(":")]
        except ValueError:
            raise ModelError(f"{self.where}: offsets={text!r}; expected integers such as -2:0:2") from None
        if len(set(offsets)) < len(offsets):
            raise ModelError(f"{self.where}: offsets={text!r}; expected each number once")
        return offsets
