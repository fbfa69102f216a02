"""Master label files: time-aligned labels of many utterances in one text file.

A label line is `[start [end]] name [score] {aux-name [aux-score]}` with times in 100 ns units.  The auxiliary pairs are
higher levels (phone and word of a state), given only where such a unit begins.  CNTK's form without a mapping file,
`first-frame end-frame name class-id`, has frame numbers as times and the class as score.
If an entry has alternatives, separated by `///`, only the first is read.
Source: HTK Book 3.4, sections 6.2 and 6.3; CNTK book 3.4.2.
"""

import math
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from readers.common.faults import OnFault
from readers.common.file_part import FilePart
from readers.common.files import atomic_write
from readers.common.names import cut_extension, key_of, wildcard
from readers.common.text import escape, is_count, is_number, quote_name, read_lines, split_fields
from readers.errors import FormatError

HEADER = "#!MLF!#"
MAX_TIME = 10**15  # 100 ns; three years
_OCTAL = re.compile(r"((?:\\[0-3][0-7]{2})+)")
_NAME_LINE = re.compile(r'"(.*?)"\s*(->|=>)?(.*)')


class Label(NamedTuple):
    """One label line.

    Attributes
    ----------
    start, end : int or None
        Times in 100 ns units (frames in CNTK's form); None if not given.
    name : str
    score : float or None
    aux : tuple of (str, float or None)
        Name and score of the higher levels that begin here.
    """

    start: int | None
    end: int | None
    name: str
    score: float | None = None
    aux: tuple[tuple[str, float | None], ...] = ()


