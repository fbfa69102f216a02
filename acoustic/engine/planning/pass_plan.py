"""The plan for one number of columns: the steps of a pass, and the lifetimes of the matrices they read and write."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from acoustic.engine.planning.buffer_sharing import FOREVER, Lifetime, MatrixKey, Plan, separate, share
from acoustic.engine.planning.node_table import traits
from acoustic.kernels.shape import Shape
from acoustic.network.traversal import gradient_order
from acoustic.nodes.base import VALUE, WORK, Node


def value_of(name: str) -> MatrixKey:
    return ("value", name)


def work_of(name: str) -> MatrixKey:
    return ("work", name)


def gradient_of(name: str) -> MatrixKey:
    return ("gradient", name)


@dataclass(frozen=True)
class Graph:
    """The nodes that an engine executes, operands before users; operands and shapes are found by node name."""

    order: tuple[Node, ...]
    operands: dict[str, tuple[Node, ...]]
    shapes: dict[str, Shape]  # cols is not a number if it depends on the number of frames
    from_input: frozenset[str]  # the nodes that depend on an input
    needed: frozenset[str]  # the nodes that need a gradient
    steps: dict[tuple[str, bool], list["BackwardPlan"]] = field(default_factory=dict)  # of `backward_steps`, once made

    def children(self, node: Node) -> Sequence[Node]:
        return self.operands[node.name]

    def operand_shapes(self, node: Node, shapes: dict[str, Shape] | None = None) -> list[Shape]:
        return [(shapes or self.shapes)[operand.name] for operand in self.operands[node.name]]

    def has_frames(self, name: str) -> bool:
        """Whether the number of columns depends on the number of frames."""
        return self.shapes[name].has_frames

    @cached_property
    def after_sums(self) -> frozenset[str]:
        """The nodes that need a sum over all frames, such as a weighted sum of criteria."""
        names: set[str] = set()
        for node in self.order:
            from_input = [operand.name for operand in self.operands[node.name] if operand.name in self.from_input]
            if any(name in names or not self.has_frames(name) for name in from_input):
                names.add(node.name)
        return frozenset(names)

    def computed(self, split: bool) -> list[Node]:
        """The computed nodes: first those that depend on no input; last, if workers divide the frames, after_sums."""
        last = self.after_sums if split else ()
        nodes = [node for node in self.order if not node.is_leaf]
        return sorted(nodes, key=lambda node: (node.name in self.from_input, node.name in last))

    def splits_frames(self) -> bool:
        """Whether workers can divide the frames: every node computes them one by one or sums over them, sums last.

        Nodes that depend on sums alone are computed when all frames are done.
        """
        for node in self.order:
            if node.name not in self.from_input or node.is_leaf:
                continue
            if node.name in self.after_sums:
                from_input = [operand.name for operand in self.operands[node.name] if operand.name in self.from_input]
                if any(self.has_frames(name) for name in (node.name, *from_input)):
                    return False
                continue
            one_kind = node.sums_frames != (self.shapes[node.name].cols is None)
            if not one_kind or not node.splits_frames(*self.operand_shapes(node)):
                return False
        return True

    def mixing_node(self) -> Node | None:
        """A node that, in evaluation, makes a frame depend on other frames of the minibatch; None if there is none."""
        for node in self.order:
            if node.name in self.from_input and not node.is_leaf:
                one_per_frame = self.shapes[node.name].cols is None
                if not one_per_frame or not node.frame_by_frame(*self.operand_shapes(node)):
                    return node
        return None


@dataclass
class BackwardPlan:
    """One node's backward.

    wanted: operands whose gradients are computed by each worker on its frames; deferred: those that wait for all
    frames; finished: parameters that no later step reads or adds to; finished_products: those of them that the deferred
    part finishes and no deferred part reads.
    The last three hold operands that are parameters whose whole gradient this step computes. handed_out: the node hands
    it out in parts; touched_columns: the node computes only the columns that are not zero; layer_products: the
    parameter is the weight of a layer.
    """

    node: Node
    wanted: tuple[int, ...]
    deferred: tuple[int, ...]
    finished: tuple[str, ...] = ()
    finished_products: tuple[str, ...] = ()
    handed_out: tuple[int, ...] = ()
    touched_columns: tuple[int, ...] = ()
    layer_products: tuple[int, ...] = ()

    def reads(self, operands: Sequence[int]) -> frozenset[int | str]:
        """The values that computing the gradients of these operands reads."""
        return frozenset(read for k in operands for read in self.node.gradient_reads(k) or ())


@dataclass
class Layout:
    """The plan for one number of columns, with or without the gradients of a criterion.

    shapes, work: of values and workspaces; lifetimes: of the matrices in slabs; plan: their places.
    """

    shapes: dict[str, Shape]
    work: dict[str, Shape]
    forward: list[Node]
    backward: list[BackwardPlan]
    lifetimes: list[Lifetime] = field(default_factory=list)
    plan: Plan = field(init=False)

    @cached_property
    def after_forward(self) -> dict[int, MatrixKey]:
        """The matrix that each slab holds after a forward pass."""
        return self._last([lifetime for lifetime in self.lifetimes if lifetime.key[0] != "gradient"])

    @cached_property
    def after_backward(self) -> dict[int, MatrixKey]:
        """The matrix that each slab holds after a backward pass."""
        return self._last(self.lifetimes)

    def _last(self, lifetimes: Sequence[Lifetime]) -> dict[int, MatrixKey]:
        return {
            self.plan.slab[lifetime.key]: lifetime.key
            for lifetime in sorted(lifetimes, key=lambda lifetime: lifetime.start)
        }


def backward_steps(graph: Graph, criterion: Node, split: bool) -> list[BackwardPlan]:
    """The steps of the gradient computation in order (Algorithm 2.4), those that depend on the inputs first.

    If workers divide the frames, nodes that depend on sums over frames come before all others.
    """
    if (criterion.name, split) in graph.steps:
        return graph.steps[criterion.name, split]
    order = gradient_order(criterion, graph.needed, graph.children)
    first = graph.after_sums if split else frozenset()
    order.sort(key=lambda node: (node.name not in graph.from_input, node.name not in first))
    steps = []
    for node in order:
        operands = graph.operands[node.name]
        with_gradient = tuple(k for k, operand in enumerate(operands) if operand.name in graph.needed)
        waits = traits(node).frame_products if split and node.name in graph.from_input - first else ()
        deferred = tuple(k for k in with_gradient if k in waits and not graph.has_frames(operands[k].name))
        steps.append(BackwardPlan(node, tuple(k for k in with_gradient if k not in deferred), deferred))
    read_late: set[str] = set()
    for step in steps:
        operands = graph.operands[step.node.name]
        read_late.update(operands[k].name for k in step.reads(step.deferred) if isinstance(k, int))
    last_user: dict[str, int] = {}
    contributions: Counter[str] = Counter()
    for position, step in enumerate(steps):
        operands = graph.operands[step.node.name]
        contributions.update(operands[k].name for k in (*step.wanted, *step.deferred))
        last_user.update((operands[k].name, position) for k in (*step.wanted, *step.deferred) if operands[k].is_leaf)
    for position, step in enumerate(steps):
        operands = graph.operands[step.node.name]
        products = {operands[k].name for k in step.deferred}
        step.finished = tuple(name for name, last in last_user.items() if last == position)
        step.finished_products = tuple(name for name in step.finished if name in products - read_late)
        complete = step.finished_products if step.deferred else step.finished
        alone = [
            k
            for k in step.deferred or step.wanted
            if operands[k].name in complete and contributions[operands[k].name] == 1
        ]
        about = traits(step.node)
        step.handed_out = tuple(k for k in alone if k in about.hands_out)
        step.layer_products = tuple(k for k in alone if k in about.layer_inputs)
        is_complete = step.deferred or not split  # otherwise each worker computes a part of the gradient
        step.touched_columns = tuple(k for k in alone if k in about.touches_columns) if is_complete else ()
    graph.steps[criterion.name, split] = steps
    return steps


def infer_shapes(graph: Graph, num_columns: int | None) -> dict[str, Shape]:
    """The shape of every node for a minibatch of `num_columns` frames. Raises ShapeError."""
    shapes: dict[str, Shape] = {}
    for node in graph.order:
        if node.is_precomputed:
            shapes[node.name] = Shape(*node.value.shape)
        else:
            shape = node.infer_shape(*graph.operand_shapes(node, shapes))
            shapes[node.name] = shape if num_columns is None else shape.with_columns(num_columns)
    return shapes


def lay_out(
    graph: Graph,
    roots: Sequence[str],
    num_columns: int | None,
    criterion: Node | None,
    sharing: bool,
    split: bool,
) -> Layout:
    """Order the steps, find the lifetime of every matrix, and place those that depend on the inputs in slabs.

    Time counts the forward steps, then the backward steps, then their deferred parts. Matrices that depend on
    parameters alone, and gradients without frames, have memory of their own, for they outlive a minibatch.
    """
    shapes = infer_shapes(graph, num_columns)
    forward = graph.computed(split)
    steps = backward_steps(graph, criterion, split) if criterion is not None else []
    work_shapes = {node.name: node.work_shape(*graph.operand_shapes(node, shapes)) for node in forward}
    work = {name: shape for name, shape in work_shapes.items() if shape is not None}
    layout = Layout(shapes, work, forward, steps)
    layout.lifetimes = _Lifetimes(graph, layout, roots, split).collect()
    layout.plan = share(layout.lifetimes) if sharing else separate(layout.lifetimes)
    return layout


class _Lifetimes:
    """Collects the lifetimes of one layout."""

    def __init__(self, graph: Graph, layout: Layout, roots: Sequence[str], split: bool) -> None:
        self.graph = graph
        self.layout = layout
        self.roots = roots
        self.split = split
        count = len(layout.forward)
        self.time = {node.name: t for t, node in enumerate(layout.forward)}
        self.backward_time = {step.node.name: count + p for p, step in enumerate(layout.backward)}
        self.last_read: dict[MatrixKey, int] = {}

    def collect(self) -> list[Lifetime]:
        self._find_last_reads()
        return self._values() + self._gradients()

    def _read(self, key: MatrixKey, now: int) -> None:
        self.last_read[key] = max(self.last_read.get(key, 0), now)

    def _find_last_reads(self) -> None:
        for node in self.layout.forward:
            self._read(value_of(node.name), self.time[node.name])
            for operand in self.graph.operands[node.name]:
                self._read(value_of(operand.name), self.time[node.name])
        for step in self.layout.backward:
            now = self.backward_time[step.node.name]
            self._read(gradient_of(step.node.name), now)  # also by a node without operands
            for operands, moment in ((step.wanted, now), (step.deferred, now + len(self.layout.backward))):
                if not operands:
                    continue
                self._read(gradient_of(step.node.name), moment)
                reads = step.reads(operands)
                for k, operand in enumerate(self.graph.operands[step.node.name]):
                    if k in reads:
                        self._read(value_of(operand.name), moment)
                for kind, key in ((VALUE, value_of), (WORK, work_of)):
                    if kind in reads:
                        self._read(key(step.node.name), moment)
            if step.node.keeps_statistics:  # updated after the last step
                self._read(work_of(step.node.name), FOREVER)
        for name in self.roots:
            self._read(value_of(name), FOREVER)

    def _lifetime(self, key: MatrixKey, shape: Shape, start: int, in_place: tuple[MatrixKey, ...] = ()) -> Lifetime:
        """The lifetime of a matrix.

        Workers reach a step at different times, so a worker's columns must be the same memory in all matrices of a
        slab: only matrices with the same number of rows share one.
        """
        end = max(start, self.last_read.get(key, 0))
        return Lifetime(key, shape.rows * shape.num_columns, start, end, in_place, shape.rows if self.split else None)

    def _values(self) -> list[Lifetime]:
        lifetimes = []
        for node in self.layout.forward:
            if node.name not in self.graph.from_input:
                continue
            operands = self.graph.operands[node.name]
            reusable = tuple(value_of(operands[k].name) for k in traits(node).value_in_place)
            now = self.time[node.name]
            lifetimes.append(self._lifetime(value_of(node.name), self.layout.shapes[node.name], now, reusable))
            if node.name in self.layout.work and work_of(node.name) in self.last_read:
                lifetimes.append(self._lifetime(work_of(node.name), self.layout.work[node.name], now))
        return lifetimes

    def _gradients(self) -> list[Lifetime]:
        lifetimes = []
        placed: set[str] = set()
        for step in self.layout.backward:
            operands = self.graph.operands[step.node.name]
            names = [operand.name for operand in operands]
            for k in step.wanted:
                name = names[k]
                if name in placed or not self.graph.has_frames(name):
                    continue
                placed.add(name)
                alone = names.count(name) == 1 and k in traits(step.node).gradient_in_place
                reusable = (gradient_of(step.node.name),) if alone else ()
                now = self.backward_time[step.node.name]
                lifetimes.append(self._lifetime(gradient_of(name), self.layout.shapes[name], now, reusable))
        return lifetimes
