"""The memory of an engine: slabs that programs share, and matrices that outlive a minibatch."""

from collections.abc import Hashable, Sequence
from typing import Any

from acoustic.engine.planning.pass_plan import Graph
from acoustic.kernels.backend import Backend
from acoustic.nodes.base import Shape


class EngineMemory:
    """Memory for the values and gradients of a graph.

    kernels: those of the nodes that Python calls; gradients: the gradients of nodes without frames, by name.
    """

    def __init__(self, backend: Backend, graph: Graph, kernels: Any) -> None:
        self.backend, self.graph, self.kernels = backend, graph, kernels
        self.gradients: dict[str, Any] = {}
        self._slabs: list[Any] = []
        self._values: dict[Hashable, Any] = {}  # of nodes that depend on no input

    def grow(self, sizes: Sequence[int]) -> bool:
        """Make the slabs at least this large; return whether one moved, which makes views of it invalid."""
        moved = False
        for k, size in enumerate(sizes):
            if k == len(self._slabs):
                self._slabs.append(self.backend.memory(size))
            elif self._slabs[k].size < size:
                self._slabs[k] = self.backend.memory(size)
                moved = True
        return moved

    def slab(self, index: int) -> Any:
        """Flat memory that the programs of all numbers of columns share."""
        return self._slabs[index]

    def allocated(self) -> int:
        """Bytes of the slabs."""
        return sum(slab.nbytes for slab in self._slabs)

    def own_value(self, key: Hashable, shape: Shape) -> Any:
        """The matrix of a value or workspace that depends on no input; it outlives a minibatch."""
        if key not in self._values:
            self._values[key] = self.backend.empty(*shape)
        return self._values[key]

    def own_gradient(self, name: str, shape: Shape) -> Any:
        """The matrix of the gradient of a node without frames."""
        if name not in self.gradients:
            self.gradients[name] = self.backend.empty(*shape)
        return self.gradients[name]
