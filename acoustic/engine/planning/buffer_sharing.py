"""Which matrices may lie in the same memory: interval colouring over the steps of one forward and backward pass."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

FOREVER = 1 << 60


@dataclass
class Lifetime:
    """A matrix of `size` elements, written first at step `start` and read last at step `end`, both included.

    in_place: matrices whose last reading, at step `start`, may be overwritten while it happens; group: only matrices of
    one group share memory.
    """

    key: Hashable
    size: int
    start: int
    end: int
    in_place: tuple[Hashable, ...] = ()
    group: Hashable = None


@dataclass(frozen=True)
class Plan:
    """slab[key]: index of the matrix's memory; sizes: elements of each slab."""

    slab: dict[Hashable, int]
    sizes: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.sizes)


def share(lifetimes: Sequence[Lifetime]) -> Plan:
    """Place every matrix in a slab so that no two in one slab are alive at once.

    Greedy in order of start: into the dying operand where allowed, else into the smallest free slab that is large
    enough, else into the largest free one, which grows, else into a new one.
    """
    slab: dict[Hashable, int] = {}
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
    """Every matrix in memory of its own."""
    return Plan({lifetime.key: k for k, lifetime in enumerate(lifetimes)}, tuple(l.size for l in lifetimes))
