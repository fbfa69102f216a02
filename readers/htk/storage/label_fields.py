"""The parts of label files as text: names of entries, times and label lines."""

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.text import canonical, escape, is_count, is_number, quote_name
from readers.errors import FormatError

if TYPE_CHECKING:
    from readers.htk.mlf import Label

HEADER = "#!MLF!#"
MAX_TIME = 10**15  # 100 ns; three years
_OCTAL = re.compile(r"((?:\\[0-3][0-7]{2})+)")
_NAME_LINE = re.compile(r'"(.*?)"\s*(->|=>)?(.*)')


def is_mlf(path: str | Path) -> bool:
    """Whether a file begins like a label file; False for compressed files and pipes, of which nothing is read."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(HEADER) + 1).rstrip() == HEADER.encode()


def check_header(line: str, path: str) -> None:
    """Raise FormatError unless a line is the first one of label files."""
    if line.strip() != HEADER:
        raise FormatError(f"{path}:1: first line {line.strip()[:40]!r}; expected {HEADER}")


def entry_name(text: str, where: str) -> str:
    """Return the unquoted name on the first line of an entry.

    A backslash is literal (names may be Windows paths), except before three octal digits.
    """
    match = _NAME_LINE.fullmatch(text)
    if not match or not match.group(1):
        raise FormatError(f"{where}: {text[:60]!r}; expected the quoted name of an entry")
    name, arrow, tail = match.groups()
    if arrow:
        raise FormatError(
            f'{where}: entry "{name}" {arrow} points to a directory of label files; '
            "expected the labels themselves; gather them into one MLF, for instance with HLEd"
        )
    if tail:
        raise FormatError(f'{where}: {tail[:40]!r} after the name "{name}"; expected nothing more on the line')
    return unescape_entry(name)


def unescape_entry(name: str) -> str:
    """Return the name of an entry with the characters of its octal codes."""
    if "\\" not in name:
        return name
    decode = lambda run: bytes(int(code, 8) for code in run.group(1)[1:].split("\\")).decode(errors="replace")  # noqa: E731
    return canonical(_OCTAL.sub(decode, name))


def not_closed(name: str, where: str) -> FormatError:
    """Return the error for an entry without a dot at its end."""
    return FormatError(f'{where}: entry "{name}" is not closed; expected a line with a single dot')


def parse_time(field: str, where: str) -> int | None:
    """Return a time in 100 ns units, None for -1.  Raises FormatError."""
    value = float(field)
    if value == -1:
        return None
    if not 0 <= value < MAX_TIME:
        raise FormatError(f"{where}: label time {field[:30]}; expected 0 to {MAX_TIME:g} (100 ns units)")
    return int(field) if is_count(field) else round(value)


def format_entry(name: str, labels: "Iterable[Label]", where: object) -> str:
    """Format an entry with its closing dot, as the lines of an MLF; `where` is the file, for messages."""
    lines = [format_label(label, f"{where}: entry {name!r}") for label in labels]
    return "\n".join([f'"{_escape_entry(name)}"', *lines, ".", ""])


def _escape_entry(name: str) -> str:
    name = re.sub(r"\\(?=[0-3][0-7]{2})", lambda _: "\\134", name)
    name = re.sub(r"\\$", lambda _: "\\134", name).replace('"', "\\042")
    return "".join(c if " " <= c <= "~" else escape(c) for c in name)


def format_label(label: "Label", where: str = "label") -> str:
    """Format a label as a line of an MLF, without the line end."""
    if label.start is None and label.end is not None:
        raise FormatError(f"{where}: label {label.name!r} ends at {label.end} but has no start; expected both or none")
    fields = [str(time) for time in (label.start, label.end) if time is not None]
    for name, score in ((label.name, label.score), *label.aux):
        plain = not is_number(name) and name not in (".", "///")
        fields.append(quote_name(name, force=not plain))
        if score is not None:
            fields.append(_format_score(score, where))
    return " ".join(fields)


def _format_score(score: float, where: str) -> str:
    score = float(score)
    if not math.isfinite(score):
        raise FormatError(f"{where}: score {score}; expected a finite number")
    fixed = f"{score:.6f}"
    return fixed if float(fixed) == score else repr(score)
