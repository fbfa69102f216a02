"""P-norms and sums over groups of rows, and normalisation of columns, in terms of `xp`: see elementwise.py."""

from typing import Any

import numpy as np

SQUARE_FLOOR = 2.0**-66  # Kaldi's floor of the mean square


def grouped(x: Any, groups: int) -> Any:
    """A view (size, groups, cols) of a matrix (groups * size, cols), the rows of a group next to each other."""
    return x.reshape((x.shape[0] // groups, groups, x.shape[1]), order="F")


class ArrayGroupKernels:
    """Mixed into ArrayKernels."""

    xp: Any

    def group_norms(self, x: Any, out: Any) -> None:
        """out (groups, cols) = the square root of the sum of squares over each group of rows of x."""
        magnitude = self.xp.absolute(grouped(x, out.shape[0]))
        largest = magnitude.max(axis=0)  # divided by it, so that no square overflows
        total = self.xp.square(magnitude / self.xp.where(largest == 0, 1, largest)).sum(axis=0)
        self.xp.multiply(largest, self.xp.sqrt(total), out=out)

    def group_norms_gradient(self, grad: Any, value: Any, x: Any, out: Any) -> None:
        """out = x * grad / value of its group, 0 where value is 0; out may be x."""
        slope = self.xp.where(value == 0, 0, grad / self.xp.where(value == 0, 1, value))
        groups = value.shape[0]
        self.xp.multiply(grouped(x, groups), slope, out=grouped(out, groups))

    def root_mean_square_one(self, x: Any, out: Any) -> None:
        """out = each column of x divided by the root of its mean square, which is at least SQUARE_FLOOR."""
        self.xp.multiply(x, self._factor(x)[0], out=out)

    def root_mean_square_one_gradient(self, grad: Any, x: Any, out: Any) -> None:
        """out = r (grad - x q), r the columns' factors, q = r^2 the mean of grad x, 0 at the floor; out may be grad."""
        r, follows = self._factor(x)
        slope = (grad * x).mean(axis=0, keepdims=True) * r * r * follows
        self.xp.subtract(grad, x * slope, out=out)
        self.xp.multiply(out, r, out=out)

    def log_sum_groups(self, x: Any, first: Any, out: Any) -> None:
        """out (groups, cols) = log of the sum of exp(x) over the rows first[g] to first[g + 1] of each group.

        first (groups + 1,) int64, on the host, rising.
        """
        xp = self.xp
        sizes = first[1:] - first[:-1]
        top = x[xp.asarray(first[:-1])]  # the k-th rows of all groups that have one, for k = 1, 2, ...
        later = [
            (xp.asarray(groups), xp.asarray(first[groups] + k))
            for k in range(1, int(sizes.max()))
            for groups in [(sizes > k).nonzero()[0]]
        ]
        for groups, rows in later:
            top[groups] = xp.maximum(top[groups], x[rows])
        total = xp.exp(x[xp.asarray(first[:-1])] - top)
        for groups, rows in later:
            total[groups] += xp.exp(x[rows] - top[groups])
        xp.add(top, xp.log(total), out=out)

    def log_sum_groups_gradient(self, grad: Any, value: Any, x: Any, first: Any, out: Any) -> None:
        """out = grad of a row's group times exp(x - value of the group); out may be x."""
        group = self.xp.asarray(np.repeat(np.arange(len(first) - 1), first[1:] - first[:-1]))
        self.xp.multiply(self.xp.exp(x - value[group]), grad[group], out=out)

    def _factor(self, x: Any) -> tuple[Any, Any]:
        """(r, whether it depends on the column), both (1, cols)."""
        square = (x * x).mean(axis=0, keepdims=True)
        return 1 / self.xp.sqrt(self.xp.maximum(square, SQUARE_FLOOR)), square > SQUARE_FLOOR
