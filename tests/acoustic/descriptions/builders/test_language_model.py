"""SimpleNetworkBuilder, rnnType language models and CRF: names, gradients, options and faults."""

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import check_gradients
from readers.config.config import Config
from readers.errors import ConfigError
from readers.minibatches.indicators import Indicators
from readers.minibatches.sequence_layout import SequenceLayout
from tests.acoustic.nodes.examples.words import class_labels, noise_labels
from tests.acoustic.recurrence.recurrent_networks import randomise

CLASS_LM = "rnnType=CLASSLM\nlayerSizes=9:5:9\nrecurrentLayer=1\nvocabSize=9\nnbrClass=3"
CLASS_LSTM = "rnnType=CLASSLSTM\nlayerSizes=9:4:5:9\nlookupTableOrder=1\nvocabSize=9\nnbrClass=3"
CLASS_LSTM_OF_WORDS = "rnnType=CLASSLSTM\nlayerSizes=9:5:9\nrecurrentLayer=1\nvocabSize=9\nnbrClass=3"  # book 7.3
CONDITIONAL = f"{CLASS_LSTM.replace('CLASSLSTM', 'CLSTM')}\nauxfeatdim=2"
PROBABILISTIC = "rnnType=NPLM\nlayerSizes=9:5:9"  # as CNTK builds it, on one-hot words
PROBABILISTIC_TABLE = (
    "rnnType=NPLM\nlayerSizes=9:4:5:6:6:9\nlookupTableOrder=1\nrecurrentLayer=2:4\naddDropoutNodes=true"
)
NOISE = "rnnType=NCELSTM\nlayerSizes=9:4:5:9\nlookupTableOrder=1\nnoise_number=2"
NOISE_DIRECT = (
    "rnnType=NCELSTM\nlayerSizes=9:4:6:5:9\nlookupTableOrder=1\nrecurrentLayer=3\nnoise_number=3\ndirectConnect=2:1"
)
NOISE_OF_WORDS = "rnnType=NCELSTM\nlayerSizes=9:5:9\nnoise_number=1\ndirectConnect=1\nlayerTypes=None"
FIELD = "rnnType=CRF\nlayerSizes=9:4:5:9\nlookupTableOrder=1"
LOG_BILINEAR = "rnnType=LBLM\nlayerSizes=9:4:5:9\nlookupTableOrder=1\nmaOrder=2\nrecurrentLayer=2"


def build(text, precision="double"):
    options = simple_network_options(Config.from_text(f"B=[\n{text}\n]", "net.cntk").block("B"))
    return build_simple_network(options, precision)


def shapes(network):
    return {node.name: node.value.shape for node in network.parameters()}


def minibatch(classes, lengths=(4, 2), noise=0):
    layout = SequenceLayout.of_lengths(list(lengths))
    rng = np.random.default_rng(3)
    words = rng.integers(0, 9, (2, layout.num_columns)).astype(np.int32)
    if noise:
        labels = noise_labels(9)(rng, (2 * noise + 2, layout.num_columns))
    else:
        labels = class_labels(2, 3, 4)(rng, (4, layout.num_columns)) if classes else Indicators(words[1:], 9)
    condition = np.asfortranarray(rng.normal(size=(2, layout.num_columns)))
    return {"features": Indicators(words[:1], 9), "labels": labels, "binaryFeature": condition}, layout


def test_class_lm_has_the_tools_names():
    network = build(CLASS_LM)
    assert shapes(network) == {"U0": (5, 9), "W0": (5, 5), "W1": (5, 9), "WeightForClassPostProb": (3, 5)}
    assert network.special() == {
        "features": ["features"],
        "labels": ["labels"],
        "criteria": ["TrainNodeClassBasedCrossEntropy"],
        "evaluations": ["TrainNodeClassBasedCrossEntropy"],
        "outputs": ["outputs"],
    }
    criterion = network["TrainNodeClassBasedCrossEntropy"]
    assert [operand.name for operand in criterion.operands] == ["labels", "H1", "W1", "ClassPostProb"]
    assert network["PosteriorProb"].operands[0].name == "outputs"
    assert network["outputs"].type_name == "TransposeTimes"


