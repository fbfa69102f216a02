"""Editing of a network: remove, rename, connect and copy nodes, and set their roles (CNTK book 4.2.2).

A network may be incomplete while it is edited: an operand whose node was removed is None, and shapes are the last
known ones. `Network.validate` finds this before the network is saved or used; `refresh_shapes` updates shapes as far as
they are known. Every error is a ModelError or ShapeError that names the node.
"""

import copy
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.network.network import SPECIAL_LISTS, Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from readers.errors import FormatError, ModelError, ShapeError
from readers.tables.text_matrix import read_text_matrix

MAX_NODES = 20_000  # copies of copies may double a network with each line of a script


def connected_operands(node: Node) -> list[Node]:
    """Return the operands that are not None."""
    return [operand for operand in node.operands if operand is not None]


def users(network: Network, node: Node) -> list[tuple[Node, int]]:
    """Return (user, operand number) for every place where `node` is an operand."""
    return [(user, k) for user in network.nodes.values() for k, operand in enumerate(user.operands) if operand is node]


def subtree(network: Network, root: str) -> list[str]:
    """Return the names of a node and all nodes below it, operands before users except in loops."""
    names: list[str] = []
    visited = {root}
    stack = [(network[root], iter(connected_operands(network[root])))]
    while stack:
        node, remaining = stack[-1]
        child = next((child for child in remaining if child.name not in visited), None)
        if child is None:
            stack.pop()
            names.append(node.name)
        else:
            visited.add(child.name)
            stack.append((child, iter(connected_operands(child))))
    return names


def refresh_shapes(network: Network) -> None:
    """Infer all shapes again; a node that is not connected, or whose operands do not fit, keeps its last shape."""
    try:
        order = forward_order(network.nodes.values(), children=connected_operands)
    except ModelError:  # a loop, which validate reports
        return
    for node in order:
        if None not in node.operands:
            try:
                network.shapes[node.name] = network.checked_shape(node)
            except ShapeError:
                continue


def clone(network: Network) -> Network:
    """Return a copy of a network that can be edited without changing the original.

    Values are shared until one of the networks sets a new value.

    Parameters
    ----------
    network : Network

    Returns
    -------
    Network
    """
    copied = copy.copy(network)
    copied.nodes = {name: _copy_node(node, name) for name, node in network.nodes.items()}
    copied.shapes = dict(network.shapes)
    for node in copied.nodes.values():
        node.operands = [None if operand is None else copied.nodes[operand.name] for operand in node.operands]
    for list_name, names in network.special().items():
        setattr(copied, list_name, list(names))
    copied.feature_records = dict(network.feature_records)
    copied.vocabularies = dict(network.vocabularies)
    return copied


def _copy_node(node: Node, name: str) -> Node:
    """Return a copy of a node under a new name."""
    copied = copy.copy(node)
    copied.name = name
    copied.settings = dict(node.settings)
    copied.operands = list(node.operands)
    return copied


def remove(network: Network, names: Iterable[str]) -> None:
    """Remove nodes: operands that used them become None, and the special lists lose them."""
    gone = [network[name] for name in dict.fromkeys(names)]
    marked = {id(node) for node in gone}
    network.nodes = {name: node for name, node in network.nodes.items() if id(node) not in marked}
    network.shapes = {name: shape for name, shape in network.shapes.items() if name in network.nodes}
    network.feature_records = {
        name: record for name, record in network.feature_records.items() if name in network.nodes
    }
    network.vocabularies = {
        name: vocabulary for name, vocabulary in network.vocabularies.items() if name in network.nodes
    }
    for node in network.nodes.values():
        operands: list[Any] = [None if id(operand) in marked else operand for operand in node.operands]
        node.operands = operands
    for listed in network.special().values():
        listed[:] = [name for name in listed if name in network.nodes]


