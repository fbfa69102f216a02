"""Classes as sums of sub-classes, the counterpart of the components of Gaussian mixtures.

Source: D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging",
2015, appendix C.5.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import VALUE, Node, PassContext, register_node
from acoustic.nodes.option import Option
from acoustic.nodes.properties import LOG_SUM_GROUPS
from readers.common.text import is_count


@register_node("LogSumGroups")
class LogSumGroups(Node):
    """Log of the sum of exponentials of each group of rows: ``v_g = ln sum of exp x_i`` over the rows i of group g.

    The softmax of V is the softmax of X summed over each group: the sum-group layer of the source, before the softmax.
    The gradient is ``dJ/dx_i = G_g exp(x_i - v_g)``.

    Parameters
    ----------
    X : (rows, cols)
        The rows of a group are consecutive.
    sizes : str
        The sizes of the groups, separated by colons: ``2:1:3``. V has shape (groups, cols).

    References
    ----------
    Povey, Zhang and Khudanpur 2015, appendix C.5.
    """

    properties = frozenset({LOG_SUM_GROUPS})
    operand_names = ("X",)
    options = (Option("sizes", str),)
    backward_reads = ((0, VALUE),)

    @property
    def sizes(self) -> list[int] | None:
        """The sizes of the groups; None if the option is not a list of positive integers."""
        parts = self.settings["sizes"].split(":")
        return [int(part) for part in parts] if all(is_count(part) and int(part) > 0 for part in parts) else None

    def infer_shape(self, x: Shape) -> Shape:
        sizes = self.sizes
        if sizes is None:
            raise self.shape_error(
                (x,), f"sizes={shortened(self.settings['sizes'])} to be integers above 0, separated by colons"
            )
        if sum(sizes) != x.rows:
            raise self.shape_error((x,), f"{sum(sizes)} rows, the sum of sizes={shortened(self.settings['sizes'])}")
        return Shape(len(sizes), x.cols)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        context.kernels.log_sum_groups(x, first_rows(self.settings["sizes"]), out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        first = first_rows(self.settings["sizes"])
        grads.add(0, lambda out: context.kernels.log_sum_groups_gradient(grad, value, inputs[0], first, out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """d ln s = ds / s, where s is the sum of exp x and ds the sum of exp(x) dx."""
        parts = [slice(a, b) for a, b in pairwise(first_rows(self.settings["sizes"]).tolist())]
        xp = context.xp
        (x,) = inputs
        (dx,) = tangents
        rows = [(xp.exp(x[part]) * dx[part]).sum(axis=0) / xp.exp(x[part]).sum(axis=0) for part in parts]
        return xp.stack(rows)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        """Subtract the largest element of each column from all groups: a group 80 and more below it is lost."""
        first = first_rows(self.settings["sizes"])
        members = np.zeros((int(first[-1]), len(first) - 1), np.float32)
        members[np.arange(first[-1]), np.repeat(np.arange(len(first) - 1), np.diff(first))] = 1
        top = graph.add("ReduceMax", *inputs, axes=[1], keepdims=1)
        total = graph.add("MatMul", graph.add("Exp", graph.add("Sub", *inputs, top)), graph.constant(members))
        floored = graph.add("Max", total, graph.constant(np.finfo(np.float32).tiny))
        return graph.add("Add", graph.add("Log", floored), top)


@lru_cache(maxsize=8)
def first_rows(sizes: str) -> np.ndarray:
    """Return the first row of every group and, last, the number of rows, int64."""
    return np.concatenate([[0], np.cumsum([int(size) for size in sizes.split(":")])]).astype(np.int64)


def shortened(sizes: str) -> str:
    return sizes if len(sizes) < 40 else f"{sizes[:37]}..."