def test_class_lstm_has_the_tools_names():
    found = shapes(build(CLASS_LSTM))
    expected = {"E0": (4, 9), "WXO0": (5, 4), "WHC0": (5, 5), "WCI0": (5, 1), "W2": (5, 9)}
    assert expected.items() <= found.items()
    assert found["WeightForClassPostProb"] == (3, 5)
    assert next(iter(found)) == "E0"
    assert list(found)[-2:] == ["W2", "WeightForClassPostProb"]
    without_table = shapes(build("rnnType=CLASSLSTM\nrecurrentLayer=1\nlayerSizes=9:5:9\nnbrClass=3"))  # book 7.3
    assert without_table["WXI0"] == without_table["W1"] == (5, 9)


def test_conditional_lstm_has_the_tools_names():
    network = build(CONDITIONAL)
    assert network.features == ["features", "binaryFeature"]
    assert list(shapes(network))[-3:] == ["AuxTrans0", "W2", "WeightForClassPostProb"]
    assert shapes(network)["AuxTrans0"] == (5, 2)
    assert [node.name for node in network["PlusGlobalBias"].operands] == ["H2", "TimesToGetGlobalBias"]
    assert network["TimesToGetGlobalBias"].type_name == "Sigmoid"
    assert network["ClassPostProb"].operands[1].name == "PlusGlobalBias"
    linear = build(f"{CONDITIONAL}\nlayerTypes=Tanh:Tanh:None")
    assert linear["TimesToGetGlobalBias"].type_name == "Times"
    assert network["binaryFeature"].settings["rows"] == 2
    assert build(CONDITIONAL.replace("auxfeatdim=2", ""))["binaryFeature"].settings["rows"] == 20


def test_a_condition_is_added_to_the_last_hidden_layer():
    network = randomise(build(CONDITIONAL))
    matrices, layout = minibatch(True)
    engine = Engine(network, ["PlusGlobalBias", "H2"])
    engine.forward(matrices, layout=layout)
    condition = 1 / (1 + np.exp(-network["AuxTrans0"].value @ matrices["binaryFeature"]))
    real = ~layout.gap_columns
    found = engine.value("PlusGlobalBias")[:, real]
    np.testing.assert_allclose(found, (engine.value("H2") + condition)[:, real], rtol=1e-12)


@pytest.mark.parametrize("kind", ["CLASSLSTM", "CLSTM"])
def test_every_layer_of_a_class_lstm_is_recurrent(kind):
    found = shapes(build(f"rnnType={kind}\nlayerSizes=9:4:5:6:9\nlookupTableOrder=1\nnbrClass=3"))
    assert found["WHC0"] == (5, 5)
    assert found["WHC2"] == (6, 6)  # the first is called 0, the others by their index, as in CNTK


def test_noise_contrastive_lstm_has_the_tools_names():
    network = build(f"{NOISE}\ntrainingCriterion=noiseContrastiveEstimation")
    found = shapes(network)
    assert next(iter(found)) == "E0"
    assert list(found)[-2:] == ["W2", "BiasVector"]
    assert (found["W2"], found["BiasVector"]) == ((5, 9), (1, 9))
    assert (network["BiasVector"].value == np.float64(-np.log(9))).all()
    assert network.criteria == network.evaluations == ["TrainNodeNCEBasedCrossEntropy"]
    criterion = network["TrainNodeNCEBasedCrossEntropy"]
    assert criterion.settings == {"evalMode": "softmax"}
    assert [operand.name for operand in criterion.operands] == ["labels", "H2", "W2", "BiasVector"]
    assert network["labels"].settings["rows"] == 6
    assert network.outputs == ["outputs"]
    cheap = build(f"{NOISE}\nnceEvalMode=Unnormalized")
    assert cheap["TrainNodeNCEBasedCrossEntropy"].settings == {"evalMode": "unnormalized"}


def test_direct_connections_lead_past_the_layers_above():
    network = build(NOISE_DIRECT)
    found = shapes(network)
    assert (found["D0"], found["D1"], found["SV0"]) == ((5, 6), (5, 4), (1, 1))
    assert network["SV1"].value == 0.01
    assert [node.name for node in network["WithDirect1"].operands] == ["H3", "S1"]  # the table first
    assert [node.name for node in network["WithDirect0"].operands] == ["WithDirect1", "S0"]
    assert network["D0*H2"].operands[1].name == "H2"
    assert network["D1*LookupTable"].operands[1].name == "LookupTable"
    assert network["TrainNodeNCEBasedCrossEntropy"].operands[1].name == "WithDirect0"


