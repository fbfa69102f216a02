"""TIMIT's own label files, and its phone map.

.PHN and .WRD hold `first-sample end-sample name` lines, .TXT one line `first-sample end-sample sentence`; times count
samples from 0, the end is exclusive.  The phone map has a line `61-name 48-name 39-name` for each phone, or the first
name alone where the phone is deleted.  Source: TIMIT documentation.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple

from readers.common.files import atomic_write
from readers.common.text import is_count, read_lines
from readers.errors import FormatError


class Segment(NamedTuple):
    """name (a phone, word or sentence) from sample start up to, not including, sample end."""

    start: int
    end: int
    name: str


def read_segments(path: str | os.PathLike) -> list[Segment]:
    """The segments of a .PHN or .WRD file in file order; they may overlap, as some words in TIMIT do.

    Raises FormatError, with file and line, for a malformed line, an end before its start, and an empty file.
    """
    segments = []
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if fields:
            segments.append(_segment(fields, f"{path}:{number}"))
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


def write_segments(path: str | os.PathLike, segments: Iterable[Segment]) -> None:
    """Write a .PHN or .WRD file."""
    with atomic_write(path, "w") as file:
        for start, end, name in segments:
            if name.split() != [name] or not 0 <= start <= end:
                raise FormatError(
                    f"{path}: segment {start} {end} {name!r}; expected 0 <= start <= end and a name without blanks"
                )
            file.write(f"{start} {end} {name}\n")


def read_sentence(path: str | os.PathLike) -> Segment:
    """The one line of a .TXT file; raises FormatError for anything else."""
    lines = [line for line in read_lines(path) if line.strip()]
    fields = lines[0].split(None, 2) if len(lines) == 1 else []
    if len(fields) != 3 or not (is_count(fields[0]) and is_count(fields[1])):
        raise FormatError(f"{path}:1: expected one line with start and end in samples, and the sentence")
    return Segment(int(fields[0]), int(fields[1]), fields[2].strip())


def write_sentence(path: str | os.PathLike, sentence: Segment) -> None:
    """Write a .TXT file."""
    with atomic_write(path, "w") as file:
        file.write(f"{sentence.start} {sentence.end} {sentence.name}\n")


def read_phone_map(path: str | os.PathLike, column: int = 2) -> dict[str, str | None]:
    """phone of the first column -> its name in another column (from 0), None for a phone that is deleted.

    `#` begins a comment line.  Raises FormatError, with file and line, for a line with another number of names and for
    a phone that is there twice.
    """
    phones: dict[str, str | None] = {}
    width = None
    for number, line in enumerate(read_lines(path), 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) > 1:
            width = width or len(fields)
            if len(fields) != width or column >= width:
                raise FormatError(
                    f"{path}:{number}: {len(fields)} names; expected {max(width, column + 1)}, or one alone"
                )
        if fields[0] in phones:
            raise FormatError(f"{path}:{number}: phone {fields[0]!r} is there a second time; expected each once")
        phones[fields[0]] = fields[column] if len(fields) > 1 else None
    if not phones:
        raise FormatError(f"{path}: no phones; expected lines of names")
    return phones
