"""Products with indicator columns, which are never multiplied: the columns they name are taken, and gradients put back.

A X with X (rows, N) one-hot costs rows of A times N, whatever the size of the vocabulary; so does the gradient with
respect to A, which is zero but for the columns that are named: see Into.add_columns.
"""

from typing import Any

import numpy as np

from acoustic.nodes.base import Run
from acoustic.nodes.gradient_targets import Into
from readers.minibatches.indicators import Indicators


def take_columns(run: Run, a: Any, numbers: np.ndarray, out: Any) -> None:
    """out (m, n) = the columns of a (m, k) that numbers (n,) names, zeros for -1."""
    xp = run.xp
    if xp is np:
        np.take(a.T, numbers, axis=0, out=out.T, mode="clip")  # other modes take a copy
    else:
        out[...] = a[:, xp.asarray(numbers)]
    missing = (numbers < 0).nonzero()[0]
    if len(missing):
        out[:, xp.asarray(missing)] = 0


def multiply_indicators(run: Run, a: Any, x: Indicators, out: Any) -> None:
    """out (m, N) = a x, a (m, rows of x)."""
    for block, numbers in enumerate(_rows_named(x)):
        if not block:
            take_columns(run, a, numbers, out)
        else:
            one = run.backend.empty(*out.shape)
            take_columns(run, a, numbers, one)
            run.xp.add(out, one, out=out)


def add_product_with_indicators(run: Run, into: Into, k: int, grad: Any, x: Indicators) -> None:
    """Add grad x' to operand k's gradient; grad (m, N)."""
    if not into.needs(k):
        return
    numbers = _rows_named(x)
    add_to_columns(run, into, k, numbers.reshape(-1), [grad] * len(numbers))


def add_to_columns(run: Run, into: Into, k: int, numbers: np.ndarray, grads: list[Any]) -> None:
    """Add the columns of grads, one matrix after another, to the columns of operand k's gradient that numbers names."""
    columns, place = np.unique(numbers, return_inverse=True)
    place = place.reshape(-1)  # numpy 2.0 gave it the shape of numbers
    if len(columns) and columns[0] < 0:
        columns, place = columns[1:], place - 1

    def write(block: Any, part: slice) -> None:
        block.fill(0)
        done = 0
        for grad in grads:
            run.kernels.add_columns(grad, place[done : done + grad.shape[1]] - (part.start or 0), block)
            done += grad.shape[1]

    into.add_columns(k, run.xp.asarray(columns), write)


def _rows_named(x: Indicators) -> np.ndarray:
    """(blocks, N): which row of the whole matrix each block names, -1: none."""
    offset = x.size * np.arange(len(x.numbers), dtype=np.int64)[:, None]
    return np.where(x.numbers < 0, -1, x.numbers + offset)
