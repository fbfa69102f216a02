"""Compiled operations on paths through sequences, for float32 on the CPU; ArraySequenceKernels describes each."""

from typing import Any

import numpy as np

from acoustic.kernels.arrays.sequence import ArraySequenceKernels, SequenceMarks
from acoustic.kernels.compiled import sequence_loops
from acoustic.kernels.compiled.operands import frames, in_shares, share_rows
from acoustic.runtime.thread_team import ThreadTeam


class CompiledSequenceKernels(ArraySequenceKernels):
    """Mixed into the compiled kernels."""

    team: ThreadTeam | None

    def splice(self, x: Any, held: Any, sources: np.ndarray, out: Any) -> None:
        share_rows(self.team, sequence_loops.splice, [frames(out), sources], frames(x), frames(held))

    def splice_gradient(self, grad: Any, sources: np.ndarray, out: Any) -> None:
        # Each thread sums some rows of all columns, as the columns of several places may be added to one.
        def add(rows: slice) -> None:
            sequence_loops.splice_gradient(frames(grad), sources, frames(out), rows.start, rows.stop)

        in_shares(self.team, out.shape[0], grad.size, add)

    def crf_loss(self, marks: SequenceMarks, labels: np.ndarray, h: Any, a: Any, out: Any) -> None:
        out[0, 0] = sequence_loops.loss(*_pieces(marks), labels, h.T, np.ascontiguousarray(a))

    def crf_gradient(self, marks: SequenceMarks, labels: np.ndarray, h: Any, a: Any, grad_h: Any, grad_a: Any) -> None:
        pairs = np.empty(a.shape)
        sequence_loops.gradient(*_pieces(marks), labels, h.T, np.ascontiguousarray(a), grad_h.T, pairs)
        grad_a[...] = pairs

    def viterbi(self, marks: SequenceMarks, h: Any, a: Any, out: Any) -> None:
        sequence_loops.viterbi(*_pieces(marks), h.T, np.ascontiguousarray(a), out.T)


def _pieces(marks: SequenceMarks) -> tuple[np.ndarray, np.ndarray, int]:
    """First column and number of steps of every sequence, and the distance of columns between steps."""
    slots = marks.starts.shape[1]
    slot, start = marks.starts.T.nonzero()
    _, end = marks.ends.T.nonzero()
    return start * slots + slot, end - start + 1, slots
