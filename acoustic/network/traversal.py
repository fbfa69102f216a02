"""Orders over the graph: forward (Algorithm 2.2), backward (2.4), nodes that need a gradient (2.5), and loops (2.6).

The algorithms are those of the CNTK book. All of them are iterative, because a network unrolled over many steps is
deeper than Python's recursion limit.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from acoustic.nodes.base import Node
from acoustic.nodes.properties import SOCKET
from readers.errors import ModelError

Children = Callable[[Node], Sequence[Node]]


def computed_operands(node: Node) -> Sequence[Node]:
    """Return the operands that a pass evaluates before `node`: none for leaves and for sockets (PairNetwork)."""
    return () if node.is_leaf or node.has(SOCKET) else node.operands


def forward_order(roots: Iterable[Node], children: Children = computed_operands) -> list[Node]:
    """Return every node below the roots once, operands before users; in loops, delays come before their operands.

    Raises ModelError with the path of a cycle that contains no delay, or delays in both directions.
    """
    roots = list(roots)
    order: list[Node] = []
    if _depth_first(roots, children, order) is None:
        return order
    return [node for component in components(roots, children) for node in loop_order(component, children)]


def _depth_first(roots: Sequence[Node], children: Children, order: list[Node]) -> list[str] | None:
    """Fill `order` with the nodes, operands first; return the path of the first cycle, if there is one."""
    done: set[str] = set()
    for root in roots:
        path: dict[str, None] = {}  # the nodes being visited, in order
        stack = [(root, iter(children(root)))]
        if root.name in done:
            continue
        path[root.name] = None
        while stack:
            node, remaining = stack[-1]
            child = next(remaining, None)
            if child is None:
                stack.pop()
                del path[node.name]
                done.add(node.name)
                order.append(node)
            elif child.name in path:
                names = list(path)
                return [*names[names.index(child.name) :], child.name]
            elif child.name not in done:
                path[child.name] = None
                stack.append((child, iter(children(child))))
    return None


def components(roots: Iterable[Node], children: Children = computed_operands) -> list[list[Node]]:
    """Return the strongly connected components below the roots, operands before users (Tarjan's algorithm).

    A component of several nodes, or of one that is its own operand, is a loop.
    """
    ordered: list[list[Node]] = []
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    waiting: list[Node] = []  # Tarjan's stack
    on_stack: set[str] = set()

    def enter(node: Node) -> tuple[Node, Iterator[Node]]:
        index[node.name] = low[node.name] = len(index)
        waiting.append(node)
        on_stack.add(node.name)
        return node, iter(children(node))

    for root in roots:
        stack = [] if root.name in index else [enter(root)]
        while stack:
            node, remaining = stack[-1]
            child = next(remaining, None)
            if child is not None:
                if child.name not in index:
                    stack.append(enter(child))
                elif child.name in on_stack:
                    low[node.name] = min(low[node.name], index[child.name])
                continue
            stack.pop()
            if stack:
                above = stack[-1][0].name
                low[above] = min(low[above], low[node.name])
            if low[node.name] == index[node.name]:
                start = next(k for k in range(len(waiting) - 1, -1, -1) if waiting[k] is node)
                ordered.append(waiting[start:])
                on_stack.difference_update(member.name for member in waiting[start:])
                del waiting[start:]
    return ordered


def is_loop(component: Sequence[Node], children: Children = computed_operands) -> bool:
    """Return whether a strongly connected component is a loop."""
    return len(component) > 1 or any(child is component[0] for child in children(component[0]))


def loop_order(component: Sequence[Node], children: Children = computed_operands) -> list[Node]:
    """Return the order of one step of a loop; delays are leaves, because their values were computed in an earlier step.

    Raises ModelError for a loop without delays, and for one with delays in both directions.
    """
    if not is_loop(component, children):
        return list(component)
    members = {node.name for node in component}

    def inside(node: Node) -> list[Node]:
        return [] if node.delay else [child for child in children(node) if child.name in members]

    delays = [node for node in component if node.delay]
    computed = [node for node in component if not node.delay]
    order: list[Node] = []
    loop = _depth_first([*delays, *computed], inside, order)
    if loop is not None:
        raise ModelError(
            f"node {loop[0]!r}: is its own operand: {' <- '.join(loop)}; expected no loop, or one with a PastValue or "
            "FutureValue in it"
        )
    past, future = ([node.name for node in delays if (node.delay > 0) == sign] for sign in (True, False))
    if past and future:
        raise ModelError(
            f"node {past[0]!r}: in one loop with {future[0]!r} ({', '.join(sorted(members))}); expected PastValue or "
            "FutureValue in a loop, not both"
        )
    return order


def time_reach(root: Node) -> tuple[float, float]:
    """Return the number of earlier and of later steps of the inputs on which any value below a node may depend.

    It is infinite where a loop or a node goes on to the beginning or the end of a sequence.
    """
    reach_of_node: dict[str, tuple[float, float]] = {}
    for component in components([root], computed_operands):  # operands first
        operands = {child.name for node in component for child in computed_operands(node)}
        operand_reaches = [reach_of_node[name] for name in operands if name in reach_of_node]
        reach = [max((operand_reach[k] for operand_reach in operand_reaches), default=0.0) for k in (0, 1)]
        component_reach = [max(node.reach[k] for node in component) for k in (0, 1)]
        if is_loop(component, computed_operands):
            component_reach = [float("inf") if steps else 0.0 for steps in component_reach]
        reach_of_node.update(
            dict.fromkeys(
                (node.name for node in component), (reach[0] + component_reach[0], reach[1] + component_reach[1])
            )
        )
    return reach_of_node[root.name]


def need_gradient(order: Sequence[Node], children: Children = computed_operands) -> set[str]:
    """Return the names of nodes whose gradient training needs: learnable parameters and all nodes above them."""
    needed: set[str] = set()
    for node in order:
        if node.needs_gradient or any(child.name in needed for child in children(node)):
            needed.add(node.name)
    return needed


def gradient_order(criterion: Node, needed: Collection[str], children: Children = computed_operands) -> list[Node]:
    """Return the computed nodes below `criterion` that need a gradient, each after all its users.

    Raises ModelError for a node in between that has no gradient, such as ErrorPrediction.
    """
    dependencies = forward_order([criterion], children)
    users_left = {node.name: 0 for node in dependencies}
    for node in dependencies:
        if node.name not in needed:
            continue
        for k, child in enumerate(children(node)):
            users_left[child.name] += 1
            if child.name in needed and not node.has_gradient(k):
                raise ModelError(
                    f"{node.where}: has no gradient with respect to {child.name!r};"
                    f" expected a differentiable node below the criterion {criterion.name!r}"
                )
    order: list[Node] = []
    ready = [criterion] if criterion.name in needed else []
    while ready:
        node = ready.pop()
        order.append(node)
        for child in children(node):
            users_left[child.name] -= 1
            if users_left[child.name] == 0 and child.name in needed and not child.is_leaf:
                ready.append(child)
    return order
