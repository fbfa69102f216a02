"""How threads share out a compiled loop: the sequences that lie side by side, or the rows of every node.

By sequences they never wait for each other, but each reads all parameters at every step.  By rows each reads those of
its rows alone, which may then stay in the cache next to it, and a single sequence does as well as many; but the threads
meet at every step, and read there what the others have just written.  Two threads, 16 sequences, a Xeon with caches of
2 MiB: by rows an LSTM of 512 cells takes 0.94 of the time of a step of training, one of 256 cells 1.10 times.  In
panels (see weight_layout.py) products of few columns lose nothing, and by rows three layers of 512 take 1.05 times on
an EPYC with caches of 512 KiB.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from acoustic.nodes.base import Shape
from acoustic.recurrence.loop_plan import Plan
from acoustic.recurrence.loop_tables import Delay, Table, Tables
from acoustic.recurrence.weight_layout import PACKED, PANELS, Factor, packed_product_address
from acoustic.runtime.blas import general_function
from acoustic.runtime.recorder import Repeat, current
from acoustic.runtime.thread_team import share_of
from acoustic.runtime.together import Together

MIN_SLOTS = 4  # of a thread: with fewer its products are too thin
NEAR = 1 << 21  # bytes of parameters that stay in the cache next to a thread
WEIGHT_BYTES = 4
Factors = tuple[list[Factor], list[Factor]]  # forward and backward, in the order of the products of a step
Due = list[tuple[Factor, Any]]  # what has to be laid out, and from which matrix


class Part:
    """What one thread computes of a loop.

    tables: of its rows; factors: forward and backward, the parameters as its products take them; sums: the gradients of
    columns from its part; place: see step_kernels.py.
    """

    def __init__(
        self,
        tables: Tables,
        delays: Sequence[Delay],
        factors: Factors,
        sums: np.ndarray,
        place: np.ndarray,
    ) -> None:
        self.tables, self.factors, self.sums, self.place = tables, factors, sums, place
        self._delays = tables.delays(delays, int(place[2]))
        self._sources = frozenset(delay.source for delay in delays)
        self._ahead = tables.forward()
        self._back: dict[frozenset[int], tuple[Table, np.ndarray]] = {}

    def forward(self, values: Any, *arrays: np.ndarray) -> None:
        """All steps; arrays: constants, defaults, usable, before and flags of step_kernels.py."""
        constants, defaults, usable, before, flags = arrays
        table, products = self._ahead, self._products(self._ahead, self.factors[0])
        _call(
            "forward", values.T, constants, table.segments, products, table.operations, self._delays, defaults, usable,
            before, flags, self.place,
        )  # fmt: skip

    def backward(self, received: frozenset[int], gradients: Any, values: Any, *arrays: np.ndarray) -> None:
        """All steps; received: the nodes that have a gradient from outside; arrays: constants, usable and flags."""
        constants, usable, flags = arrays
        if received not in self._back:
            zeroed = self.tables.zeroed(sorted(self._sources - received))
            self._back[received] = self.tables.backward(self._sources | received), zeroed
        table, zeroed = self._back[received]
        _call(
            "backward", gradients.T, values.T, constants, self.sums, table.segments,
            self._products(table, self.factors[1]), table.operations, self._delays, usable, zeroed, flags, self.place,
        )  # fmt: skip

    def _products(self, table: Table, factors: Sequence[Factor]) -> np.ndarray:
        """The table of products, with where the parameters lie now."""
        for row, position in zip(table.products, table.order):
            factor = factors[position]
            row[:3] = factor.address, factor.lies, factor.distance
        return table.products


class Sharing:
    """The parts of minibatches of one number of slots.

    lies: how parameters do, see weight_layout.py.  parts: of the threads; there may be more threads than parts.  sums:
    of the
    gradients of columns (n, elements); nothing: zeros for the values before the first step.  ahead, back: what every
    thread does in a pass.
    """

    def __init__(
        self,
        plan: Plan,
        shapes: Sequence[Shape],
        outside: Sequence[Shape],
        delays: Sequence[Delay],
        num_slots: int,
        threads: Together,
        lies: int,
    ) -> None:
        whole = Tables(plan, shapes, outside, 0, 1)
        self._inside, self._count = whole.inside, threads.count
        far = lies != PANELS and whole.num_weights * WEIGHT_BYTES > NEAR
        self.by_rows = threads.count > 1 and (num_slots < 2 * MIN_SLOTS or far)
        count = threads.count if self.by_rows else max(1, min(threads.count, num_slots // MIN_SLOTS))
        self.sums = np.zeros((1 if self.by_rows else count, plan.num_constants), np.float32)
        self.parts: list[Part] = []
        self._factors: dict[tuple[int, int], Factors] = {}  # by thread, if they differ, and by slots where it matters
        for number in range(count):
            tables = Tables(plan, shapes, outside, number, count) if self.by_rows else whole
            slots = slice(0, num_slots) if self.by_rows else share_of(number, count, num_slots)
            key = number if self.by_rows else 0, slots.stop - slots.start if lies == PACKED else 0
            if key not in self._factors:
                self._factors[key] = _factors(tables, lies, key[1])
            meeting = (number, count) if self.by_rows else (0, 1)
            place = np.array([*meeting, num_slots, slots.start, slots.stop], np.int64)
            sums = self.sums[0 if self.by_rows else number]
            self.parts.append(Part(tables, delays, self._factors[key], sums, place))
        past = sum(shapes[delay.position].rows * max(delay.steps, 0) for delay in delays)
        self.nothing = np.zeros(past * num_slots, np.float32)
        self.ahead, self.back = ([Repeat() for _ in range(threads.count)] for _ in range(2))

    def due(self, inputs: Sequence[Any], versions: Sequence[int | None], training: bool) -> list[Due]:
        """Of each thread the parameters to lay out, which have changed since they were.

        inputs, versions: see FusedLoop.forward; training: for the way back, too.
        """
        found: list[Due] = []
        for factors in self._factors.values():
            pairs = [pair for way in factors[: 1 + training] for pair in zip(way, self._inside)]
            found.append(
                [
                    (factor, inputs[product.parameter])
                    for factor, product in pairs
                    if factor.is_due(inputs[product.parameter], versions[product.parameter])
                ]
            )
        if self.by_rows:
            return found
        together = [one for due in found for one in due]
        return [together[number :: self._count] for number in range(self._count)]


def laid_out(due: Sequence[Due]) -> tuple[tuple[Factor, ...], ...]:
    """Which factors each thread lays out: as many of them may be others, of parameters that change by turns."""
    return tuple([tuple([factor for factor, _ in mine]) for mine in due])


def _factors(tables: Tables, lies: int, width: int) -> Factors:
    forward, backward = ([Factor(back, rows, lies, width) for rows in tables.rows_made(back)] for back in (False, True))
    return forward, backward


def _call(name: str, *arrays: np.ndarray) -> None:
    """Call a function of step_kernels.py, and write the call down where the thread's calls are."""
    from acoustic.recurrence import step_kernels  # numba: only a job that computes loads it

    if (recording := current()) is not None:
        recording.call(f"loop_{name}", _functions(), *arrays)
    else:
        getattr(step_kernels, name)(_functions(), *arrays)


@cache
def _functions() -> np.ndarray:
    return np.array([*general_function(), packed_product_address()], np.int64)
