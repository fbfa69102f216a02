"""How the network of a description differs from one that was trained from another description."""

import hashlib
import json

from acoustic.network.network import SPECIAL_LISTS, Network
from acoustic.nodes.base import Node

# Options that say how a value begins: of no effect on a network that has learned.
OF_THE_BEGINNING = {"init", "initValueScale", "value", "initFromFilePath"}
SHOWN = 3


def differences(described: Network, trained: Network) -> list[str]:
    """One line per node that is in one of them only, or of another kind, shape, operands or options; [] if alike.

    Initial values do not count; nor does what both leave to the training data.
    """
    found = []
    for name, node in described.nodes.items():
        if name not in trained.nodes:
            found.append(f"{name} ({node.type_name}) is new")
        else:
            found.extend(_of_node(described, node, trained, trained.nodes[name]))
    gone = [node for name, node in trained.nodes.items() if name not in described.nodes]
    found += [f"{node.name} ({node.type_name}) is gone" for node in gone]
    for special in SPECIAL_LISTS:
        before, now = (sorted(getattr(network, special)) for network in (trained, described))
        if before != now and not found:  # else it follows from what was said
            found.append(f"{special} are {', '.join(now) or 'none'}, were {', '.join(before) or 'none'}")
    return found


def _of_node(described: Network, node: Node, trained: Network, other: Node) -> list[str]:
    name = node.name
    if node.type_name != other.type_name:
        return [f"{name} is {node.type_name}, was {other.type_name}"]
    shapes = described.shapes.get(name), trained.shapes.get(name)
    if node.is_stored and shapes[0] != shapes[1]:
        return [f"{name} is {shapes[0]}, was {shapes[1]}"]
    operands, before = ([operand.name if operand else "-" for operand in one.operands] for one in (node, other))
    if operands != before:
        return [f"{name} is of {', '.join(operands)}, was of {', '.join(before)}"]
    before = _options(other)
    return [
        f"{name}: {option} is {json.dumps(value)}, was {json.dumps(before.get(option))}"
        for option, value in _options(node).items()
        if option not in ("rows", "cols") and json.dumps(value) != json.dumps(before.get(option))
    ]


def _options(node: Node) -> dict:
    """The options that count once the network has learned."""
    passed_over = OF_THE_BEGINNING if node.is_stored else ()
    return {option: value for option, value in node.settings.items() if option not in passed_over}


def fingerprint(network: Network) -> str:
    """Equal for descriptions between which there are no differences."""
    nodes = [
        [node.name, node.type_name, [operand.name if operand else "-" for operand in node.operands], _options(node)]
        for node in sorted(network.nodes.values(), key=lambda node: node.name)
    ]
    special = {name: sorted(getattr(network, name)) for name in SPECIAL_LISTS}
    return hashlib.sha256(json.dumps([nodes, special]).encode()).hexdigest()


def summary(found: list[str]) -> str:
    """The first few of them, in one line."""
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more
