"""Where everything lies for one number of columns: the steps of a pass with their buffers, shared by lifetime."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from acoustic.buffers import FOREVER, Lifetime, Plan, separate, share
from acoustic.node import VALUE, WORK, Node, Shape
from acoustic.order import gradient_order

Key = tuple[str, str]  # ("value" | "work" | "gradient", node name)


def value_of(name: str) -> Key:
    return ("value", name)


def work_of(name: str) -> Key:
    return ("work", name)


def gradient_of(name: str) -> Key:
    return ("gradient", name)


@dataclass(frozen=True)
class Graph:
    """The nodes an engine executes: operands before users, each node's operands by position."""

    order: tuple[Node, ...]
    operands: dict[str, tuple[Node, ...]]
    from_input: frozenset[str]  # names of the nodes that depend on an input
    needed: frozenset[str]  # names of the nodes that need a gradient

    def children(self, node: Node) -> Sequence[Node]:
        return self.operands[node.name]

    @property
    def computed(self) -> list[Node]:
        return [node for node in self.order if not node.is_leaf]


@dataclass
class BackwardStep:
    """One node's backward: which operand gradients it adds to, which of them hold nothing before, what it reads."""

    node: Node
    wanted: tuple[int, ...]
    fresh: tuple[bool, ...]
    reads: frozenset[int | str]
    finished: tuple[str, ...] = ()  # parameters that no later step reads or adds to


@dataclass
class Layout:
    """The plan for one number of columns, with or without the gradients of a criterion."""

    shapes: dict[str, Shape]
    plan: Plan
    forward: list[Node]
    backward: list[BackwardStep]
    kept: frozenset[str]  # values that must be there after forward: roots, and what backward reads
    start: dict[Hashable, int] = field(default_factory=dict)


def backward_steps(graph: Graph, criterion: Node) -> list[BackwardStep]:
    """The steps of the gradient computation, in order (Algorithm 2.4)."""
    touched: set[str] = set()
    steps = []
    last_user: dict[str, int] = {}
    for position, node in enumerate(gradient_order(criterion, graph.needed, graph.children)):
        operands = graph.operands[node.name]
        wanted = tuple(k for k, operand in enumerate(operands) if operand.name in graph.needed)
        fresh = tuple(operand.name not in touched for operand in operands)
        reads = frozenset(read for k in wanted for read in node.backward_reads[k])
        steps.append(BackwardStep(node, wanted, fresh, reads))
        touched.update(operands[k].name for k in wanted)
        last_user.update((operands[k].name, position) for k in wanted if operands[k].is_leaf)
    for position, step in enumerate(steps):
        step.finished = tuple(name for name, last in last_user.items() if last == position)
    return steps


def infer_shapes(graph: Graph, num_columns: int | None) -> dict[str, Shape]:
    """The shape of every node when a frame-per-column matrix has `num_columns`.  Raises ShapeError."""
    shapes: dict[str, Shape] = {}
    for node in graph.order:
        if node.is_precomputed:
            shapes[node.name] = Shape(*node.value.shape)
        else:
            shape = node.infer_shape(*(shapes[operand.name] for operand in graph.operands[node.name]))
            shapes[node.name] = shape if num_columns is None else shape.with_columns(num_columns)
    return shapes


def lay_out(
    graph: Graph, roots: Sequence[str], num_columns: int | None, criterion: Node | None, sharing: bool
) -> Layout:
    """Order the steps, find every matrix's lifetime and place those that depend on the inputs in shared memory.

    Matrices that depend on parameters alone, and the parameters' gradients, lie elsewhere: they outlive a minibatch.
    """
    shapes = infer_shapes(graph, num_columns)
    forward = graph.computed
    time = {node.name: t for t, node in enumerate(forward)}
    steps = backward_steps(graph, criterion) if criterion is not None else []
    backward_time = {step.node.name: len(forward) + p for p, step in enumerate(steps)}

    last_read = dict(time)
    work_read = dict(time)
    kept = set(roots)
    for node in forward:
        for operand in graph.operands[node.name]:
            if not operand.is_leaf:
                last_read[operand.name] = max(last_read[operand.name], time[node.name])
    for step in steps:
        now = backward_time[step.node.name]
        read = [operand for k, operand in enumerate(graph.operands[step.node.name]) if k in step.reads]
        read += [step.node] if VALUE in step.reads else []
        for node in read:
            kept.add(node.name)
            if not node.is_leaf:
                last_read[node.name] = max(last_read[node.name], now)
        if WORK in step.reads:
            kept.add(step.node.name)
            work_read[step.node.name] = now
    for name in roots:
        last_read[name] = FOREVER

    lifetimes = []
    for node in forward:
        if node.name not in graph.from_input:
            continue
        operands = graph.operands[node.name]
        reusable = tuple(value_of(operands[k].name) for k in node.value_in_place)
        size = shapes[node.name].rows * shapes[node.name].cols
        lifetimes.append(Lifetime(value_of(node.name), size, time[node.name], last_read[node.name], reusable))
        work = node.work_shape(*(shapes[operand.name] for operand in operands))
        if work is not None and work_read[node.name] > time[node.name]:
            lifetimes.append(Lifetime(work_of(node.name), work.rows * work.cols, time[node.name], work_read[node.name]))
    for step in steps:
        now = backward_time[step.node.name]
        operands = graph.operands[step.node.name]
        names = [operand.name for operand in operands]
        for k in step.wanted:
            if operands[k].is_leaf or not step.fresh[k] or names.index(names[k]) != k:
                continue
            size = shapes[names[k]].rows * shapes[names[k]].cols
            alone = names.count(names[k]) == 1 and k in step.node.gradient_in_place
            reusable = (gradient_of(step.node.name),) if alone else ()
            lifetimes.append(Lifetime(gradient_of(names[k]), size, now, backward_time[names[k]], reusable))
    plan: Callable[[Sequence[Lifetime]], Plan] = share if sharing else separate
    start = {lifetime.key: lifetime.start for lifetime in lifetimes}
    return Layout(shapes, plan(lifetimes), forward, steps, frozenset(kept), start)
