"""Common parts of SimpleNetworkBuilder's networks: options, input, output layer and criteria.

Source: CNTK book, section 3.2.1. Node names and the order of creation are exactly CNTK's, because editing scripts and
existing configurations refer to these nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from acoustic.network.network import Network
from acoustic.nodes.base import Node
from readers.config.config import Config
from readers.config.options import OptionFault, located_faults
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
# Parameters of every kind of network.
COMMON_KEYS = (
    "layerSizes",
    "layerTypes",
    "layerType",
    "nodeType",
    "trainingCriterion",
    "evalCriterion",
    "initValueScale",
    "uniformInit",
    "fanInInit",
    "applyMeanVarNorm",
    "needPrior",
    "addDropoutNodes",
    "outputLayerSize",
    "rnnType",
    "lookupTableOrder",
)


@dataclass(frozen=True)
class BuilderOptions:
    """Options of every predefined network; names are accepted in any case.

    Parameters
    ----------
    layer_sizes : sequence of int
        Dimensions of input, hidden layers and output.
    layer_types : sequence of str
        Nonlinearity of each hidden layer, the last one repeating: Sigmoid, Tanh, RectifiedLinear, None. A subclass may
        know others.
    training_criterion : str
        CrossEntropyWithSoftmax, CrossEntropy, SquareError, Logistic or SequenceWithSoftmax. A subclass may know others.
    eval_criterion : str
        One of these or ErrorPrediction (ClassificationError).
    init_scale : float
        Scale of the initial weights.
    uniform_init : bool
        Draw initial weights uniformly from +-0.05 init_scale, otherwise from a normal distribution with standard
        deviation 0.2 init_scale / sqrt(columns), as CNTK computes (the book has sqrt(fanout)).
    fan_in_init : bool
        Draw them from a normal distribution with standard deviation init_scale / sqrt(columns) instead.
    normalise_features : bool
        Normalise mean and variance of the input, computed on the training data.
    with_prior : bool
        Add the label prior and the scaled log-likelihood for a decoder; SequenceWithSoftmax always adds them.
    with_dropout : bool
        Add a dropout node after each hidden layer. As in CNTK, and unlike in the book, the input has none.
    words : int
        Number of stacked word indicators in the input (lookupTableOrder).

    Raises
    ------
    OptionFault
        For an unknown name or an impossible size.
    """

    criteria: ClassVar[Mapping[str, str]] = CRITERIA
    evaluations: ClassVar[Mapping[str, str]] = CRITERIA | ERRORS
    layer_kinds: ClassVar[Mapping[str, str]] = LAYER_TYPES

    layer_sizes: Sequence[int]
    layer_types: Sequence[str] = ("Sigmoid",)
    training_criterion: str = "CrossEntropyWithSoftmax"
    eval_criterion: str = "CrossEntropyWithSoftmax"
    init_scale: float = 1.0
    uniform_init: bool = True
    fan_in_init: bool = False
    normalise_features: bool = False
    with_prior: bool = False
    with_dropout: bool = False
    words: int = 0

    def __post_init__(self):
        if len(self.layer_sizes) < 2 or min(self.layer_sizes) < 1:
            raise OptionFault("layerSizes", f"is {self.sizes}; expected at least an input and an output size, all > 0")
        for name in self.layer_types:
            _known("layerTypes", name, self.layer_kinds)
        _known("trainingCriterion", self.training_criterion, self.criteria)
        _known("evalCriterion", self.eval_criterion, self.evaluations)

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

    def check_lookup(self) -> None:
        """Raise OptionFault unless the sizes permit a lookup table for each of the words."""
        if len(self.layer_sizes) < 3 or self.layer_sizes[0] % self.words:
            needed = f"layerSizes with a multiple of {self.words} first and the dimension of the table second"
            raise OptionFault("lookupTableOrder", f"is {self.words}, layerSizes {self.sizes}; expected {needed}")


def _known(key: str, name: str, table: Mapping[str, str]) -> None:
    if name.lower() in table:
        return
    reason = OTHER_CRITERIA.get(name.lower(), "is unknown")
    if name.lower() in ERRORS:
        reason = "has no gradient" if key == "trainingCriterion" else "is for labels with a row for each class"
    elif name.lower() in CRITERIA:
        reason = "is for another rnnType"
    names = ", ".join(dict.fromkeys(filter(None, table.values())))
    raise OptionFault(key, f"is {name} {reason}; expected one of {names}")


Options = TypeVar("Options", bound=BuilderOptions)


def read_options(builder: Config, make: Callable[..., Options], **more: Any) -> Options:
    """Return the options that `make` builds from the common keys of a SimpleNetworkBuilder block and from `more`.

    `more` takes precedence over the common keys. Raises ConfigError with file and line.
    """
    order = builder.int("lookupTableOrder", 0)
    if order < 0:
        raise ConfigError(f"{builder.where('lookupTableOrder')}: lookupTableOrder is {order}; expected 0 or more")
    sizes = builder.ints("layerSizes")
    output = builder.int("outputLayerSize", -1)
    if output not in (-1, tuple(sizes)[-1]):
        raise ConfigError(
            f"{builder.where('outputLayerSize')}: outputLayerSize is {output}; expected the last of layerSizes"
        )
    training = builder.text("trainingCriterion", "CrossEntropyWithSoftmax")
    common = {
        "layer_sizes": tuple(sizes),
        "layer_types": layer_types(builder),
        "training_criterion": training,
        "eval_criterion": builder.text("evalCriterion", training),
        "init_scale": builder.float("initValueScale", 1.0),
        "uniform_init": builder.bool("uniformInit", True),
        "fan_in_init": builder.bool("fanInInit", False),
        "normalise_features": builder.bool("applyMeanVarNorm", False),
        "with_prior": builder.bool("needPrior", False),
        "with_dropout": builder.bool("addDropoutNodes", False),
        "words": order,
    }
    with located_faults(builder):
        return make(**(common | more))


def layer_types(builder: Config) -> tuple[str, ...]:
    """Return layerTypes of a block, which may also be called layerType, and in CNTK's language models nodeType.

    Raises ConfigError for a block with layerType and layerTypes.
    """
    if builder.has_own("layerType") and builder.has_own("layerTypes") and builder.has("layerTypes"):
        raise ConfigError(f"{builder.where('layerType')}: layerType is given beside layerTypes; expected one of them")
    if builder.has_own("layerType"):
        return tuple(builder.array("layerType")) or ("",)
    if builder.has("nodeType") and not builder.has("layerTypes"):
        return tuple(builder.array("nodeType")) or ("",)
    return tuple(builder.array("layerTypes", ["Sigmoid"])) or ("",)


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
    words, rows = options.layer_sizes[0] // options.words, options.layer_sizes[1]
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
    training, evaluation = options.training_criterion.lower(), options.eval_criterion.lower()
    own = names or (kinds[training], ERROR_NODE_NAMES.get(evaluation, kinds[evaluation]))
    network.criteria.append(add(kinds[training], own[0]).name)
    if kinds[evaluation] == kinds[training]:
        network.evaluations.append(network.criteria[-1])
    else:
        network.evaluations.append(add(kinds[evaluation], own[1]).name)


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
