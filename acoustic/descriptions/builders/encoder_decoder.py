"""An encoder and a decoder from two builder blocks, combined in one network (CNTK book 2.7 and 3.5.11)::

    EncoderNetworkBuilder=[ networkDescription=encoder.ndl ]
    DecoderNetworkBuilder=[ networkDescription=decoder.ndl ]

A block is that of an NDLNetworkBuilder if it has networkDescription, run or load, else of a SimpleNetworkBuilder.
The encoder's nodes are called encoder.NAME in the network, and the decoder's description may use these names,
``PairNetwork(encoder.LSTM1.h)``. A decoder without PairNetwork nodes gets them: the initial state of each of its
PastValue nodes is the last value of the encoder's node of the same name, or of the one that encoderNodes and
decoderNodes pair with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.descriptions.ndl import build_ndl_network, ndl_options
from acoustic.network.editing import remove, rename, set_input, users
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.option import name_hint
from acoustic.nodes.properties import SOCKET
from readers.config.config import Config
from readers.config.options import Options, option
from readers.errors import ModelError
from readers.sources.sentences.pair_reader import ENCODER

ENCODER_BLOCK, DECODER_BLOCK = "EncoderNetworkBuilder", "DecoderNetworkBuilder"
NDL_KEYS = ("networkDescription", "run", "load")
DECODER_SEED = 1  # added to the seed, so that a decoder built alone does not get the initial values of the encoder


@dataclass(frozen=True, kw_only=True)
class PairNames(Options):
    """Which delays of the decoder begin with the last value of which node of the encoder."""

    encoder_nodes: tuple[str, ...] = option(
        (), "nodes of the encoder; by default all delays with a namesake in the decoder"
    )
    decoder_nodes: tuple[str, ...] = option((), "the delay of the decoder for each of them")

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = len(self.encoder_nodes), len(self.decoder_nodes)
        text = f"has {numbers[1]} names and {{encoder_nodes}} {numbers[0]}; expected equal numbers"
        self.require("decoder_nodes", numbers[0] == numbers[1], text)


@dataclass(frozen=True)
class PairOptions:
    """The options of both blocks.

    Attributes
    ----------
    encoder, decoder : callable
        Build each side; ``decoder(precision, device, seed, encoder)`` adds the decoder to the encoder's network.
    pairs : sequence of (str, str)
        Names of an encoder node and of the decoder's delay that it initialises.
    where : str
        The place of the pairs, for messages.
    """

    encoder: Callable[[str, str, int], Network]
    decoder: Callable[[str, str, int, Network], Network]
    pairs: Sequence[tuple[str, str]] = ()
    where: str = ""

    def build(self, precision: str = "float", device: str = "cpu", seed: int = 0) -> Network:
        """Build the network of both, with its initial values. Raises ArgonautError."""
        network = self.decoder(precision, device, seed, _as_encoder(self.encoder(precision, device, seed)))
        pair_delays(network, self.pairs, self.where)
        remove_unused_encoder_nodes(network)
        network.validate()
        return network


def pair_options(config: Config) -> PairOptions:
    """Read the options of a command block with EncoderNetworkBuilder and DecoderNetworkBuilder.

    encoderNodes and decoderNodes, in the block or in its SGD block, name equal numbers of nodes. Raises ConfigError.
    """
    encoder, base = _encoder(config.block(ENCODER_BLOCK))
    decoder = _decoder(config.block(DECODER_BLOCK), base)
    scope = config.block("SGD")
    names = PairNames.from_block(scope)
    pairs = list(zip(names.encoder_nodes, names.decoder_nodes))
    return PairOptions(encoder, decoder, pairs, scope.where("encoderNodes") if pairs else "")


def _is_ndl(block: Config) -> bool:
    return any(block.has_own(key) for key in NDL_KEYS)


def _encoder(block: Config) -> tuple[Callable[..., Network], Callable[[], Network]]:
    """Return the function that builds the encoder, and one that builds it for checking a decoder."""
    options: Any = ndl_options(block) if _is_ndl(block) else simple_network_options(block)
    build = partial(build_ndl_network if _is_ndl(block) else build_simple_network, options)
    return build, lambda: _as_encoder(build("float", "cpu", 0))


def _decoder(block: Config, base: Callable[[], Network]) -> Callable[[str, str, int, Network], Network]:
    if _is_ndl(block):
        options = ndl_options(block, base)
        return lambda precision, device, seed, encoder: build_ndl_network(options, precision, device, seed, encoder)
    simple = simple_network_options(block)
    return lambda precision, device, seed, encoder: _merge(
        encoder, build_simple_network(simple, precision, device, seed + DECODER_SEED)
    )


def _as_encoder(network: Network) -> Network:
    """Rename the nodes as an encoder's, and clear the lists of criteria, evaluations, outputs and labels."""
    rename(network, {name: ENCODER + name for name in network.nodes})
    network.criteria = []
    network.evaluations = []
    network.outputs = []
    network.labels = []
    return network


