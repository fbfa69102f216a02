"""Which nodes are listed as calls of kernels, by node type; the others are one operation, the call of the node.

`forward` and `backward` of such a node call methods of `run.kernels` that the compiled kernels can write to a table,
`run.matmul` and `into`, and nothing else; the calls are the same in every pass.
"""

from collections.abc import Callable, Collection, Sequence

from acoustic.engine.planning.gap_masking import Ungapped
from acoustic.nodes.base import Node, Shape
from acoustic.nodes.column_norms import RMSNormalization
from acoustic.nodes.criteria import CrossEntropyWithSoftmax, ErrorPrediction
from acoustic.nodes.elementwise import RectifiedLinear, Sigmoid, Tanh
from acoustic.nodes.groups import PNorm
from acoustic.nodes.products import Times
from acoustic.nodes.statistics import PerDimMeanVarNormalization
from acoustic.nodes.sums import Plus

Condition = Callable[[Node, Sequence[Shape]], bool]


def _always(node: Node, shapes: Sequence[Shape]) -> bool:
    return True


def _first_is_input(node: Node, shapes: Sequence[Shape]) -> bool:
    return node.operands[0].is_input  # whose gradient is not needed


def _same_rows(node: Node, shapes: Sequence[Shape]) -> bool:
    x, y = shapes
    return x.rows == y.rows and y.cols in (1, x.cols)


CONDITIONS: dict[type[Node], Condition] = {
    Times: _always,
    Plus: _same_rows,
    Sigmoid: _always,
    Tanh: _always,
    RectifiedLinear: _always,
    PNorm: lambda node, shapes: node.settings["p"] == 2,
    RMSNormalization: _always,
    PerDimMeanVarNormalization: _first_is_input,
    CrossEntropyWithSoftmax: _first_is_input,
    ErrorPrediction: _always,
}


def calls_kernels(node: Node, shapes: Sequence[Shape], words: Collection[str], in_sequences: bool) -> bool:
    """Whether a node is listed as calls of kernels.

    shapes: of its operands; words: the inputs that are given as Indicators; in_sequences: whether the minibatch may
    have gaps.
    """
    if isinstance(node, Ungapped):
        if in_sequences:
            return False
        node = node.node
    condition = CONDITIONS.get(type(node))
    if condition is None or any(operand.name in words for operand in node.operands):
        return False
    return condition(node, shapes)
