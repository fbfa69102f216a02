"""Script files: which feature file (or part of one) each utterance lives in; and plain lists.

An SCP line is `path`, `logical=path` or `logical=path[first,last]`, frames counted from 0 and both inclusive.
Source: CNTK book 3.4.2 (HTKMLFReader), HTK Book (script files).
"""

import os
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from readers.common.faults import OnFault
from readers.common.files import atomic_write
from readers.common.names import key_of
from readers.common.text import quote_name, read_lines, split_fields
from readers.errors import FormatError
from readers.htk.mlf import HEADER

_ENTRY = re.compile(r"(?:([^=]+)=)?(.*?)(?:\[(\d{1,18}),(\d{1,18})\])?", re.DOTALL)


class ScpEntry(NamedTuple):
    """One utterance of an SCP.

    logical: its name; path: the file that holds it; start, end: first and last frame, inclusive, or None for the whole
    file; source_file, line: where the entry stands.
    """

    logical: str
    path: str
    start: int | None = None
    end: int | None = None
    source_file: str = ""
    line: int = 0

    @property
    def key(self) -> str:
        """What ties the utterance to its labels: the logical name without extension."""
        return key_of(self.logical)

    @property
    def place(self) -> str:
        """Where its frames begin; entries with the same place share a header."""
        return self.path

    @property
    def num_frames(self) -> int | None:
        """Frames of the range, or None when the line gives none and the file must tell."""
        return None if self.end is None else self.end - self.start + 1

    @property
    def where(self) -> str:
        return f"{self.source_file}:{self.line}"


def read_scp(
    path: str | os.PathLike, prefix: str = "", expand: bool = True, on_fault: OnFault | None = None
) -> list[ScpEntry]:
    """The entries of an SCP in file order; blank lines are passed over.

    prefix: put before every path (the part right of `=`), joined by one slash; backslashes in it become slashes.
    expand: without a prefix, the first `...` of a path becomes the directory of the SCP itself; a writer's list of
    output files wants it off.
    on_fault: told of each bad line, which is then passed over; by default the first is raised.
    Raises FormatError, with file and line, for a malformed entry, a range whose end is before its start, or an MLF.
    """
    prefix = prefix.replace("\\", "/").rstrip("/") if prefix else ""
    directory = posixpath.dirname(os.fspath(path).replace(os.sep, "/")) or "."
    entries = []
    lines = read_lines(path)
    if lines and (found := _other_kind(lines[0].strip())):  # else each of its lines would be a file that is missing
        fault = FormatError(f"{path}:1: {found}; expected lines path, name=path or name=path[first,last]")
        if on_fault is None:
            raise fault
        on_fault(fault)
        return []
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line:
            continue
        try:
            entries.append(_parse_entry(line, f"{path}", number, prefix, directory if expand else None))
        except FormatError as fault:
            if on_fault is None:
                raise
            on_fault(fault)
    return entries


def _other_kind(line: str) -> str | None:
    """What a file is that begins so, if it is one that is easily taken for an SCP."""
    if line == HEADER:
        return "a master label file"
    if re.fullmatch(r"\S+\s+\S+:\d+(\[[\d:,]*\])?", line):
        return f"{line!r}, a line of Kaldi's lists of archives, which KaldiReader reads"
    return None


def _parse_entry(line: str, source: str, number: int, prefix: str, directory: str | None) -> ScpEntry:
    logical, physical, start, end = _ENTRY.fullmatch(line).groups()
    if line.endswith("]") and end is None and re.search(r"\[[^/\]]*,[^/\]]*\]$", line):
        raise FormatError(
            f"{source}:{number}: {line!r} ends in a malformed range; expected [first,last] with whole numbers"
        )
    if not physical or line.startswith("="):
        part = "logical name" if line.startswith("=") else "path"
        raise FormatError(
            f"{source}:{number}: {line!r} has no {part}; expected path, name=path or name=path[first,last]"
        )
    if prefix:
        physical = f"{prefix}/{physical}"
    elif directory is not None:
        physical = physical.replace("...", directory, 1)
    if end is None:
        return ScpEntry(logical or physical, physical, None, None, source, number)
    first, last = int(start), int(end)
    if first > last:
        raise FormatError(f"{source}:{number}: frames [{first},{last}]; expected first <= last")
    return ScpEntry(logical or physical, physical, first, last, source, number)


def write_scp(path: str | os.PathLike, entries: Iterable[ScpEntry]) -> None:
    """Write entries, each in the shortest form that says all of it.

    Raises FormatError for a name that would be read back as something else (empty, with a line break or, in a logical
    name, an equals sign).
    """
    with atomic_write(path, "w") as file:
        for entry in entries:
            file.write(_format_entry(entry, path) + "\n")


def _format_entry(entry: ScpEntry, target: str | os.PathLike) -> str:
    text = entry.path if entry.logical == entry.path and "=" not in entry.path else f"{entry.logical}={entry.path}"
    if entry.end is not None:
        text += f"[{entry.start},{entry.end}]"
    try:
        parsed = None if set("\n\r\0") & set(text) else _parse_entry(text.strip(), "", 0, "", None)
    except FormatError:
        parsed = None
    if parsed is None or parsed[:4] != entry[:4]:
        raise FormatError(
            f"{target}: entry {text!r} cannot be written as an SCP line; expected names without = or line ends"
        )
    return text


def read_pairs(path: str | os.PathLike) -> list[tuple[str, str]]:
    """(source, target) of every line of an HCopy list; names with blanks stand in quotes.

    Raises FormatError, with file and line, for a line that is not two names.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        fields = split_fields(line, f"{path}:{number}") if line.strip() else None
        if fields is None:
            continue
        if len(fields) != 2:
            raise FormatError(
                f"{path}:{number}: {len(fields)} names; expected two, source and target, separated by blanks"
            )
        pairs.append((fields[0][0], fields[1][0]))
    return pairs


def write_pairs(path: str | os.PathLike, pairs: Iterable[tuple[str | Path, str | Path]]) -> None:
    """Write an HCopy list, one `source target` a line, quoted where needed."""
    with atomic_write(path, "w") as file:
        for source, target in pairs:
            file.write(f"{quote_name(os.fspath(source))} {quote_name(os.fspath(target))}\n")


def read_list(path: str | os.PathLike) -> list[str]:
    """The lines of a list of names, without surrounding blanks; blank lines are passed over."""
    return [line.strip() for line in read_lines(path) if line.strip()]
