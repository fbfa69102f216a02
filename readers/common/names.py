"""The key of an utterance, which connects its features, labels and lattices, and tables of many keys.

A million keys take 150 MB in a dictionary.  The tables here keep 64-bit hashes in sorted arrays, 16 bytes a key, and
compare the keys themselves only where hashes are equal.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from readers.common.text import canonical
from readers.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_EXTENSION = re.compile(r"\.[^./\\:]*$")


def cut_extension(name: str) -> str:
    """Return the name without its last extension; dots in directory names do not count.

    >>> cut_extension("dir.1/an4-fash.lab"), cut_extension("dir.1/an4-fash")
    ('dir.1/an4-fash', 'dir.1/an4-fash')
    """
    return _EXTENSION.sub("", name)


def key_of(name: str) -> str:
    """Return the key of a logical name: without outer quotes, a leading `*/` and the extension.

    Case and directories count; equivalent letters of Unicode are equal.  Source: CNTK book 3.4.2, and its reader.
    """
    if len(name) >= 2 and name[0] == name[-1] == '"':
        name = name[1:-1]
    if name.startswith("*/"):
        name = name[2:]
    return canonical(cut_extension(name))


def names_for_any_path(names: Collection[str]) -> dict[str, str]:
    """Map each name to what follows `*/` in an MLF: its last part, or all parts where several names end alike."""
    short = naming_for_any_path(names)
    return {name: short(name) for name in names}


def naming_for_any_path(names: Collection[str]) -> Callable[[str], str]:
    """Return a function that maps names like `names_for_any_path`, without keeping all of them."""
    doubtful = several(hashes_of(map(_last_part, names)))
    counts = Counter(_last_part(name) for name, flag in zip(names, doubtful) if flag)
    ambiguous = {tail for tail, count in counts.items() if count > 1}
    return lambda name: name.lstrip("/") if _last_part(name) in ambiguous else _last_part(name)


def _last_part(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def by_unique_ends(names: Collection[str]) -> dict[str, str]:
    """Map the last part of names (after the last slash) to the name, unless several names end alike."""
    counts = Counter(name.rpartition("/")[2] for name in names)
    return {end: name for name in names if counts[end := name.rpartition("/")[2]] == 1}


def with_tails(keys: Iterable[str]) -> Iterator[str]:
    """Yield the keys of utterances and their ends after each slash, which can be names of `*/` entries."""
    for key in keys:
        yield key
        while "/" in key:
            key = key.split("/", 1)[1]
            yield key


def hashes_of(names: Iterable[str]) -> "npt.NDArray[np.int64]":
    """Return a 64-bit hash of each name, (n,) int64; other processes have other hashes."""
    import numpy as np  # commands that compute nothing start without it

    return np.fromiter(map(hash, names), np.int64)


class KeySet:
    """A set of names, of which only the hashes are kept; it takes another name for one of them once in 10^13 times.

    Parameters
    ----------
    names : iterable of str
    """

    def __init__(self, names: Iterable[str]):
        import numpy as np

        self._hashes = np.unique(hashes_of(names))

    @classmethod
    def of_hashes(cls, hashes: "npt.ArrayLike") -> "KeySet":
        """Return the set of the names with these hashes, an array of int64."""
        import numpy as np

        keys = cls(())
        keys._hashes = np.unique(np.asarray(hashes, np.int64))
        return keys

    def __contains__(self, name: object) -> bool:
        number = hash(name)
        index = self._hashes.searchsorted(number)
        return bool(index < len(self._hashes) and self._hashes[index] == number)

    def contains(self, hashes: "npt.NDArray[np.int64]") -> "npt.NDArray[np.bool_]":
        """Return which of (n,) int64 hashes are those of names in the set, (n,) bool."""
        return _member(hashes, self._hashes)


class KeyTable:
    """Numbers of names, 0 for the first that was added.

    Parameters
    ----------
    name_of : callable
        Returns the name with a number.

    Examples
    --------
    >>> names = ["b", "a"]
    >>> table = KeyTable(names.__getitem__)
    >>> table.extend(hashes_of(names))
    >>> table.find("a"), table.find("c")
    (1, None)
    """

    def __init__(self, name_of: Callable[[int], str]):
        self._name_of = name_of
        # Sorted hashes and their numbers; each run is longer than those after it together.
        self._runs: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def extend(self, hashes: "npt.NDArray[np.int64]") -> None:
        """Add the names with these hashes, (n,) int64, which get the next numbers."""
        import numpy as np

        numbers = np.arange(self._size, self._size + len(hashes))
        self._size += len(hashes)
        while self._runs and len(self._runs[-1][0]) <= 2 * len(hashes):
            earlier_hashes, earlier_numbers = self._runs.pop()
            hashes = np.concatenate((earlier_hashes, hashes))
            numbers = np.concatenate((earlier_numbers, numbers))
        order = np.argsort(hashes, kind="stable")
        self._runs.append((hashes[order], numbers[order]))

    def find(self, name: str) -> int | None:
        """Return the number of a name, None for a name that was not added."""
        number = hash(name)
        for hashes, numbers in self._runs:
            index = int(hashes.searchsorted(number))
            while index < len(hashes) and hashes[index] == number:
                if self._name_of(int(numbers[index])) == name:
                    return int(numbers[index])
                index += 1
        return None

    def known(self, hashes: "npt.NDArray[np.int64]") -> "npt.NDArray[np.bool_]":
        """Return which of (n,) int64 hashes are those of names in the table, (n,) bool."""
        import numpy as np

        flags = np.zeros(len(hashes), np.bool_)
        for run, _ in self._runs:
            flags |= _member(hashes, run)
        return flags


def _member(hashes: "npt.NDArray[np.int64]", run: "npt.NDArray[np.int64]") -> "npt.NDArray[np.bool_]":
    """Return which hashes are in a sorted array."""
    indices = run.searchsorted(hashes)
    indices[indices == len(run)] = 0
    return run[indices] == hashes if len(run) else indices < 0


def several(hashes: "npt.NDArray[np.int64]") -> "npt.NDArray[np.bool_]":
    """Return which of (n,) int64 hashes occur more than once, (n,) bool."""
    import numpy as np

    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    equal = np.zeros(len(ordered) + 1, np.bool_)
    equal[1:-1] = ordered[1:] == ordered[:-1]
    result = np.empty(len(ordered), np.bool_)
    result[order] = equal[1:] | equal[:-1]
    return result


def repeated(names: Iterable[str], name_of: Callable[[int], str]) -> Iterator[tuple[int, int]]:
    """Yield the index of each name that is the same as an earlier one, and that of the first such name, in order.

    names: read once; name_of(i) is the i-th of them.
    """
    import numpy as np

    first: dict[str, int] = {}
    for index in np.flatnonzero(several(hashes_of(names))).tolist():
        earlier = first.setdefault(name_of(index), index)
        if earlier != index:
            yield index, earlier


def wildcard(pattern: str) -> str:
    """Return the regular expression of a pattern of HTK: `*` matches any characters, including slashes, `?` one.

    With DOTALL it takes time proportional to the lengths of pattern and name: the text before each `*` is matched at
    the first possible place, where matching another place cannot help.
    """
    pieces = [re.escape(piece).replace(r"\?", ".") for piece in re.split(r"\*+", pattern)]
    if len(pieces) == 1:
        return pieces[0]
    first, *middle, last = pieces
    return first + "".join(f"(?>.*?{piece})" for piece in middle) + ".*" + last


class Logical(Protocol):
    """An entry of a list of utterances."""

    @property
    def logical(self) -> str:
        """The name from which its key was made."""
        ...


def apart_by_extension(entry: Logical, other: Logical) -> str:
    """Return a hint for a message about two entries with one key, if their names differ in the extension; else ""."""
    return "; an extension is not part of the name" if entry.logical != other.logical else ""


def compile_expression(text: str, where: str) -> re.Pattern[str]:
    """Compile a regular expression that a user wrote.  Raises ConfigError, beginning with `where`."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of syntax that may change
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as fault:
        raise ConfigError(f"{where}: {text[:60]!r}: {fault}; expected a regular expression") from fault
