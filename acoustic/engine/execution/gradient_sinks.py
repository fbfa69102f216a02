"""What takes the gradients of a backward pass: in the simplest form, or in those that save time, if it has them."""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from acoustic.nodes.base import Node
from acoustic.nodes.gradient_targets import Accumulation, Into

if TYPE_CHECKING:
    from acoustic.engine.execution.steps import BoundBackward, LayerLook


class Layer(Protocol):
    """Changes a parameter from the factors of its gradient a b', a product over the frames.

    Workers, `count` of them, each call both, each in its thread; all have done the first before one does the second.
    bias: the name of another parameter that it changes, too.
    """

    bias: str | None

    def frames(self, a: Any, b: Any, first: int, num_frames: int, worker: int, count: int) -> None:
        """Look at some frames, columns of a (rows, n) and b (cols, n), from the `first` of the minibatch's num_frames.

        a is nobody else's and may be changed, b may not.
        """

    def update(self, a: Any, b: Any, worker: int, count: int) -> None:
        """Change the parameter, or one worker's part of it; a, b: the factors of all frames as `frames` left them."""


class GradientSink(Protocol):
    """What on_gradient of Engine.backward may have; each method saves time, and all but the call may be missing.

    key: alike in passes that may repeat the same calls, None where that cannot be said.
    """

    key: Hashable | None

    def __call__(self, node: Node, gradient: Any) -> None:
        """A parameter's gradient (rows, cols) is complete, and its value no longer needed in this pass: an update may
        happen here, while both are in the cache, and may use the gradient's memory.
        """

    def part(self, node: Node, gradient: Any, columns: slice) -> None:
        """The same of some columns, (rows, columns); several threads call it at once, each with columns of its own."""

    def accumulation(self, node: Node) -> Accumulation | None:
        """Where a gradient that is one product is added up instead of in a matrix of its own; None: nowhere."""

    def take(self, node: Node, columns: slice) -> None:
        """Some columns of such a sum are complete; in any thread."""

    def touched(self, node: Node, columns: Any, fill: Callable[[slice], Any]) -> None:
        """A gradient that is zero but for columns (n,) is complete: fill(part), for one slice of them after another,
        lends the gradient of columns[part].
        """

    def layer(self, parameter: Node, node: Node, k: int) -> Layer | None:
        """Who gets the factors of a gradient that is one product, which node's operand k has, instead of the gradient;
        None: nobody.
        """


@dataclass(frozen=True)
class Real:
    """The columns of a minibatch that have a frame, where others have none: they count in no sum, nor as frames.

    places (n,): ascending, on the device; is_real (columns,).
    """

    places: Any
    is_real: np.ndarray

    @classmethod
    def of_gaps(cls, xp: Any, gaps: np.ndarray, shares: Sequence[slice]) -> "Real":
        """gaps (columns,): which have none; every share, one worker's columns, keeps one, which holds zeros then."""
        kept = ~gaps
        for share in shares:
            if not kept[share].any():
                kept[share.start] = True
        return cls(xp.asarray(kept.nonzero()[0]), ~gaps)

    def within(self, share: slice) -> tuple[int, np.ndarray]:
        """(how many come before, places counted from its first column) of the columns of a share; on the CPU."""
        first, last = np.searchsorted(self.places, (share.start, share.stop))
        return int(first), self.places[first:last] - share.start


def taken(matrix: Any, places: Any) -> Any:
    """Some columns of a matrix in Fortran order, as a new one."""
    return matrix.T[places].T


class Factors:
    """What one worker's product of a parameter gives to its layer: all frames; columns: of those it has looked at
    before, None where it does so only then.  real: the columns with a frame, None: all.
    """

    def __init__(self, layer: Layer, worker: int, count: int, columns: slice | None) -> None:
        self.layer, self.worker, self.count, self.columns = layer, worker, count, columns
        self.real: Real | None = None
        self.found: tuple[Any, Any] | None = None

    def __call__(self, a: Any, b: Any) -> None:
        if self.real is not None:
            a, b = taken(a, self.real.places), taken(b, self.real.places)
        self.found = a, b
        if self.columns is None:
            self.layer.frames(a, b, 0, a.shape[1], self.worker, self.count)
        else:
            self.update()

    def look(self, num_frames: int, a: Any, b: Any) -> None:
        """Some of the factors' columns, when the worker has just made them."""
        if self.real is None:
            self.layer.frames(a, b, self.columns.start, num_frames, self.worker, self.count)
            return
        first, places = self.real.within(self.columns)
        is_real = self.real.is_real[self.columns][places]
        left, right = taken(a, places), taken(b, places)
        right *= is_real
        self.layer.frames(left, right, first, len(self.real.places), self.worker, self.count)
        a[:, places] = left

    def update(self) -> None:
        self.layer.update(*self.found, self.worker, self.count)


