"""Statistics of the training set, computed before training, and normalisation by them (CNTK book 2.4.4)."""

from collections.abc import Sequence
from typing import Any, ClassVar

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.leaves import StoredNode
from acoustic.nodes.properties import MEAN, NORMALISED

VARIANCE_FLOOR = 1e-10


class StatisticNode(StoredNode):
    """Base of statistics that are computed from all columns of the operands before training.

    `value` is None until then. By default it is a column (rows, 1). Sums are in double precision: they equal the
    running means of the book (eq. 2.155) without their rounding.
    """

    operand_names: ClassVar[tuple[str, ...]] = ("X",)
    is_precomputed = True

    def infer_shape(self, x: Shape, *others: Any, **_: Any) -> Shape:
        return Shape(x.rows, 1)

    def start(self, xp: Any, rows: int) -> dict[str, Any]:
        """Return empty sums."""
        return {"count": 0, "sum": xp.zeros(rows), "squares": xp.zeros(rows)}

    def accumulate(self, tally: dict[str, Any], x: Any, *others: Any) -> None:
        """Add the columns of x (rows, T), and of further operands, to the sums."""
        wide = x.astype("float64")
        tally["count"] += x.shape[1]
        tally["sum"] += wide.sum(axis=1)
        tally["squares"] += (wide * wide).sum(axis=1)

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        """Return the statistic, float64, with its elements in the order of its rows."""
        raise NotImplementedError


@register_node("Mean")
class Mean(StatisticNode):
    """Mean of each row over all frames of the training set, (rows, 1); of labels, the prior of each class.

    Parameters
    ----------
    X : (rows, T)

    References
    ----------
    CNTK book, eq. 2.154 and 2.155.
    """

    properties = frozenset({MEAN})

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        return tally["sum"] / tally["count"]


@register_node("InvStdDev")
class InvStdDev(StatisticNode):
    """Inverse standard deviation of each row over the training set, (rows, 1): ``1 / sqrt(max(v, 1e-10))``.

    v is the population variance of the row.

    Parameters
    ----------
    X : (rows, T)

    References
    ----------
    CNTK book, eq. 2.156 to 2.160.
    """

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        mean = tally["sum"] / tally["count"]
        variance = tally["squares"] / tally["count"] - mean * mean
        return 1 / xp.sqrt(xp.maximum(variance, VARIANCE_FLOOR))


class NormalisationNode(Node):
    """Base of mean and variance normalisation; the statistics have no gradient."""

    operand_names = ("X", "mean", "invStdDev")
    backward_reads = ((2,), None, None)

    def infer_shape(self, x: Shape, mean: Shape, inv_std: Shape) -> Shape:
        if mean != Shape(x.rows, 1) or inv_std != Shape(x.rows, 1):
            raise self.shape_error((x, mean, inv_std), f"mean and invStdDev to be {x.rows}x1")
        return x


@register_node("PerDimMeanVarNormalization", "PerDimMVNorm", "PerDimMeanVarNorm")
class PerDimMeanVarNormalization(NormalisationNode):
    """Mean and variance normalisation of each row: ``V = (X - mean) * invStdDev``.

    The gradient is ``dJ/dX = G * invStdDev``.

    Parameters
    ----------
    X : (rows, T)
    mean, invStdDev : (rows, 1)

    References
    ----------
    CNTK book, eq. 2.161.
    """

    properties = frozenset({NORMALISED})

    def forward(self, context: PassContext, x: Any, mean: Any, inv_std: Any, *, out: Any) -> None:
        context.kernels.normalise(x, mean, inv_std, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.multiply(grad, inputs[2], out=out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0] * inputs[2]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        x, mean, inv_std = inputs
        return graph.add("Mul", graph.add("Sub", x, mean), inv_std)


@register_node("PerDimMeanVarDeNormalization", "PerDimMVDeNorm")
class PerDimMeanVarDeNormalization(NormalisationNode):
    """Inverse of mean and variance normalisation: ``V = X / invStdDev + mean``.

    The gradient is ``dJ/dX = G / invStdDev``.

    Parameters
    ----------
    X : (rows, T)
    mean, invStdDev : (rows, 1)

    References
    ----------
    CNTK book 4.1.4.32.
    """

    def forward(self, context: PassContext, x: Any, mean: Any, inv_std: Any, *, out: Any) -> None:
        context.xp.divide(x, inv_std, out=out)
        context.xp.add(out, mean, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        grads.add(0, lambda out: context.xp.divide(grad, inputs[2], out=out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0] / inputs[2]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        x, mean, inv_std = inputs
        return graph.add("Add", graph.add("Div", x, inv_std), mean)
