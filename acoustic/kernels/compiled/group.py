"""Compiled p-norms and sums over groups of rows, and normalisation of columns, for float32 on the CPU.

ArrayGroupKernels describes each operation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from acoustic.kernels.arrays.group import SQUARE_FLOOR, ArrayGroupKernels
from acoustic.kernels.compiled import group_loops

FLOOR = np.array([SQUARE_FLOOR], np.float32)


class CompiledGroupKernels(ArrayGroupKernels):
    """Mixed into the compiled kernels.

    A sum of squares above 3e38 is infinite here: such a network has diverged.
    """

    calls: Any
    copied: Callable[[Any, Any], Any]

    def group_norms(self, x: Any, out: Any) -> None:
        self.calls.call(group_loops.group_norms, x.T, out.T)

    def group_norms_gradient(self, grad: Any, value: Any, x: Any, out: Any) -> None:
        self.calls.call(group_loops.group_norms_gradient, grad.T, value.T, x.T, out.T)

    def root_mean_square_one(self, x: Any, out: Any) -> None:
        self.calls.call(group_loops.root_mean_square_one, self.copied(x, out).T, FLOOR)

    def root_mean_square_one_gradient(self, grad: Any, x: Any, out: Any) -> None:
        self.calls.call(group_loops.root_mean_square_one_gradient, self.copied(grad, out).T, x.T, FLOOR)

    def log_sum_groups(self, x: Any, first: Any, out: Any) -> None:
        group_loops.log_sum_groups(x.T, out.T, first)

    def log_sum_groups_gradient(self, grad: Any, value: Any, x: Any, first: Any, out: Any) -> None:
        group_loops.log_sum_groups_gradient(grad.T, value.T, self.copied(x, out).T, first)
