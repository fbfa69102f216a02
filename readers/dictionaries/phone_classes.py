"""Phones by manner of articulation: for pictures of confusions, and for figures of alignments."""

from collections.abc import Collection, Iterable, Sequence

SILENCE = "silence"
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
    "closures": ("bcl", "dcl", "gcl", "pcl", "tcl", "kcl", "vcl", "cl"),
    SILENCE: ("epi", "pau", "h#", "sil", "sp"),
}
# Silence in the alignments of other programs: Kaldi, MFA, WebMAUS.
PAUSES = frozenset((*CLASSES[SILENCE], "", "<eps>", "<sil>", "silence", "<p:>"))
MOST_PHONES = (
    0.9  # of the different labels of an alignment of phones; a set of other labels has one like phones by chance
)
_PLACE = {
    phone: (number, place) for number, phones in enumerate(CLASSES.values()) for place, phone in enumerate(phones)
}


def phone_class(symbol: str) -> str | None:
    """Return the class of a phone, in upper or lower case and with or without stress; None if it is no phone."""
    position = _position(symbol)
    return None if position is None else list(CLASSES)[position[0]]


def are_phones(symbols: Collection[str]) -> bool:
    """Whether nearly all of several different labels are phones."""
    return bool(symbols) and sum(_position(symbol) is not None for symbol in symbols) >= MOST_PHONES * len(symbols)


def is_pause(symbol: str) -> bool:
    """Whether a label is one of silence, such as `sil` or an empty one."""
    return symbol.lower() in PAUSES


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
    places = [_position(symbol) for symbol in symbols]
    if not symbols or None in places:
        return symbols, []
    ordered = [symbol for _, symbol in sorted(zip(places, symbols))]
    counts = _count([phone_class(symbol) for symbol in ordered])
    return ordered, counts


def _position(symbol: str) -> tuple[int, int] | None:
    return _PLACE.get(symbol.lower().rstrip("0123456789"))


def _count(names: Sequence[str | None]) -> list[tuple[str, int]]:
    return [(name, names.count(name)) for name in dict.fromkeys(names) if name is not None]
