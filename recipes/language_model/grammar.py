"""A weighted grammar with features, read from a text file, and its sentences.

Lines of the file; `#` begins a comment:

    domain x y = m:3 f:3 p:5        variables, and their values with weights
    words Act 1500 1.4 it=es past=ed    content words: stems, mean number of syllables, forms and their endings
    S 5 -> Clause:x .               a rule: symbol, weight, expansion

A name that begins with a capital is a symbol of a rule or of a `words` line, with features after colons; everything
else is a word.  A feature is a value or a variable.  A variable of the left side has one value in the whole rule; a
variable that is only on the right is drawn anew.
"""

import math
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from random import Random

from readers.common.text import read_lines
from readers.errors import FormatError

Draw = Callable[[str, tuple[str, ...]], str]  # (name of the words, features) -> a word
START = "S"
DEEPEST = 1000  # more than the depth of any grammar


@dataclass(frozen=True)
class Item:
    """An element of a right side: a word without features, or a symbol with its features."""

    name: str
    features: tuple[str, ...] = ()

    @property
    def is_symbol(self) -> bool:
        return self.name[0].isupper()


@dataclass(frozen=True)
class Rule:
    features: tuple[str, ...]
    weight: float
    items: tuple[Item, ...]
    where: str

    def bind(self, features: tuple[str, ...], domains: dict[str, "Domain"]) -> dict[str, str] | None:
        """Return the values of the rule's variables for these features; None if the rule does not match."""
        bound: dict[str, str] = {}
        if len(features) != len(self.features):
            return None
        for expected, value in zip(self.features, features):
            if expected not in domains:
                if expected != value:
                    return None
            elif value not in domains[expected].values or bound.setdefault(expected, value) != value:
                return None
        return bound


@dataclass(frozen=True)
class Domain:
    """The values of a variable, with their cumulative weights."""

    values: tuple[str, ...]
    sums: tuple[float, ...]

    def draw(self, rng: Random) -> str:
        return self.values[bisect(self.sums, rng.random() * self.sums[-1])]


@dataclass(frozen=True)
class Words:
    """Content words of one kind: number of stems, mean number of syllables, form -> ending."""

    stems: int
    syllables: float
    forms: dict[str, str]


@dataclass
class _Choice:
    """The rules of a symbol with features: their bindings, cumulative weights, and the minimum depth of each."""

    rules: list[tuple[Rule, dict[str, str]]]
    sums: list[float]
    depths: list[float] = field(default_factory=list)