def test_encoder_has_the_tools_names_and_no_output_layer():
    network = build("rnnType=LSTMENCODER\nlayerSizes=9:4:5:6\nlookupTableOrder=1")
    found = shapes(network)
    assert next(iter(found)) == "EncoderE0"
    assert (found["EncoderE0"], found["WXO0"], found["WHO2"]) == ((4, 9), (5, 4), (6, 6))
    assert network["EncoderLookupTable"].type_name == "LookupTable"
    special = {name: names for name, names in network.special().items() if names}
    assert special == {"features": ["features"], "outputs": ["H3"]}
    assert build("rnnType=LSTMENCODER\nlayerSizes=9:5").outputs == ["H1"]


def test_log_bilinear_has_the_tools_names():
    network = build(LOG_BILINEAR)
    assert shapes(network) == {
        **{"E0": (4, 9), "DD1": (4, 4), "DD2": (4, 4), "U1": (5, 4), "R2": (5, 5), "bi1": (5, 1)},
        "W2": (9, 5),
    }
    assert network["Lookuptatble"].type_name == "LookupTable"
    assert network["pastValue2"].settings["timeStep"] == 2
    assert network.criteria == network.evaluations == ["CrossEntropyWithSoftmax"]
    assert network.outputs == ["outputs"]


def test_conditional_random_field():
    network = build(f"{FIELD}\nevalCriterion=classificationError")
    assert {"E0", "WXO0", "WHC0", "TimesBeforeSoftMax2", "TransProb2"} <= set(shapes(network))
    assert (network["TransProb2"].value == 1 / 9).all()
    assert (network.criteria, network.outputs) == (["CRFTrainCriterion"], ["outputs"])
    assert network.evaluations == ["EvalClassificationError"]
    assert [operand.name for operand in network["EvalClassificationError"].operands] == ["labels", "outputs"]
    assert build(FIELD).evaluations == ["CRFTrainCriterion"]


