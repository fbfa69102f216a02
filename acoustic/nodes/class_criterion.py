"""Cross entropy of language models with word classes (CNTK book 2.4.3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.kernels.arrays.word import ClassLabels
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.criteria import scalar
from acoustic.nodes.properties import CROSS_ENTROPY, OF_WORD_CLASSES
from readers.errors import ModelError

LABEL_ROWS = 4  # word, class, first word of the class, last word of the class plus one


@register_node("ClassBasedCrossEntropyWithSoftmax", "CBCEWithSM")
class ClassBasedCrossEntropyWithSoftmax(Node):
    """Cross entropy of words that are predicted by class: ``-sum of ln p(class) + ln p(word | class)``, a scalar.

    p(class) is softmax(Q); p(word | class) is softmax(W' h) over the words of the class. exp(V / frames) is the
    perplexity. The cost of a frame depends on the number of classes and on the words of its own class, not on the size
    of the vocabulary; so does the cost of the update if its rule works by columns (see Updater).

    With ``e = softmax(W' h) - indicator of the word``, over the words of the class, the gradients are ``dJ/dh = G W
    e``, ``dJ/dW = G h e'`` in the columns of the class, and ``dJ/dQ = G (softmax(Q) - indicator of the class)``.

    Parameters
    ----------
    labels : (4, T)
        The word, its class, the first word of the class and the last plus one, as LMSequenceReader with mode=class
        gives them.
    h : (dim, T)
        The hidden layer.
    W : (dim, words)
        One column per word.
    Q : (classes, T)
        Scores of the classes, for instance Times of a matrix (classes, dim) and h.

    Raises
    ------
    ModelError
        During a pass, for labels that are not of this form.

    References
    ----------
    CNTK book, eq. 2.132 to 2.148; eq. 2.142 and 2.144 lack a minus, as does 2.127.
    """

    properties = frozenset({OF_WORD_CLASSES, CROSS_ENTROPY})
    operand_names = ("labels", "h", "W", "Q")
    backward_reads = (None, (0, 1, 2), (0, 1, 2), (0, 3))
    sums_frames = True

    def infer_shape(self, labels: Shape, h: Shape, w: Shape, q: Shape) -> Shape:
        if labels.rows != LABEL_ROWS or w.has_frames or h.rows != w.rows or not labels.cols == h.cols == q.cols:
            expected = "4 rows of labels, rows of h = rows of W, a fixed number of columns in W, equal ones elsewhere"
            raise self.shape_error((labels, h, w, q), expected)
        return Shape(1, 1)

    def wanted_operand(self, k: int, *shapes: Shape) -> Shape | None:
        return Shape(shapes[1].rows, 0) if k == 2 else None

    def splits_frames(self, *shapes: Shape) -> bool:
        return False  # frames of one class share its columns of W

    def forward(self, context: PassContext, labels: Any, h: Any, w: Any, q: Any, *, out: Any) -> None:
        context.kernels.class_loss(self._labels(context, labels, w.shape[1], q.shape[0]), h, w, q, out)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        _, h, w, q = inputs
        labels = self._labels(context, inputs[0])
        scale = float(grad.item())
        kernels = context.kernels
        if grads.needs(1) or grads.needs(2):
            errors = kernels.class_errors(labels, h, w)
            grads.add(1, lambda out: kernels.class_hidden_gradient(labels, errors, w, scale, out))
        grads.add(3, lambda out: kernels.class_posterior_gradient(labels, q, scale, out))
        if grads.needs(2):
            columns = labels.touched(w.shape[1])
            first_columns = np.searchsorted(columns, labels.first)  # the words of a class are consecutive there too

            def write(block: Any, part: slice) -> None:
                kernels.class_weight_gradient(labels, errors, h, scale, first_columns - (part.start or 0), block)

            grads.add_columns(2, context.xp.asarray(columns), write)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Sum the derivatives of -ln softmax(x)_k along dx, softmax(x)' dx - dx_k, for classes and words."""
        labels = inputs[0]
        _, h, w, q = inputs
        _, dh, dw, dq = tangents
        xp = context.xp
        scores = w.T @ h
        moves = dw.T @ h + w.T @ dh
        word = xp.arange(w.shape[1])[:, None]
        in_class = (word >= labels[2]) & (word < labels[3])
        is_class = xp.arange(q.shape[0])[:, None] == labels[1]
        total = softmax_slope(xp, q, dq, is_class & in_class.any(axis=0), in_class.any(axis=0))
        return scalar(
            total + softmax_slope(xp, xp.where(in_class, scores, -xp.inf), moves, in_class & (word == labels[0]), 1)
        )

    def _labels(self, context: PassContext, labels: Any, num_words: int = 0, num_classes: int = 0) -> ClassLabels:
        """Return the labels as integers, empty classes in gaps; check them if the sizes are given."""
        rows = context.backend.to_host(labels)
        gaps = context.sequences.gaps if context.sequences is not None else None
        rows = rows.astype(np.int64, order="C")
        if gaps is not None:
            rows[:, gaps[context.first_column : context.first_column + rows.shape[1]]] = 0
        word, word_class, first, behind = rows
        if num_words:
            real = behind > first
            fine = (first >= 0) & (behind >= first) & (behind <= num_words)
            fine &= ~real | ((word >= first) & (word < behind) & (word_class >= 0) & (word_class < num_classes))
            if gaps is None:
                fine &= real
            if not fine.all():
                odd = int(np.flatnonzero(~fine)[0])
                raise ModelError(
                    f"{self.where}: labels {rows[:, odd].tolist()} in column {odd}; expected word, class, first word "
                    f"of the class and its last plus one, among {num_words} words and {num_classes} classes"
                )
        return ClassLabels(word, word_class, first, behind)


def softmax_slope(xp: Any, x: Any, dx: Any, own: Any, real: Any) -> Any:
    """Sum softmax(x)' dx over the columns where `real`, minus the elements of dx where `own`."""
    top = x.max(axis=0)
    weight = xp.exp(x - xp.where(xp.isfinite(top), top, 0))
    total = weight.sum(axis=0)
    mean = (weight * dx).sum(axis=0) / xp.where(total > 0, total, 1)
    return (mean * real).sum() - (own * dx).sum()
