"""Criteria: scalars (1, 1), summed over the frames (book 2.4.3, 4.1.4.22 ff.)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.arrays.elementwise import LOG_FLOOR, LOG_OF_FLOOR
from acoustic.nodes.base import WORK, Node, Run, Shape, register_node
from readers.minibatches.indicators import Indicators


class CriterionNode(Node):
    """Base: two operands of one shape, a scalar value."""

    sums_frames = True

    def infer_shape(self, x: Shape, y: Shape) -> Shape:
        if x != y:
            raise self.shape_error((x, y), "equal shapes")
        return Shape(1, 1)


def scalar(terms: Any) -> Any:
    """The sum of a matrix as a matrix (1, 1)."""
    return terms.sum().reshape(1, 1)


def one_number(labels: Any) -> Any:
    """(T,): which row is 1 in each column of labels given as Indicators, -1: none; None for others."""
    if isinstance(labels, Indicators) and len(labels.numbers) == 1:
        return labels.numbers[0]
    return None


@register_node("SquareError", "SE")
class SquareError(CriterionNode):
    """v = half the sum of (X - Y)^2; dJ/dX = G (X - Y), dJ/dY = -G (X - Y).  [eq. 2.112 to 2.114]"""

    operand_names = ("X", "Y")
    backward_reads = ((0, 1), (0, 1))

    def forward(self, run: Run, x: Any, y: Any, *, out: Any) -> None:
        difference = x - y
        out[...] = run.xp.vdot(difference, difference) / 2

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        x, y = inputs

        def write(first: Any, second: Any, out: Any) -> None:
            run.xp.subtract(first, second, out=out)
            run.xp.multiply(out, grad, out=out)

        into.add(0, lambda out: write(x, y, out))
        into.add(1, lambda out: write(y, x, out))

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return scalar((inputs[0] - inputs[1]) * (tangents[0] - tangents[1]))


@register_node("CrossEntropy")
class CrossEntropy(CriterionNode):
    """v = -sum of labels * ln p; dJ/dlabels = -G ln p, dJ/dp = -G labels / p.  [eq. 2.117 to 2.120]

    labels and p hold a probability distribution in each column; ln p has Log's floor.
    """

    operand_names = ("labels", "p")
    backward_reads = ((1,), (0, 1))

    def forward(self, run: Run, labels: Any, p: Any, *, out: Any) -> None:
        logarithm = run.xp.empty_like(p)
        run.kernels.log(p, logarithm)
        out[...] = -(labels * logarithm).sum()

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        labels, p = inputs

        def write_labels(out: Any) -> None:
            run.kernels.log(p, out)
            run.xp.multiply(out, -grad, out=out)

        def write_p(out: Any) -> None:
            low = p < LOG_FLOOR
            run.xp.divide(labels, run.xp.where(low, 1, p), out=out)
            run.xp.multiply(out, -grad, out=out)
            out[low] = 0  # the logarithm is constant there

        into.add(0, write_labels)
        into.add(1, write_p)

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (labels, p), (dlabels, dp), xp = inputs, tangents, run.xp
        low = p < LOG_FLOOR
        logarithm = xp.where(low, LOG_OF_FLOOR, xp.log(xp.where(low, 1, p)))
        return -scalar(dlabels * logarithm + labels * xp.where(low, 0, dp / xp.where(low, 1, p)))


@register_node("CrossEntropyWithSoftmax", "CEWithSM")
class CrossEntropyWithSoftmax(CriterionNode):
    """v = -sum of labels * ln softmax(z); dJ/dlabels = -G ln softmax(z), dJ/dz = G (softmax(z) m - labels).

    m is the sum of a column of labels, 1 in the book.  [eq. 2.125 to 2.129; 2.127 lacks the minus that 2.118 has]
    `forward` leaves the bracket in the workspace, so that one pass over the columns does it all.  Labels that an input
    gives as Indicators stay numbers.
    """

    operand_names = ("labels", "z")
    backward_reads = ((1,), (WORK,))
    takes_indicators = (0,)

    def work_shape(self, labels: Shape, z: Shape) -> Shape:
        return z

    def repeats_calls(self, *shapes: Shape) -> bool:
        return self.operands[0].is_input  # no gradient of the labels

    def forward(self, run: Run, labels: Any, z: Any, *, out: Any, work: Any = None) -> None:
        if (numbers := one_number(labels)) is not None:
            run.kernels.cross_entropy_numbers(numbers, z, out, work)
        else:
            run.kernels.cross_entropy_softmax(run.backend.asarray(labels), z, out, work)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any, work: Any) -> None:
        def write_labels(out: Any) -> None:
            run.kernels.log_softmax(inputs[1], out)
            run.xp.multiply(out, -grad, out=out)

        into.add(0, write_labels)
        into.add(1, lambda out: run.kernels.scale(work, grad, out))

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """ln softmax(z) = z - ln s; so -sum of dlabels (z - ln s) + labels (dz - ds / s)."""
        (labels, z), (dlabels, dz) = inputs, tangents
        z = z - z.max(axis=0)
        s = run.xp.exp(z).sum(axis=0)
        ds = (run.xp.exp(z) * dz).sum(axis=0)
        return -scalar(dlabels * (z - run.xp.log(s)) + labels * (dz - ds / s))


@register_node("Logistic")
class Logistic(CriterionNode):
    """v = -sum of labels * ln p + (1 - labels) * ln(1 - p); dJ/dlabels = G (ln(1 - p) - ln p),
    dJ/dp = -G (labels / p - (1 - labels) / (1 - p)).

    p holds probabilities, labels 0 or 1, or shares between them; the logarithms have Log's floor.
    [not in the book; 2016's Logistic, without its weights]
    """

    operand_names = ("labels", "p")
    backward_reads = ((1,), (0, 1))

    def forward(self, run: Run, labels: Any, p: Any, *, out: Any) -> None:
        yes, no = self._logarithms(run, p)
        out[...] = -(labels * yes + (1 - labels) * no).sum()

    def _logarithms(self, run: Run, p: Any) -> tuple[Any, Any]:
        yes, no = run.xp.empty_like(p), run.xp.empty_like(p)
        run.kernels.log(p, yes)
        run.kernels.log(1 - p, no)
        return yes, no

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        labels, p = inputs

        def write_labels(out: Any) -> None:
            yes, no = self._logarithms(run, p)
            run.xp.subtract(no, yes, out=out)
            run.xp.multiply(out, grad, out=out)

        def write_p(out: Any) -> None:
            low, high = p < LOG_FLOOR, 1 - p < LOG_FLOOR
            out[...] = run.xp.where(high, 0, (1 - labels) / run.xp.where(high, 1, 1 - p))
            out -= run.xp.where(low, 0, labels / run.xp.where(low, 1, p))
            run.xp.multiply(out, grad, out=out)

        into.add(0, write_labels)
        into.add(1, write_p)

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Both terms are those of a cross-entropy; of labels and p, and of what they lack of 1."""
        terms = ((inputs, tangents), ([1 - x for x in inputs], [-x for x in tangents]))
        return sum(CrossEntropy.tangent(self, run, *term) for term in terms)


@register_node("ErrorPrediction", "ClassificationError")
class ErrorPrediction(CriterionNode):
    """v = number of columns in which labels and z have their largest element in different rows.  [eq. 2.109 to 2.111]

    Has no gradient.
    """

    operand_names = ("labels", "z")
    takes_indicators = (0,)

    def repeats_calls(self, *shapes: Shape) -> bool:
        return True

    def forward(self, run: Run, labels: Any, z: Any, *, out: Any) -> None:
        if (numbers := one_number(labels)) is not None:
            run.kernels.count_errors_numbers(numbers, z, out)
        else:
            run.kernels.count_errors(run.backend.asarray(labels), z, out)
