"""The syntax tree of a network description, which parse.py produces and evaluate.py reads.

`str` of each part is text that parses to an equal part; `where` ("file:line") is ignored in comparisons. Source: CNTK
book, section 4.1.
"""

import re
from dataclasses import dataclass, field

_BARE = re.compile(r"""[^\s\d"()\[\]{}=,;#+\-.][^\s"()\[\]{}=,;#]*""")


def _where() -> str:
    return field(compare=False, default="")


@dataclass(frozen=True)
class Number:
    """A number.

    Attributes
    ----------
    text : str
        As it is written.
    value : int or float
    where : str
        "file:line".
    """

    text: str
    value: int | float
    where: str = _where()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Name:
    """A variable, parameter or node, possibly dotted, or the word of an option such as `uniform`.

    Attributes
    ----------
    text : str
    quoted : bool
        Whether it was written in quotes.
    where : str
        "file:line".
    """

    text: str
    quoted: bool = False
    where: str = _where()

    def __str__(self) -> str:
        return f'"{self.text}"' if self.quoted or not _BARE.fullmatch(self.text) else self.text


@dataclass(frozen=True)
class Argument:
    """An argument of a call.

    Attributes
    ----------
    name : str or None
        None for a positional argument.
    value : Number, Name or Call
    """

    name: str | None
    value: "Expression"

    def __str__(self) -> str:
        return str(self.value) if self.name is None else f"{self.name}={self.value}"


@dataclass(frozen=True)
class Call:
    """A call of a function or macro.

    Attributes
    ----------
    function : str
    arguments : tuple of Argument
    where : str
        "file:line".
    """

    function: str
    arguments: tuple[Argument, ...]
    where: str = _where()

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"

    @property
    def positional(self) -> list["Expression"]:
        """Values of the positional arguments."""
        return [argument.value for argument in self.arguments if argument.name is None]

    @property
    def named(self) -> list[tuple[str, "Expression"]]:
        """Names and values of the named arguments."""
        return [(argument.name, argument.value) for argument in self.arguments if argument.name is not None]


Expression = Number | Name | Call


@dataclass(frozen=True)
class Assignment:
    """``name = value``, or a call that stands alone.

    Attributes
    ----------
    name : str
        "" for a call that stands alone.
    value : Number, Name or Call
    where : str
        "file:line".
    """

    name: str
    value: Expression
    where: str = _where()

    def __str__(self) -> str:
        return f"{self.name} = {self.value}" if self.name else str(self.value)


@dataclass(frozen=True)
class NodeList:
    """A node array, ``FeatureNodes = (a, b)``.

    Attributes
    ----------
    name : str
        As it is written.
    members : tuple of Name
    where : str
        "file:line".
    """

    name: str
    members: tuple[Name, ...]
    where: str = _where()

    def __str__(self) -> str:
        return f"{self.name} = ({', '.join(map(str, self.members))})"


Statement = Assignment | NodeList


@dataclass(frozen=True)
class Macro:
    """A macro.

    Attributes
    ----------
    name : str
    parameters : tuple of str
    body : tuple of Assignment or NodeList
    where : str
        "file:line".
    """

    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]
    where: str = _where()

    def __str__(self) -> str:
        head = f"{self.name}({', '.join(self.parameters)})"
        lines = "".join(f"  {statement}\n" for statement in self.body)
        return f"{head}\n{{\n{lines}}}"


@dataclass(frozen=True)
class NdlScript:
    """A network description.

    Attributes
    ----------
    statements : tuple of Assignment or NodeList
    macros : tuple of Macro
        The macros defined among the statements.
    """

    statements: tuple[Statement, ...] = ()
    macros: tuple[Macro, ...] = ()

    def __str__(self) -> str:
        return "".join(f"{part}\n" for part in (*self.macros, *self.statements))
