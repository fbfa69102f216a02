"""What Kaldi's language directories say about phones: their places in words, and the phones of words.

Source: Kaldi's documentation, "Data preparation", and prepare_lang.sh.
"""

from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Literal, cast, get_args

from readers.common.text import is_count, read_rows
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation
from readers.language.att import EPSILON

NUMERIC = ".int"  # suffix of files with numbers for names
Boundary = Literal["nonword", "begin", "end", "internal", "singleton"]


def read_word_boundary(path: str | Path, numbers: Mapping[str, int]) -> dict[int, Boundary]:
    """Read `word_boundary.int` or `word_boundary.txt`.

    Parameters
    ----------
    path : path
        Lines ``PHONE KIND``; phones are numbers in a file NAME.int, else names.
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
    is_numeric = Path(path).suffix == NUMERIC
    kinds: dict[int, Boundary] = {}
    for where, fields in read_rows(path):
        if len(fields) != 2 or fields[1] not in get_args(Boundary):
            raise FormatError(
                f"{where}: {' '.join(fields)[:60]!r}; expected a phone and {', '.join(get_args(Boundary))}"
            )
        phone = numbers.get(fields[0])
        if is_numeric:
            phone = int(fields[0]) if is_count(fields[0]) else None
        if phone is None:
            raise FormatError(f"{where}: phone {fields[0][:40]!r} is not in phones.txt; expected one of its phones")
        if phone in kinds:
            raise FormatError(f"{where}: phone {fields[0]} again; expected each phone once")
        kinds[phone] = cast(Boundary, fields[1])
    return kinds


def read_align_lexicon(path: str | Path, words: Mapping[int, str], phones: Mapping[int, str]) -> list[Pronunciation]:
    """Read `align_lexicon.int` or `align_lexicon.txt`.

    Parameters
    ----------
    path : path
        Lines ``WORD WORD PHONE PHONE ...``, the second word being the one that is written, <eps> for none; numbers in a
        file NAME.int, else names.  Lines of the first word <eps>, for silence, are left out.
    words, phones : mapping of int to str
        Names by number.

    Returns
    -------
    list of Pronunciation

    Raises
    ------
    FormatError
        With file and line, for lines without phones, and numbers without a name.
    OSError
    """

    def name(field: str, names: Mapping[int, str], where: str) -> str:
        if not is_numeric:
            return field
        text = names.get(int(field)) if is_count(field) else None
        if text is None:
            raise FormatError(f"{where}: {field[:40]!r} has no name; expected numbers of words.txt and phones.txt")
        return text

    is_numeric = Path(path).suffix == NUMERIC
    entries = []
    for where, fields in read_rows(path):
        if len(fields) < 3:
            raise FormatError(f"{where}: {' '.join(fields)[:60]!r}; expected two words and at least one phone")
        word = name(fields[0], words, where)
        written = name(fields[1], words, where)
        if word != EPSILON:
            spelling = tuple(name(field, phones, where) for field in fields[2:])
            output = "" if written == EPSILON else written
            entries.append(Pronunciation(word, None if output == word else output, None, spelling))
    return entries


def with_positions(entries: Iterable[Pronunciation], phones: Container[str]) -> list[Pronunciation]:
    """Return entries with the names of phones at their places, such as AH_B, where these are among the phones."""
    positioned = []
    for entry in entries:
        last = len(entry.phones) - 1
        marks = ["S" if last == 0 else "B" if i == 0 else "E" if i == last else "I" for i in range(last + 1)]
        names = (f"{phone}_{mark}" for phone, mark in zip(entry.phones, marks))
        spelling = tuple(name if name in phones else phone for name, phone in zip(names, entry.phones))
        positioned.append(entry._replace(phones=spelling))
    return positioned
