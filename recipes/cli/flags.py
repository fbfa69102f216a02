"""Flags of the command line from declared options, and options from the command line."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from readers.config.options import Option, Options
from readers.config.options.declaration import LIST, with_names
from readers.config.options.options import is_group
from readers.errors import ConfigError

T = TypeVar("T", bound=Options)


def add_flags(
    parser: argparse._ActionsContainer,
    options: type[Options],
    prefix: str = "",
    section: Any = None,
    others: Sequence[Option] = (),
    sections: dict[str, Any] | None = None,
) -> Any:
    """Add the flags of options to a parser, or to a section of one; return the section of the last one.

    prefix: the names of the groups around, before those in the namespace; section: what flags without a heading are
    added to, the parser by default; others: options of the groups around, which help may name; sections: those of the
    parser by title, so that a heading that comes again continues its section.
    """
    section = section or parser
    sections = {} if sections is None else sections
    others = (*others, *options.with_groups())
    for declared in options.declared():
        if not declared.on_command_line:
            continue
        if declared.heading:
            title, _, description = with_names(declared.heading, others, "flag").partition("\n")
            if title not in sections:
                sections[title] = parser.add_argument_group(title, description or None)
            section = sections[title]
        name = prefix + declared.name
        if is_group(declared):
            section = add_flags(parser, declared.type, f"{name}.", section, others, sections)
        elif declared.flags[0].startswith("-"):
            section.add_argument(*declared.flags, dest=name, required=declared.required, **_keywords(declared, others))
        else:
            keywords = _keywords(declared, others) | {"metavar": declared.metavar or declared.flags[0].upper()}
            if (count := _count(declared)) == "?":
                keywords["default"] = declared.default  # argparse would convert SUPPRESS as if it were given
            parser.add_argument(name, nargs=count, **keywords)
    return section


def options_from(arguments: argparse.Namespace, options: type[T], prefix: str = "") -> T:
    """Return the options that a command line gives.  Raises OptionFault for a value out of range."""
    values = {}
    for declared in options.declared():
        name = prefix + declared.name
        if is_group(declared):
            values[declared.name] = options_from(arguments, declared.type, f"{name}.")
        elif hasattr(arguments, name):
            values[declared.name] = getattr(arguments, name)
    return options(**values)


def _keywords(declared: Option, others: Sequence[Option]) -> dict[str, Any]:
    """Return the keywords of argparse.  An option that is not given does not appear in the namespace."""
    common: dict[str, Any] = {"default": argparse.SUPPRESS, "help": _help(declared, others)}
    if declared.type is bool and declared.default is None:
        return common | {"action": argparse.BooleanOptionalAction}
    if declared.type is bool and declared.parse is not None:  # a switch that a value may follow
        return common | {"nargs": "?", "const": True, "metavar": declared.metavar, "type": _converter(declared)}
    if declared.type is bool:
        return common | {"action": "store_false" if declared.default is True else "store_true"}
    if declared.choices and not declared.separator.strip():
        common["choices"] = declared.choices
    elif declared.flags[0].startswith("-"):
        common["metavar"] = declared.metavar
    if declared.several and declared.flags[0].startswith("-") and declared.separator in ("", " "):
        common |= {"action": "extend", "nargs": "+"} if declared.separator else {"action": "append"}
    return common | {"type": _converter(declared)}


def _converter(declared: Option) -> Callable[[str], Any]:
    if declared.separator.strip():
        return partial(_separated, declared)
    if declared.parse is None:
        return declared.type if declared.type in (int, float) else str
    parse = declared.parse

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except ConfigError as fault:
            raise argparse.ArgumentTypeError(str(fault)) from None

    return convert


def _separated(declared: Option, text: str) -> tuple[Any, ...]:
    """Return the values of a text such as `0.9,1.1`."""
    parts = filter(None, map(str.strip, text.split(declared.separator)))
    try:
        return tuple(map(declared.type, parts))
    except ValueError:
        what = {int: "whole numbers", float: "numbers"}[declared.type]
        raise argparse.ArgumentTypeError(f"{text!r}; expected {what} separated by {declared.separator!r}") from None


def _count(declared: Option) -> str | None:
    if declared.several == LIST:
        return "+" if declared.required else "*"
    return None if declared.required else "?"


def _help(declared: Option, others: Sequence[Option]) -> str:
    """Return the help of a flag, with the default unless it says nothing."""
    text = with_names(declared.help, others, "flag").replace("%", "%%")
    default = declared.default
    if declared.required or default is None or isinstance(default, bool) or default in ("", ()) or "default" in text:
        return text
    defaults = default if declared.separator else (default,)
    shown = declared.separator.join(f"{value:g}" if isinstance(value, float) else str(value) for value in defaults)
    return f"{text} ({shown})"
