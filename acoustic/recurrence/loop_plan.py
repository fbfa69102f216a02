"""The plan of a compiled loop: the rows of each node's values, and the order of computation.

All values of a frame are stored in one column. Nodes share rows where possible: the terms of a sum are added in the
rows of the sum, products among them by the matrix product itself; an activation overwrites its operand. Gradients have
the same rows of a second matrix: the gradient of a sum is that of its terms. For an LSTM this reduces memory traffic,
which takes most of a step's time besides products, to a third.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from acoustic.kernels.shape import Shape
from acoustic.nodes import properties
from acoustic.nodes.base import Node
from acoustic.nodes.properties import DIFFERENCE, ELEMENT_PRODUCT, NEGATIVE, PRODUCT, SUM
from acoustic.recurrence.codes import COLUMN, COPY, NEGATE, RELU, SIGMOID, TANH, TIMES, TIMES_COLUMN

ACTIVATIONS = {properties.SIGMOID: SIGMOID, properties.TANH: TANH, properties.RELU: RELU}
Place = tuple[bool, int]  # whether an operand is in the loop, and its position there or among the operands outside


@dataclass(frozen=True)
class Delay:
    """A delay of a loop: its node, rows and number of steps, its position and that of the delayed node."""

    node: Node
    rows: int
    steps: int
    position: int
    source: int


@dataclass(frozen=True)
class LoopNodes:
    """The nodes of a loop in the order of one step, delays first.

    shapes: of the nodes; operands: the places of each node's operands; outside: the shapes of operands outside.
    """

    nodes: Sequence[Node]
    shapes: Sequence[Shape]
    operands: Sequence[Sequence[Place]]
    outside: Sequence[Shape]

    @property
    def delays(self) -> list[Delay]:
        """The delays in order."""
        return [
            Delay(node, shape.rows, node.delay, k, operands[0][1])
            for k, (node, shape, operands) in enumerate(zip(self.nodes, self.shapes, self.operands))
            if node.delay
        ]

    def shape(self, place: Place) -> Shape:
        """The shape of a node or an operand."""
        in_loop, at = place
        return (self.shapes if in_loop else self.outside)[at]


@dataclass
class Product:
    """A parameter times a node of the loop, step by step, or times an operand outside, for all steps at once.

    home: the node in whose rows it is computed; keep: whether it is added to their contents.
    """

    position: int
    parameter: int
    operand: Place
    home: int
    keep: bool = False


@dataclass
class Operation:
    """One pass over rows of a column: out = f(x, y) or, with keep, out += f(x, y); y is None for some codes."""

    code: int
    out: int
    x: Place
    y: Place | None = None
    keep: bool = False


Segment = list[Product] | list[Operation]  # products of one node, or elementwise operations


@dataclass
class Plan:
    """See `plan_loop`.

    loop: the nodes; before: products computed for all steps at once; copied: for operands with frames, the node to
    whose rows they are copied before the steps, and whether they are added there; segments: of one step, in order.
    rows: first row of each node; framed: first row of each operand with frames; columns: offset of each column operand
    among all of them; num_rows, num_constants: their totals.
    """

    loop: LoopNodes
    before: list[Product] = field(default_factory=list)
    copied: dict[int, tuple[int, bool]] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    rows: dict[int, int] = field(default_factory=dict)
    framed: dict[int, int] = field(default_factory=dict)
    columns: dict[int, int] = field(default_factory=dict)
    num_rows: int = 0
    num_constants: int = 0

    def row_of(self, place: Place) -> int:
        in_loop, at = place
        return self.rows[at] if in_loop else self.framed[at]

    @property
    def inside(self) -> list[Product]:
        """The products of a step."""
        return [step for segment in self.segments for step in segment if isinstance(step, Product)]

    @property
    def products(self) -> list[Product]:
        """All of them."""
        return self.before + self.inside


def plan_loop(loop: LoopNodes, visible: Collection[int]) -> Plan | None:
    """Plan a loop; None if it has a node that is neither a product nor elementwise.

    visible: the nodes whose values are needed outside.
    """
    planner = _Planner(loop, visible)
    return planner.plan() if all(planner.is_known(position) for position in planner.computed) else None


class _Planner:
    """Makes the plan of a loop; see plan_loop."""

    def __init__(self, loop: LoopNodes, visible: Collection[int]) -> None:
        self.loop = loop
        self.nodes = loop.nodes
        self.operands = loop.operands
        self.outside = loop.outside
        self.computed = [position for position, node in enumerate(loop.nodes) if not node.delay]
        self.uses = Counter(operand for places in loop.operands for operand in places)
        self.kept = set(visible) | {delay.source for delay in loop.delays}
        self.inner_sums: set[int] = set()  # the sums whose terms belong to another sum
        self.terms = {position: self._terms(position) for position in self.computed if self._is_sum(position)}
        self.home: dict[int, int] = {}  # of nodes that are computed in the rows of a sum: the sum

    # ---- kinds of nodes

    def is_known(self, position: int) -> bool:
        node = self.nodes[position]
        places = self.operands[position]
        if node.has(PRODUCT):
            (in_loop, at), (second_in_loop, second_at) = places
            return (
                not in_loop
                and not self._has_frames((in_loop, at))
                and (second_in_loop or self._has_frames((second_in_loop, second_at)))
            )
        if not node.has(SUM, DIFFERENCE, ELEMENT_PRODUCT, NEGATIVE, *ACTIVATIONS):
            return False
        operand_shapes = [self.loop.shape(operand) for operand in places]
        columns = sum(shape.cols == 1 for shape in operand_shapes)
        fits = all(
            shape.rows == self.loop.shapes[position].rows and shape.cols in (None, 1) for shape in operand_shapes
        )
        return fits and columns <= node.has(SUM, ELEMENT_PRODUCT)

    def _has_frames(self, place: Place) -> bool:
        return place[0] or self.outside[place[1]].has_frames

    def _is_sum(self, position: int) -> bool:
        return self.nodes[position].has(SUM, DIFFERENCE)

    def _is_product(self, position: int) -> bool:
        return self.nodes[position].has(PRODUCT)

    def _is_inner(self, place: Place) -> bool:
        """Whether a value of the loop has a single reader and is not kept."""
        in_loop, at = place
        return in_loop and not self.nodes[at].delay and at not in self.kept and self.uses[place] == 1

    def _terms(self, position: int) -> list[tuple[Place, bool]]:
        """The terms of a sum, with those of inner sums, and whether each is subtracted."""
        terms = []
        for side, operand in enumerate(self.operands[position]):
            minus = side == 1 and self.nodes[position].has(DIFFERENCE)
            if not minus and self._is_inner(operand) and self._is_sum(operand[1]):
                self.inner_sums.add(operand[1])
                terms += self._terms(operand[1])
            else:
                terms.append((operand, minus))
        return terms

    # ---- the plan

    def plan(self) -> Plan:
        plan = self.result = Plan(self.loop)
        self._find_homes()
        self._place()
        started = {plan.rows[home] for home, _ in plan.copied.values()}
        for position in self.computed:
            _, parameter = self.operands[position][0]
            operand = self.operands[position][-1]
            if self._is_product(position) and not operand[0]:
                home = self.home.get(position, position)
                plan.before.append(Product(position, parameter, operand, home, plan.rows[home] in started))
                started.add(plan.rows[home])
        self._order(started)
        return plan

    def _find_homes(self) -> None:
        """Find the products that are computed in the rows of a sum, and the operands that are copied there."""
        self.terms = {position: terms for position, terms in self.terms.items() if position not in self.inner_sums}
        for position, terms in self.terms.items():
            for operand, minus in terms:
                in_loop, at = operand
                if minus:
                    continue
                if self._is_inner(operand) and (self._is_product(at) or self.nodes[at].has(ELEMENT_PRODUCT)):
                    self.home[at] = position
                elif not in_loop and self._has_frames(operand) and self.uses[operand] == 1:
                    twice = any(home == position for home, _ in self.result.copied.values())
                    self.result.copied[at] = (position, twice)

    def _place(self) -> None:
        """Assign rows to nodes and operands, and offsets to columns."""
        plan = self.result
        count = 0
        parts = self.home.keys() | self.inner_sums
        for position, node in enumerate(self.nodes):
            if position in parts:
                continue
            operand = self.operands[position][0]
            if node.has(*ACTIVATIONS) and self._is_inner(operand) and self._may_be_overwritten(operand[1]):
                plan.rows[position] = plan.rows[operand[1]]
                continue
            plan.rows[position] = count
            count = count + self.loop.shapes[position].rows
        for position, home in self.home.items():
            plan.rows[position] = plan.rows[home]
        for at, (home, _) in plan.copied.items():
            plan.framed[at] = plan.rows[home]
        for position in self.computed:
            if self._is_product(position):
                continue
            for in_loop, at in self.operands[position]:
                if in_loop or at in plan.framed or at in plan.columns:
                    continue
                rows = self.outside[at].rows
                if self.outside[at].has_frames:
                    plan.framed[at] = count
                    count = count + rows
                else:
                    plan.columns[at] = plan.num_constants
                    plan.num_constants += rows
        plan.num_rows = count

    def _may_be_overwritten(self, position: int) -> bool:
        """Whether no gradient needs a value: only activations need theirs."""
        return not self.nodes[position].has(*ACTIVATIONS) and position not in self.home

    def _order(self, started: set[int]) -> None:
        """Order the steps: all elementwise nodes that can be computed, then all products, and so on."""
        plan = self.result
        made_before = {product.position for product in self.result.before}
        done = {position for position, node in enumerate(self.nodes) if node.delay} | made_before | self.inner_sums
        products = [p for p in self.computed if self._is_product(p) and p not in made_before]
        remaining = [
            p for p in self.computed if not self._is_product(p) and p not in self.inner_sums and p not in self.home
        ]
        while remaining or products:
            operations: list[Operation] = []
            waiting = []
            before = len(remaining)
            for position in remaining:  # operands come before users
                if all(not in_loop or at in done for in_loop, at in self._sources(position)):
                    operations += self._operations(position, started)
                    done.add(position)
                else:
                    waiting.append(position)
            if operations:
                plan.segments.append(operations)
            remaining = waiting
            groups: dict[Place, list[Product]] = {}
            for position in products:
                (_, parameter), operand = self.operands[position]
                if operand[1] in done:
                    home = self.home.get(position, position)
                    keep = plan.rows[home] in started
                    started.add(plan.rows[home])
                    groups.setdefault(operand, []).append(Product(position, parameter, operand, home, keep))
            if not groups and len(waiting) == before:
                raise RuntimeError("a loop that no order of its nodes computes")  # instead of an endless loop
            multiplied = {product.position for group in groups.values() for product in group}
            plan.segments += groups.values()
            done |= multiplied
            products = [position for position in products if position not in multiplied]

    def _sources(self, position: int) -> list[Place]:
        """The values that a node needs."""
        if position not in self.terms:
            return list(self.operands[position])
        sources: list[Place] = []
        for operand, _ in self.terms[position]:
            part = operand[0] and operand[1] in self.home and not self._is_product(operand[1])
            sources += self.operands[operand[1]] if part else [operand]
        return sources

    def _operations(self, position: int, started: set[int]) -> list[Operation]:
        """The operations that compute a node after the products among its terms."""
        node = self.nodes[position]
        places = self.operands[position]
        if position not in self.terms:
            code = next((code for name, code in ACTIVATIONS.items() if node.has(name)), NEGATE)
            return [self._product_of(position, position) if len(places) == 2 else Operation(code, position, places[0])]
        operations = []
        for operand, minus in self.terms[position]:
            in_loop, at = operand
            if self.home.get(at) == position and in_loop:
                if not self._is_product(at):
                    operations.append(self._product_of(at, position))
            elif not self._has_frames(operand):
                operations.append(Operation(COLUMN, position, operand))
            elif in_loop or at not in self.result.copied:
                operations.append(Operation(NEGATE if minus else COPY, position, operand))
        # Columns come last: a column is then added to other terms, or is the only term.
        operations.sort(key=lambda operation: operation.code == COLUMN)
        for operation in operations:
            operation.keep = self.result.rows[position] in started
            started.add(self.result.rows[position])
        return operations

    def _product_of(self, position: int, home: int) -> Operation:
        """The element product at a position, computed in the rows of `home`."""
        places = sorted(self.operands[position], key=lambda place: not self._has_frames(place))
        code = TIMES if self._has_frames(places[1]) else TIMES_COLUMN
        return Operation(code, home, places[0], places[1])
