"""Shares of a minibatch: the columns, or the sequences, that each of several jobs computes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acoustic.network.network import Network
from acoustic.network.traversal import computed_operands, forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.properties import DELAY, DIFFERENCE, ELEMENT_PRODUCT, NEGATIVE, PRODUCT, RANDOM, SCALED, SUM
from acoustic.runtime.thread_team import share_of
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient
from readers.errors import ModelError
from readers.minibatches.sequence_layout import SequenceLayout

AVERAGE = "expected parallelizationMethod=ModelAveragingSGD"


@dataclass(frozen=True)
class Share:
    """A part of a minibatch, as arguments of Engine.forward, and the number of its first slot if it has a layout."""

    matrices: dict[str, Any]
    layout: SequenceLayout | None = None
    first_column: int = 0
    first_slot: int = 0


def split(matrices: Mapping[str, Any], layout: SequenceLayout | None, count: int) -> list[Share]:
    """Divide a minibatch into at most `count` shares: columns, or with a layout its slots."""
    if layout is None:
        columns = next(matrix.shape[1] for matrix in matrices.values())
        return [
            Share({name: matrix[:, part] for name, matrix in matrices.items()}, first_column=part.start)
            for part in _parts(columns, count)
        ]
    shares = (_slots(matrices, layout, part) for part in _parts(layout.num_sequences, count))
    return [share for share in shares if share is not None]


def _parts(total: int, count: int) -> list[slice]:
    parts = (share_of(number, count, total) for number in range(count))
    return [part for part in parts if part.start < part.stop]


def _slots(matrices: Mapping[str, Any], layout: SequenceLayout, slots: slice) -> Share | None:
    """Return the share of some slots, without the steps after their last frame; None if they have no frame."""
    steps = np.flatnonzero((~layout.gaps[:, slots]).any(axis=1))
    if not len(steps):
        return None
    count = layout.num_steps if layout.num_context else int(steps[-1]) + 1
    starts, ends, gaps = (marks[:count, slots] for marks in (layout.starts, layout.ends, layout.gaps))
    columns = np.arange(layout.num_columns).reshape(layout.num_steps, layout.num_sequences)[:count, slots].reshape(-1)
    placed = tuple(
        supervision._replace(slot=supervision.slot - slots.start)
        for supervision in layout.supervisions
        if slots.start <= supervision.slot < slots.stop
    )
    share_matrices = {name: matrix[:, columns] for name, matrix in matrices.items()}
    uncounted = None if layout.uncounted is None else layout.uncounted[:count, slots]
    share_layout = SequenceLayout(gaps.shape[1], count, starts, ends, gaps, layout.num_context, uncounted, placed)
    return Share(share_matrices, share_layout, first_slot=slots.start)


def check_divisible(network: Network, names: Sequence[str], options: TrainingOptions) -> None:
    """Raise ModelError unless gradients of shares add up to those of the minibatch, exactly.

    Parameters
    ----------
    network : Network
    names : sequence of str
        The criterion and the evaluation nodes.
    options : TrainingOptions
    """
    if isinstance(options.rule, NaturalGradient):
        raise ModelError(
            "DataParallelSGD with gradUpdateType=NaturalGradient, which needs the frames of a minibatch and not only "
            f"their gradient; expected another gradUpdateType, or {AVERAGE}"
        )
    roots = [network[name] for name in names]
    order = forward_order(roots)
    framed = _from_frames(order)
    sums = {node.name for node in order if _is_sum(node, network, framed)}
    for node in order:  # operands first
        if node.name in framed and _combines(node, sums, framed):
            sums.add(node.name)
    recurrent = bool(network.delays())
    for node in order:
        shapes = [network.shapes[operand.name] for operand in computed_operands(node)]
        alone = node.is_leaf or node.has(DELAY) or node.along_sequences or node.name in sums or node.name not in framed
        if not alone and (node.keeps_statistics or not node.splits_frames(*shapes) or _reads(node, sums)):
            raise ModelError(
                f"{node.where}: depends on all frames of a minibatch, which DataParallelSGD divides; {AVERAGE}"
            )
        if node.has(RANDOM) and recurrent and any(options.dropout_rate):
            raise ModelError(f"{node.where}: dropout of sequences with DataParallelSGD is not built; {AVERAGE}")
    for root in roots:
        if root.name not in sums:
            raise ModelError(f"{root.where}: is not a sum over frames, which DataParallelSGD needs; {AVERAGE}")


def _from_frames(order: Sequence[Node]) -> set[str]:
    """Return the names of the nodes that depend on an input, in loops too."""
    framed = {node.name for node in order if node.is_input}
    while True:
        more = {
            node.name
            for node in order
            if node.name not in framed and any(operand.name in framed for operand in computed_operands(node))
        }
        if not more:
            return framed
        framed |= more


def _is_sum(node: Node, network: Network, framed: set[str]) -> bool:
    """Return whether a node is a sum over the frames of its operands."""
    operands = [operand for operand in computed_operands(node) if operand.name in framed]
    return node.sums_frames and bool(operands) and all(network.shapes[operand.name].has_frames for operand in operands)


def _reads(node: Node, sums: set[str]) -> bool:
    return any(operand.name in sums for operand in computed_operands(node))


def _combines(node: Node, sums: set[str], framed: set[str]) -> bool:
    """Return whether a node is a linear combination of sums over frames."""
    summed = [operand.name in sums for operand in computed_operands(node)]
    if node.has(SUM, DIFFERENCE, NEGATIVE):
        return all(summed)
    framed_factors = [operand.name in framed for operand, is_sum in zip(computed_operands(node), summed) if not is_sum]
    is_multiple = node.has(PRODUCT, ELEMENT_PRODUCT, SCALED)
    return is_multiple and summed.count(True) == 1 and not any(framed_factors)