def test_probabilistic_model_has_the_tools_names():
    network = build(PROBABILISTIC)
    assert list(shapes(network)) == ["bi0", "WXI2", "WXI3", "WXI4", "WXI1", "WXI", "W1"]
    assert shapes(network)["WXI3"] == (5, 9)
    assert [network[f"pastValue{steps}"].settings["timeStep"] for steps in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert network.criteria == network.evaluations == ["CrossEntropyWithSoftmax"]
    assert network.outputs == ["outputs"]
    named = build(f"{PROBABILISTIC}\nrecurrentLayer=1")  # as CNTK requires; there is nothing else to choose
    assert shapes(named) == shapes(network)
    table = shapes(build(PROBABILISTIC_TABLE))
    assert (table["E0"], table["WXI4"], table["U2"], table["B2"]) == ((4, 9), (5, 4), (6, 5), (6, 1))
    assert (table["U3"], table["W3"], table["W4"]) == ((6, 6), (6, 6), (9, 6))
    assert "W2" not in table


def test_probabilistic_model_is_its_formula():
    network = randomise(build(PROBABILISTIC))
    p = {name: network[name].value for name in shapes(network)}
    matrices, _ = minibatch(False, [7])
    words, loss = matrices["features"].numbers[0], 0.0
    columns = [*np.full((4, 9), 0.1), *np.eye(9)[words]]  # defaultHiddenActivity before the first word, as in CNTK
    for t, target in enumerate(matrices["labels"].numbers[0]):
        x, *past = columns[t + 4 : (t - 1 if t else None) : -1]
        total = p["WXI"] @ x + sum(p[f"WXI{k}"] @ one for k, one in enumerate(past, 1))
        z = p["W1"] @ (np.tanh(total) + p["bi0"][:, 0])
        loss += np.log(np.exp(z).sum()) - z[target]
        assert len(past) == 4
    engine = Engine(network, ["CrossEntropyWithSoftmax"])
    engine.forward(matrices, layout=SequenceLayout.of_lengths([7]))
    assert engine.value("CrossEntropyWithSoftmax").item() == pytest.approx(loss, rel=1e-12)


def test_log_bilinear_is_its_formula():
    network = randomise(build(LOG_BILINEAR))
    p = {name: network[name].value for name in shapes(network)}
    matrices, _ = minibatch(False, [5])
    words = matrices["features"].numbers[0]
    before = np.full((4, 1), 0.1)
    vectors = [before, before, *(p["E0"][:, word : word + 1] for word in words)]
    y, loss = np.full((5, 1), 0.1), 0.0
    for t, target in enumerate(matrices["labels"].numbers[0]):
        x = vectors[t + 2] + p["DD1"] @ vectors[t + 1] + p["DD2"] @ vectors[t]
        y = p["U1"] @ x + p["R2"] @ y
        z = p["W2"] @ (y + p["bi1"])
        loss += np.log(np.exp(z).sum()) - z[target, 0]
    engine = Engine(network, ["CrossEntropyWithSoftmax"])
    engine.forward(matrices, layout=SequenceLayout.of_lengths([5]))
    assert engine.value("CrossEntropyWithSoftmax").item() == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        *(CLASS_LM, CLASS_LSTM, CLASS_LSTM_OF_WORDS, LOG_BILINEAR),
        *(CLASS_LM.replace("recurrentLayer=1", "nodeType=Tanh"), CONDITIONAL),
        *(PROBABILISTIC, PROBABILISTIC_TABLE, NOISE, NOISE_DIRECT, NOISE_OF_WORDS),
        f"{CONDITIONAL}\nlayerSizes=9:4:5:6:9\nlayerTypes=Sigmoid:Sigmoid:Tanh:None",
    ],
    ids=[
        "CLASSLM",
        "CLASSLSTM",
        "CLASSLSTM-words",
        "LBLM",
        "feed-forward",
        "CLSTM",
        "NPLM",
        "NPLM-table",
        *("NCE", "NCE-direct", "NCE-words"),
        "CLSTM-linear",
    ],
)
def test_gradients(text):
    network = randomise(build(text))
    noise = int(text.partition("noise_number=")[2][:1] or 0)
    matrices, layout = minibatch("nbrClass" in text, noise=noise)
    comparisons = check_gradients(network, network.criteria[0], matrices, layout=layout)
    assert len(comparisons) == len(shapes(network))
    for comparison in comparisons:
        assert comparison.error < 1e-6, comparison


def test_node_type_is_the_nonlinearity_as_in_the_book():
    assert build(f"{CLASS_LM}\nnodeType=Tanh")["H1"].type_name == "Tanh"
    assert build(f"{CLASS_LM}\nnodeType=Tanh\nlayerTypes=Sigmoid")["H1"].type_name == "Sigmoid"


