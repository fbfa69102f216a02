"""Plots of training: criterion and error over the epochs. matplotlib is imported when the first one is drawn."""

import logging
import re
import warnings
from pathlib import Path
from typing import Any

from readers.common.files import atomic_write
from readers.common.jobs.stop_signals import interrupts_held_back
from readers.errors import PictureWarning

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # no advice about its cache where no home can be written
MISSING_GLYPH = re.compile(r"Glyph (\d+) .*missing from")  # a warning of matplotlib


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure, in inches, that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: str | Path, dpi: int = 110) -> None:
    """Write a figure as a PNG file; warns in one line of characters that no font has."""
    # Matplotlib's compiled parts turn the exception of a signal into a ValueError.
    with interrupts_held_back(), atomic_write(path) as file, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(file, format="png", dpi=dpi)
    missing = {match[1]: "" for warning in caught if (match := MISSING_GLYPH.match(str(warning.message)))}
    for warning in caught:
        if not MISSING_GLYPH.match(str(warning.message)):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if missing:
        text = "".join(chr(int(code)) for code in missing)
        warnings.warn(f"{path}: boxes in place of {text}, which the font does not have", PictureWarning, stacklevel=2)


def draw_history(rows: list[dict[str, Any]], path: str | Path) -> None:
    """Draw the rows of a history to a PNG file: a panel per node, errors in percent, and one of the learning rate."""
    from matplotlib.ticker import MaxNLocator

    names = list(rows[-1]["training"])
    figure = new_figure(4.6 * (len(names) + 1), 3.8)
    *panels, last = figure.subplots(1, len(names) + 1, squeeze=False)[0]
    for axes, name in zip(panels, names):
        # Evaluation nodes count wrong frames; their names are ErrorPrediction, err and the like.
        is_share = "err" in name.lower() and all(value <= 1 for row in rows for value in _values(row, name))
        for part, colour in (("training", "tab:blue"), ("validation", "tab:orange")):
            scale = 100 if is_share else 1
            points = [(row["epoch"], scale * row[part][name]) for row in rows if name in row.get(part, {})]
            if points:
                axes.plot(*zip(*points), marker="o", markersize=3, color=colour, label=part)
        axes.set_title(name)
        axes.set_ylabel("% of frames" if is_share else "per frame")
        axes.legend()
    rates = [(row["epoch"], row["learning_rate_per_sample"]) for row in rows if row.get("learning_rate_per_sample")]
    if rates:
        last.plot(*zip(*rates), drawstyle="steps-mid", color="tab:green")
        last.set_yscale("log")
    last.set_title("learning rate")
    last.set_ylabel("per sample")
    for axes in (*panels, last):
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
    save_figure(figure, path)


def _values(row: dict[str, Any], name: str) -> list[float]:
    """Return the values of a node in one row of a history."""
    return [row[part][name] for part in ("training", "validation") if name in row.get(part, {})]
