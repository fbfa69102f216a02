"""The graph that an engine executes, from the nodes of a network: chains fused, loops made into single nodes."""

from collections.abc import Sequence

from acoustic.fusion import fuse
from acoustic.gaps import Ungapped
from acoustic.layout import Graph
from acoustic.loops import Loop, LoopOutput
from acoustic.network import Network
from acoustic.node import Node, Shape
from acoustic.order import components, computed_operands, forward_order, is_loop, loop_order, need_gradient
from acoustic.sockets import Socket


def build_graph(network: Network, names: Sequence[str], fusion: bool) -> Graph:
    """The graph of everything below the roots `names`.  Raises ModelError for a loop that cannot be."""
    roots, shapes = [network[name] for name in names], network.shapes
    order = forward_order(roots)
    replaced = fuse(order, shapes, set(names)) if fusion else {}
    replaced |= _ungapped(order, shapes)
    replaced |= _loop_outputs(roots, order, shapes, fusion)
    replaced |= {node.name: Socket(node, shapes[node.name]) for node in order if node.is_socket}

    def operands(node: Node) -> tuple[Node, ...]:
        return tuple(replaced.get(operand.name, operand) for operand in computed_operands(node))

    order = forward_order([replaced.get(root.name, root) for root in roots], operands)
    children = {node.name: operands(node) for node in order}
    from_input: set[str] = set()
    for node in order:
        given = node.is_input or node.is_socket
        if given or isinstance(node, Loop) or any(child.name in from_input for child in children[node.name]):
            from_input.add(node.name)
    needed = need_gradient(order, lambda node: children[node.name])
    known = {node.name: Shape(1, None) if isinstance(node, Loop) else shapes[node.name] for node in order}
    return Graph(tuple(order), children, known, frozenset(from_input), frozenset(needed))


def _ungapped(order: Sequence[Node], shapes: dict[str, Shape]) -> dict[str, Node]:
    """By name, in place of each sum over frames one that leaves columns without a frame out."""
    replaced: dict[str, Node] = {}
    for node in order:
        framed = [shapes[operand.name].has_frames for operand in computed_operands(node)]
        if node.sums_frames and any(framed) and not node.skips_gaps:
            replaced[node.name] = Ungapped(node, framed)
    return replaced


def _loop_outputs(
    roots: Sequence[Node], order: Sequence[Node], shapes: dict[str, Shape], fusion: bool
) -> dict[str, Node]:
    """By name, in place of each node of a loop what outside stands for it."""
    replaced: dict[str, Node] = {}
    if any(node.delay for node in order):
        for component in components(roots):
            if is_loop(component):
                loop = Loop(loop_order(component), shapes, fusion)
                replaced |= {node.name: LoopOutput(loop, node.name) for node in component}
    return replaced


def indicator_inputs(graph: Graph) -> frozenset[str]:
    """Names of the inputs that may be given as Indicators: every user takes them as such."""
    inputs = {node.name for node in graph.order if node.is_input}
    for node in graph.order:
        for k, operand in enumerate(graph.operands[node.name]):
            if k not in node.takes_indicators:
                inputs.discard(operand.name)
    return frozenset(inputs)


def mixes_gaps(graph: Graph, node: Node) -> bool:
    """Whether a node would let columns without a frame have a part in the values of others."""
    if node.name not in graph.from_input or node.is_leaf or node.delay or node.skips_gaps or isinstance(node, Loop):
        return False
    shapes = graph.operand_shapes(node)
    return any(shape.has_frames for shape in shapes) and (node.keeps_statistics or not node.splits_frames(*shapes))
