"""What receives the gradients of a backward pass, and how each parameter's gradient gets there."""

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from acoustic.nodes.base import Node
from acoustic.nodes.gradient_targets import GradientRoute

if TYPE_CHECKING:
    from acoustic.engine.execution.bound_pass import Program
    from acoustic.engine.execution.steps import BoundBackward, FactorStep


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
    """Receives the gradients of a backward pass; the base class leaves them where they are.

    A subclass overrides `__call__`.  The other methods save time: each has a default that makes the engine call
    `__call__` instead.

    Attributes
    ----------
    key : hashable or None
        Equal in passes in which `part` and the layers make the same calls, so that these may be replayed; None where
        that is unknown.
    takes_parts : bool
        Whether `part` may be called in place of `__call__`.
    takes_touched : bool
        Whether `touched` may be called in place of `__call__`.
    """

    key: Hashable | None = None
    takes_parts: bool = False
    takes_touched: bool = False

    def __call__(self, node: Node, gradient: Any) -> None:
        """Take a parameter's complete gradient (rows, cols); its memory may be overwritten.

        Nothing in this pass reads the parameter any more: an update can happen now, while both are in the cache.
        """

    def part(self, node: Node, gradient: Any, columns: slice) -> None:
        """Take some columns (rows, n) of a complete gradient; several threads call it, each with its own columns."""
        raise NotImplementedError

    def touched(self, node: Node, columns: Any, fill: Callable[[slice], Any]) -> None:
        """Take a gradient that is zero but for columns (n,); fill(part) lends the gradient of columns[part]."""
        raise NotImplementedError

    def layer(self, parameter: Node, node: Node, k: int) -> LayerUpdate | None:
        """Return what takes the factors of a parameter's gradient instead of the gradient, or None.

        The gradient is one product, made by operand k of `node`.  Called once in every pass.
        """
        return None


class FunctionSink(GradientSink):
    """Calls a function with every parameter and its gradient."""

    def __init__(self, function: Callable[[Node, Any], None]) -> None:
        self.function = function

    def __call__(self, node: Node, gradient: Any) -> None:
        self.function(node, gradient)


def sink_of(on_gradient: GradientSink | Callable[[Node, Any], None] | None) -> GradientSink:
    """The sink that an argument of Engine.backward stands for."""
    if isinstance(on_gradient, GradientSink):
        return on_gradient
    return GradientSink() if on_gradient is None else FunctionSink(on_gradient)


class ParameterRoute(GradientRoute):
    """The route of one parameter in one pass: its gradient goes to the sink as a matrix, or in parts of it."""

    def __init__(self, sink: GradientSink, parameter: Node, gradient: Any) -> None:
        self.sink, self.parameter, self.gradient = sink, parameter, gradient
        self.takes_parts = sink.takes_parts

    def part(self, columns: slice) -> None:
        self.sink.part(self.parameter, self.gradient[:, columns], columns)

    def finish(self) -> None:
        """The gradient is complete, and was not taken in parts by the engine."""
        self.sink(self.parameter, self.gradient)


class HandedOut(ParameterRoute):
    """The node hands all parts out itself."""

    def finish(self) -> None:
        pass


class TouchedColumns(ParameterRoute):
    """Only the columns that are not zero go to the sink, if the node names them; each worker names all."""

    takes_columns = True
    found: tuple[Any, Callable[[slice], Any]] | None = None

    def columns(self, columns: Any, fill: Callable[[slice], Any]) -> None:
        self.found, self.takes_parts = (columns, fill), False

    def finish(self) -> None:
        if self.found is None:
            super().finish()
        else:
            self.sink.touched(self.parameter, *self.found)


class InLayer(GradientRoute):
    """A layer changes the parameter together with its weights: there is nothing to hand over."""

    takes_parts = True

    def part(self, columns: slice) -> None:
        pass

    def finish(self) -> None:
        pass


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


