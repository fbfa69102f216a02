"""An index of the entries of long label files: labels stay in the files and are parsed when they are asked for.

An entry takes 48 bytes, whatever the number of its labels.  The files must not change while they are in use.
"""

import bisect
import contextlib
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Container, Iterator
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from readers.common.faults import OnFault
from readers.common.names import KeySet, KeyTable, hashes_of, key_of, several
from readers.common.text import GZIP_MAGIC, UTF16_MARKS, canonical, decode_text, read_text_bytes
from readers.errors import FormatError
from readers.htk.storage.label_fields import HEADER, check_header, entry_name, not_closed, unescape_entry
from readers.htk.storage.label_kernels import END, FULL, NOT_CLOSED, ODD_NAME, Flags, Ints, find_dot, index_entries

if TYPE_CHECKING:
    from readers.htk.mlf import Label

BLOCK = 1 << 22  # bytes that are read at once
HEAD = 1 << 16  # bytes that are read first
MOST_OPEN = 64  # files; systems allow a process some hundreds
ENTRIES_AT_ONCE = 1 << 15
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

ParseLabels = Callable[..., list["Label"]]
Accept = Callable[[str, list["Label"], int, int], bool]
Refuse = Callable[[int, Exception], None]
ENTRY = np.dtype([("name", "<i8"), ("name_size", "<i4"), ("gap", "<i4"), ("size", "<i8"), ("line", "<i8")])


class _Copies:
    """A temporary file with the texts of label files that cannot be read in parts, one after the other."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(prefix="argonaut-labels-", buffering=0)  # noqa: SIM115
        self._size = 0
        self._lock = threading.Lock()

    def append(self, text: bytes) -> int:
        """Write a text; return where it begins."""
        with self._lock:
            begin = self._size
            view = memoryview(text)
            while view:
                view = view[self.file.write(view) :]
            self._size += len(text)
        return begin


_copies: "weakref.WeakValueDictionary[int, _Copies]" = weakref.WeakValueDictionary()  # by process; closed when unused


class LabelText:
    """The text of a label file, with plain line ends; read in parts, by any number of threads.

    Parameters
    ----------
    path : path
        Plain or gzip.  Compressed text, and text with other line ends or other forms of letters, is copied to a
        temporary file.
    """

    def __init__(self, path: str | Path):
        self.path = path
        self._open()

    def _open(self) -> None:
        self._lock = threading.Lock()
        self._begin = 0
        self._copies: _Copies | None = None
        self._file: FileIO | None = None
        if _is_plain(self.path):
            self._file = Path(self.path).open("rb", buffering=0)  # noqa: SIM115
            self._state = _state(self._file)
            self.size = self._state[0]
        else:
            text = read_text_bytes(self.path)
            self._copies = _copies.get(os.getpid()) or _copies.setdefault(os.getpid(), _Copies())
            self._begin = self._copies.append(text)
            self.size = len(text)

    def read(self, begin: int, size: int) -> bytes:
        """Return a part of the text.  Raises FormatError if the file has changed."""
        if self._copies is not None:
            return _read_at(self._copies.file, self._begin + begin, size, self._lock)
        with contextlib.ExitStack() as stack:
            file = self._file or stack.enter_context(Path(self.path).open("rb", buffering=0))
            part = _read_at(file, begin, size, self._lock)
            if len(part) < size or _state(file) != self._state:
                raise FormatError(f"{self.path}: the file has changed while it was used; expected no change")
        return part

    def check_header(self) -> None:
        """Raise FormatError, as for a small file, unless the first line is that of label files."""
        head = self.read(0, min(self.size, HEAD))
        if not head.startswith(HEADER.encode()):
            decode_text(head[: head.rfind(b"\n") + 1] or head, self.path, exact=True)  # may be audio
        check_header(head.decode(errors="replace").split("\n", 1)[0], f"{self.path}")

    def release(self) -> None:
        """Close the file, unless it is a copy; it is opened again whenever it is read."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def keep_open(self) -> None:
        """Open the file after `release`, for faster reading."""
        if self._copies is None and self._file is None:
            self._file = Path(self.path).open("rb", buffering=0)  # noqa: SIM115

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "size": self.size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.path = state["path"]
        self._open()
        self.release()  # until the index keeps it open
        if self.size != state["size"]:
            raise FormatError(f"{self.path}: the file has changed while it was used; expected no change")


def _state(file: FileIO) -> tuple[int, int]:
    """Return size and time of the last change of a file."""
    return (status := os.fstat(file.fileno())).st_size, status.st_mtime_ns


