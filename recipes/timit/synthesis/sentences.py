"""Sentences from a small grammar with lines `name: item | item`; {name} in an item is replaced by one of its items."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from readers.common.text import read_lines
from readers.errors import FormatError

_REFERENCE = re.compile(r"\{(\w+)\}")
_RULE = re.compile(r"(\w+):\s*(.*)")


def read_grammar(path: Path) -> dict[str, list[str]]:
    """Return name -> its items; the lines of a repeated name are combined.

    Raises FormatError, with file and line, for a line that is not a rule, an empty item and a name without a rule.
    """
    grammar: dict[str, list[str]] = {}
    used: dict[str, int] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        rule = _RULE.fullmatch(line.strip())
        items = [item.strip() for item in rule.group(2).split("|")] if rule else []
        if not all(items) or not items:
            raise FormatError(f"{path}:{number}: {line.strip()[:60]!r}; expected `name: item | item`")
        grammar.setdefault(rule.group(1), []).extend(items)
        for name in _REFERENCE.findall(line):
            used.setdefault(name, number)
    for name, number in used.items():
        if name not in grammar:
            raise FormatError(f"{path}:{number}: {{{name}}} has no rule; expected a line `{name}: ...`")
    return grammar


def make_sentence(grammar: Mapping[str, list[str]], rng: np.random.Generator, start: str = "sentence") -> str:
    """Return one random sentence of the grammar; blanks separate the words, commas are kept."""
    text = f"{{{start}}}"
    while match := _REFERENCE.search(text):
        items = grammar[match.group(1)]
        text = text[: match.start()] + items[rng.integers(len(items))] + text[match.end() :]
    return re.sub(r"\ba (?=[aeiou])", "an ", text)


def words_of(sentence: str) -> list[str]:
    """Return the words in lower case, without punctuation except apostrophes."""
    return re.findall(r"[a-z']+", sentence.lower())
