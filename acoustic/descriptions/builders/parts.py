"""Common parts of SimpleNetworkBuilder's networks: options, input, output layer and criteria.

Source: CNTK book, section 3.2.1. Node names and the order of creation are exactly CNTK's, because editing scripts and
existing configurations refer to these nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from acoustic.network.network import Network
from acoustic.nodes.base import Node
from readers.config.config import Config
from readers.config.options import Options, option
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
    "sequencewithsoftmax": "SequenceWithSoftmax",
}
ERRORS = {"errorprediction": "ErrorPrediction", "classificationerror": "ErrorPrediction"}
# CNTK named this node after the criterion as it was called in 2015 and in 2016.
ERROR_NODE_NAMES = {"errorprediction": "EvalErrorPrediction", "classificationerror": "EvalClassificationError"}
OTHER_CRITERIA = {  # name in lower case: why it is not accepted here
    "noisecontrastiveestimation": "is for rnnType NCELSTM",
    "noisecontrastiveestimationnode": "is for rnnType NCELSTM",
    "ncecrossentropywithsoftmax": "is for rnnType NCELSTM",
    "classcrossentropywithsoftmax": "is for rnnType CLASSLM, CLASSLSTM and CLSTM",
    "classbasedcrossentropywithsoftmax": "is for rnnType CLASSLM, CLASSLSTM and CLSTM",
    "crf": "is for rnnType CRF",
}


@dataclass(frozen=True)
class BuilderOptions(Options):
    """Options of every predefined network; names of layers and criteria are accepted in any case.

    Raises
    ------
    OptionFault
        For an unknown name or an impossible size.
    """

    criteria: ClassVar[Mapping[str, str]] = CRITERIA
    evaluations: ClassVar[Mapping[str, str]] = CRITERIA | ERRORS
    layer_kinds: ClassVar[Mapping[str, str]] = LAYER_TYPES
    no_prior: ClassVar[str] = ""  # why the network cannot have a label prior

    layer_sizes: tuple[int, ...] = option(help="sizes of the input, the hidden layers and the output", least=1)
    layer_types: tuple[str, ...] = option(
        ("Sigmoid",),
        "nonlinearity of each hidden layer, the last one repeating: Sigmoid, Tanh, RectifiedLinear or None, and with "
        "rnnType=SIMPLENET PNorm",
        cntk="layerTypes layerType nodeType",
    )
    training_criterion: str = option(
        "CrossEntropyWithSoftmax",
        "criterion of the training: CrossEntropyWithSoftmax, CrossEntropy, SquareError, Logistic or "
        "SequenceWithSoftmax, or that of the rnnType",
    )
    eval_criterion: str = option(
        "", "criterion that is shown beside it, or ErrorPrediction (ClassificationError); empty: that of the training"
    )
    init_scale: float = option(1.0, "scale of the initial weights", cntk="initValueScale")
    uniform_init: bool = option(
        True,
        "draw initial weights uniformly from +-0.05 initValueScale, otherwise from a normal distribution with standard "
        "deviation 0.2 initValueScale / sqrt(columns), as CNTK computes (the book has sqrt(fanout))",
    )
    fan_in_init: bool = option(
        False,
        "draw initial weights from a normal distribution of standard deviation initValueScale / sqrt(columns) instead",
    )
    normalise_features: bool = option(
        False, "normalise mean and variance of the input, computed on the training data", cntk="applyMeanVarNorm"
    )
    with_prior: bool = option(
        False,
        "add the label prior and the scaled log-likelihood for a decoder; SequenceWithSoftmax always adds them",
        cntk="needPrior",
    )
    with_dropout: bool = option(
        False,
        "add a dropout node after each hidden layer; as in CNTK, and unlike in the book, the input has none",
        cntk="addDropoutNodes",
    )
    words: int = option(0, "stacked word indicators in the input", least=0, cntk="lookupTableOrder")
    output_size: int = option(
        -1, "size of the output layer, the last of layerSizes; -1: not given", least=-1, cntk="outputLayerSize"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "layer_types", self.layer_types or ("None",))
        object.__setattr__(self, "eval_criterion", self.eval_criterion or self.training_criterion)
        super().__post_init__()
        self.require("layer_sizes", len(self.layer_sizes) > 1, f"is {self.sizes}; expected an input and an output size")
        for name in self.layer_types:
            self._check_name("layer_types", name, self.layer_kinds)
        self._check_name("training_criterion", self.training_criterion, self.criteria)
        self._check_name("eval_criterion", self.eval_criterion, self.evaluations)
        self.require_last("output_size")
        self.require("with_prior", not (self.with_prior and self.no_prior), f"is true; expected false: {self.no_prior}")

    @classmethod
    def from_block(cls, block: Config, **values: Any) -> Self:
        """Return the options of a SimpleNetworkBuilder block. Raises ConfigError, also for two names of layer types."""
        if block.has_own("layerType") and block.has_own("layerTypes") and block.has("layerTypes"):
            where = block.where("layerType")
            raise ConfigError(f"{where}: layerType is given beside layerTypes; expected one of them")
        return super().from_block(block, **values)

    def _check_name(self, field: str, name: str, table: Mapping[str, str]) -> None:
        """Raise OptionFault for the name of a layer type or criterion that this kind of network does not have."""
        reason = OTHER_CRITERIA.get(name.lower(), "")
        if name.lower() in ERRORS:
            reason = "has no gradient" if field == "training_criterion" else "is for labels with a row for each class"
        elif name.lower() in CRITERIA:
            reason = "is for another rnnType"
        why = f", which {reason}" if reason else ""
        names = ", ".join(dict.fromkeys(filter(None, table.values())))
        self.require(field, name.lower() in table, f"is {name}{why}; expected one of {names}")

    @property
    def sizes(self) -> str:
        """The layer sizes as written in a configuration, for messages."""
        return ":".join(str(size) for size in self.layer_sizes)

    @property
    def num_hidden(self) -> int:
        """Number of hidden layers."""
        return len(self.layer_sizes) - 2

    def layer_type(self, layer: int) -> str:
        """Return the node type of hidden layer `layer`, counted from 0; empty for a linear one."""
        return self.layer_kinds[self.layer_types[min(layer, len(self.layer_types) - 1)].lower()]

    def initial(self) -> dict[str, Any]:
        """Return the options of a LearnableParameter with random initial values."""
        kind = "fanIn" if self.fan_in_init else "uniform" if self.uniform_init else "gaussian"
        return {"init": kind, "initValueScale": self.init_scale}

    def build(self, precision: str, device: str, seed: int) -> Network:
        """Build the network, with its initial values; equal seeds give equal values."""
        raise NotImplementedError

    def require_last(self, name: str) -> None:
        """Raise OptionFault for an option that is given and differs from the last of the layer sizes."""
        size = getattr(self, name)
        last = self.layer_sizes[-1]
        self.require(name, size in (None, -1, last), f"is {size}; expected {last}, the last of {{layer_sizes}}")

    def check_lookup(self) -> None:
        """Raise OptionFault unless the sizes permit a lookup table for each of the words."""
        fine = len(self.layer_sizes) > 2 and self.layer_sizes[0] % self.words == 0
        needed = f"{{layer_sizes}} with a multiple of {self.words} first and the dimension of the table second"
        self.require("words", fine, f"is {self.words}, {{layer_sizes}} {self.sizes}; expected {needed}")


def add_input(network: Network, options: BuilderOptions) -> Node:
    """Add the features, normalised if the options say so."""
    features = network.add("InputValue", "features", rows=options.layer_sizes[0])
    network.features.append(features.name)
    if not options.normalise_features:
        return features
    mean = network.add("Mean", "MeanOfFeatures", features)
    deviation = network.add("InvStdDev", "InvStdOfFeatures", features)
    return network.add("PerDimMeanVarNormalization", "MVNormalizedFeatures", features, mean, deviation)


def add_lookup(
    network: Network, options: BuilderOptions, features: Node, name: str = "LookupTable", prefix: str = ""
) -> Node:
    """Add the word vector table and its values for each word of the input, stacked."""
    words = options.layer_sizes[0] // options.words
    rows = options.layer_sizes[1]
    table = network.add("LearnableParameter", f"{prefix}E0", rows=rows, cols=words, **options.initial())
    return network.add("LookupTable", f"{prefix}{name}", table, features)


def add_labels(network: Network, rows: int) -> Node:
    labels = network.add("InputValue", "labels", rows=rows)
    network.labels.append(labels.name)
    return labels


def add_criteria(
    network: Network, options: BuilderOptions, labels: Node, last: Node, posterior: Node, names: Sequence[str] = ()
) -> None:
    """Add training and evaluation criterion, one node if they are equal; `names` are those of the two nodes."""

    def add(kind: str, name: str) -> Node:
        # CrossEntropy and Logistic take probabilities (softmax and sigmoid), the others the output layer.
        if kind == "Logistic":
            top = network.nodes.get("LogisticProb") or network.add("Sigmoid", "LogisticProb", last)
        else:
            top = posterior if kind == "CrossEntropy" else last
        if kind == "SequenceWithSoftmax":
            return network.add(kind, name, labels, top, scaled_likelihood(network, labels, last))
        return network.add(kind, name, labels, top)

    kinds = options.evaluations
    training = options.training_criterion.lower()
    evaluation = options.eval_criterion.lower()
    node_names = names or (kinds[training], ERROR_NODE_NAMES.get(evaluation, kinds[evaluation]))
    network.criteria.append(add(kinds[training], node_names[0]).name)
    if kinds[evaluation] == kinds[training]:
        network.evaluations.append(network.criteria[-1])
    else:
        network.evaluations.append(add(kinds[evaluation], node_names[1]).name)


def add_outputs(network: Network, options: BuilderOptions, labels: Node, last: Node, names: Sequence[str] = ()) -> None:
    """Add posteriors, criteria and what a decoder reads above the output layer, and check the network."""
    posterior = network.add("Softmax", "PosteriorProb", last)
    add_criteria(network, options, labels, last, posterior, names)
    if options.with_prior or "ScaledLogLikelihood" in network.nodes:
        last = scaled_likelihood(network, labels, last)
    network.outputs.append(last.name)
    network.validate()


def scaled_likelihood(network: Network, labels: Node, last: Node) -> Node:
    """Return the output layer minus the log prior of each class, which is added if the network lacks it."""
    if "ScaledLogLikelihood" in network.nodes:
        return network["ScaledLogLikelihood"]
    prior = network.add("Mean", "Prior", labels)
    return network.add("Minus", "ScaledLogLikelihood", last, network.add("Log", "LogOfPrior", prior))
