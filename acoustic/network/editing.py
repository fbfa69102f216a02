"""Changing a network that stands: remove, rename, connect, copy nodes, and say which part they play (book 4.2.2).

While a network is edited it may be unsound: an operand whose node is gone is None, and shapes are the last known ones.
`Network.validate` finds all that before the network is saved or used; `refresh_shapes` brings the shapes up to date as
far as they can be known.  Every fault is a ModelError or ShapeError that names the node.
"""

import copy
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.network.network import SPECIAL_LISTS, Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from readers.errors import ModelError, ShapeError

MAX_NODES = 20_000  # far beyond use: copies of copies double a network with each line of a script


def connected_operands(node: Node) -> list[Node]:
    """The operands that are set."""
    return [operand for operand in node.operands if operand is not None]


def users(network: Network, node: Node) -> list[tuple[Node, int]]:
    """(user, operand index) of every place where a node is an operand."""
    return [(user, k) for user in network.nodes.values() for k, operand in enumerate(user.operands) if operand is node]


def subtree(network: Network, root: str) -> list[str]:
    """Names of a node and of all nodes below it, operands before users as far as there is no loop."""
    names: list[str] = []
    seen = {root}
    stack = [(network[root], iter(connected_operands(network[root])))]
    while stack:
        node, remaining = stack[-1]
        child = next((child for child in remaining if child.name not in seen), None)
        if child is None:
            stack.pop()
            names.append(node.name)
        else:
            seen.add(child.name)
            stack.append((child, iter(connected_operands(child))))
    return names


def refresh_shapes(network: Network) -> None:
    """Infer every shape again; a node that is not connected, or whose operands do not fit, keeps its last one."""
    try:
        order = forward_order(network.nodes.values(), children=connected_operands)
    except ModelError:  # a loop: validate will name it
        return
    for node in order:
        if None not in node.operands:
            try:
                network.shapes[node.name] = network.checked_shape(node)
            except ShapeError:
                continue


def clone(network: Network) -> Network:
    """The network as it stands, to be changed apart from the first; values are shared until one is set anew."""
    twin = copy.copy(network)
    twin.nodes, twin.shapes = {name: _twin(node, name) for name, node in network.nodes.items()}, dict(network.shapes)
    for node in twin.nodes.values():
        node.operands = [None if operand is None else twin.nodes[operand.name] for operand in node.operands]
    for list_name, names in network.special().items():
        setattr(twin, list_name, list(names))
    return twin


def _twin(node: Node, name: str) -> Node:
    twin = copy.copy(node)
    twin.name, twin.settings, twin.operands = name, dict(node.settings), list(node.operands)
    return twin


def remove(network: Network, names: Iterable[str]) -> None:
    """Remove nodes; an operand that was one of them becomes None, the special lists lose them."""
    gone = [network[name] for name in dict.fromkeys(names)]
    marked = {id(node) for node in gone}
    network.nodes = {name: node for name, node in network.nodes.items() if id(node) not in marked}
    network.shapes = {name: shape for name, shape in network.shapes.items() if name in network.nodes}
    for node in network.nodes.values():
        node.operands = [None if id(operand) in marked else operand for operand in node.operands]
    for listed in network.special().values():
        listed[:] = [name for name in listed if name in network.nodes]


def rename(network: Network, names: Mapping[str, str]) -> None:
    """Give nodes (old name: new name) other names, all at once; connections and special parts stay.

    Raises ModelError, with nothing renamed, when a new name is taken or given twice.
    """
    for old, new in names.items():
        network[old]
        if new in network.nodes and new not in names:
            raise ModelError(f"{network[new].where}: is there already; expected another new name for {old!r}")
    _refuse_repeated(names.values())
    network.nodes = {names.get(name, name): node for name, node in network.nodes.items()}
    network.shapes = {names.get(name, name): shape for name, shape in network.shapes.items()}
    for name, node in network.nodes.items():
        node.name = name
    for listed in network.special().values():
        listed[:] = [names.get(name, name) for name in listed]


def _refuse_repeated(names: Iterable[str]) -> None:
    name, count = next(iter(Counter(names).most_common(1)), ("", 0))
    if count > 1:
        raise ModelError(f"node {name!r}: is the new name of {count} nodes; expected one")


def set_input(network: Network, name: str, index: int, operand: str, origin: str = "") -> None:
    """Make a node the operand `index`, counted from 0, of another; origin: file and line that asked for it.

    A type with any number of operands takes one more at the end.  Raises ModelError for an index that it has not.
    """
    node, child = network[name], network[operand]
    count = len(node.operands)
    if not 0 <= index < count + node.variadic:
        have = f"inputs 0 to {count - 1}" if count else "no inputs"
        raise ModelError(f"{node.where}: input {index}; expected one it has ({have})")
    node.operands[index : index + 1] = [child]
    node.origin = origin or node.origin


