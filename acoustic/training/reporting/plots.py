"""Plots of training: criterion and error over the epochs. matplotlib is imported when the first one is drawn."""

from pathlib import Path
from typing import Any

from readers.common.files import atomic_write


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure, in inches, that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: str | Path, dpi: int = 110) -> None:
    """Write a figure as a PNG file."""
    with atomic_write(path) as file:
        figure.savefig(file, format="png", dpi=dpi)


def draw_history(rows: list[dict], path: str | Path) -> None:
    """Draw the rows of a history to a PNG file: one panel per node, with training and validation."""
    from matplotlib.ticker import MaxNLocator

    names = list(rows[-1]["training"])
    figure = new_figure(5.2 * len(names), 3.8)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names):
        for part, colour in (("training", "tab:blue"), ("validation", "tab:orange")):
            points = [(row["epoch"], row[part][name]) for row in rows if name in row.get(part, {})]
            if points:
                axes.plot(*zip(*points), marker="o", markersize=3, color=colour, label=part)
        axes.set_title(name)
        axes.set_xlabel("epoch")
        axes.set_ylabel("per frame")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend()
    save_figure(figure, path)
