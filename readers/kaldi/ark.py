"""Kaldi's archives: matrices of features, vectors of integers (alignments), in binary or as text, and lists of them.

A binary object is `\\0B`, a type and sizes; these are checked against the file before anything is read.  An archive is
a row of `key` blank object; a script file (scp) has a line `key archive:offset` for each.  Pipes and objects of other
kinds (sound, pickles) are refused.  Compressed matrices are unpacked, and all are written, by kaldiio.
Source: Kaldi's documentation, "Kaldi I/O mechanisms".
"""

import io
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from readers.common.text import is_count, read_bytes, read_lines
from readers.errors import FormatError

MAX_KEY_BYTES = 4096
_BINARY = b"\0B"
_PLAIN = {b"FM ": np.dtype("<f4"), b"DM ": np.dtype("<f8")}
_COMPRESSED = {b"CM ": (1, 8), b"CM2": (2, 0), b"CM3": (1, 0)}  # bytes of a value, bytes of a column's header
_LOCATION = re.compile(r"(.*?)(?::(\d{1,18}))?(?:\[([^\]]*)\])?", re.DOTALL)
_RANGE = re.compile(r"(\d{1,18}):(\d{1,18})")
_VECTOR_ITEM = np.dtype([("size", "i1"), ("value", "<i4")])


