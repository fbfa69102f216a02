"""TimeSplice: each frame stacked with others of its sequence, for layers of time-delay networks."""

from collections.abc import Sequence
from typing import Any

from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.option import Option
from acoustic.nodes.sequence_state import Sequences
from readers.errors import ModelError

FURTHEST = 10_000  # steps


@register_node("TimeSplice")
class TimeSplice(Node):
    """Frames of the same sequence stacked vertically: step t of V is ``[x(t + o1); x(t + o2); ...]``.

    Beyond the ends of a sequence its first or last frame is repeated. The gradient of a frame is the sum of the parts
    of G that hold it. A sequence that continues from the previous minibatch sees the last frames of that minibatch,
    without a gradient.

    Parameters
    ----------
    x : (rows, T)
        V has shape (k rows, T) for k offsets.
    offsets : str
        In steps, separated by colons: ``-1:0:1``; distinct integers.

    Raises
    ------
    ModelError
        During a pass, for independent frames.

    Examples
    --------
    In the network description language, a layer of a time-delay network::

        h2 = RectifiedLinear(Plus(Times(W, TimeSplice(h1, "-1:0:1")), B))

    References
    ----------
    V. Peddinti, D. Povey, S. Khudanpur, "A time delay neural network architecture for efficient modeling of long
    temporal contexts", 2015; Append(Offset(...)) in Kaldi.
    """

    operand_names = ("x",)
    options = (Option("offsets", str, positional=True),)
    backward_reads = ((),)
    along_sequences = True

    def _check_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        checked = super()._check_settings(settings)
        text = checked["offsets"]
        try:
            offsets = [int(part) for part in text.split(":")]
        except ValueError:
            offsets = []
        if not offsets or len(set(offsets)) < len(offsets) or max(map(abs, offsets)) > FURTHEST:
            raise ModelError(
                f"{self.where}: offsets={text!r}; expected distinct integers up to {FURTHEST} such as -1:0:1"
            )
        self.offsets = offsets
        return checked

    @property
    def reach(self) -> tuple[float, float]:
        return max(0, -min(self.offsets)), max(0, *self.offsets)

    def infer_shape(self, x: Shape) -> Shape:
        return Shape(len(self.offsets) * x.rows, x.cols)

    def splits_frames(self, x: Shape) -> bool:
        return False

    def _sequences(self, context: PassContext) -> Sequences:
        if context.sequences is None:
            raise ModelError(f"{self.where}: independent frames; expected whole sequences, or parts of them in order")
        return context.sequences

    def forward(self, context: PassContext, x: Any, *, out: Any) -> None:
        sequences = self._sequences(context)
        past = int(self.reach[0])
        before = sequences.held(self.name, x.shape[0], past, x)
        context.kernels.splice(x, before, sequences.sources(self.offsets), out)
        if not sequences.whole:
            sequences.hold(self.name, past, before, x)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        sources = self._sequences(context).sources(self.offsets)
        grads.add(0, lambda out: context.kernels.splice_gradient(grad, sources, out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Stack the directions; the held values do not move."""
        (moved,) = tangents
        sequences = self._sequences(context)
        before = sequences.held("", moved.shape[0], int(self.reach[0]), moved)
        out = context.backend.empty(len(self.offsets) * moved.shape[0], moved.shape[1])
        context.kernels.splice(moved, before, sequences.sources(self.offsets), out)
        return out

    def to_onnx(self, graph: Any, *inputs: str) -> str:
        """Shift the rows of one sequence and repeat the first or last one."""
        (x,) = inputs
        parts = []
        for offset in self.offsets:
            edge = graph.rows(x, 0, 1) if offset < 0 else graph.rows(x, -1, None)
            if offset < 0:
                parts.append(graph.rows(graph.add("Concat", *[edge] * -offset, x, axis=0), 0, offset))
            else:
                parts.append(
                    graph.rows(graph.add("Concat", x, *[edge] * offset, axis=0), offset, None) if offset else x
                )
        return graph.add("Concat", *parts, axis=1)
