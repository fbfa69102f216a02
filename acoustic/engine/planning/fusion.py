"""Rewriting of the graph: a convolution with what follows it becomes one execution step.

The fused node replaces the last node of the chain, under its name.  The others must have no other user, and nobody may
ask for their values.  Fused nodes exist in the engine alone: no registry, file or description knows them.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from acoustic.engine.planning.fused_convolution import ConvolutionPooling
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node
from acoustic.nodes.convolution import Convolution
from acoustic.nodes.pooling import MaxPooling
from acoustic.nodes.properties import RISING, SUM


def fuse(order: Sequence[Node], shapes: dict[str, Shape], wanted: set[str]) -> dict[str, Node]:
    """Fused nodes by the name of the node that each replaces; wanted: names whose values must stay."""
    users = Counter(operand.name for node in order for operand in node.operands)

    def is_inner(node: Node) -> bool:
        return users[node.name] == 1 and node.name not in wanted

    fused = {node.name: _convolution_pooling(node, shapes, is_inner) for node in order if isinstance(node, MaxPooling)}
    return {name: node for name, node in fused.items() if node is not None}


def _convolution_pooling(
    pooling: MaxPooling, shapes: dict[str, Shape], is_inner: Callable[[Node], bool]
) -> Node | None:
    """MaxPooling(f(Convolution(w, image) + b)), the sum in either order, as one node; None for anything else."""
    activation = pooling.operands[0]
    if not activation.has(RISING) or not is_inner(activation):
        return None
    plus = activation.operands[0]
    if not plus.has(SUM) or not is_inner(plus):
        return None
    for convolution, bias in (plus.operands, plus.operands[::-1]):
        if (
            isinstance(convolution, Convolution)
            and is_inner(convolution)
            and shapes[bias.name] == (convolution.settings["outputChannels"], 1)
        ):
            return ConvolutionPooling([*convolution.operands, bias], convolution, activation, pooling)
    return None
