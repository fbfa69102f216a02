"""Division of a compiled loop among threads: each computes the steps of some of the sequences of a minibatch.

The division of rows, whose threads meet at every step, was removed: with two sequences of an LSTM of 512 cells it
saved a quarter of a minibatch, with 16 nothing.
"""

import copy
from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

import numpy as np

from acoustic.recurrence.loop_plan import Plan
from acoustic.recurrence.loop_tables import Table, Tables
from acoustic.recurrence.weight_layout import Factor
from acoustic.runtime.blas import general_function
from acoustic.runtime.operations import Pass
from acoustic.runtime.products import DIRECT
from acoustic.runtime.tables import same
from acoustic.runtime.thread_team import share_of

MIN_SLOTS = 4  # of a thread: with fewer, its products are too thin
Factors = tuple[list[Factor], list[Factor]]  # forward and backward, in the order of the products of a step
Due = list[tuple[Factor, Any]]  # factors to take, and their matrices


class Part:
    """One thread's part of a loop.

    tables: of the loop; factors: the parameters of its products, forward and backward; sums: its part of the gradients
    of columns; place: see step_kernels.py.
    """

    def __init__(
        self,
        tables: Tables,
        factors: Factors,
        sums: np.ndarray,
        place: np.ndarray,
    ) -> None:
        self.tables = tables
        self.factors = factors
        self.sums = sums
        self.place = place
        self.calls: Any = DIRECT
        self._delays = tables.delays(int(place[0]))
        self._sources = frozenset(delay.source for delay in tables.plan.loop.delays)
        self._ahead = tables.forward()
        self._back: dict[frozenset[int], tuple[Table, np.ndarray]] = {}

    def through(self, calls: Any) -> "Part":
        """Return a part that makes its calls through an object of acoustic/runtime/tables.py."""
        part = copy.copy(self)
        part.calls = calls
        return part

    def forward(self, values: Any, *arrays: np.ndarray) -> None:
        """Compute all steps; arrays: constants, defaults, usable and before of step_kernels.py."""
        constants, defaults, usable, before = arrays
        table = self._ahead
        products = self._products(self._ahead, self.factors[0])
        from acoustic.recurrence.step_kernels import LoopTables, loop_forward  # numba: only where needed

        tables = LoopTables(table.segments, products, table.operations, self._delays)
        steps = tables, defaults, usable, before, self.place
        self.calls.call(loop_forward, _functions(), values.T, constants, *steps)

    def backward(self, received: frozenset[int], gradients: Any, values: Any, *arrays: np.ndarray) -> None:
        """Go back through all steps; received: nodes with a gradient from outside; arrays: constants, usable."""
        constants, usable = arrays
        if received not in self._back:
            zeroed = self.tables.zeroed(sorted(self._sources - received))
            self._back[received] = self.tables.backward(self._sources | received), zeroed
        from acoustic.recurrence.step_kernels import LoopTables, loop_backward

        table, zeroed = self._back[received]
        products = self._products(table, self.factors[1])
        tables = LoopTables(table.segments, products, table.operations, self._delays)
        matrices = gradients.T, values.T, constants, self.sums
        self.calls.call(loop_backward, _functions(), *matrices, tables, usable, zeroed, self.place)

    def _products(self, table: Table, factors: Sequence[Factor]) -> np.ndarray:
        """The table of products with the present addresses of the parameters."""
        for row, position in zip(table.products, table.order):
            factor = factors[position]
            row[:3] = factor.address, factor.how, factor.distance
        return table.products


class Listed:
    """The operations of a pass with the key and the arrays for which they were listed."""

    def __init__(self) -> None:
        self.listed: Pass | None = None
        self._key: Hashable = None
        self._arrays: Sequence[Any] = ()
        self.present: dict[str, Any] = {}  # the arrays whose address changes

    def needs(self, key: Hashable, arrays: Sequence[Any]) -> bool:
        """Whether the operations must be listed (again) for a key and arrays; it notes these."""
        if self.listed is not None and key == self._key and same(arrays, self._arrays):
            return False
        self._key = key
        self._arrays = arrays
        self.listed = None
        return True

    def run(self) -> None:
        """Run the operations; the arrays of the minibatch are forgotten afterwards."""
        try:
            if self.listed is not None:
                self.listed.run()
        finally:
            self.present.clear()


class WorkSplit:
    """The division of minibatches with one number of slots.

    in_panels: whether parameters are copied to panels, see weight_layout.py; parts: one for each thread that computes,
    which may be fewer than the threads; sums: parts of the gradients of columns (n, elements); before: the values
    before the first step; ahead, back: the operations of the last pass, forward and backward.
    """

    def __init__(self, plan: Plan, num_slots: int, num_threads: int, in_panels: bool) -> None:
        tables = Tables(plan)
        self._inside = tables.inside
        self._count = num_threads
        count = max(1, min(num_threads, num_slots // MIN_SLOTS))
        self.sums = np.zeros((count, plan.num_constants), np.float32)
        ahead, back = ([Factor(transposed, in_panels) for _ in tables.inside] for transposed in (False, True))
        self.factors: Factors = (ahead, back)
        self.parts: list[Part] = []
        for number, sums in enumerate(self.sums):
            slots = share_of(number, count, num_slots)
            slot_range = np.array([num_slots, slots.start, slots.stop], np.int64)
            self.parts.append(Part(tables, self.factors, sums, slot_range))
        past = sum(delay.rows * max(delay.steps, 0) for delay in plan.loop.delays)
        self.before = np.zeros(past * num_slots, np.float32)
        self.ahead = Listed()
        self.back = Listed()

    def due(self, inputs: Sequence[Any], versions: Sequence[int | None], training: bool) -> list[Due]:
        """For each thread, the factors to take because their parameters have changed.

        inputs, versions: see CompiledLoop.forward; training: also those of the backward pass, which come first, so that
        those of the forward pass are in the cache when it begins.
        """
        pairs = [pair for way in self.factors[training::-1] for pair in zip(way, self._inside)]
        due = [
            (factor, inputs[product.parameter])
            for factor, product in pairs
            if factor.is_due(inputs[product.parameter], versions[product.parameter])
        ]
        return [due[number :: self._count] for number in range(self._count)]


def laid_out(due: Sequence[Due]) -> tuple[tuple[Factor, ...], ...]:
    """The factors that each thread takes, as a key: they differ between passes if parameters change in turn."""
    return tuple([tuple([factor for factor, _ in thread_due]) for thread_due in due])


@cache
def _functions() -> np.ndarray:
    return np.array(general_function(), np.int64)
