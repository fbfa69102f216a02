"""The syntax that configuration files, NDL and MEL share: lines with their origin, brackets, records, separators.

Nothing here knows what a record means.  Text stays text; every piece of it is a `Span` that can say which file and
line it came from, however often it was layered, merged or substituted since.
Source: CNTK book, sections 3.9 and 5.1.3.
"""

import bisect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from readers.errors import ConfigError

CLOSING = {"[": "]", "{": "}", "(": ")"}
OPENING = {close: open_ for open_, close in CLOSING.items()}
RECORD_ENDS = "\n,"
OWN_SEPARATORS = "`~!@$%^&*_-+|:;,?."
# A name starts with a letter or underscore and holds nothing that the language uses itself.
_VARIABLE = re.compile(r"""\$([^\W\d][^,/<>?;':"\[\]{}\\|!@#$%^&*()+=~`\s]*)\$""")
# What begins so right after a brace is a value, not a separator of one's own: a path, a reference, a signed number.
_VALUE_AT_BRACE = re.compile(r"\.\.|\.\\|\./|~/|[-+.]\d|[-+]\.\d")


class Source:
    """Lines of text, each with the place it came from ("file:line", or words for a command line).

    lines: (text, place) pairs; text holds no newline.
    """

    def __init__(self, lines: Iterable[tuple[str, str]]):
        self._starts: list[int] = []
        self._places: list[str] = []
        texts: list[str] = []
        offset = 0
        for text, place in lines:
            self._starts.append(offset)
            self._places.append(place)
            texts.append(text)
            offset += len(text) + 1
        self.text = "\n".join(texts)

    @classmethod
    def from_text(cls, text: str, where: str) -> "Source":
        """The text with its comments stripped; line i, counted from 1, comes from "where:i"."""
        lines = text.split("\n")
        return cls((strip_comment(line), f"{where}:{number}") for number, line in enumerate(lines, 1))

    def place(self, offset: int) -> str:
        """The place of the line that holds the character at `offset`."""
        if not self._places:
            return "empty text"
        return self._places[max(bisect.bisect_right(self._starts, offset) - 1, 0)]

    @property
    def span(self) -> "Span":
        return Span(self, 0, len(self.text))


@dataclass(frozen=True, eq=False)
class Span:
    """The characters start..end-1 of a source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def where(self) -> str:
        """The place of its first character."""
        return self.source.place(self.start)

    def part(self, start: int, end: int | None = None) -> "Span":
        """Characters start..end-1, counted from the span's own first."""
        return Span(self.source, self.start + start, self.end if end is None else self.start + end)

    def strip(self) -> "Span":
        """Without the blanks and newlines around it."""
        text = self.text
        left = len(text) - len(text.lstrip())
        return Span(self.source, self.start + left, self.start + max(len(text.rstrip()), left))

    def lines(self) -> Iterator[tuple[str, str]]:
        """(text, place) of each of its lines, as `Source` takes them."""
        offset = self.start
        for text in self.text.split("\n"):
            yield text, self.source.place(offset)
            offset += len(text) + 1


def strip_comment(line: str) -> str:
    """The line without its comment and the blanks at its end.

    A `#` at the start of the line or after a blank begins a comment, unless it stands between quotes; `1#INF` holds
    none.  CNTK looks at the first `#` of a line only, so that `1#INF # note` keeps its note, and overlooks quotes;
    both run against what the book says (3.9.5).
    """
    quoted = False
    for position, character in enumerate(line):
        if character == '"':
            # A quote that is never closed protects nothing; the lexer reports it.
            quoted = not quoted and '"' in line[position + 1 :]
        elif character == "#" and not quoted and (position == 0 or line[position - 1].isspace()):
            return line[:position].rstrip()
    return line.rstrip()


