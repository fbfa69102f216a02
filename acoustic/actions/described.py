"""The network of an action: described by a block of the configuration, or read from a file."""

from collections.abc import Callable
from functools import partial
from typing import Any

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.descriptions.ndl import build_ndl_network, ndl_options
from acoustic.network.network import Network
from readers.config.config import Config
from readers.errors import ConfigError

# For each block the function that reads its options and the one that builds the network.
BUILDERS = {
    "SimpleNetworkBuilder": (simple_network_options, build_simple_network),
    "NDLNetworkBuilder": (ndl_options, build_ndl_network),
}
BUILDERS_NOT_BUILT = ("BrainScriptNetworkBuilder", "ExperimentalNetworkBuilder")


def described_network(config: Config) -> tuple[Any, Callable[..., Network]]:
    """Return the options of the network that a configuration describes, and the function that builds it from them."""
    name = _builder_of(config)
    read_options, build = BUILDERS[name]
    return read_options(config.block(name)), build


def description_without_model(config: Config) -> Callable[..., Network] | None:
    """Return the function that builds the described network from precision, device and seed; None with modelPath.

    Raises ArgonautError for a description that is faulty.
    """
    if config.has("modelPath") or not any(config.has(name) for name in (*BUILDERS, *BUILDERS_NOT_BUILT)):
        return None
    options, build = described_network(config)
    return partial(build, options)


def _builder_of(config: Config) -> str:
    """Return the name of the innermost block that describes the network. Raises ConfigError.

    Blocks of other builders are ignored if one of ours is in the same scope, as in configurations that hold several.
    """
    found = {name: config.find(name) for name in (*BUILDERS, *BUILDERS_NOT_BUILT)}
    scope = config
    while scope is not None:
        names = [name for name, entry in found.items() if entry is not None and entry[0] is scope]
        ours = [name for name in names if name in BUILDERS]
        if len(ours) > 1:
            raise ConfigError(f"{config.where(ours[1])}: {' and '.join(ours)} in one block; expected one of them")
        if names and not ours:
            raise ConfigError(f"{config.where(names[0])}: {names[0]} is not built; expected {' or '.join(BUILDERS)}")
        if ours:
            return ours[0]
        scope = scope.parent
    return "SimpleNetworkBuilder"  # reading it reports that it is missing
