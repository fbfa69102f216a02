"""Peephole rewriting: chains that one pass over memory can do become one execution step.

A rule looks at a node and answers the node that does the work of its chain, under the same name, or None.  Inner
nodes must have no other user and nobody may ask for their values.  Fused nodes live in the engine alone: no registry,
no file and no description knows them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from acoustic.engine.planning.fused_convolution import ConvolutionPooling
from acoustic.nodes.base import VALUE, Node, Run, Shape
from acoustic.nodes.convolution import Convolution
from acoustic.nodes.elementwise import RectifiedLinear, Sigmoid, Tanh
from acoustic.nodes.pooling import MaxPooling
from acoustic.nodes.sums import Plus

IsInner = Callable[[Node], bool]
ACTIVATIONS = {Sigmoid: "sigmoid", Tanh: "tanh", RectifiedLinear: "relu"}


class BiasActivation(Node):
    """V = f(X + b): Plus and Sigmoid, Tanh or RectifiedLinear in one step; X (m, T), b (m, 1), or a number per channel.

    D = G f'(X + b), written over G; dJ/dX = D, dJ/db = the sum of D's columns.  Images are taken for columns of pixels.
    """

    type_name = "BiasActivation"
    operand_names = ("X", "b")
    backward_reads = ((VALUE,), (VALUE,))
    value_in_place = (0,)
    gradient_in_place = (0,)

    def __init__(self, name: str, operands: Sequence[Node], kind: str) -> None:
        super().__init__(name, operands)
        self.kind = kind

    def infer_shape(self, x: Shape, b: Shape) -> Shape:
        return x

    def repeats_calls(self, *shapes: Shape) -> bool:
        return True

    def forward(self, run: Run, x: Any, b: Any, *, out: Any) -> None:
        if out is not x:
            run.kernels.copy(x, out)
        run.kernels.bias_activation(self.kind, out.reshape((b.shape[0], -1), order="F"), b)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        def write(bias_grad: Any) -> None:
            folded = grad, value
            if bias_grad is not None:
                folded = (matrix.reshape((bias_grad.shape[0], -1), order="F") for matrix in folded)
            run.kernels.bias_activation_gradient(self.kind, *folded, bias_grad)

        if into.needs(1):
            into.add(1, write)
        else:
            write(None)
        into.add_matrix(0, grad)


def bias_activation(node: Node, shapes: dict[str, Shape], is_inner: IsInner) -> Node | None:
    """f(X + b), the sum in either order."""
    found = _biased(node, shapes, is_inner)
    if found is None:
        return None
    kind, x, bias = found
    return BiasActivation(node.name, [x, bias], kind)


def _biased(node: Node, shapes: dict[str, Shape], is_inner: IsInner) -> tuple[str, Node, Node] | None:
    """(f, X, b) of f(X + b), b a column that fits."""
    kind = ACTIVATIONS.get(type(node))
    if kind is None or not isinstance(plus := node.operands[0], Plus) or not is_inner(plus):
        return None
    for x, bias in (plus.operands, plus.operands[::-1]):
        column = shapes[bias.name]
        fits = (
            column.cols == 1
            and shapes[x.name].rows % column.rows == 0
            and (column.rows > 1 or shapes[x.name].rows == 1)
        )
        if shapes[x.name] == shapes[plus.name] and fits and x is not bias:
            return kind, x, bias
    return None


def convolution_pooling(node: Node, shapes: dict[str, Shape], is_inner: IsInner) -> Node | None:
    """MaxPooling(f(Convolution(w, image) + b)), the sum in either order."""
    if type(node) is not MaxPooling or not is_inner(node.operands[0]):
        return None
    found = _biased(node.operands[0], shapes, is_inner)
    if found is None:
        return None
    kind, convolution, bias = found
    if type(convolution) is not Convolution or not is_inner(convolution):
        return None
    if shapes[bias.name].rows != convolution.settings["outputChannels"]:
        return None
    return ConvolutionPooling(node.name, [*convolution.operands, bias], kind, (convolution, node))


RULES: tuple[Callable[[Node, dict[str, Shape], IsInner], Node | None], ...] = (bias_activation, convolution_pooling)


def fuse(order: Sequence[Node], shapes: dict[str, Shape], wanted: set[str]) -> dict[str, Node]:
    """Fused nodes by the name of the node they stand for.  wanted: names whose values must stay."""
    users: dict[str, int] = {}
    for node in order:
        for operand in node.operands:
            users[operand.name] = users.get(operand.name, 0) + 1

    def is_inner(node: Node) -> bool:
        return users.get(node.name) == 1 and node.name not in wanted

    fused = {}
    for node in order:
        replacement = next(filter(None, (rule(node, shapes, is_inner) for rule in RULES)), None)
        if replacement is not None:
            fused[node.name] = replacement
    return fused
