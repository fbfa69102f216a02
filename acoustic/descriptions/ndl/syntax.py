"""The parts of a network description as data: what `parse` makes and `evaluate` reads.

`str` of each is text that parses back to an equal one; `where` ("file:line") does not count in comparisons.
Source: CNTK book, section 4.1.
"""

import re
from dataclasses import dataclass, field

_BARE = re.compile(r"""[^\s\d"()\[\]{}=,;#+\-.][^\s"()\[\]{}=,;#]*""")


def _where() -> str:
    return field(compare=False, default="")


@dataclass(frozen=True)
class Number:
    """A number as written, `value` what it means."""

    text: str
    value: int | float
    where: str = _where()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Name:
    """A variable, parameter or node, perhaps with dots, or a word that an option takes (`uniform`); quoted or bare."""

    text: str
    quoted: bool = False
    where: str = _where()

    def __str__(self) -> str:
        return f'"{self.text}"' if self.quoted or not _BARE.fullmatch(self.text) else self.text


@dataclass(frozen=True)
class Argument:
    """One argument of a call; `name` is None when it is given by position."""

    name: str | None
    value: "Expression"

    def __str__(self) -> str:
        return str(self.value) if self.name is None else f"{self.name}={self.value}"


@dataclass(frozen=True)
class Call:
    """A function or macro with its arguments."""

    function: str
    arguments: tuple[Argument, ...]
    where: str = _where()

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"

    @property
    def positional(self) -> list["Expression"]:
        return [argument.value for argument in self.arguments if argument.name is None]

    @property
    def named(self) -> list[tuple[str, "Expression"]]:
        return [(argument.name, argument.value) for argument in self.arguments if argument.name is not None]


Expression = Number | Name | Call


@dataclass(frozen=True)
class Assignment:
    """`name = value`; name is "" for a call that stands alone."""

    name: str
    value: Expression
    where: str = _where()

    def __str__(self) -> str:
        return f"{self.name} = {self.value}" if self.name else str(self.value)


@dataclass(frozen=True)
class NodeList:
    """`FeatureNodes = (a, b)`: the name as written, and the names in the list."""

    name: str
    members: tuple[Name, ...]
    where: str = _where()

    def __str__(self) -> str:
        return f"{self.name} = ({', '.join(map(str, self.members))})"


Statement = Assignment | NodeList


@dataclass(frozen=True)
class Macro:
    """A macro's name, the names of its parameters, its statements in order."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]
    where: str = _where()

    def __str__(self) -> str:
        head = f"{self.name}({', '.join(self.parameters)})"
        lines = "".join(f"  {statement}\n" for statement in self.body)
        return f"{head}\n{{\n{lines}}}"


@dataclass(frozen=True)
class Script:
    """Statements in order and the macros defined among them."""

    statements: tuple[Statement, ...] = ()
    macros: tuple[Macro, ...] = ()

    def __str__(self) -> str:
        return "".join(f"{part}\n" for part in (*self.macros, *self.statements))
