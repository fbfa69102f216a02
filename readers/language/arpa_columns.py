"""Fast reading of ARPA files: compiled loops parse the bytes of a section.

Returns None for anything unusual; `readers.language.arpa` then reads the file line by line, and reports errors.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readers.common.text import canonical, is_number
from readers.errors import FormatError

_TITLE = rb"^[ \t]*\\(\d+)-grams:[ \t]*$"
_FIRST_TITLE = re.compile(rb"^[ \t]*\\1-grams:[ \t]*$", re.MULTILINE)
# Blanks of str.split outside of ASCII, and control characters: files with these are read line by line.
_OTHER_BLANKS = re.compile(
    rb"\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]|\xe2\x81\x9f|\xe3\x80\x80", re.DOTALL
)
_ROWS_AT_ONCE = 1 << 16
_DECODED_AT_ONCE = 1 << 20

Columns = tuple[npt.NDArray[np.int32], npt.NDArray[np.float64], npt.NDArray[np.float64]]


class WordTable(NamedTuple):
    """Hash table of the words: `slots` (2^m,) i4, -1 where free; word w is text[begin[w] : end[w]], (V,) i8 each."""

    slots: npt.NDArray[np.int32]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]


def read_columns(
    raw: bytes, read_header: Callable[[list[str]], tuple[list[int], int]]
) -> tuple[list[str], list[Columns]] | None:
    """Return the vocabulary and, per order, words (n, k) i4, log10 probabilities (n,) f8 and log10 back-offs (n,) f8.

    read_header(lines): returns the announced counts and the index of the line after them; its exceptions are passed on.
    The result is None if anything is unusual; numbers are parsed exactly as Python does.
    """
    raw = _plain(raw)
    title = _FIRST_TITLE.search(raw)
    if title is None:
        return None
    try:
        lines = raw[: title.end()].decode().split("\n")
        counts, index = read_header(lines)
    except (UnicodeDecodeError, FormatError):
        return None
    if any(line.strip() for line in lines[index:-1]) or min(counts) < 0 or 3 * sum(counts) > len(raw):
        return None
    return _Sections(raw).read(counts, title.end())


def _plain(raw: bytes) -> bytes:
    """Return the text with newlines as line ends, if it is UTF-8 without unusual characters; else nothing."""
    raw = raw.removeprefix(codecs.BOM_UTF8)
    if b"\0" in raw:
        return b""
    if not raw.isascii():
        try:
            if any(canonical(text) != text for text in _pieces(raw)):
                raw = canonical(raw.decode()).encode()
        except UnicodeDecodeError:
            return b""
        if _OTHER_BLANKS.search(raw):
            return b""
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw if raw.endswith(b"\n") else raw + b"\n"


def _pieces(raw: bytes) -> Iterator[str]:
    """Yield the text in pieces of whole lines, which take less memory than all of it."""
    begin = 0
    while begin < len(raw):
        end = raw.find(b"\n", begin + _DECODED_AT_ONCE) + 1 or len(raw)
        yield raw[begin:end].decode()
        begin = end


class _Sections:
    """The sections of one file, in order."""

    def __init__(self, raw: bytes):
        self.raw = raw
        self.text = np.frombuffer(raw, np.uint8)

    def read(self, counts: list[int], at: int) -> tuple[list[str], list[Columns]] | None:
        size = counts[0]
        slots = np.full(1 << max(4, (2 * size - 1).bit_length()), -1, np.int32)
        table = WordTable(slots, np.zeros(size, np.int64), np.zeros(size, np.int64))
        orders = []
        for order, count in enumerate(counts, 1):
            begin = self._after_title(at, order) if order > 1 else at
            section = None if begin is None else self._section(begin, order, count, table)
            if section is None:
                return None
            at, columns = section
            orders.append(columns)
        line = self._line(at)
        if line and line.strip() != b"\\end\\":
            return None
        vocabulary = [self.raw[a:b].decode() for a, b in zip(table.begin.tolist(), table.end.tolist())]
        return vocabulary, orders

    def _line(self, at: int) -> bytes:
        return self.raw[at : self.raw.index(b"\n", at)] if at < len(self.raw) else b""

    def _after_title(self, at: int, order: int) -> int | None:
        line = self._line(at)
        match = re.fullmatch(_TITLE, line)
        return at + len(line) if match and match.group(1) == b"%d" % order else None

    def _section(self, at: int, order: int, count: int, table: WordTable) -> tuple[int, Columns] | None:
        """Return (offset of the next section, columns); reads exactly count rows."""
        from readers.language.arpa_kernels import DONE, FAULT, read_rows

        words = np.empty((count, order), np.int32)
        logprob = np.empty(count)
        backoff = np.empty(count)
        odd = np.empty((2 * _ROWS_AT_ONCE, 3), np.int64)
        row = 0
        while row < count:
            last = min(row + _ROWS_AT_ONCE, count)
            status, at, row, num_odd = read_rows(self.text, at, order, table, row, last, words, logprob, backoff, odd)
            if status == FAULT or not self._spell(odd[:num_odd].tolist(), logprob, backoff):
                return None
            if status == DONE and row < count:
                return None
        # Called without space for odd numbers, the loop reads nothing but detects further rows.
        status, at, _, _ = read_rows(self.text, at, order, table, 0, 1, words, logprob, backoff, odd[:0])
        if status != DONE:
            return None
        return at, (words, logprob, backoff)

    def _spell(self, odd: list[list[int]], logprob: npt.NDArray[np.float64], backoff: npt.NDArray[np.float64]) -> bool:
        """Parse the remaining numbers with Python."""
        for where, begin, end in odd:
            token = self.raw[begin:end].decode()
            if not is_number(token) and token.lower() not in ("-inf", "-infinity"):
                return False
            (backoff if where & 1 else logprob)[where >> 1] = float(token)
        return True
