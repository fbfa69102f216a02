"""How utterances are named: the key that ties features, labels and lattices of one utterance together."""

import re

_EXTENSION = re.compile(r"\.[^./\\:]*$")


def cut_extension(name: str) -> str:
    """The name without its last extension; a dot in a directory part does not count.

    >>> cut_extension("dir.1/an4-fash.lab"), cut_extension("dir.1/an4-fash")
    ('dir.1/an4-fash', 'dir.1/an4-fash')
    """
    return _EXTENSION.sub("", name)


def key_of(name: str) -> str:
    """The key of a logical name: outer quotes, a leading `*/` and the extension removed; nothing else is changed.

    Comparison of keys is exact: case and directories count.  Source: CNTK book 3.4.2 and the rules of its reader.
    """
    if len(name) >= 2 and name[0] == name[-1] == '"':
        name = name[1:-1]
    if name.startswith("*/"):
        name = name[2:]
    return cut_extension(name)


def apart_by_extension(entry, other) -> str:
    """What a message adds where two entries have one key although they are named differently; else nothing.

    An entry has a `key` and, in an SCP, a `logical` name that the key was made of.
    """
    names = {getattr(one, "logical", one.key) for one in (entry, other)}
    return "; what follows the last dot is no part of a name" if len(names) > 1 else ""
