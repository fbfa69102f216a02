"""Two networks as one: an encoder, and a decoder that takes the encoder's values by PairNetwork nodes (book 2.7).

Both are parts of one Network, so that they are trained, saved and edited together; what PairNetwork nodes lead to is
the encoder.  Each part has an engine and columns of its own: the encoder runs forward on the source sequences, the
decoder on the target sequences, the decoder backward, and then the encoder, from the gradients that came to the
PairNetwork nodes.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from acoustic.engine.engine import Engine
from acoustic.engine.planning.pair_links import GradientReturn, Socket
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node, Shape
from readers.errors import ModelError
from readers.minibatches.sequence_pairs import PairLayout

RETURN = "gradients from the decoder"


def make_engine(network: Network, roots: Sequence[str], **settings: Any) -> "Engine | PairEngine":
    """The engine for what is below the roots: a PairEngine where PairNetwork nodes are."""
    order = forward_order([network[name] for name in roots])
    kind = PairEngine if any(node.is_socket for node in order) else Engine
    return kind(network, roots, **settings)


def encoder_of(network: Network, sources: Sequence[Node], learns: bool) -> tuple[Network, GradientReturn | None]:
    """The part of a network below some nodes, the very same nodes; with learns also what gives gradients back to them.

    Raises ModelError for a PairNetwork in it.
    """
    order = forward_order(sources)
    socket = next((node for node in order if node.is_socket), None)
    if socket is not None:
        raise ModelError(
            f"{socket.where}: in the encoder of another PairNetwork; expected two networks, not a longer chain"
        )
    part = copy.copy(network)
    part.nodes = {node.name: node for node in order}
    part.shapes = {node.name: network.shapes[node.name] for node in order}
    part.criteria, part.evaluations, part.outputs = [], [], []
    if not learns:
        return part, None
    back = GradientReturn(RETURN, sources)
    part.nodes[RETURN], part.shapes[RETURN] = back, Shape(1, 1)
    return part, back


class PairEngine:
    """Forward and backward passes as those of an Engine, over a network with PairNetwork nodes below the roots.

    The roots are nodes of the decoder; `inputs` are those of both.  Minibatches have a PairLayout.
    Raises ModelError for a chain of more than two networks, and for a parameter that both have.
    """

    def __init__(self, network: Network, roots: Sequence[str], **settings: Any) -> None:
        self.network, self.backend = network, network.backend
        self.decoder = Engine(network, roots, **settings)
        self.roots = self.decoder.roots
        self.sockets = [node for node in self.decoder.graph.order if isinstance(node, Socket)]
        self.sources = list(dict.fromkeys(socket.source for socket in self.sockets))
        self._layout: PairLayout | None = None
        self._learns = any(socket.learns for socket in self.sockets)
        part, self._back = encoder_of(network, self.sources, self._learns)
        names = [source.name for source in self.sources]
        self.encoder = Engine(part, [*names, RETURN] if self._learns else names, **settings)
        self._check_apart()
        self.inputs = [*self.encoder.inputs, *self.decoder.inputs]

    def _check_apart(self) -> None:
        """A parameter of both would be updated twice, each time from half of its gradient."""
        mine = {node.name for node in self.decoder.learnable()}
        shared = next((node for node in self.encoder.learnable() if node.name in mine), None)
        if shared is not None:
            raise ModelError(f"{shared.where}: in the encoder and in the decoder; expected a parameter for each")
        both = sorted(set(self.encoder.inputs) & set(self.decoder.inputs))
        if both:
            raise ModelError(
                f"{self.network[both[0]].where}: in the encoder and in the decoder, which have columns of their own; "
                "expected an input for each"
            )

    def default_criterion(self) -> str | None:
        """See Engine."""
        return self.decoder.default_criterion()

    def learnable(self, criterion: str | None = None) -> list[Node]:
        """The parameters that learn, of both networks; see Engine.learnable."""
        return [*self.encoder.learnable(), *self.decoder.learnable(criterion)]

    def forward(
        self,
        matrices: Mapping[str, Any] | None = None,
        training: bool = False,
        *,
        criterion: str | None = None,
        dropout_rate: float = 0.0,
        seed: int | Sequence[int] = 0,
        layout: PairLayout | None = None,
    ) -> None:
        """See Engine.forward; the matrices of the encoder's inputs have its columns.  Raises ShapeError, ModelError."""
        if not isinstance(layout, PairLayout):
            raise ModelError(
                f"{self.sockets[0].where}: no pairs of sequences; expected those of an encoderReader and a "
                "decoderReader, which trainEncoderDecoder has"
            )
        matrices, settings = matrices or {}, {"dropout_rate": dropout_rate, "seed": seed}
        returns = training and self._learns
        self.encoder.forward(
            {name: matrices[name] for name in self.encoder.inputs if name in matrices},
            returns,
            criterion=RETURN if returns else None,
            layout=layout.source,
            **settings,
        )
        self._layout = layout
        for socket in self.sockets:
            values = self.encoder.value(socket.source.name)[:, self._columns(socket)]
            socket.take(values, layout.target_starts, layout.target_sequence)
        given = {name: matrices[name] for name in self.decoder.inputs if name in matrices}
        self.decoder.forward(given, training, criterion=criterion, layout=layout.target, **settings)

    def backward(self, criterion: str | None = None, on_gradient: Callable[[Node, Any], None] | None = None) -> None:
        """See Engine.backward; the decoder's parameters come first."""
        self.decoder.backward(criterion, on_gradient)
        if self._back is None:
            return
        self._back.gradients = [
            [
                (self._columns(socket), socket.gradient)
                for socket in self.sockets
                if socket.source is source and socket.gradient is not None
            ]
            for source in self.sources
        ]
        self.encoder.backward(RETURN, on_gradient)

    def _columns(self, socket: Socket) -> Any:
        """(K,) the columns of the encoder that a PairNetwork takes."""
        assert self._layout is not None
        columns = self._layout.source_starts if socket.from_first else self._layout.source_ends
        return self.backend.xp.asarray(columns)

    def gradient(self, name: str) -> Any:
        """See Engine.gradient."""
        return (self.encoder if name in self.encoder.network.nodes else self.decoder).gradient(name)

    def value(self, name: str) -> Any:
        """See Engine.value; of a node of the encoder in the encoder's columns."""
        return (self.encoder if name in self.encoder.network.nodes else self.decoder).value(name)

    def allocated(self) -> int:
        """See Engine."""
        return self.encoder.allocated() + self.decoder.allocated()
