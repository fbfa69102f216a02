"""KL adaptation: a fixed model keeps the adapted one from forgetting (CNTK book 3.3.1.4, 3.5.2).

Adding r times the Kullback-Leibler divergence from the fixed model's posteriors p to 1 - r times the cross-entropy with
labels y is the same as the cross-entropy with the labels (1 - r) y + r p.
Source: Yu, Yao, Su, Li and Seide, "KL-divergence regularized deep neural network adaptation", ICASSP 2013.
"""

from collections.abc import Callable

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.training.procedures.precompute import Matrices
from readers.errors import ModelError, ShapeError
from readers.minibatches.sequence_layout import SequenceLayout


class Reference:
    """A fixed model whose node, usually PosteriorProb, is mixed into the labels."""

    def __init__(self, network: Network, node: str) -> None:
        """Raises ModelError when there is no such node, or nothing in it changes from frame to frame."""
        if not node:
            raise ModelError("refNodeName is missing; KL adaptation expects a node of the original model")
        self.network, self.node = network, network[node].name
        if network.shapes[self.node].cols is not None:
            raise ModelError(f"{network[node].where}: {network.shapes[self.node]}; expected a column per frame")
        self.engine = Engine(network, [self.node])

    def soft_labels(self, engine: Engine, criterion: str, weight: float) -> Callable[..., Matrices]:
        """Gives the matrices of a minibatch, from them and its layout, with labels (1 - weight) y + weight p.

        y: the label input below the criterion of the adapted network, (rows, T).  Raises ModelError, ShapeError.
        """
        label = _label_of(engine.network, criterion)
        rows, ours = engine.network.shapes[label].rows, self.network.shapes[self.node].rows
        if rows != ours:
            raise ShapeError(
                f"refNodeName {self.node}: {ours} rows; expected {rows}, as the labels {label} that it is mixed with"
            )
        missing = [name for name in self.engine.inputs if name not in engine.inputs]
        if missing:
            raise ModelError(
                f"refNodeName {self.node}: depends on input {missing[0]!r}, which the adapted network has not; "
                f"expected {', '.join(engine.inputs)}"
            )

        def mixed(matrices: Matrices, layout: SequenceLayout | None = None) -> Matrices:
            self.engine.forward({name: matrices[name] for name in self.engine.inputs}, layout=layout)
            labels = weight * self.engine.value(self.node)
            labels += (1 - weight) * engine.backend.asarray(matrices[label])
            return {**matrices, label: labels}

        return mixed


def _label_of(network: Network, criterion: str) -> str:
    """The label input that the criterion compares with."""
    below = {node.name for node in forward_order([network[criterion]], lambda node: node.operands)}
    names = [name for name in network.labels if name in below]
    if len(names) != 1:
        found = f"label inputs {', '.join(names)}" if names else "no label input"
        raise ModelError(f"{network[criterion].where}: {found} below it; KL adaptation expects one")
    return names[0]