class MLF(Mapping):
    """Mapping from the key of an utterance to its labels, in file order, from one or more label files.

    A key is the name of an entry without quotes, leading `*/` and extension.  An entry whose name contains other
    wildcards (`*`, `?`) has no key, but `lookup` finds it.

    Attributes
    ----------
    faulty : set of str
        "file:line" of the entries that `read_mlf` skipped because of errors.
    """

    def __init__(self):
        self._labels: dict[str, list[Label]] = {}
        self._places: dict[str, tuple[str, int]] = {}
        self._any_path: set[str] = set()
        self._by_tail: dict[str, str] | None = None  # built on first use
        self.faulty: set[str] = set()
        self._patterns: list[tuple[re.Pattern, str, list[Label], tuple[str, int]]] = []

    def __getitem__(self, key: str) -> list[Label]:
        return self._labels[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    @property
    def patterns(self) -> list[str]:
        """Names of entries with wildcards other than a leading `*/`, in file order."""
        return [name for _, name, _, _ in self._patterns]

    def where(self, name: str) -> str:
        """Return "file:line" of the entry with this key, or that `lookup` finds; raises KeyError if there is none."""
        if name in self._places:
            file, line = self._places[name]
        elif (found := self._find(name)) is not None:
            file, line = found[1]
        else:
            raise KeyError(name)
        return f"{file}:{line}"

    def lookup(self, name: str) -> list[Label] | None:
        """Return the labels of an utterance, given its logical name or key; None if there is no entry for it.

        The first match counts of: the same key; a `*/` entry that equals the end of the name after a slash; the
        patterns, in file order.
        """
        found = self._find(name)
        return None if found is None else found[0]

    def expected_entry(self, name: str) -> str:
        """Return the end of a message about a missing entry: `expected an entry */u.lab`, and a similar entry if there
        is one.
        """
        tail = key_of(name).rsplit("/", 1)[-1]
        if self._by_tail is None:
            self._by_tail = {key.rsplit("/", 1)[-1]: key for key in reversed(self._labels)}
        other = self._by_tail.get(tail)
        return f"expected an entry */{tail}.lab" + (f", not {other}.lab: directories are compared" if other else "")

    def _find(self, name: str) -> tuple[list[Label], tuple[str, int]] | None:
        """Return (labels, (file, line)) of the entry for an utterance."""
        key = key_of(name)
        for candidate in (key, name) if key != name else (key,):  # a key may have a dot, as in sp0.9-utt
            if candidate in self._labels:
                return self._labels[candidate], self._places[candidate]
            tail = candidate
            while self._any_path and "/" in tail:
                tail = tail.split("/", 1)[1]
                if tail in self._any_path:
                    return self._labels[tail], self._places[tail]
        for expression, _, labels, place in self._patterns:
            if expression.fullmatch(key):
                return labels, place
        return None

    def add(self, name: str, labels: list[Label], file: str = "", line: int = 0) -> None:
        """Add an entry.  Raises FormatError if an entry with this name exists."""
        any_path = name.startswith("*/")
        key = key_of(name)
        if "*" in key or "?" in key:
            expression = re.compile(wildcard(cut_extension(name)), re.DOTALL)
            self._patterns.append((expression, name, labels, (file, line)))
            return
        if key in self._labels:
            raise FormatError(
                f"{file}:{line}: entry {key!r} is already at {self.where(key)}; expected each utterance once"
            )
        self._by_tail = None
        self._labels[key] = labels
        self._places[key] = (file, line)
        if any_path:
            self._any_path.add(key)


def read_mlf(
    path: str | os.PathLike,
    keys: Collection[str] | None = None,
    into: MLF | None = None,
    on_fault: OnFault | None = None,
) -> MLF:
    """Read a master label file.

    Parameters
    ----------
    path : path
        The file, plain or gzip.
    keys : collection of str, optional
        Read only these utterances (and all patterns); other entries are not parsed.
    into : MLF, optional
        Add the entries to this object, to combine several files.
    on_fault : callable, optional
        Called with the error of each bad line or entry, which is then skipped (of a repeated entry the first is kept).
        By default the first error is raised.

    Returns
    -------
    MLF

    Raises
    ------
    FormatError
        With file and line, for a missing header, an unclosed or repeated entry, an indirection (`->`, `=>`), and a
        malformed label line.

    References
    ----------
    HTK Book 3.4, section 6.3; CNTK book 3.4.2.
    """
    mlf = MLF() if into is None else into
    wanted = None if keys is None else _with_tails(keys)
    lines = read_lines(path)
    if not lines or lines[0].strip() != HEADER:
        found = lines[0].strip() if lines else ""
        raise FormatError(f"{path}:1: first line {found[:40]!r}; expected {HEADER}")
    source = f"{path}"
    index = first = 1

    def told(fault: FormatError) -> None:
        mlf.faulty.add(f"{source}:{first}")
        on_fault(fault)

    while index < len(lines):
        text = lines[index].strip()
        index += 1
        if not text or text == HEADER:  # concatenated files repeat the header
            continue
        first = index
        try:
            name = _entry_name(text, f"{source}:{first}")
            index = _find_dot(lines, first, source, name)
            if wanted is not None and not (key_of(name) in wanted or "*" in name[1:] or "?" in name):
                continue
            mlf.add(name, _parse_labels(lines, first, index - 1, source, on_fault and told), source, first)
        except FormatError as fault:
            if on_fault is None:
                raise
            told(fault)
            index = max(index, next((i + 1 for i in range(first, len(lines)) if lines[i].strip() == "."), len(lines)))
    return mlf


def _with_tails(keys: Collection[str]) -> set[str]:
    """Return the keys and their ends after each slash, which can be names of `*/` entries."""
    wanted = set(keys)
    for key in keys:
        while "/" in key:
            key = key.split("/", 1)[1]
            wanted.add(key)
    return wanted


def _entry_name(text: str, where: str) -> str:
    """Return the unquoted name on the first line of an entry.

    A backslash is literal (names may be Windows paths), except before three octal digits.
    """
    match = _NAME_LINE.fullmatch(text)
    if not match or not match.group(1):
        raise FormatError(f"{where}: {text[:60]!r}; expected the quoted name of an entry")
    name, arrow, rest = match.groups()
    if arrow:
        raise FormatError(
            f'{where}: entry "{name}" {arrow} points to a directory of label files; '
            "expected the labels themselves; gather them into one MLF, for instance with HLEd"
        )
    if rest:
        raise FormatError(f'{where}: {rest[:40]!r} after the name "{name}"; expected nothing more on the line')
    if "\\" not in name:
        return name
    return _OCTAL.sub(
        lambda run: bytes(int(code, 8) for code in run.group(1)[1:].split("\\")).decode(errors="replace"), name
    )


def _find_dot(lines: list[str], index: int, source: str, name: str) -> int:
    """Return the index of the line after the dot that closes the entry beginning at index."""
    begin = index
    while index < len(lines):
        if lines[index].strip() == ".":
            return index + 1
        index += 1
    raise FormatError(f'{source}:{begin}: entry "{name}" is not closed; expected a line with a single dot')


def _parse_labels(lines: list[str], first: int, last: int, source: str, on_fault: OnFault | None = None) -> list[Label]:
    """Parse the label lines first .. last-1, counted from 0."""
    labels = []
    append, intern = labels.append, sys.intern
    for index in range(first, last):
        line = lines[index]
        # Fast path for the usual line; _parse_label handles all others.
        if '"' not in line and "'" not in line and "\\" not in line:
            fields = line.split()
            if len(fields) == 4 and fields[0].isdigit() and fields[1].isdigit() and line.isascii():
                try:
                    start, end, score = int(fields[0]), int(fields[1]), float(fields[3])
                except ValueError:
                    pass
                else:
                    if start <= end < MAX_TIME and fields[3][-1].isdigit() and "_" not in fields[3]:
                        append(Label(start, end, intern(fields[2]), score))
                        continue
            elif not fields:
                continue
            elif fields == ["///"]:
                break
            pairs = [(field, False) for field in fields]
        else:
            pairs = split_fields(line, f"{source}:{index + 1}")
            if len(pairs) == 1 and pairs[0][1] and labels and labels[-1].end is not None:
                raise FormatError(
                    f"{source}:{index + 1}: entry name {line.strip()} among the labels of an entry; "
                    "expected a line with a single dot before it"
                )
        try:
            append(_parse_label(pairs, f"{source}:{index + 1}"))
        except FormatError as fault:
            if on_fault is None:
                raise
            on_fault(fault)
    return labels


def _parse_label(fields: list[tuple[str, bool]], where: str) -> Label:
    """Parse a label from its (field, quoted) pairs; a quoted field is never a number."""
    numeric = [not quoted and is_number(field) for field, quoted in fields]
    position = 0
    times: list[int | None] = [None, None]
    while position < 2 and position + 1 < len(fields) and numeric[position]:
        times[position] = _parse_time(fields[position][0], where)
        position += 1
    start, end = times
    if start is not None and end is not None and start > end:
        raise FormatError(f"{where}: label start {start}, end {end}; expected start <= end (100 ns units)")
    levels = []
    while position < len(fields):
        name = fields[position][0]
        position += 1
        score = None
        if position < len(fields) and numeric[position]:
            score = float(fields[position][0])
            position += 1
        levels.append((sys.intern(name), score))
    return Label(start, end, *levels[0], tuple(levels[1:]))


def _parse_time(field: str, where: str) -> int | None:
    value = float(field)
    if value == -1:
        return None
    if not 0 <= value < MAX_TIME:
        raise FormatError(f"{where}: label time {field[:30]}; expected 0 to {MAX_TIME:g} (100 ns units)")
    return int(field) if is_count(field) else round(value)


def write_mlf(path: str | os.PathLike, entries: Iterable[tuple[str, list[Label] | FilePart]]) -> None:
    """Write a master label file.

    Parameters
    ----------
    path : path
        File to write.
    entries : iterable of (str, list of Label or FilePart)
        Names exactly as they are written, such as `*/utt.rec`, and labels.  Missing times are omitted; scores are
        written with enough digits to restore them exactly.  A FilePart has the text of `format_entry`.

    Raises
    ------
    FormatError
        For a label with an end but no start, and an auxiliary score without a name.
    """
    with atomic_write(path, "w") as file:
        file.write(HEADER + "\n")
        for name, labels in entries:
            if isinstance(labels, FilePart):
                file.write(labels.read_bytes().decode("utf-8", "surrogateescape"))
            else:
                file.write(format_entry(name, labels, path))


def format_entry(name: str, labels: Iterable[Label], where: object) -> str:
    """Format an entry with its closing dot, as the lines of an MLF; `where` is the file, for messages."""
    lines = [format_label(label, f"{where}: entry {name!r}") for label in labels]
    return "\n".join([f'"{_escape_entry(name)}"', *lines, ".", ""])


def _escape_entry(name: str) -> str:
    name = re.sub(r"\\(?=[0-3][0-7]{2})", lambda _: "\\134", name)
    name = re.sub(r"\\$", lambda _: "\\134", name).replace('"', "\\042")
    return "".join(c if " " <= c <= "~" else escape(c) for c in name)


def format_label(label: Label, where: str = "label") -> str:
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
