"""Where shards are worked on: threads of this process, or processes of this machine.

A place has a capacity (shards that it takes at a time), `submit`, `answer` and `close`.
"""

import multiprocessing
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Protocol

from readers.common.environment import available_cores, environment_variables
from readers.common.jobs.processes import end_with_parent
from readers.common.jobs.stop_signals import interrupts_held_back
from readers.common.jobs.worker import Answer, Function, RunSettings, WorkerLost, forget, keeping, work

ATTEMPTS = 3  # of a shard, in other processes
BLAS_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
ONE_BLAS_THREAD = dict.fromkeys(BLAS_THREAD_VARIABLES, "1")
"""Environment of processes in which each product of matrices has one thread; BLAS reads it when it is loaded."""


class Place(Protocol):
    """Takes shards and gives answers.

    attempts: how often a shard is tried there, before it is divided or given up.
    is_here: whether that is in this process.
    """

    attempts: int
    is_here: bool

    @property
    def capacity(self) -> int:
        """Number of shards to submit at a time."""
        ...

    @property
    def size(self) -> int:
        """Number of shards that are worked on at a time."""
        ...

    def submit(
        self,
        function: Function,
        shard: Any,
        arguments: Sequence[Any],
        done: SimpleQueue[Any],
        avoid: frozenset[str],
    ) -> Any:
        """Begin a shard; puts the future that it returns into `done` when it is done.  avoid: workers that failed."""
        ...

    def answer(self, future: Any) -> Answer:
        """The answer of a future that is done."""
        ...

    def abandon(self, future: Any) -> None:
        """Cancel a future that nobody waits for any more."""
        ...

    def worker_of(self, future: Any) -> str:
        """Name of the worker that has a future's shard; "" if unknown."""
        ...

    def look_after(self, futures: Iterable[Any]) -> None:
        """Called while the runner waits for these futures."""
        ...

    def close(self) -> None:
        """Release everything; shards in progress are abandoned."""
        ...


class Threads:
    """Threads of this process, one per core by default; with one, the work is done by the caller's thread."""

    attempts, is_here = 1, True

    def __init__(self, settings: RunSettings, count: int | None = None):
        self.size = count or available_cores()
        self.capacity = self.size if self.size == 1 else 2 * self.size  # so that no thread waits for the caller
        self._settings = settings
        self._pool = ThreadPoolExecutor(self.size, thread_name_prefix="shard") if self.size > 1 else None

    def submit(
        self,
        function: Function,
        shard: Any,
        arguments: Sequence[Any],
        done: SimpleQueue[Any],
        avoid: frozenset[str],
    ) -> Future[Answer]:
        if self._pool is None:
            future: Future[Answer] = Future()
            future.set_result(self._work(function, shard, arguments))
            done.put(future)
            return future
        with interrupts_held_back():
            future = self._pool.submit(self._work, function, shard, arguments)
            future.add_done_callback(done.put)
        return future

    def _work(self, function: Function, shard: Any, arguments: Sequence[Any]) -> Answer:
        with keeping(self._settings.key):
            try:
                return Answer(function(shard, *arguments))
            except Exception as fault:
                return Answer(fault=fault, is_lost=isinstance(fault, MemoryError | OSError))

    def answer(self, future: Future[Answer]) -> Answer:
        with interrupts_held_back():
            return future.result()

    def abandon(self, future: Future[Answer]) -> None:
        future.cancel()

    def worker_of(self, future: Future[Answer]) -> str:
        return ""

    def look_after(self, futures: Iterable[Future[Answer]]) -> None:
        pass

    def close(self) -> None:
        if self._pool:
            with interrupts_held_back():
                self._pool.shutdown(cancel_futures=True)
        forget(self._settings.key)


