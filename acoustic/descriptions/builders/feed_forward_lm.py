"""SimpleNetworkBuilder, rnnType NPLM: neural probabilistic language models, which see five words at a time::

    SimpleNetworkBuilder=[
      rnnType=NPLM; lookupTableOrder=1; layerSizes=10000:50:200:10000; trainingCriterion=crossEntropyWithSoftmax
    ]

Source: CNTK's SimpleNetworkBuilder; parameters, criteria and outputs have its names.
"""

from dataclasses import dataclass

from acoustic.descriptions.builders.recurrent import (
    RecurrentOptions,
    add_bottom,
    add_delay,
    add_dropout,
    add_layer,
    add_rnn_layer,
    add_top,
)
from acoustic.network.network import Network
from acoustic.nodes.base import Node

NUM_PAST = 4  # previous words besides the current one


@dataclass(frozen=True)
class ProbabilisticOptions(RecurrentOptions):
    """Options of a neural probabilistic language model (NPLM).

    The first hidden layer is ``tanh(sum of the words' products) + bi0`` of the current word and the four before
    it, each with a matrix of its own, whether or not recurrentLayer names it. The other layers are f(U x + B), or
    f(U x(t) + W h(t-1)) if recurrentLayer names them. With a lookup table, which CNTK's network lacks, the products are
    of word vectors, and their cost does not depend on the size of the vocabulary.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        where = " above the lookup table" if self.words else ""
        text = f"is {self.sizes}; expected at least one hidden layer{where}"
        self.require("layer_sizes", self.num_hidden > self.first_layer, text)

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        top = _add_words(network, self, add_bottom(network, self))
        for layer in range(self.first_layer + 1, self.num_hidden):
            recurrent = layer + 1 in self.recurrent_layers
            top = (add_rnn_layer if recurrent else add_layer)(network, self, layer, top)
            top = add_dropout(network, self, layer, top)
        add_top(network, self, top)
        return network


def _add_words(network: Network, options: ProbabilisticOptions, x: Node) -> Node:
    """Add the layer that sees the current word x and the words before it, oldest term first."""
    layer = options.first_layer
    columns = network.shapes[x.name].rows
    rows = options.layer_sizes[layer + 1]
    bias = network.add("LearnableParameter", "bi0", rows=rows, cols=1, init="fixedValue", value=0)
    values = {0: x}
    for steps in range(1, NUM_PAST + 1):
        values[steps] = add_delay(network, options, f"pastValue{steps}", columns, steps)
        network.connect(values[steps], x)
    products = {}
    for steps in (2, 3, 4, 1, 0):  # the order in which CNTK draws the initial values
        name = f"WXI{steps or ''}"
        weights = network.add("LearnableParameter", name, rows=rows, cols=columns, **options.initial())
        products[steps] = network.add("Times", f"{name}*{values[steps].name}", weights, values[steps])
    total = products[0]
    for steps in range(1, NUM_PAST + 1):
        total = network.add("Plus", f"WithPast{steps}", products[steps], total)
    top = network.add("Plus", f"H{layer + 1}", network.add("Tanh", f"Tanh{layer + 1}", total), bias)
    return add_dropout(network, options, layer, top)
