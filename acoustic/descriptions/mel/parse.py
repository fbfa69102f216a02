"""Parser of model editing scripts: commands, lines of network description, and snippets.

Brackets, quotes, comments and separators are those of the configuration language (`readers.config.syntax`). Source:
CNTK book, section 4.2.
"""

import re
from collections.abc import Iterable

from acoustic.descriptions.mel.registry import find_command, is_command
from acoustic.descriptions.mel.statements import Command, Description, MelScript, Snippet, Statement
from readers.config.scope import shorten
from readers.config.syntax import Source, Span, find_closing, split_records, unquote
from readers.config.values import split_array
from readers.errors import ConfigError

_HEAD = re.compile(r"""([^\s=(\[{"]+)\s*([=(\[{]?)""")
_CALL = re.compile(r"([^\W\d]\w*)\s*(?=\()")
_KEYWORD = re.compile(r"([^\W\d]\w*)\s*=")


def parse_script(source: Source) -> MelScript:
    """Parse a model editing script.

    References ``$name$`` must have been replaced (`Config.substitute`). ``edit=`` names the sections that form the
    script, ``load=`` those that hold macros; without ``edit=`` the rest of the file is the script.

    Parameters
    ----------
    source : Source

    Returns
    -------
    MelScript

    Raises
    ------
    ConfigError
        With file and line, also for unknown commands and wrong arguments.
    """
    statements = list(_statements(source.span))
    lists: dict[str, list[Span] | None] = {"load": None, "edit": None}
    for statement in list(statements):
        match = statement.span.match(_HEAD) if isinstance(statement, Description) else None
        key = match.group(1).lower() if match and match.group(2) == "=" else ""
        if isinstance(statement, Description) and match and key in lists:
            if lists[key] is not None:
                raise ConfigError(f"{statement.where}: {key}= occurs twice; expected one list, name:name")
            lists[key] = split_array(statement.span.after(match), key)
            statements.remove(statement)
    sections = {snippet.name.lower(): snippet for snippet in statements if isinstance(snippet, Snippet)}
    load, edit = (_named(sections, names, key) for key, names in lists.items())
    script = MelScript(macros=[section.span for section in load])
    if lists["edit"] is None:
        script.statements = [statement for statement in statements if statement not in load]
        return script
    for statement in statements:
        if not isinstance(statement, Snippet):
            raise ConfigError(f"{statement.where}: is outside the sections of edit=; expected it in one of them")
    for section in edit:
        script.statements.extend(_statements(section.span))
    return script


def _named(sections: dict[str, Snippet], names: list[Span] | None, key: str) -> list[Snippet]:
    for name in names or []:
        if name.text.lower() not in sections:
            section_names = ", ".join(section.name for section in sections.values()) or "none"
            raise ConfigError(
                f"{name.where}: {key}={name.text}: no such section; expected one of the file's: {section_names}"
            )
    return [sections[name.text.lower()] for name in names or []]


def _statements(span: Span) -> Iterable[Statement]:
    for record in split_records(span, ";"):
        remainder = record
        while not remainder.is_empty:
            statement, remainder = _statement(remainder)
            yield statement


def _statement(record: Span) -> tuple[Statement, Span]:
    """Return the statement at the beginning of a record, and what follows its closing bracket."""
    match = record.match(_HEAD)
    if match is None or match.group(2) == "{" or not match.group(2):
        raise ConfigError(
            f"{record.where}: found {shorten(record.text)!r}; expected Command(...), name=... or name=[...]"
        )
    name, sign = match.groups()
    value = record.part(match.end(1) - record.start).strip()
    if sign == "=":
        value = value.part(1).strip()
        sign = "[" if value.first == "[" else "="
    if sign == "[":
        end = find_closing(value, 0)
        return Snippet(name, value.part(1, end), record.where), value.part(end + 1).strip()
    if sign == "(":
        return _command(name, value, "", record)
    call = value.match(_CALL)
    if call and is_command(call.group(1)):
        return _command(call.group(1), value.after(call), name, record)
    return Description(record), record.part(record.end - record.start)


def _command(name: str, value: Span, target: str, record: Span) -> tuple[Command, Span]:
    """Parse a call; `value` begins at its opening parenthesis."""
    end = find_closing(value, 0)
    remainder = value.part(end + 1).strip()
    if not is_command(name) and remainder.first in ("=", "{"):
        raise ConfigError(
            f"{record.where}: macro {name} defined in a script; expected it in a snippet name=[...], in a section that "
            "load= names, or in a file that ndlMacros names"
        )
    spec = find_command(name, record.where)
    arguments = []
    options = {}
    for part in split_records(value.part(1, end), ""):
        match = part.match(_KEYWORD)
        if match:
            text = unquote(part.after(match)).text
            options[spec.option(match.group(1), text, part.where)] = text
        elif options:
            raise ConfigError(f"{part.where}: {name}: {part.text!r} after an option; expected options last")
        else:
            arguments.append(unquote(part).text)
    spec.check(len(arguments), bool(target), record.where)
    return Command(spec, name, tuple(arguments), options, target, record.where), remainder
