"""Blocks of names and how they are seen from inside each other: assignment, merging, lookup, `$Name$`.

Values are spans of text here; what they mean is for `config` to say.
Source: CNTK book, sections 3.9 and 3.9.4.
"""

import re
from dataclasses import dataclass
from typing import Self

from readers.config.syntax import (
    Source,
    Span,
    find_closing,
    inside_brackets,
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
class Entry:
    """A name as last spelled, where that was, and its values: one, or the blocks merged under it, in order."""

    name: str
    values: tuple[Span, ...]
    where: str

    @property
    def value(self) -> Span:
        return self.values[-1]


@dataclass(frozen=True)
class _Step:
    """An entry on the way from a value to what it stands for."""

    scope: "Scope"
    entry: Entry

    def __str__(self) -> str:
        return f"${self.entry.name}$ ({self.entry.value.where})"


_Chain = tuple[_Step, ...]


class Scope:
    """A block of names inside another (None for the outermost).  `where` is the place where it begins."""

    def __init__(self, name: str = "", parent: "Scope | None" = None, where: str = "command line"):
        self.name = name
        self.parent = parent
        self._where = where
        self._entries: dict[str, Entry] = {}

    # Filling it

    def merge(self, source: Source | Span, separator: str = ";") -> None:
        """Read more records into this block: a name set again takes the new value, a block grows (book 3.9.5).

        separator: what stands between records besides newline and comma.
        Raises ConfigError for a bracket that does not match and a record that is no assignment.
        """
        for record in split_records(source.span if isinstance(source, Source) else source, separator):
            rest: Span | None = record
            while rest is not None:
                rest = self._assign(rest)

    def _assign(self, record: Span) -> Span | None:
        """Take one record in.  What follows a closed block on its line is the next record, and comes back."""
        name, value = split_assignment(record)
        rest = None
        if value is None:
            if not _BARE_NAME.fullmatch(name.text):
                raise ConfigError(
                    f"{record.where}: found {shorten(record.text)!r}; expected name=value, or a name alone for true; "
                    "a value with commas or semicolons needs quotes or braces"
                )
            value = Source([("true", record.where)]).span
        elif not value.text:
            raise ConfigError(f'{record.where}: {name.text}= has no value; expected one, or "" for an empty text')
        elif value.text[0] == "[":
            end = find_closing(value, 0) + 1
            value, rest = value.part(0, end), value.part(end).strip()
        if not name.text or re.search(r"\s", name.text):
            raise ConfigError(f"{record.where}: name {name.text!r}; expected a name without blanks before its value")
        if name.text.lower() == "include":
            raise ConfigError(f"{record.where}: include= within a line; expected it on a line of its own")
        self._set(name.text, value, record.where)
        return rest if rest is not None and rest.text else None

    def _set(self, name: str, value: Span, where: str) -> None:
        """Here a plain value and a block replace each other; CNTK appends a block to whatever text stood there."""
        before = self._entries.get(name.lower())
        keep = before.values if before and value.text.startswith("[") else ()
        self._entries[name.lower()] = Entry(name, (*keep, value), where)

    # Looking around

    def names(self) -> list[str]:
        """The names set in this block itself, in order of first appearance."""
        return [entry.name for entry in self._entries.values()]

    def has_own(self, name: str) -> bool:
        """Whether this block itself sets the name."""
        return name.lower() in self._entries

    def is_block(self, name: str) -> bool:
        """Whether the name is set to a block, here or further out."""
        found = self.find(name)
        return found is not None and bool(found[0].pieces(found[1]))

    def where(self, name: str | None = None) -> str:
        """The "file:line" of a name's value, or of the block itself when the name is None or not set anywhere."""
        found = self.find(name) if name else None
        return found[1].value.where if found else self._where

    def full_name(self, name: str = "") -> str:
        """The name with the names of the blocks around it: "TIMIT_Train.SGD.maxEpochs"."""
        outer = self.parent.full_name(self.name) if self.parent else self.name
        return ".".join(part for part in (outer, name) if part)

    def visible(self) -> list[str]:
        """Every name that this block can see."""
        return self.names() + (self.parent.visible() if self.parent else [])

    def find(self, name: str) -> tuple[Self, Entry] | None:
        """The innermost block that sets the name, and what it sets."""
        scope: Scope | None = self
        while scope is not None:
            entry = scope._entries.get(name.lower())
            if entry is not None:
                return scope, entry
            scope = scope.parent
        return None

    # Following references

    def pieces(self, entry: Entry, chain: _Chain = ()) -> list[Span]:
        """The blocks `[...]` that the values of an entry of this scope amount to; none when its last value is plain.

        A value that is one reference to a block, `reader=$TestReader$`, stands for that block.
        """
        chain = (*chain, _Step(self, entry))
        pieces: list[Span] = []
        for value in entry.values:
            reference = whole_variable(value.text)
            if value.text.startswith("["):
                pieces.append(value)
            elif reference is not None:
                scope, target = self._target(reference, value.where, chain)
                pieces = scope.pieces(target, chain)
            else:
                pieces = []
        return pieces

    def resolve(self, entry: Entry, chain: _Chain = ()) -> Span:
        """The last value of an entry of this scope with every `$name$` replaced, each line keeping its origin.

        A value that is one reference takes over the text and the lines of what it refers to.  Blocks stay as they are:
        what is inside them is resolved from inside.
        """
        value = entry.value
        if "$" not in value.text or value.text.startswith("["):
            return value
        chain = (*chain, _Step(self, entry))
        reference = whole_variable(value.text)
        if reference is not None:
            scope, target = self._target(reference, value.where, chain)
            return scope.resolve(target, chain)
        return Source((self._replace(line, place, chain), place) for line, place in value.lines()).span

    def substitute(self, text: Source | Span) -> Source:
        """Text of another language with its `$name$` replaced as seen from this block; every line keeps its origin."""
        span = text.span if isinstance(text, Source) else text
        return Source((self._replace(line, place, ()), place) for line, place in span.lines())

    def script(self, name: str) -> Source:
        """What stands in a block, references replaced, for a language of its own (NDL, MEL)."""
        found = self.find(name)
        pieces = found[0].pieces(found[1]) if found else []
        if not pieces:
            raise ConfigError(
                f"{self.where(name)}: {self.full_name(name)} is no block; expected one that holds a script"
            )
        lines: list[tuple[str, str]] = []
        for piece in pieces:
            lines.extend(self.substitute(inside_brackets(piece, "[", ";")[0]).span.lines())
        return Source(lines)

    def _replace(self, line: str, where: str, chain: _Chain) -> str:
        parts: list[str] = []
        position = 0
        for match in variables(line):
            scope, target = self._target(match.group(1), where, chain)
            value = unquote(scope.resolve(target, chain)).text
            if "\n" in value:
                raise ConfigError(
                    f"{where}: {match.group()} stands for several lines; expected one line within a longer value"
                )
            parts += (line[position : match.start()], value)
            position = match.end()
        return "".join((*parts, line[position:]))

    def _target(self, reference: str, where: str, chain: _Chain) -> tuple[Self, Entry]:
        """Who sets a referred name; a value that refers to its own name (`dim=$Dim$`) means the one further out.

        Raises ConfigError when nobody sets it (CNTK puts nothing in its place if the reference is in a nested block),
        and when it is on the chain already (CNTK never returns).
        """
        found = self.find(reference)
        if found and chain and found[1] is chain[-1].entry and found[0].parent:
            found = found[0].parent.find(reference) or found
        if found is None:
            within = f" in {chain[-1].scope.full_name(chain[-1].entry.name)}" if chain else ""
            raise ConfigError(
                f"{where}: ${reference}${within} is not set; expected {reference}=... "
                f"here or in a block around it{did_you_mean(reference, self.visible())}"
            )
        for index, step in enumerate(chain):
            if step.scope is found[0] and step.entry is found[1]:
                loop = " -> ".join(map(str, chain[index:]))
                raise ConfigError(
                    f"{step.entry.value.where}: ${step.entry.name}$ refers to itself: {loop} -> ${step.entry.name}$; "
                    "expected references that end"
                )
        return found


def shorten(text: str, limit: int = 40) -> str:
    """The text on one line, cut to `limit` characters, for messages."""
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
