"""Names of a block that are accepted without effect."""

from collections.abc import Mapping

from readers.config.config import Config


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
