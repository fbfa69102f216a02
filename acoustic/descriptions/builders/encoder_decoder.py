"""An encoder and a decoder from their builders' blocks, as one network (CNTK book 2.7, 3.5.11).

    EncoderNetworkBuilder=[ networkDescription=encoder.ndl ]
    DecoderNetworkBuilder=[ networkDescription=decoder.ndl ]

A block is that of an NDLNetworkBuilder where it has networkDescription, run or load, else of a SimpleNetworkBuilder.
The encoder's nodes are called encoder.NAME in the whole, and so the decoder's description may name them,
`PairNetwork(encoder.LSTM1.h)`.  A decoder without PairNetwork nodes gets them: each of its PastValue nodes begins with
what the encoder's of the same name would give after the last frame, or as encoderNodes and decoderNodes pair them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.descriptions.ndl import build_ndl_network, ndl_options
from acoustic.network.editing import remove, rename, set_input, users
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.option import name_hint
from readers.config.config import Config
from readers.errors import ConfigError, ModelError
from readers.sources.sentences.pair_reader import ENCODER

ENCODER_BLOCK, DECODER_BLOCK = "EncoderNetworkBuilder", "DecoderNetworkBuilder"
NDL_KEYS = ("networkDescription", "run", "load")
DECODER_SEED = 1  # added for a decoder that knows nothing of the encoder, or both would begin with the same values


@dataclass(frozen=True)
class PairOptions:
    """What the blocks ask for: builders of both sides, and names of nodes (encoder's, decoder's) to pair.

    decoder(precision, device, seed, encoder) adds the decoder to the encoder.
    """

    encoder: Callable[[str, str, int], Network]
    decoder: Callable[[str, str, int, Network], Network]
    pairs: Sequence[tuple[str, str]] = ()
    where: str = ""

    def build(self, precision: str = "float", device: str = "cpu", seed: int = 0) -> Network:
        """The network of both, with its initial values.  Raises ArgonautError."""
        network = self.decoder(precision, device, seed, _as_encoder(self.encoder(precision, device, seed)))
        pair_delays(network, self.pairs, self.where)
        keep_what_pairs(network)
        network.validate()
        return network


def pair_options(config: Config) -> PairOptions:
    """The options of a command block with EncoderNetworkBuilder and DecoderNetworkBuilder.

    encoderNodes and decoderNodes, there or in its SGD block: names of as many delays of each.  Raises ConfigError.
    """
    encoder, base = _encoder(config.block(ENCODER_BLOCK))
    decoder = _decoder(config.block(DECODER_BLOCK), base)
    scope = config.block("SGD")
    names = [scope.array(key, []) for key in ("encoderNodes", "decoderNodes")]
    if len(names[0]) != len(names[1]):
        raise ConfigError(
            f"{scope.where('decoderNodes')}: {len(names[0])} encoderNodes and {len(names[1])} decoderNodes; expected "
            "as many of both"
        )
    return PairOptions(encoder, decoder, list(zip(*names)), scope.where("encoderNodes") if names[0] else "")


def _is_ndl(block: Config) -> bool:
    return any(block.has_own(key) for key in NDL_KEYS)


def _encoder(block: Config) -> tuple[Callable[..., Network], Callable[[], Network]]:
    """(what builds the encoder, what builds one to try a decoder out on)."""
    if _is_ndl(block):
        options: Any = ndl_options(block)
        build: Callable[..., Network] = lambda *machine: build_ndl_network(options, *machine)  # noqa: E731
    else:
        options = simple_network_options(block)
        build = lambda *machine: build_simple_network(options, *machine)  # noqa: E731
    return build, lambda: _as_encoder(build("float", "cpu", 0))


def _decoder(block: Config, base: Callable[[], Network]) -> Callable[[str, str, int, Network], Network]:
    if _is_ndl(block):
        options = ndl_options(block, base)
        return lambda precision, device, seed, encoder: build_ndl_network(options, precision, device, seed, encoder)
    simple = simple_network_options(block)
    return lambda precision, device, seed, encoder: _together(
        encoder, build_simple_network(simple, precision, device, seed + DECODER_SEED)
    )


def _as_encoder(network: Network) -> Network:
    """The network with its nodes' names as an encoder's, and nothing that it would be trained or used by alone."""
    rename(network, {name: ENCODER + name for name in network.nodes})
    network.criteria, network.evaluations, network.outputs, network.labels = [], [], [], []
    return network


def _together(encoder: Network, decoder: Network) -> Network:
    """The nodes of both, in the encoder's network."""
    encoder.nodes.update(decoder.nodes)
    encoder.shapes.update(decoder.shapes)
    for name, names in decoder.special().items():
        getattr(encoder, name).extend(names)
    return encoder


