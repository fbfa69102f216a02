"""The results of all variants as text, as rows of RESULTS.md and as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acoustic.training.reporting.plots import new_figure, save_figure


@dataclass(frozen=True)
class Row:
    """The results of one variant.

    Errors are in percent: of frames during the last epoch of training and after it, and of words in decoding.
    """

    name: str
    about: str
    epochs: str
    train_error: float
    dev_error: float
    dev_words: float
    test_words: float
    seconds: float


HEADINGS = ("variant", "epochs", "train frames", "dev frames")


def text_table(rows: Sequence[Row], unit: str) -> str:
    """Return a table with one line per variant; unit: WER or PER."""
    headings = (*HEADINGS, f"dev {unit}", f"test {unit}", "training")
    lines = [_cells(row) for row in rows]
    widths = [max(len(line[i]) for line in [headings, *lines]) for i in range(len(headings))]
    shown = [[headings[0].ljust(widths[0]), *(h.rjust(w) for h, w in zip(headings[1:], widths[1:]))]]
    shown += [[line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:]))] for line in lines]
    return "\n".join("  ".join(cells) for cells in shown) + "\n"


def markdown_rows(rows: Sequence[Row]) -> str:
    """Return the rows of RESULTS.md."""
    return "".join(f"| {row.name} | {row.about} | {' | '.join(_cells(row)[1:])} |\n" for row in rows)


def _cells(row: Row) -> tuple[str, ...]:
    errors = (row.train_error, row.dev_error, row.dev_words, row.test_words)
    return row.name, row.epochs, *(f"{error:.1f} %" for error in errors), f"{row.seconds:.0f} s"


def draw_table(rows: Sequence[Row], unit: str, path: Path) -> None:
    """Write a PNG: frame errors on the left, word or phone errors on the right, one group of bars per variant."""
    figure = new_figure(10.5, 1.4 + 0.5 * len(rows))
    panels = (
        ("frames", (("training", "train_error"), ("development", "dev_error"))),
        (unit, (("development", "dev_words"), ("test", "test_words"))),
    )
    places = range(len(rows))
    for axes, (title, bars) in zip(figure.subplots(1, 2, sharey=True), panels):
        for shift, (label, name) in zip((-0.2, 0.2), bars):
            values = [getattr(row, name) for row in rows]
            drawn = axes.barh([place + shift for place in places], values, height=0.38, label=label)
            axes.bar_label(drawn, fmt="%.1f", fontsize=8, padding=2)
        axes.set_xlabel(f"{title}, error (%)")
        axes.margins(x=0.12)
        axes.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    axes.set_yticks(places, [row.name for row in rows])
    axes.invert_yaxis()
    save_figure(figure, path)
