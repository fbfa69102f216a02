"""TimeReverse: the frames of each sequence in reverse order (CNTK book 2.4.2)."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import LinearNode, PassContext, register_node
from readers.errors import ModelError


@register_node("TimeReverse")
class TimeReverse(LinearNode):
    """Frames of each sequence in reverse order: step t of the value is step T + 1 - t of the operand.

    The gradient is G in reverse order. Gaps stay in place. Sequences must be whole in the minibatch.

    Parameters
    ----------
    X : (rows, T)

    Raises
    ------
    ModelError
        During a pass, for independent frames or parts of sequences.

    References
    ----------
    CNTK book, eq. 2.57 and 2.58.
    """

    operand_names = ("X",)
    backward_reads = ((),)
    along_sequences = True

    def infer_shape(self, x: Shape) -> Shape:
        return x

    def splits_frames(self, x: Shape) -> bool:
        return False

    def _columns(self, context: PassContext) -> Any:
        """Return the source column of every column, (N,) int."""
        if context.sequences is None:
            raise ModelError(f"{self.where}: independent frames; expected whole sequences")
        columns = context.sequences.reversal()
        if columns is None:
            raise ModelError(
                f"{self.where}: a minibatch with a part of a sequence; expected whole sequences (HTKMLFReader: "
                "frameMode=false and truncated=false)"
            )
        return columns

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        out.T[...] = x.T[self._columns(context)]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.rows(inputs[0], -1, None, -1)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        columns = self._columns(context)

        def write(out: Any) -> None:
            out.T[...] = grad.T[columns]

        grads.add(0, write)
