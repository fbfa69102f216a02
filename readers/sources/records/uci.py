"""UCI text: one record per line with blank-separated columns of numbers and labels; parsed without a loop over tokens.

Separators are blank, tab, carriage return and those that the user adds; several in a row count as one.  Empty lines are
ignored.  Every record has as many columns as the first.
Source: CNTK book 3.4.1.  CNTK's parser ignores a last line without line end and reads a string among the features as
zero; this parser reads that line and rejects the string.
"""

import gzip
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from readers.common.report import Figures, rows_of
from readers.common.text import GZIP_MAGIC, is_number
from readers.errors import FormatError

BLOCK_BYTES = 1 << 23
MAX_LABEL_BYTES = 256
MAX_LINE_BYTES = 1 << 26
FLOAT32_MAX = float(np.finfo(np.float32).max)
_BLANKS = b" \t\r"
_NEWLINE = 10


@dataclass(frozen=True)
class UCILayout:
    """The columns to read, counted from 0.

    numbers: columns of numbers, in the order of the result.
    labels: columns of text.
    delimiters: characters that separate columns, in addition to blanks.
    decimal_point: one character.
    """

    numbers: Sequence[int]
    labels: Sequence[int]
    delimiters: str = ""
    decimal_point: str = "."

    @property
    def num_columns(self) -> int:
        """Minimum number of columns of a record."""
        return 1 + max((*self.numbers, *self.labels), default=-1)


@dataclass(frozen=True, eq=False)
class UCIBlock:
    """Some consecutive records.

    lines: (n,) int64, line number of each record, from 1.
    numbers: (n, len(layout.numbers)) float32, C order.
    labels: for each column of layout.labels (n,) bytes of fixed width.
    end: offset in the file of the end of the block.
    """

    lines: np.ndarray
    numbers: np.ndarray
    labels: list[np.ndarray]
    end: int


def read_uci(path: str | Path, layout: UCILayout, block_bytes: int = BLOCK_BYTES) -> Iterator[UCIBlock]:
    """Yield the records of a plain or gzip text file in blocks of some megabytes; there may be none.

    Raises FormatError with file and line for a record with another number of columns than the first, or too few, for a
    token that is not a finite number in a column of numbers, and for a label longer than 256 bytes or not in UTF-8.
    """
    table = np.arange(256, dtype=np.uint8)
    for separator in _BLANKS + layout.delimiters.encode():
        table[separator] = ord(" ")
    if layout.decimal_point != ".":
        table[ord(".")] = ord("?")  # makes tokens with a point invalid numbers
        table[ord(layout.decimal_point)] = ord(".")
    line = 1
    num_columns = None
    for text, end in _line_blocks(path, block_bytes):
        parser = _BlockParser(path, layout, table, text, line, end)
        block = parser.parse(num_columns)
        line += parser.num_lines
        if block is not None:
            num_columns = parser.num_columns
            yield block


