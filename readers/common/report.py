"""The report of a run: which items were done, skipped or failed, and why; and the figures of a file."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.files import atomic_write
from readers.common.text import read_lines
from readers.errors import FormatError

if TYPE_CHECKING:
    from readers.common.arrays import Array

# (name, value) in display order; figures whose names begin with + are shown only with -v.
Figures = list[tuple[str, object]]
Log = Callable[[str], None]  # receives lines of a log
IRREGULAR = "irregular"  # mark of audio whose header is wrong about its length, or with other bytes around it
REPORT = re.compile(r"# ([^:]+): (\d+) done, (\d+) skipped, (\d+) failed((?:; \d+ \w+)*)")
REMARK = re.compile(r"# ([^:]+): (.+)")
SHOWN_LOSSES = 5  # on the terminal; the report file lists all
Progress = Callable[..., None]  # progress(done, total, **figures), for a progress display


@dataclass
class RunReport:
    """Counts the items that were done and lists those that were not.

    Parameters
    ----------
    what : str
        The unit in the plural, for the summary, such as "utterances" or "files".

    Attributes
    ----------
    num_done : int
        Number of items done.
    lost : list of (str, str, str)
        (name, "skipped" or "failed", reason), in the order of the run.
    remarks : dict of str to str
        Name -> text of remarks on the whole run.
    marked : list of (str, str, str)
        (name, mark, reason) of items that are done, but in another way than usual; "unfinished": only in part.
    """

    what: str
    num_done: int = 0
    lost: list[tuple[str, str, str]] = field(default_factory=list)
    remarks: dict[str, str] = field(default_factory=dict)
    marked: list[tuple[str, str, str]] = field(default_factory=list)

    def done(self, count: int = 1) -> None:
        """Count items that are done."""
        self.num_done += count

    def skip(self, name: str, reason: str) -> None:
        """List an item that was skipped."""
        self.lost.append((name, "skipped", reason))

    def fail(self, name: str, reason: str) -> None:
        """List an item that failed."""
        self.lost.append((name, "failed", reason))

    def mark(self, name: str, mark: str, reason: str) -> None:
        """Count an item as done and list it with a mark of one word, such as "unfinished"."""
        self.num_done += 1
        self.marked.append((name, mark, reason))

    @property
    def num_skipped(self) -> int:
        """Number of skipped items."""
        return sum(outcome == "skipped" for _, outcome, _ in self.lost)

    @property
    def num_failed(self) -> int:
        """Number of failed items."""
        return sum(outcome == "failed" for _, outcome, _ in self.lost)

    @property
    def num_unfinished(self) -> int:
        """Number of items done only in part."""
        return sum(mark == "unfinished" for _, mark, _ in self.marked)

    @property
    def exit_status(self) -> int:
        """0 if nothing was lost, 1 if something was lost or every item is unfinished, 2 if nothing could be done."""
        if not self.num_done:
            return 2 if self.lost else 0
        return int(bool(self.lost) or self.num_unfinished == self.num_done)

    def summary(self) -> str:
        """Return the closing line, for people and for scripts."""
        counts = f"{self.what}: {self.num_done} done, {self.num_skipped} skipped, {self.num_failed} failed"
        marks = Counter(mark for _, mark, _ in self.marked)
        return counts + "".join(f"; {marks[mark]} {mark}" for mark in sorted(marks))

    def write(self, path: str | Path) -> None:
        """Write a line with the counts, lines `# name: text` of remarks, and lines `name<tab>outcome<tab>reason`.

        The last ones are those of lost items, then those of marked items.
        """
        with atomic_write(path, "w") as file:
            file.write(f"# {self.summary()}\n")
            for name, text in self.remarks.items():
                file.write(f"# {name}: {text}\n")
            for name, outcome, reason in (*self.lost, *self.marked):
                file.write(f"{name}\t{outcome}\t{reason}\n")


def loss_lines(report: RunReport, path: object, verbose: int = 0, where: object = "") -> list[str]:
    """Return the lines that tell the user which items of a run were lost or are marked.

    They name the first few items, beginning with lost and unfinished ones, or all of them if verbose; if nothing at all
    could be done, a single line.

    path: the report file that lists all losses, None if there is none.
    where: the input that the run was about, such as its list.
    """
    losses = [*report.lost, *sorted(report.marked, key=lambda item: item[1] != "unfinished")]
    lines = [
        reason if re.match(rf"{re.escape(name)}\S*:", reason) else f"{name}: {reason}" for name, _, reason in losses
    ]
    if report.exit_status == 2 and not verbose:
        text = lines[0]
        if len(lines) > 1:
            most, count = _most_frequent([reason for _, _, reason in losses])
            which = f"most frequent error, {count} times" if most else "first error"
            text = f"none of {len(lines)} {report.what} could be done; {which}: {lines[most]}"
            text = (f"{where}: " if where else "") + text + (f"; all are listed in {path}" if path else "")
        return [f"error: {text}"]
    shown = [f"{outcome}: {line}" for (_, outcome, _), line in zip(losses, lines)]
    if not verbose and len(shown) > SHOWN_LOSSES:
        more = f"listed in {path}" if path else "shown with -v"
        shown[SHOWN_LOSSES:] = [f"and {len(lines) - SHOWN_LOSSES} more, {more}"]
    return shown


def _most_frequent(reasons: list[str]) -> tuple[int, int]:
    """Return the number of the first reason of the most frequent kind, and how often it occurs, whatever the file."""
    kinds = [reason.partition("; expected")[0].rpartition(": ")[2] for reason in reasons]
    kind, count = Counter(kinds).most_common(1)[0]
    return kinds.index(kind), count


def staged(progress: Progress, stage: str) -> Progress:
    """Return a Progress of one stage of a job."""
    return partial(progress, stage=stage)


def silent(*values: object, **figures: object) -> None:
    """Show nothing: the Log and Progress of a job that is called without them."""


def all_finite(values: "Array") -> bool:
    import numpy as np

    return bool(np.isfinite(values).all())


def extent(values: Iterable[float], form: str = "") -> str:
    """Return the least and the greatest value, as `2 to 7`."""
    numbers = list(values)
    return f"{min(numbers):{form}} to {max(numbers):{form}}"


def num_files(files: Iterable[str | Path]) -> str:
    """Return the number of different files, and of those that are missing."""
    different = set(files)
    return f"{len(different)}{missing(different)}"


def missing(files: Iterable[str | Path]) -> str:
    """Return how many files are missing; "" if all are there."""
    count = sum(not Path(file).is_file() for file in files)
    return f", {count} of them not there" if count else ""


def rows_of(path: str | Path) -> list[list[str]]:
    """Return the fields of each line that is not blank."""
    return [line.split() for line in read_lines(path) if line.strip()]


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
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
