"""The report of a run: which items were done, skipped or failed, and why."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from readers.common.files import atomic_write

Log = Callable[[str], None]  # receives lines of a log
IRREGULAR = "irregular"  # mark of audio whose header is wrong about its length, or with other bytes around it
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


def staged(progress: Progress, stage: str) -> Progress:
    """Return a Progress of one stage of a job."""
    return partial(progress, stage=stage)


def silent(*values: object, **figures: object) -> None:
    """Show nothing: the Log and Progress of a job that is called without them."""
