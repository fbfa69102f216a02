"""Batch normalisation of each row, or of each channel of an image.

Source: S. Ioffe, C. Szegedy, "Batch normalization", 2015, with the arguments and time constants of CNTK in 2016.
"""

import math
from collections.abc import Sequence
from typing import Any

from acoustic.kernels.arrays.elementwise import stored_variance
from acoustic.kernels.image_geometry import image_of
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import WORK, Node, PassContext, register_node
from acoustic.nodes.option import Option
from acoustic.nodes.properties import RANDOM
from readers.errors import ModelError

# Columns of the workspace: m and s, the minibatch's mean m_b and variance v_b, and their weight w.
CENTRE, INVERSE, MEAN, VARIANCE, WEIGHT = range(5)


@register_node("BatchNormalization")
class BatchNormalization(Node):
    """Batch normalisation: ``V = scale (x - m) s + bias`` with ``s = 1 / sqrt(v + epsilon)``, row by row.

    In evaluation m and s are the operands mean and invstd. In training m and v are w times the mean m_b and variance
    v_b of the N values of the row in the minibatch plus 1 - w times the stored statistics, with ``w = 1 -
    blendTimeConstant / (blendTimeConstant + T)``; w is 1 where invstd is 0, which means that nothing is stored yet.
    Columns without a frame are left out. With ``z = (x - m) s`` and sums over the N values::

        dJ/dscale = sum G z        dJ/dbias = sum G
        dJ/dx = scale s (G - w / N (sum G + s (x - m_b) sum G z))

    After a training minibatch, mean and the variance ``1 / invstd^2 - epsilon`` move towards m_b and v_b by the
    fraction ``1 - exp(-T / normalizationTimeConstant)``, and all the way if that constant is 0 or nothing is stored
    yet. All frames of a minibatch are needed, so threads do not share the columns.

    Parameters
    ----------
    x : (rows, T)
    scale, bias : (C, 1)
        C is the number of rows or, with `spatial`, the number of channels of the image in each column.
    mean, invstd : (C, 1)
        Parameters with needGradient=false, which are saved with the model.
    spatial : bool
        Whether all pixels of a channel share their statistics.
    normalizationTimeConstant, blendTimeConstant : float
        In frames.
    epsilon : float
    engine : str
        Without effect: ``cntk`` and ``cudnn`` compute the same.
    imageLayout : str

    Raises
    ------
    ModelError
        When mean or invstd is not a parameter with needGradient=false, or a constant is negative.

    References
    ----------
    Ioffe and Szegedy 2015
    """

    operand_names = ("x", "scale", "bias", "mean", "invstd")
    options = (
        Option("spatial", bool, False),
        Option("normalizationTimeConstant", float, 0.0),  # frames
        Option("blendTimeConstant", float, 0.0),  # frames
        Option("epsilon", float, 1e-5),
        Option("engine", str, "cntk", choices=("cntk", "cudnn")),  # without effect: both compute the same
        Option("imageLayout", str, "HWC", choices=("HWC",)),
    )
    backward_reads = ((0, 1, WORK), (0, WORK), (), None, None)
    properties = frozenset({RANDOM})
    channels: int  # C, set by infer_shape

    def splits_frames(self, *shapes: Shape) -> bool:
        return False

    def frame_by_frame(self, *shapes: Shape) -> bool:
        return True  # evaluation uses the stored statistics

    def infer_shape(self, x: Shape, *columns: Shape) -> Shape:
        spatial = self.settings["spatial"]
        image = image_of(x)
        rows = x.rows
        if spatial:
            if image is None:
                raise self.shape_error((x, *columns), "x to be an image, with spatial")
            rows = image.channels
        if any(column != Shape(rows, 1) for column in columns):
            raise self.shape_error((x, *columns), f"scale, bias, mean and invstd to be {rows}x1")
        for operand in self.operands[3:]:
            if operand is None or not operand.is_stored or operand.needs_gradient:
                source = "nothing" if operand is None else operand.where
                raise ModelError(f"{self.where}: {source} for statistics; expected a Parameter with needGradient=false")
        for name in ("normalizationTimeConstant", "blendTimeConstant", "epsilon"):
            if not self.settings[name] >= 0:
                raise ModelError(f"{self.where}: {name}={self.settings[name]}; expected a number >= 0")
        self.channels = rows
        return x

    def work_shape(self, x: Shape, scale: Shape, *columns: Shape) -> Shape:
        return Shape(scale.rows, 5)

    def _fold(self, matrix: Any) -> Any:
        """View images (rows, T) as columns (C, N) of channels, one column per pixel."""
        return matrix.reshape((self.channels, -1), order="F")

    def forward(
        self, context: PassContext, x: Any, scale: Any, bias: Any, mean: Any, invstd: Any, *, out: Any, work: Any = None
    ) -> None:
        centre = mean
        inverse = invstd
        if context.training:
            work = context.backend.empty(len(scale), 5) if work is None else work
            self._measure(context, x, mean, invstd, work)
            centre = work[:, CENTRE : CENTRE + 1]
            inverse = work[:, INVERSE : INVERSE + 1]
        context.kernels.scale_shift(self._fold(x), centre, inverse * scale, bias, self._fold(out))

    def _measure(self, context: PassContext, x: Any, mean: Any, invstd: Any, work: Any) -> None:
        """Fill the workspace with the statistics of the minibatch."""
        gaps = self._gaps(context)
        real = x if gaps is None else context.xp.asfortranarray(x[:, ~gaps])
        constants = real.shape[1], self.settings["blendTimeConstant"], self.settings["epsilon"]
        context.kernels.batch_statistics(self._fold(real), mean, invstd, *constants, work)

    def _gaps(self, context: PassContext) -> Any:
        """Return which columns have no frame, (T,) bool; None if all have one."""
        gaps = None if context.sequences is None else context.sequences.layout.gaps
        return context.xp.asarray(gaps.reshape(-1)) if gaps is not None and gaps.any() else None

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any, work: Any = None
    ) -> None:
        x, scale = inputs[:2]
        xp = context.xp
        folded_grad = self._fold(grad)
        if x is None:
            grads.add(2, lambda out: context.kernels.sum_columns(folded_grad, out))
            return
        gaps = self._gaps(context)
        num_frames = x.shape[1] - (0 if gaps is None else int(gaps.sum()))
        folded_x = self._fold(x)
        counts = x.shape[1], num_frames * folded_grad.shape[1]
        total, match, *columns = context.kernels.batch_gradient(folded_grad, folded_x, scale, *counts, work)
        grads.add(2, lambda out: xp.copyto(out, total))
        grads.add(1, lambda out: xp.copyto(out, match))
        if grads.needs(0):
            batch_mean = work[:, MEAN : MEAN + 1]

            def write(out: Any) -> None:
                context.kernels.centred_gradient(folded_grad, folded_x, batch_mean, *columns, self._fold(out))
                if gaps is not None:
                    out[:, gaps] = 0

            grads.add(0, write)

    def updated_statistics(
        self, context: PassContext, stored: Sequence[Any], work: Any, num_frames: int
    ) -> dict[int, Any]:
        """Return the new mean and invstd, (C, 1) each."""
        mean = stored[3][:, 0]
        invstd = stored[4][:, 0]
        gaps = self._gaps(context)
        constant = self.settings["normalizationTimeConstant"]
        num_frames -= 0 if gaps is None else int(gaps.sum())
        share = 1 - math.exp(-num_frames / constant) if constant > 0 else 1.0
        share = context.xp.where(invstd > 0, share, 1.0)
        before = stored_variance(context.xp, invstd, self.settings["epsilon"])
        variance = share * work[:, VARIANCE] + (1 - share) * before
        new_mean = share * work[:, MEAN] + (1 - share) * mean
        return {3: new_mean[:, None], 4: (1 / context.xp.sqrt(variance + self.settings["epsilon"]))[:, None]}

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Apply the quotient and product rules, including the change of the minibatch's statistics in training."""
        x, scale, _, mean, invstd = inputs
        xp = context.xp
        folded = self._fold(x)
        step = self._fold(tangents[0])
        centre = mean
        inverse = invstd
        centre_step = 0.0
        inverse_step = 0.0
        if context.training:
            work = context.backend.empty(len(scale), 5)
            self._measure(context, x, mean, invstd, work)
            centre, inverse, batch_mean, _, weight = (work[:, [k]] for k in range(5))
            centre_step = weight * step.mean(axis=1, keepdims=True)
            variance_step = weight * 2 * ((folded - batch_mean) * step).mean(axis=1, keepdims=True)
            inverse_step = -(inverse**3) / 2 * variance_step
        change = scale * ((step - centre_step) * inverse + (folded - centre) * inverse_step)
        change += tangents[1] * (folded - centre) * inverse + tangents[2]
        return xp.asfortranarray(change).reshape(x.shape, order="F")

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        x, scale, bias, mean, invstd = inputs
        folded = graph.reshape(x, (-1, self.channels))
        normalised = graph.add("Mul", graph.add("Sub", folded, mean), graph.add("Mul", invstd, scale))
        return graph.reshape(graph.add("Add", normalised, bias), (-1, graph.shapes[x].rows))
