"""Parser of the network description language.

Brackets, quotes, comments and separators are those of the configuration language (`readers.config.syntax`). Source:
CNTK book, sections 4.1.1 to 4.1.3; figure in 5.2.3.2.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from acoustic.descriptions.ndl.syntax import (
    Argument,
    Assignment,
    Call,
    Expression,
    Macro,
    Name,
    NdlScript,
    NodeList,
    Number,
    Statement,
)
from readers.config.scope import shorten
from readers.config.syntax import Source, Span, find_closing, split_records, unquote
from readers.config.values import MOST_INTEGER, parse_float, parse_int
from readers.errors import ConfigError

Parsed = TypeVar("Parsed")

# The network's list for each node array; None for one without effect (multi-sequence handling).
NODE_LISTS = {
    "featurenodes": "features",
    "labelnodes": "labels",
    "criterianodes": "criteria",
    "criterionnodes": "criteria",
    "evalnodes": "evaluations",
    "evaluationnodes": "evaluations",
    "outputnodes": "outputs",
    "nodesreqmultiseqhandling": None,
}
MAX_DEPTH = 100  # of nested calls and macros, within Python's recursion limit

_BODY = "{["  # opening brackets of a macro's body
_NAME = re.compile(r"[^\W\d][\w.]*")
_TOKEN = re.compile(r"""[^\s"()\[\]{}=,;]+""")


def parse_ndl(source: Source | Span) -> NdlScript:
    """Parse a description into statements and macros.

    References ``$name$`` must have been replaced (`Config.substitute`), and sections must have been split off
    (`split_sections`).

    Parameters
    ----------
    source : Source or Span

    Returns
    -------
    NdlScript

    Raises
    ------
    ConfigError
        With file and line, for anything that is not NDL.
    """
    macros: list[Macro] = []
    statements = _statements(_Parser(source.span if isinstance(source, Source) else source), macros)
    return NdlScript(tuple(statements), tuple(macros))


def _statements(parser: "_Parser", macros: list[Macro]) -> list[Statement]:
    """Return the statements that a parser finds, and append the macros to `macros`."""
    statements: list[Statement] = []
    for part in parser.parts():
        if isinstance(part, Macro):
            macros.append(part)
        elif isinstance(part, tuple):
            name, span = part
            raise ConfigError(f"{span.where}: section {name}=[...] within a script; expected statements and macros")
        else:
            statements.append(part)
    return statements


def split_sections(source: Source) -> tuple[dict[str, tuple[str, Span]], NdlScript]:
    """Split a file into its sections and the rest.

    Parameters
    ----------
    source : Source

    Returns
    -------
    sections : dict
        Name in lower case to (name, content of the brackets).
    script : NdlScript
        The statements and macros outside of sections.

    Raises
    ------
    ConfigError
        With file and line, for a section that is defined twice and for anything else that is not NDL.
    """
    sections: dict[str, tuple[str, Span]] = {}
    statements: list[Statement] = []
    macros: list[Macro] = []
    for part in _Parser(source.span).parts():
        if isinstance(part, tuple):
            name, span = part
            if name.lower() in sections:
                first = sections[name.lower()][1].where
                raise ConfigError(f"{span.where}: section {name} is defined already, at {first}; expected it once")
            sections[name.lower()] = (name, span)
        elif isinstance(part, Macro):
            macros.append(part)
        else:
            statements.append(part)
    return sections, NdlScript(tuple(statements), tuple(macros))


