"""Master label files: time-aligned labels of many utterances in one text file.

A label line is `[start [end]] name [score] {aux-name [aux-score]}` with times in 100 ns units.  The auxiliary pairs are
higher levels (phone and word of a state), given only where such a unit begins.  CNTK's form without a mapping file,
`first-frame end-frame name class-id`, has frame numbers as times and the class as score.
If an entry has alternatives, separated by `///`, only the first is read.
Source: HTK Book 3.4, sections 6.2 and 6.3; CNTK book 3.4.2.
"""

import re
import sys
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from readers.common.faults import OnFault
from readers.common.file_part import FilePart
from readers.common.files import atomic_write
from readers.common.names import KeySet, cut_extension, key_of, wildcard, with_tails
from readers.common.report import Figures
from readers.common.text import canonical, is_number, read_lines, split_fields
from readers.errors import FormatError
from readers.htk.storage.label_fields import (
    HEADER,
    MAX_TIME,
    check_header,
    entry_name,
    format_entry,
    not_closed,
    parse_time,
)
from readers.htk.units import seconds

if TYPE_CHECKING:
    from readers.htk.storage.label_index import LabelIndex

LARGE = 1 << 22  # bytes; the labels of larger files stay there and are parsed when they are asked for


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


class _Entries:
    """Entries whose labels are in memory, numbered in their order; has the look-ups of a `LabelIndex`."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._rows: list[tuple[str, list[Label], tuple[str, int]]] = []  # name, labels, (file, line)
        self._by_tail: dict[str, str] | None = None  # built on first use

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def add(self, name: str, labels: list[Label], place: tuple[str, int]) -> None:
        self._numbers[key_of(name)] = len(self._rows)
        self._by_tail = None
        self._rows.append((name, labels, place))

    def find(self, key: str, any_path: bool = False) -> int | None:
        number = self._numbers.get(key)
        return None if number is None or (any_path and not self.name(number).startswith("*/")) else number

    def ending(self, end: str) -> str | None:
        if self._by_tail is None:
            self._by_tail = {key.rsplit("/", 1)[-1]: key for key in reversed(self._numbers)}
        return self._by_tail.get(end)

    def name(self, number: int) -> str:
        return self._rows[number][0]

    def key(self, number: int) -> str:
        return key_of(self.name(number))

    def labels(self, number: int) -> list[Label]:
        return self._rows[number][1]

    def where(self, number: int) -> tuple[str, int]:
        return self._rows[number][2]


class MLF(Mapping[str, list[Label]]):
    """Mapping from the key of an utterance to its labels, in file order, from one or more label files.

    A key is the name of an entry without quotes, leading `*/` and extension.  An entry whose name contains other
    wildcards (`*`, `?`) has no key, but `lookup` finds it.

    Attributes
    ----------
    faulty : set of str
        "file:line" of the entries that `read_mlf` skipped because of errors.
    """

    def __init__(self) -> None:
        self.faulty: set[str] = set()
        self._small = _Entries()
        self._patterns = _Entries()
        self._expressions: list[re.Pattern[str]] = []  # of the patterns
        self._large: LabelIndex | None = None  # the entries of large files, after the others
        self._bytes = 0  # in files

    @property
    def _indexes(self) -> "tuple[_Entries | LabelIndex, ...]":
        return (self._small,) if self._large is None else (self._small, self._large)

    def __getitem__(self, key: str) -> list[Label]:
        if (entry := self._exactly(key)) is None:
            raise KeyError(key)
        index, number = entry
        return index.labels(number)

    @property
    def is_large(self) -> bool:
        """Whether labels are read from the files when they are asked for."""
        return self._large is not None

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._exactly(key) is not None

    def __iter__(self) -> Iterator[str]:
        for index in self._indexes:
            yield from map(index.key, range(len(index)))

    def __len__(self) -> int:
        return sum(map(len, self._indexes))

    @property
    def patterns(self) -> list[str]:
        """Names of entries with wildcards other than a leading `*/`, in file order."""
        return list(map(self._patterns.name, range(len(self._patterns))))

    def where(self, name: str) -> str:
        """Return "file:line" of the entry with this key, or that `lookup` finds; raises KeyError if there is none."""
        entry = self._exactly(name) or self._find(name)
        if entry is None:
            raise KeyError(name)
        return _place(*entry)

    def lookup(self, name: str) -> list[Label] | None:
        """Return the labels of an utterance, given its logical name or key; None if there is no entry for it.

        The first match counts of: the same key; a `*/` entry that equals the end of the name after a slash; the
        patterns, in file order.
        """
        entry = self.entry(name)
        return None if entry is None else entry[0]

    def entry(self, name: str) -> tuple[list[Label], str] | None:
        """Return the labels that `lookup` finds and the "file:line" of their entry; None if there is none."""
        entry = self._find(name)
        if entry is None:
            return None
        index, number = entry
        return index.labels(number), _place(index, number)

    def expected_entry(self, name: str) -> str:
        """Return the end of a message about a missing entry: `expected an entry */u.lab`, and a similar entry if there
        is one.
        """
        tail = key_of(name).rsplit("/", 1)[-1]
        ending = next(filter(None, (index.ending(tail) for index in self._indexes)), None)
        return f"expected an entry */{tail}.lab" + (f", not {ending}.lab: directories are compared" if ending else "")

    def _find(self, name: str) -> "tuple[_Entries | LabelIndex, int] | None":
        """Return the index with the entry for an utterance, and its number there."""
        key = key_of(name)
        name = canonical(name)
        for candidate in (key, name) if key != name else (key,):  # a key may have a dot, as in sp0.9-utt
            if (entry := self._exactly(candidate)) is not None:
                return entry
            tail = candidate
            while "/" in tail:
                tail = tail.split("/", 1)[1]
                if (entry := self._exactly(tail, any_path=True)) is not None:
                    return entry
        for number, expression in enumerate(self._expressions):
            if expression.fullmatch(key):
                return self._patterns, number
        return None

    def _exactly(self, key: str, any_path: bool = False) -> "tuple[_Entries | LabelIndex, int] | None":
        """Return what `_find` returns for the entry with a key; any_path: only for one that was written `*/key`."""
        for index in self._indexes:
            if (number := index.find(key, any_path)) is not None:
                return index, number
        return None

    def add(self, name: str, labels: list[Label], file: str = "", line: int = 0) -> None:
        """Add an entry.  Raises FormatError if an entry with this name exists."""
        if self._is_new(file, name, labels, line):
            self._small.add(name, labels, (file, line))

    def _is_new(self, file: str, name: str, labels: list[Label], line: int, earlier: int = 0) -> bool:
        """Keep an entry whose name is a pattern and return False, or check that its name is new and return True.

        earlier: line of an entry with this name in the same file, 0 if there is none.
        """
        key = key_of(name)
        if "*" in key or "?" in key:
            self._expressions.append(re.compile(wildcard(cut_extension(name)), re.DOTALL))
            self._patterns.add(name, labels, (file, line))
            return False
        entry = self._exactly(key)
        if earlier or entry is not None:
            where = f"{file}:{earlier}" if earlier or entry is None else _place(*entry)
            raise FormatError(f"{file}:{line}: entry {key!r} is already at {where}; expected each utterance once")
        return True

    def _refuse(self, file: str, on_fault: OnFault, line: int, fault: Exception) -> None:
        """Report a fault of the entry at this line."""
        self.faulty.add(f"{file}:{line}")
        on_fault(fault)

    def _read_large(self, path: str | Path, wanted: KeySet | None = None, on_fault: OnFault | None = None) -> None:
        """Add the entries of a large file, like `read_mlf`."""
        from readers.htk.storage.label_index import LabelIndex, LabelText  # imports numba

        text = LabelText(path)
        source = f"{path}"
        text.check_header()
        if self._large is None:
            self._large = LabelIndex(_parse_labels, self._small)
        refuse = None if on_fault is None else partial(self._refuse, source, on_fault)
        self._large.add_file(text, partial(self._is_new, source), wanted, refuse)

    def _grows_large(self, path: str | Path) -> bool:
        """Count the bytes of a file; return whether it, or all together, are large.  A pipe, read once, is not."""
        is_file = Path(path).is_file()
        self._bytes += Path(path).stat().st_size if is_file else 0
        return is_file and (self._large is not None or self._bytes > LARGE)


def _place(index: "_Entries | LabelIndex", number: int) -> str:
    return "{}:{}".format(*index.where(number))


def read_mlf(
    path: str | Path,
    keys: Container[str] | None = None,
    into: MLF | None = None,
    on_fault: OnFault | None = None,
) -> MLF:
    """Read a master label file.

    Parameters
    ----------
    path : path
        The file, plain or gzip.
    keys : collection of str or KeySet, optional
        Read only these utterances (and all patterns); other entries are not parsed.  A KeySet is one of `wanted_keys`.
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
    assert keys is None or isinstance(keys, KeySet | Collection)
    mlf = MLF() if into is None else into
    if mlf._grows_large(path):
        mlf._read_large(path, keys if keys is None or isinstance(keys, KeySet) else wanted_keys(keys), on_fault)
        return mlf
    accepted_keys = keys if keys is None or isinstance(keys, KeySet) else set(with_tails(keys))
    lines = read_lines(path)
    source = f"{path}"
    check_header(lines[0] if lines else "", source)
    index = first = 1
    while index < len(lines):
        text = lines[index].strip()
        index += 1
        if not text or text == HEADER:  # concatenated files repeat the header
            continue
        first = index
        refuse = None if on_fault is None else partial(mlf._refuse, source, on_fault, first)
        try:
            name = entry_name(text, f"{source}:{first}")
            index = _find_dot(lines, first, source, name)
            if accepted_keys is not None and not ((key := key_of(name)) in accepted_keys or "*" in key or "?" in key):
                continue
            mlf.add(name, _parse_labels(lines, first, index - 1, source, refuse), source, first)
        except FormatError as fault:
            if refuse is None:
                raise
            refuse(fault)
            index = max(index, next((i + 1 for i in range(first, len(lines)) if lines[i].strip() == "."), len(lines)))
    return mlf


