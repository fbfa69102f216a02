"""Statistics of the training data (Mean, InvStdDev, ...), computed before training (CNTK book 2.4.4)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.statistics import StatisticNode
from readers.errors import ModelError
from readers.minibatches.base import Minibatch

Matrices = Mapping[str, Any]


def frames_alone(minibatch: Minibatch) -> Matrices:
    """Return the matrices of a minibatch without its gap columns."""
    layout = getattr(minibatch, "layout", None)
    gaps = None if layout is None else layout.gap_columns
    if gaps is None:
        return minibatch.matrices
    return {name: matrix[:, ~gaps] for name, matrix in minibatch.matrices.items()}


def precompute(
    network: Network, sweep: Callable[[], Iterable[Matrices]], progress: Callable[..., Any] | None = None
) -> list[str]:
    """Compute all statistics that have no value yet.

    Parameters
    ----------
    network : Network
        Its statistics get their values.
    sweep : callable
        Returns the minibatches {input name: (rows, T)} of one pass over the data. It is called again for statistics of
        values that depend on other statistics.
    progress : callable, optional
        Called as progress(frames seen in this sweep).

    Returns
    -------
    list of str
        Names of the computed nodes.

    Raises
    ------
    ModelError
        If the data hold no frame.
    """
    filled: list[str] = []
    statistics = [node for node in network.precomputed() if isinstance(node, StatisticNode)]
    while pending := [node for node in statistics if node.value is None]:
        ready = [node for node in pending if not _unknown_below(node)]
        _sweep_once(network, ready, sweep, progress)
        filled += [node.name for node in ready]
    return filled


def _unknown_below(node: Node) -> bool:
    """Return whether the operands of a statistic depend on a statistic without a value."""
    return any(dependency.is_precomputed and dependency.value is None for dependency in forward_order(node.operands))


def _sweep_once(
    network: Network,
    nodes: list[StatisticNode],
    sweep: Callable[[], Iterable[Matrices]],
    progress: Callable[..., Any] | None,
) -> None:
    xp = network.backend.xp
    tallies = {node.name: node.start(xp, network.shapes[node.name].rows) for node in nodes}
    engine = Engine(network, list(dict.fromkeys(operand.name for node in nodes for operand in node.operands)))
    done = 0
    for matrices in sweep():
        engine.forward({name: matrices[name] for name in engine.inputs})
        for node in nodes:
            node.accumulate(tallies[node.name], *(engine.value(operand.name) for operand in node.operands))
        done += next(iter(matrices.values())).shape[1]
        if progress is not None:
            progress(done)
    if not done:
        raise ModelError(f"{nodes[0].where}: the training data hold no frame; expected at least one")
    for node in nodes:
        network.set_value(node, node.finish(xp, tallies[node.name]).reshape(tuple(network.shapes[node.name])))
