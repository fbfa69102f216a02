"""Division of a compiled loop among threads: each computes the steps of some of the sequences of a minibatch.

The division of rows, whose threads meet at every step, was removed: with two sequences of an LSTM of 512 cells it
saved a quarter of a minibatch, with 16 nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from acoustic.recurrence.loop_plan import Plan
from acoustic.recurrence.loop_tables import Table, Tables
from acoustic.recurrence.weight_layout import Factor
from acoustic.runtime.blas import general_function
from acoustic.runtime.products import Caller
from acoustic.runtime.thread_team import share_of

MIN_SLOTS = 4  # of a thread: with fewer, its products are too thin
Factors = tuple[list[Factor], list[Factor]]  # forward and backward, in the order of the products of a step


@dataclass(eq=False)
class Part(Caller):
    """One thread's part of a loop.

    tables: of the loop; factors: the parameters of its products, forward and backward; sums: its part of the gradients
    of columns; place: see step_kernels.py.
    """

    tables: Tables
    factors: Factors
    sums: np.ndarray
    place: np.ndarray

    def __post_init__(self) -> None:
        self._delays = self.tables.delays(int(self.place[0]))
        self._sources = frozenset(delay.source for delay in self.tables.plan.loop.delays)
        self._ahead = self.tables.forward()
        self._back: dict[frozenset[int], tuple[Table, np.ndarray]] = {}

    def all_steps(
        self, values: Any, constants: np.ndarray, defaults: np.ndarray, usable: np.ndarray, before: np.ndarray
    ) -> None:
        """Compute all steps; see step_kernels.py for the arrays."""
        table = self._ahead
        products = self._products(self._ahead, self.factors[0])
        from acoustic.recurrence.step_kernels import LoopTables, loop_forward  # numba: only where needed

        tables = LoopTables(table.segments, products, table.operations, self._delays)
        steps = tables, defaults, usable, before, self.place
        self.calls.call(loop_forward, _functions(), values.T, constants, *steps)

    def all_steps_back(
        self, received: frozenset[int], gradients: Any, values: Any, constants: np.ndarray, usable: np.ndarray
    ) -> None:
        """Go back through all steps; received: nodes with a gradient from outside."""
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


class WorkSplit:
    """The division of minibatches with one number of slots.

    in_panels: whether parameters are copied to panels, see weight_layout.py; parts: one for each thread that computes,
    which may be fewer than the threads; sums: parts of the gradients of columns (n, elements); before: the values
    before the first step; factors: the parameters of the products of a step, forward and backward.
    """

    def __init__(self, plan: Plan, num_slots: int, num_threads: int, in_panels: bool) -> None:
        tables = Tables(plan)
        count = max(1, min(num_threads, num_slots // MIN_SLOTS))
        self.sums = np.zeros((count, plan.num_constants), np.float32)
        ahead, back = ([Factor(transposed, in_panels) for _ in plan.inside] for transposed in (False, True))
        self.factors: Factors = (ahead, back)
        self.parts: list[Part] = []
        for number, sums in enumerate(self.sums):
            slots = share_of(number, count, num_slots)
            slot_range = np.array([num_slots, slots.start, slots.stop], np.int64)
            self.parts.append(Part(tables, self.factors, sums, slot_range))
        past = sum(delay.rows * max(delay.steps, 0) for delay in plan.loop.delays)
        self.before = np.zeros(past * num_slots, np.float32)


@cache
def _functions() -> np.ndarray:
    return np.array(general_function(), np.int64)
