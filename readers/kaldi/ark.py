r"""Kaldi archives of feature matrices, binary or text, and their script files.

A binary object is `\0B`, a type and sizes, which are checked against the size of the file before anything is read.  An
archive is a sequence of `key object`; a script file (scp) has a line `key archive:offset` for each object.  Pipes and
objects of other kinds (sound, pickles) are rejected.  kaldiio uncompresses compressed matrices and writes all matrices.
Source: Kaldi's documentation, "Kaldi I/O mechanisms".
"""

import os
import re
import struct
from collections import Counter
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from readers.common.report import Figures, num_files
from readers.common.text import canonical, read_lines, to_numbers
from readers.errors import FormatError

MAX_KEY_BYTES = 4096
BINARY = b"\0B"
_PLAIN: dict[bytes, np.dtype[Any]] = {b"FM ": np.dtype("<f4"), b"DM ": np.dtype("<f8")}
_COMPRESSED = {b"CM ": (1, 8), b"CM2": (2, 0), b"CM3": (1, 0)}  # bytes per value, bytes of the header of a column
_OFFSET = re.compile(r":([0-9]{1,18})\Z")
_RANGE = re.compile(r"([0-9]{1,18}):([0-9]{1,18})")


class ArkEntry(NamedTuple):
    """One utterance of a script file or archive.

    Attributes
    ----------
    name : str
        Its key.
    path, offset : str, int
        Archive, and byte offset of the object in it.
    start, end : int or None
        First and last frame, inclusive; None for all frames.
    source_file, line : str, int
        Where the entry was read; line 0 for an archive without a script file.
    """

    name: str
    path: str
    offset: int = 0
    start: int | None = None
    end: int | None = None
    source_file: str = ""
    line: int = 0

    @property
    def key(self) -> str:
        """The name, as the key of an ScpEntry."""
        return self.name

    @property
    def logical(self) -> str:
        """A name from which the key is derived like that of an SCP entry; Kaldi's keys have no extension."""
        return f"{self.name}.ark"

    @property
    def place(self) -> str:
        """The archive with the byte offset, for messages; the name if there is no archive."""
        return f"{self.path}:{self.offset}" if self.path else self.name

    @property
    def num_frames(self) -> int | None:
        """Number of frames of the range; None if the entry has no range."""
        return None if self.start is None or self.end is None else self.end - self.start + 1

    @property
    def where(self) -> str:
        """The place where the entry was read, for messages."""
        return f"{self.source_file}:{self.line}" if self.line else f"{self.path}: {self.name}"


class ArkHeader(NamedTuple):
    """The header of a matrix.

    kind: `FM `, `DM `, `CM `, `CM2`, `CM3` or `text`.
    num_frames, dim: frames and values per frame.
    The last field is the offset of the values, or of the header that kaldiio reads.
    """

    kind: bytes
    num_frames: int
    dim: int
    data: int


def read_ark_scp(path: str | Path) -> list[ArkEntry]:
    """Read a Kaldi script file.

    Parameters
    ----------
    path : path
        File with lines `key archive:offset`, `key archive:offset[first:last]` or `key file`.

    Returns
    -------
    list of ArkEntry
        In file order.

    Raises
    ------
    FormatError
        With file and line, for any other line, and for a repeated key.

    References
    ----------
    Kaldi documentation, "Kaldi I/O mechanisms".
    """
    entries: dict[str, ArkEntry] = {}
    for number, line in enumerate(read_lines(path, exact=True), 1):
        key, location = [*line.split(None, 1), "", ""][:2]
        key = canonical(key)
        location = location.strip()
        if not key:
            continue
        if not location:
            raise FormatError(f"{path}:{number}: {key!r} has no archive; expected key archive:offset")
        if location.endswith("|") or location.startswith("|"):
            raise FormatError(f"{path}:{number}: a pipe; expected an archive; run the command and store its output")
        file, offset, rows = _parse_location(location)
        start = end = None
        if rows is not None:
            bounds = _RANGE.fullmatch(rows)
            if not bounds or int(bounds[1]) > int(bounds[2]):
                raise FormatError(f"{path}:{number}: range [{rows}]; expected [first:last], frames counted from 0")
            start, end = int(bounds[1]), int(bounds[2])
        if key in entries:
            raise FormatError(
                f"{path}:{number}: {key!r} is already at line {entries[key].line}; expected each key once"
            )
        entries[key] = ArkEntry(key, file, offset, start, end, f"{path}", number)
    return list(entries.values())


def is_ark_scp(path: str | Path) -> bool:
    """Whether the first line of a list is of Kaldi's form `key archive`, not of HTK's forms `path` and `name=path`."""
    line = next((line.strip() for line in read_lines(path) if line.strip()), "")
    key, location = [*line.split(None, 1), "", ""][:2]
    return bool(location) and ("=" not in key or _OFFSET.search(location.partition("[")[0]) is not None)


