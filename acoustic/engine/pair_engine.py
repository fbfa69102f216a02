"""A pair of networks: an encoder, and a decoder that reads the encoder's values by PairNetwork nodes (CNTK book 2.7).

Both are parts of one Network, so that they are trained, saved and edited together; the encoder is the part below the
PairNetwork nodes. Each part has its own engine and its own columns. The encoder runs forward on the source sequences,
then the decoder on the target sequences; the decoder runs backward first, then the encoder, from the gradients of the
PairNetwork nodes.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from acoustic.engine.engine import Engine
from acoustic.engine.planning.pair_links import ExternalInput, GradientReturn
from acoustic.kernels.shape import Shape
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.properties import SOCKET
from readers.errors import ModelError
from readers.minibatches.sequence_pairs import PairLayout

RETURN = "gradients from the decoder"


def make_engine(network: Network, roots: Sequence[str], **settings: Any) -> "AnyEngine":
    """Make the engine for the nodes below some roots.

    Parameters
    ----------
    network : Network
    roots : sequence of str
        Names of the nodes to evaluate.
    **settings
        Further arguments of Engine.

    Returns
    -------
    Engine or PairEngine
        A PairEngine if there are PairNetwork nodes below the roots.

    Raises
    ------
    ModelError, ShapeError
        See Engine and PairEngine.
    """
    order = forward_order([network[name] for name in roots])
    kind = PairEngine if any(node.has(SOCKET) for node in order) else Engine
    return kind(network, roots, **settings)


def encoder_of(network: Network, sources: Sequence[Node], learns: bool) -> tuple[Network, GradientReturn | None]:
    """The part of a network below some nodes and, if it learns, the criterion that returns gradients to them.

    Raises ModelError for a PairNetwork in that part.
    """
    order = forward_order(sources)
    inner = next((node for node in order if node.has(SOCKET)), None)
    if inner is not None:
        raise ModelError(
            f"{inner.where}: in the encoder of another PairNetwork; expected two networks, not a longer chain"
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
    """The passes of an Engine over a network with PairNetwork nodes below the roots.

    Parameters
    ----------
    network : Network
    roots : sequence of str
        Names of nodes of the decoder.
    **settings
        Further arguments of Engine.

    Attributes
    ----------
    inputs : list of str
        Names of the inputs of both networks.

    Raises
    ------
    ModelError
        For a chain of more than two networks, and for a parameter or an input that both networks have.
    """

    def __init__(self, network: Network, roots: Sequence[str], **settings: Any) -> None:
        self.network, self.backend = network, network.backend
        self.decoder = Engine(network, roots, **settings)
        self.roots = self.decoder.roots
        self.external_inputs = [node for node in self.decoder.graph.order if isinstance(node, ExternalInput)]
        self.sources = list(dict.fromkeys(external_input.source for external_input in self.external_inputs))
        self._layout: PairLayout | None = None
        self._learns = any(external_input.learns for external_input in self.external_inputs)
        part, self._back = encoder_of(network, self.sources, self._learns)
        names = [source.name for source in self.sources]
        self.encoder = Engine(part, [*names, RETURN] if self._learns else names, **settings)
        self._check_apart()
        self.inputs = [*self.encoder.inputs, *self.decoder.inputs]

    def _check_apart(self) -> None:
        """Raise ModelError for an input of both, or a parameter of both: each half of its gradient would update it."""
        of_decoder = {node.name for node in self.decoder.learnable()}
        shared = next((node for node in self.encoder.learnable() if node.name in of_decoder), None)
        if shared is not None:
            raise ModelError(f"{shared.where}: in the encoder and in the decoder; expected a parameter for each")
        common = sorted(set(self.encoder.inputs) & set(self.decoder.inputs))
        if common:
            raise ModelError(
                f"{self.network[common[0]].where}: in the encoder and in the decoder, which have columns of their own; "
                "expected an input for each"
            )

    def default_criterion(self) -> str | None:
        """Return the decoder's default criterion; see Engine."""
        return self.decoder.default_criterion()

    def learnable(self, criterion: str | None = None) -> list[Node]:
        """Return the learnable parameters of both networks; see Engine.learnable."""
        return [*self.encoder.learnable(), *self.decoder.learnable(criterion)]

    def forward(
        self,
        matrices: Mapping[str, Any] | None = None,
        training: bool = False,
        *,
        criterion: str | None = None,
        layout: PairLayout | None = None,
        **settings: Any,
    ) -> None:
        """Evaluate the roots on pairs of sequences. Each network's inputs have its own columns.

        The arguments are those of Engine.forward; settings: its further ones.
        """
        if not isinstance(layout, PairLayout):
            raise ModelError(
                f"{self.external_inputs[0].where}: no pairs of sequences; expected those of an encoderReader and a "
                "decoderReader, which trainEncoderDecoder has"
            )
        matrices, returns = matrices or {}, training and self._learns
        self.encoder.forward(
            {name: matrices[name] for name in self.encoder.inputs if name in matrices},
            returns,
            criterion=RETURN if returns else None,
            layout=layout.source,
            **settings,
        )
        self._layout = layout
        for external_input in self.external_inputs:
            values = self.encoder.value(external_input.source.name)[:, self._columns(external_input)]
            external_input.take(values, layout.target_starts, layout.target_sequence)
        decoder_matrices = {name: matrices[name] for name in self.decoder.inputs if name in matrices}
        self.decoder.forward(decoder_matrices, training, criterion=criterion, layout=layout.target, **settings)

    def backward(self, criterion: str | None = None, on_gradient: Callable[[Node, Any], None] | None = None) -> None:
        """Differentiate a criterion; see Engine.backward. The decoder's parameters come first."""
        self.decoder.backward(criterion, on_gradient)
        if self._back is None:
            return
        self._back.gradients = [
            [
                (self._columns(external_input), external_input.gradient)
                for external_input in self.external_inputs
                if external_input.source is source and external_input.gradient is not None
            ]
            for source in self.sources
        ]
        self.encoder.backward(RETURN, on_gradient)

    def _columns(self, external_input: ExternalInput) -> Any:
        """The columns (K,) of the encoder that a PairNetwork reads."""
        assert self._layout is not None
        columns = self._layout.source_starts if external_input.from_first else self._layout.source_ends
        return self.backend.xp.asarray(columns)

    def gradient(self, name: str) -> Any:
        """Return the gradient of a parameter; see Engine.gradient."""
        return (self.encoder if name in self.encoder.network.nodes else self.decoder).gradient(name)

    def value(self, name: str) -> Any:
        """Return the value of a node; see Engine.value."""
        return (self.encoder if name in self.encoder.network.nodes else self.decoder).value(name)


AnyEngine = Engine | PairEngine
