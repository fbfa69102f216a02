"""CMUdict: lines `WORD  PH1 PH2 ...`, `WORD(2)` for further pronunciations; comments after `;;;` and ` #`."""

import os
import re
from typing import NamedTuple

from readers.common.text import read_lines
from readers.errors import FormatError

_NUMBERED = re.compile(r"(.+)\(\d+\)")


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


def read_cmudict(path: str | os.PathLike) -> list[CmuEntry]:
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
        fields = [] if line.startswith(";;;") else line.partition(" #")[0].split()
        if not fields:
            continue
        if len(fields) == 1:
            raise FormatError(f"{path}:{number}: no phones of '{fields[0]}'; expected `WORD  PH1 PH2 ...`")
        numbered = _NUMBERED.fullmatch(fields[0])
        entries.append(CmuEntry(numbered[1] if numbered else fields[0], tuple(fields[1:]), number))
    if not entries:
        raise FormatError(f"{path}: no pronunciations; expected lines `WORD  PH1 PH2 ...`")
    return entries
