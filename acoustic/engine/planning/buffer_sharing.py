"""Which matrices share memory: interval colouring over the steps of one forward and backward pass."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

FOREVER = 1 << 60

MatrixKey = tuple[str, str]  # ("value" | "work" | "gradient", node name)


@dataclass
class Lifetime:
    """A matrix of `size` elements, first written at step `start` and last read at step `end`.

    in_place: matrices that step `start` may overwrite while it reads them for the last time; group: only matrices of
    the same group share memory.
    """

    key: MatrixKey
    size: int
    start: int
    end: int
    in_place: tuple[MatrixKey, ...] = ()
    group: Hashable = None


@dataclass(frozen=True)
class Plan:
    """slab: index of each matrix's slab; sizes: elements of each slab."""

    slab: dict[MatrixKey, int]
    sizes: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.sizes)


def share(lifetimes: Sequence[Lifetime]) -> Plan:
    """Place every matrix in a slab so that no two matrices of a slab are alive at the same time.

    Greedy in order of start: over an operand that is read for the last time where allowed, else in the smallest free
    slab that is large enough, else in the largest free slab, which grows, else in a new one.
    """
    slab: dict[MatrixKey, int] = {}
    sizes: list[int] = []
    groups: list[Hashable] = []
    busy: dict[int, Lifetime] = {}  # slab -> the matrix in it
    for new in sorted(lifetimes, key=lambda lifetime: lifetime.start):
        chosen = next(
            (
                slab[key]
                for key in new.in_place
                if key in slab
                and (old := busy.get(slab[key])) is not None
                and old.key == key
                and old.end == new.start
                and (old.size, old.group) == (new.size, new.group)
            ),
            None,
        )
        if chosen is None:
            free = [s for s, group in enumerate(groups) if group == new.group and busy[s].end < new.start]
            enough = [s for s in free if sizes[s] >= new.size]
            if enough:
                chosen = min(enough, key=lambda s: sizes[s])
            elif free:
                chosen = max(free, key=lambda s: sizes[s])
                sizes[chosen] = new.size
            else:
                chosen = len(sizes)
                sizes.append(new.size)
                groups.append(new.group)
        slab[new.key] = chosen
        busy[chosen] = new
    return Plan(slab, tuple(sizes))


def separate(lifetimes: Sequence[Lifetime]) -> Plan:
    """Place every matrix in a slab of its own."""
    return Plan({lifetime.key: k for k, lifetime in enumerate(lifetimes)}, tuple(l.size for l in lifetimes))
