"""Names in a configuration block that nobody would read: an error with the nearest known name."""

from collections.abc import Iterable, Mapping

from readers.config import Config
from readers.errors import ConfigError


def check_keys(config: Config, known: Iterable[str], not_built: Mapping[str, str]) -> None:
    """Raise ConfigError for the first name of a block that is neither known nor set aside for later.

    known: names in the book's spelling; not_built: names -> what they belong to, for a message that says so.
    Only the block's own names count: what it finds further out may be meant for others.
    """
    later = {name.lower(): what for name, what in not_built.items()}
    for unknown in config.unknown(known):
        what = later.get(unknown.name.rpartition(".")[2].lower())
        if what:
            raise ConfigError(f"{unknown.where}: {unknown.name} belongs to {what}, which is not built yet")
        raise ConfigError(str(unknown))
