"""A run over many formats: shares the time among them, replaces dead workers, collects findings."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path

from readers.common.environment import environment_variables
from tests.fuzz.examine import ACCEPTED, FINDING, REFUSED
from tests.fuzz.format import FOLDER_VARIABLE, Format, file_name, make, make_seed, temporary_directory
from tests.fuzz.worker import BEGIN, CATALOGUE, DONE, END, FOUND, SECONDS, Worker

BATCH_SECONDS = 3.0
FIRST_BATCH, LARGEST_BATCH = 20, 3000
KEPT = 3  # inputs of each kind of finding
NUMBERS_PER_SEED = 10**9


@dataclass
class Tally:
    """What happened to the inputs of a format; `kinds`: kind of finding -> number of inputs."""

    form: Format
    next_number: int
    seconds: float = 0.0
    outcomes: Counter = field(default_factory=Counter)
    kinds: Counter = field(default_factory=Counter)

    @property
    def inputs(self) -> int:
        return self.outcomes.total()

    def batch(self) -> range:
        """The numbers of the next inputs: as many as take BATCH_SECONDS."""
        rate = self.inputs / self.seconds if self.seconds else 0.0
        size = max(FIRST_BATCH, min(LARGEST_BATCH, int(rate * BATCH_SECONDS)))
        self.next_number += size
        return range(self.next_number - size, self.next_number)


@dataclass
class Task:
    """What a worker does: the numbers of inputs of a format, and the input that it examines now."""

    tally: Tally
    numbers: range
    begin: float
    current: int | None = None


class Run:
    """A run of the fuzzer.

    Parameters
    ----------
    forms : sequence of Format
    seed : int
        Chooses other inputs.
    out : Path
        Where the inputs of findings are kept.
    report : callable
        Called with each line of progress.
    catalogue : str
        Module with the formats, which workers import.
    seconds : float
        Limit of processor time for one input.
    """

    def __init__(
        self,
        forms: Sequence[Format],
        seed: int,
        out: Path,
        report: Callable[[str], None] = print,
        catalogue: str = CATALOGUE,
        seconds: float = SECONDS,
    ):
        self.tallies = [Tally(form, seed * NUMBERS_PER_SEED) for form in forms]
        self.out, self.report, self.catalogue, self.seconds = out, report, catalogue, seconds
        self._tasks: dict[Worker, Task] = {}

    def run(self, seconds: float, num_workers: int, enough: Callable[[], bool] = lambda: False) -> None:
        """Examine inputs for some time, or until there are enough findings."""
        # Workers that die leave their files behind.
        with temporary_directory() as folder, environment_variables(**{FOLDER_VARIABLE: folder}):
            self._run(seconds, num_workers, enough)

    def _run(self, seconds: float, num_workers: int, enough: Callable[[], bool]) -> None:
        begin = told = time.monotonic()
        workers = [self._start() for _ in range(num_workers)]
        try:
            while time.monotonic() < begin + seconds and not enough():
                for connection in wait([worker.connection for worker in workers], timeout=1.0):
                    worker = next(one for one in workers if one.connection is connection)
                    if not self._receive(worker):
                        workers[workers.index(worker)] = self._start()
                if time.monotonic() > told + 30:
                    told = time.monotonic()
                    self.report(f"{(told - begin) / 60:.1f} min: {self.summary()}")
        finally:
            for worker in workers:
                worker.close()

    def summary(self) -> str:
        total = sum((tally.outcomes for tally in self.tallies), Counter())
        kinds = sum(len(tally.kinds) for tally in self.tallies)
        return (
            f"{total.total()} inputs, {total[REFUSED]} refused, {total[ACCEPTED]} accepted, "
            f"{total[FINDING]} findings of {kinds} kinds"
        )

    def _start(self) -> Worker:
        worker = Worker(self.seconds, self.catalogue)
        self._give(worker)
        return worker

    def _give(self, worker: Worker) -> None:
        """Give a worker the next inputs of the format that has had the least time."""
        busy = Counter(task.tally.form.name for task in self._tasks.values())
        tally = min(self.tallies, key=lambda tally: tally.seconds + BATCH_SECONDS * busy[tally.form.name])
        task = Task(tally, tally.batch(), time.monotonic())
        self._tasks[worker] = task
        worker.connection.send((tally.form.name, task.numbers))

    def _receive(self, worker: Worker) -> bool:
        """Handle a message; return False if the worker has ended."""
        task = self._tasks[worker]
        try:
            message = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            self._tasks.pop(worker)
            worker.process.join(timeout=10)
            self._bury(worker, task)
            worker.close()
            return False
        if message[0] == BEGIN:
            if task.current is None:  # do not count the import of modules and kernels
                task.begin = time.monotonic()
            task.current = message[1]
        elif message[0] == END:
            task.tally.outcomes[message[1]] += 1
        elif message[0] == FOUND:
            self._found(task.tally, *message[1:])
        elif message[0] == DONE:
            task.tally.seconds += time.monotonic() - task.begin
            self._tasks.pop(worker)
            if message[1]:
                worker.close()
                return False
            self._give(worker)
        return True

    def _bury(self, worker: Worker, task: Task) -> None:
        """Count the inputs of a worker that died; a hang counts only if it happens again."""
        tally, number = task.tally, task.current
        tally.seconds += time.monotonic() - task.begin
        words = worker.last_words()
        if worker.was_too_slow():
            kind = f"no end within {self.seconds:g} s at {_stuck_at(words)}"
            if kind not in tally.kinds and number is not None and not self._hangs(tally.form, number):
                tally.outcomes[REFUSED] += 1
                return
        else:
            kind = f"death with exit status {worker.process.exitcode}"
        tally.outcomes[FINDING] += 1
        self._found(tally, number, kind, words)

    def _hangs(self, form: Format, number: int) -> bool:
        """Whether an input takes too long again, in a new process, when the kernels that it needs are compiled."""
        for limit in (4 * self.seconds, self.seconds):
            worker = Worker(limit, self.catalogue)
            try:
                worker.connection.send((form.name, [number]))
                while worker.connection.recv()[0] != DONE:
                    pass
            except (EOFError, ConnectionResetError):
                return True
            finally:
                worker.close()
        return False

    def _found(self, tally: Tally, number: int | None, kind: str, trace: str) -> None:
        form = tally.form
        tally.kinds[kind] += 1
        if tally.kinds[kind] > KEPT:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        name = f"{file_name(form)}-{number}"
        with temporary_directory() as folder:
            made = make_seed(form, 0, Path(folder)) if number is None else make(form, number, Path(folder) / "case")
            (self.out / f"{name}.input").write_bytes(made.read_bytes())
        (self.out / f"{name}.txt").write_text(f"{form.name}, input {number}: {kind}\n\n{trace}\n", encoding="utf-8")
        if tally.kinds[kind] == 1:
            self.report(f"{form.name}, input {number}: {kind} ({self.out / name}.txt)")

    def table(self) -> list[str]:
        """The lines of a table with a row for each format."""
        width = max(len(tally.form.name) for tally in self.tallies)
        head = ("inputs", REFUSED, ACCEPTED, "findings", "kinds")
        lines = [f"{'format':{width}}" + "".join(f"{title:>10}" for title in head)]
        for tally in self.tallies:
            numbers = (tally.inputs, *(tally.outcomes[one] for one in (REFUSED, ACCEPTED, FINDING)), len(tally.kinds))
            lines.append(f"{tally.form.name:{width}}" + "".join(f"{number:10}" for number in numbers))
        return [*lines, f"all: {self.summary()}"]


def _stuck_at(words: str) -> str:
    """The innermost line of the project in the stack of a process that took too long."""
    stack = words[words.rfind("(most recent call first)") :]
    for name, line in re.findall(r'File "([^"]+)", line (\d+)', stack):
        if "/lib/python" not in name and "site-packages" not in name:
            return f"{os.path.relpath(name)}:{line}"
    return "an unknown place"
