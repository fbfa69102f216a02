"""Conversion of configuration values: numbers, switches, arrays, schedules.

The parameters `where` and `what` of these functions are for messages: the place of the value and its name.
Source: CNTK book, section 5.1.3 and table 5.1.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from readers.config.syntax import Span, inside_brackets, split_records, unquote
from readers.errors import ConfigError

_INTEGER = re.compile(r"[-+]?[0-9]{1,20}")
_FLOAT = re.compile(r"[-+]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
# Microsoft's C runtime prints infinity as 1.#INF; the book writes 1#INF.
_INFINITY = re.compile(r"([-+]?)(1?\.?#inf|inf|infinity)", re.IGNORECASE)
_REPEATED = re.compile(r"(.*\S)\s*\*\s*([0-9]+)", re.DOTALL)
MOST_INTEGER = 2**63
MAX_REPEATED = 1_000_000  # protects the memory from a typing error
_TRUE = ("true", "t", "1")
_FALSE = ("false", "f", "0", "")


class Schedule(tuple[Any, ...]):
    """A tuple of values for epoch 0, 1, ...; an index beyond the end returns the last value.

    Length and iteration are those of the values that were written.

    References
    ----------
    CNTK book, section 5.1.3.3.
    """

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Schedule(super().__getitem__(index))
        return super().__getitem__(min(index, len(self) - 1))


def parse_int(text: str, where: str, what: str) -> int:
    """Parse a decimal integer of at most 64 bits; `1e6` and `256.0` are integers, too."""
    if _FLOAT.fullmatch(text):
        number = int(text) if _INTEGER.fullmatch(text) else float(text)
        if abs(number) < MOST_INTEGER and number == int(number):
            return int(number)
    raise ConfigError(f"{where}: {what} is {text!r}; expected an integer")


def parse_float(text: str, where: str, what: str) -> float:
    """Parse a decimal number; `1#INF` (any case, either sign) is infinite."""
    if _FLOAT.fullmatch(text):
        return float(text)
    match = _INFINITY.fullmatch(text)
    if match:
        return float(match.group(1) + "inf")
    raise ConfigError(f"{where}: {what} is {text!r}; expected a number")


def parse_bool(text: str, where: str, what: str) -> bool:
    """Parse true, t, 1 or false, f, 0 or the empty text, in any case."""
    lower = text.lower()
    if lower in _TRUE:
        return True
    if lower in _FALSE:
        return False
    raise ConfigError(f"{where}: {what} is {text!r}; expected true or false")


def parse_choice(text: str, choices: Sequence[str], where: str, what: str) -> str:
    """Return the one of `choices` that the text spells, in any case."""
    for choice in choices:
        if text.lower() == choice.lower():
            return choice
    raise ConfigError(f"{where}: {what} is {text!r}; expected {' or '.join(choices)}{did_you_mean(text, choices)}")


def split_array(value: Span, what: str) -> list[Span]:
    r"""Return the elements of an array as spans, with repetitions expanded and one pair of quotes removed from each.

    Elements are separated by `:`, commas and newlines, or by a custom separator directly after the opening bracket:
    `{|c:\a|d:\b}`.  Brackets {} or () around the array are optional.  `v*3` is v three times, quoted or not.
    A `*` at the end of an element is an error; CNTK drops the rest of the array.
    """
    inner, separator = inside_brackets(value, "{(", ":")
    elements: list[Span] = []
    for element in split_records(inner, separator):
        text = element.text
        count = 1
        match = _REPEATED.fullmatch(text)
        if match:
            count = int(match.group(2)[:18])
            element = element.part(0, match.end(1))
            if not 1 <= count <= MAX_REPEATED:
                raise ConfigError(
                    f"{element.where}: {what} has {text!r}; expected a count of 1 to {MAX_REPEATED} after *"
                )
        elif text.endswith("*"):
            raise ConfigError(f"{element.where}: {what} has {text!r}; expected a count after *, or quotes around it")
        elements.extend([unquote(element)] * count)
    return elements


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that resembles `name` most, None if there is none; case does not count.

    cutoff: required similarity, 0 to 1 (difflib's ratio).
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message, "; did you mean X", or ""."""
    close = nearest(name, known)
    return f"; did you mean {close}" if close else ""
