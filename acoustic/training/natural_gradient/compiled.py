"""Compiled online natural gradient of a layer for float32 on the CPU.

The loops are in layer_kernels.py and estimate_kernels.py. No Python runs between the matrix products of a minibatch,
and memory is read again only where the norms require it.
"""

import threading
from typing import Any

import numpy as np

from acoustic.engine.execution.gradient_sink import LayerUpdate
from acoustic.runtime import blas
from acoustic.runtime.memory import aligned_zeros
from acoustic.runtime.products import Caller
from acoustic.runtime.tables import address_of, is_possible, same
from acoustic.training.natural_gradient.layers import ArrayLayer, Step
from acoustic.training.rules.natural_gradient import SIMPLE


class CompiledLayer(Caller, LayerUpdate):
    """Compiled counterpart of ArrayLayer for the online and plain methods.

    `turn` decides which worker updates the Fisher estimates of this layer, work that cannot be split.
    """

    reads_frames = True

    def __init__(self, twin: ArrayLayer, turn: int) -> None:
        # numba: only a job that computes loads it; layer_kernels registers its functions
        from acoustic.training.natural_gradient import estimate_kernels, layer_kernels, layer_table  # noqa: F401

        self.twin = twin
        self.bias = twin.bias
        self.turn = turn
        self.whole = self  # what a copy that makes its calls in another way belongs to
        self._table = layer_table
        self._scratch_size = estimate_kernels.scratch_size
        self.memory = np.zeros(layer_table.LAYER.itemsize, np.uint8)
        self._layer = self.memory.view(layer_table.LAYER)[0]
        self._lock = threading.Lock()
        self.sides = list(enumerate(twin.fishers.values()))  # the outputs, then the inputs
        self._buffers: list[Any] = []
        self._frames = self._workers = 0
        self._parameters: tuple[Any, ...] = ()
        self._fill()

    @staticmethod
    def fits(twin: ArrayLayer, backend: Any) -> bool:
        """Return whether the compiled loops support this layer and backend."""
        if not is_possible(backend) or twin.plan.input_axis != 1 or twin.rule.method == SIMPLE:
            return False
        return blas.eigen_function() is not None or not any(fisher.rank for fisher in twin.fishers.values())

    @property
    def is_ready(self) -> bool:
        """Whether the Fisher factors have their initial estimates."""
        return all(fisher.count or not fisher.rank for _, fisher in self.sides)

    def _fill(self) -> None:
        """Write the fields that do not change between minibatches."""
        layer = self._layer
        rule = self.twin.rule
        product = blas.general_function()
        assert product is not None  # as `fits` has checked
        layer["gemm"], layer["wide"] = product
        layer["eigen"] = blas.eigen_function() or 0
        layer["alpha"] = rule.alpha
        layer["history"] = rule.history
        layer["rows"][:] = self.twin.plan.weight.value.shape
        for side, fisher in self.sides:
            layer["rank"][side] = fisher.rank
            layer["w"][side] = address_of(fisher.w)
            layer["scales"][side] = address_of(fisher.scales)

    def begin(self, step: Step) -> None:
        """Set the values for the next minibatch."""
        layer = self._layer
        plan = self.twin.plan
        self.settle()
        layer["rate"] = step.rate
        layer["keep"] = step.keep
        layer["limit"] = step.limit
        parameters = plan.weight.value, plan.bias.value if plan.bias is not None else None
        if not same(parameters, self._parameters):
            self._parameters = parameters
            layer["weight"], layer["bias"] = (0 if matrix is None else address_of(matrix) for matrix in parameters)
        for side, fisher in self.sides:
            layer["updates"][side] = fisher.rank > 0 and fisher.rule.updates(fisher.count)
            fisher.advance()

    def settle(self) -> None:
        """Reorthogonalise the estimates that the loops have marked as doubtful."""
        for side, fisher in self.sides:
            if self._layer["doubtful"][side]:
                self._layer["doubtful"][side] = 0
                fisher.reorthogonalise()

    def frames(self, a: Any, b: Any, first: int, num_frames: int, worker: int, count: int) -> None:
        self.whole.reserve(num_frames, count)
        assert a.flags.f_contiguous
        assert b.flags.f_contiguous
        self.calls.by_address("reduce_layer", [self.memory, a, b], [first, a.shape[1], worker])

    def update(self, a: Any, b: Any, worker: int, count: int) -> None:
        size = a.shape[1]
        self.calls.by_address("change_layer", [self.memory, a, b], [size, worker, count])
        if self.sides:
            self.calls.by_address("estimate_layer", [self.memory], [size, worker, count, self.turn])

    def reserve(self, num_frames: int, workers: int) -> None:
        """Allocate buffers for this many frames and workers."""
        with self._lock:
            self._grow(num_frames, workers)

    def _grow(self, num_frames: int, workers: int) -> None:
        if num_frames <= self._frames and workers <= self._workers:
            return
        self._frames = max(num_frames, self._frames)
        self._workers = max(workers, self._workers)
        layer = self._layer
        frames = self._frames
        workers = self._workers
        rows, cols = (int(size) for size in layer["rows"])

        def address(size: int, dtype: Any) -> int:
            self._buffers.append(aligned_zeros(size, dtype))
            return address_of(self._buffers[-1])

        self._buffers = []
        layer["sums"] = address(workers, self._table.SUMS)
        layer["reduced_one"] = address(frames, np.float32)
        layer["bias_change"] = address(workers * self._table.aligned(4 * rows), np.uint8)
        if layer["rank"][1]:
            layer["reduced"] = address(cols * frames, np.float32)
        for side, fisher in self.sides:
            layer["h"][side] = address(fisher.rank * frames, np.float32)
            layer["j"][side] = address(fisher.rank * fisher.dim * workers, np.float32)
            layer["scratch"][side] = address(self._scratch_size(fisher.rank), np.uint8)
