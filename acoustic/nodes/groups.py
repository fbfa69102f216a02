"""Nonlinearities that reduce every group of rows to one row: p-norm and maxout.

Sources: X. Zhang, J. Trmal, D. Povey, S. Khudanpur, "Improving deep neural network acoustic models using generalized
maxout networks", ICASSP 2014; I. Goodfellow et al., "Maxout networks", ICML 2013.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import VALUE, Node, PassContext, register_node
from acoustic.nodes.option import Option


class GroupNode(Node):
    """Base of group nonlinearities: X is (groups * groupSize, cols) with consecutive groups, V is (groups, cols)."""

    operand_names = ("X",)
    options: ClassVar[tuple[Option, ...]] = (Option("groupSize", int, positional=True),)

    def infer_shape(self, x: Shape) -> Shape:
        size = self.settings["groupSize"]
        if size < 1 or x.rows % size:
            raise self.shape_error((x,), f"a multiple of groupSize={size} rows")
        return Shape(x.rows // size, x.cols)

    def _groups(self, x: Any) -> Any:
        """View a matrix as (groupSize, groups, cols)."""
        size = self.settings["groupSize"]
        return x.reshape((size, x.shape[0] // size, x.shape[1]), order="F")

    def groups_in_onnx(self, graph: Any, x: str) -> str:
        """Reshape the tensor of X to (cols, groups, groupSize)."""
        size = self.settings["groupSize"]
        return graph.reshape(x, (-1, graph.shapes[x].rows // size, size))


@register_node("PNorm")
class PNorm(GroupNode):
    """p-norm of each group of rows: ``v = (sum of |x_i|^p)^(1/p)``.

    The gradient is ``dJ/dx_i = G sign(x_i) (|x_i| / v)^(p-1)``, and 0 where v = 0.

    Parameters
    ----------
    X : (rows, cols)
    groupSize : int
        Rows of a group, which are consecutive. V has shape (rows / groupSize, cols).
    p : float
        At least 1.

    References
    ----------
    Zhang, Trmal, Povey and Khudanpur 2014.
    """

    options = (*GroupNode.options, Option("p", float, 2.0))
    backward_reads = ((0, VALUE),)

    def infer_shape(self, x: Shape) -> Shape:
        if not 1 <= self.settings["p"] < float("inf"):
            raise self.shape_error(
                (x,), f"p={self.settings['p']:g} to be finite and at least 1; for the largest element use Maxout"
            )
        return super().infer_shape(x)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        if self.settings["p"] == 2:
            context.kernels.group_norms(x, out)
            return
        magnitude = context.xp.absolute(self._groups(x))
        largest = magnitude.max(axis=0)  # factored out, so that no power overflows
        scale = context.xp.where(largest == 0, 1, largest)
        power = ((magnitude / scale) ** self.settings["p"]).sum(axis=0)
        context.xp.multiply(largest, power ** (1 / self.settings["p"]), out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        xp = context.xp
        p = self.settings["p"]
        if p == 2:
            grads.add(0, lambda out: context.kernels.group_norms_gradient(grad, value, inputs[0], out))
            return

        def write(out: Any) -> None:
            ratio = self._groups(inputs[0]) / xp.where(value == 0, 1, value)
            slope = xp.sign(ratio) * xp.absolute(ratio) ** (p - 1)
            xp.multiply(slope, grad, out=self._groups(out))

        grads.add(0, write)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """d s^(1/p) = s^(1/p - 1) ds / p, where ds is the sum of p |x|^(p-1) sign(x) dx."""
        xp = context.xp
        p = self.settings["p"]
        x = self._groups(inputs[0])
        dx = self._groups(tangents[0])
        s = (abs(x) ** p).sum(axis=0)
        ds = (p * abs(x) ** (p - 1) * xp.where(x < 0, -1, xp.where(x > 0, 1, 0)) * dx).sum(axis=0)
        return xp.where(s > 0, xp.where(s > 0, s, 1) ** (1 / p - 1) * ds / p, 0)

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        p = self.settings["p"]
        magnitude = graph.add("Abs", self.groups_in_onnx(graph, *inputs))
        total = graph.add("ReduceSum", graph.add("Pow", magnitude, graph.constant(p)), graph.constant([2]), keepdims=0)
        return graph.add("Pow", total, graph.constant(1 / p))


@register_node("Maxout")
class Maxout(GroupNode):
    """Largest element of each group of rows.

    The gradient of that element is G, of equal ones the first's, and 0 for the others.

    Parameters
    ----------
    X : (rows, cols)
    groupSize : int
        Rows of a group, which are consecutive. V has shape (rows / groupSize, cols).

    References
    ----------
    Goodfellow et al. 2013.
    """

    backward_reads = ((0,),)

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        self._groups(x).max(axis=0, out=out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        xp = context.xp
        groups = self._groups(inputs[0])

        def write(out: Any) -> None:
            rows = xp.arange(groups.shape[0])[:, None, None]
            xp.multiply(groups.argmax(axis=0) == rows, grad, out=self._groups(out))

        grads.add(0, write)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        x = self._groups(inputs[0])
        dx = self._groups(tangents[0])
        return context.xp.take_along_axis(dx, x.argmax(axis=0)[None], axis=0)[0]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.add("ReduceMax", self.groups_in_onnx(graph, *inputs), axes=[2], keepdims=0)