def rename(network: Network, names: Mapping[str, str]) -> None:
    """Rename nodes, given as {old name: new name}, all at once; connections and roles stay.

    Raises ModelError, with nothing renamed, if a new name is taken or given twice.
    """
    for old, new in names.items():
        network[old]
        if new in network.nodes and new not in names:
            raise ModelError(f"{network[new].where}: exists already; expected another new name for {old!r}")
    _refuse_repeated(names.values())
    network.nodes = {names.get(name, name): node for name, node in network.nodes.items()}
    network.shapes = {names.get(name, name): shape for name, shape in network.shapes.items()}
    network.feature_records = {names.get(name, name): record for name, record in network.feature_records.items()}
    network.vocabularies = {names.get(name, name): vocabulary for name, vocabulary in network.vocabularies.items()}
    for name, node in network.nodes.items():
        node.name = name
    for listed in network.special().values():
        listed[:] = [names.get(name, name) for name in listed]


def _refuse_repeated(names: Iterable[str]) -> None:
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        raise ModelError(f"node {name!r}: is the new name of {count} nodes; expected one")


def set_input(network: Network, name: str, index: int, operand: str, origin: str = "") -> None:
    """Make node `operand` the operand number `index`, counted from 0, of node `name`.

    A variadic type accepts one more operand at the end. `origin` is the file and line of the request, for messages.
    Raises ModelError for a number that the node does not have.
    """
    node = network[name]
    child = network[operand]
    count = len(node.operands)
    if not 0 <= index < count + node.variadic:
        have = f"inputs 0 to {count - 1}" if count else "no inputs"
        raise ModelError(f"{node.where}: input {index}; expected one of its inputs ({have})")
    node.operands[index : index + 1] = [child]
    node.origin = origin or node.origin


def set_inputs(network: Network, name: str, operands: Sequence[str], origin: str = "") -> None:
    """Replace all operands of a node. Raises ModelError if their number does not fit."""
    node = network[name]
    children = [network[operand] for operand in operands]
    fits = len(children) >= len(node.operand_names) if node.variadic else len(children) == len(node.operands)
    if not fits:
        least = "at least " if node.variadic else ""
        raise ModelError(f"{node.where}: {len(children)} inputs; expected {least}{len(node.operand_names)}")
    node.operands = children
    node.origin = origin or node.origin


def copy_nodes(
    source: Network,
    target: Network,
    names: Sequence[tuple[str, str]],
    values_only: bool = False,
    shared: Iterable[str] = (),
) -> None:
    """Copy nodes within a network or from one to another (CNTK book 4.2.2.8).

    A node may be copied to several names. A node of the same type that exists in the target is overwritten in place.
    Operands that are copied too become the copies; any other operand stays as it was in an existing node and is None in
    a new one. A new node gets the roles of its original.

    Parameters
    ----------
    source, target : Network
    names : sequence of (str, str)
        Pairs of the name in the source and the name in the target.
    values_only : bool
        Copy values only; all nodes must then exist in the target.
    shared : iterable of str
        For a copy within one network: nodes that the copies use as operands as the originals do.

    Raises
    ------
    ModelError, ShapeError
        With nothing copied.
    """
    _refuse_repeated(new for _, new in names)
    if len(target.nodes) + len(names) > MAX_NODES:
        raise ModelError(f"{len(names)} copies among {len(target.nodes)} nodes; expected at most {MAX_NODES} in all")
    for old, new in names:
        if source is target and old == new:
            raise ModelError(f"{source[old].where}: would be copied onto itself; expected another name")
        _check_copy(source, source[old], target, new, values_only)
    if values_only:
        values = {new: _own_value(source, source[old], target) for old, new in names if source[old].is_stored}
        for new, value in values.items():
            target[new].value = value
        return
    # Read everything from the source before changing the target: they may be one network.
    originals = [(_copy_node(source[old], new), source.shapes[old]) for old, new in names]
    roles = [[role for role, listed in source.special().items() if old in listed] for old, _ in names]
    links = [[operand and operand.name for operand in copied_node.operands] for copied_node, _ in originals]
    old_operands = [list(target.nodes[new].operands) if new in target.nodes else None for _, new in names]
    for (copied_node, shape), operands, played in zip(originals, old_operands, roles):
        node = target.nodes.setdefault(copied_node.name, copied_node)
        node.settings = copied_node.settings
        node.origin = copied_node.origin
        if copied_node.is_stored:
            node.value = _own_value(source, copied_node, target)
        target.shapes[node.name] = shape
        for role in played if operands is None else ():
            set_role(target, node.name, role, True)
    for old, new in names:
        if old in source.feature_records:
            target.feature_records[new] = source.feature_records[old]
        if old in source.vocabularies:
            target.vocabularies[new] = source.vocabularies[old]
    # Only a single node can be copied to several names, so each link has one target.
    copied = {name: name for name in shared} | dict(names)
    for (_, new), operands, operand_names in zip(names, old_operands, links):
        existing: list[Any] = [*(operands or []), *[None] * len(operand_names)]
        target[new].operands = [
            target[copied[name]] if name in copied else existing[k] for k, name in enumerate(operand_names)
        ]


