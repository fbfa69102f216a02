"""What takes the gradients of a backward pass: in the simplest form, or in those that save time, if it has them."""

from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from acoustic.gradients import Accumulation, Into
from acoustic.node import Node
from acoustic.playback import Playback
from readers.indicators import Indicators

if TYPE_CHECKING:
    from acoustic.steps import BoundBackward


class Layer(Protocol):
    """Changes a parameter from the factors of its gradient a b', a product over the frames.

    Workers, `count` of them, each call both, each in its thread; all have done the first before one does the second.
    """

    def frames(self, a: Any, b: Any, columns: slice, worker: int, count: int) -> None:
        """Look at some columns of a (rows, N) and b (cols, N); a is nobody else's and may be changed, b may not."""

    def update(self, a: Any, b: Any, worker: int, count: int) -> None:
        """Change the parameter, or one worker's part of it; a, b: the factors as `frames` left them."""


class Factors:
    """What one worker's product of a parameter gives to its layer: twice the factors, of some frames, then of all."""

    def __init__(self, layer: Layer, worker: int, count: int) -> None:
        self.layer, self.worker, self.count = layer, worker, count
        self.columns: slice | None = slice(None)  # None: all workers have had their frames
        self.found: tuple[Any, Any] | None = None

    def __call__(self, a: Any, b: Any) -> None:
        self.found = a, b
        if self.columns is None:
            self.update()
        else:
            self.layer.frames(a, b, self.columns, self.worker, self.count)

    def update(self) -> None:
        self.layer.update(*self.found, self.worker, self.count)


class Taker:
    """Wraps what a caller gives Engine.backward as on_gradient; see there.

    With `accumulation(node)` the gradients that are lone products go where that says, and `take(node, columns)` ends
    their update; with `part(node, gradient, columns)` several workers can each update some columns; with
    `touched(node, columns, fill)` it may get those columns of a gradient that are not zero alone; with
    `layer(parameter, node, k)`, where that gives a Layer, the factors of a gradient that node's operand k has.
    lone_products: (parameter, position among the operands, the steps that make its gradient); lone_columns: the same,
    one step, where that may make a few columns; layer_products: as lone_products, those that may go to a Layer.
    """

    def __init__(
        self,
        on_gradient: Any,
        lone_products: "Iterable[tuple[Node, int, list[BoundBackward]]]",
        lone_columns: Iterable[tuple[Node, int, Into]] = (),
        layer_products: "Iterable[tuple[Node, int, list[BoundBackward]]]" = (),
    ) -> None:
        self._on_gradient = on_gradient
        self._part: Callable[..., None] | None = getattr(on_gradient, "part", None)
        self._elsewhere: set[str] = set()  # parameters whose gradient is in no matrix of its own
        offer: Callable[[Node], Accumulation | None] | None = getattr(on_gradient, "accumulation", None)
        layers: Callable[[Node, Node, int], Layer | None] | None = getattr(on_gradient, "layer", None)
        self._products: dict[str, tuple[int, Into]] = {}
        self._factors: dict[str, list[tuple[BoundBackward, Factors]]] = {}  # of each worker
        layer_products = list(layer_products)
        self._num_products = len(layer_products)
        for node, k, bound in layer_products:
            self._offer_layer(node, k, bound, layers)
        for node, k, bound in lone_products:
            steps = [one.into for one in bound]
            place = offer(node) if offer is not None and node.name not in self._factors else None
            for into in steps:
                into.elsewhere.pop(k, None)
                if place is not None:
                    into.elsewhere[k] = place
            if place is not None:
                self._elsewhere.add(node.name)
            into = steps[0]
            into.taken = ()
            into.on_columns.pop(k, None)
            if self.takes_parts(node) and node.name not in self._factors:
                into.on_columns[k] = partial(self.columns, node, into.targets[k])
            self._products[node.name] = k, into
        for _, into in self._products.values():
            into.key = self.key
        for bound, _ in (step for steps in self._factors.values() for step in steps):
            bound.into.key = self.key
        self._touched: Callable[..., None] | None = getattr(on_gradient, "touched", None)
        self._by_columns: dict[str, tuple[int, Into]] = {}
        for node, k, into in lone_columns:
            into.touched = {} if self._touched is None else {k: None}
            self._by_columns[node.name] = k, into

    def _offer_layer(self, node: Node, k: int, bound: "list[BoundBackward]", layers: Any) -> None:
        layer = layers(node, bound[0].node, k) if layers is not None else None
        for worker, one in enumerate(bound):
            before = one.into.factored.pop(k, None)
            if layer is None:
                continue
            # The same as before is what it was when calls were written down.
            same = before is not None and before.layer is layer
            one.into.factored[k] = before if same else Factors(layer, worker, len(bound))
        if layer is not None:
            self._factors[node.name] = [(one, one.into.factored[k]) for one in bound]

    def whole(self, node: Node, gradient: Any) -> None:
        """A parameter's gradient is complete."""
        if self._has_factors(node):
            _, factors = self._factors[node.name][0]
            factors.update()
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
        return any(factors.found for _, factors in self._factors.get(node.name, ()))

    def look_at_frames(self, index: int, columns: slice, frames_pass: Playback, run: Any, inputs: Any) -> None:
        """Give layers one worker's columns of the factors, as far as they come as such.

        frames_pass: the steps of all products that may go to a layer.
        """
        if not self._factors:
            return
        mine = [steps[index] for steps in self._factors.values()]
        dense = all(not isinstance(matrix, Indicators) for matrix in inputs.values())
        for _, factors in mine:
            factors.columns = columns
            factors.found = factors.found if dense else None
        if len(mine) == self._num_products:
            frames_pass.run(run, inputs, self.key)
        else:
            for bound, _ in mine:
                bound.run(run, inputs)
        for _, factors in mine:
            factors.columns = None

    def columns(self, node: Node, gradient: Any, columns: slice) -> None:
        """Some columns of a parameter's gradient are complete."""
        if node.name in self._factors:
            return
        if node.name in self._elsewhere:
            self._on_gradient.take(node, columns)
        else:
            self._part(node, gradient[:, columns], columns)
