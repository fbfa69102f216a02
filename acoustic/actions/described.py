"""The network of an action: described by a block of the configuration, or read from a file."""

from collections.abc import Callable

from acoustic.descriptions.builders.simple import BuilderOptions, simple_network_options
from acoustic.descriptions.ndl import NdlOptions, ndl_options
from readers.config.config import Config
from readers.errors import ConfigError

# For each block the function that reads its options.
BUILDERS: dict[str, Callable[[Config], BuilderOptions | NdlOptions]] = {
    "SimpleNetworkBuilder": simple_network_options,
    "NDLNetworkBuilder": ndl_options,
}
BUILDERS_NOT_BUILT = ("BrainScriptNetworkBuilder", "ExperimentalNetworkBuilder")


def described_network(config: Config) -> BuilderOptions | NdlOptions:
    """Return the options of the network that a configuration describes.

    Raises ArgonautError for a description that is faulty.
    """
    name = _builder_of(config)
    return BUILDERS[name](config.block(name))


def description_without_model(config: Config) -> BuilderOptions | NdlOptions | None:
    """Return the options of the network that a configuration describes; None with modelPath. Raises as above."""
    if config.has("modelPath") or not any(config.has(name) for name in (*BUILDERS, *BUILDERS_NOT_BUILT)):
        return None
    return described_network(config)


def _builder_of(config: Config) -> str:
    """Return the name of the innermost block that describes the network. Raises ConfigError.

    Blocks of other builders are ignored if one of ours is in the same scope, as in configurations that hold several.
    """
    entries = {name: config.find(name) for name in (*BUILDERS, *BUILDERS_NOT_BUILT)}
    scope: Config | None = config
    while scope is not None:
        names = [name for name, entry in entries.items() if entry is not None and entry[0] is scope]
        ours = [name for name in names if name in BUILDERS]
        if len(ours) > 1:
            raise ConfigError(f"{config.where(ours[1])}: {' and '.join(ours)} in one block; expected one of them")
        if names and not ours:
            raise ConfigError(f"{config.where(names[0])}: {names[0]} is not built; expected {' or '.join(BUILDERS)}")
        if ours:
            return ours[0]
        scope = scope.parent
    return "SimpleNetworkBuilder"  # reading it reports that it is missing
