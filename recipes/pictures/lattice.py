"""The best paths of a lattice as a graph from left to right, links shaded by their posterior probability."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from acoustic.export.layered_drawing import place_nodes
from acoustic.training.reporting.plots import new_figure, save_figure
from decoder.lattices.links import ScoredLinks, weigh
from decoder.lattices.posteriors import link_posteriors
from readers.errors import GraphError
from readers.results.lattice import NULL_WORD, Lattice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUM_LINKS = 100  # of a picture that can still be read
TOLERANCE = 1e-6  # between the scores of one path, summed in other orders
STEP, ROW, MARGIN = 1.25, 0.6, 0.6  # inches between layers, between the nodes of a layer, around the drawing
MIN_WIDTH, MIN_HEIGHT, MAX_SIDE = 6.0, 2.0, 270.0  # inches; many programs show at most 2**15 pixels in a row
DPI = 120


def draw_lattice(lattice: Lattice, path: str | Path, num_links: int = NUM_LINKS) -> None:
    """Write a PNG of a lattice: a circle per node with its time, an arrow per link with its word.

    Parameters
    ----------
    lattice : Lattice
        A lattice without a loop.
    path : path
        PNG file.
    num_links : int
        Number of links that are drawn at most, those of the best paths.

    Raises
    ------
    GraphError
        For a lattice with a loop, without a path or a link, with more than one start or end, or whose best path has too
        many links for a picture.
    """
    if not lattice.num_links:
        raise GraphError(f"{lattice.path}: no links; expected at least one to draw")
    scored = weigh(lattice)
    shares = np.exp(link_posteriors(scored).link)
    drawn = best_links(scored, num_links)
    nodes = set(lattice.start[drawn].tolist()) | set(lattice.end[drawn].tolist())
    names = [str(node) for node in lattice.order if node in nodes]  # each after those before it
    before: dict[str, list[str]] = {name: [] for name in names}
    for start, end in zip(lattice.start[drawn].tolist(), lattice.end[drawn].tolist()):
        before[str(end)].append(str(start))
    placement = place_nodes(before, dict.fromkeys(names, ROW / 2), ROW)
    places = {name: (layer * STEP, x) for name, (x, layer) in placement.places.items()}
    bends = _bends(lattice, drawn[np.argsort(shares[drawn], kind="stable")])
    points = np.array([*places.values(), *(_middle(lattice, link, bend, places) for link, bend in bends)])
    low, high = points.min(axis=0) - MARGIN, points.max(axis=0) + MARGIN
    missing = np.maximum((MIN_WIDTH, MIN_HEIGHT) - (high - low), 0.0)
    low, high = low - missing / 2, high + missing / 2
    width, height = high - low
    if width > MAX_SIDE:
        most = int(MAX_SIDE / STEP) - 1
        raise GraphError(f"{lattice.path}: a path of {placement.num_layers - 1} links; a picture has room for {most}")
    if height > MAX_SIDE:
        raise GraphError(f"{lattice.path}: no room for {len(drawn)} links in a picture; expected fewer")
    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.axis("off")
    _draw_links(axes, lattice, bends, shares, places)
    for name, (x, y) in places.items():
        time = lattice.time[int(name)]
        axes.plot(x, y, "o", markersize=8, color="white", markeredgecolor="#2f6f9f", zorder=3)
        if np.isfinite(time):
            axes.text(x, y - 0.13, f"{time:.2f}", ha="center", va="top", fontsize=6, color="#51606e")
    shown = (
        f"{lattice.num_links} links"
        if len(drawn) == lattice.num_links
        else f"the best {len(drawn)} of {lattice.num_links} links"
    )
    title = f"{lattice.utterance or lattice.path}: {shown}, more probable ones darker; times in s"
    axes.set_title(title, fontsize=9, parse_math=False)
    save_figure(figure, path, dpi=DPI)


def best_links(scored: ScoredLinks, num_links: int) -> np.ndarray:
    """Return the links of the best paths, in order of the lattice: whole paths, at most num_links links or one path."""
    lattice = scored.lattice
    forward, backward = lattice.best_scores(scored.total)
    through = forward[lattice.start] + scored.total + backward[lattice.end]
    if len(through) <= num_links:
        return np.arange(len(through))
    # The links of a path have scores that are at least as good as the path; TOLERANCE is for rounding.
    first_left_out = np.sort(through)[-num_links - 1]
    return np.flatnonzero(through > min(first_left_out + TOLERANCE, through.max() - TOLERANCE))


def _bends(lattice: Lattice, links: np.ndarray) -> list[tuple[int, float]]:
    """Return (link, bend) in the given order; links between the same two nodes are bent apart."""
    counts: dict[tuple[int, int], int] = {}
    bends = []
    for link in links.tolist():
        pair = int(lattice.start[link]), int(lattice.end[link])
        number = counts[pair] = counts.get(pair, -1) + 1
        bends.append((link, 0.22 * ((number + 1) // 2) * (1 if number % 2 else -1)))
    return bends


def _middle(lattice: Lattice, link: int, bend: float, places: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """Return the place of a link's word, in the middle of its arrow."""
    x0, y0 = places[str(lattice.start[link])]
    x1, y1 = places[str(lattice.end[link])]
    return (x0 + x1) / 2 + bend * (y1 - y0) / 2, (y0 + y1) / 2 - bend * (x1 - x0) / 2


def _draw_links(
    axes: "Axes",
    lattice: Lattice,
    bends: list[tuple[int, float]],
    shares: np.ndarray,
    places: dict[str, tuple[float, float]],
) -> None:
    """Draw links, given as (link, bend), in the given order."""
    for link, bend in bends:
        start, end = places[str(lattice.start[link])], places[str(lattice.end[link])]
        shade = str(round(0.75 * (1 - float(shares[link])), 3))  # matplotlib's grey: "0" is black
        style = {"arrowstyle": "-|>", "color": shade, "connectionstyle": f"arc3,rad={bend}", "shrinkA": 5, "shrinkB": 5}
        axes.annotate("", end, start, arrowprops=style)
        word = "" if lattice.word[link] == NULL_WORD else lattice.word[link]
        middle = _middle(lattice, link, bend, places)
        axes.text(*middle, word, ha="center", va="bottom", fontsize=8, color=shade, parse_math=False)
