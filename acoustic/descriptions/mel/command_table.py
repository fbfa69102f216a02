"""The table of editing commands: names, aliases, arguments and options (CNTK book 4.2.2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from acoustic.nodes.option import name_hint
from readers.errors import ConfigError

Action = TypeVar("Action", bound=Callable[[Any, Any], None])


@dataclass(frozen=True)
class CommandSpec:
    """An editing command.

    Attributes
    ----------
    name : str
    aliases : tuple of str
    signatures : tuple of str
        Its calls as a user writes them, for messages and documentation.
    run : callable
        The function (editor, command) that executes it.
    options : dict
        Option name to the words that it accepts; an empty tuple for any text.
    makes_model : bool
        Whether it is called as ``m = Name(...)``.
    counts : tuple of int
        The numbers of arguments permitted.
    more : bool
        Whether the last argument may be repeated.
    """

    name: str
    aliases: tuple[str, ...]
    signatures: tuple[str, ...]
    run: Callable[[Any, Any], None] = field(repr=False)
    options: Mapping[str, tuple[str, ...]]
    makes_model: bool
    counts: tuple[int, ...]
    more: bool

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.run.__doc__ or "").split("\n")[0]

    def option(self, name: str, text: str, where: str) -> str:
        """Return the option as the table spells it. Raises ConfigError for an unknown option or value."""
        spellings = {option.lower(): option for option in self.options}
        if name.lower() not in spellings:
            raise ConfigError(f"{where}: {self.name}: unknown option {name!r}; {name_hint(name, self.options)}")
        words = self.options[spellings[name.lower()]]
        if not text or (words and text.lower() not in words):
            expected = " or ".join(words) or "a value"
            raise ConfigError(f"{where}: {self.name}: {name} is {text!r}; expected {expected}")
        return spellings[name.lower()]

    def check(self, count: int, has_target: bool, where: str) -> None:
        """Raise ConfigError unless the command accepts this number of arguments and ``name=`` or not."""
        fits = count in self.counts or (self.more and count > max(self.counts))
        if not fits or has_target != self.makes_model:
            what = f"{count} argument{'s' * (count != 1)}" if not fits else "a name=" if has_target else "no name="
            raise ConfigError(f"{where}: {self.name}: {what}; expected {' or '.join(self.signatures)}")


COMMANDS: dict[str, CommandSpec] = {}


def command(
    signature: str, *others: str, aliases: tuple[str, ...] = (), options: Mapping[str, tuple[str, ...]] | None = None
) -> Callable[[Action], Action]:
    """Return a decorator that makes a function (editor, command) an editing command.

    The signatures are the ways to call it: ``Name(a, b)``, ``m = Name(a)``, or ``Name(a, b, ...)`` where b may be
    repeated.
    """
    calls = [call_text.partition("(") for call_text in (signature, *others)]
    arguments = [[part for part in parameter_text.rstrip(")").split(", ") if part] for _, _, parameter_text in calls]
    head = calls[0][0]
    counts = tuple(len(names) - ("..." in names) for names in arguments)

    def register(function: Action) -> Action:
        name = head.rpartition("= ")[2]
        spec = CommandSpec(
            name,
            aliases,
            (signature, *others),
            function,
            options or {},
            "=" in head,
            counts,
            any("..." in names for names in arguments),
        )
        for command_name in (name, *aliases):
            if command_name.lower() in COMMANDS:
                raise ValueError(f"command {command_name} is already {COMMANDS[command_name.lower()].name}")
            COMMANDS[command_name.lower()] = spec
        return function

    return register
