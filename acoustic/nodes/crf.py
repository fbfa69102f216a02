"""Conditional random fields: the criterion of whole label sequences, and the best of them (book 2.4.3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.kernels.arrays.sequence import Marks
from acoustic.nodes.base import Node, Run, Shape, register_node
from acoustic.nodes.criteria import one_number
from readers.errors import ModelError


class PathNode(Node):
    """Base: what scores paths through sequences, by H (labels, T) and A (labels, labels), from row to column.

    With sequences side by side each is a path of its own, of which columns without a frame are no part; what a
    minibatch has of a longer sequence counts as one.  Without a word about sequences, all columns are one.
    """

    skips_gaps = True

    def splits_frames(self, *shapes: Shape) -> bool:
        return False

    def marks(self, run: Run, columns: int) -> Marks:
        """Where the sequences are."""
        return Marks.of_columns(columns) if run.sequences is None else Marks.of_layout(run.sequences.layout)


@register_node("CRF")
class CRF(PathNode):
    """v = the sum over the sequences of ln Z - s(labels), minus the logarithm of the probability of their labels.

    labels (labels, T) one-hot, H (labels, T) scores of labels, A (labels, labels) scores a_ij of label j after label i,
    a parameter.  s(path) = sum of h_t(i_t) + sum of a_(i_t-1 i_t); Z = the sum of exp s over all paths, by Forward and
    Backward.  dJ/dH = G (p_t(i) - labels), dJ/dA = G (the expected number of pairs - those of the labels).
    [eq. 2.149 to 2.153, negated: it is minimised, as criteria are.  SequenceDecoder gives the best path.]
    """

    operand_names = ("labels", "H", "A")
    backward_reads = (None, (0, 1, 2), (0, 1, 2))
    takes_indicators = (0,)
    sums_frames = True

    def infer_shape(self, labels: Shape, h: Shape, a: Shape) -> Shape:
        if labels != h or a != Shape(h.rows, h.rows):
            raise self.shape_error((labels, h, a), f"equal shapes, and {h.rows}x{h.rows} in A")
        return Shape(1, 1)

    def wanted_operand(self, k: int, *shapes: Shape) -> Shape | None:
        return Shape(shapes[1].rows, shapes[1].rows) if k == 2 else None

    def forward(self, run: Run, labels: Any, h: Any, a: Any, *, out: Any) -> None:
        run.kernels.crf_loss(*self._path(run, labels), h, a, out)

    def backward(self, run: Run, grad: Any, inputs: Sequence[Any], value: Any, into: Any) -> None:
        labels, h, a = inputs
        grad_h, grad_a = run.backend.empty(*h.shape), run.backend.empty(*a.shape)
        run.kernels.crf_gradient(*self._path(run, labels), h, a, grad_h, grad_a)
        into.add(1, lambda out: run.xp.multiply(grad_h, grad, out=out))
        into.add(2, lambda out: run.xp.multiply(grad_a, grad, out=out))

    def tangent(self, run: Run, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Step by step, of alpha_t(j) = h_t(j) + ln of the sum of exp(alpha_t-1(i) + a_ij)."""
        (labels, h, a), (_, dh, da), xp = inputs, tangents, run.xp
        alpha, move = h[:, 0], dh[:, 0]
        for t in range(1, h.shape[1]):
            scores, moves = alpha[:, None] + a, move[:, None] + da
            share = xp.exp(scores - scores.max(axis=0))
            alpha = h[:, t] + scores.max(axis=0) + xp.log(share.sum(axis=0))
            move = dh[:, t] + (share * moves).sum(axis=0) / share.sum(axis=0)
        share = xp.exp(alpha - alpha.max())
        right = (labels * dh).sum() + ((labels[:, :-1] @ labels[:, 1:].T) * da).sum()
        return ((share * move).sum() / share.sum() - right).reshape(1, 1)

    def _path(self, run: Run, labels: Any) -> tuple[Marks, np.ndarray]:
        """The sequences, and the row of the label of each column; raises ModelError where a frame has no label."""
        marks = self.marks(run, labels.shape[1])
        numbers = one_number(labels)
        if numbers is None:
            numbers = run.backend.to_host(run.backend.asarray(labels).argmax(axis=0))
        missing = (numbers < 0) & marks.frames.reshape(-1)
        if missing.any():
            raise ModelError(f"{self.where}: no label in column {int(missing.argmax())}; expected one in every frame")
        return marks, np.ascontiguousarray(np.maximum(numbers, 0), np.int64)


@register_node("SequenceDecoder")
class SequenceDecoder(PathNode):
    """The best path, one-hot: V (labels, T) is 1 in the rows of the labels that score the most, by Viterbi; 0 in gaps.

    H (labels, T) and A (labels, labels) as of CRF; ErrorPrediction counts its errors, LUSequenceWriter writes it.  Has
    no gradient.  [not in the book; 2015's SequenceDecoder, without its operand of labels]
    """

    operand_names = ("H", "A")

    def infer_shape(self, h: Shape, a: Shape) -> Shape:
        if a != Shape(h.rows, h.rows):
            raise self.shape_error((h, a), f"{h.rows}x{h.rows} in A")
        return h

    def forward(self, run: Run, h: Any, a: Any, *, out: Any) -> None:
        run.kernels.viterbi(self.marks(run, h.shape[1]), h, a, out)
