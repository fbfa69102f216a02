"""Archives of audio as Kaldi's wav-copy writes them: WAV files one after the other, each after its key, plain or gzip.

Source: Kaldi's documentation, "Kaldi I/O mechanisms"; WaveHolder in its source.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from readers.common.text import GZIP_MAGIC
from readers.errors import FormatError
from readers.kaldi.ark import read_key

MOST_BYTES = 1 << 31  # of a WAV file, whose sizes have 32 bits
_PIECE = 1 << 20


def read_wav_at(path: str | Path, offset: int) -> bytes:
    """Return the WAV file at an offset of an archive.

    Parameters
    ----------
    path : path
        Archive, not compressed.
    offset : int
        As in a script file.

    Returns
    -------
    bytes

    Raises
    ------
    FormatError
        If there is no complete WAV file.
    """
    with Path(path).open("rb") as file:
        file.seek(offset)
        return _read_wav(file, f"{path}:{offset}")


def read_wav_archive(path: str | Path) -> Iterator[tuple[str, bytes]]:
    """Yield the keys and WAV files of an archive.

    Parameters
    ----------
    path : path
        Archive, plain or gzip.

    Yields
    ------
    (key, content) : (str, bytes)

    Raises
    ------
    FormatError
        For a repeated key, another object than a WAV file, and a truncated archive.
    """
    with Path(path).open("rb") as file:
        is_gzip = file.read(2) == GZIP_MAGIC
    keys = set()
    with gzip.open(path) if is_gzip else Path(path).open("rb") as file:
        try:
            while (key := read_key(file, path)) is not None:
                if key in keys:
                    raise FormatError(f"{path}: key {key!r} is repeated; expected each key once")
                keys.add(key)
                yield key, _read_wav(file, f"{path}: {key}")
        except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
            raise FormatError(f"{path}: damaged gzip data ({fault}); expected a complete gzip file") from fault


def _read_wav(file: BufferedIOBase, where: str) -> bytes:
    head = file.read(12)
    size = struct.unpack("<I", head[4:8])[0] + 8 if len(head) == 12 else 0
    if head[:4] != b"RIFF" or head[8:] != b"WAVE" or not 12 < size <= MOST_BYTES:
        raise FormatError(f"{where}: found {head[:12]!r}; expected a WAV file with its length")
    pieces = [head]
    num_missing = size - len(head)
    while num_missing:
        pieces.append(file.read(min(num_missing, _PIECE)))
        if not pieces[-1]:
            raise FormatError(
                f"{where}: {size - num_missing} bytes of a WAV file; expected {size}; the archive is truncated"
            )
        num_missing -= len(pieces[-1])
    return b"".join(pieces)
