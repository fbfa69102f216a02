"""Products with one-hot columns given as Indicators: columns are copied forward and added backward, not multiplied.

``A X`` with X (k, N) one-hot copies N columns of A, whatever the size of the vocabulary. The gradient with respect to A
is zero except for the columns that X names; see GradientTargets.add_columns.
"""

from typing import Any

import numpy as np

from acoustic.nodes.base import PassContext
from acoustic.nodes.gradient_targets import GradientTargets
from readers.minibatches.indicators import Indicators


def take_columns(context: PassContext, a: Any, numbers: np.ndarray, out: Any) -> None:
    """Fill out (m, n) with the columns of a (m, k) that numbers (n,) names, and zeros for -1."""
    xp = context.xp
    if xp is np:
        np.take(a.T, numbers, axis=0, out=out.T, mode="clip")  # the default mode copies
    else:
        out[...] = a[:, xp.asarray(numbers)]
    missing = (numbers < 0).nonzero()[0]
    if len(missing):
        out[:, xp.asarray(missing)] = 0


def multiply_indicators(context: PassContext, a: Any, x: Indicators, out: Any) -> None:
    """Compute out (m, N) = a x, where a is (m, rows of x)."""
    for block, numbers in enumerate(_rows_named(x)):
        if not block:
            take_columns(context, a, numbers, out)
        else:
            block_product = context.backend.empty(*out.shape)
            take_columns(context, a, numbers, block_product)
            context.xp.add(out, block_product, out=out)


def add_product_with_indicators(context: PassContext, grads: GradientTargets, k: int, grad: Any, x: Indicators) -> None:
    """Add grad x' to the gradient of operand `k`; grad is (m, N)."""
    if not grads.needs(k):
        return
    numbers = _rows_named(x)
    add_to_columns(context, grads, k, numbers.reshape(-1), [grad] * len(numbers))


def add_to_columns(
    context: PassContext, grads: GradientTargets, k: int, numbers: np.ndarray, gradients: list[Any]
) -> None:
    """Add the columns of some matrices, one after another, to the columns `numbers` of the gradient of operand `k`."""
    columns, positions = np.unique(numbers, return_inverse=True)
    positions = positions.reshape(-1)  # numpy 2.0 returns it in the shape of `numbers`
    if len(columns) and columns[0] < 0:
        columns = columns[1:]
        positions = positions - 1

    def write(block: Any, part: slice) -> None:
        block.fill(0)
        done = 0
        for grad in gradients:
            context.kernels.add_columns(grad, positions[done : done + grad.shape[1]] - (part.start or 0), block)
            done += grad.shape[1]

    grads.add_columns(k, context.xp.asarray(columns), write)


def _rows_named(x: Indicators) -> np.ndarray:
    """Return the row of the stacked matrix that each block names in each column, (blocks, N), -1 for none."""
    offset = x.size * np.arange(len(x.numbers), dtype=np.int64)[:, None]
    return np.where(x.numbers < 0, -1, x.numbers + offset)
