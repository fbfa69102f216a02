"""The memory of an engine: what passes of any number of columns share, and what outlives a minibatch."""

from collections.abc import Hashable, Sequence
from typing import Any

from acoustic.engine.planning.pass_plan import Graph
from acoustic.kernels.backend import Backend
from acoustic.nodes.base import Shape
from acoustic.runtime.engine_options import EngineOptions


class EngineMemory:
    """Matrices of a graph's values and gradients, on a backend.

    gradients: by the name of a parameter, of what has no frames.
    """

    def __init__(self, backend: Backend, graph: Graph, options: EngineOptions) -> None:
        self.backend, self.graph, self.options = backend, graph, options
        self.gradients: dict[str, Any] = {}
        self._slabs: list[Any] = []
        self._values: dict[Hashable, Any] = {}  # of what depends on no input

    def grow(self, sizes: Sequence[int]) -> bool:
        """Make the slabs at least this large; whether one had to move, so that no view of it holds any more."""
        moved = False
        for k, size in enumerate(sizes):
            if k == len(self._slabs):
                self._slabs.append(self.backend.memory(size))
            elif self._slabs[k].size < size:
                self._slabs[k] = self.backend.memory(size)
                moved = True
        return moved

    def slab(self, index: int) -> Any:
        """Flat memory that passes of all numbers of columns share."""
        return self._slabs[index]

    def allocated(self) -> int:
        """Bytes of the slabs."""
        return sum(slab.nbytes for slab in self._slabs)

    def own_value(self, key: Hashable, shape: Shape) -> Any:
        """Memory for a value or workspace that depends on no input and outlives a minibatch."""
        if key not in self._values:
            self._values[key] = self.backend.empty(*shape)
        return self._values[key]

    def own_gradient(self, name: str, shape: Shape) -> Any:
        """Memory for the gradient of what has no frames."""
        if name not in self.gradients:
            self.gradients[name] = self.backend.empty(*shape)
        return self.gradients[name]
