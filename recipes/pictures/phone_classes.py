"""Phones by manner of articulation, for pictures of confusions."""

from collections.abc import Iterable, Sequence

# ARPAbet without stress: TIMIT's 61 phones, the 48 and 39 of Lee and Hon (1989), and the 39 of CMUdict.
CLASSES = {
    "vowels": (
        *("iy", "ih", "ix", "ey", "eh", "ae", "aa", "ao", "ow", "uh", "uw", "ux", "ah", "ax", "ax-h", "axr", "er"),
        *("aw", "ay", "oy"),
    ),
    "glides, liquids": ("l", "el", "r", "w", "wh", "y"),
    "nasals": ("m", "em", "n", "en", "nx", "ng", "eng"),
    "fricatives": ("s", "z", "sh", "zh", "f", "v", "th", "dh", "hh", "hv"),
    "affricates": ("ch", "jh"),
    "stops": ("b", "d", "g", "p", "t", "k", "dx", "q"),
    "closures, silence": (*("bcl", "dcl", "gcl", "pcl", "tcl", "kcl", "vcl", "cl", "epi", "pau", "h#", "sil", "sp"),),
}
_PLACE = {
    phone: (number, place) for number, phones in enumerate(CLASSES.values()) for place, phone in enumerate(phones)
}


def grouped(symbols: Iterable[str]) -> tuple[list[str], list[tuple[str, int]]]:
    """Sort symbols by phone class, if all of them are phones.

    Parameters
    ----------
    symbols : iterable of str
        Words or phones; upper case and a digit of stress at the end do not matter.

    Returns
    -------
    ordered : list of str
        By class, or alphabetically if some symbols are no phones.
    classes : list of (str, int)
        Name and number of symbols of each class that occurs; empty if some symbols are no phones.
    """
    symbols = sorted(symbols)
    places = [_PLACE.get(symbol.lower().rstrip("0123456789")) for symbol in symbols]
    if not symbols or None in places:
        return symbols, []
    ordered = [symbol for _, symbol in sorted(zip(places, symbols))]
    counts = _count([_PLACE[symbol.lower().rstrip("0123456789")][0] for symbol in ordered])
    return ordered, [(list(CLASSES)[number], count) for number, count in counts]


def _count(numbers: Sequence[int]) -> list[tuple[int, int]]:
    return [(number, numbers.count(number)) for number in dict.fromkeys(numbers)]
