"""A team of threads that divide work and synchronise within microseconds.

Some ten microseconds pass between two BLAS products of a minibatch; waking a sleeping thread takes fifty. A thread that
has finished therefore polls a flag for a while, without the interpreter lock, before it sleeps. Calls that need no
Python (see tables.py) it makes without taking that lock, for which it would have to wait.
"""

import _thread
import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from acoustic.runtime import blas
from readers.common.environment import available_cores, one_blas_thread
from readers.common.text import is_count

SPIN = 5e-4  # seconds of polling before a thread sleeps
LATE = 5e-4  # seconds that the caller may lose by waiting for others before it works alone
REST = 10  # seconds alone for each second lost: waiting takes at most a tenth of the time
LONGEST_REST = 1.0  # seconds
MOST_THREADS = 1024  # more would only take memory
TABLES_KEPT = 256  # of calls, by a team


def default_threads() -> int:
    """The default number of threads: OMP_NUM_THREADS up to MOST_THREADS, else the processors this process may use."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    return min(int(text), MOST_THREADS) if is_count(text) and int(text) > 0 else available_cores()


def share_of(worker: int, workers: int, count: int) -> slice:
    """A worker's share of `count` consecutive items; the shares are as equal as possible."""
    return slice(count * worker // workers, count * (worker + 1) // workers)


class ThreadTeam:
    """Threads that share the work of a call; they start with the first work and end with the process.

    Parameters
    ----------
    size : int
        Number of threads, the caller's included.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._busy = threading.Lock()
        self._holder: int | None = None  # the thread that has reserved the others
        self._running = False
        self._work: Callable[[int], None] = _nothing
        self._errors: list[BaseException] = []
        self._given = [_thread.allocate_lock() for _ in range(size)]
        self._done = [_thread.allocate_lock() for _ in range(size)]
        self._process: int | None = None
        self._known: dict[Hashable, Any] = {}  # tables of calls
        self._lost = self._alone_until = 0.0  # seconds
        self.flags = np.zeros(0, np.int64)  # see thread_sync.py; allocated with the first work
        self._waited = np.zeros(1, np.int64)  # that of the caller's flags

    @contextlib.contextmanager
    def hold(self) -> Iterator[int]:
        """Reserve the threads for the caller; yields how many can work: one if another thread has reserved them."""
        if self._holder == threading.get_ident() and not self._running:
            yield self.size
            return
        if self.size == 1 or not self._busy.acquire(blocking=False):
            yield 1
            return
        self._holder = threading.get_ident()
        try:
            if self._process != os.getpid():
                self._start()
            yield self.size
        finally:
            self._holder = None
            self._busy.release()

    def run(self, work: Callable[[int], None], count: int | None = None) -> None:
        """Call work(worker) for workers 0..count-1 (default: all), each in its own thread with one BLAS thread.

        Returns when all are done, and then raises the first error or interrupt. Within such a call, while another
        thread uses the team, and for a while after waiting for other threads has taken longer than their shares, the
        workers are called one after the other, with the same results.
        """
        self.run_phases((work,), count)

    def run_phases(self, phases: Sequence[Callable[[int], None]], count: int | None = None) -> None:
        """Like `run` for several phases: no worker begins a phase before all workers have ended the previous one."""
        count = self.size if count is None else count
        # One BLAS thread also where workers take turns: a product divided among threads has other rounding errors.
        with self._mine(count) as mine, one_blas_thread if count > 1 else contextlib.nullcontext():
            if mine:
                self._run(phases[0] if len(phases) == 1 else self._in_step(phases, count), count)
            else:
                for phase in phases:
                    for worker in range(count):
                        phase(worker)

    def play(self, tables: Sequence[np.ndarray], alone: np.ndarray | None = None) -> None:
        """Make the calls of each table in its own thread, or in the caller's, as `run` does.

        Returns when all are done. alone: the same calls in an order in which one thread can make them; None: one table
        after the other. If tables include meetings (see call_registry.py), the caller holds the team.
        """
        from acoustic.runtime import call_table, thread_sync

        with self._mine(len(tables)) as mine:
            if not mine:
                for table in tables if alone is None else (alone,):
                    call_table.play(table)
                return
            places = self._places(tables)
            try:
                thread_sync.play_all(self.flags, self.size, places)
            finally:  # also after an interrupt: other threads may already be waiting
                if places[0, thread_sync.LEFT]:
                    self._play_rest(places)

    def _play_rest(self, places: np.ndarray) -> None:
        """Wake sleeping threads, make the caller's calls, and wait for those of the other threads."""
        from acoustic.runtime import thread_sync

        try:
            self._wake(worker for worker in range(1, len(places)) if places[worker, thread_sync.LEFT])
        except BaseException:  # an interrupt: it is unknown which threads are awake
            self._wake(range(1, len(places)))
            raise
        finally:
            thread_sync.finish(self.flags, places)

    def _wake(self, workers: Iterable[int]) -> None:
        """Wake some threads; one that is already awake polls once more before it sleeps the next time."""
        for worker in workers:
            if self._given[worker].locked():
                self._given[worker].release()

    def known(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The result of make() for a key, from an earlier call where it is still known."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= TABLES_KEPT:  # threads may share a team
                self._known.clear()
            found = self._known[key] = make()
        return found

    def _places(self, tables: Sequence[np.ndarray]) -> np.ndarray:
        """The address and number of rows of each table, and room for thread_sync.LEFT."""

        def make() -> tuple[tuple[np.ndarray, ...], np.ndarray]:  # with the tables, so that their ids stay theirs
            return tuple(tables), np.array([(table.ctypes.data, len(table), 0) for table in tables], np.int64)

        return self.known(("places", *map(id, tables)), make)[1]

    @contextlib.contextmanager
    def _mine(self, count: int) -> Iterator[bool]:
        """Reserve the threads for `count` shares of a work; yields whether they can be given it now."""
        held = self._holder == threading.get_ident()
        with contextlib.nullcontext(self.size) if held or count == 1 else self.hold() as size:
            start = time.perf_counter()
            if min(count, size) == 1 or self._running or start < self._alone_until:
                yield False
                return
            self._running = True
            try:
                yield True
            finally:
                self._running = False
            self._note_delay(time.perf_counter() - start, count)

    def _note_delay(self, elapsed: float, count: int) -> None:
        """Let the caller work alone for a while if that would have taken less than waiting for other threads.

        Threads are late if they wait for a processor. elapsed: seconds of a work of `count` shares.
        """
        waited = self._waited.item() * 1e-9
        self._lost = max(self._lost + elapsed - count * (elapsed - waited), 0.0)
        if self._lost > LATE:
            self._alone_until = time.perf_counter() + min(REST * self._lost, LONGEST_REST)
            self._lost = 0.0

    def _in_step(self, phases: Sequence[Callable[[int], None]], count: int) -> Callable[[int], None]:
        """A work that consists of all phases; between two, each of `count` workers waits for the others."""
        from acoustic.runtime.thread_sync import FAILED, meet

        def work(worker: int) -> None:
            for number, phase in enumerate(phases):
                if number:
                    meet(self.flags, worker, count)
                    if self.flags[FAILED]:
                        raise RuntimeError("another worker has failed")  # `run` raises the error of that one
                phase(worker)

        return work

    def share(self, worker: int, count: int) -> slice:
        """A worker's share of `count` consecutive items."""
        return share_of(worker, self.size, count)

    def _run(self, work: Callable[[int], None], count: int) -> None:
        from acoustic.runtime.thread_sync import begin, give

        begin(self.flags, self.size)
        self._errors.clear()
        self._work, again, end = work, False, 0
        try:
            for worker in range(1, count):
                if give(self.flags, worker, 0, 0):
                    self._wake([worker])
            work(0)
            end = time.perf_counter_ns()
        except BaseException as error:
            self._fail(error)
            self._wake(range(1, count))  # an interrupt: a thread with work may not have been woken
            again = True
        while True:
            try:
                for worker in range(1, count):
                    self._wait(worker, again)
                break
            except BaseException as error:  # an interrupt: the other threads are still working
                self._fail(error)
                again = True
        self._work = _nothing
        if self._errors:
            raise self._errors[0]
        self._waited += time.perf_counter_ns() - end

    def _wait(self, worker: int, again: bool) -> None:
        """Return when a thread has done its work; again: it may have none, or have been waited for already."""
        from acoustic.runtime.thread_sync import DONE, GIVEN, look, slot

        place = slot(worker)
        given = self.flags[place + GIVEN]
        is_done = again and self.flags[place + DONE] == given
        while not is_done:  # its lock tells, but after an interrupt the lock may be that of earlier work
            look(self.flags, place + DONE, given, _looks())
            self._done[worker].acquire()
            is_done = self.flags[place + DONE] == given

    def _fail(self, error: BaseException) -> None:
        from acoustic.runtime.thread_sync import FAILED

        self._errors.append(error)
        self.flags[FAILED] = 1

    def _start(self) -> None:
        """Start the threads; again after a fork, which does not copy threads."""
        from acoustic.runtime import thread_sync

        self.flags = np.zeros(thread_sync.FLAGS + thread_sync.SLOT * self.size, np.int64)
        self._waited = self.flags[thread_sync.slot(0) + thread_sync.WAITED :][:1]
        self.flags[thread_sync.YIELD] = _yield_address()
        self.flags[thread_sync.CLOCK] = _clock_address()
        thread_sync.begin(self.flags, self.size)
        _compile(self.flags)  # now, not while other threads wait
        _looks()
        self._process = os.getpid()
        for worker in range(1, self.size):
            for locks in (self._given, self._done):
                locks[worker] = _thread.allocate_lock()
                locks[worker].acquire()
            arguments = (worker, self.flags, self._given, self._done)
            threading.Thread(target=self._serve, args=arguments, name=f"argonaut-{worker}", daemon=True).start()

    def _serve(self, worker: int, flags: np.ndarray, given: list[Any], done: list[Any]) -> None:
        from acoustic.runtime.thread_sync import DONE, serve, slot

        mine, ticket = slot(worker) + DONE, 0
        while True:
            ticket, sleeps = serve(flags, worker, ticket, _looks())
            if sleeps:
                given[worker].acquire()
                continue
            try:
                self._work(worker)
            except BaseException as error:  # handed to the caller of run
                self._fail(error)
            flags[mine] = ticket
            if done[worker].locked():  # not after an interrupt: see _wait
                done[worker].release()


def _nothing(worker: int) -> None:
    """What is done where there is no work."""


def _compile(flags: np.ndarray) -> None:
    """Compile the functions of thread_sync.py, or load them."""
    from acoustic.runtime import thread_sync as calls

    calls.look(flags, 0, 0, 1)
    calls.meet(flags, 0, 1)
    calls.begin(flags, 1)
    calls.play_all(flags, 1, np.zeros((1, 3), np.int64))
    calls.finish(flags, np.zeros((1, 3), np.int64))


@cache
def _looks() -> int:
    """How often a thread reads a flag in SPIN seconds."""
    from acoustic.runtime.thread_sync import look

    flags, count = np.zeros(1, np.int64), 50_000
    look(flags, 0, 1, 1)
    times = []
    for _ in range(5):  # the fastest: other processes may have had the processor
        start = time.perf_counter()
        look(flags, 0, 1, count)
        times.append(time.perf_counter() - start)
    return int(count * SPIN / min(times))


@cache
def _yield_address() -> int:
    """The address of the system call that lets other threads run; 0 if there is none."""
    name = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
    library = ctypes.CDLL("kernel32" if sys.platform == "win32" else None)
    return blas.address_of(getattr(library, name)) if hasattr(library, name) else 0


@cache
def _clock_address() -> int:
    """The address of C's timespec_get; 0 if there is none, and waits within tables of calls are not noted."""
    name = "_timespec64_get" if sys.platform == "win32" else "timespec_get"
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    return blas.address_of(getattr(library, name)) if hasattr(library, name) else 0
