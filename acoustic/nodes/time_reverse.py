"""TimeReverse: the frames of each sequence in reverse order (book 2.4.2, eq. 2.57 and 2.58)."""

from collections.abc import Sequence
from typing import Any

from acoustic.nodes.base import LinearNode, Run, Shape, register_node
from readers.errors import ModelError


@register_node("TimeReverse")
class TimeReverse(LinearNode):
    """V of a sequence's step t = X of its step T + 1 - t; dJ/dX of step t = G of step T + 1 - t.

    X: one column per frame.  Columns of a minibatch without a frame stay as they are.  Sequences must be whole: what is
    last is not known before the end.  [eq. 2.57, 2.58]
    """

    operand_names = ("X",)
    backward_reads = ((),)
    along_sequences = True
    skips_gaps = True

    def infer_shape(self, x: Shape) -> Shape:
        return x

    def splits_frames(self, x: Shape) -> bool:
        return False

    def _columns(self, run: Run) -> Any:
        """(N,) int: which column comes where."""
        if run.sequences is None:
            raise ModelError(f"{self.where}: frames on their own; expected whole sequences")
        columns = run.sequences.reversal()
        if columns is None:
            raise ModelError(
                f"{self.where}: a minibatch with a part of a sequence; expected whole sequences, for HTKMLFReader by "
                "frameMode=false and truncated=false"
            )
        return columns

    def forward(self, run: Run, x: Any, *, out: Any) -> None:
        out.T[...] = x.T[self._columns(run)]

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        return graph.rows(inputs[0], -1, None, -1)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        columns = self._columns(run)

        def write(out: Any) -> None:
            out.T[...] = grad.T[columns]

        into.add(0, write)
