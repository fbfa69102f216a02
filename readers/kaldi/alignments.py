"""Alignments in Kaldi archives: vectors of integers, or posteriors with one class per frame, binary or text.

Source: Kaldi's documentation, "Kaldi I/O mechanisms".
"""

import io
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from readers.common.report import Figures
from readers.common.text import is_count, read_bytes
from readers.errors import FormatError
from readers.kaldi.ark import BINARY, MAX_KEY_BYTES, decode_key, read_key

_VECTOR_ITEM = np.dtype([("size", "i1"), ("value", "<i4")])
_POSTERIOR_FRAME = np.dtype(
    [("s0", "i1"), ("count", "<i4"), ("s1", "i1"), ("value", "<i4"), ("s2", "i1"), ("weight", "<f4")]
)


def read_alignments(path: str | Path) -> Iterator[tuple[str, npt.NDArray[np.int32] | list[str]]]:
    """Yield the alignments of an archive of integer vectors, or of posteriors with one class of weight 1 per frame.

    Parameters
    ----------
    path : path
        Archive, binary or text, plain or gzip.

    Yields
    ------
    (key, classes) : (str, (T,) int32 or list of str)
        For a text archive (a line `key 1 1 2 ...` per utterance), classes are the tokens; see parse_tokens.

    Raises
    ------
    FormatError
        For an archive of other objects, and a truncated one.

    References
    ----------
    Kaldi documentation, "Kaldi I/O mechanisms"; ali-to-pdf, ali-to-post.
    """
    raw = read_bytes(path)
    if BINARY not in raw[: MAX_KEY_BYTES + 3]:
        for number, line in enumerate(raw.split(b"\n"), 1):
            fields = line.split()
            if fields:
                classes = _hard_classes(fields[1:], f"{path}:{number}") if b"[" in fields[1:2] else fields[1:]
                yield decode_key(fields[0], path), [decode_key(field, f"{path}:{number}") for field in classes]
        return
    file = io.BytesIO(raw)
    while (key := read_key(file, path)) is not None:
        yield key, _read_vector(file, f"{path}:{file.tell()}", len(raw))


def read_alignment(path: str | Path, offset: int = 0) -> npt.NDArray[np.int32]:
    """Return the classes (T,) int32 at an offset of a binary archive."""
    with Path(path).open("rb") as file:
        file.seek(offset)
        return _read_vector(file, f"{path}:{offset}", os.fstat(file.fileno()).st_size)


def _read_vector(file: BinaryIO, where: str, size: int) -> npt.NDArray[np.int32]:
    start = file.read(7)
    if len(start) < 7 or start[:3] != BINARY + b"\4":
        raise FormatError(f"{where}: found {start[:5]!r}; expected a vector of integers, as ali-to-pdf writes")
    (count,) = struct.unpack("<i", start[3:])
    if count < 0 or file.tell() + count * _VECTOR_ITEM.itemsize > size:
        raise FormatError(f"{where}: {count} integers in a file of {size} bytes; expected as many as it can hold")
    raw = file.read(count * _VECTOR_ITEM.itemsize)
    end = file.tell()
    is_posterior = file.read(1) == b"\4"  # three numbers for each frame, each after its size; no key begins so
    file.seek(end)
    if is_posterior:
        return _posterior(raw + file.read(count * _POSTERIOR_FRAME.itemsize - len(raw)), count, where)
    items = np.frombuffer(raw, _VECTOR_ITEM)
    if count and (items["size"] != 4).any():
        raise FormatError(f"{where}: integers of {items['size'].max()} bytes; expected 4")
    return items["value"].astype(np.int32)


def _posterior(raw: bytes, count: int, where: str) -> npt.NDArray[np.int32]:
    """Return the classes of a posterior with one class of weight 1 in each of `count` frames. Raises FormatError."""
    frames = np.frombuffer(raw[: len(raw) - len(raw) % _POSTERIOR_FRAME.itemsize], _POSTERIOR_FRAME)
    if len(frames) < count or (frames["count"] != 1).any() or (frames["weight"] != 1).any():
        raise FormatError(f"{where}: posteriors of several classes; expected one class of weight 1 per frame")
    return frames["value"].astype(np.int32)


def _hard_classes(fields: list[bytes], where: str) -> list[bytes]:
    """Return the classes of posteriors in text, ``[ class 1 ] [ class 1 ]``. Raises FormatError."""
    is_complete = len(fields) % 4 == 0 and {*fields[0::4]} <= {b"["} and {*fields[3::4]} <= {b"]"}
    if not is_complete or {*fields[2::4]} - {b"1", b"1.0"}:
        raise FormatError(f"{where}: posteriors of several classes; expected one class of weight 1 per frame")
    return fields[1::4]


def parse_tokens(tokens: list[str], ids: dict[str, int] | None, where: str) -> npt.NDArray[np.int32]:
    """Return the classes (T,) int32 of text tokens: class numbers, or labels that `ids` maps.  Raises FormatError."""
    if ids is None:
        bad = next((token for token in tokens if not is_count(token) or int(token) >= 1 << 31), None)
        expected = "a class number; labelMappingFile maps names"
    else:
        bad = next((token for token in tokens if token not in ids), None)
        expected = "a label of labelMappingFile"
    if bad is not None:
        raise FormatError(f"{where}: label {bad[:40]!r}; expected {expected}")
    return np.array([int(token) if ids is None else ids[token] for token in tokens], np.int32)


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    alignments = dict(read_alignments(path))
    classes = set().union(*(np.unique(labels).tolist() for labels in alignments.values()))
    return [
        ("entries", len(alignments)),
        ("frames", sum(map(len, alignments.values()))),
        ("classes", f"{len(classes)} different"),
        ("first key", next(iter(alignments), "none")),
    ]
