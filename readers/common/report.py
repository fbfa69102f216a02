"""What became of every item of a run: done, skipped or failed, each loss with its reason."""

from dataclasses import dataclass, field
from pathlib import Path

from readers.common.files import atomic_write


@dataclass
class RunReport:
    """Counts what was done and names what was not.

    what: the unit in the plural, for the closing line ("utterances", "files").
    lost: (name, "skipped" or "failed", reason) in the order of the run.
    """

    what: str
    num_done: int = 0
    lost: list[tuple[str, str, str]] = field(default_factory=list)

    def done(self, count: int = 1) -> None:
        self.num_done += count

    def skip(self, name: str, reason: str) -> None:
        self.lost.append((name, "skipped", reason))

    def fail(self, name: str, reason: str) -> None:
        self.lost.append((name, "failed", reason))

    @property
    def num_skipped(self) -> int:
        return sum(outcome == "skipped" for _, outcome, _ in self.lost)

    @property
    def num_failed(self) -> int:
        return sum(outcome == "failed" for _, outcome, _ in self.lost)

    @property
    def exit_status(self) -> int:
        """0 all well, 1 something was lost, 2 nothing could be done."""
        if not self.lost:
            return 0
        return 1 if self.num_done else 2

    def summary(self) -> str:
        """The closing line, for people and for scripts."""
        return f"{self.what}: {self.num_done} done, {self.num_skipped} skipped, {self.num_failed} failed"

    def write(self, path: str | Path) -> None:
        """One line per lost item, `name<tab>outcome<tab>reason`, after a line with the counts."""
        with atomic_write(path, "w") as file:
            file.write(f"# {self.summary()}\n")
            for name, outcome, reason in self.lost:
                file.write(f"{name}\t{outcome}\t{reason}\n")
