"""The lines of a training log in CNTK's 2016 wording, and the history file beside the model.

Nothing here writes to a terminal: the functions return text, and the command line decides where it goes.
"""

import json
from pathlib import Path

from readers.common.files import atomic_write
from readers.common.text import read_lines
from readers.errors import FormatError

Figures = dict[str, float]  # node name: sum over frames


def figure_text(name: str, total: float, count: int) -> str:
    """`name = average * count`, as the tool prints a criterion: eight decimals, or the exponential form.

    total is the sum over count frames.  A name that ends in "s" counts errors and is shown in percent.
    """
    average = total / count if count else 0.0
    if name.endswith("s"):
        return f"{name} = {100 * average:.3f}% * {count}"
    exponential = "e" in f"{average:.8g}"
    return f"{name} = {average:.8e} * {count}" if exponential else f"{name} = {average:.8f} * {count}"


def figures_text(figures: Figures, count: int) -> str:
    return "; ".join(figure_text(name, total, count) for name, total in figures.items())


def starting_line(epoch: int, learning_rate: float, momentum: float, time_constant: float) -> str:
    """epoch counts from 1; learning_rate per frame; momentum of a full minibatch; time_constant in frames."""
    return (
        f"Starting Epoch {epoch}: learning rate per sample = {learning_rate:.6f}  effective momentum = {momentum:.6f}"
        f"  momentum as time constant = {time_constant:.1f} samples"
    )


def minibatch_line(
    epoch: int,
    max_epochs: int,
    minibatches: tuple[int, int],
    fraction: float | None,
    figures: Figures,
    count: int,
    seconds: float,
) -> str:
    """What the minibatches from..to of an epoch gave; all counts from 1; fraction of the epoch done, None: unknown."""
    first, last = minibatches
    percent = "" if fraction is None else f", {100 * fraction:.2f}%"
    rate = count / seconds if seconds > 0 else 0.0
    return (
        f" Epoch[{epoch:2d} of {max_epochs}]-Minibatch[{first:4d}-{last:4d}{percent}]: {figures_text(figures, count)}; "
        f"time = {seconds:.4f}s; samplesPerSecond = {rate:.1f}"
    )


def finished_line(
    epoch: int, max_epochs: int, figures: Figures, count: int, total_samples: int, learning_rate: float, seconds: float
) -> str:
    """The training result of an epoch.  count: its frames; total_samples: those since training began."""
    return (
        f"Finished Epoch[{epoch:2d} of {max_epochs}]: [Training] {figures_text(figures, count)}; "
        f"totalSamplesSeen = {total_samples}; learningRatePerSample = {learning_rate:.8g}; epochTime={seconds:.6g}s"
    )


def validation_line(epoch: int, max_epochs: int, figures: Figures, count: int) -> str:
    return f"Finished Epoch[{epoch:2d} of {max_epochs}]: [Validate] {figures_text(figures, count)}"


def append_history(path: str | Path, row: dict, number: str = "epoch") -> None:
    """Add one epoch to the history file: JSON, one object a line, `epoch` counting from 1.

    Rows of that epoch and later ones, left by an earlier run, are dropped.  number: what the rows count instead.
    """
    kept = [old for old in read_history(path) if old.get(number, 0) < row[number]]
    with atomic_write(path, "w") as file:
        for item in (*kept, row):
            file.write(json.dumps(item) + "\n")


def truncate_history(path: str | Path, epoch: int) -> None:
    """Drop the rows of the epochs after `epoch`, counting from 1."""
    rows = read_history(path)
    if any(row["epoch"] > epoch for row in rows):
        with atomic_write(path, "w") as file:
            for row in rows:
                if row["epoch"] <= epoch:
                    file.write(json.dumps(row) + "\n")


def read_history(path: str | Path) -> list[dict]:
    """The rows of a history file, oldest first; none when there is no such file."""
    path = Path(path)
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            row = json.loads(line)
            row["epoch"] = int(row["epoch"])
        except (ValueError, TypeError, KeyError, OverflowError) as fault:
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected a JSON object with an epoch") from fault
        rows.append(row)
    return rows