def find_closing(span: Span, offset: int) -> int:
    """Offset in `span` of the bracket or quote that closes the one at `offset`.

    Between quotes everything is literal, and a string ends on its own line.  Raises ConfigError naming the line of a
    bracket that does not match or is never closed.
    """
    text = span.text
    stack: list[int] = []
    position = offset
    while position < len(text):
        character = text[position]
        if character == '"':
            close = text.find('"', position + 1)
            if close < 0 or "\n" in text[position:close]:
                raise ConfigError(
                    f'{span.part(position).where}: a quote is opened and not closed; expected another " on this line'
                )
            position = close
        elif character in CLOSING:
            stack.append(position)
        elif character in OPENING:
            if text[stack[-1]] != OPENING[character]:
                opened = span.part(stack[-1])
                raise ConfigError(
                    f"{span.part(position).where}: found {character}; expected {CLOSING[text[stack[-1]]]} "
                    f"to close the {text[stack[-1]]} of {opened.where}"
                )
            stack.pop()
        if not stack:
            return position
        position += 1
    opened = span.part(stack[-1])
    bracket = text[stack[-1]]
    raise ConfigError(
        f"{opened.where}: {bracket} is opened and not closed before {span.source.place(span.end)}; "
        f"expected a {CLOSING[bracket]}"
    )


def split_records(span: Span, separators: str) -> Iterator[Span]:
    """The parts of `span` between newlines, commas and `separators`, stripped; empty ones are left out.

    Brackets and quotes protect what they hold.  Raises ConfigError naming the line of a bracket that does not match.
    """
    text = span.text
    start = position = 0
    while position <= len(text):
        character = text[position] if position < len(text) else "\n"
        if character == '"' or character in CLOSING:
            position = find_closing(span, position)
        elif character in OPENING:
            raise ConfigError(
                f"{span.part(position).where}: found {character}, which closes nothing; "
                f"expected a {OPENING[character]} before it"
            )
        elif character in RECORD_ENDS or character in separators:
            record = span.part(start, min(position, len(text))).strip()
            if record.end > record.start:
                yield record
            start = position + 1
        position += 1


def inside_brackets(span: Span, brackets: str, separator: str) -> tuple[Span, str]:
    """(what stands between the brackets around `span`, the separator in force there).

    brackets: the opening ones that count.  A span without brackets around the whole of it comes back as it is.  One
    of OWN_SEPARATORS right after the bracket replaces `separator`, except where it begins a path or a signed number:
    CNTK takes `{-1:2}` for values separated by "-", which nobody means.
    """
    text = span.text
    if not text or text[0] not in brackets or find_closing(span, 0) != len(text) - 1:
        return span, separator
    inner = span.part(1, len(text) - 1)
    text = inner.text
    if text and text[0] in OWN_SEPARATORS and not _VALUE_AT_BRACE.match(text) and not text.startswith("\\\\"):
        return inner.part(1), text[0]
    return inner, separator


def split_assignment(record: Span) -> tuple[Span, Span | None]:
    """(name, value) of `name=value`, `name[...]`, `name{...}` and `name(...)`; the value is None in a bare `name`.

    Without `=`, the value keeps its brackets, as it does with one.  Blanks around `=` do not count.
    """
    match = re.search(r'[=\[{("]', record.text)
    if match is None:
        return record, None
    at = match.start()
    value = record.part(at + 1 if match.group() == "=" else at)
    return record.part(0, at).strip(), value.strip()


def unquote(span: Span) -> Span:
    """Without the one pair of quotes around the whole of it."""
    text = span.text
    if len(text) >= 2 and text[0] == '"' and text.find('"', 1) == len(text) - 1:
        return span.part(1, len(text) - 1)
    return span


def variables(text: str) -> Iterator[re.Match]:
    """The references `$name$` of a text, left to right; group 1 is the name.  Other `$` are literal."""
    return _VARIABLE.finditer(text)


def whole_variable(text: str) -> str | None:
    """The name when the text is one reference `$name$` and nothing else."""
    match = _VARIABLE.fullmatch(text)
    return match.group(1) if match else None
