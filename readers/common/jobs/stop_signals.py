"""How a run is stopped: Ctrl-C, SIGTERM and SIGHUP.

SIGTERM (a scheduler, a container that is stopped) and SIGHUP (a terminal that is closed) end a command as Ctrl-C does:
they raise KeyboardInterrupt, and finished work is kept.  Only the exit status differs.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]
STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_stopped_by: list[int] = []  # signals that have arrived during the command


def stopping_signal() -> int:
    """Return the signal that interrupted the command; SIGINT if none has been recorded."""
    return _stopped_by[-1] if _stopped_by else signal.SIGINT


@contextlib.contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt in the body, as Ctrl-C does.

    A signal that this process was started to ignore, as `nohup` does, stays ignored.  Does nothing outside the main
    thread or inside another such body.
    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in STOPPING[1:]}
        handlers = {number: handler for number, handler in handlers.items() if handler is signal.SIG_DFL}
    if handlers:
        _stopped_by.clear()
    try:
        for number in handlers:
            signal.signal(number, _stop)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _stop(number: int, frame: Any) -> None:
    _stopped_by.append(number)
    raise KeyboardInterrupt


@contextlib.contextmanager
def epochs_kept(training: str = "", again: str = "the same command") -> Iterator[None]:
    """Tell the user, if the training in the body is interrupted, that it can go on.

    training: its name, with what parts it from the text; again: what continues it.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(f"{training}finished epochs are kept; {again} continues after them") from stop


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Hide stopping signals from processes that the body starts, and defer them in this thread to the end of the body.

    A terminal sends Ctrl-C to all processes at once.  The parent shuts down the workers in order; a worker that died of
    the signal would only print its traceback.
    """
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING) if masks else set()
    try:
        with _handlers_put_off():
            yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _handlers_put_off() -> Iterator[None]:
    """Defer the handlers of stopping signals to the end of the body; does nothing outside the main thread.

    Blocking the signals in this thread is not enough: another thread, such as that of a progress bar, may receive one,
    and the handler then still runs in the main thread.
    """
    came: list[tuple[int, Any]] = []
    with _handled_by(lambda number, frame: came.append((number, frame))) as handlers:
        yield
    if came:
        handlers[came[0][0]](*came[0])


@contextlib.contextmanager
def interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether a stopping signal has arrived, so that the work can end in order.

    A second signal interrupts as usual.  Outside the main thread the function always returns False.
    """
    came = threading.Event()

    def note(number: int, frame: Any) -> None:
        came.set()
        _stopped_by.append(number)
        for stopping, handler in handlers.items():
            signal.signal(stopping, handler)

    with _handled_by(note) as handlers:
        yield came.is_set


@contextlib.contextmanager
def _handled_by(handler: Handler) -> Iterator[dict[int, Handler]]:
    """Replace the handlers of stopping signals, and yield those that were there; none outside the main thread."""
    handlers: dict[int, Handler] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in STOPPING}
        handlers = {number: earlier for number, earlier in before.items() if callable(earlier)}
    for number in handlers:
        signal.signal(number, handler)
    try:
        yield handlers
    finally:
        for number, earlier in handlers.items():
            signal.signal(number, earlier)
