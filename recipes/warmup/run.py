"""Runs the steps of tasks.py in processes, and counts the kernels that they compile."""

import contextlib
import io
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import NamedTuple, cast

from readers.common.environment import available_cores, compilation, environment_variables
from readers.common.jobs.processes import end_with_parent
from readers.common.jobs.stop_signals import interrupts_held_back
from readers.common.temporary import scratch_directory
from readers.errors import ArgonautError
from recipes.warmup import tasks
from recipes.warmup.toy_system import make_toy_system

SHARES = (("sequences",), ("search", "frames"))  # tasks of one process each; they take equally long
THREADS = "2"  # of networks, on any machine: the kernels of several threads are compiled, too


class Report(NamedTuple):
    """What a process has done since its last report; fault: why its step failed, or ""."""

    num_kernels: int
    is_kept: bool
    fault: str


def warm_up(progress: Callable[..., None]) -> tuple[int, bool]:
    """Run everything that compiles kernels; return how many were compiled, and whether all could be stored.

    progress(done, total, kernels=...) is called after each step.  Raises ArgonautError if a step fails.
    """
    shares = SHARES if available_cores() > 1 else [[name for share in SHARES for name in share]]
    with scratch_directory() as root:
        make_toy_system(root)
        if fault := run_step(*tasks.extraction(root)):
            raise ArgonautError(f"warmup: {fault}")
        total = sum(len(getattr(tasks, name)(root)) for share in shares for name in share)
        done = num_kernels = 0
        is_kept = True
        with workers(shares, root) as processes:
            while processes:
                for connection in cast("list[Connection]", wait(list(processes))):
                    try:
                        report: Report = connection.recv()
                    except EOFError:
                        process = processes.pop(connection)
                        process.join()
                        if process.exitcode:
                            raise ArgonautError(f"warmup: a process ended with status {process.exitcode}") from None
                        continue
                    if report.fault:
                        raise ArgonautError(f"warmup: {report.fault}")
                    done += 1
                    num_kernels += report.num_kernels
                    is_kept = is_kept & report.is_kept
                    progress(done, total, kernels=num_kernels)
    return num_kernels, is_kept


@contextlib.contextmanager
def workers(shares: Sequence[Sequence[str]], root: Path) -> Iterator[dict[Connection, SpawnProcess]]:
    """Start a process for each share; yields connection -> process.  All end with the body."""
    spawn = multiprocessing.get_context("spawn")
    processes = {}
    started = []
    try:
        with interrupts_held_back(), environment_variables(OMP_NUM_THREADS=THREADS):
            for share in shares:
                ours, its = spawn.Pipe(duplex=False)
                process = spawn.Process(target=run_tasks, args=(share, root, its))
                process.start()
                started.append(process)
                its.close()
                processes[ours] = process
        yield processes
    finally:
        with interrupts_held_back():
            for process in started:
                process.kill()
                process.join()


def run_tasks(names: Sequence[str], root: Path, reports: Connection) -> None:
    """Run some tasks in this process; send a report after each step."""
    from acoustic.training import trainer

    end_with_parent()
    # Pictures would take half of the time, and compile nothing.
    trainer.draw_history = lambda rows, path: None  # type: ignore[attr-defined]  # a name that it imports
    for name in names:
        for step in getattr(tasks, name)(root):
            before = compilation.num_kernels
            fault = run_step(*step)
            reports.send(Report(compilation.num_kernels - before, compilation.is_kept, fault))
            if fault:
                return


def run_step(title: str, command: Callable[[list[str]], int], arguments: list[str]) -> str:
    """Run a command without its output; return why it failed, or ""."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            status = command(arguments)
        except (ArgonautError, OSError) as fault:
            return f"{title}: {fault}"
    return "" if status in (0, 1) else f"{title}: {shown.getvalue().strip().splitlines()[-1]}"
