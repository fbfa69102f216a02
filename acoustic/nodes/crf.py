"""Conditional random fields: the criterion of label sequences, and the best sequence (CNTK book 2.4.3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.kernels.arrays.sequence import SequenceMarks
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.criteria import label_rows
from readers.errors import ModelError


class PathNode(Node):
    """Base of nodes that score paths by ``H`` (labels, T) and ``A`` (labels, labels), scores of label j after label i.

    Each sequence of a minibatch is a path of its own; gaps belong to none. The part of a longer sequence that a
    minibatch holds counts as a sequence. If the minibatch has no sequences, all columns are one path.
    """

    def splits_frames(self, *shapes: Shape) -> bool:
        return False

    def marks(self, context: PassContext, columns: int) -> SequenceMarks:
        """Return the places of the sequences in the columns."""
        return (
            SequenceMarks.of_columns(columns)
            if context.sequences is None
            else SequenceMarks.of_layout(context.sequences.layout)
        )


@register_node("CRF")
class CRF(PathNode):
    """Negative log probability of the label sequences under a conditional random field, a scalar.

    It is the sum over the sequences of ``ln Z - s(labels)``, where the score of a path i_1 ... i_T is ``s(path) = sum
    of h_t(i_t) + sum of a(i_t-1, i_t)`` and Z is the sum of exp s over all paths, by the forward-backward algorithm.
    The gradients are ``dJ/dH = G (p_t(i) - labels)`` and ``dJ/dA = G (expected number of label pairs - number of label
    pairs)``.

    Parameters
    ----------
    labels : (labels, T)
        One-hot.
    H : (labels, T)
        Scores of the labels.
    A : (labels, labels)
        Scores of the label of the column after the label of the row, a parameter.

    Raises
    ------
    ModelError
        During a pass, for a frame without a label.

    References
    ----------
    CNTK book, eq. 2.149 to 2.153, with the sign changed so that training minimises it. SequenceDecoder gives the best
    path.
    """

    operand_names = ("labels", "H", "A")
    backward_reads = (None, (0, 1, 2), (0, 1, 2))
    sums_frames = True

    def infer_shape(self, labels: Shape, h: Shape, a: Shape) -> Shape:
        if labels != h or a != Shape(h.rows, h.rows):
            raise self.shape_error((labels, h, a), f"equal shapes, and {h.rows}x{h.rows} in A")
        return Shape(1, 1)

    def wanted_operand(self, k: int, *shapes: Shape) -> Shape | None:
        return Shape(shapes[1].rows, shapes[1].rows) if k == 2 else None

    def forward(self, context: PassContext, labels: Any, h: Any, a: Any, *, out: Any) -> None:
        context.kernels.crf_loss(*self._path(context, labels), h, a, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        labels, h, a = inputs
        grad_h = context.backend.empty(*h.shape)
        grad_a = context.backend.empty(*a.shape)
        context.kernels.crf_gradient(*self._path(context, labels), h, a, grad_h, grad_a)
        grads.add(1, lambda out: context.xp.multiply(grad_h, grad, out=out))
        grads.add(2, lambda out: context.xp.multiply(grad_a, grad, out=out))

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Follow alpha_t(j) = h_t(j) + ln sum_i exp(alpha_t-1(i) + a_ij) step by step."""
        labels, h, a = inputs
        _, dh, da = tangents
        xp = context.xp
        alpha = h[:, 0]
        move = dh[:, 0]
        for t in range(1, h.shape[1]):
            scores = alpha[:, None] + a
            moves = move[:, None] + da
            share = xp.exp(scores - scores.max(axis=0))
            alpha = h[:, t] + scores.max(axis=0) + xp.log(share.sum(axis=0))
            move = dh[:, t] + (share * moves).sum(axis=0) / share.sum(axis=0)
        share = xp.exp(alpha - alpha.max())
        right = (labels * dh).sum() + ((labels[:, :-1] @ labels[:, 1:].T) * da).sum()
        return ((share * move).sum() / share.sum() - right).reshape(1, 1)

    def _path(self, context: PassContext, labels: Any) -> tuple[SequenceMarks, np.ndarray]:
        """Return the sequences and the label (row) of each column; raise ModelError if a frame has none."""
        marks = self.marks(context, labels.shape[1])
        numbers = label_rows(labels)
        if numbers is None:
            numbers = context.backend.to_host(context.backend.asarray(labels).argmax(axis=0))
        missing = (numbers < 0) & marks.frames.reshape(-1)
        if missing.any():
            raise ModelError(f"{self.where}: no label in column {int(missing.argmax())}; expected one in every frame")
        return marks, np.ascontiguousarray(np.maximum(numbers, 0), np.int64)


@register_node("SequenceDecoder")
class SequenceDecoder(PathNode):
    """Best label sequence by the Viterbi algorithm, one-hot (labels, T), 0 in gaps.

    It has no gradient. ErrorPrediction counts its errors and LUSequenceWriter writes it. Not in the book: it is the
    SequenceDecoder of CNTK in 2015 without the operand of labels.

    Parameters
    ----------
    H : (labels, T)
        Scores of the labels, as for CRF.
    A : (labels, labels)
        Scores of label pairs, as for CRF.
    """

    operand_names = ("H", "A")

    def infer_shape(self, h: Shape, a: Shape) -> Shape:
        if a != Shape(h.rows, h.rows):
            raise self.shape_error((h, a), f"{h.rows}x{h.rows} in A")
        return h

    def forward(self, context: PassContext, h: Any, a: Any, *, out: Any) -> None:
        context.kernels.viterbi(self.marks(context, h.shape[1]), h, a, out)
