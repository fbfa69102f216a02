"""What receives the gradients of a backward pass, and how each parameter's gradient gets there."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acoustic.nodes.base import Node
from acoustic.nodes.gradient_targets import GradientRoute
from acoustic.runtime.operations import Operation, PythonCall


class LayerUpdate:
    """Changes a parameter from the factors of its gradient a b', a product over the frames.

    `count` workers call `frames`, each in its thread, and then, when all have done so, `update`.

    Attributes
    ----------
    bias : str or None
        The name of another parameter that is changed with it.
    """

    bias: str | None = None

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

    key: Hashable | None = None
    takes_parts: bool = False
    takes_touched: bool = False
    function: Callable[[Node, Any], None] | None = None

    def __init__(self, function: Callable[[Node, Any], None] | None = None) -> None:
        self.function = function

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
        kept = ~gaps
        for share in shares:
            if not kept[share].any():
                kept[share.start] = True
        return cls(xp.asarray(kept.nonzero()[0]), ~gaps)

    def within(self, share: slice) -> tuple[int, np.ndarray]:
        """How many of the columns precede a share, and those in it, counted from its first column; on the CPU."""
        first, last = np.searchsorted(self.columns, (share.start, share.stop))
        return int(first), self.columns[first:last] - share.start


def taken(matrix: Any, columns: Any) -> Any:
    """Some columns of a matrix, as a new matrix in Fortran order."""
    return matrix.T[columns].T


@dataclass
class Receiver:
    """What receives the gradients of the present pass; real: the columns with a frame, None if all are."""

    sink: GradientSink
    real: RealFrames | None = None


class ParameterRoute(GradientRoute):
    """The route of a parameter's gradient to the sink, as a matrix, in parts of it, or as columns that are not zero.

    takes_parts: whether nodes hand out parts; takes_columns: whether they may name columns, and each worker names all;
    lists: whether parts are listed as operations of the sink.
    """

    def __init__(
        self, receiver: Receiver, parameter: Node, gradient: Any, *, columns: bool = False, lists: bool = False
    ) -> None:
        self.receiver, self.parameter, self.gradient = receiver, parameter, gradient
        self.takes_parts, self.takes_columns, self.lists = receiver.sink.takes_parts, columns, lists
        self._touched: tuple[Any, Callable[[slice], Any]] | None = None

    def columns(self, columns: Any, fill: Callable[[slice], Any]) -> None:
        self._touched = columns, fill

    def operations(self, columns: slice) -> list[Operation]:
        if self.lists and not self.takes_columns:
            return self.receiver.sink.operations(self.parameter, self.gradient[:, columns], columns)
        return [PythonCall("update", self._part, columns, node=self.parameter.name)]

    def _part(self, columns: slice) -> None:
        if self._touched is None:
            self.receiver.sink.part(self.parameter, self.gradient[:, columns], columns)

    def finish(self, in_parts: bool) -> None:
        """The gradient is complete; in_parts: whether the sink has taken it in parts."""
        touched, self._touched = self._touched, None
        if touched is not None:
            self.receiver.sink.touched(self.parameter, *touched)
        elif not in_parts:
            self.receiver.sink(self.parameter, self.gradient)


class LayerRoute(GradientRoute):
    """The route of one worker's factors of a product to a layer.

    share: the columns that are computed when `factors` is called, None for all; updates: whether these are all factors,
    which the layer has seen. Without a share the layer is updated by `finish`, when no step reads the parameter.
    """

    takes_factors = True

    def __init__(
        self,
        receiver: Receiver,
        layer: LayerUpdate,
        workers: tuple[int, int],
        share: slice | None = None,
        num_frames: int = 0,
        updates: bool = False,
    ) -> None:
        self.receiver, self.layer, self.workers = receiver, layer, workers
        self.share, self.num_frames, self.updates = share, num_frames, updates
        self._factors: tuple[Any, Any] | None = None

    @property
    def has_factors(self) -> bool:
        return self._factors is not None

    def factors(self, kernels: Any, a: Any, b: Any) -> None:
        layer, real = kernels.of(self.layer), self.receiver.real
        if self.share is not None and real is not None:
            self._frames_between_gaps(a, b, self.share, real)
        elif self.share is not None:
            layer.frames(a, b, self.share.start, self.num_frames, *self.workers)
        else:
            if real is not None:
                a, b = taken(a, real.columns), taken(b, real.columns)
            if self.updates:
                layer.update(a, b, *self.workers)
            else:
                layer.frames(a, b, 0, a.shape[1], *self.workers)
                self._factors = a, b

    def _frames_between_gaps(self, a: Any, b: Any, share: slice, real: RealFrames) -> None:
        first, columns = real.within(share)
        left, right = taken(a, columns), taken(b, columns)
        right *= real.is_real[share][columns]
        self.layer.frames(left, right, first, len(real.columns), *self.workers)
        a[:, columns] = left

    def finish(self, kernels: Any) -> None:
        """Update the layer from the factors of all frames."""
        factors, self._factors = self._factors, None  # copies without gaps must not outlive the pass
        if factors is not None:
            kernels.of(self.layer).update(*factors, *self.workers)
