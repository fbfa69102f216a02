"""Statistics of the whole training set, computed before training, and the normalisation by them (book 2.4.4)."""

from collections.abc import Sequence
from typing import Any

from acoustic.nodes.base import Node, Run, Shape, register_node
from acoustic.nodes.leaves import StoredNode

VARIANCE_FLOOR = 1e-10


class StatisticNode(StoredNode):
    """A matrix gathered from all columns of the operands; `value` is None until the sweep is done.

    Here a column (rows, 1) from the columns of X.  Sums are kept in double precision: the book's running means
    (eq. 2.155) without their rounding.
    """

    operand_names = ("X",)
    is_precomputed = True

    def infer_shape(self, x: Shape) -> Shape:
        return Shape(x.rows, 1)

    def start(self, xp: Any, rows: int) -> dict[str, Any]:
        """An empty tally."""
        return {"count": 0, "sum": xp.zeros(rows), "squares": xp.zeros(rows)}

    def accumulate(self, tally: dict[str, Any], x: Any) -> None:
        """Add the columns of x (rows, T), and of further operands, to the tally."""
        wide = x.astype("float64")
        tally["count"] += x.shape[1]
        tally["sum"] += wide.sum(axis=1)
        tally["squares"] += (wide * wide).sum(axis=1)

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        """The statistic, float64, its elements in the order of its rows."""
        raise NotImplementedError


@register_node("Mean")
class Mean(StatisticNode):
    """The mean of each row over all frames; of labels, the prior of each class.  [eq. 2.154, 2.155]"""

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        return tally["sum"] / tally["count"]


@register_node("InvStdDev")
class InvStdDev(StatisticNode):
    """1 / sqrt(max(v, 1e-10)) of each row, v the population variance over all frames.  [eq. 2.156 to 2.160]"""

    def finish(self, xp: Any, tally: dict[str, Any]) -> Any:
        mean = tally["sum"] / tally["count"]
        variance = tally["squares"] / tally["count"] - mean * mean
        return 1 / xp.sqrt(xp.maximum(variance, VARIANCE_FLOOR))


class NormalisationNode(Node):
    """Base of the two below: their operands.  The statistics are no parameters: they have no gradient."""

    operand_names = ("X", "mean", "invStdDev")
    backward_reads = ((2,), None, None)
    value_in_place = (0,)
    gradient_in_place = (0,)

    def infer_shape(self, x: Shape, mean: Shape, inv_std: Shape) -> Shape:
        if mean != Shape(x.rows, 1) or inv_std != Shape(x.rows, 1):
            raise self.shape_error((x, mean, inv_std), f"mean and invStdDev to be {x.rows}x1")
        return x


@register_node("PerDimMeanVarNormalization", "PerDimMVNorm", "PerDimMeanVarNorm")
class PerDimMeanVarNormalization(NormalisationNode):
    """V = (X - mean) * invStdDev, the columns (rows, 1) repeated; dJ/dX = G * invStdDev.  [eq. 2.161]"""

    def repeats_calls(self, *shapes: Shape) -> bool:
        return self.operands[0].is_input  # its gradient is not asked for

    def forward(self, run: Run, x: Any, mean: Any, inv_std: Any, *, out: Any) -> None:
        run.kernels.normalise(x, mean, inv_std, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.xp.multiply(grad, inputs[2], out=out))

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0] * inputs[2]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        x, mean, inv_std = inputs
        return graph.add("Mul", graph.add("Sub", x, mean), inv_std)


@register_node("PerDimMeanVarDeNormalization", "PerDimMVDeNorm")
class PerDimMeanVarDeNormalization(NormalisationNode):
    """V = X / invStdDev + mean, the columns (rows, 1) repeated; dJ/dX = G / invStdDev.  [book 4.1.4.32]"""

    def forward(self, run: Run, x: Any, mean: Any, inv_std: Any, *, out: Any) -> None:
        run.xp.divide(x, inv_std, out=out)
        run.xp.add(out, mean, out=out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        into.add(0, lambda out: run.xp.divide(grad, inputs[2], out=out))

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return tangents[0] / inputs[2]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        x, mean, inv_std = inputs
        return graph.add("Add", graph.add("Div", x, inv_std), mean)
