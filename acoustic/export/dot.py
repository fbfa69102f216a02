"""A network in Graphviz's language, and the colours of nodes in all drawings (CNTK book 3.6).

Data flows upwards: inputs and parameters are below the nodes computed from them.
"""

from dataclasses import dataclass

from acoustic.network.network import Network
from acoustic.nodes.base import Node


@dataclass(frozen=True)
class Role:
    """The role of a node and its appearance in a drawing: colours of face and edge as #rrggbb."""

    name: str
    face: str
    edge: str
    rounded: bool = True


INPUT = Role("input", "#cfe3f7", "#2166ac")
LABEL = Role("label", "#dccdec", "#6a3d9a")
PARAMETER = Role("parameter", "#fde3b4", "#b8740a", rounded=False)
FROZEN = Role("frozen parameter or constant", "#eeeeee", "#777777", rounded=False)
STATISTIC = Role("statistic", "#e8dcc5", "#7a5c2e", rounded=False)
CRITERION = Role("training criterion", "#f7c6c0", "#b2182b")
EVALUATION = Role("evaluation", "#fbe0ea", "#c51b7d")
OUTPUT = Role("output", "#cdeac6", "#1b7837")
COMPUTED = Role("computed", "#ffffff", "#555555")

DELAYED = " [style=dashed, constraint=false]"  # of edges to delays, which may close a loop


def role_of(network: Network, node: Node) -> Role:
    """Return the role of a node; criterion, evaluation, output and label take precedence over the type of the node."""
    listed = {"criteria": CRITERION, "evaluations": EVALUATION, "outputs": OUTPUT, "labels": LABEL}
    for list_name, role in listed.items():
        if node.name in getattr(network, list_name):
            return role
    if node.is_input:
        return INPUT
    if node.is_precomputed:
        return STATISTIC
    if node.is_stored:
        return PARAMETER if node.needs_gradient else FROZEN
    return COMPUTED


def label_of(network: Network, node: Node) -> list[str]:
    """Return the lines written in a node: its name, then type and shape."""
    shape = str(network.shapes[node.name]).replace("x", "×")
    return [node.name, f"{node.type_name}  {shape}"]


def dot_text(network: Network) -> str:
    """Return the graph in Graphviz's language, nodes in order of creation, an arrow from each operand to its user."""
    lines = [
        "strict digraph {",
        'rankdir=BT; size="11.7,16.5";',  # inches: larger drawings are scaled down to a page of A3
        'label="rows×*: one column per frame"; labelloc=t; fontname="Helvetica"; fontsize=11;',
        'node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=11, margin="0.12,0.05"];',
        'edge [color="#666666", arrowsize=0.7];',
    ]
    for node in network.nodes.values():
        role = role_of(network, node)
        style = "filled,rounded" if role.rounded else "filled"
        label = "\\n".join(map(_escaped, label_of(network, node)))
        lines.append(
            f'"{_escaped(node.name)}" [label="{label}", style="{style}", fillcolor="{role.face}", color="{role.edge}"];'
        )
    for node in network.nodes.values():
        for operand in node.operands:
            if operand is not None:
                lines.append(f'"{_escaped(operand.name)}" -> "{_escaped(node.name)}"{DELAYED if node.delay else ""};')
    return "\n".join([*lines, "}", ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
