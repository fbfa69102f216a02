"""SimpleNetworkBuilder, rnnType NCELSTM: LSTM language models that are trained by noise-contrastive estimation::

    SimpleNetworkBuilder=[
      rnnType=NCELSTM; lookupTableOrder=1; layerSizes=10000:100:200:10000; noise_number=100
      trainingCriterion=noiseContrastiveEstimation
    ]

Labels come from LMSequenceReader with mode=nce and the same noise_number. Source: CNTK's SimpleNetworkBuilder;
parameters, criteria and outputs have its names.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from acoustic.descriptions.builders.language_model import ClassOptions
from acoustic.descriptions.builders.parts import add_labels
from acoustic.descriptions.builders.recurrent import LstmOptions, add_lstm_layers
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.noise_contrastive import SOFTMAX
from readers.config.options import like, option

CRITERION = "NoiseContrastiveEstimation"
CRITERIA = {name.lower(): CRITERION for name in (CRITERION, f"{CRITERION}Node", "NCECrossEntropyWithSoftmax")}
DIRECT_SCALE = 0.01  # initial weight of a direct connection


@dataclass(frozen=True, kw_only=True)
class NoiseContrastiveOptions(LstmOptions):
    """Options of an LSTM language model with noise-contrastive estimation (NCELSTM)."""

    criteria: ClassVar[Mapping[str, str]] = CRITERIA
    evaluations: ClassVar[Mapping[str, str]] = CRITERIA
    no_prior: ClassVar[str] = "labels with noise words have no prior"

    training_criterion: str = option(CRITERION, f"criterion of the training: {CRITERION}")
    num_noise: int = option(help="noise words for each word", unit="words", least=1, cntk="noise_number")
    direct: tuple[int, ...] = option(
        (),
        "numbers of hidden layers, counted from 1, the lookup table included: for the value x of each, s f(D x) with a "
        "learned scalar s is added to the last hidden layer",
        cntk="directConnect",
    )
    vocabulary: int | None = like(ClassOptions, "vocabulary")
    evaluation: Literal["softmax", "unnormalized", "none"] = option(
        SOFTMAX, "what the criterion is in evaluation; see the node", cntk="nceEvalMode"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        words = self.layer_sizes[-1]
        last = self.num_hidden
        self.require("layer_sizes", last > 0, f"is {self.sizes}; expected at least one hidden layer")
        self.require_last("vocabulary")
        text = f"is {self.num_noise}; expected 1 to {words}, the number of words"
        self.require("num_noise", self.num_noise <= words, text)
        for layer in self.direct:
            text = f"is {layer}, {{layer_sizes}} {self.sizes}; expected hidden layers, 1 to {last}, each once"
            self.require("direct", 1 <= layer <= last and self.direct.count(layer) == 1, text)

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        layers: list[Node] = []
        top = _add_direct(network, self, add_lstm_layers(network, self, layers), layers)
        _add_criterion(network, self, top)
        return network


def _add_direct(network: Network, options: NoiseContrastiveOptions, top: Node, layers: Sequence[Node]) -> Node:
    """Add the direct connections to the last hidden layer, lowest layer first, and return the sum."""
    rows = network.shapes[top.name].rows
    for layer in sorted(options.direct):
        number = options.direct.index(layer)
        x = layers[layer - 1]
        columns = network.shapes[x.name].rows
        weights = network.add("LearnableParameter", f"D{number}", rows=rows, cols=columns, **options.initial())
        kind = options.layer_type(number)
        term = network.add("Times", f"D{number}*{x.name}", weights, x)
        term = network.add(kind, f"Direct{number}", term) if kind else term
        scale = network.add("LearnableParameter", f"SV{number}", rows=1, cols=1, init="fixedValue", value=DIRECT_SCALE)
        top = network.add("Plus", f"WithDirect{number}", top, network.add("Scale", f"S{number}", scale, term))
    return top


def _add_criterion(network: Network, options: NoiseContrastiveOptions, top: Node) -> None:
    """Add weights and bias of the words, a column for each, the criterion, and the scores of all words."""
    rows = network.shapes[top.name].rows
    words = options.layer_sizes[-1]
    weights = network.add("LearnableParameter", f"W{options.num_hidden}", rows=rows, cols=words, **options.initial())
    labels = add_labels(network, 2 * (options.num_noise + 1))
    first: dict[str, Any] = {"init": "fixedValue", "value": -math.log(words)}
    bias = network.add("LearnableParameter", "BiasVector", rows=1, cols=words, **first)
    criterion = network.add(
        CRITERION, "TrainNodeNCEBasedCrossEntropy", labels, top, weights, bias, evalMode=options.evaluation
    )
    network.criteria.append(criterion.name)
    network.evaluations.append(criterion.name)
    scores = network.add("TransposeTimes", f"W{options.num_hidden}*{top.name}", weights, top)
    column = network.add("Transpose", "BiasVector'", bias)
    network.outputs.append(network.add("Plus", "outputs", scores, column).name)
    network.add("Softmax", "PosteriorProb", "outputs")
    network.validate()