def _read_at(file: FileIO, begin: int, size: int, lock: threading.Lock) -> bytes:
    """Return bytes of a file, fewer if it ends before; other processes may share its position."""
    pieces = []
    while size:
        if hasattr(os, "pread"):
            piece = os.pread(file.fileno(), size, begin)
        else:  # Windows
            with lock:
                file.seek(begin)
                piece = file.read(size)
        if not piece:
            break
        pieces.append(piece)
        begin += len(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _is_plain(path: str | Path) -> bool:
    """Whether a file is text that can be read in parts as it is, with canonical words and plain line ends."""
    with Path(path).open("rb", buffering=0) as file:
        block = file.read(BLOCK)
        if block.startswith((GZIP_MAGIC, BYTE_ORDER_MARK, *UTF16_MARKS)):
            return False
        while block:
            if b"\r" in block:
                return False
            if not block.isascii():
                block += file.readline()
                text = block.decode(errors="replace")  # the fault is reported when the entries are read
                if canonical(text) != text:
                    return False
            block = file.read(BLOCK)
    return True


class FoundEntries(NamedTuple):
    """Entries that follow each other in a file.

    Attributes
    ----------
    names : list of str
    rows : (n,) array of ENTRY
        Where they are.
    plain : (n,) bool
        Whether the labels are surely without fault.
    """

    names: list[str]
    rows: npt.NDArray[np.void]
    plain: Flags


class Fault(NamedTuple):
    """A fault of the entry that begins on a line."""

    line: int
    error: FormatError


def find_entries(text: LabelText) -> Iterator[FoundEntries | Fault]:
    """Yield the entries of a label file, in order, and the faults between them."""
    position = line = 0
    size = BLOCK
    names, bodies = (np.empty((ENTRIES_AT_ONCE, 2), np.int64) for _ in range(2))
    lines = np.empty(ENTRIES_AT_ONCE, np.int64)
    plain = np.empty(ENTRIES_AT_ONCE, np.bool_)
    while position < text.size:
        block = text.read(position, min(size, text.size - position))
        is_last = position + len(block) == text.size
        block = block if is_last else block[: block.rfind(b"\n") + 1]
        if not block.isascii() or b"\0" in block:
            decode_text(block, text.path, line, exact=True)
        characters = np.frombuffer(block, np.uint8)
        begin = 0
        reason = FULL
        while reason != END:
            count, begin, line, reason = index_entries(characters, begin, line, names, bodies, lines, plain)
            if count:
                yield _found(block, position, names[:count], bodies[:count], lines[:count], plain[:count])
            if reason in (ODD_NAME, NOT_CLOSED):
                close, end, num_lines, _ = find_dot(characters, block.find(b"\n", begin) + 1 or len(block))
                if close < 0 and not is_last:
                    break
                yield _fault(block, begin, line, text.path)
                begin = end
                line = line + 1 + num_lines
        size = BLOCK if begin else 2 * size  # an entry that is longer than the block
        position += begin


def _found(block: bytes, position: int, names: Ints, bodies: Ints, lines: Ints, plain: Flags) -> FoundEntries:
    """Return the entries in the rows of the arrays, of a block that begins at a place in the file."""
    rows = np.empty(len(names), ENTRY)
    rows["name"] = names[:, 0] + position
    rows["name_size"] = names[:, 1] - names[:, 0]
    rows["gap"] = bodies[:, 0] - names[:, 0]
    rows["size"] = bodies[:, 1] - bodies[:, 0]
    rows["line"] = lines
    return FoundEntries([unescape_entry(block[a:b].decode()) for a, b in names.tolist()], rows, plain.copy())


def _fault(block: bytes, begin: int, line: int, path: str | Path) -> Fault:
    """Return what is wrong with the entry that begins at a place in a block."""
    where = f"{path}:{line + 1}"
    try:
        name = entry_name(block[begin : block.find(b"\n", begin) + 1 or None].decode().strip(), where)
    except FormatError as fault:
        return Fault(line + 1, fault.with_traceback(None))  # which would keep the block in memory
    return Fault(line + 1, not_closed(name, where))


class LabelIndex:
    """The entries of label files, numbered in their order.

    Parameters
    ----------
    parse : callable
        parse(lines, first, last, file, on_fault, number of lines before them) returns the labels on lines[first:last].
    others : container of str
        Keys of entries that are not in the index.
    """

    def __init__(self, parse: ParseLabels, others: Container[str]):
        self._parse = parse
        self._others = others
        self._texts: list[tuple[LabelText, bool]] = []  # with whether faults are ignored
        self._firsts: list[int] = []  # number of the first entry of each file
        self._rows = np.empty(0, ENTRY)
        self._any_path = np.empty(0, bool)
        self._new: list[tuple[npt.NDArray[np.void], Flags]] = []  # rows and flags that are not in these arrays yet
        self._last: tuple[int, bytes] = -1, b""  # of `_content`
        self._table = KeyTable(self.key)
        self._ends: KeyTable | None = None  # of the keys, after the last slash; made when it is needed
        self._lock = threading.Lock()  # of the rows

    def __len__(self) -> int:
        return len(self._table)

    def __getstate__(self) -> dict[str, Any]:
        self._join()
        return {**self.__dict__, "_table": None, "_ends": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._lock = threading.Lock()
        for text, _ in self._texts[:MOST_OPEN]:
            text.keep_open()
        self._table = KeyTable(self.key)
        self._table.extend(hashes_of(map(self.key, range(len(self._rows)))))

    def add_file(
        self,
        text: LabelText,
        accept: Accept,
        wanted: KeySet | None = None,
        refuse: Refuse | None = None,
    ) -> None:
        """Add the entries of a file.

        Parameters
        ----------
        text : LabelText
        accept : callable
            accept(name, labels, line, line of an earlier entry of the same name or 0) is called for entries whose names
            may be patterns or repeated.  It returns whether to add the entry, or raises FormatError.
        wanted : KeySet, optional
            Keys of the entries to add, besides patterns.
        refuse : callable, optional
            refuse(line, error) is called for each error, with the first line of the entry; by default it is raised.
        """
        self._ends = None
        self._texts.append((text, refuse is not None))
        self._firsts.append(len(self))
        for entries in find_entries(text):
            if isinstance(entries, FoundEntries):
                self._add(entries, accept, wanted, refuse)
            elif refuse is None:
                raise entries.error
            else:
                refuse(entries.line, entries.error)
        if len(self._texts) > MOST_OPEN:
            text.release()

    def _add(self, found: FoundEntries, accept: Accept, wanted: KeySet | None, refuse: Refuse | None) -> None:
        """Add entries of the last file, after checking the unusual ones among them in their order."""
        keys = [key_of(name) for name in found.names]
        hashes = hashes_of(keys)
        patterns = np.fromiter(("*" in key or "?" in key for key in keys), bool, len(keys))
        accepted = np.ones(len(keys), np.bool_) if wanted is None else patterns | wanted.contains(hashes)
        unusual = patterns | ~found.plain | self._table.known(hashes) | several(hashes)
        if self._others:
            unusual |= np.fromiter((key in self._others for key in keys), bool, len(keys))
        first: dict[str, int] = {}  # key -> line
        for i in np.flatnonzero(accepted & unusual).tolist():
            line = int(found.rows["line"][i])
            refuse_line = None if refuse is None else partial(refuse, line)
            try:
                labels = [] if found.plain[i] and not patterns[i] else self._checked(found.rows[i], refuse_line)
                accepted[i] = accept(found.names[i], labels, line, first.get(keys[i], 0))
                first[keys[i]] = line
            except FormatError as fault:
                accepted[i] = False
                if refuse_line is None:
                    raise
                refuse_line(fault)
        flags = np.fromiter((name.startswith("*/") for name in found.names), bool, len(keys))
        self._new.append((found.rows[accepted], flags[accepted]))
        self._table.extend(hashes[accepted])

    def _checked(self, row: np.void, on_fault: OnFault | None) -> list["Label"]:
        """Return the labels of an entry of the last file."""
        text = self._texts[-1][0]
        return self._parsed(text.read(int(row["name"] + row["gap"]), int(row["size"])), row, text, on_fault)

    def _join(self) -> None:
        """Append new rows to the others."""
        with self._lock:
            if self._new:
                rows, flags = zip((self._rows, self._any_path), *self._new)
                self._rows = np.concatenate(rows)
                self._any_path = np.concatenate(flags)
                self._new = []

    def find(self, key: str, any_path: bool = False) -> int | None:
        """Return the number of the entry with a key, None if there is none; any_path: only one written `*/key`."""
        number = self._table.find(key)
        return None if number is None or (any_path and not self._any_path[number]) else number

    def ending(self, end: str) -> str | None:
        """Return the first key that is `end` after its last slash, None if there is none."""
        if self._ends is None:
            ends = KeyTable(self._end)
            ends.extend(hashes_of(map(self._end, range(len(self)))))
            self._ends = ends
        number = self._ends.find(end)
        return None if number is None else self.key(number)

    def _end(self, number: int) -> str:
        return self.key(number).rsplit("/", 1)[-1]

    def where(self, number: int) -> tuple[str, int]:
        """Return file and line of an entry."""
        self._join()
        return f"{self._text_of(number)[0].path}", int(self._rows[number]["line"])

    def key(self, number: int) -> str:
        """Return the key of an entry."""
        self._join()
        return key_of(unescape_entry(self._content(number)[: int(self._rows[number]["name_size"])].decode()))

    def labels(self, number: int) -> list["Label"]:
        """Return the labels of an entry."""
        content = self._content(number)
        row = self._rows[number]
        text, ignores_faults = self._text_of(number)
        return self._parsed(content[int(row["gap"]) :], row, text, _ignore if ignores_faults else None)

    def _content(self, number: int) -> bytes:
        """Return the text of an entry from its name on; the last is kept, because key and labels are read in turn."""
        last, content = self._last
        if number != last:
            self._join()
            row = self._rows[number]
            content = self._text_of(number)[0].read(int(row["name"]), int(row["gap"] + row["size"]))
            self._last = number, content
        return content

    def _parsed(self, body: bytes, row: np.void, text: LabelText, on_fault: OnFault | None) -> list["Label"]:
        lines = body.decode().split("\n")
        return self._parse(lines, 0, len(lines) - 1, f"{text.path}", on_fault, int(row["line"]))

    def _text_of(self, number: int) -> tuple[LabelText, bool]:
        return self._texts[bisect.bisect_right(self._firsts, number) - 1]


def _ignore(fault: Exception) -> None:
    """Do nothing about a fault that was reported when the file was read."""
