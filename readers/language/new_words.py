"""Lists of words to add to a recogniser, one per line, with their pronunciations or without.

    TALLINN T AA L IH N
    ROSENCRANTZ

A word with several pronunciations has several lines.  Empty lines and lines that begin with # are ignored.
"""

from pathlib import Path

from readers.common.text import canonical, read_rows
from readers.errors import FormatError

Pronunciations = dict[str, list[tuple[str, ...]]]  # of words; empty for a word without one


def read_new_words(path: str | Path) -> Pronunciations:
    """Read a list of words.

    Parameters
    ----------
    path : path
        File with lines `WORD` or `WORD phone phone ...`.

    Returns
    -------
    dict of str to list of tuple of str
        Word -> its pronunciations, in file order.

    Raises
    ------
    FormatError
        For a file that is not UTF-8, or has no word.
    OSError
    """
    words: Pronunciations = {}
    for _, (word, *phones) in read_rows(path, comment="#"):
        pronunciations = words.setdefault(canonical(word), [])
        if phones and tuple(phones) not in pronunciations:
            pronunciations.append(tuple(phones))
    if not words:
        raise FormatError(f"{path}: no words; expected one per line, with its pronunciation or without")
    return words