class ArkEntry(NamedTuple):
    """One utterance of a list or archive.

    name: its key; path, offset: where its object begins; start, end: first and last frame, inclusive, or None for all;
    source_file, line: where the entry stands, line 0 in an archive without a list.
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
        return self.name

    @property
    def logical(self) -> str:
        """A name whose key, as labels are looked up by, is the name: keys have no extension."""
        return f"{self.name}.ark"

    @property
    def place(self) -> str:
        return f"{self.path}:{self.offset}" if self.path else self.name

    @property
    def num_frames(self) -> int | None:
        """Frames of the range, or None when the archive must tell."""
        return None if self.end is None else self.end - self.start + 1

    @property
    def where(self) -> str:
        return f"{self.source_file}:{self.line}" if self.line else f"{self.path}: {self.name}"


class ArkHeader(NamedTuple):
    """A matrix: kind (`FM `, `DM `, `CM `, `CM2`, `CM3` or `text`), frames, values per frame, and where its values, or
    those of the header that kaldiio reads, begin."""

    kind: bytes
    num_frames: int
    dim: int
    data: int


def read_ark_scp(path: str | os.PathLike) -> list[ArkEntry]:
    """The entries of an scp: `key archive:offset`, `key archive:offset[first:last]` or `key file`.

    Raises FormatError with file and line for anything else, and for a key that comes twice.
    """
    entries: dict[str, ArkEntry] = {}
    for number, line in enumerate(read_lines(path), 1):
        key, location = [*line.split(None, 1), "", ""][:2]
        location = location.strip()
        if not key:
            continue
        if not location:
            raise FormatError(f"{path}:{number}: {key!r} has no archive; expected key archive:offset")
        if location.endswith("|") or location.startswith("|"):
            raise FormatError(f"{path}:{number}: a pipe; expected an archive; run the command and list its output")
        file, offset, rows = _LOCATION.fullmatch(location).groups()
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
        entries[key] = ArkEntry(key, file, int(offset or 0), start, end, f"{path}", number)
    return list(entries.values())


def scan_ark(path: str | os.PathLike) -> list[ArkEntry]:
    """The matrices of an archive, found by their headers.  Raises FormatError as `read_matrix_header` does."""
    entries: dict[str, ArkEntry] = {}
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while (key := _read_key(file, path)) is not None:
            if key in entries:
                raise FormatError(f"{path}: {key!r} comes twice; expected each key once")
            offset = file.tell()
            entries[key] = ArkEntry(key, f"{path}", offset, source_file=f"{path}")
            header = _read_header(file, f"{path}:{offset}", size)
            if header.kind != b"text":
                file.seek(header.data + _data_bytes(header))
    return list(entries.values())


def read_matrix_header(path: str | os.PathLike, offset: int = 0) -> ArkHeader:
    """What stands at a place of an archive.

    Raises FormatError for an object that is no matrix of features, and one that the file is too short for.
    """
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if offset >= size:
            raise FormatError(f"{path}:{offset}: file of {size} bytes; expected a matrix there")
        file.seek(offset)
        return _read_header(file, f"{path}:{offset}", size)


def read_matrix(path: str | os.PathLike, offset: int = 0, first: int = 0, last: int | None = None) -> np.ndarray:
    """Frames first..last, inclusive, of a matrix; (T, dim) float32 in C order.  Raises FormatError as its header."""
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
            return np.ascontiguousarray(values, np.float32)
        file.seek(offset)
        if header.kind == b"text":
            values = _parse_text_matrix(_read_text_matrix(file, f"{path}:{offset}"), f"{path}:{offset}")
        else:
            from kaldiio.matio import read_matrix_or_vector  # kaldiio is slow to import, and such matrices are few

            with np.errstate(all="ignore"):  # odd values are found by those who use them
                values = read_matrix_or_vector(file)
        return np.ascontiguousarray(values[first:stop], np.float32)


def write_matrix(file: BinaryIO, key: str, frames: np.ndarray, text: bool = False) -> int:
    """Add frames (T, dim) of any float type to an archive, as float32; returns the offset of the object."""
    if not key or key.split() != [key]:
        raise FormatError(f"key {key!r}; expected one without blanks, as an archive needs it")
    file.write(f"{key} ".encode())
    offset = file.tell()
    if text:
        rows = "\n".join(
            "  " + " ".join(map(repr, row)) for row in np.asarray(frames, np.float32).astype(float).tolist()
        )
        file.write(f" [\n{rows} ]\n".encode())
    else:
        from kaldiio.matio import write_array

        write_array(file, np.ascontiguousarray(frames, np.float32))
    return offset


def _read_key(file: BinaryIO, path: str | os.PathLike) -> str | None:
    """The key before an object, None at the end; the file is then at the object."""
    key = bytearray()
    while True:
        byte = file.read(1)
        if byte in (b" ", b"\t") and key:
            return _decode(bytes(key), path)
        if not byte and not key:
            return None
        if byte == b"\n" and not key:
            continue
        if not byte or byte in b"\n\0 \t" or len(key) > MAX_KEY_BYTES:
            raise FormatError(f"{path}:{file.tell()}: found {bytes(key[:20])!r}; expected a key and a blank")
        key += byte


def _decode(key: bytes, path: str | os.PathLike) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as fault:
        raise FormatError(f"{path}: key {key[:40]!r} is not UTF-8; expected text") from fault


def _read_header(file: BinaryIO, where: str, size: int) -> ArkHeader:
    begin = file.tell()
    start = file.read(5)
    if start[:2] != _BINARY:
        file.seek(begin)
        text = _read_text_matrix(file, where)
        values = _parse_text_matrix(text, where)
        return ArkHeader(b"text", *values.shape, begin)
    kind = start[2:5]
    if kind in _PLAIN:
        raw = file.read(10)
        valid = len(raw) == 10 and raw[0] == raw[5] == 4
        rows, cols = struct.unpack("<xixi", raw) if valid else (0, 0)
        header = ArkHeader(kind, rows, cols, file.tell())
    elif kind in _COMPRESSED:
        blank = b" " if kind == b"CM " else file.read(1)  # behind the other two it is not part of the kind
        raw = file.read(16)
        rows, cols = struct.unpack("<8xii", raw) if blank == b" " and len(raw) == 16 else (0, 0)
        header = ArkHeader(kind, rows, cols, file.tell())
    else:
        found = "a vector of integers" if kind[:1] == b"\4" else f"an object {kind!r}"
        raise FormatError(f"{where}: {found}; expected a matrix of features (FM, DM, CM, CM2 or CM3)")
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
    """The text between the brackets; the file is then behind the line of the closing one."""
    lines: list[bytes] = []
    for line in file:
        if not lines:
            head, bracket, line = line.partition(b"[")
            if head.strip() or not bracket:
                raise FormatError(f"{where}: found {(head or line)[:20]!r}; expected a matrix, \\0B or [")
        inside, bracket, rest = line.partition(b"]")
        lines.append(inside)
        if bracket:
            if rest.strip():
                raise FormatError(f"{where}: {rest[:20]!r} after ]; expected the end of the line")
            return b"\n".join(lines)
    raise FormatError(f"{where}: [ is not closed; expected ]")


def _parse_text_matrix(text: bytes, where: str) -> np.ndarray:
    """(T, dim) float32."""
    rows = [line for line in text.split(b"\n") if line.strip()]
    try:
        values = [np.array(row.split(), np.float64) for row in rows]
    except ValueError as fault:
        raise FormatError(f"{where}: {fault}; expected a matrix of numbers") from fault
    if not rows or len({len(row) for row in values}) != 1:
        raise FormatError(f"{where}: {len(rows)} rows of unequal length; expected a row of numbers for each frame")
    return np.array(values, np.float32)


# Alignments


def read_alignments(path: str | os.PathLike) -> Iterator[tuple[str, np.ndarray | list[str]]]:
    """(key, classes) of every utterance of a plain or gzip archive of integer vectors.

    classes (T,) int32 from a binary archive; from text, a line `key 1 1 2 ...` for each, the tokens.
    Raises FormatError for an archive of anything else, and one that ends early.
    """
    raw = read_bytes(path)
    if _BINARY not in raw[: MAX_KEY_BYTES + 3]:
        for number, line in enumerate(raw.split(b"\n"), 1):
            fields = line.split()
            if fields:
                yield _decode(fields[0], path), [_decode(field, f"{path}:{number}") for field in fields[1:]]
        return
    file = io.BytesIO(raw)
    while (key := _read_key(file, path)) is not None:
        yield key, _read_vector(file, f"{path}:{file.tell()}", len(raw))


def read_alignment(path: str | os.PathLike, offset: int = 0) -> np.ndarray:
    """The classes (T,) int32 at a place of a binary archive."""
    with Path(path).open("rb") as file:
        file.seek(offset)
        return _read_vector(file, f"{path}:{offset}", os.fstat(file.fileno()).st_size)


def _read_vector(file: BinaryIO, where: str, size: int) -> np.ndarray:
    start = file.read(7)
    if len(start) < 7 or start[:3] != _BINARY + b"\4":
        raise FormatError(f"{where}: found {start[:5]!r}; expected a vector of integers, as ali-to-pdf writes")
    (count,) = struct.unpack("<i", start[3:])
    if count < 0 or file.tell() + count * _VECTOR_ITEM.itemsize > size:
        raise FormatError(f"{where}: {count} integers in a file of {size} bytes; expected as many as it can hold")
    items = np.frombuffer(file.read(count * _VECTOR_ITEM.itemsize), _VECTOR_ITEM)
    if count and (items["size"] != 4).any():
        raise FormatError(f"{where}: integers of {items['size'].max()} bytes; expected 4")
    return items["value"].astype(np.int32)


def parse_tokens(tokens: list[str], ids: dict[str, int] | None, where: str) -> np.ndarray:
    """Classes (T,) int32 of text: class numbers, or the labels that `ids` maps.  Raises FormatError."""
    if ids is None:
        bad = next((token for token in tokens if not is_count(token) or int(token) >= 1 << 31), None)
        expected = "a class number; labelMappingFile maps names"
    else:
        bad = next((token for token in tokens if token not in ids), None)
        expected = "a label of labelMappingFile"
    if bad is not None:
        raise FormatError(f"{where}: label {bad[:40]!r}; expected {expected}")
    return np.array([int(token) if ids is None else ids[token] for token in tokens], np.int32)
