"""KL adaptation: the labels are mixed with the posteriors of a fixed model (CNTK book 3.3.1.4, 3.5.2).

r times the Kullback-Leibler divergence from the posteriors p of the fixed model, plus 1 - r times the cross-entropy
with labels y, equals the cross-entropy with the labels (1 - r) y + r p, up to a constant.

Source: Yu, Yao, Su, Li and Seide, "KL-divergence regularized deep neural network adaptation", ICASSP 2013.
"""

from collections.abc import Callable

from acoustic.engine.engine import Engine
from acoustic.engine.pair_engine import AnyEngine
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.training.procedures.precompute import Matrices
from readers.errors import ModelError, ShapeError
from readers.minibatches.sequence_layout import SequenceLayout


class ReferenceModel:
    """A fixed model whose outputs are mixed into the labels.

    Parameters
    ----------
    network : Network
        The fixed model.
    node : str
        Name of the output node, usually PosteriorProb.

    Raises
    ------
    ModelError
        If there is no such node, or its value is not a column per frame.
    """

    def __init__(self, network: Network, node: str) -> None:
        if not node:
            raise ModelError("refNodeName is missing; KL adaptation expects a node of the original model")
        self.network = network
        self.node = network[node].name
        if network.shapes[self.node].cols is not None:
            raise ModelError(f"{network[node].where}: {network.shapes[self.node]}; expected a column per frame")
        self.engine = Engine(network, [self.node])

    def soft_labels(self, engine: AnyEngine, criterion: str, weight: float) -> Callable[..., Matrices]:
        """Return a function that replaces the labels of a minibatch by (1 - weight) y + weight p.

        Parameters
        ----------
        engine : Engine or PairEngine
            The network that is adapted; y is the label input below its criterion.
        criterion : str
            Name of the criterion.
        weight : float
            Weight of the posteriors p.

        Returns
        -------
        callable
            Maps the matrices of a minibatch and its layout to new matrices.

        Raises
        ------
        ModelError, ShapeError
            If the inputs or labels of the two networks do not fit.
        """
        label = _label_of(engine.network, criterion)
        rows = engine.network.shapes[label].rows
        ours = self.network.shapes[self.node].rows
        if rows != ours:
            raise ShapeError(
                f"refNodeName {self.node}: {ours} rows; expected {rows}, as the labels {label} that it is mixed with"
            )
        missing = [name for name in self.engine.inputs if name not in engine.inputs]
        if missing:
            raise ModelError(
                f"refNodeName {self.node}: depends on input {missing[0]!r}, which the adapted network lacks; "
                f"expected {', '.join(engine.inputs)}"
            )

        def mixed(matrices: Matrices, layout: SequenceLayout | None = None) -> Matrices:
            self.engine.forward({name: matrices[name] for name in self.engine.inputs}, layout=layout)
            labels = weight * self.engine.value(self.node)
            labels += (1 - weight) * engine.backend.asarray(matrices[label])
            return {**matrices, label: labels}

        return mixed


def _label_of(network: Network, criterion: str) -> str:
    """Return the label input below a criterion."""
    names_below = {node.name for node in forward_order([network[criterion]], lambda node: node.operands)}
    names = [name for name in network.labels if name in names_below]
    if len(names) != 1:
        label_text = f"label inputs {', '.join(names)}" if names else "no label input"
        raise ModelError(f"{network[criterion].where}: {label_text} below it; KL adaptation expects one")
    return names[0]
