"""Lines of the training log in the wording of the 2016 tool, and the history file beside the model.

The functions return text; the caller decides where it goes.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from acoustic.training.evaluation import EvaluationTotals, figures_text
from readers.common.files import write_lines
from readers.common.report import Figures
from readers.common.text import parse_json, read_lines
from readers.errors import FormatError


def starting_line(epoch: int, learning_rate: float, momentum: float, time_constant: float) -> str:
    """Return the line at the start of an epoch, counted from 1.

    The learning rate is per frame, the momentum that of a full minibatch, and the time constant in frames.
    """
    return (
        f"Starting Epoch {epoch}: learning rate per sample = {learning_rate:.6f}  effective momentum = {momentum:.6f}"
        f"  momentum as time constant = {time_constant:.1f} samples"
    )


def minibatch_line(
    epoch: int,
    max_epochs: int,
    minibatches: tuple[int, int],
    done: float | None,
    totals: EvaluationTotals,
    seconds: float,
) -> str:
    """Return the line on the minibatches first..last of an epoch, all counted from 1.

    `done` is the fraction of the epoch so far, None if unknown; `totals` and `seconds` are those of these minibatches.
    """
    first, last = minibatches
    percent = "" if done is None else f", {100 * done:.2f}%"
    rate = totals.num_frames / seconds if seconds > 0 else 0.0
    return (
        f" Epoch[{epoch:2d} of {max_epochs}]-Minibatch[{first:4d}-{last:4d}{percent}]: {figures_text(totals)}; "
        f"time = {seconds:.4f}s; samplesPerSecond = {rate:.1f}"
    )


def finished_line(
    epoch: int, max_epochs: int, totals: EvaluationTotals, total_samples: int, learning_rate: float, seconds: float
) -> str:
    """Return the line with the training result of an epoch, counted from 1; total_samples: frames since the start."""
    return (
        f"Finished Epoch[{epoch:2d} of {max_epochs}]: [Training] {figures_text(totals)}; "
        f"totalSamplesSeen = {total_samples}; learningRatePerSample = {learning_rate:.8g}; epochTime={seconds:.6g}s"
    )


def validation_line(epoch: int, max_epochs: int, totals: EvaluationTotals) -> str:
    """Return the line with the validation result of an epoch, counted from 1."""
    return f"Finished Epoch[{epoch:2d} of {max_epochs}]: [Validate] {figures_text(totals)}"


def append_history(path: str | Path, row: dict[str, Any], number: str = "epoch") -> None:
    """Add a row to a history file, which has one JSON object per line.

    `number` is the key of the number of a row, counted from 1. Rows with the same or a higher number, left by an
    earlier run, are dropped.
    """
    _write_rows(path, [*(old for old in read_history(path) if old.get(number, 0) < row[number]), row])


def truncate_history(path: str | Path, epoch: int) -> None:
    """Drop the rows of the epochs after `epoch`, counted from 1."""
    rows = read_history(path)
    earlier = [row for row in rows if row["epoch"] <= epoch]
    if len(earlier) < len(rows):
        _write_rows(path, earlier)


def _write_rows(path: str | Path, rows: Iterable[dict[str, Any]]) -> None:
    write_lines(path, map(json.dumps, rows))


def read_history(path: str | Path) -> list[dict[str, Any]]:
    """Read a history file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    list of dict
        The rows, oldest first; empty if the file does not exist.

    Raises
    ------
    FormatError
        If a line is not a JSON object with an epoch.
    """
    path = Path(path)
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(read_lines(path, exact=True), 1):
        try:
            row = parse_json(line)
            row["epoch"] = int(row["epoch"])
        except (ValueError, TypeError, KeyError, OverflowError) as fault:
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected a JSON object with an epoch") from fault
        rows.append(row)
    return rows


def history_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    rows = read_history(path)
    figures: Figures = [("epochs", f"{len(rows)}, the last is {rows[-1]['epoch']}")]
    for data in ("training", "validation"):
        values = rows[-1].get(data)
        if isinstance(values, dict) and all(isinstance(value, (int, float)) for value in values.values()):
            try:
                figures.append((data, ", ".join(f"{name} {value:.6g}" for name, value in values.items())))
            except OverflowError as fault:  # an integer of hundreds of digits
                raise FormatError(f"{path}: {data} ({fault}); expected errors and criteria") from fault
    return figures


def iterations_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    rows = read_history(path)
    last = rows[-1]
    try:
        figures: Figures = [("outer iterations", f"{len(rows)}, the last in epoch {last['epoch']}")]
        figures += [("jobs", len(last["jobs"])), ("taken", last["taken"]), ("seconds of the last", last["seconds"])]
        figures += [("training", ", ".join(f"{name} {value:.6g}" for name, value in last["training"].items()))]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as fault:
        raise FormatError(
            f"{path}: not a row of an outer iteration ({fault}); expected its jobs and figures"
        ) from fault
    return figures
