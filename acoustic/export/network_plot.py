"""Drawing of a network with matplotlib, for machines without Graphviz; imported only when needed."""

import logging
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from acoustic.export.dot import Role, label_of, role_of
from acoustic.export.layered_drawing import Placement, place_nodes
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from readers.common.files import atomic_write
from readers.common.jobs.stop_signals import interrupts_held_back
from readers.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # no advice about its cache where no home can be written
FONT = 9.0  # points
LINE, PADDING = 0.165, 0.12  # inches: height of a line of text, padding around text
LAYER_GAP, GAP, MARGIN = 0.5, 0.25, 0.3  # inches between layers, between nodes of a layer, around the drawing
SHAPES = "rows×*: one column per frame"  # explains the shapes that the nodes show
PAGE = (11.7, 16.5)  # inches: large drawings are scaled down to a page of A3
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
    entries = [role.name for role in dict.fromkeys(roles.values())]
    legend = 0.19 * (len(entries) + 1) + 0.15
    right = max(x + widths[name] / 2 for name, (x, _) in placement.places.items())
    width = max(right + 2 * MARGIN, max(map(_text_width, [*entries, SHAPES])) + 1.2)
    height = placement.num_layers * (box + LAYER_GAP) - LAYER_GAP + 2 * MARGIN + legend
    # A page is smaller than the drawing, but has as many pixels: text stays readable where the page is magnified.
    page = min(1.0, PAGE[0] / min(width, height), PAGE[1] / max(width, height))
    dpi = min(120 / page, MAX_PIXELS / (page * max(width, height)))
    figure = Figure(figsize=(page * width, page * height), dpi=dpi)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(-MARGIN, width - MARGIN)
    axes.set_ylim(-MARGIN, height - MARGIN)
    axes.axis("off")
    _draw_edges(axes, network, placement, box, page)
    for name, lines in labels.items():
        x, layer = placement.places[name]
        _draw_node(axes, (x, layer * (box + LAYER_GAP)), (widths[name], box), roles[name], lines, page)
    _draw_legend(axes, list(dict.fromkeys(roles.values())), page)
    with interrupts_held_back(), atomic_write(path) as file:  # as in save_figure
        figure.savefig(file, format=kind)


def _above(node: Node) -> Sequence[Node]:
    """Return the operands that a node is placed above."""
    return () if node.delay else node.operands


def _text_width(text: str) -> float:
    """Return a width in inches that is slightly larger than that of most texts."""
    return 0.62 * FONT / 72 * len(text)


def _draw_node(
    axes: "Axes", place: tuple[float, float], size: tuple[float, float], role: Role, lines: list[str], page: float
) -> None:
    """Draw a node of some width and height; text and lines, measured in points, are scaled by `page`."""
    from matplotlib.patches import FancyBboxPatch

    x, y = place
    width, height = size
    style = "round,pad=0,rounding_size=0.08" if role.rounded else "square,pad=0"
    corner = (x - width / 2, y)
    axes.add_patch(
        FancyBboxPatch(
            corner, width, height, boxstyle=style, facecolor=role.face, edgecolor=role.edge, linewidth=1.1 * page
        )
    )
    top = y + height / 2 + LINE / 2
    bottom = y + height / 2 - LINE / 2
    axes.text(x, top, lines[0], ha="center", va="center", fontsize=FONT * page, fontweight="bold", parse_math=False)
    axes.text(
        x, bottom, lines[1], ha="center", va="center", fontsize=(FONT - 1) * page, color="#444444", parse_math=False
    )


def _draw_edges(axes: "Axes", network: Network, placement: Placement, box: float, page: float) -> None:
    """Draw curves that leave and arrive vertically, through the bends; `page` scales lines and arrows."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    step = box + LAYER_GAP
    for user in network.nodes.values():
        for operand in user.operands if user.delay else ():
            x0, low = placement.places[operand.name]
            x1, high = placement.places[user.name]
            axes.add_patch(
                FancyArrowPatch(
                    (x0, low * step + box / 2),
                    (x1, high * step + box / 2),
                    arrowstyle="-|>",
                    connectionstyle="arc3,rad=0.3",
                    linestyle="dashed",
                    mutation_scale=9 * page,
                    color="#aaaaaa",
                    linewidth=0.9 * page,
                    shrinkA=box / 2 * 72 * page,
                    shrinkB=box / 2 * 72 * page,
                    zorder=0,
                )
            )
        for operand in dict.fromkeys(_above(user)):
            x0, low = placement.places[operand.name]
            x1, high = placement.places[user.name]
            # A bend is as high as a node: straight through the row, curved between rows.
            points = [(x0, low * step + box)]
            for x, layer in placement.bends[operand.name, user.name]:
                points += [(x, layer * step), (x, layer * step + box)]
            points.append((x1, high * step))
            vertices = [points[0]]
            codes = [Curve.MOVETO]
            for (xa, ya), (xb, yb) in pairwise(points):
                middle = (ya + yb) / 2
                vertices += [(xa, middle), (xb, middle), (xb, yb)]
                codes += [Curve.CURVE4] * 3
            axes.add_patch(
                FancyArrowPatch(
                    path=Curve(vertices, codes),
                    arrowstyle="-|>",
                    mutation_scale=9 * page,
                    color="#777777",
                    linewidth=0.9 * page,
                    shrinkA=0,
                    shrinkB=0,
                    zorder=0,
                )
            )


def _draw_legend(axes: "Axes", roles: list[Role], page: float) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=role.face, edgecolor=role.edge, label=role.name) for role in roles]
    handles.append(Patch(facecolor="none", edgecolor="none", label=SHAPES))
    axes.legend(handles=handles, loc="upper left", fontsize=(FONT - 1) * page, frameon=False, borderaxespad=0.8)
