"""Mixing-up: classes become sums of sub-classes, of which frequent classes get more.

Source: D. Povey, X. Zhang, S. Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging",
2015, appendix C.5. Sub-classes are allocated in the order of Kaldi's Gaussian mixtures.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acoustic.network import editing
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.properties import LOG_SUM_GROUPS, PRODUCT, SUM
from readers.errors import ModelError

POWER = 1 / 3
NOISE = 0.01


@dataclass(frozen=True)
class AffineLayer:
    """Names of the nodes of a layer: total = product + bias, product = weights x."""

    total: str
    product: str
    weights: str
    bias: str


def allocate(counts: Sequence[float] | NDArray[np.float64], total: int, power: float = POWER) -> list[int]:
    """Return how many of `total` sub-classes each class gets: at least one, else in proportion to count^power.

    Each sub-class goes to the class with the largest count^power per sub-class, the first of equals. Raises ModelError
    if there are fewer sub-classes than classes.
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
    counts: Sequence[float] | NDArray[np.float64],
    total: int,
    output: str = "",
    power: float = POWER,
    noise: float = NOISE,
    seed: int = 0,
) -> list[int]:
    """Divide the classes of an output layer into `total` sub-classes.

    The layer is renamed to NAME.SubClasses, and a LogSumGroups node takes its name. The weights of a class are copied
    to its sub-classes with noise, and its bias is decreased by the logarithm of their number, so that without noise all
    posteriors stay the same.

    Parameters
    ----------
    network : Network
        The network to change.
    counts : sequence of float
        Counts of the classes in the training data.
    total : int
        Number of sub-classes.
    output : str
        The sum of product and bias that forms the output layer; "" for the node that the first criterion compares with
        the labels.
    power : float
        Exponent of the counts in the allocation.
    noise : float
        Standard deviation of the noise.
    seed : int
        Seed of the noise.

    Returns
    -------
    list of int
        Number of sub-classes of each class.

    Raises
    ------
    ModelError
        If there is no such layer, or its number of classes differs from the counts.

    References
    ----------
    Povey, Zhang and Khudanpur (2015), appendix C.5.
    """
    layer = affine_layer(network, output or _compared(network))
    weights = network[layer.weights]
    bias = network[layer.bias]
    if len(counts) != network.shapes[layer.total].rows:
        raise ModelError(
            f"{network[layer.total].where}: {network.shapes[layer.total].rows} classes; expected {len(counts)}, "
            "one per count"
        )
    sizes = allocate(counts, total, power)
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(len(sizes)), sizes)
    values = network.backend.to_host(weights.value)[rows]
    _replace(network, weights, values + noise * rng.standard_normal(values.shape))
    _replace(network, bias, network.backend.to_host(bias.value)[rows] - np.log(np.repeat(sizes, sizes))[:, None])
    sub_classes = f"{layer.total}.SubClasses"
    editing.rename(network, {layer.total: sub_classes})
    editing.refresh_shapes(network)
    users = editing.users(network, network[sub_classes])
    parts = [part for part, names in network.special().items() if sub_classes in names]
    node = network.add("LogSumGroups", layer.total, sub_classes, sizes=":".join(map(str, sizes)))
    for user, index in users:
        user.operands[index] = node
    for part in parts:
        names = getattr(network, part)
        names[names.index(sub_classes)] = node.name
    network.validate()
    return sizes


def _replace(network: Network, node: Node, value: np.ndarray) -> None:
    """Set a value with another number of rows."""
    node.settings["rows"] = len(value)
    node.value = network.backend.asarray(np.asfortranarray(value))
    network.shapes[node.name] = node.infer_shape()


def _compared(network: Network) -> str:
    """Return the node that the first criterion compares with the labels."""
    for name in network.criteria[:1]:
        compared = [operand.name for operand in network[name].operands if operand.name not in network.labels]
        if len(compared) == 1:
            return compared[0]
    raise ModelError("no criterion compares one output layer with labels; expected the name of the output layer")


def affine_layer(network: Network, name: str) -> AffineLayer:
    """Return the layer W x + b, in either order, whose value is a node. Raises ModelError if there is none."""
    total = network[name]
    parameters = {node.name for node in network.parameters()}
    if total.has(SUM):
        for product, bias in (total.operands, total.operands[::-1]):
            fits = product.has(PRODUCT) and bias.name in parameters and bias.value.shape[1] == 1
            if fits and product.operands[0].name in parameters:
                alone = [len(editing.users(network, node)) == 1 for node in (product, bias, product.operands[0])]
                if all(alone):
                    return AffineLayer(total.name, product.name, product.operands[0].name, bias.name)
    what = "has sub-classes already" if total.has(LOG_SUM_GROUPS) else "is not an affine layer"
    raise ModelError(f"{total.where}: {what}; expected W x + b of parameters that no other node uses")
