"""SimpleNetworkBuilder, rnnType CRF: an LSTM network with a conditional random field over the labels of a sentence::

    SimpleNetworkBuilder=[
      rnnType=CRF; trainingCriterion=CRF; evalCriterion=ErrorPrediction
      lookupTableOrder=3; layerSizes=2832:50:300:127
    ]

The layers are those of rnnType LSTM. Scores of labels and of label pairs form the field, and `outputs` is its best
path. Source: CNTK book 2.4.3; CNTK in 2016 has the names, but not the network.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from acoustic.descriptions.builders.parts import ERROR_NODE_NAMES, ERRORS, add_labels
from acoustic.descriptions.builders.recurrent import LstmOptions, add_lstm_layers
from acoustic.network.network import Network
from readers.config.options import option


@dataclass(frozen=True)
class CrfOptions(LstmOptions):
    """Options of a CRF network: those of LSTM, with CRF or the ErrorPrediction of the best path as evaluation."""

    criteria: ClassVar[Mapping[str, str]] = {"crf": "CRF"}
    evaluations: ClassVar[Mapping[str, str]] = {"crf": "CRF"} | ERRORS

    no_prior: ClassVar[str] = "a conditional random field has no prior of the labels"

    training_criterion: str = option("CRF", "criterion of the training: CRF")

    def build(self, precision: str, device: str, seed: int) -> Network:
        network = Network(precision=precision, device=device, seed=seed)
        top = add_lstm_layers(network, self)
        number = self.num_hidden
        rows = self.layer_sizes[-1]
        columns = network.shapes[top.name].rows
        weights = network.add(
            "LearnableParameter", f"TimesBeforeSoftMax{number}", rows=rows, cols=columns, **self.initial()
        )
        scores = network.add("Times", "outputsBeforeSoftmax", weights, top)
        pairs = {"rows": rows, "cols": rows, "init": "fixedValue", "value": 1 / rows}  # book 2.4.3
        transitions = network.add("LearnableParameter", f"TransProb{number}", **pairs)
        labels = add_labels(network, rows)
        network.criteria.append(network.add("CRF", "CRFTrainCriterion", labels, scores, transitions).name)
        best = network.add("SequenceDecoder", "outputs", scores, transitions)
        network.outputs.append(best.name)
        network.add("Softmax", "PosteriorProb", scores)
        evaluation = self.eval_criterion.lower()
        if evaluation in ERRORS:
            errors = network.add("ErrorPrediction", ERROR_NODE_NAMES[evaluation], labels, best)
            network.evaluations.append(errors.name)
        else:
            network.evaluations.append(network.criteria[0])
        network.validate()
        return network
