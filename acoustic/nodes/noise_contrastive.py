"""Noise-contrastive estimation: language models learn to tell the next word from random ones (Mnih and Teh, 2012)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acoustic.kernels.arrays.word import NoiseLabels
from acoustic.kernels.shape import Shape
from acoustic.nodes.base import Node, PassContext, register_node
from acoustic.nodes.class_criterion import softmax_slope
from acoustic.nodes.criteria import scalar
from acoustic.nodes.option import Option
from acoustic.nodes.properties import NOISE_CONTRASTIVE, RANDOM
from readers.errors import ModelError

MODES = SOFTMAX, UNNORMALIZED, NONE = "softmax", "unnormalized", "none"


@register_node("NCEBasedCrossEntropyWithSoftmax", "NoiseContrastiveEstimation", "NCE")
class NoiseContrastiveEstimation(Node):
    """Noise-contrastive estimation of a softmax: a scalar, at a cost that does not depend on the number of words.

    With the score ``s(w) = W_w' h + b_w`` of a word, the probability q(w) of a noise word and K noise words v for each
    frame, ``V = -sum over frames of (ln p(w) + sum over v of ln (1 - p(v)))``. There
    ``p(w) = 1 / (1 + K q(w) exp(-s(w)))`` is the probability that a word is no noise. The scores learn to be log
    probabilities without being normalised. The gradient with respect to s(w) is ``G (p(w) - 1)``, that with respect to
    s(v) is ``G p(v)``.

    In evaluation the value is what evalMode says.

    Parameters
    ----------
    labels : (2 K + 2, T)
        The word, ln q of it, and for each noise word its number and -ln q of it, as LMSequenceReader with mode=nce
        gives them.
    h : (dim, T)
        The hidden layer.
    W : (dim, words)
        One column per word.
    b : (1, words)
        The bias of each word.
    evalMode : str
        The value in evaluation: ``softmax``: -sum of ln softmax(s)(w), the cross entropy; ``unnormalized``: -sum of
        s(w), which is much cheaper; ``none``: V, as in training.

    Raises
    ------
    ModelError
        During a pass, for labels that are not of this form.

    References
    ----------
    A. Mnih and Y. W. Teh, "A fast and simple algorithm for training neural probabilistic language models", ICML 2012.
    CNTK's node of this name.
    """

    operand_names = ("labels", "h", "W", "b")
    backward_reads = (None, (0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3))
    options = (Option("evalMode", str, SOFTMAX, choices=MODES),)
    sums_frames = True
    properties = frozenset({NOISE_CONTRASTIVE, RANDOM})

    def infer_shape(self, labels: Shape, h: Shape, w: Shape, b: Shape) -> Shape:
        fits = labels.rows >= 4 and labels.rows % 2 == 0 and not w.has_frames and h.rows == w.rows
        if not fits or tuple(b) != (1, w.cols) or labels.cols != h.cols:
            expected = "2 K + 2 rows of labels, rows of h = rows of W, 1 x columns of W for b, equal columns elsewhere"
            raise self.shape_error((labels, h, w, b), expected)
        return Shape(1, 1)

    def wanted_operand(self, k: int, *shapes: Shape) -> Shape | None:
        return {2: Shape(shapes[1].rows, 0), 3: Shape(1, shapes[2].cols)}.get(k)

    def splits_frames(self, *shapes: Shape) -> bool:
        return False  # frames share words' columns of W

    def forward(self, context: PassContext, labels: Any, h: Any, w: Any, b: Any, *, out: Any) -> None:
        mode = self._mode(context)
        checked = self._labels(context, labels, w.shape[1])
        if mode == SOFTMAX:
            scores = (h.T @ w + b).T
            context.kernels.cross_entropy_numbers(np.where(checked.real, checked.words[0], -1), scores, out, None)
        elif mode == UNNORMALIZED:
            scores = context.kernels.noise_margins(checked.words_only(), h, w, b)
            out[...] = -scores[0, context.xp.asarray(checked.real)].sum(dtype=np.float64)
        else:
            margins = context.kernels.noise_margins(checked, h, w, b)[:, context.xp.asarray(checked.real)]
            loss = context.xp.logaddexp(0, -margins[0]).sum(dtype=np.float64)
            out[...] = loss + context.xp.logaddexp(0, margins[1:]).sum(dtype=np.float64)

    def backward(self, context: PassContext, grad: Any, inputs: Sequence[Any], value: Any, grads: Any) -> None:
        _, h, w, b = inputs
        labels = self._labels(context, inputs[0])
        scale = float(grad.item())
        kernels = context.kernels
        errors = self._errors(context, labels, kernels.noise_margins(labels, h, w, b))
        grads.add(1, lambda out: kernels.noise_hidden_gradient(labels, errors, w, scale, out))
        columns = np.unique(labels.words[:, labels.real])
        positions = np.where(labels.real, np.searchsorted(columns, labels.words), -1)
        for k, factor in ((2, h), (3, context.xp.ones((1, h.shape[1]), h.dtype, order="F"))):

            def write(block: Any, part: slice, factor: Any = factor) -> None:
                part_positions = np.where(positions < 0, -1, positions - (part.start or 0))
                kernels.noise_weight_gradient(errors, factor, scale, part_positions, block)

            grads.add_columns(k, context.xp.asarray(columns), write)

    def tangent(self, context: PassContext, inputs: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Differentiate the scores of all words, and sum their errors times that."""
        labels = self._labels(context, inputs[0])
        xp = context.xp
        _, h, w, b = inputs
        _, dh, dw, db = tangents
        scores = w.T @ h + b.T
        moves = dw.T @ h + w.T @ dh + db.T
        frames = xp.arange(h.shape[1])
        real = xp.asarray(labels.real)
        words = xp.asarray(labels.words)
        is_label = (xp.arange(w.shape[1])[:, None] == words[0]) & real
        mode = self._mode(context)
        if mode == SOFTMAX:
            return scalar(softmax_slope(xp, scores, moves, is_label, real))
        if mode == UNNORMALIZED:
            return scalar(-(moves * is_label).sum())
        margins = scores[words, frames] - xp.asarray(labels.costs, dtype=scores.dtype)
        return scalar((self._errors(context, labels, margins) * moves[words, frames]).sum())

    def _mode(self, context: PassContext) -> str:
        return NONE if context.training else self.settings["evalMode"]

    def _errors(self, context: PassContext, labels: NoiseLabels, margins: Any) -> Any:
        """Return the derivatives (K + 1, T) with respect to the scores: p(w) - 1, then p(v); 0 in gaps."""
        xp = context.xp
        real = context.xp.asarray(labels.real)
        errors = (xp.tanh(margins / 2) + 1) / 2
        errors[0] -= 1
        return xp.where(real, errors, 0).astype(margins.dtype)

    def _labels(self, context: PassContext, labels: Any, num_words: int = 0) -> NoiseLabels:
        """Return the labels on the host; check them if the number of words is given."""
        rows = context.backend.to_host(labels)
        real = np.ones(rows.shape[1], bool)
        if context.sequences is not None and context.sequences.gaps is not None:
            real = ~context.sequences.gaps[context.first_column : context.first_column + rows.shape[1]]
        logs = -rows[1::2].astype(np.float64)
        logs[0] *= -1
        if num_words:
            words = rows[0::2]
            fine = ((words >= 0) & (words < num_words) & (words == np.floor(words)) & (logs <= 0)).all(axis=0)
            fine &= np.isfinite(logs).all(axis=0) | ~real
            if not (fine | ~real).all():
                odd = int(np.flatnonzero(~fine & real)[0])
                raise ModelError(
                    f"{self.where}: labels {rows[:4, odd].tolist()} and so on in column {odd}; expected word, log "
                    f"probability, then noise word, -log probability of each, words among {num_words}"
                )
        words = np.where(real, rows[0::2], 0).astype(np.int64)
        return NoiseLabels(words, np.where(real, np.log(len(words) - 1) + logs, 0), real)
