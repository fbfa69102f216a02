"""Decodes many utterances in threads; the results come in the order of the utterances, with few of them in memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from readers.common.environment import available_cores
from readers.common.jobs.processes import as_they_end
from readers.common.jobs.stop_signals import interrupts_held_back
from readers.errors import ArgonautError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
MAX_WAITING = 4  # utterances per thread that may wait for an earlier one


def in_order(
    function: Callable[[Item], Answer], items: Iterable[Item], threads: int | None = None
) -> Iterator[tuple[Item, Answer | Exception]]:
    """Apply a function to items in threads, and yield the results in the order of the items.

    Parameters
    ----------
    function : callable
        Called with one item; must be thread-safe.
    items : iterable
        Read as needed, at most MAX_WAITING items per thread ahead of the results.
    threads : int, optional
        By default one per core.

    Yields
    ------
    (item, result) : tuple
        The result is an ArgonautError or OSError if `function` raised one; other exceptions are raised here.
    """
    threads = threads or available_cores()

    def attempt(item: Item) -> Answer | Exception:
        try:
            return function(item)
        except (ArgonautError, OSError) as fault:
            return fault

    if threads == 1:
        for item in items:
            yield item, attempt(item)
        return
    waiting: deque[tuple[Item, Future[Answer | Exception]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="decode") as pool:
        try:
            for item in items:
                with interrupts_held_back():
                    waiting.append((item, pool.submit(attempt, item)))
                if len(waiting) > MAX_WAITING * threads:
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        finally:  # the caller has stopped, or an exception was raised
            with interrupts_held_back():
                for _, future in waiting:
                    future.cancel()


def _first(waiting: deque[tuple[Item, Future[Answer | Exception]]]) -> tuple[Item, Answer | Exception]:
    """The item that has waited longest, and its result when it is ready."""
    item, future = waiting.popleft()
    (done,) = as_they_end([future])
    return item, done.result()
