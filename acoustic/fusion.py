"""Peephole rewriting: chains that one pass over memory can do become one execution step.

A rule looks at a node and answers the node that does the work of its chain, under the same name, or None.  Inner
nodes must have no other user and nobody may ask for their values.  Fused nodes live in the engine alone: no registry,
no file and no description knows them.
"""

from collections.abc import Callable, Sequence
from typing import Any

from acoustic.backend import matmul_into
from acoustic.node import VALUE, Node, Run, Shape
from acoustic.nodes.elementwise import RectifiedLinear, Sigmoid, Tanh
from acoustic.nodes.products import Times
from acoustic.nodes.sums import Plus

IsInner = Callable[[Node], bool]
ACTIVATIONS = {Sigmoid: "sigmoid", Tanh: "tanh", RectifiedLinear: "relu"}


class AffineActivation(Node):
    """V = f(W X + b): Times, Plus and Sigmoid, Tanh or RectifiedLinear in one step.

    W (m, k), X (k, T), b (m, 1).  With D = dJ/d(W X + b), written over G: dJ/dW = D X', dJ/dX = W' D, dJ/db = D 1.
    """

    operand_names = ("W", "X", "b")
    backward_reads = ((1, VALUE), (0, VALUE), (VALUE,))

    def __init__(self, name: str, operands: Sequence[Node], kind: str) -> None:
        super().__init__(name, operands)
        self.kind = kind

    def infer_shape(self, w: Shape, x: Shape, b: Shape) -> Shape:
        return Shape(w.rows, x.cols)

    def forward(self, run: Run, w: Any, x: Any, b: Any, *, out: Any) -> None:
        matmul_into(run.xp, w, x, out)
        run.kernels.affine_activation(self.kind, out, b, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        w, x, _ = inputs

        def write(bias_out: Any) -> None:
            run.kernels.affine_activation_gradient(self.kind, grad, value, grad, bias_out)

        if into.needs(2):
            into.add(2, write)
        else:
            write(None)
        if into.needs(1):
            into.add_product(1, w.T, grad)
        if into.needs(0):
            into.add_product(0, grad, x.T)


def affine_activation(node: Node, shapes: dict[str, Shape], is_inner: IsInner) -> Node | None:
    """f(W X + b), the sum in either order."""
    kind = ACTIVATIONS.get(type(node))
    if kind is None or not isinstance(plus := node.operands[0], Plus) or not is_inner(plus):
        return None
    for times, bias in (plus.operands, plus.operands[::-1]):
        if isinstance(times, Times) and is_inner(times) and shapes[bias.name] == Shape(shapes[times.name].rows, 1):
            return AffineActivation(node.name, [*times.operands, bias], kind)
    return None


RULES: tuple[Callable[[Node, dict[str, Shape], IsInner], Node | None], ...] = (affine_activation,)


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
