"""Pictures of the training (after each epoch) and of confusions between slots."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.training.reporting.plots import new_figure, save_figure

MOST_LABELS = 24  # labels in the matrix, those with the most errors


def draw_epochs(history: Sequence[Mapping[str, Any]], f1: Sequence[float], path: Path) -> None:
    """Write a PNG: F1 of the development queries after each epoch, above the criterion on training and development set.

    history: result of acoustic.training.reporting.log.read_history; f1: in percent.
    """
    figure = new_figure(5.6, 5.6)
    f1_axes, criterion_axes = figure.subplots(2, 1, sharex=True)
    epochs = [row["epoch"] for row in history]
    f1_axes.plot(range(1, len(f1) + 1), f1, marker="o", markersize=3, color="tab:green", linewidth=1)
    f1_axes.set_ylabel("F1, development (%)")
    for part, label, colour in (
        ("training", "training", "tab:blue"),
        ("validation", "development", "tab:orange"),
    ):
        values = [next(iter(row[part].values())) for row in history]
        criterion_axes.plot(epochs, values, marker="o", markersize=3, color=colour, linewidth=1, label=label)
    criterion_axes.set_yscale("log")
    criterion_axes.set_ylabel("criterion of a word")
    criterion_axes.set_xlabel("epoch")
    criterion_axes.legend()
    for axes in (f1_axes, criterion_axes):
        axes.grid(alpha=0.3)
    save_figure(figure, path)


def draw_confusions(labels: Mapping[tuple[str, str], int], path: Path) -> None:
    """Write a PNG: confusions between the MOST_LABELS labels with most errors; rows are the true labels.

    labels: count of each (true, found).  The diagonal is left out.
    """
    names, counts = confusion_matrix(labels)
    figure = new_figure(8.4, 7.4)
    axes = figure.add_subplot()
    axes.set_title("wrong labels, words" if names else "no wrong labels", fontsize=10)
    if names:
        image = axes.imshow(np.where(counts > 0, counts, np.nan), cmap="viridis_r", vmin=0)
        figure.colorbar(image, ax=axes, shrink=0.6)
        for (row, column), count in np.ndenumerate(counts):
            if count:
                shade = "white" if count > counts.max() / 2 else "black"
                axes.text(column, row, str(count), ha="center", va="center", fontsize=7, color=shade)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_xlabel("found")
    axes.set_ylabel("true")
    save_figure(figure, path)


def confusion_matrix(labels: Mapping[tuple[str, str], int], most: int = MOST_LABELS) -> tuple[list[str], np.ndarray]:
    """Return labels, and counts (labels, labels) of words: true, found; sorted by slot, the diagonal is 0."""
    errors: Counter[str] = Counter()
    for (true, labelled), count in labels.items():
        if true != labelled:
            errors.update({true: count})
            errors.update({labelled: count})
    chosen = sorted(sorted(errors, key=lambda name: (-errors[name], name))[:most], key=lambda name: (name[1:], name))
    index = {name: number for number, name in enumerate(chosen)}
    counts = np.zeros((len(chosen), len(chosen)), np.int64)
    for (true, labelled), count in labels.items():
        if true != labelled and true in index and labelled in index:
            counts[index[true], index[labelled]] = count
    return chosen, counts
