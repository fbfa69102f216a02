"""The confusion matrix of a scoring, phones in their classes."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from acoustic.training.reporting.plots import new_figure, save_figure
from decoder.scoring.error_counts import ScoringResult
from decoder.scoring.report import NONE
from readers.dictionaries.phone_classes import grouped

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_confusions(results: ScoringResult, path: str | Path, max_words: int = 45) -> None:
    """Write a PNG of the confusion matrix: rows are reference words, columns hypotheses.

    Parameters
    ----------
    results : ScoringResult
    path : path
        PNG file.
    max_words : int
        At most this many words are shown, those with most errors.  Each row is shaded by the share of the reference
        word's occurrences, and errors carry their count.  Phones are grouped by class.
    """
    confusions = results.confusions()
    words, classes = grouped(_most_confused(confusions, max_words))
    labels = [*words, NONE]
    index: dict[str | None, int] = {word: i for i, word in enumerate(words)}
    index[None] = len(words)
    counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for (word, guess), times in confusions.items():
        if word in index and guess in index:
            counts[index[word], index[guess]] += times
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)

    size = 2.5 + 0.24 * len(labels)
    figure = new_figure(size + 0.8 + 0.9 * bool(classes), size)
    axes = figure.add_subplot()
    shaded = axes.imshow(shares, cmap="Blues", vmin=0, vmax=100)
    figure.colorbar(
        shaded, ax=axes, shrink=0.6, label="% of the spoken word" if not classes else "% of the spoken phone"
    )
    for row, column in zip(*np.nonzero(counts)):
        if row != column:
            shade = "white" if shares[row, column] > 60 else "firebrick"
            axes.text(column, row, counts[row, column], ha="center", va="center", fontsize=7, color=shade)
    axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=8)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_xlabel(f"recognised ({NONE}: deleted)")
    axes.set_ylabel(f"spoken ({NONE}: inserted)")
    _mark_classes(axes, classes)
    total = results.total
    axes.set_title(
        f"{total.word_error_rate:.1f}% error: {total.substitutions} substitutions, {total.deletions} deletions, "
        f"{total.insertions} insertions in {total.num_words}",
        fontsize=10,
    )
    save_figure(figure, path)


def _mark_classes(axes: "Axes", classes: list[tuple[str, int]]) -> None:
    """Draw lines between the classes, and their names at the right."""
    begin = 0
    for name, count in classes:
        axes.axhline(begin + count - 0.5, color="#999999", linewidth=0.6)
        axes.axvline(begin + count - 0.5, color="#999999", linewidth=0.6)
        axes.annotate(
            name, (1.01, begin + (count - 1) / 2), xycoords=("axes fraction", "data"), va="center", fontsize=8
        )
        begin += count


def _most_confused(confusions: Counter[tuple[str | None, str | None]], max_words: int) -> list[str]:
    errors: Counter[str] = Counter()
    for (word, guess), times in confusions.items():
        if word != guess:
            errors.update({side: times for side in (word, guess) if side is not None})
    return [word for word, _ in sorted(errors.items(), key=lambda item: (-item[1], item[0]))[:max_words]]
