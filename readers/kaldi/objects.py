r"""Kaldi's objects, binary or text, one after another: tokens, numbers, vectors and matrices, as in models.

A binary file begins with `\0B`.  Numbers follow a byte that gives their size; a token ends with a blank; vectors and
matrices are a token for their type, sizes and values.  In text, blanks separate everything.  Sizes are checked against
the size of the file before memory is allocated.  Source: Kaldi's documentation, "Kaldi I/O mechanisms"; for compressed
matrices, the comments of its compressed-matrix.h.
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from readers.common.text import to_numbers
from readers.errors import FormatError
from readers.kaldi.ark import BINARY

MOST_TOKEN_BYTES = 1000
_BLANKS = b" \t\r\n"
_FLOATS: dict[bytes, np.dtype[Any]] = {b"F": np.dtype("<f4"), b"D": np.dtype("<f8")}
Floats = npt.NDArray[np.float64]


class KaldiObjects:
    """Reads the objects of a file in order.

    Parameters
    ----------
    path : path
        Its name in messages, and the file that is read.
    data : bytes, optional
        The content, if it has been read.

    Attributes
    ----------
    position : int
        Byte of the next object.
    is_binary : bool

    Raises
    ------
    FormatError
        From every method, with file and byte, for what is not such an object, and for values that are not finite.
    OSError
    """

    def __init__(self, path: str | Path, data: bytes | None = None) -> None:
        self.path = path
        self.data = Path(path).read_bytes() if data is None else data
        self.is_binary = self.data.startswith(BINARY)
        self.position = len(BINARY) if self.is_binary else 0

    def refuse(self, found: object, expected: str, position: int | None = None) -> NoReturn:
        """Raise FormatError at a byte; by default, at the next object."""
        raise FormatError(
            f"{self.path}:{self.position if position is None else position}: {str(found)[:120]}; expected {expected}"
        )

    def token(self) -> str:
        """Return the next token, such as ``<Nnet3>``."""
        if not self.is_binary:
            return self._word("a token")
        end = self.data.find(b" ", self.position, self.position + MOST_TOKEN_BYTES)
        if end <= self.position:
            self.refuse(repr(self.data[self.position : self.position + 20]), "a token")
        raw = self.data[self.position : end]
        text = raw.decode("utf-8", "replace")
        if not text.isprintable():
            self.refuse(repr(raw[:20]), "a token")
        self.position = end + 1
        return text

    def peek(self) -> str:
        """Return the next token without reading it."""
        begin = self.position
        token = self.token()
        self.position = begin
        return token

    def expect(self, *tokens: str) -> str:
        """Return the next token, one of those given."""
        begin = self.position
        token = self.token()
        if token not in tokens:
            self.refuse(repr(token), " or ".join(tokens), begin)
        return token

    def accept(self, token: str) -> bool:
        """Read the next token if it is the one given; return whether it is."""
        begin = self.position
        if self.position < len(self.data) and self.token() == token:
            return True
        self.position = begin
        return False

    def integer(self, least: int = -(2**31), most: int = 2**31 - 1) -> int:
        """Return an integer of 32 bits in a range."""
        begin = self.position
        if self.is_binary:
            (value,) = struct.unpack("<i", self._sized(4, "an integer of 4 bytes"))
        else:
            (value,) = self._integers([self._word("an integer")], begin)
        if not least <= value <= most:
            self.refuse(value, f"{least} to {most}", begin)
        return int(value)

    def unsigned(self, most: int = 2**32 - 1) -> int:
        """Return an unsigned integer of 32 bits; in binary form, its size is written as -4."""
        if not self.is_binary:
            return self.integer(0, min(most, 2**31 - 1))
        begin = self.position
        mark = self._take(1, "an unsigned integer")
        if mark != b"\xfc":
            self.refuse(repr(mark), "an unsigned integer of 4 bytes", begin)
        (value,) = struct.unpack("<I", self._take(4, "an unsigned integer"))
        if value > most:
            self.refuse(value, f"0 to {most}", begin)
        return int(value)

    def number(self) -> float:
        """Return a number, of 4 or 8 bytes in binary form."""
        begin = self.position
        if self.is_binary:
            size = self.data[begin : begin + 1]
            form = "<d" if size == b"\x08" else "<f"
            (value,) = struct.unpack(form, self._sized(struct.calcsize(form), "a number of 4 or 8 bytes"))
        else:
            (value,) = self._numbers([self._word("a number")], begin)
        return float(self._finite(np.array([value]), begin)[0])

    def boolean(self) -> bool:
        """Return a truth value, T or F."""
        begin = self.position
        letter = self._take(1, "T or F").decode("latin-1") if self.is_binary else self._word("T or F")
        if letter not in ("T", "F"):
            self.refuse(repr(letter), "T or F", begin)
        return letter == "T"

    def integers(self) -> npt.NDArray[np.int32]:
        """Return a vector of integers (N,)."""
        begin = self.position
        if not self.is_binary:
            return np.array(self._integers(self._bracket().split(), begin), np.int32)
        if self._take(1, "a vector of integers") != b"\x04":
            self.refuse(repr(self.data[begin : begin + 1]), "integers of 4 bytes", begin)
        (count,) = struct.unpack("<i", self._take(4, "the size of a vector"))
        return self._array(np.dtype("<i4"), (count,), begin).copy()

    def integer_pairs(self) -> list[tuple[int, int]]:
        """Return a vector of pairs of integers, `1,2` in text."""
        begin = self.position
        if self.is_binary:
            if self._take(1, "pairs of integers") != b"\x04":
                self.refuse(repr(self.data[begin : begin + 1]), "integers of 4 bytes", begin)
            (count,) = struct.unpack("<i", self._take(4, "the number of pairs"))
            values = self._array(np.dtype("<i4"), (count, 2), begin).ravel().tolist()
        else:
            pairs = [word.split(",") for word in self._bracket().split()]
            if any(len(pair) != 2 for pair in pairs):
                self.refuse(f"{len(pairs)} words", "pairs such as -1,0", begin)
            values = self._integers([number for pair in pairs for number in pair], begin)
        return list(zip(values[::2], values[1::2], strict=True))

    def line(self) -> str:
        """Return the text up to the end of the line, without it."""
        end = self.data.find(b"\n", self.position)
        if end < 0:
            self.refuse("no end of the line", "a line of text")
        try:
            text = self.data[self.position : end].decode().rstrip("\r")
        except UnicodeDecodeError:
            self.refuse("a line that is not UTF-8", "a line of text")
        self.position = end + 1
        return text

    def vector(self) -> Floats:
        """Return a vector (N,)."""
        begin = self.position
        if not self.is_binary:
            return self._finite(np.array(self._numbers(self._bracket().split(), begin)), begin)
        dtype = self._type("V", "a vector")
        return self._finite(self._array(dtype, (self.integer(),), begin), begin)

    def matrix(self) -> Floats:
        """Return a matrix (rows, cols), compressed ones expanded."""
        begin = self.position
        if not self.is_binary:
            rows = self._rows(begin)
            if len(set(map(len, rows))) > 1:
                self.refuse(f"{len(rows)} rows of unequal length", "a matrix", begin)
            return self._finite(np.array(rows, np.float64).reshape(len(rows), -1 if rows else 0), begin)
        if self.data.startswith(b"C", begin):
            with np.errstate(over="ignore", invalid="ignore"):  # of a header that is not finite
                values = self._compressed()
            return self._finite(values, begin)
        dtype = self._type("M", "a matrix")
        return self._finite(self._array(dtype, (self.integer(), self.integer()), begin), begin)

    def symmetric(self) -> Floats:
        """Return a symmetric matrix (N, N), of which the lower triangle is stored row by row."""
        begin = self.position
        if self.is_binary:
            dtype = self._type("P", "a packed matrix")
            size = self.integer(0)
            values = self._array(dtype, (size * (size + 1) // 2,), begin)
        else:
            rows = self._rows(begin)
            size = len(rows)
            if any(len(row) != number for number, row in enumerate(rows, 1)):
                self.refuse(f"{size} rows that are no triangle", "row n of n numbers", begin)
            values = np.array([value for row in rows for value in row])
        full = np.zeros((size, size))
        full[np.tril_indices(size)] = self._finite(values, begin)
        return full + np.tril(full, -1).T

    def end(self) -> None:
        """Check that nothing but blanks is left."""
        if self.data[self.position :].strip(_BLANKS):
            self.refuse(repr(self.data[self.position : self.position + 20]), "the end of the file")

    def _take(self, count: int, expected: str) -> bytes:
        raw = self.data[self.position : self.position + count]
        if len(raw) < count:
            self.refuse("the end of the file", expected)
        self.position += count
        return raw

    def _sized(self, size: int, expected: str) -> bytes:
        """Return the bytes of a number that follow its size."""
        begin = self.position
        length = self._take(1, expected)
        if length[0] != size:
            self.refuse(repr(length), expected, begin)
        return self._take(size, expected)

    def _type(self, letter: str, expected: str) -> np.dtype[Any]:
        """Read the token of a vector or matrix, such as FM; return the type of its values."""
        begin = self.position
        token = self._take(3, expected)
        if token[:1] not in _FLOATS or token[1:] != letter.encode() + b" ":
            self.refuse(repr(token), expected, begin)
        return _FLOATS[token[:1]]

    def _array(self, dtype: np.dtype[Any], shape: tuple[int, ...], begin: int) -> npt.NDArray[Any]:
        """Return a view of values in the file."""
        sizes = "x".join(map(str, shape))
        if min(shape) < 0:
            self.refuse(f"size {sizes}", "sizes of at least 0", begin)
        count = 1
        for size in shape:
            count *= size
        end = self.position + count * dtype.itemsize
        if end > len(self.data):
            self.refuse(f"{sizes} values end at byte {end}", f"at most {len(self.data)}, the size of the file", begin)
        values = np.frombuffer(self.data, dtype, count, self.position).reshape(shape)
        self.position = end
        return values

    def _compressed(self) -> Floats:
        begin = self.position
        kind = self._take(3, "a matrix")
        if kind in (b"CM2", b"CM3"):
            kind += self._take(1, "a matrix")
        if kind not in (b"CM ", b"CM2 ", b"CM3 "):
            self.refuse(repr(kind), "a compressed matrix, CM, CM2 or CM3", begin)
        least, span, rows, cols = struct.unpack("<ffii", self._take(16, "the header of a matrix"))
        if kind != b"CM ":
            dtype = np.dtype("<u2" if kind == b"CM2 " else "u1")
            steps = np.iinfo(dtype).max
            return least + span / steps * self._array(dtype, (rows, cols), begin).astype(np.float64)
        # A column has its minimum, quartiles and maximum; a byte is a place between two of them.
        quantiles = least + span / 65535 * self._array(np.dtype("<u2"), (cols, 4), begin).astype(np.float64)
        places = self._array(np.dtype("u1"), (cols, rows), begin).astype(np.float64)
        columns = [np.interp(row, (0, 64, 192, 255), marks) for row, marks in zip(places, quantiles, strict=True)]
        return np.array(columns).reshape(cols, rows).T

    def _finite(self, values: npt.NDArray[Any], begin: int) -> Floats:
        with np.errstate(invalid="ignore"):
            numbers = values.astype(np.float64)
        if not np.isfinite(numbers).all():
            self.refuse("values that are not finite", "numbers", begin)
        return numbers

    def _word(self, expected: str) -> str:
        """Return the next word of a text."""
        data = self.data
        begin = self.position
        while begin < len(data) and data[begin] in _BLANKS:
            begin += 1
        end = begin
        while end < len(data) and data[end] not in _BLANKS and end - begin <= MOST_TOKEN_BYTES:
            end += 1
        if end == begin:
            self.refuse("the end of the file", expected)
        word = data[begin:end].decode("utf-8", "replace")
        if end - begin > MOST_TOKEN_BYTES or not word.isprintable():
            self.refuse(repr(word[:20]), expected, begin)
        self.position = end
        return word

    def _bracket(self) -> str:
        """Return the text between the next brackets."""
        begin = self.position
        opening = self.data.find(b"[", begin)
        if opening < 0 or self.data[begin:opening].strip(_BLANKS):
            self.refuse(repr(self.data[begin : begin + 20]), "[")
        closing = self.data.find(b"]", opening)
        if closing < 0:
            self.refuse("[ is not closed", "]", opening)
        self.position = closing + 1
        return self.data[opening + 1 : closing].decode("utf-8", "replace")

    def _rows(self, begin: int) -> list[list[float]]:
        lines = self._bracket().split("\n")
        return [self._numbers(line.split(), begin) for line in lines if line.strip()]

    def _numbers(self, words: Sequence[str], begin: int) -> list[float]:
        try:
            return [float(value) for value in to_numbers(list(words))]
        except ValueError as fault:
            self.refuse(fault, "numbers", begin)

    def _integers(self, words: Sequence[str], begin: int) -> list[int]:
        for word in words:
            digits = word.removeprefix("-")
            if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and -(2**31) <= int(word) < 2**31):
                self.refuse(repr(word), "an integer", begin)
        return [int(word) for word in words]