def pair_delays(network: Network, pairs: Sequence[tuple[str, str]] = (), where: str = "") -> None:
    """Let delays of the decoder begin with the encoder's last states, where there is no PairNetwork yet.

    pairs: names (encoder's without its prefix, decoder's); none: all delays of one step that both have by name.
    where: file and line that asked for them.  Raises ModelError when there is nothing to pair.
    """
    if any(node.is_socket for node in network.nodes.values()):
        if pairs:
            raise ModelError(
                f"{where}: encoderNodes and decoderNodes beside PairNetwork nodes; expected one or the other"
            )
        return
    delays = [node for node in network.nodes.values() if node.delay == 1]
    known = {node.name for node in delays}
    pairs = pairs or [(name, name) for name in known if not name.startswith(ENCODER) and ENCODER + name in known]
    pairs = sorted(pairs, key=lambda pair: list(network.nodes).index(pair[1]) if pair[1] in network.nodes else 0)
    if not pairs:
        raise ModelError(
            "decoder: has no PairNetwork, and no PastValue named as one of the encoder; expected "
            "PairNetwork(encoder.X) in its description, or encoderNodes and decoderNodes"
        )
    for source, target in pairs:
        _begin_with(network, _last_state(network, source, where), _decoder_delay(network, target, where))


def _last_state(network: Network, name: str, where: str) -> Node:
    """The encoder's node of a name; of a delay, what it delays."""
    node = network.nodes.get(ENCODER + name)
    if node is None:
        mine = [one.removeprefix(ENCODER) for one in network.nodes if one.startswith(ENCODER)]
        raise ModelError(f"{where}: encoderNodes: node {name!r}: not in the encoder; {name_hint(name, mine)}")
    return node.operands[0] if node.delay else node


def _decoder_delay(network: Network, name: str, where: str) -> Node:
    node = network.nodes.get(name)
    if node is None or node.delay != 1 or name.startswith(ENCODER):
        known = [one.name for one in network.nodes.values() if one.delay == 1 and not one.name.startswith(ENCODER)]
        raise ModelError(
            f"{where}: decoderNodes: {name!r} is no PastValue of the decoder with timeStep=1; {name_hint(name, known)}"
        )
    return node


def _begin_with(network: Network, source: Node, delay: Node) -> None:
    """Put between a delay and its users the sum of it and the source's last frames at the beginnings."""
    if network.shapes[source.name].rows != network.shapes[delay.name].rows:
        raise ModelError(
            f"{delay.where}: has {network.shapes[delay.name].rows} rows and {source.name!r}, whose last frame it "
            f"begins with, {network.shapes[source.name].rows}; expected as many"
        )
    below = users(network, delay)
    delay.settings["defaultHiddenActivity"] = 0.0
    last = network.add("PairNetwork", f"{delay.name}.pair", source)
    begun = network.add("Plus", f"{delay.name}.begun", delay, last)
    for user, k in below:
        set_input(network, user.name, k, begun.name)


def keep_what_pairs(network: Network) -> None:
    """Leave out the encoder's nodes that lead to no PairNetwork: its output layer, its labels."""
    sockets = [node for node in network.nodes.values() if node.is_socket]
    kept = {node.name for node in forward_order([node.operands[0] for node in sockets])}
    remove(network, [name for name in network.nodes if name.startswith(ENCODER) and name not in kept])
