"""Names of a block that no option has, or that are accepted without effect."""

from collections.abc import Iterable, Mapping

from readers.config.config import Config
from readers.errors import ConfigError


def check_keys(config: Config, keys: Iterable[str], not_built: Mapping[str, str]) -> None:
    """Refuse the first name of a block that is not known.

    Only the names of the block itself are checked, because names of enclosing blocks may be meant for others.

    Parameters
    ----------
    config : Config
        The block.
    keys : iterable of str
        Names in the spelling of the CNTK book.
    not_built : mapping of str to str
        Name of an unsupported option -> the feature it belongs to, for the message.

    Raises
    ------
    ConfigError
        With file and line.
    """
    later = {name.lower(): what for name, what in not_built.items()}
    for unknown in config.unknown(keys):
        what = later.get(unknown.name.rpartition(".")[2].lower())
        if what:
            raise ConfigError(f"{unknown.where}: {unknown.name} belongs to {what}, which is not supported")
        raise ConfigError(str(unknown))


def idle_notes(config: Config, without_effect: Mapping[str, str]) -> list[str]:
    """Return a note for each name of a block that is accepted without effect.

    Parameters
    ----------
    config : Config
        The block.
    without_effect : mapping of str to str
        Name -> the reason.

    Returns
    -------
    list of str
        With file and line.
    """
    return [
        f"{config.where(name)}: {config.full_name(name)} has no effect: {why}"
        for name, why in without_effect.items()
        if config.has_own(name)
    ]
