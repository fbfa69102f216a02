"""Training and evaluation criteria: scalars, summed over the frames (CNTK book 2.4.3 and 4.1.4.22 to 4.1.4.25)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.arrays.elementwise import LOG_FLOOR, LOG_OF_FLOOR
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import WORK, Node, PassContext, register_node
from acoustic.nodes.properties import CROSS_ENTROPY, ERROR_COUNT, OF_SOFTMAX
from readers.minibatches.indicators import Indicators


class CriterionNode(Node):
    """Base of criteria: two operands of one shape and a scalar value."""

    sums_frames = True

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        if x != y:
            raise self.shape_error((x, y), "equal shapes")
        return Shape(1, 1)


def scalar(terms: Any) -> Any:
    """Return the sum of a matrix as a matrix (1, 1)."""
    return terms.sum().reshape(1, 1)


def label_rows(labels: Any) -> Any:
    """Return the row of the 1 in each column of one-hot Indicators, (T,), -1 for none; None for other labels."""
    if isinstance(labels, Indicators) and len(labels.numbers) == 1:
        return labels.numbers[0]
    return None


@register_node("SquareError", "SE")
class SquareError(CriterionNode):
    """Half the sum of squared differences, ``sum of (X - Y)^2 / 2``, a scalar.

    The gradients are ``dJ/dX = G (X - Y)`` and ``dJ/dY = -G (X - Y)``.

    Parameters
    ----------
    X, Y : (rows, T)

    References
    ----------
    CNTK book, eq. 2.112 to 2.114.
    """

    operand_names = ("X", "Y")
    backward_reads = ((0, 1), (0, 1))

    def forward(self, context: PassContext, x: Any, y: Any, *, out: Any) -> None:
        difference = x - y
        out[...] = context.xp.vdot(difference, difference) / 2

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        x, y = inputs

        def write(first: Any, second: Any, out: Any) -> None:
            context.xp.subtract(first, second, out=out)
            context.xp.multiply(out, grad, out=out)

        grads.add(0, lambda out: write(x, y, out))
        grads.add(1, lambda out: write(y, x, out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return scalar((inputs[0] - inputs[1]) * (tangents[0] - tangents[1]))


@register_node("CrossEntropy")
class CrossEntropy(CriterionNode):
    """Cross entropy of labels and probabilities, ``-sum of labels * ln p``, a scalar.

    The gradients are ``dJ/dlabels = -G ln p`` and ``dJ/dp = -G labels / p``. The logarithm has the floor of Log.

    Parameters
    ----------
    labels, p : (rows, T)
        A probability distribution in each column.

    References
    ----------
    CNTK book, eq. 2.117 to 2.120.
    """

    properties = frozenset({CROSS_ENTROPY})
    operand_names = ("labels", "p")
    backward_reads = ((1,), (0, 1))

    def forward(self, context: PassContext, labels: Any, p: Any, *, out: Any) -> None:
        logarithm = context.xp.empty_like(p)
        context.kernels.log(p, logarithm)
        out[...] = -(labels * logarithm).sum()

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        labels, p = inputs

        def write_labels(out: Any) -> None:
            context.kernels.log(p, out)
            context.xp.multiply(out, -grad, out=out)

        def write_p(out: Any) -> None:
            low = p < LOG_FLOOR
            context.xp.divide(labels, context.xp.where(low, 1, p), out=out)
            context.xp.multiply(out, -grad, out=out)
            out[low] = 0  # the logarithm is constant there

        grads.add(0, write_labels)
        grads.add(1, write_p)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return _cross_entropy_tangent(context.xp, *inputs, *tangents)


def _cross_entropy_tangent(xp: Any, labels: Any, p: Any, dlabels: Any, dp: Any) -> Any:
    low = p < LOG_FLOOR
    logarithm = xp.where(low, LOG_OF_FLOOR, xp.log(xp.where(low, 1, p)))
    return -scalar(dlabels * logarithm + labels * xp.where(low, 0, dp / xp.where(low, 1, p)))


@register_node("CrossEntropyWithSoftmax", "CEWithSM")
class CrossEntropyWithSoftmax(CriterionNode):
    """Cross entropy of labels and the softmax of z, ``-sum of labels * ln softmax(z)``, a scalar.

    The gradients are ``dJ/dlabels = -G ln softmax(z)`` and ``dJ/dz = G (m softmax(z) - labels)``, where m is the sum of
    a column of labels, 1 in the book. `forward` leaves the bracket in the workspace, so that one sweep over the columns
    computes value and gradient. Labels may be given as `Indicators`.

    Parameters
    ----------
    labels : (rows, T)
        A probability distribution in each column, usually one-hot.
    z : (rows, T)
        The input of the softmax.

    References
    ----------
    CNTK book, eq. 2.125 to 2.129; eq. 2.127 lacks the minus of 2.118.
    """

    properties = frozenset({OF_SOFTMAX, CROSS_ENTROPY})
    operand_names = ("labels", "z")
    backward_reads = ((1,), (WORK,))

    def work_shape(self, labels: Shape, z: Shape) -> Shape:
        return z

    def forward(self, context: PassContext, labels: Any, z: Any, *, out: Any, work: Any = None) -> None:
        if (numbers := label_rows(labels)) is not None:
            context.kernels.cross_entropy_numbers(numbers, z, out, work)
        else:
            context.kernels.cross_entropy_softmax(context.backend.asarray(labels), z, out, work)

    def backward(
        self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any, work: Any = None
    ) -> None:
        def write_labels(out: Any) -> None:
            context.kernels.log_softmax(inputs[1], out)
            context.xp.multiply(out, -grad, out=out)

        grads.add(0, write_labels)
        grads.add(1, lambda out: context.kernels.scale(work, grad, out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """With ln softmax(z) = z - ln s: minus the sum of dlabels (z - ln s) + labels (dz - ds / s)."""
        labels, z = inputs
        dlabels, dz = tangents
        z = z - z.max(axis=0)
        s = context.xp.exp(z).sum(axis=0)
        ds = (context.xp.exp(z) * dz).sum(axis=0)
        return -scalar(dlabels * (z - context.xp.log(s)) + labels * (dz - ds / s))


@register_node("Logistic")
class Logistic(CriterionNode):
    """Cross entropy of binary labels, ``-sum of labels * ln p + (1 - labels) * ln(1 - p)``, a scalar.

    The gradients are ``dJ/dlabels = G (ln(1 - p) - ln p)`` and ``dJ/dp = -G (labels / p - (1 - labels) / (1 - p))``.
    The logarithms have the floor of Log. Not in the book: it is the Logistic of CNTK in 2016 without weights.

    Parameters
    ----------
    labels : (rows, T)
        From 0 to 1.
    p : (rows, T)
        Probabilities.
    """

    operand_names = ("labels", "p")
    backward_reads = ((1,), (0, 1))

    def forward(self, context: PassContext, labels: Any, p: Any, *, out: Any) -> None:
        yes, no = self._logarithms(context, p)
        out[...] = -(labels * yes + (1 - labels) * no).sum()

    def _logarithms(self, context: PassContext, p: Any) -> tuple[Any, Any]:
        yes = context.xp.empty_like(p)
        no = context.xp.empty_like(p)
        context.kernels.log(p, yes)
        context.kernels.log(1 - p, no)
        return yes, no

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        labels, p = inputs

        def write_labels(out: Any) -> None:
            yes, no = self._logarithms(context, p)
            context.xp.subtract(no, yes, out=out)
            context.xp.multiply(out, grad, out=out)

        def write_p(out: Any) -> None:
            low = p < LOG_FLOOR
            high = 1 - p < LOG_FLOOR
            out[...] = context.xp.where(high, 0, (1 - labels) / context.xp.where(high, 1, 1 - p))
            out -= context.xp.where(low, 0, labels / context.xp.where(low, 1, p))
            context.xp.multiply(out, grad, out=out)

        grads.add(0, write_labels)
        grads.add(1, write_p)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Add the tangents of two cross entropies: of labels and p, and of 1 - labels and 1 - p."""
        terms = ((inputs, tangents), ([1 - x for x in inputs], [-x for x in tangents]))
        return sum(_cross_entropy_tangent(context.xp, *x, *dx) for x, dx in terms)