class _Parser:
    """Reads a span record by record; `within` is the macro whose body the span is, empty for a script."""

    def __init__(self, span: Span, within: str = ""):
        self._records = split_records(span, ";")
        self._ahead: Span | None = None
        self._within = within

    def parts(self) -> Iterator[Statement | Macro | tuple[str, Span]]:
        while (record := self._next()) is not None:
            yield self._part(record)

    def _next(self) -> Span | None:
        record = self._ahead
        self._ahead = None
        return record if record is not None else next(self._records, None)

    def _push(self, remainder: Span) -> None:
        """Keep the text after a closing bracket as the next statement, as in ``T1=F(a) T2=F(b)`` (book 7.1.7)."""
        remainder = remainder.strip()
        if not remainder.is_empty:
            assert self._ahead is None
            self._ahead = remainder

    def _part(self, record: Span) -> Statement | Macro | tuple[str, Span]:
        match = record.match(_NAME)
        if match is None:
            raise ConfigError(
                f"{record.where}: found {shorten(record.text)!r}; expected name=value, a call or a macro, and names "
                "that begin with a letter"
            )
        name = match.group()
        remainder = record.after(match)
        sign = remainder.first
        if sign == "=":
            return self._assignment(name, remainder.part(1).strip(), record)
        if sign == "(" and name.lower() in NODE_LISTS:  # EvalNodes(a, b)
            return self._node_list(name, remainder, record)
        if sign == "(":
            return self._call_or_macro(name, remainder, record)
        if sign == "[":
            return self._section(name, remainder)
        description = f"{name!r} and then {shorten(remainder.text, 20)!r}" if remainder.text else f"{name!r} alone"
        raise ConfigError(
            f"{record.where}: found {description}; expected {name}=value, {name}(...) or a macro's definition"
        )

    def _section(self, name: str, value: Span) -> tuple[str, Span]:
        end = find_closing(value, 0)
        self._push(value.part(end + 1))
        return name, value.part(1, end)

    def _assignment(self, name: str, value: Span, record: Span) -> Statement | tuple[str, Span]:
        if value.is_empty:
            raise ConfigError(f"{record.where}: {name}= has no value; expected a number, a name or a call")
        if value.first == "[":
            return self._section(name, value)
        if name.lower() in NODE_LISTS:
            return self._node_list(name, value, record)
        expression, remainder = parse_expression(value)
        if not remainder.is_empty and not isinstance(expression, Call):
            raise ConfigError(
                f"{remainder.where}: found {shorten(remainder.text)!r} after {name}={expression}; "
                "expected the end of the line"
            )
        self._push(remainder)
        return Assignment(name, expression, record.where)

    def _node_list(self, name: str, value: Span, record: Span) -> NodeList:
        if value.first == "(":
            end = find_closing(value, 0)
            remainder = value.part(end + 1).strip()
            if not remainder.is_empty and remainder.first in ("=", *_BODY):
                raise ConfigError(f"{record.where}: macro {name} has a reserved name; expected another one")
            self._push(remainder)
            members = [_whole(member, parse_name) for member in split_records(value.part(1, end), ":")]
        else:
            members = [_whole(value, parse_name)]
        return NodeList(name, tuple(members), record.where)

    def _call_or_macro(self, name: str, rest: Span, record: Span) -> Statement | Macro:
        end = find_closing(rest, 0)
        arguments = rest.part(1, end)
        after = rest.part(end + 1).strip()
        if after.first == "=":
            after = after.part(1).strip()
            self._refuse_within(name, record)
            if after.is_empty:
                after = self._expect_body(name, record)
            elif after.first not in _BODY:
                expression, remainder = parse_expression(after)
                self._push(remainder)
                parameters = _parameters(arguments)
                # As M=F(x) in a body, unless a parameter has that name.
                target = "" if name.lower() in (parameter.lower() for parameter in parameters) else name
                return Macro(name, parameters, (Assignment(target, expression, after.where),), record.where)
        elif after.is_empty:
            following = self._next()
            if following is not None and following.first in _BODY:
                after = following
            else:
                self._ahead = following
        if not after.is_empty and after.first in _BODY:
            self._refuse_within(name, record)
            end = find_closing(after, 0)
            self._push(after.part(end + 1))
            return Macro(name, _parameters(arguments), _body(name, after.part(1, end)), record.where)
        self._push(after)
        return Assignment("", Call(name, parse_arguments(arguments, 1), record.where), record.where)

    def _refuse_within(self, name: str, record: Span) -> None:
        if self._within:
            raise ConfigError(f"{record.where}: macro {name} inside macro {self._within}; expected them side by side")

    def _expect_body(self, name: str, record: Span) -> Span:
        following = self._next()
        if following is None or following.first not in _BODY:
            raise ConfigError(f"{record.where}: macro {name}(...)= has no body; expected a call or {{...}}")
        return following


def _body(name: str, span: Span) -> tuple[Statement, ...]:
    statements = _statements(_Parser(span, name), [])
    if not any(isinstance(statement, Assignment) for statement in statements):
        raise ConfigError(f"{span.where}: macro {name} has no statement; expected one that defines its value")
    return tuple(statements)


