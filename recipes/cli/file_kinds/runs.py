"""What runs leave beside models: the history of a training, the report of what was lost."""

import re

from readers.errors import FormatError
from recipes.cli.file_kinds.figures import Figures

HISTORY = re.compile(r'\{"epoch": \d+,')
ITERATIONS = re.compile(r'\{"iteration": \d+,')
REPORT = re.compile(r"# (\w+): (\d+) done, (\d+) skipped, (\d+) failed")


def run_kind(first: str):
    """(what it is, describer) of a text file by its first line; None for another sort of text."""
    if HISTORY.match(first):
        return "history of a training", history
    if ITERATIONS.match(first):
        return "history of outer iterations", iterations
    return ("report of a run", report) if REPORT.fullmatch(first) else None


def history(path: str) -> Figures:
    from acoustic.training.log import read_history

    rows = read_history(path)
    figures: Figures = [("epochs", f"{len(rows)}, the last is {rows[-1]['epoch']}")]
    for data in ("training", "validation"):
        values = rows[-1].get(data)
        if isinstance(values, dict) and all(isinstance(value, (int, float)) for value in values.values()):
            figures.append((data, ", ".join(f"{name} {value:.6g}" for name, value in values.items())))
    return figures


def iterations(path: str) -> Figures:
    from acoustic.training.log import read_history

    rows = read_history(path)
    last = rows[-1]
    try:
        figures: Figures = [("outer iterations", f"{len(rows)}, the last in epoch {last['epoch']}")]
        figures += [("jobs", len(last["jobs"])), ("taken", last["taken"]), ("seconds of the last", last["seconds"])]
        figures += [("training", ", ".join(f"{name} {value:.6g}" for name, value in last["training"].items()))]
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise FormatError(f"{path}: no row of an outer iteration ({fault}); expected its jobs and figures") from fault
    return figures


def report(path: str) -> Figures:
    from readers.text import read_lines

    first, *lost = read_lines(path)
    unit, *counts = REPORT.fullmatch(first.strip()).groups()
    figures: Figures = [(unit, "{} done, {} skipped, {} failed".format(*counts))]
    for number, line in enumerate(lost, 2):
        fields = line.split("\t", 2)
        if len(fields) != 3:
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected name, outcome and reason between tabs")
        figures.append((f"+{fields[0]}", f"{fields[1]}: {fields[2]}"))
    return figures