@register_node("ErrorPrediction", "ClassificationError")
class ErrorPrediction(CriterionNode):
    """Number of columns whose largest elements in `labels` and `z` are in different rows, a scalar.

    It has no gradient.

    Parameters
    ----------
    labels, z : (rows, T)

    References
    ----------
    CNTK book, eq. 2.109 to 2.111.
    """

    properties = frozenset({ERROR_COUNT})
    operand_names = ("labels", "z")

    def forward(self, context: PassContext, labels: Any, z: Any, *, out: Any) -> None:
        if (numbers := label_rows(labels)) is not None:
            context.kernels.count_errors_numbers(numbers, z, out)
        else:
            context.kernels.count_errors(context.backend.asarray(labels), z, out)


@register_node("DummyCriterion")
class DummyCriterion(Node):
    """Criterion whose value and gradient are inputs: ``sum of objectives``, a scalar, with ``dJ/dz = G derivatives``.

    Another program computes both, for instance from lattices. The objectives and derivatives have no gradient.

    Parameters
    ----------
    objectives : (1, T)
        The value of each frame.
    derivatives : (rows, T)
        The derivative of the criterion with respect to z.
    z : (rows, T)
        Output of the network.

    References
    ----------
    CNTK in 2015 and 2016, where objectives has one column for the minibatch
    """

    operand_names = ("objectives", "derivatives", "z")
    backward_reads = (None, None, (1,))
    sums_frames = True

    def infer_shape(self, objectives: Shape, derivatives: Shape, z: Shape) -> Shape:
        if objectives != Shape(1, z.cols) or derivatives != z:
            raise self.shape_error((objectives, derivatives, z), "1 row of objectives, and derivatives as z")
        return Shape(1, 1)

    def forward(self, context: PassContext, objectives: Any, derivatives: Any, z: Any, *, out: Any) -> None:
        out[...] = objectives.sum()

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(2, lambda out: context.xp.multiply(inputs[1], grad, out=out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return scalar(inputs[1] * tangents[2])
