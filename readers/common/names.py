"""The key of an utterance, which connects its features, labels and lattices."""

import re
import warnings
from collections import Counter
from collections.abc import Collection

from readers.errors import ConfigError

_EXTENSION = re.compile(r"\.[^./\\:]*$")


def cut_extension(name: str) -> str:
    """Return the name without its last extension; dots in directory names do not count.

    >>> cut_extension("dir.1/an4-fash.lab"), cut_extension("dir.1/an4-fash")
    ('dir.1/an4-fash', 'dir.1/an4-fash')
    """
    return _EXTENSION.sub("", name)


def key_of(name: str) -> str:
    """Return the key of a logical name: without outer quotes, a leading `*/` and the extension.

    Keys are compared exactly: case and directories count.  Source: CNTK book 3.4.2 and the rules of its reader.
    """
    if len(name) >= 2 and name[0] == name[-1] == '"':
        name = name[1:-1]
    if name.startswith("*/"):
        name = name[2:]
    return cut_extension(name)


def names_for_any_path(names: Collection[str]) -> dict[str, str]:
    """Map each name to what follows `*/` in an MLF: its last part, or all parts where several names end alike."""
    counts = Counter(name.rsplit("/", 1)[-1] for name in names)
    tails = ((name, name.rsplit("/", 1)[-1]) for name in names)
    return {name: tail if counts[tail] == 1 else name.lstrip("/") for name, tail in tails}


def by_unique_ends(names: Collection[str]) -> dict[str, str]:
    """Map the last part of names (after the last slash) to the name, unless several names end alike."""
    counts = Counter(name.rpartition("/")[2] for name in names)
    return {end: name for name in names if counts[end := name.rpartition("/")[2]] == 1}


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


def apart_by_extension(entry, other) -> str:
    """Return a hint for a message about two entries with one key, if their names differ only in the extension; else "".

    An entry has a `key` and, in an SCP, the `logical` name from which the key was made.
    """
    names = {getattr(one, "logical", one.key) for one in (entry, other)}
    return "; an extension is not part of the name" if len(names) > 1 else ""


def compile_expression(text: str, where: str) -> re.Pattern:
    """Compile a regular expression that a user wrote.  Raises ConfigError, beginning with `where`."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of syntax that may change
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as fault:
        raise ConfigError(f"{where}: {text[:60]!r}: {fault}; expected a regular expression") from fault
