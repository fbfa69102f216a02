"""The errors of boundaries: how many are within which time, and their means by class of boundary."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from acoustic.training.reporting.plots import new_figure, save_figure
from decoder.alignment.boundaries.figures import BoundaryFigures
from decoder.alignment.boundaries.matching import TICKS_PER_MILLISECOND, TOLERANCE, BoundaryComparison

WIDEST = 100  # milliseconds
PANEL = 4.8  # inches


def draw_boundaries(
    comparisons: Mapping[str, BoundaryComparison], figures: Mapping[str, BoundaryFigures], path: str | Path
) -> None:
    """Write a PNG: the share of boundaries over the largest error, a line for each tier, and errors by class.

    Parameters
    ----------
    comparisons : mapping of str to BoundaryComparison
        Of each tier.
    figures : mapping of str to BoundaryFigures
        Of each tier; that with most classes of boundaries is drawn by class.
    path : path
        PNG file.
    """
    figure = new_figure(2 * PANEL, PANEL - 0.6)
    axes, panel = figure.subplots(1, 2)
    for tier, comparison in comparisons.items():
        errors = np.sort(np.abs(comparison.distances)) / TICKS_PER_MILLISECOND
        shares = 100 * np.arange(1, len(errors) + 1) / comparison.total
        detection = figures[tier].detection
        label = f"{tier}: F1 {detection.f1:.3f}, R-value {detection.r_value:.3f}"
        last_share = shares[-1] if len(shares) else 0.0
        axes.plot(np.append(errors, WIDEST), np.append(shares, last_share), label=label, drawstyle="steps-post")
    axes.axvline(TOLERANCE, color="gray", linestyle="dotted")
    axes.set_xlim(0, WIDEST)
    axes.set_ylim(0, 101)
    axes.set_xlabel("absolute error, ms")
    axes.set_ylabel("% of the boundaries")
    axes.legend(fontsize=8, loc="lower right")
    axes.grid(alpha=0.3)

    tier, part = max(figures.items(), key=lambda item: len(item[1].boundary_classes))
    names = list(part.phone_classes)
    means = np.full((len(names), len(names)), np.nan)
    for (before, after), deviations in part.boundary_classes.items():
        means[names.index(before), names.index(after)] = deviations.mean
    shaded = panel.imshow(means, cmap="Blues", vmin=0)
    figure.colorbar(shaded, ax=panel, shrink=0.7, label="mean absolute error, ms")
    for row, column in np.argwhere(~np.isnan(means)):
        shade = "white" if means[row, column] > 0.6 * np.nanmax(means) else "black"
        panel.text(column, row, f"{means[row, column]:.0f}", ha="center", va="center", fontsize=7, color=shade)
    panel.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set_xlabel("on the right")
    panel.set_ylabel("on the left")
    panel.set_title(f"{tier}, by class", fontsize=10)
    save_figure(figure, path)
