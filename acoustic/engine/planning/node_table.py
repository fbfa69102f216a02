"""What the engine knows of node types besides their functions: memory in place, products over frames, sparse columns,
gaps, and which nodes are listed as calls of kernels.

A type that is not in the table has the entry of its nearest base, or none: that is always correct, and slower.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from acoustic.engine.planning.gap_masking import GapMasked
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node
from acoustic.nodes.batch_normalization import BatchNormalization
from acoustic.nodes.class_criterion import ClassBasedCrossEntropyWithSoftmax
from acoustic.nodes.column_norms import RMSNormalization
from acoustic.nodes.crf import CRF, PathNode
from acoustic.nodes.criteria import CrossEntropyWithSoftmax, ErrorPrediction
from acoustic.nodes.element_products import ColumnElementTimes, DiagTimes, RowElementTimes
from acoustic.nodes.elementwise import ElementwiseNode, RectifiedLinear, Sigmoid, Tanh
from acoustic.nodes.groups import PNorm
from acoustic.nodes.lookup import LookupTable
from acoustic.nodes.noise_contrastive import NoiseContrastiveEstimation
from acoustic.nodes.products import Scale, Times, TransposeTimes
from acoustic.nodes.rows import Reshape
from acoustic.nodes.sequence_criterion import SequenceWithSoftmax, SupervisedCriterion
from acoustic.nodes.softmax import Hardmax
from acoustic.nodes.statistics import NormalisationNode, PerDimMeanVarNormalization
from acoustic.nodes.sums import BroadcastNode, Plus, SumNode
from acoustic.nodes.time_reverse import TimeReverse
from acoustic.nodes.time_splice import TimeSplice
from acoustic.recurrence.loop_node import Loop

Condition = Callable[[Node, Sequence[Shape]], bool]


@dataclass(frozen=True)
class Traits:
    """An entry of the table; operands are given by number.

    Attributes
    ----------
    value_in_place : tuple of int
        Operands whose buffer the value may overwrite.
    gradient_in_place : tuple of int
        Operands whose gradient may overwrite the node's; `backward` writes it last or leaves it unchanged.
    frame_products : tuple of int
        Operands without frames whose gradient is one matrix product over all frames, computed once and not per thread.
    layer_inputs : mapping of int to int
        Weights of a layer among frame_products -> the dimension of the layer's inputs, 0 for rows or 1 for columns.
    takes_indicators : tuple of int
        Operands that may be given as Indicators: the row numbers of one-hot columns instead of the matrix.
    touches_columns : tuple of int
        Operands without frames whose gradient may be given for some columns only: see GradientTargets.add_columns.
    hands_out : tuple of int
        Operands whose gradient `backward` hands out in parts if their route takes parts: see GradientRoute.
    skips_gaps : bool
        Whether the node ignores gaps, the columns without a frame, by itself.
    calls_kernels : callable or None
        ``calls_kernels(node, shapes of the operands)``: whether `forward` and `backward` call methods of
        `context.kernels` that the compiled kernels can write to a table, `context.matmul` and `grads`, and nothing
        else, the same calls in every pass. It holds for the type itself and not for those derived from it.
    """

    value_in_place: tuple[int, ...] = ()
    gradient_in_place: tuple[int, ...] = ()
    frame_products: tuple[int, ...] = ()
    layer_inputs: Mapping[int, int] = field(default_factory=dict)
    takes_indicators: tuple[int, ...] = ()
    touches_columns: tuple[int, ...] = ()
    hands_out: tuple[int, ...] = ()
    skips_gaps: bool = False
    calls_kernels: Condition | None = None


def _always(node: Node, shapes: Sequence[Shape]) -> bool:
    return True


def _first_is_input(node: Node, shapes: Sequence[Shape]) -> bool:
    return node.operands[0].is_input  # whose gradient is not needed


def _same_rows(node: Node, shapes: Sequence[Shape]) -> bool:
    x, y = shapes
    return x.rows == y.rows and y.cols in (1, x.cols)


NOTHING = Traits()
IN_PLACE = Traits((0,), (0,))
ACTIVATION = Traits((0,), (0,), calls_kernels=_always)
TABLE: dict[type[Node], Traits] = {
    ElementwiseNode: IN_PLACE,
    Sigmoid: ACTIVATION,
    Tanh: ACTIVATION,
    RectifiedLinear: ACTIVATION,
    RMSNormalization: ACTIVATION,
    Hardmax: Traits((0,)),
    PNorm: Traits(calls_kernels=lambda node, shapes: node.settings["p"] == 2),
    BroadcastNode: Traits((0, 1)),
    SumNode: Traits((0, 1), (0,)),  # the gradient is passed on unchanged
    Plus: Traits((0, 1), (0,), calls_kernels=_same_rows),
    RowElementTimes: Traits((0,)),
    ColumnElementTimes: Traits((0,)),
    DiagTimes: Traits((1,)),
    Scale: Traits((1,), (1,)),
    Reshape: Traits((0,)),
    NormalisationNode: IN_PLACE,
    PerDimMeanVarNormalization: Traits((0,), (0,), calls_kernels=_first_is_input),
    BatchNormalization: Traits(gradient_in_place=(0,), skips_gaps=True),
    Times: Traits(
        frame_products=(0,),
        layer_inputs={0: 1},
        takes_indicators=(1,),
        touches_columns=(0,),
        calls_kernels=_always,
    ),
    TransposeTimes: Traits(frame_products=(0,), layer_inputs={0: 0}),
    LookupTable: Traits(frame_products=(0,), takes_indicators=(1,), touches_columns=(0,)),
    CrossEntropyWithSoftmax: Traits(takes_indicators=(0,), calls_kernels=_first_is_input),
    ErrorPrediction: Traits(takes_indicators=(0,), calls_kernels=_always),
    ClassBasedCrossEntropyWithSoftmax: Traits(touches_columns=(2,), skips_gaps=True),
    NoiseContrastiveEstimation: Traits(touches_columns=(2, 3), skips_gaps=True),
    PathNode: Traits(skips_gaps=True),
    CRF: Traits(takes_indicators=(0,), skips_gaps=True),
    SupervisedCriterion: Traits(skips_gaps=True),
    SequenceWithSoftmax: Traits(takes_indicators=(0,), skips_gaps=True),
    TimeReverse: Traits(skips_gaps=True),
    TimeSplice: Traits(skips_gaps=True),
}


def traits(node: Node) -> Traits:
    """The entry of a node's type, or of its nearest base; that of a loop follows from its nodes."""
    if isinstance(node, Loop):
        products = () if node.compiled is None else node.compiled.frame_products
        weights = node.sole_products(lambda member: traits(member).layer_inputs)
        return Traits(frame_products=products, hands_out=products, layer_inputs=weights)
    if isinstance(node, GapMasked):
        inner = traits(node.node)
        return Traits(frame_products=inner.frame_products, takes_indicators=inner.takes_indicators)
    return next((TABLE[kind] for kind in type(node).__mro__ if kind in TABLE), NOTHING)


def calls_kernels(node: Node, shapes: Sequence[Shape], words: Collection[str], in_sequences: bool) -> bool:
    """Whether a node is listed as calls of kernels.

    shapes: of its operands; words: the inputs that are given as Indicators; in_sequences: whether the minibatch may
    have gaps.
    """
    if isinstance(node, GapMasked):
        if in_sequences:
            return False
        node = node.node
    condition = TABLE.get(type(node), NOTHING).calls_kernels
    if condition is None or any(operand.name in words for operand in node.operands):
        return False
    return condition(node, shapes)
