"""Mixing-up: classes become sums of sub-classes, more of them where there are more data, half way through training.

Source: D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging",
2015, appendix C.5; the order in which sub-classes are given out is that of Kaldi's mixtures of Gaussians.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acoustic.network import editing
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from readers.errors import ModelError

POWER = 1 / 3
NOISE = 0.01


@dataclass(frozen=True)
class AffineLayer:
    """total = weights x + bias, with the names of its four nodes."""

    total: str
    product: str
    weights: str
    bias: str


def allocate(counts: Sequence[float], total: int, power: float = POWER) -> list[int]:
    """How many of `total` sub-classes each class gets: at least one, else in proportion to its count^power.

    One after the other they go to the class with the most count^power to each of those that it has, of equals the
    first.  Raises ModelError where there are fewer of them than classes.
    """
    if total < len(counts):
        raise ModelError(f"{total} sub-classes of {len(counts)} classes; expected at least as many")
    shares = [float(count) ** power if count > 0 else 0.0 for count in counts]
    sizes = [1] * len(shares)
    queue = [(-share, index) for index, share in enumerate(shares)]
    heapq.heapify(queue)
    for _ in range(total - len(sizes)):
        _, index = queue[0]
        sizes[index] += 1
        heapq.heapreplace(queue, (-shares[index] / sizes[index], index))
    return sizes


def mix_up(
    network: Network,
    counts: Sequence[float],
    total: int,
    output: str = "",
    power: float = POWER,
    noise: float = NOISE,
    seed: int = 0,
) -> list[int]:
    """Give the classes of an output layer `total` sub-classes in all; returns how many each has.

    counts: of the classes in the training data; output: the sum of product and bias that is the output layer, default:
    what the first criterion compares with the labels.  Under its name stands a LogSumGroups node afterwards, and the
    layer is called NAME.SubClasses.  Each row of the weights goes to the sub-classes of its class with normal noise
    of the given deviation added, and the bias less the logarithm of their number: without noise every posterior is as
    before.  Raises ModelError for a network without such a layer, or with other numbers of classes.
    """
    layer = affine_layer(network, output or _compared(network))
    weights, bias = network[layer.weights], network[layer.bias]
    if len(counts) != network.shapes[layer.total].rows:
        raise ModelError(
            f"{network[layer.total].where}: {network.shapes[layer.total].rows} classes; expected {len(counts)}, of "
            "which there are counts"
        )
    sizes = allocate(counts, total, power)
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    values = network.backend.to_host(weights.value)[rows]
    _replace(network, weights, values + noise * rng.standard_normal(values.shape))
    _replace(network, bias, network.backend.to_host(bias.value)[rows] - np.log(np.repeat(sizes, sizes))[:, None])
    below = f"{layer.total}.SubClasses"
    editing.rename(network, {layer.total: below})
    editing.refresh_shapes(network)
    users = editing.users(network, network[below])
    parts = [part for part, names in network.special().items() if below in names]
    node = network.add("LogSumGroups", layer.total, below, sizes=":".join(map(str, sizes)))
    for user, index in users:
        user.operands[index] = node
    for part in parts:
        names = getattr(network, part)
        names[names.index(below)] = node.name
    network.validate()
    return sizes


def _replace(network: Network, node: Node, value: np.ndarray) -> None:
    """A value of another number of rows."""
    node.settings["rows"] = len(value)
    node.value = network.backend.asarray(np.asfortranarray(value))
    network.shapes[node.name] = node.infer_shape()


def _compared(network: Network) -> str:
    """The node whose class is compared with the labels by the first criterion."""
    for name in network.criteria[:1]:
        others = [operand.name for operand in network[name].operands if operand.name not in network.labels]
        if len(others) == 1:
            return others[0]
    raise ModelError("no criterion compares one output layer with labels; expected the name of the output layer")


def affine_layer(network: Network, name: str) -> AffineLayer:
    """The layer whose value a node is, W x + b of two learnable parameters in either order.  Raises ModelError."""
    total = network[name]
    parameters = {node.name for node in network.parameters()}
    if total.type_name == "Plus":
        for product, bias in (total.operands, total.operands[::-1]):
            fits = product.type_name == "Times" and bias.name in parameters and bias.value.shape[1] == 1
            if fits and product.operands[0].name in parameters:
                alone = [len(editing.users(network, node)) == 1 for node in (product, bias, product.operands[0])]
                if all(alone):
                    return AffineLayer(total.name, product.name, product.operands[0].name, bias.name)
    what = "is mixed up already" if total.type_name == "LogSumGroups" else "is no such layer"
    raise ModelError(
        f"{total.where}: {what}; expected W x + b, of parameters that nothing else uses, to divide its classes"
    )