def _merge(encoder: Network, decoder: Network) -> Network:
    """Add the decoder's nodes to the encoder's network."""
    encoder.nodes.update(decoder.nodes)
    encoder.shapes.update(decoder.shapes)
    for name, names in decoder.special().items():
        getattr(encoder, name).extend(names)
    return encoder


def pair_delays(network: Network, pairs: Sequence[tuple[str, str]] = (), where: str = "") -> None:
    """Initialise delays of the decoder with the last states of the encoder, unless there are PairNetwork nodes.

    `pairs` are names of the encoder's node, without prefix, and of the decoder's delay; by default all delays of one
    step that both have. `where` is the place of the pairs. Raises ModelError if there is nothing to pair.
    """
    if any(node.has(SOCKET) for node in network.nodes.values()):
        if pairs:
            raise ModelError(
                f"{where}: encoderNodes and decoderNodes as well as PairNetwork nodes; expected one or the other"
            )
        return
    delays = [node for node in network.nodes.values() if node.delay == 1]
    delay_names = {node.name for node in delays}
    pairs = pairs or [
        (name, name) for name in delay_names if not name.startswith(ENCODER) and ENCODER + name in delay_names
    ]
    pairs = sorted(pairs, key=lambda pair: list(network.nodes).index(pair[1]) if pair[1] in network.nodes else 0)
    if not pairs:
        raise ModelError(
            "decoder: has no PairNetwork, and no PastValue with the name of one of the encoder; expected "
            "PairNetwork(encoder.X) in its description, or encoderNodes and decoderNodes"
        )
    for source, target in pairs:
        _initialise_delay(network, _last_state(network, source, where), _decoder_delay(network, target, where))


def _last_state(network: Network, name: str, where: str) -> Node:
    """Return the encoder's node of a name; for a delay, its operand."""
    node = network.nodes.get(ENCODER + name)
    if node is None:
        encoder_names = [
            node_name.removeprefix(ENCODER) for node_name in network.nodes if node_name.startswith(ENCODER)
        ]
        raise ModelError(f"{where}: encoderNodes: node {name!r}: not in the encoder; {name_hint(name, encoder_names)}")
    return node.operands[0] if node.delay else node


def _decoder_delay(network: Network, name: str, where: str) -> Node:
    node = network.nodes.get(name)
    if node is None or node.delay != 1 or name.startswith(ENCODER):
        delay_names = [
            delay.name for delay in network.nodes.values() if delay.delay == 1 and not delay.name.startswith(ENCODER)
        ]
        raise ModelError(
            f"{where}: decoderNodes: {name!r} is not a PastValue of the decoder with timeStep=1; "
            f"{name_hint(name, delay_names)}"
        )
    return node


def _initialise_delay(network: Network, source: Node, delay: Node) -> None:
    """Add the source's last value to a delay at the first step of each sequence, for all users of the delay."""
    if network.shapes[source.name].rows != network.shapes[delay.name].rows:
        raise ModelError(
            f"{delay.where}: has {network.shapes[delay.name].rows} rows, and its initial state {source.name!r} "
            f"{network.shapes[source.name].rows}; expected equal numbers"
        )
    delay_users = users(network, delay)
    delay.settings["defaultHiddenActivity"] = 0.0
    last = network.add("PairNetwork", f"{delay.name}.pair", source)
    begun = network.add("Plus", f"{delay.name}.begun", delay, last)
    for user, k in delay_users:
        set_input(network, user.name, k, begun.name)


def remove_unused_encoder_nodes(network: Network) -> None:
    """Remove the nodes of the encoder that no PairNetwork depends on, such as its output layer and labels."""
    sockets = [node for node in network.nodes.values() if node.has(SOCKET)]
    needed = {node.name for node in forward_order([node.operands[0] for node in sockets])}
    remove(network, [name for name in network.nodes if name.startswith(ENCODER) and name not in needed])
