"""Files that are made small for distribution: rounded numbers, and streams of xz.

Numbers with few different bits compress well: costs in steps of 1/32 take a quarter of the space, and do not change
what is recognised.
"""

import lzma

import numpy as np

from readers.common.arrays import Float32Array
from readers.common.file_part import FilePart
from readers.errors import FormatError

STEP = 1 / 32  # of costs, -ln of probabilities
# Four positions of bytes, as most content consists of numbers of four bytes.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "pb": 2}]
MAX_MEMORY = 1 << 27  # bytes for unpacking
MAX_RATIO, SMALL = 1000, 1 << 20  # bytes per packed byte in larger content; tables of bundles have up to 40


def rounded_costs(costs: Float32Array) -> Float32Array:
    """Return costs in steps of 1/32; infinite ones stay."""
    return (np.round(costs / np.float32(STEP)) * np.float32(STEP)).astype(np.float32)


def compress(content: bytes) -> bytes:
    """Return a stream of xz."""
    return lzma.compress(content, lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=FILTERS)


def decompress(part: FilePart, size: int) -> bytes:
    """Return the content of a stream of xz.

    Parameters
    ----------
    part : FilePart
    size : int
        Bytes of the content.

    Returns
    -------
    bytes

    Raises
    ------
    FormatError
        For a damaged stream, one of another size, and a size beyond all reason; no more than `size` bytes are unpacked.
    OSError
    """
    if size > max(SMALL, MAX_RATIO * part.size):
        raise FormatError(f"{part}: {size} bytes in {part.size}; expected at most {MAX_RATIO} times as many; damaged")
    stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, MAX_MEMORY)
    try:
        content = stream.decompress(part.read_bytes(), size + 1)
    except lzma.LZMAError as fault:
        raise FormatError(f"{part}: {fault}; expected a stream of xz; the file is damaged") from fault
    if len(content) != size or not stream.eof or stream.unused_data:
        raise FormatError(f"{part}: not {size} bytes, unpacked; expected as many; the file is damaged")
    return content
