"""What a name can stand for while a description is evaluated: a literal or alias, a planned node, a macro's call."""

from __future__ import annotations

from dataclasses import dataclass, field

from acoustic.descriptions.ndl.macros import MacroTable
from acoustic.descriptions.ndl.syntax import Call, Expression, Macro, Name, Number
from acoustic.nodes.base import Node


@dataclass(eq=False)
class Reference:
    """A number or a name as it stands in a script, to be looked up in a frame once all names are known.

    path: the full name of the variable it is assigned to, "" for an argument.
    """

    expression: Number | Name
    frame: Frame
    path: str = ""


@dataclass(eq=False)
class Planned:
    """A node to be made.

    kind: its type; path: its name; where: file, line and macros; arguments and named: those of the call;
    made: the node, once there is one.
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
    """A name as written, what it stands for and where that was said.

    value: what it was assigned, None for a parameter; optional: a named argument of the macro's call.
    """

    name: str
    symbol: Symbol
    where: str
    value: Expression | None = None
    optional: bool = False


@dataclass(eq=False)
class Frame:
    """The names of a script, or of one call of a macro; `result` is what the call stands for.

    path: the name of the call, which begins the names of its nodes; macros: where the calls inside are looked up.
    """

    path: str
    macros: MacroTable
    macro: Macro | None = None
    call: Call | None = None
    caller: Frame | None = None
    result: Symbol | None = None
    names: dict[str, Binding] = field(default_factory=dict)

    def join(self, name: str) -> str:
        """The full name of something inside."""
        return f"{self.path}.{name}" if self.path else name

    def trace(self, where: str) -> str:
        """A place, and the calls of macros that led there, innermost first."""
        calls = []
        frame = self
        while frame.macro is not None and frame.call is not None and frame.caller is not None:
            calls.append(f"{frame.macro.name} called at {frame.call.where}")
            frame = frame.caller
        return f"{where} ({', '.join(calls)})" if calls else where

    def is_within(self, macro: Macro) -> bool:
        """Whether the frame belongs to a call of the macro, directly or through others."""
        frame: Frame | None = self
        while frame is not None:
            if frame.macro is macro:
                return True
            frame = frame.caller
        return False


Symbol = Reference | Planned | Frame | Node


def without_tags(expression: Expression) -> Expression:
    """The expression with the tags of its outermost call left out."""
    if not isinstance(expression, Call):
        return expression
    kept = tuple(argument for argument in expression.arguments if (argument.name or "").lower() != "tag")
    return Call(expression.function, kept, expression.where)
