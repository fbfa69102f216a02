"""Regular expressions over words with named rules, and their expansion to a network."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from readers.errors import FormatError
from readers.language.grammars.network import TAG_END, NetworkBuilder, WordNetwork
from readers.language.grammars.parsing import LineFault

MOST_NESTED = 150  # brackets and rules inside each other


@dataclass(frozen=True)
class Word:
    """A word."""

    text: str


@dataclass(frozen=True)
class Reference:
    """The sentences of another rule, as it is written at a line of the file."""

    rule: str
    line: int


@dataclass(frozen=True)
class Series:
    """Expressions one after the other; none is the empty sentence."""

    items: Sequence["Expression"]


@dataclass(frozen=True)
class Choice:
    """One of several expressions, each with a cost; none is impossible."""

    items: Sequence[tuple["Expression", float]]


@dataclass(frozen=True)
class Repeat:
    """An expression any number of times, at least `least` (0 or 1) times."""

    item: "Expression"
    least: int


@dataclass(frozen=True)
class Maybe:
    """An expression or nothing."""

    item: "Expression"


@dataclass(frozen=True)
class Tagged:
    """An expression whose words have a tag."""

    item: "Expression"
    tag: str


Expression = Word | Reference | Series | Choice | Repeat | Maybe | Tagged
NOTHING, IMPOSSIBLE = Series(()), Choice(())


def series(items: Sequence[Expression]) -> Expression:
    """Return expressions one after the other, without those that are empty."""
    items = tuple(item for item in items if item != NOTHING)
    return items[0] if len(items) == 1 else Series(items)


def weighted_choice(items: Sequence[Expression], weights: Sequence[float | None], line: int) -> Expression:
    """Return a choice with the costs -ln (weight / sum of the weights); without weights all cost nothing.

    An alternative of weight 0 is impossible.  Raises LineFault where only some alternatives have a weight, or all
    weights are 0.
    """
    numbers = [weight for weight in weights if weight is not None]
    if not numbers:
        return items[0] if len(items) == 1 else Choice([(item, 0.0) for item in items])
    if len(numbers) < len(items):
        raise LineFault(line, "alternatives with and without a weight; expected a weight for each or for none")
    total = math.fsum(numbers)
    if not 0 < total < math.inf:
        raise LineFault(line, f"weights with the sum {total:g}; expected a number above 0")
    return Choice([(item, -math.log(weight / total)) for item, weight in zip(items, numbers) if weight / total > 0])


def references(expression: Expression) -> list[Reference]:
    """Return the references to rules in an expression."""
    reached: list[Reference] = []
    waiting = [expression]
    while waiting:
        match waiting.pop():
            case Reference() as reference:
                reached.append(reference)
            case Series(items):
                waiting.extend(items)
            case Choice(items):
                waiting.extend(item for item, _ in items)
            case Maybe(item) | Repeat(item) | Tagged(item):
                waiting.append(item)
    return reached


def expand(rules: Mapping[str, Expression], roots: Sequence[str], where: str) -> WordNetwork:
    """Expand rules to a network, whose sentences are those of the rules `roots`.

    A rule may refer to itself at its end, directly or through other rules; this becomes a loop.

    Raises FormatError for unknown rules, any other recursion, deep nesting and too many arcs.
    """
    return _Expansion(rules, where).run(roots)


def random_sentence(rules: Mapping[str, Expression], start: str, rng: np.random.Generator) -> list[str]:
    """Return the words of a random sentence of a rule.

    Alternatives are drawn by their weights; optional parts, and further repetitions, with probability one half.
    Raises FormatError for unknown rules, <VOID>, and a sentence that is nested too deeply.
    """
    return _random_words(Reference(start, 0), rules, rng, 0)


def _random_words(item: Expression, rules: Mapping[str, Expression], rng: np.random.Generator, depth: int) -> list[str]:
    if depth > MOST_NESTED or item == IMPOSSIBLE:
        raise FormatError("random sentence: no end of the rules, or <VOID>; expected rules that end")
    match item:
        case Word(text):
            return [text]
        case Reference(rule):
            if rule not in rules:
                raise FormatError(f"rule {rule}; expected a rule that the grammar defines")
            return _random_words(rules[rule], rules, rng, depth + 1)
        case Choice(items):
            number = rng.choice(len(items), p=_shares(items)) if items[0][1] else rng.integers(len(items))
            return _random_words(items[int(number)][0], rules, rng, depth + 1)
        case Series(items):
            return [word for part in items for word in _random_words(part, rules, rng, depth + 1)]
        case Tagged(inner):
            return _random_words(inner, rules, rng, depth + 1)
        case Maybe(inner):
            return _random_words(inner, rules, rng, depth + 1) if rng.random() < 0.5 else []
        case Repeat(inner, least):
            count = least + rng.geometric(0.5) - 1
            return [word for _ in range(count) for word in _random_words(inner, rules, rng, depth + 1)]


def _shares(items: Sequence[tuple[Expression, float]]) -> npt.NDArray[np.float64]:
    """Return the probability of each alternative."""
    shares: npt.NDArray[np.float64] = np.exp([-cost for _, cost in items])
    shares /= shares.sum()
    return shares


class _Expansion:
    def __init__(self, rules: Mapping[str, Expression], where: str):
        self.rules = rules
        self.where = where
        self.builder = NetworkBuilder(where)
        self.active: list[str] = []  # rules that are being expanded

    def run(self, roots: Sequence[str]) -> WordNetwork:
        for root in roots:
            self._rule(root, WordNetwork.START, WordNetwork.END, {}, 0)
        return self.builder.network()

    def _rule(self, name: str, entry: int, exit: int, loops: Mapping[str, int], depth: int) -> None:
        """Expand a rule between two nodes; loops: entries of the active rules that end where this one ends."""
        begin = self.builder.node()
        self.builder.add(entry, begin)
        self.active.append(name)
        self._expand(self.rules[name], begin, exit, {**loops, name: begin}, depth + 1)
        self.active.pop()

    def _expand(self, item: Expression, entry: int, exit: int, loops: Mapping[str, int], depth: int) -> None:
        if depth > MOST_NESTED:
            raise FormatError(
                f"{self.where}: more than {MOST_NESTED} brackets and rules inside each other; expected fewer"
            )
        builder = self.builder
        match item:
            case Word(text):
                builder.add(entry, exit, text)
            case Reference():
                self._reference(item, entry, exit, loops, depth)
            case Series(items):
                self._sequence(items, entry, exit, loops, depth)
            case Choice(items):
                for alternative, cost in items:
                    begin = entry
                    if cost:
                        begin = builder.node()
                        builder.add(entry, begin, None, cost)
                    self._expand(alternative, begin, exit, loops, depth + 1)
            case Maybe(inner):
                builder.add(entry, exit)
                self._expand(inner, entry, exit, loops, depth + 1)
            case Repeat(inner, least):
                begin, end = builder.node(), builder.node()
                builder.add(entry, begin)
                builder.add(end, begin)
                builder.add(end, exit)
                if not least:
                    builder.add(begin, end)
                self._expand(inner, begin, end, {}, depth + 1)
            case Tagged(inner) if self._reaches(inner, loops):
                self._expand(inner, entry, exit, loops, depth + 1)
            case Tagged(inner, tag):
                begin, end = builder.node(), builder.node()
                builder.add(entry, begin, tag=tag)
                builder.add(end, exit, tag=TAG_END)
                self._expand(inner, begin, end, {}, depth + 1)

    def _reaches(self, item: Expression, loops: Mapping[str, int]) -> bool:
        """Return whether an expression refers to an active rule: its loop leaves it, so that a tag would not end."""
        reached: set[str] = set()
        waiting = [item]
        while waiting:
            names = {reference.rule for reference in references(waiting.pop())} & self.rules.keys() - reached
            reached |= names
            waiting += [self.rules[name] for name in names]
        return not reached.isdisjoint(loops)

    def _sequence(
        self, items: Sequence[Expression], entry: int, exit: int, loops: Mapping[str, int], depth: int
    ) -> None:
        if not items:
            self.builder.add(entry, exit)
        for i, part in enumerate(items):
            last = i == len(items) - 1
            after = exit if last else self.builder.node()
            self._expand(part, entry, after, loops if last else {}, depth + 1)
            entry = after

    def _reference(self, item: Reference, entry: int, exit: int, loops: Mapping[str, int], depth: int) -> None:
        name = item.rule
        if name not in self.rules:
            raise FormatError(f"{self.where}:{item.line}: rule {name}; expected a rule that the grammar defines")
        if name in loops:
            self.builder.add(entry, loops[name])
        elif name in self.active:
            raise FormatError(
                f"{self.where}:{item.line}: rule {name} contains itself before its end; expected recursion at the end "
                "of a rule only, which is finite-state"
            )
        else:
            self._rule(name, entry, exit, loops, depth)
