"""Lists of words to add to a recogniser, one per line, with their pronunciations or without.

    TALLINN T AA L IH N
    ROSENCRANTZ

A word with several pronunciations has several lines.  Empty lines and lines that begin with # are ignored.
"""

from pathlib import Path

from readers.common.text import canonical, read_lines

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
        For a file that is not UTF-8.
    OSError
    """
    words: Pronunciations = {}
    for line in read_lines(path):
        word, *phones = line.split() or ["#"]
        if not word.startswith("#"):
            pronunciations = words.setdefault(canonical(word), [])
            if phones and tuple(phones) not in pronunciations:
                pronunciations.append(tuple(phones))
    return words
