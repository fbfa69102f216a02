"""Script files, which list the feature file (or part of one) of each utterance, and plain lists.

An SCP line is `path`, `logical=path` or `logical=path[first,last]`; frames are counted from 0, both inclusive.
In a list of audio files they are samples, and `[first,last,channel]` also names a channel, counted from 0.
Source: CNTK book 3.4.2 (HTKMLFReader); HTK Book 3.4, section 4.2 (script files).
"""

import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from readers.common.faults import OnFault
from readers.common.files import write_lines
from readers.common.names import key_of
from readers.common.report import RunReport
from readers.common.text import ParsedLines, quote_name, read_lines, read_text_bytes, split_fields
from readers.errors import FormatError
from readers.htk.parameter_file import read_htk_header
from readers.htk.storage.label_fields import HEADER

_RANGE = re.compile(r"\[([0-9]{1,18}),([0-9]{1,18})(?:,([0-9]{1,4}))?\]")


class ScpEntry(NamedTuple):
    """One utterance of an SCP.

    Attributes
    ----------
    logical : str
        Name of the utterance.
    path : str
        File with its frames.
    start, end : int or None
        First and last frame, inclusive; None for the whole file.
    source_file, line : str, int
        Where the entry was read.
    channel : int or None
        Channel of an audio file, counted from 0; None if the entry names none.
    """

    logical: str
    path: str
    start: int | None = None
    end: int | None = None
    source_file: str = ""
    line: int = 0
    channel: int | None = None

    @property
    def key(self) -> str:
        """The key of the utterance, which its labels share: the logical name without extension."""
        return key_of(self.logical)

    @property
    def place(self) -> str:
        """The file with its first frame; entries with the same place share a header."""
        return self.path

    @property
    def num_frames(self) -> int | None:
        """Number of frames of the range, or None if the line has none."""
        return None if self.start is None or self.end is None else self.end - self.start + 1

    @property
    def source(self) -> str:
        """The path with the range and channel, as they are written."""
        if self.end is None:
            return self.path
        channel = "" if self.channel is None else f",{self.channel}"
        return f"{self.path}[{self.start},{self.end}{channel}]"

    @property
    def where(self) -> str:
        """The place of the entry, `file:line`."""
        return f"{self.source_file}:{self.line}"


def read_scp(
    path: str | Path,
    prefix: str = "",
    expand: bool = True,
    on_fault: OnFault | None = None,
    channels: bool = False,
) -> Sequence[ScpEntry]:
    """Read the entries of an SCP.

    Parameters
    ----------
    path : path
        The SCP; blank lines are ignored.
    prefix : str
        Directory put before every path (the part right of `=`), joined by one slash; backslashes become slashes.
    expand : bool
        Whether, without a prefix, the first `...` of a path is replaced by the directory of the SCP, unless a file of
        this name exists.  Lists of output files are read with False.
    on_fault : callable, optional
        Called with the error of each bad line, which is then skipped.  By default the first error is raised.
    channels : bool
        Whether a range may also name a channel, as in lists of audio files.

    Returns
    -------
    sequence of ScpEntry
        In file order.  Each is parsed when it is asked for, so that a long list takes little more memory than its text.

    Raises
    ------
    FormatError
        With file and line, for a malformed entry, a range whose end is before its start, and an MLF in place of an SCP.

    References
    ----------
    CNTK book 3.4.2; HTK Book 3.4, section 4.2.
    """
    prefix = prefix.replace("\\", "/").rstrip("/") if prefix else ""
    directory = posixpath.dirname(os.fspath(path).replace(os.sep, "/")) or "."
    source = f"{path}"
    folder = directory if expand else None
    parse = partial(_parse_entry, source=source, prefix=prefix, directory=folder, channels=channels)
    entries: ParsedLines[ScpEntry] = ParsedLines(read_text_bytes(path, exact=True), parse)
    for position, number, line in entries.lines():
        if number == 1 and (problem := _other_kind(line)):  # otherwise each line would be reported as a missing file
            fault = FormatError(f"{path}:1: {problem}; expected lines path, name=path or name=path[first,last]")
            if on_fault is None:
                raise fault
            on_fault(fault)
            return []
        try:
            parse(line, number)
        except FormatError as fault:
            if on_fault is None:
                raise
            on_fault(fault)
        else:
            entries.append(position, number)
    return entries


def _other_kind(line: str) -> str | None:
    """Name the kind of a file that is easily mistaken for an SCP, given its first line; else None."""
    if line == HEADER:
        return "a master label file"
    if re.fullmatch(r"[^\s=]+\s+\S+:\d+(\[[\d:,]*\])?", line):
        return f"{line!r}, a line of a Kaldi scp file, which KaldiReader reads"
    return None


def _parse_entry(
    line: str, number: int, source: str, prefix: str, directory: str | None, channels: bool = False
) -> ScpEntry:
    extent = _RANGE.fullmatch(line, line.rfind("[")) if line.endswith("]") and "[" in line else None
    name = line[: extent.start()] if extent else line
    logical, equals, physical = name.partition("=")
    if not (equals and logical):
        logical = ""
        physical = name
    malformed = line.endswith("]") and extent is None and _ends_in_range(line[:-1])
    if malformed or (extent is not None and extent[3] is not None and not channels):
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
    elif directory is not None and "..." in physical and not _is_name_with_dots(physical):
        physical = physical.replace("...", directory, 1)
    if extent is None:
        return ScpEntry(logical or physical, physical, None, None, source, number)
    first, last = int(extent[1]), int(extent[2])
    if first > last:
        raise FormatError(f"{source}:{number}: frames [{first},{last}]; expected first <= last")
    channel = None if extent[3] is None else int(extent[3])
    return ScpEntry(logical or physical, physical, first, last, source, number, channel)