def set_inputs(network: Network, name: str, operands: Sequence[str], origin: str = "") -> None:
    """Give a node all of its operands anew.  Raises ModelError when their number does not fit."""
    node, children = network[name], [network[operand] for operand in operands]
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
    """Copy nodes (name in source, name in target); the two may be one network, and a node may go to several names.

    Everything of a node is copied, in place where the target's is there already and is of the same type.  An operand
    that is copied too becomes its copy; any other stays what it was in a node that was there, and is None in a new one.
    A new node plays the part that its original plays.  values_only: only values, and all nodes must be there.
    shared: nodes of a network copied within itself that the copies are to use as the originals do.
    Raises ModelError and ShapeError with nothing copied.  [book 4.2.2.8]
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
    # All of the source is looked at before anything changes: the two may be one network.
    originals = [(_twin(source[old], new), source.shapes[old]) for old, new in names]
    parts = [[part for part, listed in source.special().items() if old in listed] for old, _ in names]
    links = [[operand and operand.name for operand in twin.operands] for twin, _ in originals]
    kept = [list(target.nodes[new].operands) if new in target.nodes else None for _, new in names]
    for (twin, shape), operands, played in zip(originals, kept, parts):
        node = target.nodes.setdefault(twin.name, twin)
        node.settings, node.origin = twin.settings, twin.origin
        if twin.is_stored:
            node.value = _own_value(source, twin, target)
        target.shapes[node.name] = shape
        for part in played if operands is None else ():
            set_part(target, node.name, part, True)
    # A node that goes to several names goes alone, so that no link asks to which.
    copied = {name: name for name in shared} | dict(names)
    for (_, new), operands, below in zip(names, kept, links):
        others = (operands or []) + [None] * len(below)
        target[new].operands = [target[copied[name]] if name in copied else others[k] for k, name in enumerate(below)]


def _own_value(source: Network, node: Node, target: Network) -> Any:
    """A copy of a node's value for another network, in its precision and on its device."""
    if node.value is None:
        return None
    return target.backend.asarray(np.array(source.backend.to_host(node.value), order="F"))


def _check_copy(source: Network, node: Node, target: Network, new: str, values_only: bool) -> None:
    there = target.nodes.get(new)
    if there is None:
        if values_only:
            raise ModelError(f"node {new!r}: not in the network; expected it there when only values are copied")
        return
    if there.type_name != node.type_name and (not values_only or there.is_stored or node.is_stored):
        raise ModelError(f"{there.where}: copied over by {node.type_name} {node.name!r}; expected the same type")
    if values_only and node.is_stored and source.shapes[node.name] != target.shapes[new]:
        raise ShapeError(
            f"{there.where}: {target.shapes[new]}, given the value of {node.name!r}, {source.shapes[node.name]}; "
            "expected equal shapes"
        )


def set_part(network: Network, name: str, list_name: str, member: bool) -> None:
    """Put a node on one of SPECIAL_LISTS, or take it off.  Raises ModelError for data that is no input."""
    assert list_name in SPECIAL_LISTS, list_name
    node, listed = network[name], getattr(network, list_name)
    is_data = list_name in ("features", "labels")
    if member and is_data and not node.is_input:
        raise ModelError(f"{node.where}: among the {list_name}; expected an input")
    if member and name not in listed:
        listed.append(name)
    elif not member and name in listed:
        listed.remove(name)
    if is_data and "tag" in node.settings:  # what it says is where an input stands when the model is read
        tags = [part.removesuffix("s") for part in ("features", "labels") if name in getattr(network, part)]
        node.settings["tag"] = tags[-1] if tags else ""


def learnable_below(network: Network, root: str) -> list[str]:
    """Names of the learnable parameters among a node and all nodes below it."""
    return [name for name in subtree(network, root) if is_learnable(network[name])]


def is_learnable(node: Node) -> bool:
    """Whether training may change the node's value, or could if it were not frozen."""
    return node.is_stored and "needGradient" in node.settings


def set_learning(network: Network, name: str, option: str, value: bool | float) -> None:
    """Set needGradient (false: frozen) or learningRateMultiplier of a learnable parameter.  Raises ModelError."""
    node = network[name]
    if not is_learnable(node) or option not in node.settings:
        raise ModelError(f"{node.where}: has no {option}; expected a learnable parameter")
    known = next(known for known in node.options if known.name == option)
    node.settings[option] = known.convert(value, node.where)


def read_value(network: Network, name: str, path: str | Path) -> None:
    """Give a stored node the value of a text matrix, one row a line.  Raises ModelError, ShapeError and OSError."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of a file without data: its shape tells
            matrix = np.loadtxt(path, ndmin=2, dtype=np.float64)
    except ValueError as error:
        raise ModelError(f"{path}: {error}; expected a text matrix, one row a line") from error
    if not np.isfinite(matrix).all():
        raise ModelError(f"{path}: a number that is not finite; expected a text matrix of numbers")
    network.set_value(name, matrix)
