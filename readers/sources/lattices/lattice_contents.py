"""Tables of contents of lattice archives, as CNTK has them: lines `utterance=archive[position]`.

An empty archive is that of the line before.  A relative archive is looked for beside the table, then from the current
directory; with a prefix, it is only looked for there.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from readers.common.report import Figures, missing
from readers.common.text import canonical, filled_lines
from readers.errors import FormatError
from readers.sources.lattices.lattice_archive import LatticeArchive

_LINE = re.compile(r"([^=]+)=(.*?)(?:\[([0-9]{1,19})\])?")


class ContentsEntry(NamedTuple):
    """Where the lattice of an utterance is.

    Attributes
    ----------
    path : str
        File.
    position : int or None
        In an archive; None for a file of one lattice.
    where : str
        "file:line" of the table.
    """

    path: str
    position: int | None
    where: str

    def require(self) -> Path:
        """Return the file.  Raises FormatError if it is not there."""
        path = Path(self.path)
        if not path.is_file():
            raise FormatError(f"{self.where}: {path} is no file; expected an archive of lattices")
        return path


def contents_of(archive: LatticeArchive, name: str) -> Iterator[str]:
    """Yield the lines for all utterances of an archive, which has the given name beside the table."""
    for utterance in archive.names:
        yield f"{utterance}={name}[{archive.place(utterance)}]"
        name = ""


def read_contents(path: str | Path, prefix: str = "") -> dict[str, ContentsEntry]:
    """Read a table of contents.

    Parameters
    ----------
    path : str or Path
    prefix : str
        Directory of the archives; by default see above.

    Returns
    -------
    dict of str to ContentsEntry
        By the names of the utterances.

    Raises
    ------
    FormatError
        For other lines, a repeated utterance, no archive, and an empty table.
    """
    entries: dict[str, ContentsEntry] = {}
    archive = ""
    for where, line in filled_lines(path, exact=True):
        match = _LINE.fullmatch(line)
        if match is None:
            raise FormatError(f"{where}: {line[:60]!r}; expected utterance=archive[position]")
        name, file, position = match.groups()
        name = canonical(name)
        if file:
            archive = _resolved(file, Path(path), prefix)
        elif not archive or position is None:
            raise FormatError(f"{where}: no archive; expected utterance=archive[position]")
        if name in entries:
            raise FormatError(f"{where}: '{name}' is already at {entries[name].where}; expected each utterance once")
        entries[name] = ContentsEntry(archive, None if position is None else int(position), where)
    if not entries:
        raise FormatError(f"{path}: no entries; expected lines utterance=archive[position]")
    return entries


def _resolved(file: str, contents: Path, prefix: str) -> str:
    if prefix:
        return str(Path(prefix) / file)
    beside = contents.parent / file
    return str(beside if beside.exists() else file)


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    entries = read_contents(path)
    archives = dict.fromkeys(entry.path for entry in entries.values())
    return [
        ("utterances", f"{len(entries)}"),
        ("archives", ", ".join(archives) + missing(archives).replace(",", ";")),
        ("first", next(iter(entries))),
    ]
