"""The plan of a loop as tables for compiled code; see step_kernels.py for their columns."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from acoustic.recurrence.codes import ADD, COLUMN, OPERATIONS, PRODUCTS, SKIP, TIMES_COLUMN, WRITE
from acoustic.recurrence.loop_plan import Operation, Place, Plan, Product


@dataclass
class Table:
    """The tables of one direction; the addresses of the parameters are filled in for each pass.

    order: the position of the product in each row of `products`.
    """

    segments: np.ndarray
    operations: np.ndarray
    products: np.ndarray
    order: list[int]


class Tables:
    """Makes the tables of a plan; inside: the products of a step, in the order of the tables."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.inside = plan.inside
        self._position = {product.position: k for k, product in enumerate(self.inside)}

    def forward(self) -> Table:
        """The tables of the forward pass."""
        segments = []
        operations: list[tuple[int, ...]] = []
        for segment in self.plan.segments:
            if isinstance(segment[0], Product):
                first = self._position[segment[0].position]
                segments.append((PRODUCTS, first, first + len(segment)))
            else:
                segments.append((OPERATIONS, len(operations), len(operations) + len(segment)))
                operations += [(*self._operation(operation), int(operation.keep), 0) for operation in segment]
        return Table(_table(segments, 3), _table(operations, 7), *self._products(False, {}))

    def _operation(self, operation: Operation) -> tuple[int, ...]:
        """Code, first rows of result and operands, number of rows."""
        starts = [0 if operand is None else self._start(operand) for operand in (operation.x, operation.y)]
        return operation.code, self.plan.rows[operation.out], *starts, self.plan.loop.shapes[operation.out].rows

    def _start(self, place: Place) -> int:
        in_loop, at = place
        return self.plan.columns[at] if not in_loop and at in self.plan.columns else self.plan.row_of(place)

    def backward(self, touched: Collection[int]) -> Table:
        """The tables of the backward pass; touched: nodes whose gradient is not empty when a step begins."""
        written_rows = {self.plan.rows[position] for position in touched}
        segments = []
        operations: list[tuple[int, ...]] = []
        keeps = {}
        for segment in reversed(self.plan.segments):
            if isinstance(segment[0], Product):
                first = self._position[segment[0].position]
                segments.append((PRODUCTS, first, first + len(segment)))
                row = self.plan.row_of(segment[0].operand)
                for product in segment:
                    keeps[product.position] = row in written_rows
                    written_rows.add(row)
                continue
            start = len(operations)
            for operation in reversed(segment):
                numbers = self._operation(operation)
                modes = [SKIP, SKIP]
                for side, operand in ((1, operation.y), (0, operation.x)):  # the order of the kernel
                    if operand is None or (operation.code, side) in ((COLUMN, 0), (TIMES_COLUMN, 1)):
                        continue
                    modes[side] = ADD if self._start(operand) in written_rows else WRITE
                    written_rows.add(self._start(operand))
                operations.append((*numbers, *modes))
            segments.append((OPERATIONS, start, len(operations)))
        return Table(_table(segments, 3), _table(operations, 7), *self._products(True, keeps))

    def _products(self, backward: bool, keeps: dict[int, bool]) -> tuple[np.ndarray, list[int]]:
        """The products of a step, then those of the next step in the opposite order, and their positions.

        keeps: backward, for each product, whether the gradient of its operand is not empty.
        """
        rows: list[tuple[int, ...]] = []
        for product in self.inside:
            m = self.plan.loop.shapes[product.home].rows
            k = self.plan.loop.shape(product.operand).rows
            ends = [self.plan.row_of(product.operand), self.plan.rows[product.home]]
            if backward:
                ends = ends[::-1]
                m, k = (k, m)
            keep = keeps[product.position] if backward else product.keep
            rows.append((0, 0, 0, m, k, *ends, keep))
        order = list(range(len(rows)))
        for segment in self.plan.segments:
            turned = [self._position[product.position] for product in reversed(segment) if isinstance(product, Product)]
            # Products that add to the same rows may do so in any order, but the first one writes.
            keep_flags: dict[int, list[int]] = {}
            for position in reversed(turned):
                keep_flags.setdefault(rows[position][-2], []).append(rows[position][-1])
            rows += [(*rows[position][:-1], keep_flags[rows[position][-2]].pop(0)) for position in turned]
            order += turned
        return _table(rows, 8), order

    def delays(self, num_slots: int) -> np.ndarray:
        """The table of delays. `before` holds, delay after delay, the values of as many steps as each one delays."""
        delays = self.plan.loop.delays
        rows = []
        start = 0
        kinds = sorted({delay.steps for delay in delays})
        for delay in delays:
            ends = self.plan.rows[delay.source], self.plan.rows[delay.position]
            rows.append((*ends, delay.rows, delay.steps, start, delay.rows, kinds.index(delay.steps)))
            start += delay.rows * max(delay.steps, 0) * num_slots
        return _table(rows, 7)

    def zeroed(self, positions: Sequence[int]) -> np.ndarray:
        """The table of the rows of some nodes."""
        return _table([(self.plan.rows[at], self.plan.loop.shapes[at].rows) for at in positions], 2)


def _table(rows: Sequence[tuple[int, ...]], width: int) -> np.ndarray:
    return np.array(rows, np.int64).reshape(len(rows), width)
