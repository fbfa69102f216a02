"""Many utterances in threads, results in the order of the utterances, at most a few of them in memory."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from decoder.search.decoder import Decoder, Result
from readers.common.processes import as_they_end, interrupts_held_back
from readers.errors import ArgonautError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
AHEAD = 4  # utterances per thread that may wait for an earlier one


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    function: Callable[[Item], Answer], items: Iterable[Item], threads: int | None = None
) -> Iterator[tuple[Item, Answer | Exception]]:
    """(item, function(item)) for every item, in order; a fault of the user's input or of the system takes the answer's
    place, anything else is raised.

    threads: None = one per core.  items are drawn as they are needed, at most AHEAD per thread before their turn.
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
    waiting: deque[tuple[Item, Future]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="decode") as pool:
        try:
            for item in items:
                with interrupts_held_back():
                    waiting.append((item, pool.submit(attempt, item)))
                if len(waiting) > AHEAD * threads:
                    yield _first(waiting)
            while waiting:
                yield _first(waiting)
        finally:  # the caller went away, or something was raised: start nothing more
            with interrupts_held_back():
                for _, future in waiting:
                    future.cancel()


def _first(waiting: deque[tuple[Item, Future]]) -> tuple[Item, Answer | Exception]:
    """The item that has waited longest, with its answer as soon as that is there."""
    item, future = waiting.popleft()
    (done,) = as_they_end([future])
    return item, done.result()


def decode_batch(
    scores: Iterable[np.ndarray],
    decoder: Decoder,
    threads: int | None = None,
    progress: Callable[..., None] | None = None,
) -> Iterator[Result]:
    """Decode matrices (K, T) of log-likelihoods; one Result each, in order.

    A matrix that cannot be decoded gives a Result with a reason.  progress(done, None, frames=) after each.
    """
    done = frames = 0
    for matrix, result in in_order(decoder.decode, scores, threads):
        if isinstance(result, Exception):
            num_frames = matrix.shape[1] if getattr(matrix, "ndim", 0) == 2 else 0
            result = Result(str(result), num_frames)
        done, frames = done + 1, frames + result.num_frames
        if progress:
            progress(done, None, frames=frames)
        yield result
