"""Worker processes, which leave stopping to their parent, and their results."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from readers.common.jobs.stop_signals import STOPPING, interrupts_held_back

Result = TypeVar("Result")
GRACE = 10.0  # seconds after SIGTERM in which a worker may be ended by its parent in order


def end_with_parent() -> None:
    """Make this worker process leave signals to its parent, and exit when that is gone, even if it was killed.

    Schedulers send SIGTERM to every process of a job.  The worker outlives it for a while, so that the parent can end
    its work in order.
    """
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_late)
    if hasattr(signal, "pthread_sigmask"):  # a process that was started while signals were held back is deaf to them
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)

    def watch() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _end_late(number: int, frame: Any) -> None:
    timer = threading.Timer(GRACE, os._exit, (128 + number,))
    timer.daemon = True
    timer.start()


def as_they_end(futures: Iterable[Future[Result]]) -> Iterator[Future[Result]]:
    """Yield each future when it is done; Ctrl-C can interrupt the waiting.

    `concurrent.futures.as_completed` holds locks of the futures while it waits.  A Ctrl-C at that moment leaves a lock
    taken, and the executor then waits for it forever.  Here, locks are taken only while interrupts are held back.
    """
    done: SimpleQueue[Future[Result]] = SimpleQueue()
    count = 0
    with interrupts_held_back():
        for future in futures:
            future.add_done_callback(done.put)
            count += 1
    for _ in range(count):
        yield done.get()
