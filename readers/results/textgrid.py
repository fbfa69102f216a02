"""Reads Praat's TextGrids: intervals with text, in tiers.

Both text forms are a sequence of strings in double quotes, numbers and flags such as <exists>; in the long form, words
without quotes, such as `xmin =` and `intervals [1]:`, explain them, and are skipped.  `!` begins a comment.
Source: Praat's manual, "TextGrid file formats".
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from readers.common.report import Figures
from readers.common.text import canonical, decode_text, is_number
from readers.errors import FormatError
from readers.results.tiers import Interval, Tier

MOST_BYTES = 1 << 25  # an hour of speech with words and phones has two million
INTERVALS, POINTS = "IntervalTier", "TextTier"
OVERLAP = 1e-3  # seconds by which intervals may overlap through rounding
_TOKEN = re.compile(r'"(?:[^"]++|"")*+"|"|![^\n]*|[^\s"]+')  # possessive: time proportional to the length
_EXPECTED = "expected a TextGrid that Praat has saved as a text file"


def read_textgrid(path: str | Path) -> tuple[Tier, ...]:
    """Read the tiers of a TextGrid.

    Parameters
    ----------
    path : path
        Text file in Praat's long or short form, in UTF-8 or UTF-16 with a byte order mark.

    Returns
    -------
    tuple of Tier

    Raises
    ------
    FormatError
        With file and line, for a file that is no TextGrid, ends too early, or contains intervals in wrong order.

    References
    ----------
    Praat's manual, "TextGrid file formats".
    """
    size = Path(path).stat().st_size
    if size > MOST_BYTES:
        raise FormatError(f"{path}: {size} bytes; expected a TextGrid of at most {MOST_BYTES}")
    raw = Path(path).read_bytes()
    if raw.startswith(b"ooBinaryFile"):
        raise FormatError(f"{path}: a binary file of Praat; {_EXPECTED}; open it in Praat and save it as a text file")
    text = decode_text(raw, path)
    tokens = _Tokens(text, path)
    if not text.lstrip().startswith(("File type", '"ooTextFile')):
        raise FormatError(f"{path}:1: {text.lstrip()[:30]!r}; {_EXPECTED}")
    file_type = tokens.string()
    kind = tokens.string()
    if not file_type.startswith("ooTextFile") or kind != "TextGrid":
        raise FormatError(f"{tokens.where}: a file of type {file_type!r}, class {kind!r}; {_EXPECTED}")
    tokens.number()
    tokens.number()
    if tokens.flag() != "<exists>":
        return ()
    return tuple(_tier(tokens) for _ in range(tokens.count()))


def _tier(tokens: "_Tokens") -> Tier:
    kind = tokens.string()
    where = tokens.where
    if kind not in (INTERVALS, POINTS):
        raise FormatError(f"{where}: tier of class {kind[:40]!r}; expected {INTERVALS} or {POINTS}")
    name = " ".join(tokens.string().split())
    tokens.number()
    tokens.number()
    intervals: list[Interval] = []
    for _ in range(tokens.count()):
        start = tokens.number()
        line = tokens.line
        end = start if kind == POINTS else tokens.number()
        if not start <= end or (intervals and start < intervals[-1].end - OVERLAP):
            raise FormatError(
                f"{tokens.path}:{line}: from {start:g} to {end:g} s in tier {name[:40]!r}; expected intervals in order"
            )
        intervals.append(Interval(start, end, tokens.string(), line))
    return Tier(name, kind == POINTS, tuple(intervals))


class _Tokens:
    """The strings, numbers and flags of a file, one after the other.

    line: the line of the last one.
    """

    def __init__(self, text: str, path: str | Path):
        self.path = path
        self.line = 1
        self._text = text
        self._position = 0
        self._matches = self._meaningful()

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"

    def string(self) -> str:
        """Return the next token, which must be a string, without quotes."""
        token = self._next("a text in double quotes")
        if not token.startswith('"'):
            raise FormatError(f"{self.where}: {token[:40]!r}; expected a text in double quotes")
        return canonical(token[1:-1].replace('""', '"'))

    def number(self) -> float:
        """Return the next token, which must be a number."""
        token = self._next("a number")
        if token[0] in '"<' or not math.isfinite(float(token)):
            raise FormatError(f"{self.where}: {token[:40]!r}; expected a number")
        return float(token)

    def count(self) -> int:
        """Return the next token, which must be a number of items."""
        value = self.number()
        if value < 0 or value != int(value):
            raise FormatError(f"{self.where}: {value:g}; expected the number of tiers or intervals")
        return int(value)

    def flag(self) -> str:
        """Return the next token, which must be a flag."""
        token = self._next("<exists>")
        if not token.startswith("<"):
            raise FormatError(f"{self.where}: {token[:40]!r}; expected <exists>")
        return token

    def _next(self, expected: str) -> str:
        token = next(self._matches, None)
        if token is None:
            raise FormatError(f"{self.where}: the file ends here; expected {expected}; it is truncated")
        return token

    def _meaningful(self) -> Iterator[str]:
        for match in _TOKEN.finditer(self._text):
            token = match[0]
            if token[0] != '"' and token not in ("<exists>", "<absent>") and not is_number(token):
                continue
            self.line += self._text.count("\n", self._position, match.start())
            self._position = match.start()
            if token == '"':
                raise FormatError(f"{self.where}: a quote is not closed; expected another one")
            yield token


def summary(path: str) -> Figures:
    """Return the figures of a file for `argonaut info`."""
    tiers = read_textgrid(path)
    ends = [interval.end for tier in tiers for interval in tier.intervals]
    return [
        ("tiers", " ".join(tier.name for tier in tiers if tier.name) or "none named"),
        ("intervals", sum(len(tier.intervals) for tier in tiers if not tier.has_points)),
        ("ends at", f"{max(ends, default=0.0):.2f} s"),
    ]
