"""The plan of a loop as the tables of compiled code; see _loop_kernels.py for what stands in them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from acoustic.loop_plan import ADD, COLUMN, SKIP, TIMES_COLUMN, WRITE, Operation, Place, Plan, Product
from acoustic.node import Shape

PRODUCTS, OPERATIONS = range(2)  # kinds of segments


@dataclass
class Table:
    """Of one direction: segments, operations, and products, but for where the parameters lie."""

    segments: np.ndarray
    operations: np.ndarray
    products: np.ndarray


class Tables:
    """Makes the tables of a plan.  inside: the products of a step, in the order of their tables."""

    def __init__(self, plan: Plan, shapes: Sequence[Shape], outside: Sequence[Shape]) -> None:
        self.plan, self.shapes, self.outside = plan, shapes, outside
        self.inside = [one for segment in plan.segments for one in segment if isinstance(one, Product)]
        self._position = {product.position: k for k, product in enumerate(self.inside)}

    def forward(self) -> Table:
        """All steps forward."""
        segments, operations = [], []
        for segment in self.plan.segments:
            if isinstance(segment[0], Product):
                first = self._position[segment[0].position]
                segments.append((PRODUCTS, first, first + len(segment)))
            else:
                segments.append((OPERATIONS, len(operations), len(operations) + len(segment)))
                operations += [(*self._operation(one), int(one.keep), 0) for one in segment]
        return Table(_table(segments, 3), _table(operations, 7), self._products(False, {}))

    def _operation(self, operation: Operation) -> tuple[int, ...]:
        """Code, first rows of result and operands, how many."""
        starts = [0 if place is None else self._start(place) for place in (operation.x, operation.y)]
        return operation.code, self.plan.rows[operation.out], *starts, self.shapes[operation.out].rows

    def _start(self, place: Place) -> int:
        inside, at = place
        return self.plan.columns[at] if not inside and at in self.plan.columns else self.plan.row_of(place)

    def backward(self, touched: Collection[int]) -> Table:
        """All steps backward; touched: nodes whose gradient holds something when a step begins."""
        seen = {self.plan.rows[position] for position in touched}
        segments, operations, keeps = [], [], {}
        for segment in reversed(self.plan.segments):
            if isinstance(segment[0], Product):
                first = self._position[segment[0].position]
                segments.append((PRODUCTS, first, first + len(segment)))
                row = self.plan.row_of(segment[0].operand)
                for product in segment:
                    keeps[product.position] = row in seen
                    seen.add(row)
                continue
            start = len(operations)
            for operation in reversed(segment):
                numbers, whats = self._operation(operation), [SKIP, SKIP]
                for side, place in ((1, operation.y), (0, operation.x)):  # as the kernel goes about it
                    if place is None or (operation.code, side) in ((COLUMN, 0), (TIMES_COLUMN, 1)):
                        continue
                    whats[side] = ADD if numbers[2 + side] in seen else WRITE
                    seen.add(numbers[2 + side])
                operations.append((*numbers, *whats))
            segments.append((OPERATIONS, start, len(operations)))
        return Table(_table(segments, 3), _table(operations, 7), self._products(True, keeps))

    def _products(self, backward: bool, keeps: dict[int, bool]) -> np.ndarray:
        """keeps: backward, of each product whether its operand's gradient holds something already."""
        rows = []
        for product in self.inside:
            m, k = self.shapes[product.home].rows, self.rows_of(product.operand)
            ends = [self.plan.row_of(product.operand), self.plan.rows[product.home]]
            if backward:
                ends, (m, k) = ends[::-1], (k, m)
            rows.append((0, 0, 0, m, k, *ends, keeps[product.position] if backward else product.keep))
        return _table(rows, 8)

    def rows_of(self, place: Place) -> int:
        """How many rows a node or an operand has."""
        inside, at = place
        return (self.shapes if inside else self.outside)[at].rows


def _table(rows: Sequence[tuple], width: int) -> np.ndarray:
    return np.array(rows, np.int64).reshape(len(rows), width)
