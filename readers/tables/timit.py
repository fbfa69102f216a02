"""TIMIT label files and phone maps.

.PHN and .WRD files have lines `first-sample end-sample name`, .TXT one line `first-sample end-sample sentence`; samples
are counted from 0, the end is exclusive.  A phone map has a line `61-name 48-name 39-name` for each phone, or only the
first name if the phone is deleted.  Source: TIMIT documentation.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from readers.common.files import atomic_write, write_lines
from readers.common.report import Figures
from readers.common.text import is_count, read_rows
from readers.errors import FormatError


class Segment(NamedTuple):
    """A phone, word or sentence.

    Attributes
    ----------
    start, end : int
        Samples, end exclusive.
    name : str
    """

    start: int
    end: int
    name: str


def read_segments(path: str | Path) -> list[Segment]:
    """Read a .PHN or .WRD file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    list of Segment
        In file order; they may overlap, as some words of TIMIT do.

    Raises
    ------
    FormatError
        With file and line, for a malformed line, an end before its start, and an empty file.

    References
    ----------
    TIMIT documentation.
    """
    segments = [_segment(fields, where) for where, fields in read_rows(path)]
    if not segments:
        raise FormatError(f"{path}: no segments; expected lines `start end name`")
    return segments


def _segment(fields: list[str], where: str) -> Segment:
    if len(fields) != 3 or not (is_count(fields[0]) and is_count(fields[1])):
        raise FormatError(f"{where}: {' '.join(fields)[:60]!r}; expected start and end in samples, and a name")
    start, end = int(fields[0]), int(fields[1])
    if start > end:
        raise FormatError(f"{where}: segment start {start}, end {end}; expected start <= end (samples)")
    return Segment(start, end, fields[2])


def write_segments(path: str | Path, segments: Iterable[Segment]) -> None:
    """Write a .PHN or .WRD file."""
    with atomic_write(path, "w") as file:
        for start, end, name in segments:
            if name.split() != [name] or not 0 <= start <= end:
                raise FormatError(
                    f"{path}: segment {start} {end} {name!r}; expected 0 <= start <= end and a name without blanks"
                )
            file.write(f"{start} {end} {name}\n")


def write_sentence(path: str | Path, sentence: Segment) -> None:
    """Write a .TXT file."""
    write_lines(path, [f"{sentence.start} {sentence.end} {sentence.name}"])


def read_phone_map(path: str | Path, column: int = 2) -> dict[str, str | None]:
    """Read a phone map.

    Parameters
    ----------
    path : path
        Lines with the names of a phone in several sets; `#` begins a comment line.
    column : int
        Column of the target names, counted from 0.

    Returns
    -------
    dict of str to (str or None)
        Name in the first column -> name in `column`; None for a deleted phone.

    Raises
    ------
    FormatError
        With file and line, for a line with another number of names and a repeated phone.

    References
    ----------
    K.-F. Lee and H.-W. Hon, IEEE Trans. ASSP 37(11), 1989, for the maps to 48 and 39 phones.
    """
    phones: dict[str, str | None] = {}
    width = None
    for where, fields in read_rows(path, comment="#"):
        if len(fields) > 1:
            width = width or len(fields)
            if len(fields) != width or column >= width:
                raise FormatError(f"{where}: {len(fields)} names; expected {max(width, column + 1)}, or only one")
        if fields[0] in phones:
            raise FormatError(f"{where}: phone {fields[0]!r} is repeated; expected each once")
        phones[fields[0]] = fields[column] if len(fields) > 1 else None
    if not phones:
        raise FormatError(f"{path}: no phones; expected lines of names")
    return phones


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    segments = read_segments(path)
    return [("segments", len(segments)), ("ends at", f"sample {max(segment.end for segment in segments)}")]
