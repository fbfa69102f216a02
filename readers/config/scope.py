"""Nested blocks of names: assignment, merging, lookup and the substitution of `$Name$`.

Values are spans of text here; config.py converts them.
Source: CNTK book, sections 3.9 and 3.9.4.
"""

import contextlib
import re
from dataclasses import dataclass
from typing import Self

from readers.config.syntax import (
    Source,
    Span,
    find_closing,
    inside_brackets,
    is_block,
    split_assignment,
    split_records,
    unquote,
    variables,
    whole_variable,
)
from readers.config.values import did_you_mean
from readers.errors import ConfigError

_BARE_NAME = re.compile(r"[^\W\d][\w.\-]*")


@dataclass(frozen=True)
class ConfigEntry:
    """A name with its values: one plain value, or the blocks merged under it, in order.

    Attributes
    ----------
    name : str
        Spelled as in its last occurrence.
    values : tuple of Span
    where : str
        "file:line" of its last occurrence.
    """

    name: str
    values: list[Span]
    where: str

    @property
    def value(self) -> Span:
        """The last of the values."""
        return self.values[-1]

    def __str__(self) -> str:
        return f"${self.name}$ ({self.value.where})"


# The references that are being resolved: blocks, and entries in them.
Chain = tuple[tuple["ConfigScope", ConfigEntry], ...]


