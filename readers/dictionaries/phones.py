"""Changes the phones of a dictionary to those of a model set: without marks of stress."""

import math
import re
from collections.abc import Callable, Iterable

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
        Pronunciations that have become equal are merged; the merged one has the highest of their probabilities.
    num_merged : int
        Number of pronunciations that have disappeared.
    """
    merged: dict[Pronunciation, float | None] = {}
    count = 0
    for entry in entries:
        phones = tuple(new for phone in entry.phones for new in change(phone))
        key = entry._replace(phones=phones, probability=None)
        count += key in merged
        known = merged.get(key, entry.probability)
        merged[key] = max(known, entry.probability, key=lambda p: math.inf if p is None else p)
    return [key._replace(probability=probability) for key, probability in merged.items()], count
