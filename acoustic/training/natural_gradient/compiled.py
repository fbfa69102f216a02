"""The online natural gradient of a layer for float32 on the CPU: the loops of _kernels.py, and what they are told.

Of a training step at 512 frames plain descent takes so much already that a tenth more is some 1e8 operations; so there
is no Python between the products, and no pass over memory but those that the norms need.
"""

import threading
from typing import Any

import numpy as np

from acoustic import blas
from acoustic.playback import address_of, current, is_possible, play, same, table_of
from acoustic.training.natural_gradient.layers import ArrayLayer, Step
from acoustic.training.natural_gradient.online import aligned_zeros


class HalfMemory:
    """Memory of each worker for matrices in bfloat16, the same for all layers; addresses: where each one's lies."""

    def __init__(self, workers: int) -> None:
        self.addresses = np.zeros(workers, np.int64)
        self._memory: list[Any] = [np.zeros(0, np.uint8)] * workers

    def reserve(self, worker: int, size: int) -> None:
        """Called by the worker itself, while nobody else uses its part."""
        if self._memory[worker].size < size:
            self._memory[worker] = aligned_zeros(size, np.uint8)
            self.addresses[worker] = address_of(self._memory[worker])


class CompiledLayer:
    """Does what an ArrayLayer does by the online method, with its Fisher matrix's factors.

    Those must have been initialised.  turn: layers take turns in which worker does what cannot be shared; half: memory
    for products in bfloat16, None: in float32.
    """

    def __init__(self, twin: ArrayLayer, turn: int, half: HalfMemory | None = None) -> None:
        from acoustic.training.natural_gradient import _kernels

        self.twin, self.turn, self._half = twin, turn, half
        self._kernels = _kernels
        self._lock = threading.Lock()
        self._sides = (twin.outputs, twin.inputs)
        self._numbers = np.zeros(_kernels.HISTORY + 1)
        self._table = np.zeros(_kernels.FIELDS, np.int64)
        self._buffers: dict[int, Any] = {}
        self._frames = self._workers = 0
        self._parameters: tuple[Any, ...] = ()
        self._fill()

    @staticmethod
    def fits(twin: ArrayLayer, backend: Any) -> bool:
        """Whether a layer can be changed by compiled loops."""
        if not is_possible(backend) or blas.eigen_function() is None or twin.plan.inputs != 1:
            return False
        sides = twin.outputs, twin.inputs
        return all(side is not None and side.rank > 0 for side in sides)

    def _fill(self) -> None:
        """Write down what stays."""
        k, table, rule = self._kernels, self._table, self.twin.rule
        table[k.GEMM], table[k.WIDE] = blas.general_function()
        table[k.EIGEN], table[k.NUMBERS] = blas.eigen_function(), address_of(self._numbers)
        self._numbers[k.ALPHA], self._numbers[k.HISTORY] = rule.alpha, rule.history
        if self._half is not None:
            table[k.HALF], table[k.HALF_MEMORY] = blas.half_product(), address_of(self._half.addresses)
        for side, fisher in enumerate(self._sides):
            table[k.RANK + side] = fisher.rank
            table[k.W + side], table[k.SCALES + side] = address_of(fisher.w), address_of(fisher.scales)
        table[k.ROWS + k.OUT], table[k.ROWS + k.IN] = self.twin.plan.weight.value.shape

    def begin(self, step: Step) -> None:
        """What holds for the next minibatch; its factors will come."""
        k, table, plan = self._kernels, self._table, self.twin.plan
        self.settle()
        numbers = self._numbers
        numbers[k.RATE], numbers[k.KEEP], numbers[k.LIMIT] = step.rate, step.keep, step.limit
        parameters = plan.weight.value, plan.bias.value if plan.bias is not None else None
        if not same(parameters, self._parameters):
            self._parameters = parameters
            table[k.WEIGHT : k.BIAS + 1] = [0 if matrix is None else address_of(matrix) for matrix in parameters]
        for side, fisher in enumerate(self._sides):
            table[k.UPDATES + side] = fisher.settings.updates(fisher.count)
            fisher.advance()

    def settle(self) -> None:
        """Bring in order what the loops found in doubt."""
        for side, fisher in enumerate(self._sides):
            if self._table[self._kernels.DOUBTFUL + side]:
                self._table[self._kernels.DOUBTFUL + side] = 0
                fisher.reorthogonalise()

    def frames(self, a: Any, b: Any, columns: slice, worker: int, count: int) -> None:
        with self._lock:
            self._reserve(a.shape[1], count)
        first, stop, _ = columns.indices(a.shape[1])
        if self._half is not None:
            rows, ranks = self._table[self._kernels.ROWS :], [fisher.rank for fisher in self._sides]
            sizes = [self._kernels.half_size(int(rows[side]), ranks[side], stop - first) for side in range(2)]
            self._half.reserve(worker, max(sizes))
        assert a.flags.f_contiguous
        assert b.flags.f_contiguous
        self._do("reduce_layer", [a[:, columns], b[:, columns]], [first, stop - first, worker])

    def update(self, a: Any, b: Any, worker: int, count: int) -> None:
        self._do("change_layer", [a], [a.shape[1], worker, count, self.turn])

    def _do(self, name: str, arrays: list[Any], numbers: list[int]) -> None:
        if (recording := current()) is not None:
            recording.work(name, self._table, arrays, numbers)
            return
        play(table_of(name, [address_of(self._table), *map(address_of, arrays), *numbers]))

    def _reserve(self, num_frames: int, workers: int) -> None:
        """Memory for so many frames and workers."""
        if num_frames <= self._frames and workers <= self._workers:
            return
        self._frames, self._workers = max(num_frames, self._frames), max(workers, self._workers)
        k, frames, workers = self._kernels, self._frames, self._workers
        self._buffers = {
            k.SUMS: aligned_zeros(workers * k.NUM_SUMS, np.float64),
            k.REDUCED: aligned_zeros(int(self._table[k.ROWS + k.IN]) * frames, np.float32),
            k.REDUCED_ONE: aligned_zeros(frames, np.float32),
        }
        for side, fisher in enumerate(self._sides):
            self._buffers[k.H + side] = aligned_zeros(fisher.rank * frames, np.float32)
            self._buffers[k.J + side] = aligned_zeros(fisher.rank * fisher.dim * workers, np.float32)
            self._buffers[k.SCRATCH + side] = aligned_zeros(k.scratch_size(fisher.rank), np.uint8)
        for field, buffer in self._buffers.items():
            self._table[field] = address_of(buffer)
