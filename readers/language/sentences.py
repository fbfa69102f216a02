"""Texts with a sentence on each line, in parts that can be read independently of each other.

A part of a plain file is a range of bytes; the lines that begin in it belong to it.  A compressed file, or one in
UTF-16, is one part.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

from readers.common.text import GZIP_MAGIC, UTF16_MARKS, decode_lines, read_lines, read_rows
from readers.errors import FormatError

PART_BYTES = 8 << 20


class TextPart(NamedTuple):
    """The lines of a text that begin in a range of bytes; the whole text if `end` is None."""

    path: str | Path
    start: int = 0
    end: int | None = None


def text_parts(path: str | Path) -> list[TextPart]:
    """Divide a text into parts of PART_BYTES.

    Parameters
    ----------
    path : path
        Plain text in UTF-8 is divided, other text is not.

    Returns
    -------
    list of TextPart

    Raises
    ------
    OSError
    """
    name = os.fspath(path)
    status = Path(path).stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size <= PART_BYTES:
        return [TextPart(name)]
    with open(name, "rb") as file:  # noqa: PTH123
        if file.read(2) in (GZIP_MAGIC, *UTF16_MARKS):
            return [TextPart(name)]
    return [
        TextPart(name, start, min(start + PART_BYTES, status.st_size)) for start in range(0, status.st_size, PART_BYTES)
    ]


def read_part(part: TextPart) -> list[list[str]]:
    """Read the words of each line of a part that is not blank.

    Parameters
    ----------
    part : TextPart

    Returns
    -------
    list of list of str

    Raises
    ------
    FormatError
        As `read_lines`.
    OSError
    """
    return [words for words in map(str.split, part_lines(part)) if words]


def part_lines(part: TextPart) -> list[str]:
    """Return the lines of a part as they are.  Raises what `read_part` does."""
    if part.end is None:
        return read_lines(part.path)
    with open(part.path, "rb") as file:  # noqa: PTH123
        if part.start:  # the line before is another part's
            file.seek(part.start - 1)
            file.readline()
        begin = file.tell()
        raw = file.read(max(part.end - begin, 0))
        if raw and not raw.endswith(b"\n"):
            raw += file.readline()
    if not part.start:
        return decode_lines(raw, part.path)
    try:
        return decode_lines(b"\n" + raw, part.path)[1:]  # a byte order mark would be removed at the beginning
    except FormatError:
        return decode_lines(b"\n" * _newlines(part.path, begin) + raw, part.path)  # raises it with its line


def _newlines(path: str | Path, end: int) -> int:
    """Number of the lines that end before a byte of a file."""
    count = 0
    with open(path, "rb") as file:  # noqa: PTH123
        while end > 0 and (piece := file.read(min(PART_BYTES, end))):
            count += piece.count(b"\n")
            end -= len(piece)
    return count


def read_word_list(path: str | Path) -> list[str]:
    """Read the words of a file with one word per line; blank lines do not matter.

    Parameters
    ----------
    path : path

    Returns
    -------
    list of str

    Raises
    ------
    FormatError
        With file and line, for a line of several words, and for a file without words.
    """
    words = []
    for where, fields in read_rows(path):
        if len(fields) > 1:
            raise FormatError(f"{where}: {' '.join(fields)[:60]!r}; expected one word a line")
        words += fields
    if not words:
        raise FormatError(f"{path}: no words; expected one per line")
    return words
