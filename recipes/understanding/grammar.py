"""A small language for grammars of sentences with labelled phrases, and random sentences of such grammars.

    route:
       3 | from [fromloc.city: <city>] to <place toloc>
       1 | to <place toloc> {20% please}
    place:
       [$.city: (<city> | the city of <city>)]

A rule is a name at the beginning of a line and its indented alternatives, each after its weight; a single alternative
needs no weight.  An alternative may continue on further lines.

    <rule>, <rule word>    the words of another rule, in which `$` is that word; `rule word:` defines one only for it
    [slot: ...]            a phrase of a slot: its first word is labelled B-slot, the others I-slot
    (a | b)                one of these, with equal probability
    {a}, {30% a}           these words or none, with probability one half or as given
    #                      a comment, at the beginning of a line

A name without a rule is drawn from a list of names.
"""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random

from readers.common.text import read_lines
from readers.errors import FormatError

Tagged = list[tuple[str, str]]  # word, label
Rules = list[tuple[str, int, list[tuple[int, list[tuple[int, str]]]]]]  # (rule, line, [(weight, [(line, text)])])

HEAD = re.compile(r"([a-z_]+(?: [a-z_]+)?):\s*$")
WEIGHT = re.compile(r"\s*(\d+)\s*\|(.*)$")
TOKEN = re.compile(r"\s*(<[a-z_]+(?: [a-z_$]+)?>|\[[a-z_.$]+:|\{(?:\d+%)?|[a-z][a-z'.]*|[\](){}|]|\S)")
NAMES_EXPONENT = 1.3  # exponent of Zipf's law, so that some names are as rare as in real queries
CLOSING = {"[": "]", "(": ")", "{": "}"}


@dataclass(frozen=True)
class Reference:
    rule: str
    argument: str
    where: str


@dataclass(frozen=True)
class Slot:
    name: str
    words: "Row"
    where: str


@dataclass(frozen=True)
class Choice:
    """One of several rows of items, with cumulative weights."""

    rows: "Sequence[Row]"
    weights: Sequence[float]

    def draw(self, rng: Random) -> "Row":
        return rng.choices(self.rows, cum_weights=self.weights)[0]


Item = str | Reference | Slot | Choice  # a word, or what becomes words
Row = Sequence[Item]


@dataclass(frozen=True)
class Names:
    """The names of each kind; the name at index `place` of the full list is drawn with weight 1 / (place + 1)^1.3."""

    words: Mapping[str, Sequence[str]]
    places: Mapping[str, Sequence[int]]

    def draw(self, kind: str, rng: Random) -> list[str]:
        weights = [(rank + 1) ** -NAMES_EXPONENT for rank in self.places[kind]]
        return rng.choices(self.words[kind], weights)[0].split()


