"""A fully connected network as a model of dbn.exe; see readers/tables/dbn.py for the format.

Source: SaveToDbnFile of CNTK in 2016, which action exportdbn calls. CNTK writes every nonlinearity other than Sigmoid
as a linear layer, and the first layer always as one with Sigmoid; here such networks are refused, or written as they
are.
"""

import numpy as np

from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.properties import DROPOUT, MEAN, NORMALISED, PRODUCT, SIGMOID, SUM
from readers.errors import ModelError
from readers.tables.dbn import LINEAR_LAYER, OUTPUT_LAYER, SIGMOID_LAYERS, DbnLayer, DbnModel

MOST_FRAMES = 51  # of a context window
EXPECTED = (
    "expected layers of Sigmoid, or linear ones, with W * x + b, above the features or PerDimMeanVarNormalization"
)


def dbn_model(network: Network) -> DbnModel:
    """Return the layers below the first criterion, the normalisation of the features and the priors of a network.

    Parameters
    ----------
    network : Network

    Returns
    -------
    DbnModel

    Raises
    ------
    ModelError
        If the network has no criterion, or parts that the format does not have.
    """
    node = _output(network)
    layers: list[tuple[bool, Node, Node | None]] = []
    while not (node.is_input or node.has(NORMALISED)):
        has_sigmoid, weights, bias, node = _layer(node)
        layers.insert(0, (has_sigmoid, weights, bias))
    if not layers or layers[-1][0]:
        raise ModelError(f"{_output(network).where}: is not a linear layer; expected one below the criterion")
    mean, deviation = _normalisation(network, node)
    dbn_layers = [
        DbnLayer(_kind(number, has_sigmoid, len(layers)), _host(network, weights), _bias(network, weights, bias))
        for number, (has_sigmoid, weights, bias) in enumerate(layers)
    ]
    return DbnModel(0, "", mean, deviation, dbn_layers, _prior(network, len(dbn_layers[-1].bias)))


def _output(network: Network) -> Node:
    """Return the node to which the first criterion compares the labels. Raises ModelError."""
    if not network.criteria:
        raise ModelError("the network has no criterion; expected one, such as CrossEntropyWithSoftmax")
    criterion = network[network.criteria[0]]
    outputs = [operand for operand in criterion.operands if not operand.is_input]
    if len(outputs) != 1:
        raise ModelError(
            f"{criterion.where}: {len(outputs)} operands that are no inputs; expected one, the output layer"
        )
    return _passed(outputs[0])


def _passed(node: Node) -> Node:
    while node.has(DROPOUT):
        node = node.operands[0]
    return node


def _layer(node: Node) -> tuple[bool, Node, Node | None, Node]:
    """Return (whether it has a Sigmoid, weights, bias, the node below) of a layer. Raises ModelError."""
    has_sigmoid = node.has(SIGMOID)
    top = _passed(node.operands[0]) if has_sigmoid else node
    product = top
    bias = None
    if top.has(SUM):
        products = [operand for operand in top.operands if operand.has(PRODUCT)]
        addends = [operand for operand in top.operands if not operand.has(PRODUCT)]
        if len(products) == 1 and addends[0].is_stored:
            product = products[0]
            bias = addends[0]
    if not product.has(PRODUCT) or not product.operands[0].is_stored:
        raise ModelError(f"{top.where}: is no layer of dbn.exe; {EXPECTED}")
    weights, layer_input = product.operands
    return has_sigmoid, weights, bias, _passed(layer_input)


def _kind(number: int, has_sigmoid: bool, count: int) -> str:
    if number == count - 1:
        return OUTPUT_LAYER
    return SIGMOID_LAYERS[min(number, 1)] if has_sigmoid else LINEAR_LAYER


def _host(network: Network, node: Node) -> np.ndarray:
    if node.value is None:
        raise ModelError(f"{node.where}: not computed yet; expected a trained model")
    return np.asarray(network.backend.to_host(node.value), np.float32)


def _bias(network: Network, weights: Node, bias: Node | None) -> np.ndarray:
    return np.zeros(weights.value.shape[0], np.float32) if bias is None else _host(network, bias).reshape(-1)


def _normalisation(network: Network, bottom: Node) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of a frame, or of the whole input if its frames differ in them."""
    if bottom.is_input:
        rows = network.shapes[bottom.name].rows
        return np.zeros(rows, np.float32), np.ones(rows, np.float32)
    mean, inverse = (_host(network, operand).reshape(-1) for operand in bottom.operands[1:])
    moments = np.stack([mean, 1 / inverse.astype(np.float64)]).astype(np.float32)
    for frames in range(MOST_FRAMES, 1, -2):
        if moments.shape[1] % frames == 0:
            blocks = moments.reshape(2, frames, -1)
            if (blocks == blocks[:, :1]).all():
                moments = blocks[:, 0]
                break
    return moments[0], moments[1]


def _prior(network: Network, size: int) -> np.ndarray | None:
    """Return the mean of the labels, if the network has exactly one."""
    labels = [node for node in network.nodes.values() if node.has(MEAN) and node.operands[0].is_input]
    means = [node for node in labels if node.operands[0].name not in network.features and node.value is not None]
    priors = [_host(network, node).reshape(-1) for node in means]
    return priors[0] if len(priors) == 1 and len(priors[0]) == size else None
