"""The table of a language: how numbers, dates and abbreviations are read.

A table is a text of sections; `#` begins a comment line.

    [number FORM]   lines `base: text` or `base/radix: text`, see number_names.py
    [words NAME]    lines `written = spoken`, such as `II = second`
    [abbreviations] lines `written = spoken`, of whole words; a written form with . needs it
    [rules]         lines `pattern => replacement`, in their order: regular expressions, and what is said

In a replacement {1} is the first group of the pattern, {1:FORM} its number as words, {1:NAME} its word of a list,
{1:digits} its digits one by one, by the first form, and {1:letters} its letters one by one.  A group that takes no
part is "".  Blanks are put around replacements.  The rules come before the abbreviations.  A pattern with `\\d` is
tried only on lines with digits.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from decoder.lm.texts.number_names import MOST_DIGITS, NumberRule, forms_in, name_of, number_rule
from readers.common.text import filled_lines
from readers.errors import FormatError

TABLES = {"english": Path(__file__).parent / "data" / "english.table"}
SPELLED = ("digits", "letters")  # readings that need no section
_DIGIT = re.compile(r"\d")
_SECTION = re.compile(r"\[(number|words|abbreviations|rules)(?: (\w+))?\]")
_NUMBER = re.compile(r"(\d{1,18})(?:/(\d{1,9}))?: ?(.*)", re.ASCII)
_GROUP = re.compile(r"\{(\d+)(?::(\w+))?\}")

Replace = Callable[[re.Match[str]], str]


class Rule(NamedTuple):
    """A pattern and what is said instead; needs_digit: whether lines without digits cannot match."""

    pattern: re.Pattern[str]
    replace: Replace
    needs_digit: bool


class Rules:
    """How a language reads what is written.

    Parameters
    ----------
    path : path
        A table; `TABLES` has those that come with the program.

    Raises
    ------
    FormatError
        With file and line, for a malformed line, and for a form or list that the table lacks.
    """

    def __init__(self, path: str | Path):
        self.numbers: dict[str, list[NumberRule]] = {}
        self.lists: dict[str, dict[str, str]] = {}
        abbreviations: dict[str, str] = {}
        patterns: list[tuple[str, str, str]] = []
        forms: list[tuple[str, str]] = []  # place and name of each form that a rule needs
        bases: list[tuple[str, str, int]] = []  # place, form and least number of each rule
        for where, kind, name, line in _entries(path):
            if kind == "number":
                match = _NUMBER.fullmatch(line)
                if match is None or match[2] in ("0", "1"):
                    raise FormatError(f"{where}: {line[:60]!r}; expected `base: text` or `base/radix: text`")
                rules = self.numbers.setdefault(name, [])
                rules.append(number_rule(int(match[1]), int(match[2] or 10), match[3]))
                if rules[0].base != 0 or (len(rules) > 1 and rules[-1].base <= rules[-2].base):
                    raise FormatError(f"{where}: base {match[1]}; expected 0 for the first one, then rising ones")
                forms += [(where, form or name) for form in forms_in(match[3])]
                bases.append((where, name, int(match[1])))
            elif kind == "rules":
                pattern, arrow, replacement = line.rpartition(" =>")
                if not arrow:
                    raise FormatError(f"{where}: {line[:60]!r}; expected `pattern => replacement`")
                patterns.append((where, pattern, replacement))
            else:
                written, sign, spoken = line.partition(" = ")
                if not sign:
                    raise FormatError(f"{where}: {line[:60]!r}; expected `written = spoken`")
                (abbreviations if kind == "abbreviations" else self.lists.setdefault(name, {}))[written] = spoken
        for where, form in forms:
            if form not in self.numbers:
                raise FormatError(f"{where}: form {form!r}; expected a section [number {form}]")
        for where, form, number in [*bases, *((where, form, base + 1) for where, form, base in bases)]:
            try:
                name_of(number, form, self.numbers)
            except RecursionError:
                raise FormatError(
                    f"{where}: a rule that leads to itself; expected the text of a smaller number, or of another form"
                ) from None
        self._rules = [self._rule(*entry) for entry in patterns]
        if abbreviations:
            self._rules.append(_abbreviations(abbreviations))

    def _rule(self, where: str, pattern: str, replacement: str) -> Rule:
        try:
            compiled = re.compile(pattern)
        except re.error as fault:
            raise FormatError(f"{where}: {fault} in {pattern[:60]!r}; expected a regular expression") from fault
        for group, reading in _GROUP.findall(replacement):
            if int(group) > compiled.groups:
                raise FormatError(f"{where}: group {group}; the pattern has {compiled.groups}")
            if reading and reading not in (*SPELLED, *self.numbers, *self.lists):
                raise FormatError(
                    f"{where}: reading {reading!r}; expected a [number] form, a list of [words], or "
                    f"{' or '.join(SPELLED)}"
                )

        def replace(match: re.Match[str]) -> str:
            spoken = _GROUP.sub(lambda group: self._reading(match[int(group[1])] or "", group[2]), replacement)
            return f" {spoken.strip()} "

        return Rule(compiled, replace, r"\d" in pattern)

    def _reading(self, text: str, reading: str | None) -> str:
        if not reading or not text:
            return text
        if reading in self.lists:
            return self.lists[reading].get(text, text)
        if reading == "letters":
            return " ".join(filter(str.isalnum, text))
        digits = "".join(_DIGIT.findall(text))
        if reading == "digits" or len(digits) > MOST_DIGITS or not digits:
            form = next(iter(self.numbers), "")
            return " ".join(name_of(int(digit), form, self.numbers) if form else digit for digit in digits)
        return name_of(int(digits), reading, self.numbers)

    def apply(self, line: str) -> str:
        """Return a line as it is read aloud; its other words and its punctuation stay as they are."""
        has_digit = _DIGIT.search(line) is not None
        for rule in self._rules:
            if has_digit or not rule.needs_digit:
                line = rule.pattern.sub(rule.replace, line)
        return line


def _entries(path: str | Path) -> Iterator[tuple[str, str, str, str]]:
    """Yield (place, kind of section, its name, line).  Raises FormatError for a line before the first section."""
    kind = name = ""
    for where, line in filled_lines(path, comment="#"):
        section = _SECTION.fullmatch(line.strip())
        if section:
            kind, name = section[1], section[2] or ""
            if (kind in ("number", "words")) != bool(name):
                raise FormatError(f"{where}: {line.strip()!r}; expected a name for numbers and words only")
        elif kind:
            yield where, kind, name, line.strip()
        else:
            raise FormatError(f"{where}: {line[:60]!r}; expected a section such as [rules]")


def _abbreviations(spoken: Mapping[str, str]) -> Rule:
    """One rule for all abbreviations, the longest first."""
    written = "|".join(re.escape(word) for word in sorted(spoken, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{written})(?!\w)")
    return Rule(pattern, lambda match: f" {spoken[match[0]]} ", False)
