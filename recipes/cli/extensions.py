"""The option `--extension FILE.py` of every command: a Python file with readers, writers or node types."""

from readers.common.extensions import OPTION, add_extension
from readers.errors import ConfigError


def take_extensions(argv: list[str]) -> list[str]:
    """Return the arguments without `--extension FILE.py` and `--extension=FILE.py`, which take effect at once."""
    unread = list(argv)
    arguments = []
    while unread:
        argument = unread.pop(0)
        if argument == OPTION:
            if not unread:
                raise ConfigError(f"{OPTION}: nothing follows; expected the path of a .py file")
            add_extension(unread.pop(0))
        elif argument.startswith(f"{OPTION}="):
            add_extension(argument.removeprefix(f"{OPTION}="))
        else:
            arguments.append(argument)
    return arguments