@dataclass
class Grammar:
    """A grammar.  domains: variable -> values; words: name -> content words; rules: symbol -> rules."""

    path: Path
    domains: dict[str, Domain] = field(default_factory=dict)
    words: dict[str, Words] = field(default_factory=dict)
    rules: dict[str, list[Rule]] = field(default_factory=dict)
    _choices: dict[tuple[str, tuple[str, ...]], _Choice] = field(default_factory=dict)

    def sentence(self, rng: Random, draw: Draw, levels: int) -> list[str]:
        """Return a sentence; below this depth of the tree, every symbol is expanded by its shallowest rule."""
        words: list[str] = []
        waiting = [(Item(START), levels)]  # an explicit stack, because grammars may exceed Python's recursion limit
        while waiting:
            item, depth = waiting.pop()
            if not item.is_symbol:
                words.append(item.name)
            elif item.name in self.words:
                words.append(draw(item.name, item.features))
            else:
                rule, bound = self._choose(item, rng, depth)
                bound = dict(bound)
                parts = [(self._fill(part, bound, rng), depth - 1) for part in rule.items]
                waiting.extend(reversed(parts))
        return words

    def check(self) -> None:
        """Raise FormatError, with the line, for a symbol without rules, infinite recursion, and an unknown form.

        All symbols that are reachable from the start are checked, with all values of their features.
        """
        todo = [(Item(START), f"{self.path}")]
        checked = set()
        while todo:
            item, where = todo.pop()
            if item in checked or not item.is_symbol:
                continue
            checked.add(item)
            if item.name in self.words:
                if not item.features or item.features[0] not in self.words[item.name].forms:
                    forms = ", ".join(self.words[item.name].forms)
                    raise FormatError(f"{where}: {_text(item)}; expected a form of {item.name}: {forms}")
                continue
            choice = self._choice(item)
            if not choice.rules:
                raise FormatError(f"{where}: {_text(item)} has no rule; expected one, or other features")
            for rule, bound in choice.rules:
                todo += [(filled, rule.where) for part in rule.items for filled in self._fillings(part, bound)]
        self._measure([item for item in checked if item.name not in self.words])

    def _measure(self, symbols: Sequence[Item]) -> None:
        """Compute the minimum depth of each rule, iterating until nothing changes."""
        fewest = dict.fromkeys(symbols, math.inf)
        changed = True
        while changed:
            changed = False
            for symbol in symbols:
                choice = self._choice(symbol)
                choice.depths = [
                    1 + max((self._part_depth(part, bound, fewest) for part in rule.items), default=0)
                    for rule, bound in choice.rules
                ]
                if min(choice.depths) < fewest[symbol]:
                    fewest[symbol] = min(choice.depths)
                    changed = True
        for symbol, depth in fewest.items():
            if depth > DEEPEST:
                where = self.rules[symbol.name][0].where
                raise FormatError(f"{where}: {_text(symbol)} has only infinite expansions; expected a rule that ends")

    def _part_depth(self, part: Item, bound: dict[str, str], fewest: dict[Item, float]) -> float:
        if not part.is_symbol or part.name in self.words:
            return 0
        return max(fewest[filled] for filled in self._fillings(part, bound))

    def _choose(self, item: Item, rng: Random, left: int) -> tuple[Rule, dict[str, str]]:
        choice = self._choice(item)
        number = bisect(choice.sums, rng.random() * choice.sums[-1])
        if choice.depths and choice.depths[number] > left:
            number = choice.depths.index(min(choice.depths))
        return choice.rules[number]

    def _choice(self, item: Item) -> _Choice:
        key = (item.name, item.features)
        if key not in self._choices:
            fitting = [(rule, rule.bind(item.features, self.domains)) for rule in self.rules.get(item.name, [])]
            rules = [(rule, bound) for rule, bound in fitting if bound is not None]
            self._choices[key] = _Choice(rules, list(accumulate(rule.weight for rule, _ in rules)))
        return self._choices[key]

    def _fill(self, part: Item, bound: dict[str, str], rng: Random) -> Item:
        """Return the element with values for its variables; unbound ones are drawn."""
        for feature in part.features:
            if feature in self.domains and feature not in bound:
                bound[feature] = self.domains[feature].draw(rng)
        return Item(part.name, tuple(bound.get(feature, feature) for feature in part.features))

    def _fillings(self, part: Item, bound: dict[str, str]) -> list[Item]:
        """Return the element with all possible values of its variables."""
        expansions: list[tuple[tuple[str, ...], dict[str, str]]] = [((), bound)]
        for feature in part.features:
            free = feature in self.domains
            expansions = [
                ((*values, value), bindings | ({feature: value} if free else {}))
                for values, bindings in expansions
                for value in (
                    (bindings[feature],)
                    if feature in bindings
                    else self.domains[feature].values
                    if free
                    else (feature,)
                )
            ]
        return [Item(part.name, values) for values, _ in expansions]


def read_grammar(path: Path) -> Grammar:
    """Read a grammar.

    Raises FormatError, with file and line, for a malformed line and the errors of `Grammar.check`.
    """
    grammar = Grammar(Path(path))
    for number, line in enumerate(read_lines(path), 1):
        fields = line.partition("#")[0].split()
        where = f"{path}:{number}"
        if not fields:
            continue
        try:
            if fields[0] == "domain":
                equals = fields.index("=")
                domain = _domain(fields[equals + 1 :])
                grammar.domains |= dict.fromkeys(fields[1:equals], domain)
            elif fields[0] == "words":
                forms = dict(part.split("=") for part in fields[4:])
                grammar.words[fields[1]] = Words(int(fields[2]), float(fields[3]), forms)
            else:
                symbol_field, weight, arrow, *items = fields
                symbol, *features = symbol_field.split(":")
                if arrow != "->" or not float(weight) > 0 or not symbol[0].isupper() or not items:
                    raise ValueError(line)
                rule = Rule(tuple(features), float(weight), tuple(map(_item, items)), where)
                grammar.rules.setdefault(symbol, []).append(rule)
        except (ValueError, IndexError) as fault:
            raise FormatError(
                f"{where}: {line.strip()[:60]!r}; expected `domain VARIABLES = VALUE:WEIGHT ...`, "
                "`words NAME STEMS SYLLABLES FORM=ENDING ...` or `SYMBOL WEIGHT -> ...`"
            ) from fault
    if START not in grammar.rules:
        raise FormatError(f"{path}: no rule for {START}; expected one, because sentences begin with it")
    grammar.check()
    return grammar


def _domain(fields: list[str]) -> Domain:
    pairs = [field.split(":") for field in fields]
    sums = tuple(accumulate(float(weight) for _, weight in pairs))
    if not pairs or min(float(weight) for _, weight in pairs) <= 0:
        raise ValueError(fields)
    return Domain(tuple(value for value, _ in pairs), sums)


def _item(text: str) -> Item:
    if not text[0].isupper():
        return Item(text)
    name, *features = text.split(":")
    return Item(name, tuple(features))


def _text(item: Item) -> str:
    return ":".join((item.name, *item.features))
