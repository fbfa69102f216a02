"""SimpleNetworkBuilder: the fully connected network of rnnType SIMPLENET from a few parameters.

Source: CNTK book, section 3.2.1; node names and the order of creation are those of the tool, its slips included,
for model editing scripts and other people's configurations name these nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from acoustic.key_check import check_keys
from acoustic.network import Network
from acoustic.node import Node
from acoustic.training.options import OptionFault
from readers.config import Config
from readers.errors import ConfigError

LAYER_TYPES = {
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "rectifiedlinear": "RectifiedLinear",
    "relu": "RectifiedLinear",
    "none": "",
    "linear": "",
    "": "",
}
CRITERIA = {  # name in lower case: node type
    "crossentropywithsoftmax": "CrossEntropyWithSoftmax",
    "crossentropy": "CrossEntropy",
    "squareerror": "SquareError",
    "logistic": "Logistic",
}
ERRORS = {"errorprediction": "ErrorPrediction", "classificationerror": "ErrorPrediction"}
# The tool called this node after the criterion's name of 2015, then after that of 2016.
ERROR_NODE_NAMES = {"errorprediction": "EvalErrorPrediction", "classificationerror": "EvalClassificationError"}
CRITERIA_NOT_BUILT = (
    "noisecontrastiveestimation",
    "ncecrossentropywithsoftmax",
    "classcrossentropywithsoftmax",
    "classbasedcrossentropywithsoftmax",
    "sequencewithsoftmax",
    "crf",
)
KEYS = {
    "layerSizes",
    "layerTypes",
    "trainingCriterion",
    "evalCriterion",
    "initValueScale",
    "uniformInit",
    "applyMeanVarNorm",
    "needPrior",
    "addDropoutNodes",
    "outputLayerSize",
    "rnnType",
    "lookupTableOrder",
}
RECURRENT_KEYS = (
    "recurrentLayer",
    "defaultHiddenActivity",
    "maOrder",
    "streamSizes",
    "lookupTableOrderSizes",
    "labelEmbeddingSize",
    "constForgetGateValue",
    "constInputGateValue",
    "constOutputGateValue",
    "forgetGateInitVal",
    "inputGateInitVal",
    "outputGateInitVal",
    "sparseinput",
    "directConnect",
    "word2cls",
    "cls2index",
    "vocabSize",
    "nbrClass",
    "noise_number",
    "auxfeatdim",
    "nodeType",
)


@dataclass(frozen=True)
class SimpleNetworkOptions:
    """A fully connected network; names in any case.  Raises ConfigError for what is unknown or out of range.

    layer_sizes: dimensions of input, hidden layers and output.
    layer_types: nonlinearity of each hidden layer, the last one repeating: Sigmoid, Tanh, RectifiedLinear, None.
    training_criterion: CrossEntropyWithSoftmax, CrossEntropy, SquareError or Logistic; eval_criterion: these or
    ErrorPrediction (ClassificationError).
    init_scale: scales the range or deviation of the initial weights.
    normalise_features: add mean and variance normalisation of the input, computed over the data before training.
    with_prior: add the label prior and the scaled log-likelihood that a decoder wants.
    with_dropout: add a dropout node after each hidden layer.  The book has one on the input too, the tool has not.
    words: how many word indicators stand one above the other in the input (lookupTableOrder); with more than one, the
    first hidden layer is a table that is looked up for each of them, so that the second is words times as wide at its
    input.  With one, the weights of the first layer are that table already.
    """

    layer_sizes: Sequence[int]
    layer_types: Sequence[str] = ("Sigmoid",)
    training_criterion: str = "CrossEntropyWithSoftmax"
    eval_criterion: str = "CrossEntropyWithSoftmax"
    init_scale: float = 1.0
    uniform_init: bool = True
    normalise_features: bool = False
    with_prior: bool = False
    with_dropout: bool = False
    words: int = 1

    def __post_init__(self):
        if len(self.layer_sizes) < 2 or min(self.layer_sizes) < 1:
            sizes = ":".join(str(size) for size in self.layer_sizes)
            raise OptionFault("layerSizes", f"{sizes}; expected at least an input and an output size, all > 0")
        if self.words > 1 and (len(self.layer_sizes) < 3 or self.layer_sizes[0] % self.words):
            sizes = ":".join(str(size) for size in self.layer_sizes)
            needed = f"layerSizes with a multiple of {self.words} first and the dimension of the table second"
            raise OptionFault("lookupTableOrder", f"{self.words}, layerSizes {sizes}; expected {needed}")
        for name in self.layer_types:
            _known("layerTypes", name, LAYER_TYPES)
        _known("trainingCriterion", self.training_criterion, CRITERIA)
        _known("evalCriterion", self.eval_criterion, CRITERIA | ERRORS)

    def layer_type(self, layer: int) -> str:
        """Node type of hidden layer `layer`, counted from 0; "" when it is linear."""
        return LAYER_TYPES[self.layer_types[min(layer, len(self.layer_types) - 1)].lower()]


def _known(key: str, name: str, table: dict[str, str]) -> None:
    if name.lower() in ERRORS and table is CRITERIA:
        raise OptionFault(key, f"{name} has no gradient; expected one of {', '.join(CRITERIA.values())}")
    if name.lower() not in table:
        fault = "is not built yet" if name.lower() in CRITERIA_NOT_BUILT else "is unknown"
        names = ", ".join(dict.fromkeys(filter(None, table.values())))
        raise OptionFault(key, f"{name} {fault}; expected one of {names}")


def simple_network_options(builder: Config) -> SimpleNetworkOptions:
    """The options of a SimpleNetworkBuilder block.

    Raises ConfigError with file and line for unknown names, for recurrent networks, and for values out of range.
    """
    check_keys(builder, KEYS, dict.fromkeys(RECURRENT_KEYS, "recurrent networks and language models"))
    kind = builder.text("rnnType", "SIMPLENET")
    if kind.upper() != "SIMPLENET":
        raise ConfigError(f"{builder.where('rnnType')}: rnnType is {kind}, which is not built yet; expected SIMPLENET")
    order = builder.int("lookupTableOrder", 1)
    if order < 0:
        raise ConfigError(f"{builder.where('lookupTableOrder')}: lookupTableOrder is {order}; expected 0 or more")
    sizes = builder.ints("layerSizes")
    output = builder.int("outputLayerSize", -1)
    if output not in (-1, tuple(sizes)[-1]):
        raise ConfigError(
            f"{builder.where('outputLayerSize')}: outputLayerSize is {output}; expected the last of layerSizes"
        )
    training = builder.text("trainingCriterion", "CrossEntropyWithSoftmax")
    try:
        return SimpleNetworkOptions(
            layer_sizes=tuple(sizes),
            layer_types=tuple(builder.array("layerTypes", ["Sigmoid"])) or ("",),
            training_criterion=training,
            eval_criterion=builder.text("evalCriterion", training),
            init_scale=builder.float("initValueScale", 1.0),
            uniform_init=builder.bool("uniformInit", True),
            normalise_features=builder.bool("applyMeanVarNorm", False),
            with_prior=builder.bool("needPrior", False),
            with_dropout=builder.bool("addDropoutNodes", False),
            words=max(order, 1),
        )
    except OptionFault as fault:
        raise ConfigError(f"{builder.where(fault.key)}: {builder.full_name(fault.key)}: {fault.text}") from None


def build_simple_network(
    options: SimpleNetworkOptions, precision: str = "float", device: str = "cpu", seed: int = 0
) -> Network:
    """The network that the options describe, with its initial weights; a seed always gives the same ones.

    Weights are uniform in +-0.05 init_scale, or Gaussian of deviation 0.2 init_scale / sqrt(columns), which is what
    the tool computes (the book writes sqrt(fanout)); biases start at 0.
    """
    network = Network(precision=precision, device=device, seed=seed)
    hidden = len(options.layer_sizes) - 2
    top = _input_layer(network, options)
    first = 0
    if options.words > 1:
        first, top = 1, _lookup(network, options, top)
    for layer in range(first, hidden):
        below = f"H{layer}" if layer > first else "LookupTable" if first else "features"
        product = f"W{layer}*{below}"
        kind = options.layer_type(layer)
        top = _affine(network, options, layer, top, product, f"{product}+B{layer}" if kind else f"H{layer + 1}")
        if kind:
            top = network.add(kind, f"H{layer + 1}", top)
        if options.with_dropout:
            top = network.add("Dropout", f"DropH{layer + 1}", top)
    # The tool calls the last product Wn*H(n-1) although it is Hn that feeds it.
    last = _affine(network, options, hidden, top, f"W{hidden}*H{hidden - 1}", "HLast")
    labels = network.add("InputValue", "labels", rows=options.layer_sizes[-1])
    network.labels.append(labels.name)
    posterior = network.add("Softmax", "PosteriorProb", last)
    _add_criteria(network, options, labels, last, posterior)
    if options.with_prior:
        prior = network.add("Mean", "Prior", labels)
        last = network.add("Minus", "ScaledLogLikelihood", last, network.add("Log", "LogOfPrior", prior))
    network.outputs.append(last.name)
    network.validate()
    return network


def _input_layer(network: Network, options: SimpleNetworkOptions) -> Node:
    features = network.add("InputValue", "features", rows=options.layer_sizes[0])
    network.features.append(features.name)
    if not options.normalise_features:
        return features
    mean = network.add("Mean", "MeanOfFeatures", features)
    deviation = network.add("InvStdDev", "InvStdOfFeatures", features)
    return network.add("PerDimMeanVarNormalization", "MVNormalizedFeatures", features, mean, deviation)


def _lookup(network: Network, options: SimpleNetworkOptions, features: Node) -> Node:
    """The table and what it gives for each word of the input, one above the other."""
    words, rows = options.layer_sizes[0] // options.words, options.layer_sizes[1]
    table = network.add("LearnableParameter", "E0", rows=rows, cols=words, **_initial(options))
    return network.add("LookupTable", "LookupTable", table, features)


def _initial(options: SimpleNetworkOptions) -> dict[str, Any]:
    init = "uniform" if options.uniform_init else "gaussian"
    return {"init": init, "initValueScale": options.init_scale}


def _affine(network: Network, options: SimpleNetworkOptions, layer: int, x: Node, product: str, total: str) -> Node:
    rows, columns = options.layer_sizes[layer + 1], network.shapes[x.name].rows
    weights = network.add("LearnableParameter", f"W{layer}", rows=rows, cols=columns, **_initial(options))
    bias = network.add("LearnableParameter", f"B{layer}", rows=rows, cols=1, init="fixedValue", value=0)
    return network.add("Plus", total, network.add("Times", product, weights, x), bias)


def _add_criteria(network: Network, options: SimpleNetworkOptions, labels: Node, last: Node, posterior: Node) -> None:
    """Training and evaluation criterion, one node for both when they are the same."""

    def add(kind: str, name: str) -> Node:
        # CrossEntropy and Logistic take probabilities, of one class among all and of each; the others the output layer.
        if kind == "Logistic":
            top = network.nodes.get("LogisticProb") or network.add("Sigmoid", "LogisticProb", last)
        else:
            top = posterior if kind == "CrossEntropy" else last
        return network.add(kind, name, labels, top)

    kinds = CRITERIA | ERRORS
    training, evaluation = options.training_criterion.lower(), options.eval_criterion.lower()
    network.criteria.append(add(kinds[training], kinds[training]).name)
    if kinds[evaluation] == kinds[training]:
        network.evaluations.append(network.criteria[-1])
    else:
        name = ERROR_NODE_NAMES.get(evaluation, kinds[evaluation])
        network.evaluations.append(add(kinds[evaluation], name).name)
