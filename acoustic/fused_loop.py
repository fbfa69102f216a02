"""Loops of products and elementwise nodes, float32 on the CPU: products of one operand merged, the rest fused.

All values of the loop lie in one matrix, those of a frame in one column.  Products of parameters with one and the same
node, the four gates of an LSTM for instance, lie below each other and are made as one product with the parameters
stacked; the elementwise nodes between two products are one compiled pass.  Backward likewise.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acoustic.backend import Backend, matmul_into
from acoustic.node import Node, Shape
from acoustic.nodes.element_products import DiagTimes, ElementTimes
from acoustic.nodes.elementwise import Negate, RectifiedLinear, Sigmoid, Tanh
from acoustic.nodes.products import Times
from acoustic.nodes.sums import Minus, Plus

# Codes of _loop_kernels, which only a job that computes loads.
PLUS, MINUS, TIMES, SIGMOID, TANH, RELU, NEGATE, PLUS_COLUMN, TIMES_COLUMN = range(9)
SKIP, ADD, WRITE = range(3)
CODES: dict[type[Node], int] = {
    Plus: PLUS,
    Minus: MINUS,
    ElementTimes: TIMES,
    DiagTimes: TIMES,
    Sigmoid: SIGMOID,
    Tanh: TANH,
    RectifiedLinear: RELU,
    Negate: NEGATE,
}
PADDING = 64
WITH_COLUMN = {PLUS: PLUS_COLUMN, TIMES: TIMES_COLUMN}
Place = tuple[bool, int]  # whether an operand is a node of the loop, and its position there or among those outside


@dataclass
class Products:
    """Products of parameters with one node, made as one.

    members: the positions of the products; parameters: those outside; common: the position of the node.  stacked: the
    parameters below each other; turned: the same transposed, in Fortran order too, which makes the many thin products
    of a pass backward two to three times as fast.
    """

    members: list[int]
    parameters: list[int]
    common: int
    stacked: Any = None
    turned: Any = None


@dataclass
class Elementwise:
    """Nodes computed in one pass, in order; operations: see _loop_kernels, without what gradients do."""

    members: list[int]
    operations: np.ndarray = field(default_factory=lambda: np.zeros((0, 7), np.int64))


class FusedLoop:
    """How the nodes of a loop are computed, step by step.

    offsets: of each node its first row in `values`; rows: how many all of them have.
    """

    def __init__(self, shapes: Sequence[Shape], segments: list[Products | Elementwise], delays: Sequence[int]) -> None:
        self.segments = segments
        order = [*delays, *(position for segment in segments for position in segment.members)]
        self.offsets, self.rows = [0] * len(shapes), 0
        for position in order:
            self.offsets[position], self.rows = self.rows, self.rows + shapes[position].rows
        self.shapes = shapes
        self.framed: dict[int, tuple[int, int]] = {}  # outside with frames -> first row in `values`, rows
        self.columns: dict[int, tuple[int, int]] = {}  # outside, a column -> start in `constants`, rows
        self.values: Any = None
        self.gradients: Any = None
        self._memory: Any = None
        self._gradient_memory: Any = None
        self.constants = np.zeros(0, np.float32)

    def allocate(self, backend: Backend, num_columns: int, training: bool) -> bool:
        """Make the matrices for so many columns; returns whether they are new.

        They lie in memory that only grows: minibatches of whole utterances differ in their columns, and memory that is
        new each time costs more than what is computed in it.
        """
        # Columns not a power of two apart: a step's would all fall on a few lines of the cache.
        total, inside = (
            rows + PADDING - rows % PADDING + 16
            for rows in (self.rows + sum(rows for _, rows in self.framed.values()), self.rows)
        )
        renewed = self.values is None or self.values.shape[1] != num_columns
        if renewed:
            self._memory = _at_least(self._memory, backend, total, num_columns)
            self.values, self.gradients = self._memory[:, :num_columns], None
        if training and self.gradients is None:
            self._gradient_memory = _at_least(self._gradient_memory, backend, inside, num_columns)
            self.gradients = self._gradient_memory[:, :num_columns]
            renewed = True
        return renewed

    def block(self, matrix: Any, position: int) -> Any:
        """A node's rows."""
        return matrix[self.offsets[position] : self.offsets[position] + self.shapes[position].rows]

    def take(self, inputs: Sequence[Any]) -> None:
        """Before the steps: gather what comes from outside."""
        from acoustic import _loop_kernels  # numba: only a job that computes loads it

        self.kernels = _loop_kernels
        for at, (start, rows) in self.framed.items():
            np.copyto(self.values[start : start + rows], inputs[at])
        self.constants = np.empty(sum(rows for _, rows in self.columns.values()), np.float32)
        for at, (start, rows) in self.columns.items():
            self.constants[start : start + rows] = inputs[at][:, 0]
        for products in self.segments:
            if isinstance(products, Products):
                products.stacked = self._stacked(products, inputs)

    def _stacked(self, products: Products, inputs: Sequence[Any]) -> Any:
        if len(products.parameters) == 1:
            return inputs[products.parameters[0]]
        parameters = [inputs[at] for at in products.parameters]
        rows, cols = sum(len(parameter) for parameter in parameters), parameters[0].shape[1]
        stacked = products.stacked
        if stacked is None or stacked.shape != (rows, cols):
            stacked = np.empty((rows, cols), np.float32, order="F")
        return np.concatenate(parameters, axis=0, out=stacked)

    def turn(self) -> None:
        """Before the steps backward: transpose the parameters."""
        for products in self.segments:
            if isinstance(products, Products):
                shape = products.stacked.shape[::-1]
                if products.turned is None or products.turned.shape != shape:
                    products.turned = np.empty(shape, np.float32, order="F")
                self.kernels.turn(products.stacked.T, products.turned.T)

    def _together(self, matrix: Any, products: Products, columns: slice) -> Any:
        start = self.offsets[products.members[0]]
        rows = sum(self.shapes[position].rows for position in products.members)
        return matrix[start : start + rows, columns]

    def forward_steps(self, steps: Sequence[slice]) -> list[list[tuple]]:
        """Per step (function, arguments); arguments that change between passes are looked up by `take`."""
        return [[self._forward(segment, columns) for segment in self.segments] for columns in steps]

    def _forward(self, segment: Products | Elementwise, columns: slice) -> tuple:
        if isinstance(segment, Products):
            common = self.block(self.values, segment.common)[:, columns]
            return _multiply, (segment, False, common, self._together(self.values, segment, columns), 0.0)
        return self._pass_forward, (segment.operations, columns.start, columns.stop)

    def _pass_forward(self, operations: np.ndarray, first: int, last: int) -> None:
        self.kernels.forward(self.values.T, self.constants, operations, first, last)

    def backward_steps(self, steps: Sequence[slice], touched: Collection[int]) -> list[list[tuple]]:
        """The same for gradients inside; touched: nodes whose gradient holds something when a step begins."""
        plan: list[tuple[Products | Elementwise, Any]] = []
        touched = set(touched)
        for segment in reversed(self.segments):
            if isinstance(segment, Products):
                plan.append((segment, float(segment.common in touched)))
                touched.add(segment.common)
                continue
            operations = segment.operations[::-1].copy()
            for k, (_, operands) in enumerate(reversed(self._with_operands(segment))):
                for side, (inside, position) in enumerate(operands):
                    if inside:
                        operations[k, 5 + side] = ADD if position in touched else WRITE
                        touched.add(position)
            plan.append((segment, operations))
        return [[self._backward(segment, how, columns) for segment, how in plan] for columns in steps]

    def _with_operands(self, segment: Elementwise) -> list[tuple[int, list[Place]]]:
        return [(position, self.operands[position]) for position in segment.members]

    def _backward(self, segment: Products | Elementwise, how: Any, columns: slice) -> tuple:
        if isinstance(segment, Products):
            target = self.block(self.gradients, segment.common)[:, columns]
            return _multiply, (segment, True, self._together(self.gradients, segment, columns), target, how)
        return self._pass_backward, (how, columns.start, columns.stop)

    def _pass_backward(self, operations: np.ndarray, first: int, last: int) -> None:
        self.kernels.backward(self.gradients.T, self.values.T, self.constants, operations, first, last)

    def bind(self, operands: list[list[Place]], codes: dict[int, int], outside: Sequence[Shape]) -> None:
        """Fill in the operations; operands: of every node; codes: of the elementwise ones."""
        self.operands = [list(places) for places in operands]
        row, constant = self.rows, 0
        for segment in self.segments:
            if not isinstance(segment, Elementwise):
                continue
            operations = np.zeros((len(segment.members), 7), np.int64)
            for k, position in enumerate(segment.members):
                code, places = codes[position], self.operands[position]
                column = [side for side, (inside, at) in enumerate(places) if not inside and not outside[at].has_frames]
                if column:
                    code = WITH_COLUMN[code]
                    places.sort(key=lambda place: not place[0] and not outside[place[1]].has_frames)
                starts = [0, 0]
                for side, (inside, at) in enumerate(places):
                    if inside:
                        starts[side] = self.offsets[at]
                    elif outside[at].has_frames:
                        if at not in self.framed:
                            self.framed[at], row = (row, outside[at].rows), row + outside[at].rows
                        starts[side] = self.framed[at][0]
                    else:
                        if at not in self.columns:
                            self.columns[at], constant = (constant, outside[at].rows), constant + outside[at].rows
                        starts[side] = self.columns[at][0]
                operations[k] = code, self.offsets[position], *starts, self.shapes[position].rows, SKIP, SKIP
            segment.operations = operations


