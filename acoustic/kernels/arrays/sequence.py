"""Operations on paths through sequences in terms of `xp`, step by step; the references of the compiled ones.

h (labels, N): scores of every label in every column; a (labels, labels): scores of transitions from a label (row) to
another. The score of a path through a sequence is the sum of both along it. Source: CNTK book 2.4.3, CRF.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class SequenceMarks:
    """The sequences of a minibatch, on the host; step t of slot s is column t * slots + s.

    Attributes
    ----------
    starts, ends : (steps, slots) bool
        The first and last step of a sequence in the minibatch.
    frames : (steps, slots) bool
        Whether the column is no gap.
    """

    starts: np.ndarray
    ends: np.ndarray
    frames: np.ndarray

    @classmethod
    def of_columns(cls, count: int) -> "SequenceMarks":
        """One sequence of all columns."""
        starts = np.zeros((count, 1), bool)
        ends = np.zeros((count, 1), bool)
        frames = np.ones((count, 1), bool)
        starts[0] = ends[-1] = True
        return cls(starts, ends, frames)

    @classmethod
    def of_layout(cls, layout: Any) -> "SequenceMarks":
        """The marks of a SequenceLayout without its context; a sequence that continues in another minibatch is cut."""
        excluded = layout.gap_columns
        frames = np.ones(layout.gaps.shape, bool) if excluded is None else ~excluded.reshape(layout.gaps.shape)
        none = np.zeros((1, layout.num_sequences), bool)
        follows = np.concatenate([none, frames[:-1]])
        goes_on = np.concatenate([frames[1:], none])
        return cls(frames & (layout.starts | ~follows), frames & (layout.ends | ~goes_on), frames)


class ArraySequenceKernels:
    """Mixed into the kernels of a backend; xp: its array module."""

    xp: Any

    def splice(self, x: Any, held: Any, sources: np.ndarray, out: Any) -> None:
        """out (K rows, N) = the columns sources (N, K) of x (rows, N), one above the other.

        A negative number counts from the end of held (rows, H).
        """
        rows = x.shape[0]
        columns = self.xp.asarray(sources) + held.shape[1]
        extended = self.xp.concatenate([held, x], axis=1)
        for k in range(sources.shape[1]):
            out[k * rows : (k + 1) * rows] = extended[:, columns[:, k]]

    def splice_gradient(self, grad: Any, sources: np.ndarray, out: Any) -> None:
        """out (rows, N) = for each column the sum of the parts of grad (K rows, N) that are copies of it."""
        out.fill(0)
        rows = out.shape[0]
        for k in range(sources.shape[1]):
            from_minibatch = (sources[:, k] >= 0).nonzero()[0]
            part = grad[k * rows : (k + 1) * rows, from_minibatch]
            self.xp.add.at(out.T, self.xp.asarray(sources[from_minibatch, k]), part.T)

    def delay(self, x: Any, before: Any, usable: Any, shift: int, default: float, out: Any) -> None:
        """out (rows, N) = x (rows, N) moved to the right by `shift` columns, and `default` where not usable.

        before (rows, shift): what precedes the first column; None, or with a negative shift, for the default. usable
        (steps, slots) bool: for each column whether it has a value.
        """
        num_columns = x.shape[1]
        kept = max(0, num_columns - abs(shift))
        out[...] = default
        if shift > 0:
            out[:, shift:] = x[:, :kept]
        else:
            out[:, :kept] = x[:, num_columns - kept :]
        if before is not None:
            num_before = min(shift, num_columns)
            out[:, :num_before] = before[:, :num_before]
        self.xp.copyto(out, default, where=~usable.reshape(1, -1))

    def delay_gradient(self, grad: Any, usable: Any, shift: int, out: Any) -> None:
        """out (rows, N) = grad (rows, N) where usable, moved back by `shift` columns; 0 for the rest."""
        num_columns = grad.shape[1]
        kept = max(0, num_columns - abs(shift))
        sources = slice(shift, None) if shift > 0 else slice(0, kept)
        targets = slice(0, kept) if shift > 0 else slice(num_columns - kept, None)
        out[...] = 0
        self.xp.multiply(grad[:, sources], usable.reshape(1, -1)[:, sources], out=out[:, targets])

    def crf_loss(self, marks: SequenceMarks, labels: np.ndarray, h: Any, a: Any, out: Any) -> None:
        """out (1, 1) = the sum over the sequences of log of the sum of exp(score) of all paths, less the labels' score.

        labels (N,): the rows of the right path.
        """
        alpha = self._alphas(marks, h, a)
        ends = self.xp.asarray(marks.ends.reshape(-1).nonzero()[0])
        out[...] = self._log_sum(alpha[:, ends], 0).sum() - self._score(marks, labels, h, a)

    def crf_gradient(self, marks: SequenceMarks, labels: np.ndarray, h: Any, a: Any, grad_h: Any, grad_a: Any) -> None:
        """The gradients of crf_loss: probabilities of labels, and of pairs of them, less what the right path has."""
        xp = self.xp
        slots = marks.starts.shape[1]
        alpha = self._alphas(marks, h, a)
        grad_h.fill(0)
        grad_a.fill(0)
        beta = xp.zeros((h.shape[0], slots), h.dtype)
        for t in reversed(range(len(marks.starts))):
            step_columns = slice(t * slots, (t + 1) * slots)
            ends, inner = (xp.asarray(flags[t]) for flags in (marks.ends, marks.frames & ~marks.starts))
            beta = xp.where(ends, 0, beta)
            path = alpha[:, step_columns] + beta
            grad_h[:, step_columns] = xp.exp(path - self._log_sum(path, 0)) * xp.asarray(marks.frames[t])
            if inner.any():
                before = alpha[:, (t - 1) * slots : t * slots]
                pairs = before[:, None, :] + a[:, :, None] + (h[:, step_columns] + beta)[None, :, :]
                share = xp.exp(pairs - self._log_sum(path, 0)) * inner
                grad_a += share.sum(axis=2)
                beta = self._log_sum(a[:, :, None] + (h[:, step_columns] + beta)[None, :, :], 1)
        columns, steps = (xp.asarray(indices) for indices in _right(marks))
        grad_h[xp.asarray(labels)[columns], columns] -= 1
        xp.add.at(grad_a, (xp.asarray(labels)[steps - slots], xp.asarray(labels)[steps]), -1)

    def viterbi(self, marks: SequenceMarks, h: Any, a: Any, out: Any) -> None:
        """out (labels, N) = 1 in the rows of the best path of each sequence; of equal ones that of the first labels."""
        xp = self.xp
        slots = marks.starts.shape[1]
        out.fill(0)
        best = xp.zeros((h.shape[0], slots), h.dtype)
        sources = []
        tops = []
        for t in range(len(marks.starts)):
            scores = best[:, None, :] + a[:, :, None]
            starts = xp.asarray(marks.starts[t])
            sources.append(scores.argmax(axis=0))
            best = h[:, t * slots : (t + 1) * slots] + xp.where(starts, 0, scores.max(axis=0))
            tops.append(best.argmax(axis=0))
        label = xp.zeros(slots, int)
        lanes = xp.arange(slots)
        for t in reversed(range(len(marks.starts))):
            label = xp.where(xp.asarray(marks.ends[t]), tops[t], label)
            frames = xp.asarray(marks.frames[t].nonzero()[0])
            out[label[frames], t * slots + frames] = 1
            label = sources[t][label, lanes]

    def _alphas(self, marks: SequenceMarks, h: Any, a: Any) -> Any:
        """(labels, N): log of the sum of exp(score) of all paths from the start of a sequence to a label here."""
        xp = self.xp
        slots = marks.starts.shape[1]
        alpha = xp.zeros_like(h)
        for t in range(len(marks.starts)):
            step_columns = slice(t * slots, (t + 1) * slots)
            alpha[:, step_columns] = h[:, step_columns]
            inner = xp.asarray(marks.frames[t] & ~marks.starts[t])
            if inner.any():
                before = alpha[:, (t - 1) * slots : t * slots]
                alpha[:, step_columns] += xp.where(inner, self._log_sum(before[:, None, :] + a[:, :, None], 0), 0)
        return alpha

    def _log_sum(self, x: Any, axis: int) -> Any:
        top = x.max(axis=axis, keepdims=True)
        return self.xp.squeeze(top, axis) + self.xp.log(self.xp.exp(x - top).sum(axis=axis))

    def _score(self, marks: SequenceMarks, labels: np.ndarray, h: Any, a: Any) -> Any:
        columns, steps = (self.xp.asarray(indices) for indices in _right(marks))
        path = self.xp.asarray(labels)
        slots = marks.starts.shape[1]
        return h[path[columns], columns].sum() + a[path[steps - slots], path[steps]].sum()


def _right(marks: SequenceMarks) -> tuple[np.ndarray, np.ndarray]:
    """The columns with a frame, and those of them that follow another."""
    return marks.frames.reshape(-1).nonzero()[0], (marks.frames & ~marks.starts).reshape(-1).nonzero()[0]