def _line_blocks(path: str | Path, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield (whole lines, offset in the file); adds a line end to the last line if it has none."""
    with Path(path).open("rb") as raw:
        compressed = raw.read(2) == GZIP_MAGIC
        raw.seek(0)
        file: IO[bytes] | gzip.GzipFile = gzip.GzipFile(fileobj=raw) if compressed else raw
        partial_line = b""
        first = True
        while True:
            try:
                piece = file.read(size)
            except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
                raise FormatError(f"{path}: damaged gzip data ({fault}); expected a complete gzip file") from fault
            if first and piece.startswith(b"\xef\xbb\xbf"):
                piece = piece[3:]
            first = False
            if not piece:
                if partial_line:
                    yield partial_line + b"\n", raw.tell()
                return
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield partial_line + piece[:cut], raw.tell()
                partial_line = piece[cut:]
            elif len(partial_line) < MAX_LINE_BYTES:
                partial_line += piece
            else:
                raise FormatError(
                    f"{path}: a line of more than {MAX_LINE_BYTES} bytes; expected text with one record per line"
                )


class _BlockParser:
    """Parses a block of whole lines; first_line: number of its first line."""

    def __init__(self, path: str | Path, layout: UCILayout, table: np.ndarray, text: bytes, first_line: int, end: int):
        self._path = path
        self._layout = layout
        self._end = end
        self._text = text
        self._bytes = table[np.frombuffer(text, np.uint8)]
        self._first_line = first_line
        newlines = np.flatnonzero(self._bytes == _NEWLINE)
        self._newlines = newlines
        self.num_lines = len(newlines)
        self.num_columns = 0

    def parse(self, num_columns: int | None) -> UCIBlock | None:
        """Return the records; None if all lines are empty.  num_columns: number of columns of the earlier records, if
        any.
        """
        layout = self._layout
        # A token begins at a character that follows a separator and is not one, and ends before the next separator.
        is_text = (self._bytes != ord(" ")) & (self._bytes != _NEWLINE)
        edges = np.flatnonzero(np.diff(is_text, prepend=False, append=False))
        starts = edges[0::2]
        ends = edges[1::2]
        if not len(starts):
            return None
        counts = np.diff(np.searchsorted(starts, self._newlines), prepend=0)
        lines = np.flatnonzero(counts)
        counts = counts[lines]
        lines = lines + self._first_line
        self.num_columns = num_columns or int(counts[0])
        self._check_columns(counts, lines)
        starts, ends = (edge.reshape(len(lines), self.num_columns) for edge in (starts, ends))
        labels = [self._labels(starts[:, k], ends[:, k], lines) for k in layout.labels]
        return UCIBlock(lines, self._numbers(starts, ends, lines), labels, self._end)

    def _check_columns(self, counts: np.ndarray, lines: np.ndarray) -> None:
        if self._layout.num_columns > self.num_columns:
            raise FormatError(
                f"{self._path}:{lines[0]}: {self.num_columns} columns; expected at least {self._layout.num_columns}, "
                "for start and dim"
            )
        odd = np.flatnonzero(counts != self.num_columns)
        if len(odd):
            raise FormatError(
                f"{self._path}:{lines[odd[0]]}: {counts[odd[0]]} columns; expected {self.num_columns}, as in earlier "
                "records"
            )

    def _numbers(self, starts: np.ndarray, ends: np.ndarray, lines: np.ndarray) -> np.ndarray:
        columns = sorted(set(self._layout.numbers))
        if not columns:
            return np.empty((len(lines), 0), np.float32)
        text = self._bytes
        if len(columns) < self.num_columns:
            text = text[_covered(starts[:, columns], ends[:, columns], len(text))]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)  # earlier versions of numpy warn about invalid text
                values = np.fromstring(text.tobytes(), np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            values = np.empty(0, np.float32)
        if values.size != len(lines) * len(columns):
            raise self._not_a_number(starts[:, columns], ends[:, columns], lines)
        values = values.reshape(len(lines), len(columns))
        if not np.isfinite(values).all():
            raise self._not_a_number(starts[:, columns], ends[:, columns], lines)
        if columns != list(self._layout.numbers):
            values = values[:, np.searchsorted(columns, self._layout.numbers)]
        return values

    def _not_a_number(self, starts: np.ndarray, ends: np.ndarray, lines: np.ndarray) -> FormatError:
        """Find the first invalid token, one by one, and return the error."""
        columns = sorted(set(self._layout.numbers))
        for line, begins, stops in zip(lines, starts, ends):
            for column, begin, stop in zip(columns, begins, stops):
                token = self._bytes[begin:stop].tobytes().decode("latin-1")
                if not is_number(token) or abs(float(token)) > FLOAT32_MAX:
                    token = self._text[begin:stop].decode("utf-8", "replace")
                    return FormatError(
                        f"{self._path}:{line}: {token[:40]!r} in column {column}, counted from 0; "
                        f"expected a number{self._hint(token)}"
                    )
        raise AssertionError(f"{self._path}: no token at fault in lines {lines[0]} to {lines[-1]}")

    def _hint(self, token: str) -> str:
        if is_number(token):
            return " within the range of float32" if self._layout.decimal_point == "." else ""
        if is_number(token.replace(",", ".")):
            return "; set customDecimalPoint or customDelimiter if necessary"
        return ""

    def _labels(self, starts: np.ndarray, ends: np.ndarray, lines: np.ndarray) -> np.ndarray:
        """Return the text of one column, (n,) bytes of fixed width."""
        widths = ends - starts
        width = int(widths.max())
        if width > MAX_LABEL_BYTES:
            raise FormatError(
                f"{self._path}:{lines[widths.argmax()]}: a label of {width} bytes; expected at most {MAX_LABEL_BYTES}"
            )
        raw = np.frombuffer(self._text, np.uint8)
        columns = np.arange(width)
        padded = np.append(raw, np.zeros(width, np.uint8))[starts[:, None] + columns]
        padded[columns >= widths[:, None]] = 0
        if not padded.min(initial=1, where=columns < widths[:, None]):
            raise FormatError(f"{self._path}: a label holds a zero byte; expected text")
        labels = padded.view(f"S{width}").ravel()
        if padded.max() > 127:
            for line, label in zip(lines, labels):
                try:
                    label.decode()
                except UnicodeDecodeError as fault:
                    raise FormatError(f"{self._path}:{line}: a label is not UTF-8 ({fault}); expected UTF-8") from fault
        return labels


def _covered(starts: np.ndarray, ends: np.ndarray, size: int) -> np.ndarray:
    """Return a mask (size,) of the characters of some tokens, each with the separator after it."""
    steps = np.zeros(size + 2, np.int8)
    steps[starts.ravel()] += 1
    steps[ends.ravel() + 1] -= 1
    return np.cumsum(steps, dtype=np.int8)[:size].astype(bool)


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    rows = rows_of(path)
    return [("records", len(rows)), ("columns", len(rows[0]))]