def wanted_keys(keys: Iterable[str]) -> KeySet:
    """Return the keys of utterances in the form that `read_mlf` needs, for several files of many utterances."""
    return KeySet(with_tails(keys))


def _find_dot(lines: list[str], index: int, source: str, name: str) -> int:
    """Return the index of the line after the dot that closes the entry beginning at index."""
    begin = index
    while index < len(lines):
        if lines[index].strip() == ".":
            return index + 1
        index += 1
    raise not_closed(name, f"{source}:{begin}")


def _parse_labels(
    lines: list[str], first: int, last: int, source: str, on_fault: OnFault | None = None, before: int = 0
) -> list[Label]:
    """Parse the label lines first .. last-1, counted from 0; before: lines of the file before `lines`."""
    labels: list[Label] = []
    append = labels.append
    intern = sys.intern
    for index in range(first, last):
        line = lines[index]
        # Fast path for the usual line; _parse_label handles all others.
        if '"' not in line and "'" not in line and "\\" not in line:
            fields = line.split()
            if len(fields) == 4 and fields[0].isdigit() and fields[1].isdigit() and line.isascii():
                try:
                    start = int(fields[0])
                    end = int(fields[1])
                    score = float(fields[3])
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
            pairs = split_fields(line, f"{source}:{before + index + 1}")
            if len(pairs) == 1 and pairs[0][1] and labels and labels[-1].end is not None:
                raise FormatError(
                    f"{source}:{before + index + 1}: entry name {line.strip()} among the labels of an entry; "
                    "expected a line with a single dot before it"
                )
        try:
            append(_parse_label(pairs, f"{source}:{before + index + 1}"))
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
        times[position] = parse_time(fields[position][0], where)
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


def write_mlf(path: str | Path, entries: Iterable[tuple[str, list[Label] | FilePart]]) -> None:
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


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    mlf = read_mlf(path)
    labels = [label for entry in mlf.values() for label in entry]
    names = Counter(label.name for label in labels)
    ends = [entry[-1].end for entry in mlf.values() if entry and entry[-1].end is not None]
    levels = 1 + max((len(label.aux) for label in labels), default=0)
    figures: Figures = [
        ("entries", f"{len(mlf)}" + (f" and {len(mlf.patterns)} patterns" if mlf.patterns else "")),
        ("labels", f"{len(labels)}, {len(names)} different"),
        ("levels", levels),
        ("times", f"{seconds(sum(ends))} in {len(ends)} entries" if ends else "none"),
        ("scores", "yes" if any(label.score is not None for label in labels) else "no"),
        ("frequent", ", ".join(f"{name} {count}" for name, count in names.most_common(5))),
    ]
    empty = sum(not entry for entry in mlf.values())
    return figures + ([("empty", f"{empty} entries without labels")] if empty else [])