class LayerFactors(InLayer):
    """One worker's factors of a product go to a layer.

    share: the columns that the worker gives to `LayerUpdate.frames` beforehand, None if all are given with the product;
    real: the columns with a frame, None if all are.
    """

    takes_factors = True

    def __init__(
        self, layer: LayerUpdate, worker: int, count: int, share: slice | None, real: RealFrames | None
    ) -> None:
        self.layer, self.worker, self.count, self.share, self.real = layer, worker, count, share, real
        self.found: tuple[Any, Any] = ()

    def factors(self, a: Any, b: Any) -> None:
        if self.real is not None:
            a, b = taken(a, self.real.columns), taken(b, self.real.columns)
        self.found = a, b
        if self.share is None:
            self.layer.frames(a, b, 0, a.shape[1], self.worker, self.count)
        else:
            self.finish()

    def finish(self) -> None:
        found, self.found = self.found, ()  # copies without gaps must not outlive the pass, as the route does
        self.layer.update(*found, self.worker, self.count)


class LayerFrames(GradientRoute):
    """The columns of the factors that a worker has just computed go to LayerUpdate.frames."""

    takes_factors = True

    def __init__(self, whole: LayerFactors, num_frames: int) -> None:
        self.whole, self.num_frames = whole, num_frames

    def factors(self, a: Any, b: Any) -> None:
        layer, share, real = self.whole.layer, self.whole.share, self.whole.real
        worker = self.whole.worker, self.whole.count
        if real is None:
            layer.frames(a, b, share.start, self.num_frames, *worker)
            return
        first, columns = real.within(share)
        left, right = taken(a, columns), taken(b, columns)
        right *= real.is_real[share][columns]
        layer.frames(left, right, first, len(real.columns), *worker)
        a[:, columns] = left


class GradientRoutes:
    """The routes of all parameters of a program in one pass.

    key: equal in passes whose routes make the same calls, None where that is unknown; layers: those that take factors.
    """

    def __init__(self, program: "Program", sink: GradientSink, words: Collection[str], gaps: np.ndarray | None) -> None:
        """words: the inputs that are given as Indicators; gaps: which columns have no frame, None: none."""
        self.sink, self._gradients = sink, program.memory.gradients
        self._routes: dict[str, ParameterRoute | InLayer] = {}
        self.layers: list[LayerUpdate] = []
        shares = [worker.columns for worker in program.workers] if program.split else []
        real = None if gaps is None else RealFrames.of_gaps(program.backend.xp, gaps, shares)
        for _, k, targets in (*program.handed_out, *program.touched_columns):
            targets.routes.pop(k, None)  # of the last pass, which may have had another sink
        for parameter, k, steps, factor_steps in program.layer_products:
            by_words = any(leaf.name in words for _, leaf in steps[0].operands.leaves)
            layer = None if by_words else sink.layer(parameter, steps[0].node, k)
            self._connect_layer(parameter, layer, k, steps, factor_steps, real)
        self.key = () if not sink.takes_parts and not self.layers else sink.key
        in_layers = set(self._routes)
        for kind, wanted, products in (
            (HandedOut, sink.takes_parts, program.handed_out),
            (TouchedColumns, sink.takes_touched, program.touched_columns),
        ):
            for parameter, k, targets in products:
                if wanted and parameter.name not in in_layers:
                    if parameter.name not in self._routes:
                        self._routes[parameter.name] = kind(sink, parameter, self._gradients[parameter.name])
                    targets.routes[k] = self._routes[parameter.name]
                targets.key = self.key

    def _connect_layer(
        self,
        parameter: Node,
        layer: LayerUpdate | None,
        k: int,
        steps: "Sequence[BoundBackward]",
        factor_steps: "Sequence[FactorStep]",
        real: RealFrames | None,
    ) -> None:
        """Let the workers' steps that make a parameter's gradient give its factors to a layer; None: to no layer."""
        for one in (*steps, *factor_steps):
            one.into.routes.pop(k, None)
        if layer is None:
            return
        self.layers.append(layer)
        for worker, one in enumerate(steps):
            share = factor_steps[worker].columns if factor_steps else None
            route = one.into.routes[k] = LayerFactors(layer, worker, len(steps), share, real)
            if factor_steps:
                factor_steps[worker].into.routes[k] = LayerFrames(route, factor_steps[worker].num_frames)
        self._routes[parameter.name] = steps[0].into.routes[k]
        if layer.bias is not None:
            self._routes[layer.bias] = InLayer()

    def of(self, parameter: Node) -> ParameterRoute | InLayer:
        """The route of one parameter."""
        if parameter.name not in self._routes:
            return ParameterRoute(self.sink, parameter, self._gradients[parameter.name])
        return self._routes[parameter.name]
