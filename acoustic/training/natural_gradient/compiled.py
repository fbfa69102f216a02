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
from acoustic.runtime.recorder import address_of, current, play, table_of
from acoustic.runtime.replay import is_possible, same
from acoustic.training.natural_gradient.layers import ArrayLayer, Step
from acoustic.training.rules.natural_gradient import SIMPLE


class CompiledLayer(LayerUpdate):
    """Compiled counterpart of ArrayLayer for the online and plain methods.

    `turn` decides which worker updates the Fisher estimates of this layer, work that cannot be split.
    """

    def __init__(self, twin: ArrayLayer, turn: int) -> None:
        # numba: only a job that computes loads it; layer_kernels registers its functions
        from acoustic.training.natural_gradient import estimate_kernels, layer_kernels, layer_table  # noqa: F401

        self.twin, self.turn = twin, turn
        self._fields, self._scratch_size = layer_table, estimate_kernels.scratch_size
        self._lock = threading.Lock()
        self._sides = [
            (side, fisher) for side, fisher in enumerate((twin.output_fisher, twin.input_fisher)) if fisher is not None
        ]
        self._numbers = np.zeros(layer_table.HISTORY + 1)
        self._table = np.zeros(layer_table.FIELDS, np.int64)
        self._buffers: dict[int, Any] = {}
        self._frames = self._workers = 0
        self._parameters: tuple[Any, ...] = ()
        self._fill()

    @staticmethod
    def fits(twin: ArrayLayer, backend: Any) -> bool:
        """Return whether the compiled loops support this layer and backend."""
        if not is_possible(backend) or twin.plan.input_axis != 1 or twin.rule.method == SIMPLE:
            return False
        return blas.eigen_function() is not None or not any(fisher.rank for fisher in twin.factors)

    @property
    def is_ready(self) -> bool:
        """Whether the Fisher factors have their initial estimates."""
        return all(fisher.count or not fisher.rank for _, fisher in self._sides)

    @property
    def bias(self) -> str | None:
        return self.twin.bias

    def _fill(self) -> None:
        """Write the table entries that do not change between minibatches."""
        k, table, rule = self._fields, self._table, self.twin.rule
        table[k.GEMM], table[k.WIDE] = blas.general_function()
        table[k.EIGEN], table[k.NUMBERS] = blas.eigen_function() or 0, address_of(self._numbers)
        self._numbers[k.ALPHA], self._numbers[k.HISTORY] = rule.alpha, rule.history
        for side, fisher in self._sides:
            table[k.RANK + side] = fisher.rank
            table[k.W + side], table[k.SCALES + side] = address_of(fisher.w), address_of(fisher.scales)
        table[k.ROWS + k.OUT], table[k.ROWS + k.IN] = self.twin.plan.weight.value.shape

    def begin(self, step: Step) -> None:
        """Set the values for the next minibatch."""
        k, table, plan = self._fields, self._table, self.twin.plan
        self.settle()
        self._numbers[: k.LIMIT + 1] = step.rate, step.keep, step.limit
        parameters = plan.weight.value, plan.bias.value if plan.bias is not None else None
        if not same(parameters, self._parameters):
            self._parameters = parameters
            table[k.WEIGHT : k.BIAS + 1] = [0 if matrix is None else address_of(matrix) for matrix in parameters]
        for side, fisher in self._sides:
            table[k.UPDATES + side] = fisher.rank > 0 and fisher.rule.updates(fisher.count)
            fisher.advance()

    def settle(self) -> None:
        """Reorthogonalise the estimates that the loops have marked as doubtful."""
        k, table = self._fields, self._table
        for side, fisher in self._sides:
            if table[k.DOUBTFUL + side]:
                table[k.DOUBTFUL + side] = 0
                fisher.reorthogonalise()

    def frames(self, a: Any, b: Any, first: int, num_frames: int, worker: int, count: int) -> None:
        size = a.shape[1]
        with self._lock:
            self._reserve(num_frames, count)
        assert a.flags.f_contiguous
        assert b.flags.f_contiguous
        self._do("reduce_layer", [a, b], [first, size, worker])

    def update(self, a: Any, b: Any, worker: int, count: int) -> None:
        self._do("change_layer", [a, b], [a.shape[1], worker, count])
        if self._sides:
            self._do("estimate_layer", [], [a.shape[1], worker, count, self.turn])

    def _do(self, name: str, arrays: list[Any], numbers: list[int]) -> None:
        if (recording := current()) is not None:
            recording.work(name, self._table, arrays, numbers)
            return
        play(table_of(name, [address_of(self._table), *map(address_of, arrays), *numbers]))

    def _reserve(self, num_frames: int, workers: int) -> None:
        """Allocate buffers for this many frames and workers."""
        if num_frames <= self._frames and workers <= self._workers:
            return
        self._frames, self._workers = max(num_frames, self._frames), max(workers, self._workers)
        k, frames, workers = self._fields, self._frames, self._workers
        rows, cols = (int(self._table[k.ROWS + side]) for side in (k.OUT, k.IN))
        self._buffers = {
            k.SUMS: aligned_zeros(workers * k.NUM_SUMS, np.float64),
            k.REDUCED_ONE: aligned_zeros(frames, np.float32),
            k.BIAS_CHANGE: aligned_zeros(workers * k.aligned(4 * rows), np.uint8),
        }
        if self._table[k.RANK + k.IN]:
            self._buffers[k.REDUCED] = aligned_zeros(cols * frames, np.float32)
        for side, fisher in self._sides:
            self._buffers[k.H + side] = aligned_zeros(fisher.rank * frames, np.float32)
            self._buffers[k.J + side] = aligned_zeros(fisher.rank * fisher.dim * workers, np.float32)
            self._buffers[k.SCRATCH + side] = aligned_zeros(self._scratch_size(fisher.rank), np.uint8)
        for field, buffer in self._buffers.items():
            self._table[field] = address_of(buffer)
