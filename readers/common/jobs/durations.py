"""Divides a list into shards of about equal duration."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
LEAST_SECONDS, MOST_SECONDS = 5.0, 120.0  # speech of a shard
SAMPLE = 500  # items from which the duration of a list is estimated


def by_seconds(
    items: Iterable[Item], seconds: Callable[[Item], float], total: int, shards: int
) -> Iterator[list[Item]]:
    """Divide items into about so many shards of equal duration, but none much shorter or longer than is useful.

    Parameters
    ----------
    items : iterable
        Read as needed.
    seconds : callable
        Returns about how long an item is, in seconds.
    total : int
        Number of items.
    shards : int
        Desired number of shards.  A long list gets more of them, of MOST_SECONDS.

    Yields
    ------
    list
        Consecutive items.
    """
    iterator = iter(items)
    first = [(item, seconds(item)) for item in itertools.islice(iterator, SAMPLE)]
    mean = sum(length for _, length in first) / max(1, len(first))
    target = min(max(mean * total / max(1, shards), LEAST_SECONDS), MOST_SECONDS)
    yield from divided(itertools.chain(first, ((item, seconds(item)) for item in iterator)), target)


def divided(items: Iterable[tuple[Item, float]], size: float, most_items: float = math.inf) -> Iterator[list[Item]]:
    """Divide items, given with their sizes, into consecutive lists, each as soon as it reaches a size or length."""
    shard: list[Item] = []
    total = 0.0
    for item, more in items:
        shard.append(item)
        total += more
        if total >= size or len(shard) >= most_items:
            yield shard
            shard = []
            total = 0.0
    if shard:
        yield shard
