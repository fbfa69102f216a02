"""Times of annotations, also of those to which an ELAN file gives none.

A time slot without a value lies between those of the chain of adjacent annotations that it belongs to, as ELAN shows
it: values are equally spaced.  An annotation that refers to another one has its times, or an equal part of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

SYMBOLIC_SUBDIVISION, SYMBOLIC_ASSOCIATION = "Symbolic_Subdivision", "Symbolic_Association"


class Span(NamedTuple):
    """Start and end in milliseconds; `divides` are those of what is divided into equal parts, if this is one."""

    start: float
    end: float
    divides: tuple[float, float] | None = None


class SlotTimes:
    """The times of slots, in milliseconds, which `fill` completes tier by tier.

    Parameters
    ----------
    values : mapping of str to int or None
        The slots in the order of the file; None without a value.
    """

    def __init__(self, values: Mapping[str, int | None]):
        self.known: dict[str, float] = {name: value for name, value in values.items() if value is not None}
        self._bounds: dict[str, tuple[float, float]] = {}  # of the slots without a value
        self._before: dict[str, float] = {}
        self._after: dict[str, float] = {}
        if len(self.known) < len(values):
            latest = 0.0
            for name, value in values.items():
                latest = latest if value is None else max(latest, value)
                self._before[name] = latest
            following: float | None = None
            for name, value in reversed(list(values.items())):
                following = following if value is None else float(value)
                self._after[name] = latest if following is None else following

    def fill(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Give times to the slots of a tier, given as the two slots of each annotation."""
        if all(name in self.known for pair in pairs for name in pair):
            return
        following = dict(pairs)
        ends = set(following.values())
        for first in [start for start, _ in pairs if start not in ends] or [pairs[0][0]]:
            chain = [first]
            members = {first}
            while (name := following.get(chain[-1])) is not None and name not in members:
                chain.append(name)
                members.add(name)
            self._space(chain)
        for pair in pairs:  # of a second annotation with the same slot
            self._space(pair)

    def _space(self, chain: Sequence[str]) -> None:
        if chain[0] not in self.known:
            self._set(chain[0], self._before[chain[0]], self._before[chain[0]], self._after[chain[0]])
        if chain[-1] not in self.known:
            self._set(chain[-1], self._after[chain[-1]], self._before[chain[-1]], self._after[chain[-1]])
        last = 0
        for position, name in enumerate(chain):
            if name not in self.known:
                continue
            start = self.known[chain[last]]
            end = max(start, self.known[name])
            for between in range(last + 1, position):
                share = (between - last) / (position - last)
                self._set(chain[between], start + share * (end - start), start, end)
            last = position

    def _set(self, name: str, time: float, start: float, end: float) -> None:
        self.known[name] = time
        self._bounds[name] = start, max(start, end)

    def span(self, first: str, last: str) -> Span:
        """Return the times of an annotation with these slots, of a tier that was filled."""
        start, end = self.known[first], self.known[last]
        if first in self._bounds or last in self._bounds:
            end = max(start, end)
            bounds = self._bounds.get(first, (start, start))[0], self._bounds.get(last, (end, end))[1]
            return Span(start, end, (min(bounds), max(bounds)))
        return Span(start, end)


def parts_of(parent: Span, count: int, is_association: bool) -> list[Span]:
    """Return the times of the annotations that refer to one with these times."""
    start, end, divides = parent
    if is_association:
        return [parent] * count
    bounds = [start + number * (end - start) / count for number in range(count)] + [end]
    return [Span(*pair, divides or (start, end)) for pair in pairwise(bounds)]


def in_sequence(names: Iterable[str], previous: Mapping[str, str]) -> list[str]:
    """Return siblings in their order: each after the one that is previous to it.

    Those without a previous one are in the order of `names`.  Siblings that are never reached, since each is previous
    to another, are missing.
    """
    names = list(names)
    following: dict[str, list[str]] = {}
    for name in names:
        if name in previous:
            following.setdefault(previous[name], []).append(name)
    waiting = [name for name in reversed(names) if name not in previous]
    ordered = []
    while waiting:
        ordered.append(waiting.pop())
        waiting += reversed(following.get(ordered[-1], []))
    return ordered
