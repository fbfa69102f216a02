"""Differences between the network of a description and a network that was trained from another description."""

import hashlib
import json
from typing import Any

from acoustic.network.network import SPECIAL_LISTS, Network
from acoustic.nodes.base import Node

# Options of the initial value, without effect on a network that has learned.
INITIALISATION_OPTIONS = {"init", "initValueScale", "value", "initFromFilePath"}
MAX_SHOWN = 3  # in a summary


def differences(described: Network, trained: Network) -> list[str]:
    """Return one line per difference, an empty list if there is none.

    Differences are nodes that only one of the networks has and other types, shapes, operands or options. Initial values
    and sizes that follow from the training data are ignored.
    """
    lines = []
    for name, node in described.nodes.items():
        if name not in trained.nodes:
            lines.append(f"{name} ({node.type_name}) is new")
        else:
            lines.extend(_node_differences(described, node, trained, trained.nodes[name]))
    gone = [node for name, node in trained.nodes.items() if name not in described.nodes]
    lines += [f"{node.name} ({node.type_name}) is gone" for node in gone]
    for special in SPECIAL_LISTS:
        before, now = (sorted(getattr(network, special)) for network in (trained, described))
        if before != now and not lines:  # otherwise it follows from the differences found
            lines.append(f"{special} are {', '.join(now) or 'none'}, were {', '.join(before) or 'none'}")
    return lines


def _node_differences(described: Network, node: Node, trained: Network, other: Node) -> list[str]:
    name = node.name
    if node.type_name != other.type_name:
        return [f"{name} is {node.type_name}, was {other.type_name}"]
    shapes = described.shapes.get(name), trained.shapes.get(name)
    if node.is_stored and shapes[0] != shapes[1]:
        return [f"{name} is {shapes[0]}, was {shapes[1]}"]
    operands, old = ([operand.name if operand else "-" for operand in version.operands] for version in (node, other))
    if operands != old:
        return [f"{name} has operands {', '.join(operands)}, had {', '.join(old)}"]
    trained_options = _options(other)
    return [
        f"{name}: {option} is {json.dumps(value)}, was {json.dumps(trained_options.get(option))}"
        for option, value in _options(node).items()
        if option not in ("rows", "cols") and json.dumps(value) != json.dumps(trained_options.get(option))
    ]


def _options(node: Node) -> dict[str, Any]:
    """Return the options that matter once the network has learned."""
    ignored = INITIALISATION_OPTIONS if node.is_stored else ()
    return {option: value for option, value in node.settings.items() if option not in ignored}


def fingerprint(network: Network) -> str:
    """Return a hash that is equal for descriptions without differences."""
    nodes = [
        [node.name, node.type_name, [operand.name if operand else "-" for operand in node.operands], _options(node)]
        for node in sorted(network.nodes.values(), key=lambda node: node.name)
    ]
    special = {name: sorted(getattr(network, name)) for name in SPECIAL_LISTS}
    return hashlib.sha256(json.dumps([nodes, special]).encode()).hexdigest()


def summary(found: list[str]) -> str:
    """Return the first few differences as one line."""
    more = f" and {len(found) - MAX_SHOWN} more" if len(found) > MAX_SHOWN else ""
    return "; ".join(found[:MAX_SHOWN]) + more
