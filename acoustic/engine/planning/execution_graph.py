"""The graph that an engine executes: the nodes of a network with chains fused and loops joined into single nodes."""

from collections.abc import Sequence

from acoustic.engine.planning.fusion import fuse
from acoustic.engine.planning.gap_masking import GapMasked
from acoustic.engine.planning.node_table import traits
from acoustic.engine.planning.pair_links import ExternalInput
from acoustic.engine.planning.pass_plan import Graph
from acoustic.kernels.backend import Backend
from acoustic.kernels.shape import Shape
from acoustic.network.network import Network
from acoustic.network.traversal import components, computed_operands, forward_order, is_loop, loop_order, need_gradient
from acoustic.nodes.base import Node
from acoustic.nodes.properties import PRODUCT, SOCKET, SUM
from acoustic.recurrence.loop_node import Loop, LoopOutput
from acoustic.runtime.engine_options import EngineOptions

# Rows of an input that may hold word indicators: its product touches few columns of a parameter, and stays a node.
WORDS_FROM = 2048


def build_graph(network: Network, names: Sequence[str], options: EngineOptions) -> Graph:
    """The graph of all nodes below the roots `names`. Raises ModelError for a loop that cannot be computed."""
    roots, shapes = [network[name] for name in names], network.shapes
    order = forward_order(roots)
    replaced = fuse(order, shapes, set(names)) if options.fusion else {}
    masked = {node.name: gap_masked(node, [shapes[child.name] for child in computed_operands(node)]) for node in order}
    replaced |= {node.name: masked[node.name] for node in order if masked[node.name] is not node}
    replaced |= _loop_outputs(roots, order, shapes, network.backend, options)
    replaced |= {node.name: ExternalInput(node, shapes[node.name]) for node in order if node.has(SOCKET)}

    def operands(node: Node) -> tuple[Node, ...]:
        return tuple(replaced.get(operand.name, operand) for operand in computed_operands(node))

    order = forward_order([replaced.get(root.name, root) for root in roots], operands)
    children = {node.name: operands(node) for node in order}
    from_input: set[str] = set()
    for node in order:
        is_external = node.is_input or node.has(SOCKET)
        if is_external or isinstance(node, Loop) or any(child.name in from_input for child in children[node.name]):
            from_input.add(node.name)
    needed = need_gradient(order, lambda node: children[node.name])
    graph_shapes = {node.name: Shape(1, None) if isinstance(node, Loop) else shapes[node.name] for node in order}
    return Graph(tuple(order), children, graph_shapes, frozenset(from_input), frozenset(needed))


def gap_masked(node: Node, shapes: Sequence[Shape]) -> Node:
    """The node or, for a sum over frames, one that ignores gaps; shapes: of the operands."""
    framed = [shape.has_frames for shape in shapes]
    return GapMasked(node, framed) if node.sums_frames and any(framed) and not traits(node).skips_gaps else node


def _loop_outputs(
    roots: Sequence[Node], order: Sequence[Node], shapes: dict[str, Shape], backend: Backend, options: EngineOptions
) -> dict[str, Node]:
    """By name, for each node of a loop the node that replaces it outside."""
    replaced: dict[str, Node] = {}
    if not any(node.delay for node in order):
        return replaced
    users: dict[str, set[str]] = {node.name: set() for node in order}
    for node in order:
        for operand in computed_operands(node):
            users[operand.name].add(node.name)
    root_names = {root.name for root in roots}
    for component in components(roots):
        if not is_loop(component):
            continue
        members, member_names = loop_order(component), {node.name for node in component}
        visible = {name for name in member_names if name in root_names or users[name] - member_names}
        loop = None
        if options.compiled_loops:
            taken_in = _made_for(member_names, order, users, root_names, shapes)
            # Delays first, then nodes that do not need them, which may be computed for all steps at once.
            count = sum(node.delay != 0 for node in members)
            loop = Loop([*members[:count], *taken_in, *members[count:]], shapes, visible, backend, options)
        if loop is None or loop.planned is None:
            loop = Loop(members, shapes, visible)
        replaced |= {node.name: LoopOutput(loop, node.name) for node in component}
    return replaced


def _made_for(
    member_names: set[str],
    order: Sequence[Node],
    users: dict[str, set[str]],
    root_names: set[str],
    shapes: dict[str, Shape],
) -> list[Node]:
    """Products of operands outside a loop, and sums of them, that only this loop needs; operands come first.

    The compiled form of a loop computes them in the rows where it adds to them.
    """
    candidates: dict[str, Node] = {}
    for node in order:
        adds_up = node.has(SUM) and any(operand.name in candidates for operand in node.operands)
        if node.name not in member_names and (adds_up or _is_product_from_outside(node, shapes)):
            candidates[node.name] = node
    taken_in: set[str] = set()
    for name in reversed(candidates):  # users come first
        if name not in root_names and users[name] <= member_names | taken_in:
            taken_in.add(name)
    return [node for name, node in candidates.items() if name in taken_in]


def _is_product_from_outside(node: Node, shapes: dict[str, Shape]) -> bool:
    if not node.has(PRODUCT):
        return False
    parameter, operand = node.operands
    words = operand.is_input and shapes[operand.name].rows >= WORDS_FROM
    return not shapes[parameter.name].has_frames and shapes[operand.name].cols is None and not words


def indicator_inputs(graph: Graph) -> frozenset[str]:
    """Names of the inputs that may be given as Indicators, because every user accepts them."""
    inputs = {node.name for node in graph.order if node.is_input}
    for node in graph.order:
        for k, operand in enumerate(graph.operands[node.name]):
            if k not in traits(node).takes_indicators:
                inputs.discard(operand.name)
    return frozenset(inputs)


def mixes_gaps(graph: Graph, node: Node) -> bool:
    """Whether the values of a node's frames would depend on gaps."""
    if node.name not in graph.from_input or node.is_leaf or node.delay or isinstance(node, Loop):
        return False
    if traits(node).skips_gaps:
        return False
    shapes = graph.operand_shapes(node)
    return any(shape.has_frames for shape in shapes) and (node.keeps_statistics or not node.splits_frames(*shapes))