def _is_name_with_dots(path: str) -> bool:
    """Whether a path contains `...` in the names of files that exist, such as um...er.wav."""
    return path.find("...") > 0 and os.path.exists(path)  # noqa: PTH110  (no error for long names)


def _ends_in_range(text: str) -> bool:
    """Whether a `[` and a comma occur in this order after the last / and ]."""
    last = text[max(text.rfind("/"), text.rfind("]")) + 1 :]
    return "," in last.partition("[")[2]


def write_scp(path: str | Path, entries: Iterable[ScpEntry]) -> None:
    """Write an SCP, each entry in the shortest form that represents it.

    Parameters
    ----------
    path : path
        File to write.
    entries : iterable of ScpEntry

    Raises
    ------
    FormatError
        For a name that would be read differently: empty, with a line break or, in a logical name, an equals sign.
    """
    write_lines(path, (_format_entry(entry, path) for entry in entries))


def _format_entry(entry: ScpEntry, target: str | Path) -> str:
    text = entry.path if entry.logical == entry.path and "=" not in entry.path else f"{entry.logical}={entry.path}"
    text += entry.source[len(entry.path) :]
    try:
        odd = set("\n\r\0") & set(text) or _other_kind(text.strip())
        parsed = None if odd else _parse_entry(text.strip(), 0, "", "", None, channels=True)
    except FormatError:
        parsed = None
    if parsed is None or (*parsed[:4], parsed.channel) != (*entry[:4], entry.channel):
        raise FormatError(
            f"{target}: entry {text!r} cannot be written as an SCP line; expected names without = or line ends"
        )
    return text


def read_pairs(path: str | Path) -> Sequence[tuple[str, str]]:
    """Read the (source, target) pairs of an HCopy list; names with blanks are quoted.

    Raises FormatError, with file and line, for a line that does not have two names.
    """
    pairs = ParsedLines(read_text_bytes(path, exact=True), partial(_parse_pair, source=f"{path}"))
    for position, number, line in pairs.lines():
        _parse_pair(line, number, f"{path}")
        pairs.append(position, number)
    return pairs


def _parse_pair(line: str, number: int, source: str) -> tuple[str, str]:
    fields = split_fields(line, f"{source}:{number}", exact=True)
    if len(fields) != 2:
        raise FormatError(
            f"{source}:{number}: found {len(fields)}; expected two names, source and target, separated by blanks"
        )
    if any("\0" in name for name, _ in fields):
        raise FormatError(f"{source}:{number}: a name with the escape \\000; expected names of files")
    return fields[0][0], fields[1][0]


def write_pairs(path: str | Path, pairs: Iterable[tuple[str | Path, str | Path]]) -> None:
    """Write an HCopy list, one `source target` pair per line, quoted where necessary."""
    write_lines(path, (" ".join(quote_name(os.fspath(name)) for name in pair) for pair in pairs))


def read_list(path: str | Path) -> list[str]:
    """Read a list of names of files.

    Parameters
    ----------
    path : path
        Text file with one name per line.

    Returns
    -------
    list of str
        The lines without surrounding blanks; blank lines are skipped.
    """
    return [line.strip() for line in read_lines(path, exact=True) if line.strip()]


def read_feature_list(path: str | Path) -> Sequence[ScpEntry]:
    """Return the entries of a list of feature files.  Raises FormatError for no entries, and for repeated names."""
    entries = read_scp(path)
    if not entries:
        raise FormatError(f"{path}: no entries; expected a feature file on each line")
    lines: dict[str, str] = {}
    for entry in entries:
        if lines.setdefault(entry.key, entry.where) != entry.where:
            raise FormatError(f"{entry.where}: '{entry.key}' is already at {lines[entry.key]}; expected each name once")
    return entries


def frame_counts(path: str | Path) -> dict[str, int]:
    """Return the number of frames of each utterance of a list.  Raises FormatError for a line without frame range."""
    counts = {}
    for entry in read_scp(path):
        if entry.num_frames is None:
            raise FormatError(f"{entry.where}: {entry.path} without frame range; expected {entry.path}[0,last]")
        counts[entry.key] = entry.num_frames
    return counts


def write_feature_list(scp: Path, files: Iterable[tuple[str, Path]]) -> RunReport:
    """Write `name.ext=path[0,last]` for every (utterance name, HTK feature file) that can be read.

    blockRandomize needs the frame range (CNTK book, 3.4.2).  Missing and damaged files are reported.
    """
    report = RunReport("feature files")
    entries = []
    for name, path in files:
        try:
            header = read_htk_header(path)
        except FileNotFoundError:
            report.skip(name, f"{path}: no such file")
        except FormatError as fault:
            report.fail(name, str(fault))
        else:
            entries.append(ScpEntry(f"{name}{path.suffix}", str(path), 0, header.num_frames - 1))
            report.done()
    write_scp(scp, entries)
    return report
