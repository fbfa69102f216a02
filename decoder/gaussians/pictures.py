"""The log-likelihood per frame over the passes of a flat start."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acoustic.training.reporting.plots import new_figure, save_figure


def draw_passes(history: Sequence[Mapping[str, Any]], path: str | Path) -> None:
    """Write a PNG: log-likelihood per frame over the passes, with a line where the number of Gaussians grew.

    Parameters
    ----------
    history : sequence of mapping
        Rows with `pass`, `gaussians` and `log_likelihood_per_frame`.
    path : path
        PNG file.
    """
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(6.4, 3.8)
    axes = figure.subplots()
    numbers = [row["pass"] for row in history]
    values = [row["log_likelihood_per_frame"] for row in history]
    axes.plot(numbers, values, marker="o", markersize=3)
    for before, row in zip([None, *history], history):
        if before is None or before["gaussians"] != row["gaussians"]:
            axes.axvline(row["pass"] - 0.5, color="grey", linewidth=0.8, linestyle=":")
            axes.annotate(
                f"{row['gaussians']}", (row["pass"] - 0.4, 0.02), xycoords=("data", "axes fraction"), fontsize=8
            )
    axes.set_xlabel("pass (below the curve: number of Gaussians)")
    axes.set_ylabel("log-likelihood per frame")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    save_figure(figure, path)
