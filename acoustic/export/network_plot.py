"""Drawing of a network with matplotlib, for machines without Graphviz; imported only when needed."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from acoustic.export.dot import Role, label_of, role_of
from acoustic.export.layered_drawing import Placement, place_nodes
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from readers.common.files import atomic_write
from readers.errors import ConfigError

FONT = 9.0  # points
LINE, PADDING = 0.165, 0.12  # inches: height of a line of text, padding around text
LAYER_GAP, GAP, MARGIN = 0.5, 0.25, 0.3  # inches between layers, between nodes of a layer, around the drawing
MAX_PIXELS = 30_000  # along one side, a limit of picture formats and viewers


def picture_format(path: str | Path) -> str:
    """Return the format that a file's extension names. Raises ConfigError for one that matplotlib does not know."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    formats = FigureCanvasAgg.get_supported_filetypes()
    kind = Path(path).suffix[1:].lower()
    if kind not in formats:
        raise ConfigError(f"{path}: extension {kind or 'none'}; expected one of {', '.join(sorted(formats))}")
    return kind


def draw_network(network: Network, path: str | Path) -> None:
    """Draw a network to a file, nodes in layers, operands below their users; the extension determines the format.

    Delays are placed like leaves, because they may be below their operand; a dashed line connects them. Raises
    ConfigError for a format that matplotlib does not know.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    kind = picture_format(path)
    labels = {name: label_of(network, node) for name, node in network.nodes.items()}
    widths = {name: 2 * PADDING + max(map(_text_width, lines)) for name, lines in labels.items()}
    order = forward_order(network.nodes.values(), children=_above)
    placement = place_nodes({node.name: [operand.name for operand in _above(node)] for node in order}, widths, GAP)
    roles = {name: role_of(network, node) for name, node in network.nodes.items()}

    box = 2 * LINE + 2 * PADDING
    legend = 0.19 * len(set(roles.values())) + 0.15
    right = max(x + widths[name] / 2 for name, (x, _) in placement.places.items())
    width = max(right + 2 * MARGIN, 3.0)
    height = placement.num_layers * (box + LAYER_GAP) - LAYER_GAP + 2 * MARGIN + legend
    figure = Figure(figsize=(width, height), dpi=min(120, MAX_PIXELS / max(width, height)))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-MARGIN, width - MARGIN)
    axes.set_ylim(-MARGIN, height - MARGIN)
    axes.axis("off")
    _draw_edges(axes, network, placement, box)
    for name, lines in labels.items():
        x, layer = placement.places[name]
        _draw_node(axes, (x, layer * (box + LAYER_GAP)), widths[name], box, roles[name], lines)
    _draw_legend(axes, list(dict.fromkeys(roles.values())))
    with atomic_write(path) as file:
        figure.savefig(file, format=kind)


def _above(node: Node) -> Sequence[Node]:
    """Return the operands that a node is placed above."""
    return () if node.delay else node.operands


def _text_width(text: str) -> float:
    """Return a width in inches that is slightly larger than that of most texts."""
    return 0.62 * FONT / 72 * len(text)


def _draw_node(axes, place: tuple[float, float], width: float, height: float, role: Role, lines: list[str]) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = place
    style = "round,pad=0,rounding_size=0.08" if role.rounded else "square,pad=0"
    corner = (x - width / 2, y)
    axes.add_patch(
        FancyBboxPatch(corner, width, height, boxstyle=style, facecolor=role.face, edgecolor=role.edge, linewidth=1.1)
    )
    top, bottom = y + height / 2 + LINE / 2, y + height / 2 - LINE / 2
    axes.text(x, top, lines[0], ha="center", va="center", fontsize=FONT, fontweight="bold", parse_math=False)
    axes.text(x, bottom, lines[1], ha="center", va="center", fontsize=FONT - 1, color="#444444", parse_math=False)


def _draw_edges(axes, network: Network, placement: Placement, box: float) -> None:
    """Draw curves that leave and arrive vertically, through the bends."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    step = box + LAYER_GAP
    for user in network.nodes.values():
        for operand in user.operands if user.delay else ():
            (x0, low), (x1, high) = placement.places[operand.name], placement.places[user.name]
            axes.add_patch(
                FancyArrowPatch(
                    (x0, low * step + box / 2),
                    (x1, high * step + box / 2),
                    arrowstyle="-|>",
                    connectionstyle="arc3,rad=0.3",
                    linestyle="dashed",
                    mutation_scale=9,
                    color="#aaaaaa",
                    linewidth=0.9,
                    shrinkA=box / 2 * 72,
                    shrinkB=box / 2 * 72,
                    zorder=0,
                )
            )
        for operand in dict.fromkeys(_above(user)):
            (x0, low), (x1, high) = placement.places[operand.name], placement.places[user.name]
            # A bend is as high as a node: straight through the row, curved between rows.
            points = [(x0, low * step + box)]
            for x, layer in placement.bends[operand.name, user.name]:
                points += [(x, layer * step), (x, layer * step + box)]
            points.append((x1, high * step))
            vertices, codes = [points[0]], [Curve.MOVETO]
            for (xa, ya), (xb, yb) in pairwise(points):
                middle = (ya + yb) / 2
                vertices += [(xa, middle), (xb, middle), (xb, yb)]
                codes += [Curve.CURVE4] * 3
            axes.add_patch(
                FancyArrowPatch(
                    path=Curve(vertices, codes),
                    arrowstyle="-|>",
                    mutation_scale=9,
                    color="#777777",
                    linewidth=0.9,
                    shrinkA=0,
                    shrinkB=0,
                    zorder=0,
                )
            )


def _draw_legend(axes, roles: list[Role]) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=role.face, edgecolor=role.edge, label=role.name) for role in roles]
    axes.legend(handles=handles, loc="upper left", fontsize=FONT - 1, frameon=False, borderaxespad=0.8)