class Grammar:
    """The rules of a file.  kinds: kinds of names that it may use.

    Raises FormatError, with file and line, for malformed rules, unknown names, and recursive rules.
    """

    def __init__(self, path: str | os.PathLike[str], kinds: Collection[str]):
        self.path = Path(path)
        self.kinds = frozenset(kinds)
        self.rules: dict[str, Choice] = {}
        self.lines: dict[str, int] = {}
        for name, number, alternatives in self._read():
            rows = [_Parser(self.path, text).row() for _, text in alternatives]
            self.rules[name] = Choice(rows, list(accumulate(weight for weight, _ in alternatives)))
            self.lines[name] = number
        self._check()

    def sentence(self, start: str, names: Names, rng: Random) -> Tagged:
        """Return words made from a rule, each with its label."""
        return self._expand([Reference(start, "", f"{self.path}")], "", names, rng, False)

    def _expand(self, row: Row, argument: str, names: Names, rng: Random, inside: bool) -> Tagged:
        """Expand a row; inside: within a phrase, whose labels the caller adds."""
        tagged: Tagged = []
        for item in row:
            if isinstance(item, str):
                tagged.append((item, "O"))
            elif isinstance(item, Choice):
                tagged += self._expand(item.draw(rng), argument, names, rng, inside)
            elif isinstance(item, Slot):
                if inside:
                    raise FormatError(f"{item.where}: slot {item.name} is inside another slot; expected only words")
                words = self._expand(item.words, argument, names, rng, True)
                slot = item.name.replace("$", argument)
                tagged += [(word, f"{'I' if index else 'B'}-{slot}") for index, (word, _) in enumerate(words)]
            else:
                passed = item.argument.replace("$", argument)
                rule = self.rules.get(f"{item.rule} {passed}") or self.rules.get(item.rule)
                if rule is None:
                    tagged += [(word, "O") for word in names.draw(item.rule, rng)]
                else:
                    tagged += self._expand(rule.draw(rng), passed, names, rng, inside)
        return tagged

    def _read(self) -> Rules:
        """Return the rules of the file."""
        rules: Rules = []
        for number, line in enumerate(read_lines(self.path), 1):
            if not line.strip() or line.startswith("#"):
                continue
            head = HEAD.match(line)
            if head:
                if any(head[1] == name for name, _, _ in rules):
                    raise FormatError(f"{self.path}:{number}: rule {head[1]!r} is defined twice; expected one rule")
                rules.append((head[1], number, []))
            elif not line[0].isspace() or not rules:
                raise FormatError(
                    f"{self.path}:{number}: {line.strip()[:40]!r}; expected `rule:`, or an indented alternative"
                )
            else:
                weighed = WEIGHT.match(line)
                alternatives = rules[-1][2]
                if weighed and (not alternatives or alternatives[0][0]):
                    alternatives.append((int(weighed[1]), [(number, weighed[2])]))
                elif weighed:
                    raise FormatError(
                        f"{self.path}:{number}: a weight; expected it before the first line of an alternative"
                    )
                elif alternatives:
                    alternatives[-1][1].append((number, line))
                else:
                    alternatives.append((0, [(number, line)]))
        if not rules:
            raise FormatError(f"{self.path}: no rule; expected at least one")
        for name, number, alternatives in rules:
            if not alternatives:
                raise FormatError(f"{self.path}:{number}: rule {name!r} is empty; expected alternatives")
            alternatives[:] = [(weight or 1, text) for weight, text in alternatives]
        return rules

    def _check(self) -> None:
        """Check that every reference is a rule or a kind of names, and that no rule is recursive."""
        follows: dict[str, set[str]] = {}
        for name, rule in self.rules.items():
            follows[name] = set()
            for reference in _references(rule):
                called = [rule_name for rule_name in self.rules if rule_name.split()[0] == reference.rule]
                if not called and reference.rule not in self.kinds:
                    raise FormatError(
                        f"{reference.where}: <{reference.rule}>; expected a rule, or one of the names "
                        f"{', '.join(sorted(self.kinds))}"
                    )
                follows[name].update(called)
        while follows:
            free = [name for name, called in follows.items() if not called & follows.keys()]
            if not free:
                name = next(iter(follows))
                raise FormatError(
                    f"{self.path}:{self.lines[name]}: rule {name!r} is recursive; expected a rule that does not lead "
                    "back to itself"
                )
            for name in free:
                del follows[name]


class _Parser:
    """Parses one alternative; text: its lines with their numbers."""

    def __init__(self, path: Path, text: Sequence[tuple[int, str]]):
        self.tokens = [(token, f"{path}:{number}") for number, line in text for token in TOKEN.findall(line)]
        self.last = f"{path}:{text[-1][0]}"
        self.next = 0

    def row(self, opening: str = "", where: str = "") -> list[Item]:
        """Return the items up to the end of the text, the bracket that closes `opening`, or a `|` before it."""
        closing = CLOSING.get(opening, "")
        items: list[Item] = []
        while self.next < len(self.tokens):
            token, where_token = self.tokens[self.next]
            if token == closing or (token == "|" and opening == "("):
                return items
            self.next += 1
            items.append(self._item(token, where_token))
        if opening:
            raise FormatError(f"{self.last}: end of the rule; expected {closing!r} for the {opening!r} of {where}")
        return items

    def _item(self, token: str, where: str) -> Item:
        if token[0] == "<" and len(token) > 1:
            rule, _, argument = token[1:-1].partition(" ")
            return Reference(rule, argument, where)
        if token[0] == "[" and len(token) > 1:
            return Slot(token[1:-1], self._closed("[", where), where)
        if token[0] == "{":
            chance = int(token[1:-1]) / 100 if len(token) > 1 else 0.5
            return Choice([self._closed("{", where), []], [chance, 1.0])
        if token == "(":
            rows = [self._closed("(", where)]
            while self.tokens[self.next - 1][0] == "|":
                rows.append(self._closed("(", where))
            return Choice(rows, list(range(1, len(rows) + 1)))
        if not token[0].isalpha():
            raise FormatError(f"{where}: {token!r}; expected a word, <rule>, [slot: ...], (a | b) or {{a}}")
        return token

    def _closed(self, opening: str, where: str) -> list[Item]:
        """Return the items up to the closing bracket, and skip that."""
        items = self.row(opening, where)
        self.next += 1
        return items


def _references(item: Item) -> list[Reference]:
    if isinstance(item, Reference):
        return [item]
    rows = item.rows if isinstance(item, Choice) else [item.words] if isinstance(item, Slot) else []
    return [reference for row in rows for part in row for reference in _references(part)]
