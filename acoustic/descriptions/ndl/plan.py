"""The symbols of an evaluation: a literal or alias, a planned node, a macro call."""

from __future__ import annotations

from dataclasses import dataclass, field

from acoustic.descriptions.ndl.macros import MacroTable
from acoustic.descriptions.ndl.syntax import Call, Expression, Macro, Name, Number
from acoustic.nodes.base import Node


@dataclass(eq=False)
class Reference:
    """A number or name in a script, resolved in a frame later; `path` is the variable it is assigned to, if any."""

    expression: Number | Name
    frame: Frame
    path: str = ""


@dataclass(eq=False)
class Planned:
    """A node to be created.

    Attributes
    ----------
    kind : type of Node
    path : str
        Its name.
    where : str
        File, line and macro calls.
    arguments, named : list
        Positional and named arguments of the call.
    made : Node or None
        The node, after its creation.
    """

    kind: type[Node]
    path: str
    where: str
    arguments: list[Symbol]
    named: list[tuple[str, Reference]]
    made: Node | None = None
    operands: list[Planned | Node] = field(default_factory=list)
    options: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Binding:
    """A name in a frame, its symbol, and the place of its definition.

    `value` is the expression assigned, None for a parameter; `optional` marks a named argument of a macro call.
    """

    name: str
    symbol: Symbol
    where: str
    value: Expression | None = None
    optional: bool = False


@dataclass(eq=False)
class Frame:
    """The names of a script, or of one macro call, whose value is `result`.

    `path` is the name of the call, a prefix of the names of its nodes; `macros` is the table for calls inside.
    """

    path: str
    macros: MacroTable
    macro: Macro | None = None
    call: Call | None = None
    caller: Frame | None = None
    result: Symbol | None = None
    names: dict[str, Binding] = field(default_factory=dict)

    def join(self, name: str) -> str:
        """Return the full name of a node inside."""
        return f"{self.path}.{name}" if self.path else name

    def trace(self, where: str) -> str:
        """Return a place followed by the macro calls that led to it, innermost first."""
        calls = []
        frame = self
        while frame.macro is not None and frame.call is not None and frame.caller is not None:
            calls.append(f"{frame.macro.name} called at {frame.call.where}")
            frame = frame.caller
        return f"{where} ({', '.join(calls)})" if calls else where

    def is_within(self, macro: Macro) -> bool:
        """Return whether the frame belongs to a call of the macro, directly or through others."""
        frame: Frame | None = self
        while frame is not None:
            if frame.macro is macro:
                return True
            frame = frame.caller
        return False


Symbol = Reference | Planned | Frame | Node


def without_tags(expression: Expression) -> Expression:
    """Return the expression without the tags of its outermost call."""
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(argument for argument in expression.arguments if (argument.name or "").lower() != "tag")
    return Call(expression.function, arguments, expression.where)
