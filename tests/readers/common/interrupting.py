"""Ctrl-C at the worst moment: right after the lock of a future was taken."""

import signal
import threading


class InterruptingCondition(threading.Condition):
    """Sends this process Ctrl-C, once, as soon as the main thread has taken the lock."""

    def __init__(self) -> None:
        super().__init__()
        self.done = False
        self.acquire = self._acquire

    def _acquire(self, *arguments, **more) -> bool:
        taken = self._lock.acquire(*arguments, **more)
        if not self.done and threading.current_thread() is threading.main_thread():
            self.done = True
            signal.raise_signal(signal.SIGINT)
        return taken

    def __enter__(self) -> bool:
        return self._acquire()
