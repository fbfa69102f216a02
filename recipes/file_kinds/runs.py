"""Figures of files that runs write beside models: training history, report, JSON records."""

import json
import re
from typing import Any

from readers.common.text import parse_json, read_lines, read_text
from readers.config.side_files import FORMAT, read_side_file
from readers.errors import FormatError
from recipes.file_kinds.figures import Figures, Kind

HISTORY = re.compile(r'\{"epoch": \d+,')
ITERATIONS = re.compile(r'\{"iteration": \d+,')
REPORT = re.compile(r"# ([^:]+): (\d+) done, (\d+) skipped, (\d+) failed((?:; \d+ \w+)*)")
REMARK = re.compile(r"# ([^:]+): (.+)")


def run_kind(first: str) -> Kind | None:
    """Return (kind, function for its figures) given the first line of a text file; None for other text."""
    if HISTORY.match(first):
        return "history of a training", history
    if ITERATIONS.match(first):
        return "history of outer iterations", iterations
    return ("report of a run", report) if REPORT.fullmatch(first) else None


def history(path: str) -> Figures:
    from acoustic.training.reporting.log import read_history

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


def iterations(path: str) -> Figures:
    from acoustic.training.reporting.log import read_history

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


def json_kind(path: str) -> Kind | None:
    """Return (kind, function for its figures) of a text file that begins like a JSON object; None if it is not JSON."""
    found = _objects(path)
    if not found:
        return None
    first = found[0]
    if len(found) > 1:
        return "records in JSON, one per line", json_lines
    if first and all(isinstance(value, dict) and "words" in value for value in first.values()):
        return "words with times (JSON)", json_words
    if first.get("format") == FORMAT:
        return "record of features", feature_record
    if {"stage", "settings"} <= set(first):
        return "mark of a recipe's stage", json_object
    if {"chosen", "trials"} <= set(first):
        return "search options that a recipe tried", tuning
    return "JSON", json_object


def feature_record(path: str) -> Figures:
    record = read_side_file(path)
    rates = [("sample rates", " ".join(f"{rate:g} Hz" for rate in record.rates) or "unknown")]
    return [*rates, *record.settings.items()]


def _objects(path: str) -> list[dict[str, Any]]:
    """Return the JSON object of a file, or the objects of its lines; empty if it holds anything else."""
    text = read_text(path)
    try:
        found = [parse_json(text)]
    except ValueError:
        try:
            found = [parse_json(line) for line in text.splitlines() if line.strip()]
        except ValueError:
            return []
    return found if all(isinstance(one, dict) for one in found) else []


def json_lines(path: str) -> Figures:
    found = _objects(path)
    return [("records", len(found)), ("names", " ".join(dict.fromkeys(name for one in found for name in one)))]


def json_words(path: str) -> Figures:
    utterances = _objects(path)[0]
    try:
        words = [word for one in utterances.values() for word in one["words"]]
        known = [word["confidence"] for word in words if "confidence" in word]
        figures: Figures = [("utterances", len(utterances)), ("words", len(words))]
        figures.append(("ends at", f"{max((word['end'] for word in words), default=0.0):.2f} s"))
        mean = f", mean {sum(known) / len(known):.3f}" if known else ""
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as fault:
        raise FormatError(f"{path}: not a list of words ({fault}); expected word, start, end, confidence") from fault
    return [*figures, ("confidence", f"given for {len(known)}{mean}")]


def json_object(path: str) -> Figures:
    return [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in _objects(path)[0].items()]


def tuning(path: str) -> Figures:
    found = _objects(path)[0]
    try:
        chosen = ", ".join(f"{name} {value}" for name, value in found["chosen"].items())
        return [("trials", len(found["trials"])), ("chosen", chosen)]
    except (AttributeError, TypeError) as fault:
        raise FormatError(
            f"{path}: {fault}; expected `chosen`, options with their values, and a list `trials`"
        ) from fault


def report(path: str) -> Figures:
    (_, first), *lost = [(number, line) for number, line in enumerate(read_lines(path), 1) if line.strip()]
    head = REPORT.fullmatch(first.strip())
    assert head is not None  # it is a report by this line
    unit, *counts = head.groups()
    figures: Figures = [(unit, "{} done, {} skipped, {} failed{}".format(*counts))]
    for number, line in lost:
        remark = REMARK.fullmatch(line)
        if remark:  # for example sizes of a graph
            figures.append((remark[1], remark[2]))
            continue
        fields = line.split("\t", 2)
        if len(fields) != 3:
            raise FormatError(f"{path}:{number}: {line[:60]!r}; expected name, outcome and reason between tabs")
        figures.append((f"+{fields[0]}", f"{fields[1]}: {fields[2]}"))
    return figures
