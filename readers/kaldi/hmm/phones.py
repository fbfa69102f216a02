"""What Kaldi's language directories say about phones: their places in words.

Source: Kaldi's documentation, "Data preparation", and prepare_lang.sh.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast, get_args

from readers.common.text import is_count, read_rows
from readers.errors import FormatError

Boundary = Literal["nonword", "begin", "end", "internal", "singleton"]


def read_word_boundary(path: str | Path, numbers: Mapping[str, int]) -> dict[int, Boundary]:
    """Read `word_boundary.int` or `word_boundary.txt`.

    Parameters
    ----------
    path : path
        Lines ``PHONE KIND``; phones are numbers or names.
    numbers : mapping of str to int
        Number of each phone, for names.

    Returns
    -------
    dict of int to str
        Kind of each phone: nonword, begin, end, internal or singleton.

    Raises
    ------
    FormatError
        With file and line, for other lines, unknown names and phones that are listed twice.
    OSError
    """
    kinds: dict[int, Boundary] = {}
    for where, fields in read_rows(path):
        if len(fields) != 2 or fields[1] not in get_args(Boundary):
            raise FormatError(
                f"{where}: {' '.join(fields)[:60]!r}; expected a phone and {', '.join(get_args(Boundary))}"
            )
        phone = int(fields[0]) if is_count(fields[0]) else numbers.get(fields[0])
        if phone is None:
            raise FormatError(f"{where}: phone {fields[0][:40]!r} is not in phones.txt; expected one of its phones")
        if phone in kinds:
            raise FormatError(f"{where}: phone {fields[0]} again; expected each phone once")
        kinds[phone] = cast(Boundary, fields[1])
    return kinds