class Taker:
    """Wraps what a caller gives Engine.backward as on_gradient: a GradientSink, or any function.

    lone_products: (parameter, position among the operands, the steps that make its gradient); lone_columns: the same,
    one step, where that may make a few columns; layer_products: as lone_products, those that may go to a Layer, and the
    steps that let it look at each worker's frames before; words: the inputs that are given as Indicators; gaps: which
    columns have no frame, None: none.
    """

    def __init__(
        self,
        on_gradient: Any,
        lone_products: "Iterable[tuple[Node, int, list[BoundBackward]]]",
        lone_columns: Iterable[tuple[Node, int, Into]] = (),
        layer_products: "Iterable[tuple[Node, int, list[BoundBackward], Sequence[LayerLook]]]" = (),
        words: Collection[str] = (),
        gaps: np.ndarray | None = None,
    ) -> None:
        self._on_gradient, self._words = on_gradient, words
        self._part: Callable[..., None] | None = getattr(on_gradient, "part", None)
        self._elsewhere: set[str] = set()  # parameters whose gradient is in no matrix of its own
        offer: Callable[[Node], Accumulation | None] | None = getattr(on_gradient, "accumulation", None)
        layers: Callable[[Node, Node, int], Layer | None] | None = getattr(on_gradient, "layer", None)
        self._products: dict[str, tuple[int, Into]] = {}
        self._factors: dict[str, list[tuple[BoundBackward, Factors]]] = {}  # of each worker
        self._weight_of: dict[str, str] = {}  # by biases that a layer changes with it
        for node, k, bound, looks in layer_products:
            real = None if gaps is None else Real.of_gaps(bound[0].into.xp, gaps, [look.columns for look in looks])
            is_table = words and any(leaf.name in words for _, leaf in bound[0].operands.leaves)
            layer = layers(node, bound[0].node, k) if layers is not None and not is_table else None
            self._offer(node, k, bound, looks, layer, real)
        for node, k, bound in lone_products:
            if node.name in self._factors:
                continue
            steps = [one.into for one in bound]
            place = offer(node) if offer is not None else None
            for into in steps:
                into.elsewhere.pop(k, None)
                if place is not None:
                    into.elsewhere[k] = place
            if place is not None:
                self._elsewhere.add(node.name)
            into = steps[0]
            into.on_columns.pop(k, None)
            if self.takes_parts(node):
                into.on_columns[k] = partial(self.columns, node, into.targets[k])
            self._products[node.name] = k, into
        self._known_key = key = self.key
        for _, into in self._products.values():
            into.key = key
        for steps in self._factors.values():
            for bound, _ in steps:
                bound.into.key = key
        self._touched: Callable[..., None] | None = getattr(on_gradient, "touched", None)
        self._by_columns = {node.name: (k, into) for node, k, into in lone_columns}
        self.renew()

    def stays(self, on_gradient: Any, words: Collection[str]) -> bool:
        """Whether another one, made of these, would do as this one does.  Layers are asked for anew each time."""
        same = on_gradient is self._on_gradient and words == self._words and not hasattr(on_gradient, "layer")
        return same and self._known_key is not None and self.key == self._known_key

    def renew(self) -> None:
        """Another pass begins."""
        for _, into in self._products.values():
            into.taken = ()
        for k, into in self._by_columns.values():
            into.touched = {} if self._touched is None else {k: None}

    def _offer(
        self,
        node: Node,
        k: int,
        bound: "list[BoundBackward]",
        looks: "Sequence[LayerLook]",
        layer: Layer | None,
        real: Real | None,
    ) -> None:
        """Let the steps that make a parameter's gradient give the factors to a layer, or make it."""
        before = bound[0].into.factored.get(k)
        # The same as before is what it was when calls were written down.
        if layer is None or before is None or before.layer is not layer:
            for worker, one in enumerate(bound):
                look = looks[worker] if looks else None
                for places in (one.into.factored, one.into.elsewhere, one.into.on_columns):
                    places.pop(k, None)
                if layer is not None:
                    columns = None if look is None else look.columns
                    one.into.factored[k] = Factors(layer, worker, len(bound), columns)
                if look is not None:
                    look.take(k, one.into.factored.get(k))
        if layer is not None:
            self._factors[node.name] = [(one, one.into.factored[k]) for one in bound]
            for _, factors in self._factors[node.name]:
                factors.real = real
            if layer.bias is not None:
                self._weight_of[layer.bias] = node.name

    def whole(self, node: Node, gradient: Any) -> None:
        """A parameter's gradient is complete."""
        if node.name in self._factors:
            _, factors = self._factors[node.name][0]
            factors.update()
        if self._has_factors(node):
            return
        k, into = self._products.get(node.name, (0, None))
        if into is not None and k in into.taken:
            return
        k, into = self._by_columns.get(node.name, (0, None))
        if into is not None and into.touched.get(k) is not None:
            self._touched(node, *into.touched.pop(k))
        elif node.name in self._elsewhere:
            self._on_gradient.take(node, slice(None))
        elif self._on_gradient is not None:
            self._on_gradient(node, gradient)

    @property
    def key(self) -> Hashable | None:
        """What `part` and `take` depend on besides gradients, alike as long as they do alike; None: more than that."""
        if self._part is None and not self._elsewhere and not self._factors:
            return ()
        return getattr(self._on_gradient, "key", None)

    def takes_parts(self, node: Node) -> bool:
        """Whether some columns of a parameter can be updated without the others."""
        return self._part is not None or node.name in self._elsewhere or self._has_factors(node)

    def _has_factors(self, node: Node) -> bool:
        return node.name in self._factors or node.name in self._weight_of

    @property
    def layers_key(self) -> Hashable:
        """What the looks of layers depend on besides factors."""
        return tuple([steps[0][1].layer for steps in self._factors.values()])

    def columns(self, node: Node, gradient: Any, columns: slice) -> None:
        """Some columns of a parameter's gradient are complete."""
        if self._has_factors(node):
            return
        if node.name in self._elsewhere:
            self._on_gradient.take(node, columns)
        else:
            self._part(node, gradient[:, columns], columns)
