"""What receives the gradients of a backward pass; backward.py lists how they get there."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acoustic.nodes.base import Node
from acoustic.runtime.operations import Operation


class LayerUpdate:
    """Changes a parameter from the factors of its gradient a b', a product over the frames.

    `count` workers call `frames`, each in its thread, and then, when all have done so, `update`.

    Attributes
    ----------
    bias : str or None
        The name of another parameter that is changed with it.
    reads_frames : bool
        Whether `frames` does something.
    """

    bias: str | None = None
    reads_frames: bool = False

    def frames(self, a: Any, b: Any, first: int, num_frames: int, worker: int, count: int) -> None:
        """Read frames of the factors, columns of a (rows, n) and b (cols, n), from the `first` of num_frames on.

        a may be changed, b may not.
        """

    def update(self, a: Any, b: Any, worker: int, count: int) -> None:
        """Change the parameter, or one worker's part of it; a, b: the factors of all frames as `frames` left them."""
        raise NotImplementedError


class GradientSink:
    """Receives the gradients of a backward pass: by default it calls a function or, without one, leaves them.

    A subclass overrides `__call__`.  The other methods save time: each has a default that makes the engine call
    `__call__` instead.

    Parameters
    ----------
    function : callable, optional
        Called with every parameter and its gradient.

    Attributes
    ----------
    key : hashable or None
        Equal in passes in which `operations` returns the same; None if it is never to be called.
    takes_parts : bool
        Whether `part` may be called in place of `__call__`.
    takes_touched : bool
        Whether `touched` may be called in place of `__call__`.
    """

    takes_parts: bool = False
    takes_touched: bool = False
    function: Callable[[Node, Any], None] | None = None

    def __init__(self, function: Callable[[Node, Any], None] | None = None) -> None:
        self.function = function

    @property
    def key(self) -> Hashable | None:
        """Key of what `operations` returns: see above."""
        return None

    def __call__(self, node: Node, gradient: Any) -> None:
        """Take a parameter's complete gradient (rows, cols); its memory may be overwritten.

        Nothing in this pass reads the parameter any more: an update can happen now, while both are in the cache.
        """
        if self.function is not None:
            self.function(node, gradient)

    def part(self, node: Node, gradient: Any, columns: slice) -> None:
        """Take some columns (rows, n) of a complete gradient; several threads call it, each with its own columns."""
        raise NotImplementedError

    def operations(self, node: Node, gradient: Any, columns: slice) -> list[Operation]:
        """Return the operations that do what `part` does, if `key` is not None."""
        raise NotImplementedError

    def touched(self, node: Node, columns: Any, fill: Callable[[slice], Any]) -> None:
        """Take a gradient that is zero but for columns (n,); fill(part) lends the gradient of columns[part]."""
        raise NotImplementedError

    def layer(self, parameter: Node, node: Node, k: int) -> LayerUpdate | None:
        """Return what takes the factors of a parameter's gradient instead of the gradient, or None.

        The gradient is one product, made by operand k of `node`.  Called once in every pass.
        """
        return None


def sink_of(on_gradient: GradientSink | Callable[[Node, Any], None] | None) -> GradientSink:
    """The sink that an argument of Engine.backward stands for."""
    return on_gradient if isinstance(on_gradient, GradientSink) else GradientSink(on_gradient)


@dataclass(frozen=True)
class RealFrames:
    """The columns of a minibatch that hold a frame, where others are gaps; gaps do not count as frames.

    columns (n,): ascending, on the device; is_real (columns of the minibatch,).
    """

    columns: Any
    is_real: np.ndarray

    @classmethod
    def of_gaps(cls, xp: Any, gaps: np.ndarray, shares: Sequence[slice]) -> "RealFrames":
        """gaps (columns,): which are gaps; every worker's share keeps at least one column, which then holds zeros."""
        selected = ~gaps
        for share in shares:
            if not selected[share].any():
                selected[share.start] = True
        return cls(xp.asarray(selected.nonzero()[0]), ~gaps)

    def within(self, share: slice) -> tuple[int, np.ndarray]:
        """How many of the columns precede a share, and those in it, counted from its first column; on the CPU."""
        first, last = np.searchsorted(self.columns, (share.start, share.stop))
        return int(first), self.columns[first:last] - share.start


def taken(matrix: Any, columns: Any) -> Any:
    """Some columns of a matrix, as a new matrix in Fortran order."""
    return matrix.T[columns].T
