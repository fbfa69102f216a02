"""The memory of an engine: slabs that programs share, and matrices that outlive a minibatch."""

from collections.abc import Sequence
from typing import Any

from acoustic.engine.planning.buffer_sharing import MatrixKey
from acoustic.kernels.backend import Backend
from acoustic.kernels.shape import Shape


class EngineMemory:
    """Memory for values and gradients.

    slabs: flat memory that the programs of all numbers of columns share; own: matrices that depend on no input,
    gradients without frames, and workers' parts of sums, by key.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.slabs: list[Any] = []
        self.own: dict[MatrixKey, Any] = {}

    def grow(self, sizes: Sequence[int]) -> bool:
        """Make the slabs at least this large; return whether one moved, which makes views of it invalid."""
        moved = False
        for k, size in enumerate(sizes):
            if k == len(self.slabs):
                self.slabs.append(self.backend.memory(size))
            elif self.slabs[k].size < size:
                self.slabs[k] = self.backend.memory(size)
                moved = True
        return moved

    def own_matrix(self, key: MatrixKey, shape: Shape) -> Any:
        """The matrix of a key that has no slab."""
        if key not in self.own:
            self.own[key] = self.backend.empty(shape.rows, shape.num_columns)
        return self.own[key]
