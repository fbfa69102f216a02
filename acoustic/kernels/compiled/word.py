"""Compiled operations on numbered words, for float32 on the CPU; ArrayWordKernels describes each.

The cost of class-based models is proportional to the number of classes and of words in a class, so that plain loops
over the frames are fast enough; see word_loops.py.
"""

from typing import Any

import numpy as np

from acoustic.kernels.arrays.word import ArrayWordKernels, ClassLabels, NoiseLabels
from acoustic.kernels.compiled import word_loops
from acoustic.kernels.compiled.operands import frames, share_rows
from acoustic.runtime.thread_team import ThreadTeam


class CompiledWordKernels(ArrayWordKernels):
    """Mixed into the compiled kernels; team: threads that divide the columns."""

    team: ThreadTeam | None = None

    def add_columns(self, columns: Any, place: np.ndarray, block: Any) -> None:
        word_loops.add_rows(frames(columns), place.astype(np.int64), frames(block))

    def cross_entropy_numbers(self, numbers: np.ndarray, z: Any, out: Any, error: Any) -> None:
        rows = numbers.astype(np.int64), frames(z)
        if error is None:
            losses = share_rows(self.team, word_loops.cross_entropy_numbers, rows)
        else:
            losses = share_rows(self.team, word_loops.cross_entropy_numbers_error, [*rows, frames(error)])
        out[0, 0] = sum(losses)

    def count_errors_numbers(self, numbers: np.ndarray, z: Any, out: Any) -> None:
        out[0, 0] = sum(share_rows(self.team, word_loops.count_errors_numbers, [numbers.astype(np.int64), frames(z)]))

    def class_loss(self, labels: ClassLabels, h: Any, weight: Any, q: Any, out: Any) -> None:
        rows = labels.word, labels.word_class, labels.first, labels.behind, frames(h), frames(q)
        out[0, 0] = sum(share_rows(self.team, word_loops.class_loss, rows, frames(weight)))

    def class_errors(self, labels: ClassLabels, h: Any, weight: Any) -> Any:
        errors = np.empty(int(labels.sizes.sum()), np.float32)
        rows = labels.word, labels.first, labels.behind, labels.starts, frames(h)
        share_rows(self.team, word_loops.class_errors, rows, frames(weight), errors)
        return errors

    def class_hidden_gradient(self, labels: ClassLabels, errors: Any, weight: Any, scale: float, out: Any) -> None:
        rows = labels.first, labels.behind, labels.starts, frames(out)
        share_rows(self.team, word_loops.class_hidden_gradient, rows, errors, frames(weight), np.float32(scale))

    def class_weight_gradient(
        self, labels: ClassLabels, errors: Any, h: Any, scale: float, place: np.ndarray, block: Any
    ) -> None:
        rows = np.arange(block.shape[1]), frames(block)
        words = labels.first, labels.behind, labels.starts, place
        loop = word_loops.class_weight_gradient
        share_rows(self.team, loop, rows, *words, errors, frames(h), np.float32(scale))

    def class_posterior_gradient(self, labels: ClassLabels, q: Any, scale: float, out: Any) -> None:
        rows = labels.word_class, labels.first, labels.behind, frames(q), frames(out)
        share_rows(self.team, word_loops.class_posterior_gradient, rows, np.float32(scale))

    def noise_margins(self, labels: NoiseLabels, h: Any, weight: Any, bias: Any) -> Any:
        words = np.ascontiguousarray(labels.words.T)
        costs = np.ascontiguousarray(labels.costs.T, np.float32)
        margins = np.empty(words.shape, np.float32)
        share_rows(self.team, word_loops.noise_margins, [words, costs, frames(h), margins], frames(weight), bias[0])
        return margins.T

    def noise_hidden_gradient(self, labels: NoiseLabels, errors: Any, weight: Any, scale: float, out: Any) -> None:
        rows = np.ascontiguousarray(labels.words.T), np.ascontiguousarray(errors.T), frames(out)
        share_rows(self.team, word_loops.noise_hidden_gradient, rows, frames(weight), np.float32(scale))

    def noise_weight_gradient(self, errors: Any, h: Any, scale: float, place: np.ndarray, block: Any) -> None:
        columns = place.T.ravel()  # frame after frame, like the errors
        in_block = np.flatnonzero((columns >= 0) & (columns < block.shape[1]))
        order = in_block[np.argsort(columns[in_block], kind="stable")]
        starts = np.insert(np.cumsum(np.bincount(columns[in_block], minlength=block.shape[1])), 0, 0)
        rows = np.arange(block.shape[1]), frames(block)
        settings = starts, order, np.ascontiguousarray(errors.T), frames(h), np.float32(scale)
        share_rows(self.team, word_loops.noise_weight_gradient, rows, *settings)