def _at_least(memory: Any, backend: Backend, rows: int, cols: int) -> Any:
    """A matrix of so many columns or more: the one that is there, or a new one with some to spare."""
    return memory if memory is not None and memory.shape[1] >= cols else backend.empty(rows, cols + cols // 4)


def _multiply(products: Products, transposed: bool, b: Any, out: Any, keep: float) -> None:
    matmul_into(np, products.turned if transposed else products.stacked, b, out, 1.0, keep)


def fused_loop(
    nodes: Sequence[Node], shapes: Sequence[Shape], operands: list[list[Place]], outside: Sequence[Shape]
) -> FusedLoop | None:
    """The fused form of a loop; None when it has a node that is neither a product nor elementwise.

    nodes: in the order of one step, delays first; operands: of each node; outside: shapes of what is not in the loop.
    """
    codes: dict[int, int] = {}
    for position, (node, places) in enumerate(zip(nodes, operands)):
        if node.delay:
            continue
        if type(node) is Times:
            (inside, at), (common, _) = places
            if inside or not common or outside[at].has_frames:
                return None
            continue
        code = CODES.get(type(node))
        below = [shapes[at] if inside else outside[at] for inside, at in places]
        columns = sum(shape.cols == 1 for shape in below)
        fits = all(shape.rows == shapes[position].rows and (shape.cols is None or shape.cols == 1) for shape in below)
        if code is None or not fits or columns > 1 or (columns and code not in WITH_COLUMN):
            return None
        codes[position] = code
    delays = [position for position, node in enumerate(nodes) if node.delay]
    fused = FusedLoop(shapes, _segments(nodes, operands, codes), delays)
    fused.bind(operands, codes, outside)
    return fused


def _segments(
    nodes: Sequence[Node], operands: Sequence[Sequence[Place]], codes: Collection[int]
) -> list[Products | Elementwise]:
    """Everything elementwise that can be computed, then every product, and so on."""
    done = {position for position, node in enumerate(nodes) if node.delay}
    left = [position for position in range(len(nodes)) if position not in done]
    segments: list[Products | Elementwise] = []

    def ready(position: int) -> bool:
        return all(not inside or at in done for inside, at in operands[position])

    while left:
        members = []
        for position in left:  # in the order of a step: operands come first
            if position in codes and ready(position):
                members.append(position)
                done.add(position)
        if members:
            segments.append(Elementwise(members))
        groups: dict[int, Products] = {}
        for position in left:
            if position not in codes and ready(position):
                (_, parameter), (_, common) = operands[position]
                group = groups.setdefault(common, Products([], [], common))
                group.members.append(position)
                group.parameters.append(parameter)
        segments += groups.values()
        done.update(position for group in groups.values() for position in group.members)
        left = [position for position in left if position not in done]
    return segments
