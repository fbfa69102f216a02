"""SimpleNetworkBuilder, rnnType CLASSLM, CLASSLSTM, CLSTM and LBLM: language models::

    SimpleNetworkBuilder=[
      rnnType=CLASSLSTM; lookupTableOrder=1; layerSizes=10000:100:200:10000; vocabSize=10000; nbrClass=50
      trainingCriterion=classCrossEntropyWithSoftmax
    ]

Class-based models take their labels from LMSequenceReader with mode=class, the others take one-hot labels. `features`
are one-hot words, which that reader and LUSequenceReader give as numbers, so that the cost does not depend on the size
of the vocabulary. Source: CNTK book, sections 3.2.1, 7.2 and 7.3; parameters, criteria and outputs have CNTK's names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from acoustic.descriptions.builders.parts import add_labels
from acoustic.descriptions.builders.recurrent import (
    LstmOptions,
    RecurrentOptions,
    add_bottom,
    add_delay,
    add_dropout,
    add_lstm_layers,
    add_product,
    add_rnn_layers,
    add_top,
)
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.class_criterion import LABEL_ROWS
from readers.config.options import option

CLASS_CRITERION = "ClassBasedCrossEntropyWithSoftmax"
CLASS_CRITERIA = {name.lower(): CLASS_CRITERION for name in (CLASS_CRITERION, "classCrossEntropyWithSoftmax")}
CONDITION = "binaryFeature"  # CNTK's name of the second input


@dataclass(frozen=True, kw_only=True)
class ClassOptions(RecurrentOptions):
    """Options of class-based models, with simple recurrent layers (CLASSLM)."""

    criteria: ClassVar[Mapping[str, str]] = CLASS_CRITERIA
    evaluations: ClassVar[Mapping[str, str]] = CLASS_CRITERIA
    no_prior: ClassVar[str] = "labels of class-based models have no prior"

    training_criterion: str = option(CLASS_CRITERION, f"criterion of the training: {CLASS_CRITERION}")
    num_classes: int = option(help="number of word classes", least=1, cntk="nbrClass")
    vocabulary: int | None = option(
        None, "number of words, the size of the output layer", unit="words", least=1, cntk="vocabSize"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        words = self.layer_sizes[-1]
        self.require("layer_sizes", self.num_hidden > 0, f"is {self.sizes}; expected at least one hidden layer")
        self.require_last("vocabulary")
        text = f"is {self.num_classes}; expected 1 to {words}, the number of words"
        self.require("num_classes", self.num_classes <= words, text)

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        _add_classes(network, self, add_rnn_layers(network, self))
        return network


@dataclass(frozen=True, kw_only=True)
class ClassLstmOptions(ClassOptions, LstmOptions):
    """Options of class-based models with LSTM layers (CLASSLSTM), with or without a lookup table.

    CNTK requires the table; the book's 7.3 has none. Without a table, the input matrices of the first layer's gates
    take its place. As in CNTK, every hidden layer above the table is an LSTM, whatever recurrentLayer says.
    """

    all_recurrent: ClassVar[bool] = True

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        _add_classes(network, self, add_lstm_layers(network, self))
        return network


@dataclass(frozen=True, kw_only=True)
class ConditionalLstmOptions(ClassLstmOptions):
    """Options of class-based LSTM models of text under a condition (CLSTM), such as the meaning of each sentence.

    The condition is a second input, a vector for every word. f(A v), with the nonlinearity of the output layer's
    number, is added to the last hidden layer.
    """

    condition_size: int = option(20, "size of the condition's vectors", least=1, cntk="auxfeatdim")

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        _add_classes(network, self, _add_condition(network, self, add_lstm_layers(network, self)))
        return network


@dataclass(frozen=True)
class LogBilinearOptions(RecurrentOptions):
    """Options of a log-bilinear model (LBLM): every layer is linear, and previous words are added to the input.

    Each previous word has a matrix of its own. Layers are U x + bi; a recurrent one is y(t) + bi with y(t) = U x(t) + R
    y(t-1).
    """

    order: int = option(0, "number of previous words", unit="words", least=0, cntk="maOrder")

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        top = _add_past_words(network, self, add_bottom(network, self, "Lookuptatble"))  # CNTK's spelling
        for layer in range(self.first_layer, self.num_hidden):
            top = add_dropout(network, self, layer, _add_linear_layer(network, self, layer, top))
        add_top(network, self, top)
        return network


def _add_condition(network: Network, options: ConditionalLstmOptions, top: Node) -> Node:
    """Add the condition's input and return the last hidden layer plus its term."""
    condition = network.add("InputValue", CONDITION, rows=options.condition_size)
    network.features.append(condition.name)
    rows = network.shapes[top.name].rows
    weights = network.add(
        "LearnableParameter", "AuxTrans0", rows=rows, cols=options.condition_size, **options.initial()
    )
    kind = options.layer_type(options.num_hidden)
    term = network.add("Times", "AuxTrans0*binaryFeature" if kind else "TimesToGetGlobalBias", weights, condition)
    term = network.add(kind, "TimesToGetGlobalBias", term) if kind else term
    return network.add("Plus", "PlusGlobalBias", top, term)


