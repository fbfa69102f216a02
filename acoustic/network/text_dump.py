"""Networks as readable text: a line per node, and the matrices of stored nodes (CNTK book 4.2.1.2 and 3.5.8)."""

from collections.abc import Iterable, Iterator

from acoustic.network.network import Network
from acoustic.nodes.base import Node

RULE = "#" * 68


def dump_lines(network: Network, names: Iterable[str], values: bool = True, metadata: bool = True) -> Iterator[str]:
    """Yield the lines that describe some nodes, with line ends, sorted by name without regard to case.

    With `metadata`, a node has a line ``name=Type(operands)``, for a parameter also its shape and learning options, for
    a statistic whether it is computed. With `values`, a line per row of its stored matrix follows, each value as ``
    %.9g``, and a rule.
    """
    for name in sorted(names, key=lambda name: (name.lower(), name)):
        node = network[name]
        has_value = values and node.is_stored and node.value is not None
        if not (metadata or has_value):
            continue
        yield f"\n{_description(network, node) if metadata else name}\n"
        if has_value:
            yield from _matrix_lines(network, node)


def _description(network: Network, node: Node) -> str:
    operands = ",".join(operand.name if operand else "?" for operand in node.operands)
    text = f"{node.name}={node.type_name}({operands})"
    shape = network.shapes[node.name]
    if node.is_precomputed:
        return f"{text}  [{shape.rows}]  HasComputed={str(node.value is not None).lower()}"
    if node.is_stored:
        rate = node.settings.get("learningRateMultiplier", 1 if node.needs_gradient else 0)
        learns = str(node.needs_gradient).lower()
        return f"{text}  [{shape.rows},{shape.cols}]  learningRateMultiplier={rate:g}  NeedsGradient={learns}"
    return f"{text}  [{shape.rows}]" if node.is_input else text


def _matrix_lines(network: Network, node: Node) -> Iterator[str]:
    matrix = network.backend.to_host(node.value)
    line = " %.9g" * matrix.shape[1] + "\n"
    for row in matrix:
        yield line % tuple(row.tolist())
    yield RULE + "\n"
