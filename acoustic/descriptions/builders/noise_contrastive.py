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
from typing import Any, ClassVar

from acoustic.descriptions.builders.parts import add_labels, read_options
from acoustic.descriptions.builders.recurrent import (
    GATE_KEYS,
    RECURRENT_KEYS,
    LstmOptions,
    add_lstm_layers,
    gate_settings,
    recurrent_settings,
)
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.noise_contrastive import MODES, SOFTMAX
from readers.config.config import Config
from readers.config.options import OptionFault

CRITERION = "NoiseContrastiveEstimation"
CRITERIA = {name.lower(): CRITERION for name in (CRITERION, f"{CRITERION}Node", "NCECrossEntropyWithSoftmax")}
NOISE_CONTRASTIVE_KEYS = (*RECURRENT_KEYS, *GATE_KEYS, "noise_number", "directConnect", "vocabSize", "nceEvalMode")
DIRECT_SCALE = 0.01  # initial weight of a direct connection


@dataclass(frozen=True)
class NoiseContrastiveOptions(LstmOptions):
    """Options of an LSTM language model with noise-contrastive estimation (NCELSTM).

    `num_noise` is the number of noise words for each word (noise_number). `direct` are numbers of hidden layers,
    counted from 1, the lookup table included: for the value x of each, s f(D x) with a learned scalar s is added to the
    last hidden layer (directConnect). `evaluation` is what the criterion is in evaluation, see the node (nceEvalMode).
    """

    criteria: ClassVar[Mapping[str, str]] = CRITERIA
    evaluations: ClassVar[Mapping[str, str]] = CRITERIA

    training_criterion: str = CRITERION
    eval_criterion: str = CRITERION
    num_noise: int = 0
    direct: Sequence[int] = ()
    vocabulary: int = -1
    evaluation: str = SOFTMAX

    def __post_init__(self):
        super().__post_init__()
        if not self.num_hidden:
            raise OptionFault("layerSizes", f"is {self.sizes}; expected at least one hidden layer")
        if self.vocabulary not in (-1, self.layer_sizes[-1]):
            raise OptionFault(
                "vocabSize", f"is {self.vocabulary}; expected {self.layer_sizes[-1]}, the last of layerSizes"
            )
        if not 1 <= self.num_noise <= self.layer_sizes[-1]:
            raise OptionFault(
                "noise_number", f"is {self.num_noise}; expected 1 to {self.layer_sizes[-1]}, the number of words"
            )
        for layer in self.direct:
            if not 1 <= layer <= self.num_hidden or self.direct.count(layer) > 1:
                raise OptionFault(
                    "directConnect", f"is {layer}, layerSizes {self.sizes}; expected hidden layers, 1 to "
                    f"{self.num_hidden}, each once"
                )  # fmt: skip
        if self.with_prior:
            raise OptionFault("needPrior", "is true; expected false: labels with noise words have no prior")

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        layers: list[Node] = []
        top = _add_direct(network, self, add_lstm_layers(network, self, layers), layers)
        _add_criterion(network, self, top)
        return network


def noise_contrastive_options(builder: Config) -> NoiseContrastiveOptions:
    """Read the options of a block with rnnType=NCELSTM. Raises ConfigError."""
    criterion = builder.text("trainingCriterion", CRITERION)
    return read_options(
        builder,
        NoiseContrastiveOptions,
        **recurrent_settings(builder),
        **gate_settings(builder),
        training_criterion=criterion,
        eval_criterion=builder.text("evalCriterion", criterion),
        num_noise=builder.int("noise_number", -1),
        direct=tuple(builder.ints("directConnect", [])),
        vocabulary=builder.int("vocabSize", -1),
        evaluation=builder.choice("nceEvalMode", MODES, SOFTMAX),
    )


def _add_direct(network: Network, options: NoiseContrastiveOptions, top: Node, layers: Sequence[Node]) -> Node:
    """Add the direct connections to the last hidden layer, lowest layer first, and return the sum."""
    rows = network.shapes[top.name].rows
    for layer in sorted(options.direct):
        number, x = options.direct.index(layer), layers[layer - 1]
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
    rows, words = network.shapes[top.name].rows, options.layer_sizes[-1]
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
