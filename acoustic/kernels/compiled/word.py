"""Compiled operations on numbered words, for float32 on the CPU; ArrayWordKernels describes each.

The cost of class-based models is proportional to the number of classes and of words in a class, so that plain loops
over the frames are fast enough; see word_loops.py.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from acoustic.kernels.arrays.word import ArrayWordKernels, ClassLabels
from acoustic.kernels.compiled import word_loops
from acoustic.kernels.compiled.operands import frames, share_columns
from acoustic.runtime.thread_team import ThreadTeam


class CompiledWordKernels(ArrayWordKernels):
    """Mixed into the compiled kernels; team: threads that divide the columns."""

    team: ThreadTeam | None = None

    def _share(self, matrix: Any, work: Callable[[slice], Any]) -> list[Any]:
        """work(part) for parts of the columns of a matrix."""
        return share_columns(self.team, matrix.size, matrix.shape[1], work)

    def add_columns(self, columns: Any, place: np.ndarray, block: Any) -> None:
        word_loops.add_rows(frames(columns), place.astype(np.int64), frames(block))

    def cross_entropy_numbers(self, numbers: np.ndarray, z: Any, out: Any, error: Any) -> None:
        numbers, scores = numbers.astype(np.int64), frames(z)
        if error is None:
            loop = word_loops.cross_entropy_numbers
            losses = self._share(z, lambda part: loop(numbers[part], scores[part]))
        else:
            loop, errors = word_loops.cross_entropy_numbers_error, frames(error)
            losses = self._share(z, lambda part: loop(numbers[part], scores[part], errors[part]))
        out[0, 0] = sum(losses)

    def count_errors_numbers(self, numbers: np.ndarray, z: Any, out: Any) -> None:
        numbers, scores, loop = numbers.astype(np.int64), frames(z), word_loops.count_errors_numbers
        out[0, 0] = sum(self._share(z, lambda part: loop(numbers[part], scores[part])))

    def class_loss(self, labels: ClassLabels, h: Any, weight: Any, q: Any, out: Any) -> None:
        rows = labels.word, labels.word_class, labels.first, labels.behind
        hidden, weights, classes = frames(h), frames(weight), frames(q)

        def work(part: slice) -> float:
            return word_loops.class_loss(*(row[part] for row in rows), hidden[part], weights, classes[part])

        out[0, 0] = sum(self._share(h, work))

    def class_errors(self, labels: ClassLabels, h: Any, weight: Any) -> Any:
        errors = np.empty(int(labels.sizes.sum()), np.float32)
        rows = labels.word, labels.first, labels.behind, labels.starts
        hidden, weights = frames(h), frames(weight)
        self._share(
            h, lambda part: word_loops.class_errors(*(row[part] for row in rows), hidden[part], weights, errors)
        )
        return errors

    def class_hidden_gradient(self, labels: ClassLabels, errors: Any, weight: Any, scale: float, out: Any) -> None:
        rows = labels.first, labels.behind, labels.starts
        weights, result = frames(weight), frames(out)

        def work(part: slice) -> None:
            mine = (row[part] for row in rows)
            word_loops.class_hidden_gradient(*mine, errors, weights, np.float32(scale), result[part])

        self._share(out, work)

    def class_weight_gradient(
        self, labels: ClassLabels, errors: Any, h: Any, scale: float, place: np.ndarray, block: Any
    ) -> None:
        rows = labels.first, labels.behind, labels.starts
        hidden, result = frames(h), frames(block)

        def work(part: slice) -> None:
            mine = result[part]
            mine.fill(0)
            word_loops.class_weight_gradient(*rows, errors, hidden, np.float32(scale), place - part.start, mine)

        self._share(block, work)

    def class_posterior_gradient(self, labels: ClassLabels, q: Any, scale: float, out: Any) -> None:
        rows = labels.word_class, labels.first, labels.behind
        scores, result = frames(q), frames(out)

        def work(part: slice) -> None:
            mine = (row[part] for row in rows)
            word_loops.class_posterior_gradient(*mine, scores[part], np.float32(scale), result[part])

        self._share(out, work)
