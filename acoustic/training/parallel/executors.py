"""Executors of jobs: processes of this machine, or the workers of a Dask cluster.

A job whose worker died is submitted again. Dask does that by itself; if one local process
dies, the jobs of all of them are lost.
"""

import contextlib
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from acoustic.training.parallel.job import AnyJob, attempt
from acoustic.training.parallel.options import ParallelOptions
from readers.common.environment import available_cores
from readers.common.processes import as_they_end, end_with_parent
from readers.common.report import Log
from readers.common.stop_signals import interrupts_held_back
from readers.errors import ArgonautError, ConfigError, ModelError

CONNECTION_SECONDS = 30
Done = Callable[[Any], None]


class Jobs:
    """Runs jobs, those of an outer iteration or of a minibatch at a time.

    Processes start, or the cluster is contacted, with the first of them. `log` receives a line for every job that was
    lost and runs again.
    """

    def __init__(self, options: ParallelOptions, log: Log):
        self.options, self.log = options, log
        self._place: LocalProcesses | DaskCluster | None = None

    def run(self, jobs: Sequence[AnyJob], done: Done) -> list[Any]:
        """Run jobs and return their results in order; done(result) is called as each one comes in.

        Raises the error of the first job that failed, with the job's name. A job that was lost more often than it may
        be run again raises OSError if that was the cause, else ModelError.
        """
        results: dict[int, Any] = {}
        for attempts_left in range(self.options.retries, -1, -1):
            lost: dict[int, BaseException] = {}
            waiting = self._submit([job for job in jobs if job.number not in results], lost)
            for future in as_they_end(waiting):
                job = waiting[future]
                fault = _fault_of(future)
                if fault is not None:
                    lost[job.number] = fault
                    continue
                result = future.result()
                if isinstance(result, ArgonautError):
                    raise result if str(result).startswith(job.title) else type(result)(f"{job.title}: {result}")
                if isinstance(result, Exception):
                    raise result
                results[job.number] = result
                done(result)
            if not lost:
                return [results[job.number] for job in jobs]
            self._say_lost(jobs, lost, attempts_left)
            self.close()
        raise AssertionError  # the last attempt has returned or raised

    def _submit(self, jobs: Sequence[AnyJob], lost: dict[int, BaseException]) -> dict[Future, AnyJob]:
        waiting: dict[Future, AnyJob] = {}
        if self._place is None and self.options.scheduler:
            self._place = DaskCluster(self.options.scheduler, self.log)
        with interrupts_held_back():  # an interrupt would kill a process that has just started, with a traceback
            if self._place is None:
                self._place = LocalProcesses(self.options)
            for job in jobs:
                try:
                    waiting[self._place.executor.submit(attempt, job)] = job
                except RuntimeError as fault:  # a worker died while we were submitting
                    lost[job.number] = fault
        return waiting

    def _say_lost(self, jobs: Sequence[AnyJob], lost: dict[int, BaseException], attempts_left: int) -> None:
        first = next(job for job in jobs if job.number in lost)
        fault = lost[first.number]
        text = " ".join(f"{type(fault).__name__}: {fault}".split()).rstrip(".")
        if attempts_left:
            titles = ", ".join(str(number + 1) for number in sorted(lost))
            self.log(f"warning: {first.place}: lost job {titles} of {len(jobs)} ({text}); run again")
            return
        if isinstance(fault, OSError):
            raise fault
        times = self.options.retries + 1
        raise ModelError(
            f"{first.title}: lost {times} {'time' if times == 1 else 'times'}, the last by {text}; expected a result; "
            "jobRetries sets how often a job is run again"
        ) from fault

    def close(self) -> None:
        """Terminate the processes, including busy ones, or close the connection to the cluster."""
        place, self._place = self._place, None
        if place is not None:
            place.close()


def _fault_of(future: Future) -> BaseException | None:
    """Return the exception that kept a job from returning a result, if any."""
    try:
        return future.exception()
    except BaseException as fault:
        if isinstance(fault, KeyboardInterrupt | SystemExit):
            raise
        return fault  # cancelled


class LocalProcesses:
    """Spawned processes; a forked copy of a process with threads may deadlock."""

    def __init__(self, options: ParallelOptions):
        processes = min(options.num_jobs, options.processes or available_cores())
        context = multiprocessing.get_context("spawn")
        self.executor: Executor = ProcessPoolExecutor(processes, mp_context=context, initializer=end_with_parent)

    def close(self) -> None:
        with interrupts_held_back():
            working = list((getattr(self.executor, "_processes", None) or {}).values())
            self.executor.shutdown(wait=False, cancel_futures=True)
            for process in working:
                process.kill()
            for process in working:
                process.join()


class DaskCluster:
    """Workers of a Dask scheduler, given by its address or by the file that contains it."""

    def __init__(self, scheduler: str, log: Log):
        try:
            from distributed import Client  # optional: the extra `cluster`
        except ImportError as fault:
            raise ConfigError(
                f"scheduler {scheduler}: dask.distributed is not installed; expected "
                "`pip install '.[cluster]'` in the project's directory"
            ) from fault

        class QuietClient(Client):
            def __del__(self) -> None:  # a client that never connected prints the failure again when it is deleted
                with contextlib.suppress(Exception):
                    super().__del__()

        where: dict[str, Any] = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
        try:
            self.client = QuietClient(**where, timeout=CONNECTION_SECONDS, set_as_default=False)
        except Exception as fault:  # a wrong address can raise many types
            text = " ".join(str(fault).split()) or f"not reached ({type(fault).__name__})"
            raise ConfigError(
                f"scheduler {scheduler}: {text}; expected tcp://HOST:PORT of a running `dask scheduler`, or the file "
                "that its --scheduler-file names"
            ) from fault
        if not self.client.scheduler_info()["workers"]:
            log(f"scheduler {scheduler} has no workers yet; waiting for the first")
            self.client.wait_for_workers(1)
        self.executor: Executor = self.client.get_executor(pure=False)

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self.client.close()
