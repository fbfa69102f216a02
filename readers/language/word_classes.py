"""Tables of word classes: lines `word class`."""

from pathlib import Path

from readers.common.text import read_rows
from readers.errors import FormatError


def read_word_classes(path: str | Path) -> dict[str, str]:
    """Read a table of word classes.

    Parameters
    ----------
    path : path
        File with lines `word class`.

    Returns
    -------
    dict of str to str
        Word -> class, in file order.

    Raises
    ------
    FormatError
        With file and line, for a line without exactly two fields and a repeated word.
    """
    classes: dict[str, str] = {}
    for where, fields in read_rows(path):
        if len(fields) != 2 or fields[0] in classes:
            raise FormatError(f"{where}: {' '.join(fields)[:60]!r}; expected `word class`, each word once")
        classes[fields[0]] = fields[1]
    if not classes:
        raise FormatError(f"{path}: no entries; expected lines `word class`")
    return classes