class LocalProcesses:
    """Spawned processes; a forked copy of a process with threads may deadlock.

    Each has an executor of its own, so that one that dies takes only its shard with it, and is replaced.

    Parameters
    ----------
    settings : RunSettings
    count : int
        Number of processes.
    environment : mapping of str to str, optional
        Variables that are set in the processes.
    patience : float
        Seconds in which shards in progress may end when the place is closed.
    """

    attempts, is_here = ATTEMPTS, False

    def __init__(
        self,
        settings: RunSettings,
        count: int,
        environment: Mapping[str, str] | None = None,
        patience: float = 0.0,
    ):
        self.size = self.capacity = count
        self._patience = patience
        self._settings = settings
        self._environment = dict(environment or {})
        # The first process starts one that tracks semaphores, which must outlive signals.
        with interrupts_held_back():
            self._idle: list[_Process] = [_Process() for _ in range(count)]
        self._busy: dict[Future[Answer], _Process] = {}
        self._abandoned: list[_Process] = []

    def submit(
        self,
        function: Function,
        shard: Any,
        arguments: Sequence[Any],
        done: SimpleQueue[Any],
        avoid: frozenset[str],
    ) -> Future[Answer]:
        with interrupts_held_back(), environment_variables(**self._environment):
            if not self._idle:
                self._replace_abandoned()
            process = self._idle.pop()
            try:
                future = process.executor.submit(work, self._settings, function, shard, arguments)
            except BrokenExecutor:  # it died while it was idle
                process = _Process()
                future = process.executor.submit(work, self._settings, function, shard, arguments)
            process.note()
            self._busy[future] = process
            future.add_done_callback(done.put)
        return future

    def _replace_abandoned(self) -> None:
        for process in self._abandoned:
            process.kill(0.0)
        self._idle += [_Process() for _ in self._abandoned]
        self._abandoned = []

    def abandon(self, future: Future[Answer]) -> None:
        future.cancel()
        self._abandoned.append(self._busy.pop(future))

    def answer(self, future: Future[Answer]) -> Answer:
        with interrupts_held_back():
            return self._answer(future)

    def _answer(self, future: Future[Answer]) -> Answer:
        process = self._busy.pop(future)
        fault = future.exception()
        if isinstance(fault, BrokenExecutor):
            self._idle.append(_Process())
            return Answer(fault=WorkerLost(process.end()), is_lost=True, worker=process.name)
        self._idle.append(process)
        if fault is not None:  # the shard or its result cannot be sent
            return Answer(fault=fault, is_lost=isinstance(fault, MemoryError | OSError), worker=process.name)
        return future.result()

    def worker_of(self, future: Future[Answer]) -> str:
        return self._busy[future].name if future in self._busy else ""

    def look_after(self, futures: Iterable[Future[Answer]]) -> None:
        pass

    def close(self) -> None:
        with interrupts_held_back():
            processes = [*self._idle, *self._busy.values(), *self._abandoned]
            for process in processes:
                process.executor.shutdown(wait=False, cancel_futures=True)
            end = time.monotonic() + self._patience
            for process in processes:
                process.kill(max(0.0, end - time.monotonic()))
            self._idle = []
            self._busy = {}
            self._abandoned = []


class _Process:
    """A worker process, which starts with its first shard."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.executor = ProcessPoolExecutor(1, mp_context=context, initializer=end_with_parent)
        self._process: Any = None

    def note(self) -> None:
        self._process = self._process or next(iter(self.executor._processes.values()))

    @property
    def name(self) -> str:
        return f"process {self._process.pid}" if self._process else ""

    def end(self) -> str:
        """Wait for a process that died, and return how it ended."""
        self._process.join()
        end = time.monotonic() + 1.0
        while self._process.exitcode is None and time.monotonic() < end:  # a thread of the executor asks, too
            time.sleep(0.001)
        return ending(self._process.exitcode)

    def kill(self, patience: float) -> None:
        """End the process, at the latest after so many seconds."""
        if self._process:
            self.executor.shutdown(wait=False, cancel_futures=True)
            self._process.join(patience)
            self._process.kill()
            self._process.join()


def ending(code: int | None) -> str:
    """Describe how a process ended, by its exit code."""
    if code is None:
        return "died"
    if code >= 0:
        return f"exit status {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
