"""CMUdict: lines `WORD  PH1 PH2 ...`, `WORD(2)` for further pronunciations; comments after `;;;` and ` #`."""

import re
from pathlib import Path
from typing import NamedTuple

from readers.common.text import read_lines
from readers.errors import FormatError

COMMENT = ";;;"
VARIANT = re.compile(r"(.+)\([0-9]+\)")
_TRAILING_COMMENT = re.compile(r"\s#.*")


class CmuEntry(NamedTuple):
    """A pronunciation of the CMU dictionary.

    Attributes
    ----------
    word : str
        Without the number of the pronunciation.
    phones : tuple of str
        With stress marks.
    line : int
        Line number, from 1.
    """

    word: str
    phones: tuple[str, ...]
    line: int


def read_cmudict(path: str | Path) -> list[CmuEntry]:
    """Read the pronunciations of a CMUdict file.

    Parameters
    ----------
    path : path
        The dictionary.

    Returns
    -------
    list of CmuEntry
        In file order.

    Raises
    ------
    FormatError
        For a word without phones and a file without words.
    """
    entries = []
    for number, line in enumerate(read_lines(path), 1):
        fields = split_cmu_line(line)
        if fields is None:
            continue
        word, phones = fields
        if not phones:
            raise FormatError(f"{path}:{number}: no phones of '{word}'; expected `WORD  PH1 PH2 ...`")
        entries.append(CmuEntry(word, tuple(phones), number))
    if not entries:
        raise FormatError(f"{path}: no pronunciations; expected lines `WORD  PH1 PH2 ...`")
    return entries


def split_cmu_line(line: str) -> tuple[str, list[str]] | None:
    """Split a line into the word, without the number of the pronunciation, and phones; None if only a comment."""
    fields = [] if line.startswith(COMMENT) else _TRAILING_COMMENT.sub("", line).split()
    if not fields:
        return None
    variant = VARIANT.fullmatch(fields[0])
    return variant[1] if variant else fields[0], fields[1:]
