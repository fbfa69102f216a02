"""Worker processes and Ctrl-C: workers ignore it and end with their parent."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any


def end_with_parent() -> None:
    """Make this worker process ignore Ctrl-C and exit when its parent process is gone, even if that was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Hide Ctrl-C from processes that the body starts, and defer it in this thread to the end of the body.

    A terminal sends Ctrl-C to all processes at once.  The parent shuts down the workers in order; a worker that died of
    the signal would only print its traceback.
    """
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
    try:
        with _handler_put_off():
            yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _handler_put_off() -> Iterator[None]:
    """Defer the handler of Ctrl-C to the end of the body; does nothing outside the main thread.

    Blocking the signal in this thread is not enough: another thread, such as that of a progress bar, may receive it,
    and the handler then still runs in the main thread.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple] = []
    signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


@contextlib.contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed, so that the work can end in order and keep its results.

    A second Ctrl-C interrupts as usual.  Outside the main thread the function always returns False.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield lambda: False
        return
    came = threading.Event()

    def note(*_: Any) -> None:
        came.set()
        signal.signal(signal.SIGINT, handler)

    signal.signal(signal.SIGINT, note)
    try:
        yield came.is_set
    finally:
        signal.signal(signal.SIGINT, handler)


def as_they_end(futures: Iterable[Future]) -> Iterator[Future]:
    """Yield each future when it is done; Ctrl-C can interrupt the waiting.

    `concurrent.futures.as_completed` holds locks of the futures while it waits.  A Ctrl-C at that moment leaves a lock
    taken, and the executor then waits for it forever.  Here, locks are taken only while interrupts are held back.
    """
    done: SimpleQueue[Future] = SimpleQueue()
    count = 0
    with interrupts_held_back():
        for future in futures:
            future.add_done_callback(done.put)
            count += 1
    for _ in range(count):
        yield done.get()
