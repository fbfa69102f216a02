"""How processes that share a command's work begin and end: deaf to Ctrl-C, and not after the one that started them."""

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
    """Make this process, a worker, end when the one that started it is gone, killed say, and not at Ctrl-C before."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """While this holds, processes that are started never see Ctrl-C, and in this thread it waits until the end.

    A terminal sends it to all processes at once.  The one that started the others ends their work in order; a worker
    that dies of it would only add its traceback.
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
    """While this holds, Ctrl-C is noted; at the end it is handled.  Nothing in a thread that no Ctrl-C is handled in.

    The mask of a thread is not enough: another one, which draws a progress bar say, may be given the signal, and its
    handler then runs in the main thread all the same.
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
    """Yield what tells whether Ctrl-C has come, for work that then ends in order and keeps what is done; a second one
    interrupts as ever.  In a thread that no Ctrl-C is handled in none ever comes.
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
    """Each of the futures when it is done; while they are waited for, Ctrl-C comes through.

    `concurrent.futures.as_completed` takes locks of the futures, and a Ctrl-C that falls just there leaves one taken:
    then the thread of their executor waits for it for ever, and with it whoever waits for the executor to end.  Here
    locks are taken with interrupts held back; those of a future that is done are nobody else's any more.
    """
    done: SimpleQueue[Future] = SimpleQueue()
    count = 0
    with interrupts_held_back():
        for future in futures:
            future.add_done_callback(done.put)
            count += 1
    for _ in range(count):
        yield done.get()