def _parse_location(location: str) -> tuple[str, int, str | None]:
    """Return (file, offset, text of the range in brackets) of `file`, `file:offset` or `file:offset[range]`."""
    file = location
    rows = None
    if location.endswith("]"):
        bracket = location.find("[", location.rfind("]", 0, -1) + 1)
        if bracket >= 0:
            file = location[:bracket]
            rows = location[bracket + 1 : -1]
    offset = _OFFSET.search(file, max(0, len(file) - 19))
    return (file[: offset.start()], int(offset[1]), rows) if offset else (file, 0, rows)


def scan_ark(path: str | Path) -> list[ArkEntry]:
    """List the matrices of an archive by reading their headers.

    Parameters
    ----------
    path : path
        Archive, binary or text.

    Returns
    -------
    list of ArkEntry
        In file order.

    Raises
    ------
    FormatError
        For a damaged archive, an object that is not a matrix, and a repeated key.

    References
    ----------
    Kaldi documentation, "Kaldi I/O mechanisms".
    """
    entries: dict[str, ArkEntry] = {}
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while (key := read_key(file, path)) is not None:
            if key in entries:
                raise FormatError(f"{path}: key {key!r} is repeated; expected each key once")
            offset = file.tell()
            entries[key] = ArkEntry(key, f"{path}", offset, source_file=f"{path}")
            header = _read_header(file, f"{path}:{offset}", size, True)
            if header.kind != b"text":
                file.seek(header.data + _data_bytes(header))
    return list(entries.values())


def read_matrix_header(path: str | Path, offset: int = 0, may_be_empty: bool = False) -> ArkHeader:
    """Read the header of the matrix at an offset of an archive.

    may_be_empty: whether a matrix without frames or values is one, too.
    Raises FormatError if the object is not a feature matrix, or the file is too short for it.
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if offset >= size:
            raise FormatError(f"{path}:{offset}: file of {size} bytes; expected a matrix there")
        file.seek(offset)
        return _read_header(file, f"{path}:{offset}", size, may_be_empty)


def read_matrix(path: str | Path, offset: int = 0, first: int = 0, last: int | None = None) -> npt.NDArray[np.float32]:
    """Read frames of a matrix in an archive.

    Parameters
    ----------
    path : path
        Archive.
    offset : int
        Byte offset of the object.
    first, last : int
        First and last frame, counted from 0, inclusive; last None is the last frame.

    Returns
    -------
    (T, dim) float32, C order

    Raises
    ------
    FormatError
        If there is no matrix at the offset, or the file is too short for it.

    References
    ----------
    Kaldi documentation, "Kaldi I/O mechanisms".
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(offset)
        header = _read_header(file, f"{path}:{offset}", size)
        stop = header.num_frames if last is None else min(last + 1, header.num_frames)
        if header.kind in _PLAIN:
            dtype = _PLAIN[header.kind]
            file.seek(header.data + first * header.dim * dtype.itemsize)
            count = max(0, stop - first) * header.dim
            values = np.fromfile(file, dtype, count).reshape(-1, header.dim)
            with np.errstate(over="ignore"):  # callers check the values
                return np.ascontiguousarray(values, np.float32)
        file.seek(offset)
        if header.kind == b"text":
            values = _parse_text_matrix(_read_text_matrix(file, f"{path}:{offset}"), f"{path}:{offset}")
        else:
            from kaldiio.matio import read_matrix_or_vector  # kaldiio is slow to import and rarely needed

            with np.errstate(all="ignore"):
                values = read_matrix_or_vector(file)
        return np.ascontiguousarray(values[first:stop], np.float32)


def write_matrix(file: BinaryIO, key: str, frames: npt.ArrayLike, text: bool = False) -> int:
    """Write an entry of an archive.

    Parameters
    ----------
    file : binary file
        At its end.
    key : str
        Of the utterance.
    frames : (T, dim) array
        Of any float type; written as float32.
    text : bool
        Whether to write text.

    Returns
    -------
    int
        Offset of the matrix, for a line `key archive:offset` of a list; 0 in a pipe.

    Raises
    ------
    FormatError
        For a key with blanks.
    """
    if not key or key.split() != [key]:
        raise FormatError(f"key {key!r}; expected a key without blanks")
    file.write(f"{key} ".encode())
    offset = file.tell() if file.seekable() else 0
    if text:
        rows = "\n".join(
            "  " + " ".join(map(repr, row)) for row in np.asarray(frames, np.float32).astype(float).tolist()
        )
        file.write(f" [\n{rows} ]\n".encode())
    else:
        from kaldiio.matio import write_array

        write_array(file, np.ascontiguousarray(frames, np.float32))
    return offset


def read_key(file: BinaryIO | BufferedIOBase, path: str | Path) -> str | None:
    """Return the key of the next object, None at the end of the file; leaves the file positioned at the object."""
    key = bytearray()
    while True:
        byte = file.read(1)
        if byte in (b" ", b"\t") and key:
            return decode_key(bytes(key), path)
        if not byte and not key:
            return None
        if byte == b"\n" and not key:
            continue
        if not byte or byte in b"\n\0 \t" or len(key) > MAX_KEY_BYTES:
            text = bytes(key[:20] + byte)
            raise FormatError(f"{path}:{file.tell()}: found {text!r}; expected a key and a blank, as in Kaldi archives")
        key += byte


