"""Every editing command by name; importing this module registers those of commands.py."""

from collections.abc import Iterator

from acoustic.descriptions.mel import commands as _  # noqa: F401  (registers them)
from acoustic.descriptions.mel.command_table import COMMANDS, Spec
from acoustic.nodes.option import name_hint
from readers.errors import ConfigError


def commands() -> Iterator[Spec]:
    """Every command once."""
    yield from {spec.name: spec for spec in COMMANDS.values()}.values()


def is_command(name: str) -> bool:
    """Whether it is the name or alias of a command, in any case."""
    return name.lower() in COMMANDS


def find_command(name: str, where: str) -> Spec:
    """The command of a name or alias, in any case.  Raises ConfigError with the nearest ones.

    The original also takes the first half of a name; here a name is written out.
    """
    if not is_command(name):
        known = [known for spec in commands() for known in (spec.name, *spec.aliases)]
        raise ConfigError(f"{where}: unknown command {name!r}; {name_hint(name, known)}")
    return COMMANDS[name.lower()]
