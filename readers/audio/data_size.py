"""How many bytes of samples the header of an audio file states, and how many there are."""

import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

UNKNOWN_LENGTH = 0x7FFFF000  # a writer that cannot seek back writes a length of at least this, or 0
MOST_CHUNKS = 10_000
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
    """

    stated: int | None
    present: int
    field: tuple[int, str]


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
        stated = None
    return DataSize(stated, present, field)


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
            if stated == 0 and _are_chunks(file, position, form, size):
                break
            field = position - struct.calcsize(form[-1]), form[0] + form[-1]
            return position, *((stated, field) if large is None else large)
        if name == b"ds64":
            large = struct.unpack("<8xQ", file.read(16).ljust(16, b"\0"))[0], (position + 8, "<Q")
        if not 0 <= stated <= size:
            break
        position += -(-stated // alignment) * alignment
    return 0, 0, (0, "")


def _are_chunks(file: BinaryIO, position: int, form: str, size: int) -> bool:
    """Whether chunks follow up to the end of the file, after a chunk that is really empty."""
    for _ in range(MOST_CHUNKS):
        file.seek(position)
        head = file.read(struct.calcsize(form))
        if len(head) < struct.calcsize(form) or not head[:4].isascii() or not head[:4].decode().isprintable():
            break
        length = struct.unpack(form, head)[1]
        position += len(head) + length + length % 2
        if size <= position <= size + 1:
            return True
    return False