def decode_key(key: bytes, path: str | Path) -> str:
    try:
        return canonical(key.decode())
    except UnicodeDecodeError as fault:
        raise FormatError(f"{path}: key {key[:40]!r} is not UTF-8; expected text") from fault


def _read_header(file: BinaryIO, where: str, size: int, may_be_empty: bool = False) -> ArkHeader:
    begin = file.tell()
    start = file.read(5)
    if start[:2] != BINARY:
        file.seek(begin)
        text = _read_text_matrix(file, where)
        if may_be_empty and not text.strip():
            return ArkHeader(b"text", 0, 0, begin)
        values = _parse_text_matrix(text, where)
        return ArkHeader(b"text", values.shape[0], values.shape[1], begin)
    kind = start[2:5]
    if kind in _PLAIN:
        raw = file.read(10)
        valid = len(raw) == 10 and raw[0] == raw[5] == 4
        rows, cols = struct.unpack("<xixi", raw) if valid else (0, 0)
    elif kind in _COMPRESSED:
        blank = b" " if kind == b"CM " else file.read(1)  # CM2 and CM3 are followed by a blank
        raw = file.read(16)
        valid = blank == b" " and len(raw) == 16
        rows, cols = struct.unpack("<8xii", raw) if valid else (0, 0)
    else:
        problem = "a vector of integers" if kind[:1] == b"\4" else f"an object {kind!r}"
        raise FormatError(f"{where}: {problem}; expected a matrix of features (FM, DM, CM, CM2 or CM3)")
    header = ArkHeader(kind, rows, cols, file.tell())
    if may_be_empty and valid and min(rows, cols) == 0 and header.data + _data_bytes(header) <= size:
        return header  # of an utterance without frames: reading it fails, not the archive
    if header.num_frames < 1 or header.dim < 1:
        raise FormatError(f"{where}: {header.num_frames} frames of {header.dim} values; expected at least one of each")
    end = header.data + _data_bytes(header)
    if end > size:
        raise FormatError(
            f"{where}: {header.num_frames} frames of {header.dim} values end at byte {end}; "
            f"expected at most {size}, the size of the file"
        )
    return header


def _data_bytes(header: ArkHeader) -> int:
    if header.kind in _PLAIN:
        return header.num_frames * header.dim * _PLAIN[header.kind].itemsize
    value, column = _COMPRESSED[header.kind]
    return header.num_frames * header.dim * value + header.dim * column


def _read_text_matrix(file: BinaryIO, where: str) -> bytes:
    """Return the text between the brackets; leaves the file positioned after the line of the closing bracket."""
    lines: list[bytes] = []
    for line in file:
        if not lines:
            head, bracket, line = line.partition(b"[")
            if head.strip() or not bracket:
                raise FormatError(f"{where}: found {(head or line)[:20]!r}; expected a matrix, \\0B or [")
        values, bracket, tail = line.partition(b"]")
        lines.append(values)
        if bracket:
            if tail.strip():
                raise FormatError(f"{where}: {tail[:20]!r} after ]; expected the end of the line")
            return b"\n".join(lines)
    raise FormatError(f"{where}: [ is not closed; expected ]")


def _parse_text_matrix(text: bytes, where: str) -> npt.NDArray[np.float32]:
    """Return the matrix (T, dim) float32."""
    rows = [line for line in text.split(b"\n") if line.strip()]
    try:
        values = [np.array(to_numbers(row.decode().split()), np.float64) for row in rows]
    except ValueError as fault:
        raise FormatError(f"{where}: {fault}; expected a matrix of numbers") from fault
    if not rows or len({len(row) for row in values}) != 1:
        raise FormatError(f"{where}: {len(rows)} rows of unequal length; expected a row of numbers for each frame")
    with np.errstate(over="ignore"):  # callers check the values
        return np.array(values, np.float32)


def ark_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    entries = scan_ark(path)
    headers = [read_matrix_header(path, entry.offset, True) for entry in entries]
    kinds = Counter(header.kind.decode().strip() for header in headers)
    return [
        ("entries", len(entries)),
        ("frames", sum(header.num_frames for header in headers)),
        ("values", " and ".join(str(dim) for dim in sorted({header.dim for header in headers} - {0})) + " per frame"),
        ("stored as", ", ".join(f"{count} {kind}" for kind, count in kinds.items())),
        ("first key", entries[0].key if entries else "none"),
    ]


def ark_scp_summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    entries = read_ark_scp(path)
    return [
        ("entries", len(entries)),
        ("archives", num_files(entry.path for entry in entries)),
        ("first key", entries[0].key if entries else "none"),
    ]
