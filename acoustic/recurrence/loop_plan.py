"""What the nodes of a loop are in compiled form: where each one's values lie, and what is computed in which order.

All values of a frame lie in one column.  Nodes share rows where none needs what the other leaves: the terms of a sum
are added up where the sum will be, products among them by the matrix product itself; an activation is computed over
its operand.  Gradients lie in the same rows of a second matrix: those of a sum are its terms'.  An LSTM then moves a
third of the memory, which is what a step's time goes to once the products are made.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from acoustic.nodes.base import Node, Shape
from acoustic.nodes.element_products import DiagTimes, ElementTimes
from acoustic.nodes.elementwise import Negate, RectifiedLinear, Sigmoid, Tanh
from acoustic.nodes.products import Times
from acoustic.nodes.sums import Minus, Plus
from acoustic.recurrence.codes import COLUMN, COPY, NEGATE, RELU, SIGMOID, TANH, TIMES, TIMES_COLUMN

ACTIVATIONS: dict[type[Node], int] = {Sigmoid: SIGMOID, Tanh: TANH, RectifiedLinear: RELU}
SUMS = (Plus, Minus)
ELEMENT_PRODUCTS = (ElementTimes, DiagTimes)
Place = tuple[bool, int]  # whether an operand is a node of the loop, and its position there or among those outside


@dataclass
class Product:
    """A parameter times a node of the loop, step by step, or something outside, all steps at once.

    home: the node in whose rows it is made; keep: whether it is added to what is there.
    """

    position: int
    parameter: int
    operand: Place
    home: int
    keep: bool = False


@dataclass
class Operation:
    """One pass over rows of a column: out = f(x, y), or out += f(x, y).  x, y: places; y is None for some codes."""

    code: int
    out: int
    x: Place
    y: Place | None = None
    keep: bool = False


Segment = list[Product] | list[Operation]  # products of one node, or elementwise operations


@dataclass
class Plan:
    """See `plan_loop`.

    before: products of all steps at once; copied: framed operands -> the node to whose rows they are copied before the
    steps, and whether they are added there; segments: of one step, in order.
    rows: of each node the first one of its values; framed: those of operands; columns: where each column operand starts
    among all of them; num_rows, num_constants: how many there are.
    """

    before: list[Product] = field(default_factory=list)
    copied: dict[int, tuple[int, bool]] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    rows: dict[int, int] = field(default_factory=dict)
    framed: dict[int, int] = field(default_factory=dict)
    columns: dict[int, int] = field(default_factory=dict)
    num_rows: int = 0
    num_constants: int = 0

    def row_of(self, place: Place) -> int:
        inside, at = place
        return self.rows[at] if inside else self.framed[at]

    @property
    def products(self) -> list[Product]:
        """All of them."""
        inside = [one for segment in self.segments for one in segment if isinstance(one, Product)]
        return self.before + inside


def plan_loop(
    nodes: Sequence[Node],
    shapes: Sequence[Shape],
    operands: Sequence[Sequence[Place]],
    outside: Sequence[Shape],
    visible: Collection[int],
) -> Plan | None:
    """The plan of a loop; None when it has a node that is neither a product nor elementwise.

    nodes: in the order of one step, delays first; operands: of each node; outside: shapes of what is not in the loop;
    visible: the nodes whose values are wanted outside.
    """
    planner = _Planner(nodes, shapes, operands, outside, visible)
    return planner.plan() if all(planner.is_known(position) for position in planner.computed) else None


class _Planner:
    """`plan_loop` at work."""

    def __init__(
        self,
        nodes: Sequence[Node],
        shapes: Sequence[Shape],
        operands: Sequence[Sequence[Place]],
        outside: Sequence[Shape],
        visible: Collection[int],
    ) -> None:
        self.nodes, self.shapes, self.operands, self.outside = nodes, shapes, operands, outside
        self.computed = [position for position, node in enumerate(nodes) if not node.delay]
        self.uses = Counter(place for places in operands for place in places)
        delayed = {operands[position][0][1] for position, node in enumerate(nodes) if node.delay}
        self.kept = set(visible) | delayed
        self.terms = {position: self._terms(position) for position in self.computed if self._is_sum(position)}
        self.home: dict[int, int] = {}  # of what is computed as a part of a sum: the sum

    # ---- what the nodes are

    def is_known(self, position: int) -> bool:
        node, places = self.nodes[position], self.operands[position]
        if type(node) is Times:
            (inside, at), (common, other) = places
            return not inside and not self._has_frames((inside, at)) and (common or self._has_frames((common, other)))
        if type(node) not in (*SUMS, *ELEMENT_PRODUCTS, *ACTIVATIONS, Negate):
            return False
        below = [self._shape(place) for place in places]
        columns = sum(shape.cols == 1 for shape in below)
        fits = all(shape.rows == self.shapes[position].rows and shape.cols in (None, 1) for shape in below)
        return fits and columns <= (type(node) in (Plus, *ELEMENT_PRODUCTS))

    def _shape(self, place: Place) -> Shape:
        inside, at = place
        return self.shapes[at] if inside else self.outside[at]

    def _has_frames(self, place: Place) -> bool:
        return place[0] or self.outside[place[1]].has_frames

    def _is_sum(self, position: int) -> bool:
        return type(self.nodes[position]) in SUMS

    def _is_product(self, position: int) -> bool:
        return type(self.nodes[position]) is Times

    def _is_inner(self, place: Place) -> bool:
        """Whether one node alone reads a value."""
        inside, at = place
        return inside and not self.nodes[at].delay and at not in self.kept and self.uses[place] == 1

    def _terms(self, position: int) -> list[tuple[Place, bool]]:
        """What a sum adds up, sums inside it taken apart; and whether with a minus."""
        found = []
        for side, place in enumerate(self.operands[position]):
            minus = side == 1 and type(self.nodes[position]) is Minus
            if not minus and self._is_inner(place) and self._is_sum(place[1]):
                found += self._terms(place[1])
            else:
                found.append((place, minus))
        return found

    # ---- the plan

    def plan(self) -> Plan:
        plan = self.result = Plan()
        self._find_homes()
        self._place()
        started = {plan.rows[home] for home, _ in plan.copied.values()}
        for position in self.computed:
            (_, parameter), operand = self.operands[position][0], self.operands[position][-1]
            if self._is_product(position) and not operand[0]:
                home = self.home.get(position, position)
                plan.before.append(Product(position, parameter, operand, home, plan.rows[home] in started))
                started.add(plan.rows[home])
        self._order(started)
        return plan

    def _find_homes(self) -> None:
        """Which products and element products are made where they are added up, and which operands copied there."""
        inner_sums = {place[1] for position in self.terms for place in self._inner_sums(position)}
        self.terms = {position: terms for position, terms in self.terms.items() if position not in inner_sums}
        for position, terms in self.terms.items():
            for place, minus in terms:
                inside, at = place
                if minus:
                    continue
                if self._is_inner(place) and (self._is_product(at) or type(self.nodes[at]) in ELEMENT_PRODUCTS):
                    self.home[at] = position
                elif not inside and self._has_frames(place) and self.uses[place] == 1:
                    twice = any(home == position for home, _ in self.result.copied.values())
                    self.result.copied[at] = (position, twice)
        self.inner_sums = inner_sums

    def _inner_sums(self, position: int) -> list[Place]:
        sides = enumerate(self.operands[position])
        plus = [place for side, place in sides if side == 0 or type(self.nodes[position]) is Plus]
        return [place for place in plus if self._is_inner(place) and self._is_sum(place[1])]

    def _place(self) -> None:
        """Give rows to every node and operand, and places to columns."""
        plan, count = self.result, 0
        parts = self.home.keys() | self.inner_sums
        for position, node in enumerate(self.nodes):
            if position in parts:
                continue
            below = self.operands[position][0]
            if type(node) in ACTIVATIONS and self._is_inner(below) and self._may_be_overwritten(below[1]):
                plan.rows[position] = plan.rows[below[1]]
                continue
            plan.rows[position], count = count, count + self.shapes[position].rows
        for position, home in self.home.items():
            plan.rows[position] = plan.rows[home]
        for at, (home, _) in plan.copied.items():
            plan.framed[at] = plan.rows[home]
        for position in self.computed:
            if self._is_product(position):
                continue
            for inside, at in self.operands[position]:
                if inside or at in plan.framed or at in plan.columns:
                    continue
                rows = self.outside[at].rows
                if self.outside[at].has_frames:
                    plan.framed[at], count = count, count + rows
                else:
                    plan.columns[at], plan.num_constants = plan.num_constants, plan.num_constants + rows
        plan.num_rows = count

    def _may_be_overwritten(self, position: int) -> bool:
        """Whether a gradient can do without the value: all but those of activations."""
        return type(self.nodes[position]) not in ACTIVATIONS and position not in self.home

    def _order(self, started: set[int]) -> None:
        """Everything elementwise that can be computed, then every product, and so on."""
        plan, made_before = self.result, {product.position for product in self.result.before}
        done = {position for position, node in enumerate(self.nodes) if node.delay} | made_before | self.inner_sums
        products = [p for p in self.computed if self._is_product(p) and p not in made_before]
        left = [p for p in self.computed if not self._is_product(p) and p not in self.inner_sums and p not in self.home]
        while left or products:
            operations: list[Segment] = []
            waiting, before = [], len(left)
            for position in left:  # in the order of a step: operands come first
                if all(not inside or at in done for inside, at in self._sources(position)):
                    operations += self._operations(position, started)
                    done.add(position)
                else:
                    waiting.append(position)
            if operations:
                plan.segments.append(operations)
            left, groups = waiting, {}
            for position in products:
                (_, parameter), operand = self.operands[position]
                if operand[1] in done:
                    home = self.home.get(position, position)
                    keep = plan.rows[home] in started
                    started.add(plan.rows[home])
                    groups.setdefault(operand, []).append(Product(position, parameter, operand, home, keep))
            if not groups and len(waiting) == before:
                raise RuntimeError("a loop that no order of its nodes computes")  # else this would go on for ever
            made = {product.position for group in groups.values() for product in group}
            plan.segments += groups.values()
            done |= made
            products = [position for position in products if position not in made]

    def _sources(self, position: int) -> list[Place]:
        """What must be there before a node."""
        if position not in self.terms:
            return list(self.operands[position])
        found = []
        for place, _ in self.terms[position]:
            part = place[0] and place[1] in self.home and not self._is_product(place[1])
            found += self.operands[place[1]] if part else [place]
        return found

    def _operations(self, position: int, started: set[int]) -> list[Operation]:
        """What computes a node, once the products among its terms are made."""
        node, places = self.nodes[position], self.operands[position]
        if position not in self.terms:
            code = ACTIVATIONS.get(type(node), NEGATE)
            return [self._product_of(position, position) if len(places) == 2 else Operation(code, position, places[0])]
        found = []
        for place, minus in self.terms[position]:
            inside, at = place
            if self.home.get(at) == position and inside:
                if not self._is_product(at):
                    found.append(self._product_of(at, position))
            elif not self._has_frames(place):
                found.append(Operation(COLUMN, position, place))
            elif inside or at not in self.result.copied:
                found.append(Operation(NEGATE if minus else COPY, position, place))
        # What adds a column to nothing would write it; with it last there is always something, or it is alone.
        found.sort(key=lambda operation: operation.code == COLUMN)
        for operation in found:
            operation.keep = self.result.rows[position] in started
            started.add(self.result.rows[position])
        return found

    def _product_of(self, position: int, home: int) -> Operation:
        """The element product at a position, made in the rows of `home`."""
        places = sorted(self.operands[position], key=lambda place: not self._has_frames(place))
        code = TIMES if self._has_frames(places[1]) else TIMES_COLUMN
        return Operation(code, home, places[0], places[1])