class ConfigScope:
    """A block of names inside another.

    Parameters
    ----------
    name : str
    parent : ConfigScope, optional
        The enclosing block; None for the outermost.
    where : str
        The place where the block begins.
    """

    def __init__(self, name: str = "", parent: Self | None = None, where: str = "command line"):
        self.name = name
        self.parent = parent
        self._where = where
        self._entries: dict[str, ConfigEntry] = {}

    # Assignment

    def merge(self, source: Source | Span, separator: str = ";") -> None:
        """Add more records to this block; a plain value is replaced, a block is extended (book 3.9.5).

        separator: separates records, besides newline and comma.
        Raises ConfigError for an unbalanced bracket and a record that is not an assignment.
        """
        for record in split_records(source.span if isinstance(source, Source) else source, separator):
            unread: Span | None = record
            while unread is not None:
                unread = self._assign(unread)

    def _assign(self, record: Span) -> Span | None:
        """Process one record; return the rest of its line after a closed block, which is the next record."""
        name, value = split_assignment(record)
        following = None
        if value is None:
            if not _BARE_NAME.fullmatch(name.text):
                raise ConfigError(
                    f"{record.where}: found {shorten(record.text)!r}; expected name=value, or a name alone for true; "
                    "a value with commas or semicolons needs quotes or braces"
                )
            value = Source([("true", record.where)]).span
        elif is_block(value):
            end = find_closing(value, 0) + 1
            value, following = value.part(0, end), value.part(end).strip()
        if not name.text or re.search(r"\s", name.text):
            raise ConfigError(f"{record.where}: name {name.text!r}; expected a name without blanks before its value")
        if name.text.lower() == "include":
            raise ConfigError(f"{record.where}: include= within a line; expected it on a line of its own")
        self._set(name.text, value, record.where)
        return None if following is None or following.is_empty else following

    def _set(self, name: str, value: Span, where: str) -> None:
        """Set a name.  A plain value and a block replace each other; CNTK appends a block to the text before it."""
        before = self._entries.get(name.lower())
        values = before.values if before and is_block(value) else []
        values.append(value)
        self._entries[name.lower()] = ConfigEntry(name, values, where)

    # Lookup

    def names(self) -> list[str]:
        """Return the names set in this block itself, in order of first appearance."""
        return [entry.name for entry in self._entries.values()]

    def has_own(self, name: str) -> bool:
        """Whether this block itself sets the name."""
        return name.lower() in self._entries

    def is_block(self, name: str) -> bool:
        """Whether the name is set to a block, in this block or an enclosing one."""
        definition = self.find(name)
        return definition is not None and bool(definition[0].pieces(definition[1]))

    def block_names(self) -> list[str]:
        """Return the names of the blocks that this block itself contains; nothing in them is read."""
        names = []
        for name in self.names():
            with contextlib.suppress(ConfigError):  # a reference to a name that is not set
                if self.is_block(name):
                    names.append(name)
        return names

    def where(self, name: str | None = None) -> str:
        """Return "file:line" of a name's value; that of the block itself if the name is None or not set."""
        definition = self.find(name) if name else None
        return definition[1].value.where if definition else self._where

    def full_name(self, name: str = "") -> str:
        """Return the name with the names of the enclosing blocks, such as "TIMIT_Train.SGD.maxEpochs"."""
        outer = self.parent.full_name(self.name) if self.parent else self.name
        return ".".join(part for part in (outer, name) if part)

    def visible(self) -> list[str]:
        """Return all names that are set in this block or an enclosing one."""
        return self.names() + (self.parent.visible() if self.parent else [])

    def find(self, name: str) -> tuple[Self, ConfigEntry] | None:
        """Return the innermost block that sets the name, and its entry; None if it is not set."""
        scope: Self | None = self
        while scope is not None:
            entry = scope._entries.get(name.lower())
            if entry is not None:
                return scope, entry
            scope = scope.parent
        return None

    # References

    def pieces(self, entry: ConfigEntry, chain: Chain = ()) -> list[Span]:
        """Return the blocks `[...]` that make up an entry of this scope; empty if its last value is plain.

        A value that is a single reference to a block, such as `reader=$TestReader$`, stands for that block.
        """
        chain = (*chain, (self, entry))
        pieces: list[Span] = []
        for value in entry.values:
            reference = whole_variable(value.text)
            if is_block(value):
                pieces.append(value)
            elif reference is not None:
                scope, target = self._target(reference, value.where, chain)
                pieces = scope.pieces(target, chain)
            else:
                pieces = []
        return pieces

    def resolve(self, entry: ConfigEntry, chain: Chain = ()) -> Span:
        """Return the last value of an entry of this scope with every `$name$` replaced; each line keeps its origin.

        A value that is a single reference takes over the text and the lines of its target.  Blocks are returned
        unchanged, because references inside them are resolved from inside.
        """
        value = entry.value
        if "$" not in value.text or is_block(value):
            return value
        chain = (*chain, (self, entry))
        reference = whole_variable(value.text)
        if reference is not None:
            scope, target = self._target(reference, value.where, chain)
            return scope.resolve(target, chain)
        return Source((self._replace(line, origin, chain), origin) for line, origin in value.lines()).span

    def substitute(self, text: Source | Span) -> Source:
        """Return text of another language with its `$name$` replaced as seen from this block.

        Every line keeps its origin.
        """
        span = text.span if isinstance(text, Source) else text
        return Source((self._replace(line, origin, ()), origin) for line, origin in span.lines())

    def script(self, name: str) -> Source:
        """Return the content of a block for another language (NDL, MEL), with references replaced."""
        definition = self.find(name)
        pieces = definition[0].pieces(definition[1]) if definition else []
        if not pieces:
            raise ConfigError(
                f"{self.where(name)}: {self.full_name(name)} is not a block; expected a block with a script"
            )
        lines: list[tuple[str, str]] = []
        for piece in pieces:
            lines.extend(self.substitute(inside_brackets(piece, "[{", ";")[0]).span.lines())
        return Source(lines)

    def _replace(self, line: str, where: str, chain: Chain) -> str:
        parts: list[str] = []
        position = 0
        for match in variables(line):
            scope, target = self._target(match.group(1), where, chain)
            value = unquote(scope.resolve(target, chain)).text
            if "\n" in value:
                raise ConfigError(
                    f"{where}: {match.group()} has several lines; expected one line within a longer value"
                )
            parts += (line[position : match.start()], value)
            position = match.end()
        return "".join((*parts, line[position:]))

    def _target(self, reference: str, where: str, chain: Chain) -> tuple[Self, ConfigEntry]:
        """Return the block that sets a referenced name, and its entry.

        A value that refers to its own name (`dim=$Dim$`) means the name of an enclosing block.
        Raises ConfigError if the name is not set (CNTK inserts nothing in nested blocks), and for a cycle of references
        (CNTK does not terminate).
        """
        definition = self.find(reference)
        if definition and chain and definition[1] is chain[-1][1] and definition[0].parent:
            definition = definition[0].parent.find(reference) or definition
        if definition is None:
            within = f" in {chain[-1][0].full_name(chain[-1][1].name)}" if chain else ""
            raise ConfigError(
                f"{where}: ${reference}${within} is not set; expected {reference}=... "
                f"in this or an enclosing block{did_you_mean(reference, self.visible())}"
            )
        for index, (scope, entry) in enumerate(chain):
            if scope is definition[0] and entry is definition[1]:
                loop = " -> ".join(str(entry) for _, entry in chain[index:])
                raise ConfigError(
                    f"{entry.value.where}: ${entry.name}$ refers to itself: {loop} -> ${entry.name}$; "
                    "expected references without a cycle"
                )
        return definition


def shorten(text: str, limit: int = 40) -> str:
    """Return the text on one line, cut to `limit` characters, for messages."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
