"""A few threads that do one piece of work together, handing over in microseconds.

Between two BLAS products of a minibatch pass some ten microseconds; waking a sleeping thread takes fifty.  So a thread
that has finished looks at a flag for a while, without the interpreter lock, before it goes to sleep.
"""

import _thread
import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from acoustic import blas

SPIN = 60_000  # looks at the flag, about 100 us, before sleeping
FLAG_STRIDE = 16  # int64s between flags: two cache lines


def default_threads() -> int:
    """How many threads to compute with: OMP_NUM_THREADS, else the processors this process may use."""
    text = os.environ.get("OMP_NUM_THREADS", "")
    if text.isdigit() and int(text) > 0:
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def computing_with(threads: int) -> Iterator[None]:
    """While the body runs, networks that are made in this process compute with so many threads."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(threads)  # networks look there for the number of their own threads
    try:
        # Several threads of a network multiply with one thread each; one alone would leave the number to the library.
        with blas.one_thread if threads == 1 else contextlib.nullcontext():
            yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def share_of(worker: int, workers: int, count: int) -> slice:
    """Worker's part of `count` things in a row, sizes as equal as can be."""
    return slice(count * worker // workers, count * (worker + 1) // workers)


class Team:
    """`size` threads, the caller's among them.  The others start with the first `run` and end with the process."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._busy = threading.Lock()
        self._work: Callable[[int], None] | None = None
        self._errors: list[BaseException] = []
        self._flags = np.zeros(2 * size * FLAG_STRIDE, dtype=np.int64)  # 2w: work given to w, 2w + 1: work done by w
        self._phases = np.zeros(size * FLAG_STRIDE, dtype=np.int64)  # w: phases that w has ended
        self._given = [_thread.allocate_lock() for _ in range(size)]
        self._done = [_thread.allocate_lock() for _ in range(size)]
        self._process: int | None = None
        self._wait: Callable[..., None] | None = None

    def run(self, work: Callable[[int], None], count: int | None = None) -> None:
        """Call work(worker) for worker 0..count-1 (default: all), each in its thread, BLAS using one thread in each.

        Returns when all are done; raises the first error.  From within such a call, or while another thread's work is
        under way, the workers are called one after the other.
        """
        self.run_phases((work,), count)

    def run_phases(self, phases: Sequence[Callable[[int], None]], count: int | None = None) -> None:
        """Like `run` for one phase after the other, but in between the workers meet without the caller's help.

        No worker begins a phase before all have ended the one before it.
        """
        count = self.size if count is None else count
        if count == 1 or not self._busy.acquire(blocking=False):
            for phase in phases:
                for worker in range(count):
                    phase(worker)
            return
        try:
            with blas.one_thread:
                self._run(phases[0] if len(phases) == 1 else self._in_step(phases, count), count)
        finally:
            self._work = None
            self._busy.release()

    def _in_step(self, phases: Sequence[Callable[[int], None]], count: int) -> Callable[[int], None]:
        """All phases as one work."""
        self._phases[:] = 0

        def work(worker: int) -> None:
            for number, phase in enumerate(phases):
                if number:
                    self._meet(worker, number, count)
                phase(worker)

        return work

    def _meet(self, worker: int, number: int, count: int) -> None:
        """Wait until all of `count` workers have ended so many phases; give up when one of them has failed."""
        self._phases[worker * FLAG_STRIDE] = number
        for other in range(count):
            while self._phases[other * FLAG_STRIDE] < number:
                if self._errors:
                    raise RuntimeError("another worker has failed")  # `run` raises the first error, which is that one's
                self._wait(self._phases, other * FLAG_STRIDE, number, SPIN)
                if self._phases[other * FLAG_STRIDE] < number:
                    time.sleep(0)

    def share(self, worker: int, count: int) -> slice:
        """Worker's part of `count` things in a row."""
        return share_of(worker, self.size, count)

    def _run(self, work: Callable[[int], None], count: int) -> None:
        if self._process != os.getpid():
            self._start()
        self._errors.clear()
        self._work = work
        for worker in range(1, count):
            self._flags[2 * worker * FLAG_STRIDE] += 1
            self._given[worker].release()
        try:
            work(0)
        except BaseException as error:
            self._errors.append(error)
        for worker in range(1, count):
            ticket = int(self._flags[2 * worker * FLAG_STRIDE])
            self._wait(self._flags, (2 * worker + 1) * FLAG_STRIDE, ticket, SPIN)
            self._done[worker].acquire()
        if self._errors:
            raise self._errors[0]

    def _start(self) -> None:
        """Start the threads; after a fork, which copies none, again."""
        from acoustic._spin import wait

        self._wait = wait
        wait(self._flags, 0, 0, 1)  # compiled here, not while the others wait
        self._process = os.getpid()
        self._flags[:] = 0
        for worker in range(1, self.size):
            for locks in (self._given, self._done):
                locks[worker] = _thread.allocate_lock()
                locks[worker].acquire()
            name = f"argonaut-{worker}"
            threading.Thread(target=self._serve, args=(worker, self._given, self._done), name=name, daemon=True).start()

    def _serve(self, worker: int, given: list, done: list) -> None:
        mine, ticket = 2 * worker * FLAG_STRIDE, 0
        while True:
            ticket += 1
            self._wait(self._flags, mine, ticket, SPIN)
            given[worker].acquire()
            try:
                self._work(worker)
            except BaseException as error:  # handed to the caller of run
                self._errors.append(error)
            self._flags[mine + FLAG_STRIDE] = ticket
            done[worker].release()