def test_a_name_of_the_tools_examples_that_nothing_reads():
    assert shapes(build(f"{CLASS_LM}\naddPrior=false")) == shapes(build(CLASS_LM))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CLASS_LM.replace("vocabSize=9", "vocabSize=8"), r"B\.vocabSize is 8; expected 9, the last of layerSizes"),
        (
            CLASS_LM.replace("nbrClass=3", ""),
            r"B\.nbrClass is not set, in this or an enclosing block; expected nbrClass=...",
        ),
        (CLASS_LM.replace("nbrClass=3", "nbrClass=10"), r"B\.nbrClass is 10; expected 1 to 9"),
        (f"{CLASS_LM}\nneedPrior=true", r"B\.needPrior is true; expected false: labels of class-based models"),
        (
            f"{CLASS_LM}\ntrainingCriterion=SquareError",
            "SquareError, which is for another rnnType; expected one of ClassBased",
        ),
        (f"{CLASS_LM}\ntrainingCriterion=Squares", "trainingCriterion is Squares; expected one of ClassBasedCross"),
        (
            f"{CLASS_LM}\nevalCriterion=ErrorPrediction",
            r"B\.evalCriterion is ErrorPrediction, which is for labels with a row for",
        ),
        (CLASS_LM.replace("9:5:9", "9:9").replace("recurrentLayer=1", ""), "9:9; expected at least one hidden layer"),
        (f"{LOG_BILINEAR}\nnbrClass=3", r"B\.nbrClass has no meaning for rnnType LBLM; expected rnnType CLASSLM"),
        (LOG_BILINEAR.replace("maOrder=2", "maOrder=-1"), r"B\.maOrder is -1; expected at least 0 words"),
        (f"{CLASS_LM}\naddPrior=true", r"net\.cntk:7: addPrior=true has no effect; expected needPrior=true"),
        (f"{FIELD}\nneedPrior=true", r"B\.needPrior is true; expected false: a conditional random field has no prior"),
        (f"{FIELD}\ntrainingCriterion=ErrorPrediction", "ErrorPrediction, which has no gradient; expected one of CRF"),
        (PROBABILISTIC.replace("9:5:9", "9:9"), r"B\.layerSizes is 9:9; expected at least one hidden layer$"),
        (f"{PROBABILISTIC}\nlookupTableOrder=1", "9:5:9; expected at least one hidden layer above the lookup table"),
        (
            f"{PROBABILISTIC}\nrecurrentLayer=2",
            r"B\.recurrentLayer is 2, layerSizes 9:5:9; expected a hidden layer, 1 to 1",
        ),
        (f"{PROBABILISTIC}\nmaOrder=2", r"B\.maOrder has no meaning for rnnType NPLM; expected rnnType LBLM with it"),
        (
            NOISE.replace("noise_number=2", ""),
            r"B\.noise_number is not set, in this or an enclosing block; expected noise_number=...",
        ),
        (NOISE.replace("noise_number=2", "noise_number=10"), r"B\.noise_number is 10; expected 1 to 9"),
        (f"{NOISE}\nvocabSize=8", r"B\.vocabSize is 8; expected 9, the last of layerSizes"),
        (
            f"{NOISE}\ndirectConnect=3",
            r"B\.directConnect is 3, layerSizes 9:4:5:9; expected hidden layers, 1 to 2, each",
        ),
        (f"{NOISE}\ndirectConnect=1:1", "expected hidden layers, 1 to 2, each once"),
        (f"{NOISE}\nneedPrior=true", "needPrior is true; expected false: labels with noise words have no prior"),
        (f"{NOISE}\nnceEvalMode=some", r"B\.nceEvalMode is 'some'; expected softmax or unnormalized or none"),
        (
            f"{NOISE}\ntrainingCriterion=CrossEntropy",
            "CrossEntropy, which is for another rnnType; expected one of Noise",
        ),
        (
            f"{CLASS_LM}\ntrainingCriterion=noiseContrastiveEstimation",
            "noiseContrastiveEstimation, which is for rnnType NCELSTM",
        ),
        ("rnnType=NCELSTM\nlayerSizes=9:9\nnoise_number=1", "layerSizes is 9:9; expected at least one hidden layer"),
        (f"{CONDITIONAL}\nauxfeatdim=0", r"B\.auxfeatdim is 0; expected at least 1"),
        (f"{CLASS_LSTM}\nauxfeatdim=2", r"B\.auxfeatdim has no meaning for rnnType CLASSLSTM; expected rnnType CLSTM"),
        (
            "rnnType=LSTMENCODER\nlayerSizes=9:5:9\nneedPrior=true",
            "needPrior is true; expected false: an encoder has no",
        ),
        (
            "rnnType=LSTMENCODER\nlayerSizes=9:5\nlookupTableOrder=1",
            "layerSizes 9:5; expected layerSizes with a multiple",
        ),
        ("rnnType=LSTMENCODER\nlayerSizes=9:5\nnbrClass=3", "nbrClass has no meaning for rnnType LSTMENCODER"),
        ("rnnType=AlignmentSimilarityGenerator\nlayerSizes=9:5:9", "not built .alignment networks"),
        ("rnnType=BIDIRECTIONALLSTMWITHPASTPREDICTION\nlayerSizes=9:5:9", "see macro BLSTM of NDL"),
        ("rnnType=GRU\nlayerSizes=9:5:9", "rnnType GRU: unknown; expected one of SIMPLENET"),
    ],
)
def test_faults_of_the_block(text, message):
    with pytest.raises(ConfigError, match=message):
        build(text)