def _own_value(source: Network, node: Node, target: Network) -> Any:
    """Return a copy of a node's value in the precision and on the device of another network."""
    if node.value is None:
        return None
    return target.backend.asarray(np.array(source.backend.to_host(node.value), order="F"))


def _check_copy(source: Network, node: Node, target: Network, new: str, values_only: bool) -> None:
    existing = target.nodes.get(new)
    if existing is None:
        if values_only:
            raise ModelError(f"node {new!r}: not in the network; expected it there when only values are copied")
        return
    if existing.type_name != node.type_name and (not values_only or existing.is_stored or node.is_stored):
        raise ModelError(f"{existing.where}: copied over by {node.type_name} {node.name!r}; expected the same type")
    if values_only and node.is_stored and source.shapes[node.name] != target.shapes[new]:
        raise ShapeError(
            f"{existing.where}: {target.shapes[new]}, given the value of {node.name!r}, {source.shapes[node.name]}; "
            "expected equal shapes"
        )


def set_role(network: Network, name: str, list_name: str, member: bool) -> None:
    """Add a node to one of SPECIAL_LISTS or remove it. Raises ModelError if a feature or label is not an input."""
    assert list_name in SPECIAL_LISTS, list_name
    node = network[name]
    listed = getattr(network, list_name)
    is_data = list_name in ("features", "labels")
    if member and is_data and not node.is_input:
        raise ModelError(f"{node.where}: among the {list_name}; expected an input")
    if member and name not in listed:
        listed.append(name)
    elif not member and name in listed:
        listed.remove(name)
    if is_data and "tag" in node.settings:  # the tag puts the input on its list when the model is read
        tags = [part.removesuffix("s") for part in ("features", "labels") if name in getattr(network, part)]
        node.settings["tag"] = tags[-1] if tags else ""


def is_learnable(node: Node) -> bool:
    """Return whether training may change the node's value, now or after unfreezing it."""
    return node.is_stored and "needGradient" in node.settings


def set_learning(network: Network, name: str, option: str, value: bool | float) -> None:
    """Set needGradient (false freezes) or learningRateMultiplier of a learnable parameter. Raises ModelError."""
    node = network[name]
    if not is_learnable(node) or option not in node.settings:
        raise ModelError(f"{node.where}: has no {option}; expected a learnable parameter")
    declared = next(declared for declared in node.options if declared.name == option)
    node.settings[option] = declared.convert(value, node.where)


def read_value(network: Network, name: str, path: str | Path) -> None:
    """Read the value of a stored node from a text matrix, one row a line. Raises ModelError, ShapeError and OSError."""
    try:
        matrix = read_text_matrix(path)
    except FormatError as fault:
        raise ModelError(str(fault)) from fault
    if not np.isfinite(matrix).all():
        raise ModelError(f"{path}: a number that is not finite; expected a text matrix of finite numbers")
    network.set_value(name, matrix)