def _parameters(span: Span) -> tuple[str, ...]:
    """Return the names between a macro's parentheses."""
    names: list[str] = []
    for part in _split(span):
        if not _NAME.fullmatch(part.text) or "." in part.text:
            raise ConfigError(f"{part.where}: parameter {shorten(part.text)!r}; expected a name")
        if part.text.lower() in (name.lower() for name in names):
            raise ConfigError(f"{part.where}: parameter {part.text} occurs twice; expected different names")
        names.append(part.text)
    return tuple(names)


def _split(span: Span) -> list[Span]:
    """Return the parts between commas or line ends. Raises ConfigError for an empty part between two commas."""
    parts = list(split_records(span, ""))
    text = span.text
    edges = [span.start, *(edge for part in parts for edge in (part.start, part.end)), span.end]
    for index in range(0, len(edges), 2):
        gap = text[edges[index] - span.start : edges[index + 1] - span.start]
        if gap.count(",") > (0 < index < len(edges) - 2):
            where = span.source.place(edges[index])
            raise ConfigError(f"{where}: nothing between two commas or a comma and a bracket; expected an argument")
    return parts


def parse_arguments(span: Span, depth: int) -> tuple[Argument, ...]:
    """Return the arguments of a call, ``a, b, name=c``, which may span several lines."""
    if depth > MAX_DEPTH:
        raise ConfigError(f"{span.where}: calls nested more than {MAX_DEPTH} deep; expected fewer")
    arguments: list[Argument] = []
    for part in _split(span):
        match = part.match(_NAME)
        remainder = part.after(match) if match else part
        if match and remainder.first == "=":
            value = remainder.part(1).strip()
            if value.is_empty:
                raise ConfigError(f"{part.where}: {match.group()}= has no value; expected one")
            arguments.append(Argument(match.group(), _whole(value, parse_expression, depth)))
        else:
            arguments.append(Argument(None, _whole(part, parse_expression, depth)))
    return tuple(arguments)


def _whole(span: Span, parse: Callable[..., tuple[Parsed, Span]], *arguments: int) -> Parsed:
    """Return what `parse` reads from the span. Raises ConfigError if anything is left."""
    value, remainder = parse(span, *arguments)
    if not remainder.is_empty:
        raise ConfigError(
            f"{remainder.where}: found {shorten(remainder.text)!r} after {shorten(str(value))}; expected a comma"
        )
    return value


def parse_name(span: Span) -> tuple[Name, Span]:
    """Return the name at the beginning of a span, and the rest."""
    expression, remainder = parse_expression(span)
    if not isinstance(expression, Name):
        raise ConfigError(f"{span.where}: found {shorten(str(expression))}; expected the name of a node")
    return expression, remainder


def parse_expression(span: Span, depth: int = 0) -> tuple[Expression, Span]:
    """Return the number, name or call at the beginning of a span, and the stripped rest."""
    if span.first == '"':
        end = find_closing(span, 0) + 1
        return Name(unquote(span.part(0, end)).text, True, span.where), span.part(end).strip()
    match = span.match(_TOKEN)
    if match is None:
        raise ConfigError(f"{span.where}: found {shorten(span.text)!r}; expected a number, a name or a call")
    token = match.group()
    remainder = span.after(match)
    if remainder.first == "(":
        if not _NAME.fullmatch(token):
            raise ConfigError(f"{span.where}: {shorten(token)!r} is called; expected the name of a function or macro")
        end = find_closing(remainder, 0)
        return Call(token, parse_arguments(remainder.part(1, end), depth + 1), span.where), remainder.part(
            end + 1
        ).strip()
    if token[0].isdigit() or token[0] in "+-.":
        return _number(token, span.where), remainder
    return Name(token, False, span.where), remainder


def _number(token: str, where: str) -> Number:
    try:
        value = parse_float(token, where, "value")
    except ConfigError:
        raise ConfigError(f"{where}: {shorten(token)!r} is neither a number nor a name; expected one of them") from None
    if value.is_integer() and abs(value) < MOST_INTEGER:
        return Number(token, parse_int(token, where, "value"), where)
    return Number(token, value, where)
