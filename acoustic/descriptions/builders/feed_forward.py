"""SimpleNetworkBuilder's fully connected networks (rnnType SIMPLENET), including p-norm layers.

Sources: CNTK book, section 3.2.1; p-norm layers: X. Zhang, J. Trmal, D. Povey, S. Khudanpur, ICASSP 2014; their
initial values, the scale of the classes and the transform of the input: D. Povey, X. Zhang, S. Khudanpur, "Parallel
training of DNNs with natural gradient and parameter averaging", 2015, appendices C.5 to C.7.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from acoustic.descriptions.builders.parts import (
    LAYER_TYPES,
    BuilderOptions,
    add_input,
    add_labels,
    add_lookup,
    add_outputs,
)
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from readers.config.options import option


@dataclass(frozen=True)
class SimpleNetworkOptions(BuilderOptions):
    """Options of a fully connected network (rnnType SIMPLENET).

    With `words` above 1, the first hidden layer is a table of word vectors, looked up for each word of the input. With
    1, the weights of the first layer already are that table.

    Raises
    ------
    OptionFault
        For a value out of range, or options that exclude each other.
    """

    layer_kinds: ClassVar[Mapping[str, str]] = LAYER_TYPES | {"pnorm": "PNorm"}

    group_size: int = option(
        10,
        "linear units of each output of a PNorm layer, the p-norm of the group; each frame is then scaled to a root "
        "mean square of 1",
        unit="units",
        least=1,
        cntk="pNormGroupSize",
    )
    power: float = option(2.0, "p of PNorm layers", least=1, cntk="pNormPower")
    zero_output: bool = option(
        False,
        "initialise the weights of the output layer with 0, so that training begins with equal posteriors",
        cntk="zeroOutputInit",
    )
    class_scale: float = option(
        0.0,
        "power, usually -0.25: scale the output layer by (count of the class)^power, with average 1; 0: no scale",
        least=-1,
        most=1,
        cntk="classScalePower",
    )
    transform_features: bool = option(
        False,
        "subtract the mean from the input and decorrelate it by LDATransform, instead of normalising each row",
        cntk="applyLDATransform",
    )
    within_class: float = option(
        0.001,
        "withinClass of LDATransform: the remaining variance of directions that do not separate classes",
        least=0,
        most=1,
        cntk="ldaWithinClass",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words > 1:
            self.check_lookup()
        other_option = "{normalise_features}" if self.normalise_features else "{words}"
        fine = not (self.transform_features and (self.normalise_features or self.words))
        self.require("transform_features", fine, f"is given beside {other_option}; expected one of them")

    def build(self, precision: str, device: str, seed: int) -> Network:
        return _build(self, Network(precision=precision, device=device, seed=seed))


def _build(options: SimpleNetworkOptions, network: Network) -> Network:
    hidden = options.num_hidden
    top = add_input(network, options)
    labels = None
    if options.transform_features:
        labels = add_labels(network, options.layer_sizes[-1])
        top = _transformed(network, top, labels, options.within_class)
    first = 0
    if options.words > 1:
        first = 1
        top = add_lookup(network, options, top)
    for layer in range(first, hidden):
        input_name = f"H{layer}" if layer > first else "LookupTable" if first else "features"
        top = _hidden_layer(network, options, layer, top, f"W{layer}*{input_name}")
        if options.with_dropout:
            top = network.add("Dropout", f"DropH{layer + 1}", top)
    # CNTK calls the last product Wn*H(n-1) although its input is Hn.
    initial = {"init": "zero"} if options.zero_output else options.initial()
    product = f"W{hidden}*H{hidden - 1}"
    name = "HLastUnscaled" if options.class_scale else "HLast"
    last = _affine(network, hidden, options.layer_sizes[-1], top, product, name, initial)
    labels = labels or add_labels(network, options.layer_sizes[-1])
    if options.class_scale:
        scale = network.add("ClassScale", "ClassScale", labels, power=options.class_scale)
        last = network.add("ColumnElementTimes", "HLast", last, scale)
    add_outputs(network, options, labels, last)
    return network


def _transformed(network: Network, features: Node, labels: Node, within_class: float) -> Node:
    centred = network.add("Minus", "CentredFeatures", features, network.add("Mean", "MeanOfFeatures", features))
    transform = network.add("LDATransform", "LDATransformOfFeatures", features, labels, withinClass=within_class)
    return network.add("Times", "TransformedFeatures", transform, centred)


def _hidden_layer(network: Network, options: SimpleNetworkOptions, layer: int, below: Node, product: str) -> Node:
    kind = options.layer_type(layer)
    name = f"H{layer + 1}"
    rows = options.layer_sizes[layer + 1]
    if kind != "PNorm":
        top = _affine(network, layer, rows, below, product, f"{product}+B{layer}" if kind else name, options.initial())
        return network.add(kind, name, top) if kind else top
    rows *= options.group_size
    top = _affine(network, layer, rows, below, product, f"{product}+B{layer}", options.initial())
    top = network.add("PNorm", f"PNorm{layer + 1}", top, groupSize=options.group_size, p=options.power)
    return network.add("RMSNormalization", name, top)


def _affine(
    network: Network, layer: int, rows: int, x: Node, product: str, total: str, initial: dict[str, Any]
) -> Node:
    columns = network.shapes[x.name].rows
    weights = network.add("LearnableParameter", f"W{layer}", rows=rows, cols=columns, **initial)
    bias = network.add("LearnableParameter", f"B{layer}", rows=rows, cols=1, init="fixedValue", value=0)
    return network.add("Plus", total, network.add("Times", product, weights, x), bias)
