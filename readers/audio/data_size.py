"""How many bytes of samples the header of an audio file states, and how many there are."""

import os
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

UNKNOWN_LENGTH = 0x7FFFF000  # a writer that cannot seek back writes a length of at least this, or 0
MOST_CHUNKS = 10_000
NO_LENGTH = "its header has no length; read to the end"
# First bytes -> where the chunks begin, form of their names and sizes, alignment, name of the one with the samples.
_CHUNKS = {
    b"RIFF": (12, "<4sI", 2, b"data"),
    b"RIFX": (12, ">4sI", 2, b"data"),
    b"RF64": (12, "<4sI", 2, b"data"),
    b"riff": (40, "<4s12xQ", 8, b"data"),
    b"FORM": (12, ">4sI", 2, b"SSND"),
    b"caff": (8, ">4sQ", 1, b"data"),
}
_AU = {b".snd": ">II", b"dns.": "<II"}


class DataSize(NamedTuple):
    """The size of the samples of an audio file.

    Attributes
    ----------
    stated : int or None
        Bytes of samples, as the header says; None if it says nothing, as that of a pipe or an interrupted recorder.
    present : int
        Bytes from the first sample to the end of the file.
    field : (int, str)
        Position of the size in the header, and its form as in `struct`.
    skipped : int
        Bytes after the samples that belong to no chunk: more samples if the size is wrong.
    """

    stated: int | None
    present: int
    field: tuple[int, str]
    skipped: int = 0

    @property
    def note(self) -> str:
        """What is unusual about the size; "" for a usual one."""
        if self.stated is None:
            return NO_LENGTH
        if self.present < self.stated:
            return f"{self.present} bytes of samples, its header says {self.stated}; read to the end"
        return too_few(self.stated, self.skipped) if self.skipped else ""


def too_few(stated: int, skipped: int) -> str:
    """Return a note about samples that the header seems not to count."""
    return f"its header says {stated} bytes of samples; {skipped} bytes after them, which are no chunks, were skipped"


def data_size(path: str | Path) -> DataSize | None:
    """Return the size of the samples of a WAV, Wave64, AIFF, CAF or AU file; None if it has none or another format."""
    size = Path(path).stat().st_size
    with Path(path).open("rb") as file:
        magic = file.read(4)
        if magic in _AU:
            begin, stated = struct.unpack(_AU[magic], file.read(8).ljust(8, b"\0"))
            field = 8, _AU[magic][:2]
        elif magic in _CHUNKS:
            begin, stated, field = _samples_chunk(file, magic, size)
        else:
            return None
        present = size - begin
        if not begin or present < 0:
            return None
        if stated == 0 < present or present < stated >= UNKNOWN_LENGTH:
            return DataSize(None, present, field)
        return DataSize(stated, present, field, skipped_bytes(file, magic, begin + stated))


def _samples_chunk(file: BinaryIO, magic: bytes, size: int) -> tuple[int, int, tuple[int, str]]:
    """Return where the samples begin, 0 if there are none, how many bytes they have, and the field that says so."""
    position, form, alignment, samples = _CHUNKS[magic]
    large = None  # of RF64
    for _ in range(MOST_CHUNKS):
        file.seek(position)
        head = file.read(struct.calcsize(form))
        if len(head) < struct.calcsize(form):
            break
        name, stated = struct.unpack(form, head)
        stated -= len(head) if magic == b"riff" else 0  # Wave64 counts the head
        position += len(head)
        if name == samples:
            if stated == 0 and _are_chunks(file, magic, position, size):
                break
            field = position - struct.calcsize(form[-1]), form[0] + form[-1]
            return position, *((stated, field) if large is None else large)
        if name == b"ds64":
            large = struct.unpack("<8xQ", file.read(16).ljust(16, b"\0"))[0], (position + 8, "<Q")
        if not 0 <= stated <= size:
            break
        position += -(-stated // alignment) * alignment
    return 0, 0, (0, "")


def skipped_bytes(file: BinaryIO, magic: bytes, end: int) -> int:
    """Return how many bytes follow the end of the samples without being chunks; less than the head of one are none."""
    size = file.seek(0, os.SEEK_END)
    _, form, alignment, _ = _CHUNKS.get(magic, (0, "8s", 1, b""))
    end += -end % alignment
    if size - end < struct.calcsize(form) or (magic in _CHUNKS and _are_chunks(file, magic, end, size)):
        return 0
    return size - end


def _are_chunks(file: BinaryIO, magic: bytes, position: int, size: int) -> bool:
    """Whether chunks fill a file from a position to its end."""
    _, form, alignment, _ = _CHUNKS[magic]
    for _ in range(MOST_CHUNKS):
        file.seek(position)
        head = file.read(struct.calcsize(form))
        if len(head) < struct.calcsize(form) or not head[:4].isascii() or not head[:4].decode().isprintable():
            break
        length = struct.unpack(form, head)[1] - (len(head) if magic == b"riff" else 0)
        if length < 0:
            break
        position += len(head) + length
        if position >= size:
            return position - size < alignment
        position += -position % alignment
    return False
