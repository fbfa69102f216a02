"""What CMU Sphinx's binary files have in common: a byte order, sizes that are checked, a checksum.

An s3 file begins with `s3`, lines `name value` and `endhdr`; then the number 0x11223344 shows the byte order, and, with
`chksum0 yes`, the last four bytes are a checksum of all 32-bit words between.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from readers.common.arrays import Float32Array
from readers.errors import FormatError

ORDER_MARK = 0x11223344
MAX_HEADER = 4096  # bytes


class BinaryFile:
    """The bytes of a file that are left to read; every message names file and byte.

    Parameters
    ----------
    path : str or Path
    content : bytes
    position : int
        Of the next byte.
    order : str
        `<` or `>`.
    """

    def __init__(self, path: str | Path, content: bytes, position: int = 0, order: str = "<"):
        self.path = path
        self.content = content
        self.position = position
        self.order = order

    def fault(self, found: str, expected: str) -> FormatError:
        """Return the error for what was found before the next byte."""
        return FormatError(f"{self.path}: byte {self.position}: {found}; expected {expected}")

    def take(self, size: int, what: str) -> bytes:
        """Return the next bytes.  Raises FormatError for a file that ends before them."""
        if not 0 <= size <= len(self.content) - self.position:
            left = len(self.content) - self.position
            raise self.fault(f"{what} of {size} bytes, {left} left", "a complete file")
        self.position += size
        return self.content[self.position - size : self.position]

    def array(self, kind: str, count: int, what: str) -> npt.NDArray[np.generic]:
        """Return the next numbers, (count,); kind: as of numpy, without byte order."""
        dtype = np.dtype(f"{self.order}{kind}")
        return np.frombuffer(self.take(count * dtype.itemsize, what), dtype)

    def integers(self, count: int, what: str, least: int = 0) -> list[int]:
        """Return the next 32-bit numbers.  Raises FormatError for one below `least`."""
        numbers: list[int] = self.array("i4", count, what).tolist()
        if numbers and min(numbers) < least:
            raise self.fault(f"{what} {min(numbers)}", f"at least {least}")
        return numbers

    def integer(self, what: str, least: int = 0) -> int:
        """Return the next 32-bit number."""
        return self.integers(1, what, least)[0]

    def floats(self, count: int, what: str) -> Float32Array:
        """Return the next float32 numbers, (count,).  Raises FormatError for one that is not finite."""
        values = self.array("f4", count, what).astype(np.float32)
        if not np.isfinite(values).all():
            raise self.fault(f"{what} with a number that is infinite or NaN", "finite numbers")
        return values

    def finish(self) -> None:
        """Raise FormatError for bytes that are left."""
        if self.position != len(self.content):
            raise self.fault(f"{len(self.content) - self.position} bytes after the last number", "the end of the file")


def checksum(words: npt.NDArray[np.generic]) -> int:
    """Return Sphinx's checksum of 32-bit words: each is added to the sum so far, which is rotated by 20 bits first."""
    total = 0
    for word in words.tolist():
        total = ((total << 20 | total >> 12) + word) & 0xFFFFFFFF
    return total


def open_s3(path: str | Path) -> BinaryFile:
    """Open an s3 file: check header and checksum.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    BinaryFile
        At the first number after the header, without the checksum.

    Raises
    ------
    FormatError
        For another format, a damaged header, and a wrong checksum.
    OSError
    """
    content = Path(path).read_bytes()
    file = BinaryFile(path, content)
    if not content.startswith(b"s3\n"):
        raise file.fault(repr(content[:8]), "the line s3, with which binary files of Sphinx begin")
    end = content.find(b"endhdr\n", 0, MAX_HEADER)
    if end < 0:
        raise file.fault("no line endhdr", f"one in the first {MAX_HEADER} bytes")
    lines = [line.split() for line in content[3:end].decode("latin-1").split("\n")]
    header = {fields[0]: fields[-1] for fields in lines if len(fields) > 1}
    file.position = end + len(b"endhdr\n")
    mark = file.take(4, "the mark of the byte order")
    orders = {ORDER_MARK.to_bytes(4, "little"): "<", ORDER_MARK.to_bytes(4, "big"): ">"}
    if mark not in orders:
        raise file.fault(f"mark {mark.hex()} of the byte order", "44332211 or 11223344")
    file.order = orders[mark]
    if header.get("chksum0") == "yes":
        size = len(content) - file.position - 4
        if size < 0 or size % 4:
            raise file.fault(f"{size} bytes before the checksum", "32-bit words; the file is truncated")
        words = np.frombuffer(content, f"{file.order}u4", size // 4, file.position)
        stored = int.from_bytes(content[-4:], "little" if file.order == "<" else "big")
        if checksum(words) != stored:
            raise file.fault(f"checksum {checksum(words):08x}", f"{stored:08x}, as its end says; the file is damaged")
        file.content = content[:-4]
    return file


def checked_total(file: BinaryFile, expected: int, what: str) -> None:
    """Read the number of values that follow.  Raises FormatError unless it is the expected one."""
    total = file.integer(f"number of {what}")
    if total != expected:
        raise file.fault(f"{total} {what}", f"{expected}, the product of the sizes before")