def _add_classes(network: Network, options: ClassOptions, top: Node) -> None:
    """Add class and word scores and the criterion; W has a column per word, so that a class is a slice of it."""
    rows = network.shapes[top.name].rows
    number = options.num_hidden
    weights = network.add(
        "LearnableParameter", f"W{number}", rows=rows, cols=options.layer_sizes[-1], **options.initial()
    )
    labels = add_labels(network, LABEL_ROWS)
    classes = network.add(
        "LearnableParameter", "WeightForClassPostProb", rows=options.num_classes, cols=rows, **options.initial()
    )
    scores = network.add("Times", "ClassPostProb", classes, top)
    criterion = network.add(CLASS_CRITERION, "TrainNodeClassBasedCrossEntropy", labels, top, weights, scores)
    network.criteria.append(criterion.name)
    network.evaluations.append(criterion.name)
    network.outputs.append(network.add("TransposeTimes", "outputs", weights, top).name)
    network.add("Softmax", "PosteriorProb", "outputs")  # as in CNTK: over all words, ignoring classes
    network.validate()


def _add_past_words(network: Network, options: LogBilinearOptions, x: Node) -> Node:
    """Return x plus its values at previous words, multiplied by matrices DD1, DD2, ..."""
    rows = network.shapes[x.name].rows
    total = x
    for steps in range(1, options.order + 1):
        past = add_delay(network, options, f"pastValue{steps}", rows, steps)
        network.connect(past, x)
        weights = network.add("LearnableParameter", f"DD{steps}", rows=rows, cols=rows, **options.initial())
        product = network.add("Times", f"DD{steps}*pastValue{steps}", weights, past)
        total = network.add("Plus", f"WithPast{steps}", total, product)
    return network.add("Dropout", "DropPast", total) if options.with_dropout and options.order else total


def _add_linear_layer(network: Network, options: LogBilinearOptions, layer: int, x: Node) -> Node:
    """Add a layer U x + bi, recurrent if the options say so."""
    rows = options.layer_sizes[layer + 1]
    y = add_product(network, options, layer, x)
    if layer + 1 in options.recurrent_layers:
        again = network.add("LearnableParameter", f"R{layer + 1}", rows=rows, cols=rows, **options.initial())
        past = add_delay(network, options, f"PastH{layer + 1}", rows)
        y = network.add("Plus", f"Y{layer + 1}", network.add("Times", f"R{layer + 1}*{past.name}", again, past), y)
        network.connect(past, y)
    bias = network.add("LearnableParameter", f"bi{layer}", rows=rows, cols=1, init="fixedValue", value=0)
    return network.add("Plus", f"H{layer + 1}", y, bias)
