"""How processes that share a command's work begin and end: deaf to Ctrl-C, and not after the one that started them."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator


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
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
