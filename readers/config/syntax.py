"""The syntax that configuration files, NDL and MEL share: lines with their origin, brackets, records, separators.

The meaning of records is defined elsewhere.  Every piece of text is a `Span`, which knows the file and line it came
from through layering, merging and substitution.
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
# A name starts with a letter or underscore and contains no special character of the language.
_VARIABLE = re.compile(r"""\$([^\W\d][^,/<>?;':"\[\]{}\\|!@#$%^&*()+=~`\s]*)\$""")
_NO_BLANK = re.compile(r"\S")
_ASSIGNMENT = re.compile(r'[=\[{("]')
_BRACE_BLOCK = re.compile(r"\{\s*[^\W\d]\w*\s*[=\[{]")
# After an opening brace, these begin a value and not a custom separator: a path, a reference, a signed number.
_VALUE_AT_BRACE = re.compile(r"\.\.|\.\\|\./|~/|[-+.]\d|[-+]\.\d")


class Source:
    """Lines of text, each with its place ("file:line", or a description for a command line).

    Parameters
    ----------
    lines : iterable of (str, str)
        (text, place) of each line; the text contains no newline.

    Attributes
    ----------
    text : str
        The lines, joined by newlines.
    """

    def __init__(self, lines: Iterable[tuple[str, str]]):
        self._starts: list[int] = []
        self._places: list[str] = []
        texts: list[str] = []
        offset = 0
        for text, origin in lines:
            self._starts.append(offset)
            self._places.append(origin)
            texts.append(text)
            offset += len(text) + 1
        self.text = "\n".join(texts)

    @classmethod
    def from_text(cls, text: str, where: str) -> "Source":
        """Create a source from text, with comments stripped; line i, counted from 1, has the place "where:i"."""
        lines = text.split("\n")
        return cls((strip_comment(line), f"{where}:{number}") for number, line in enumerate(lines, 1))

    def place(self, offset: int) -> str:
        """Return the place of the line that contains the character at `offset`."""
        if not self._places:
            return "empty text"
        return self._places[max(bisect.bisect_right(self._starts, offset) - 1, 0)]

    @property
    def span(self) -> "Span":
        """The whole text."""
        return Span(self, 0, len(self.text))


@dataclass(frozen=True, eq=False)
class Span:
    """The characters start .. end-1 of a source, which know their place.

    Attributes
    ----------
    source : Source
        The text that contains them.
    start, end : int
        Offsets in `source.text`; the end is exclusive.
    """

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        """The characters of the span."""
        return self.source.text[self.start : self.end]

    @property
    def first(self) -> str:
        """The first character, "" for an empty span."""
        return self.source.text[self.start : min(self.start + 1, self.end)]

    @property
    def is_empty(self) -> bool:
        """Whether the span has no characters."""
        return self.start >= self.end

    @property
    def where(self) -> str:
        """The place of the first character."""
        return self.source.place(self.start)

    def part(self, start: int, end: int | None = None) -> "Span":
        """Return the characters start .. end-1, counted from the beginning of this span."""
        return Span(self.source, self.start + start, self.end if end is None else self.start + end)

    def strip(self) -> "Span":
        """Return the span without blanks and newlines at its ends."""
        text = self.source.text
        end = self.end
        while end > self.start and text[end - 1].isspace():
            end -= 1
        word = _NO_BLANK.search(text, self.start, end)
        return Span(self.source, word.start() if word else end, end)

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match a pattern at the beginning; its positions count from the beginning of the source."""
        return pattern.match(self.source.text, self.start, self.end)

    def after(self, match: re.Match[str]) -> "Span":
        """Return the characters after a match, without blanks at the ends."""
        return Span(self.source, match.end(), self.end).strip()

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield (text, place) of each line."""
        offset = self.start
        for text in self.text.split("\n"):
            yield text, self.source.place(offset)
            offset += len(text) + 1


def strip_comment(line: str) -> str:
    """Remove the comment of a line, and trailing blanks.

    A comment begins with a `#` outside of quotes that is at the start of the line or after a blank; thus `1#INF`
    contains none.  CNTK considers only the first `#` of a line, so that it keeps the comment of `1#INF # note`, and
    ignores quotes; both contradict the book (3.9.5).
    """
    quoted = False
    for position, character in enumerate(line):
        if character == '"':
            # An unclosed quote has no effect here; find_closing reports it.
            quoted = not quoted and line.find('"', position + 1) >= 0
        elif character == "#" and not quoted and (position == 0 or line[position - 1].isspace()):
            return line[:position].rstrip()
    return line.rstrip()


def find_closing(span: Span, offset: int) -> int:
    """Return the offset in `span` of the bracket or quote that closes the one at `offset`.

    Text in quotes is literal, and a quoted string ends on its line.  In a block `[...]`, which may hold any text if
    nothing reads it, a quote without another one on its line is text.  Raises ConfigError, with the line, for an
    unbalanced or unclosed bracket.
    """
    text = span.source.text
    first = span.start
    stack: list[int] = []
    lone_quote = None
    position = first + offset
    is_block = text[position] == "["
    while position < span.end:
        character = text[position]
        if character == '"':
            close = text.find('"', position + 1, span.end)
            if close >= 0 and text.find("\n", position, close) < 0:
                position = close
            elif stack and is_block:
                lone_quote = position if lone_quote is None else lone_quote
            else:
                raise _lone_quote(span.source, position)
        elif character in CLOSING:
            stack.append(position)
        elif character in OPENING:
            if text[stack[-1]] != OPENING[character]:
                if lone_quote is not None:
                    raise _lone_quote(span.source, lone_quote)
                raise ConfigError(
                    f"{span.source.place(position)}: found {character}; expected {CLOSING[text[stack[-1]]]} "
                    f"to close the {text[stack[-1]]} of {span.source.place(stack[-1])}"
                )
            stack.pop()
        if not stack:
            return position - first
        position += 1
    if lone_quote is not None:
        raise _lone_quote(span.source, lone_quote)
    bracket = text[stack[-1]]
    raise ConfigError(
        f"{span.source.place(stack[-1])}: {bracket} is opened and not closed before {span.source.place(span.end)}; "
        f"expected a {CLOSING[bracket]}"
    )


def _lone_quote(source: Source, offset: int) -> ConfigError:
    return ConfigError(f'{source.place(offset)}: a quote is opened and not closed; expected another " on this line')


def split_records(span: Span, separators: str) -> Iterator[Span]:
    """Yield the parts of `span` between newlines, commas and `separators`, stripped; empty parts are left out.

    Brackets and quotes protect their content.  Raises ConfigError, with the line, for an unbalanced bracket.
    """
    text = span.text
    start = position = 0
    while position <= len(text):
        character = text[position] if position < len(text) else "\n"
        if character == '"' or character in CLOSING:
            position = find_closing(span, position)
        elif character in OPENING:
            raise ConfigError(
                f"{span.part(position).where}: found {character} without an opening "
                f"{OPENING[character]}; expected balanced brackets"
            )
        elif character in RECORD_ENDS or character in separators:
            record = span.part(start, min(position, len(text))).strip()
            if record.end > record.start:
                yield record
            start = position + 1
        position += 1


def inside_brackets(span: Span, brackets: str, separator: str) -> tuple[Span, str]:
    """Return the content of the brackets around `span`, and the separator that applies there.

    brackets: the opening brackets that count.  A span that is not bracketed as a whole is returned unchanged.  If one
    of OWN_SEPARATORS follows the opening bracket, it replaces `separator`, unless it begins a path or a signed number:
    CNTK reads `{-1:2}` as values separated by "-", which is never intended.
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
    """Return (name, value) of `name=value`, `name[...]`, `name{...}` and `name(...)`, or (name, None) of a bare `name`.

    The value keeps its brackets, with or without `=`.  Blanks around `=` do not count.
    """
    match = _ASSIGNMENT.search(record.source.text, record.start, record.end)
    if match is None:
        return record, None
    at = match.start() - record.start
    value = record.part(at + 1 if match.group() == "=" else at)
    return record.part(0, at).strip(), value.strip()


def is_block(value: Span) -> bool:
    """Whether a value is a block: in `[...]`, or in `{...}` if it begins with a name and a value, unlike an array."""
    return value.first == "[" or value.match(_BRACE_BLOCK) is not None


def unquote(span: Span) -> Span:
    """Return the span without the quotes around all of it, if there are any."""
    text = span.text
    if len(text) >= 2 and text[0] == '"' and text.find('"', 1) == len(text) - 1:
        return span.part(1, len(text) - 1)
    return span


def variables(text: str) -> Iterator[re.Match[str]]:
    """Return the references `$name$` of a text, left to right; group 1 is the name.  Other `$` are literal."""
    return _VARIABLE.finditer(text)


def whole_variable(text: str) -> str | None:
    """Return the name if the text is a single reference `$name$`; else None."""
    match = _VARIABLE.fullmatch(text)
    return match.group(1) if match else None
