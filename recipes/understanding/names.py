"""The names of data/names.txt, some of which never occur in training."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from readers.common.text import filled_lines
from readers.errors import FormatError
from recipes.understanding.grammar import Names

NAMES = Path(__file__).parent / "data" / "names.txt"
# Of each ten names of these kinds, those with these indices occur only in development or only in test queries.
HELD_OUT_KINDS = ("city", "airline", "airport")
HELD_OUT_PLACES = {"dev": (3,), "test": (6, 8)}
EVERY = 10


def read_names(path: Path = NAMES) -> dict[str, list[str]]:
    """Return kind -> names.  Raises FormatError."""
    names: dict[str, list[str]] = {}
    for where, line in filled_lines(path, comment="#"):
        kind, tab, name = line.partition("\t")
        if not tab or name in names.get(kind, ()):
            raise FormatError(f"{where}: {line[:60]!r}; expected `kind TAB name`, each once")
        names.setdefault(kind, []).append(name)
    return names


def names_of(part: str, names: Mapping[str, Sequence[str]]) -> Names:
    """Return the names that queries of `train`, `dev` or `test` may contain."""
    places = {
        kind: [n for n in range(len(listed)) if _owner(kind, n) in (None, part)] for kind, listed in names.items()
    }
    return Names({kind: [names[kind][index] for index in indices] for kind, indices in places.items()}, places)


def _owner(kind: str, place: int) -> str | None:
    """Return the only set that may contain a name; None if all may."""
    if kind in HELD_OUT_KINDS:
        for part, places in HELD_OUT_PLACES.items():
            if place % EVERY in places:
                return part
    return None
