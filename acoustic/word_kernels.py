"""Compiled operations on numbered words for float32 on the CPU: what each does says ArrayWordKernels.

The work of class-based models is proportional to classes and words of a class, so that plain loops over the frames do;
see _word_kernels.py.
"""

from typing import Any

import numpy as np

from acoustic import _word_kernels
from acoustic.array_word_kernels import ArrayWordKernels, ClassLabels


def frames(matrix: Any) -> Any:
    """The transposed view (T, rows), C order, of a float32 matrix in Fortran order; anything else is a ValueError."""
    if not matrix.flags.f_contiguous or matrix.dtype != np.float32:
        raise ValueError(f"{matrix.dtype} matrix of {matrix.shape}; expected float32 in Fortran order")
    return matrix.T


class CompiledWordKernels(ArrayWordKernels):
    """Mixed into the compiled kernels."""

    def add_columns(self, columns: Any, place: np.ndarray, block: Any) -> None:
        _word_kernels.add_rows(frames(columns), place.astype(np.int64), frames(block))

    def cross_entropy_numbers(self, numbers: np.ndarray, z: Any, out: Any, error: Any) -> None:
        numbers = numbers.astype(np.int64)
        if error is None:
            out[0, 0] = _word_kernels.cross_entropy_numbers(numbers, frames(z))
        else:
            out[0, 0] = _word_kernels.cross_entropy_numbers_error(numbers, frames(z), frames(error))

    def count_errors_numbers(self, numbers: np.ndarray, z: Any, out: Any) -> None:
        out[0, 0] = _word_kernels.count_errors_numbers(numbers.astype(np.int64), frames(z))

    def class_loss(self, labels: ClassLabels, h: Any, weight: Any, q: Any, out: Any) -> None:
        rows = labels.word, labels.word_class, labels.first, labels.behind
        out[0, 0] = _word_kernels.class_loss(*rows, frames(h), frames(weight), frames(q))

    def class_errors(self, labels: ClassLabels, h: Any, weight: Any) -> Any:
        errors = np.empty(int(labels.sizes.sum()), np.float32)
        rows = labels.word, labels.first, labels.behind, labels.starts
        _word_kernels.class_errors(*rows, frames(h), frames(weight), errors)
        return errors

    def class_hidden_gradient(self, labels: ClassLabels, errors: Any, weight: Any, scale: float, out: Any) -> None:
        rows = labels.first, labels.behind, labels.starts
        _word_kernels.class_hidden_gradient(*rows, errors, frames(weight), np.float32(scale), frames(out))

    def class_weight_gradient(
        self, labels: ClassLabels, errors: Any, h: Any, scale: float, place: np.ndarray, block: Any
    ) -> None:
        block.fill(0)
        rows = labels.first, labels.behind, labels.starts
        _word_kernels.class_weight_gradient(*rows, errors, frames(h), np.float32(scale), place, frames(block))

    def class_posterior_gradient(self, labels: ClassLabels, q: Any, scale: float, out: Any) -> None:
        rows = labels.word_class, labels.first, labels.behind
        _word_kernels.class_posterior_gradient(*rows, frames(q), np.float32(scale), frames(out))
