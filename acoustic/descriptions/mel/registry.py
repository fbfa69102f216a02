"""All editing commands by name; importing this module registers those of commands.py."""

from collections.abc import Iterator

from acoustic.descriptions.mel import commands as _  # noqa: F401  (registers them)
from acoustic.descriptions.mel.command_table import COMMANDS, CommandSpec
from acoustic.nodes.option import name_hint
from readers.errors import ConfigError


def commands() -> Iterator[CommandSpec]:
    """Yield every command once."""
    yield from {spec.name: spec for spec in COMMANDS.values()}.values()


def is_command(name: str) -> bool:
    """Return whether `name` is a command or an alias, in any case."""
    return name.lower() in COMMANDS


def find_command(name: str, where: str) -> CommandSpec:
    """Return the command of a name or alias, in any case.

    CNTK also accepts the first half of a name; here names must be complete.

    Parameters
    ----------
    name : str
    where : str
        File and line, for the message.

    Returns
    -------
    CommandSpec

    Raises
    ------
    ConfigError
        For an unknown name, with the nearest ones.
    """
    if not is_command(name):
        spellings = [spelling for spec in commands() for spelling in (spec.name, *spec.aliases)]
        raise ConfigError(f"{where}: unknown command {name!r}; {name_hint(name, spellings)}")
    return COMMANDS[name.lower()]
