"""Changes the phones of a dictionary to those of a model set: without marks of stress, or by a table."""

import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from readers.common.text import read_rows
from readers.errors import ConfigError, FormatError
from readers.htk.dictionary import Pronunciation

_STRESSED = re.compile(r"([A-Za-z]+)[012]")


def without_stress(phone: str) -> str:
    """Return a phone without CMUdict's mark of stress: `AH` for `AH0`, `AH1` and `AH2`.

    Parameters
    ----------
    phone : str

    Returns
    -------
    str
    """
    stressed = _STRESSED.fullmatch(phone)
    return stressed[1] if stressed else phone


def read_phone_replacements(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read the table of the phones that replace others.

    Parameters
    ----------
    path : path
        Lines `phone new-phone ...`; a phone alone is deleted.  `#` begins a comment line.

    Returns
    -------
    dict of str to tuple of str
        Phone -> the phones that take its place, in order.

    Raises
    ------
    FormatError
        For a repeated phone, with file and line, and for a file without phones.
    """
    replacements: dict[str, tuple[str, ...]] = {}
    for where, fields in read_rows(path, comment="#"):
        if fields[0] in replacements:
            raise FormatError(f"{where}: phone {fields[0]!r} is repeated; expected each once")
        replacements[fields[0]] = tuple(fields[1:])
    if not replacements:
        raise FormatError(f"{path}: no phones; expected lines `phone new-phone ...`")
    return replacements


def change_phones(
    entries: Iterable[Pronunciation], change: Callable[[str], Iterable[str]]
) -> tuple[list[Pronunciation], int]:
    """Replace each phone of a dictionary.

    Parameters
    ----------
    entries : iterable of Pronunciation
    change : callable
        Returns the phones that take the place of a phone.

    Returns
    -------
    changed : list of Pronunciation
        Pronunciations that have become equal are merged; the one with the highest probability is kept.
    num_merged : int
        Number of pronunciations that have disappeared.
    """
    merged: dict[Pronunciation, Pronunciation] = {}
    count = 0
    for entry in entries:
        changed = entry._replace(phones=tuple(new for phone in entry.phones for new in change(phone)))
        key = changed._replace(probability=None, silence=None)
        count += key in merged
        merged[key] = max(merged.get(key, changed), changed, key=_rank)
    return list(merged.values()), count


def _rank(entry: Pronunciation) -> float:
    return math.inf if entry.probability is None else entry.probability


def check_phones(entries: Iterable[Pronunciation], where: object) -> None:
    """Raise ConfigError for phones that the name of a triphone cannot contain."""
    for phone in sorted({phone for entry in entries for phone in entry.phones}):
        if set(phone) & set("-+"):
            raise ConfigError(
                f"{where}: phone '{phone}'; expected names without - and +, which separate the phones of a triphone; "
                "rename it with the option map_phones"
            )
