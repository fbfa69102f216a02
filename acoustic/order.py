"""Orders over the graph: forward (Algorithm 2.2), reverse for gradients (Algorithm 2.4), who needs one (Algorithm 2.5).

All of them are iterative: a network unrolled over many steps is deeper than Python's recursion limit.
"""

from collections.abc import Callable, Iterable, Sequence

from acoustic.node import Node
from readers.errors import ModelError

Children = Callable[[Node], Sequence[Node]]


def computed_operands(node: Node) -> Sequence[Node]:
    """The operands that a pass must evaluate first: none for leaves, precomputed statistics included."""
    return () if node.is_leaf else node.operands


def forward_order(roots: Iterable[Node], children: Children = computed_operands) -> list[Node]:
    """Every node below the roots, operands before users, depth first.  Raises ModelError with the path of a cycle."""
    order: list[Node] = []
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
                loop = [*names[names.index(child.name) :], child.name]
                raise ModelError(f"node {child.name!r}: is its own operand: {' <- '.join(loop)}; expected no loop")
            elif child.name not in done:
                path[child.name] = None
                stack.append((child, iter(children(child))))
    return order


def need_gradient(order: Sequence[Node], children: Children = computed_operands) -> set[str]:
    """Names of the nodes whose gradient training needs: parameters that learn, and everything computed from them."""
    needed: set[str] = set()
    for node in order:
        if node.needs_gradient or any(child.name in needed for child in children(node)):
            needed.add(node.name)
    return needed


def gradient_order(criterion: Node, needed: set[str], children: Children = computed_operands) -> list[Node]:
    """The computed nodes below `criterion` that need a gradient, each after all its users.

    Raises ModelError for a node on the way that has none (ErrorPrediction, for one).
    """
    below = forward_order([criterion], children)
    users_left = {node.name: 0 for node in below}
    for node in below:
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
