"""Figures 1.2 and 1.3 of the book: an output over the plane with its decision boundary, and the error of each epoch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.training.reporting.plots import new_figure, save_figure
from recipes.simple2d.data import GRID_STEPS, REGION

SHOWN_POINTS = 600


def draw_boundary(outputs: np.ndarray, points: np.ndarray, classes: np.ndarray, path: Path) -> None:
    """Write a PNG: the difference of the two outputs over the plane, the boundary where it is 0, and some points.

    outputs: (GRID_STEPS^2, 2) for the points of the grid; points: (N, 2); classes: (N,).
    """
    steps = np.linspace(*REGION, GRID_STEPS)
    difference = (outputs[:, 0] - outputs[:, 1]).reshape(GRID_STEPS, GRID_STEPS)
    figure = new_figure(5.6, 4.6)
    axes = figure.add_subplot()
    largest = float(np.abs(difference).max()) or 1.0
    shaded = axes.pcolormesh(steps, steps, difference, cmap="RdBu_r", vmin=-largest, vmax=largest, shading="gouraud")
    axes.contour(steps, steps, difference, levels=[0.0], colors="black", linestyles="dashed")
    for number, marker in ((0, "o"), (1, "x")):
        some = points[:SHOWN_POINTS][classes[:SHOWN_POINTS] == number]
        axes.scatter(some[:, 0], some[:, 1], s=7, marker=marker, color="black", linewidths=0.5, alpha=0.5)
    axes.set_title("first output minus the second, before the softmax", fontsize=10)
    figure.colorbar(shaded, ax=axes)
    save_figure(figure, path)


def draw_errors(history: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write a PNG: error of training and test set after each epoch.

    history: result of acoustic.training.reporting.log.read_history.
    """
    figure = new_figure(5.6, 4.6)
    axes = figure.add_subplot()
    for part, name, colour in (("training", "training set", "tab:blue"), ("validation", "test set", "tab:orange")):
        values = [100 * row[part]["EvalErrorPrediction"] for row in history]
        axes.plot([row["epoch"] for row in history], values, color=colour, linewidth=1, label=name)
    axes.set_xlabel("epoch")
    axes.set_ylabel("error (%)")
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)
