"""SimpleNetworkBuilder: names and order of the nodes as the tool gives them, initial values, faults."""

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network, simple_network_options
from acoustic.engine.engine import Engine
from readers.config.config import Config
from readers.errors import ConfigError


def options_of(text: str) -> SimpleNetworkOptions:
    return simple_network_options(Config.from_text(f"B=[\n{text}\n]", "net.cntk").block("B"))


def describe(network) -> list[str]:
    return [f"{n.name}={n.type_name}({','.join(o.name for o in n.operands)})" for n in network.nodes.values()]


def test_book_example_has_the_tools_node_names():
    network = build_simple_network(
        options_of(
            """layerSizes=8:6*2:3
            trainingCriterion=CrossEntropyWithSoftmax
            evalCriterion=ErrorPrediction
            layerTypes=Sigmoid
            initValueScale=1.0
            applyMeanVarNorm=true
            uniformInit=true
            needPrior=true"""
        )
    )
    assert describe(network) == [
        "features=InputValue()",
        "MeanOfFeatures=Mean(features)",
        "InvStdOfFeatures=InvStdDev(features)",
        "MVNormalizedFeatures=PerDimMeanVarNormalization(features,MeanOfFeatures,InvStdOfFeatures)",
        "W0=LearnableParameter()",
        "B0=LearnableParameter()",
        "W0*features=Times(W0,MVNormalizedFeatures)",
        "W0*features+B0=Plus(W0*features,B0)",
        "H1=Sigmoid(W0*features+B0)",
        "W1=LearnableParameter()",
        "B1=LearnableParameter()",
        "W1*H1=Times(W1,H1)",
        "W1*H1+B1=Plus(W1*H1,B1)",
        "H2=Sigmoid(W1*H1+B1)",
        "W2=LearnableParameter()",
        "B2=LearnableParameter()",
        "W2*H1=Times(W2,H2)",  # the tool's slip: it is H2 that is multiplied
        "HLast=Plus(W2*H1,B2)",
        "labels=InputValue()",
        "PosteriorProb=Softmax(HLast)",
        "CrossEntropyWithSoftmax=CrossEntropyWithSoftmax(labels,HLast)",
        "EvalErrorPrediction=ErrorPrediction(labels,HLast)",
        "Prior=Mean(labels)",
        "LogOfPrior=Log(Prior)",
        "ScaledLogLikelihood=Minus(HLast,LogOfPrior)",
    ]
    assert network.special() == {
        "features": ["features"],
        "labels": ["labels"],
        "criteria": ["CrossEntropyWithSoftmax"],
        "evaluations": ["EvalErrorPrediction"],
        "outputs": ["ScaledLogLikelihood"],
    }
    assert network["W0"].value.shape == (6, 8)
    assert network["W2"].value.shape == (3, 6)
    assert network["B1"].value.shape == (6, 1)


def test_defaults_give_the_last_layer_as_output_and_one_criterion_for_both():
    network = build_simple_network(options_of("layerSizes=4:3:2"))
    assert network.outputs == ["HLast"]
    assert options_of("layerSizes=4:3:2\noutputLayerSize=-1") == options_of("layerSizes=4:3:2")  # as in CNTK
    assert network.criteria == network.evaluations == ["CrossEntropyWithSoftmax"]
    assert "Prior" not in network.nodes
    assert "MeanOfFeatures" not in network.nodes
    assert network["W1*H0"].operands[1].name == "H1"


def test_no_hidden_layer():
    network = build_simple_network(options_of("layerSizes=4:2"))
    assert [o.name for o in network["W0*H-1"].operands] == ["W0", "features"]
    assert network["HLast"].operands[1].name == "B0"


def test_layer_types_repeat_the_last_and_a_linear_layers_sum_is_called_h():
    network = build_simple_network(options_of("layerSizes=4:3:3:3:2\nlayerTypes=Tanh:none:rectifiedlinear"))
    assert [network[f"H{i}"].type_name for i in (1, 2, 3)] == ["Tanh", "Plus", "RectifiedLinear"]
    assert network["W2*H2"].operands[1].name == "H2"
    relu = build_simple_network(options_of("layerSizes=4:3:3:2\nlayerTypes=ReLU"))
    assert [relu[f"H{i}"].type_name for i in (1, 2)] == ["RectifiedLinear"] * 2


def test_dropout_nodes_follow_hidden_layers_and_feed_the_next():
    network = build_simple_network(options_of("layerSizes=4:3:3:2\naddDropoutNodes=true"))
    drops = [n.name for n in network.nodes.values() if n.type_name == "Dropout"]
    assert drops == ["DropH1", "DropH2"]
    assert network["W1*H1"].operands[1].name == "DropH1"
    assert network["W2*H1"].operands[1].name == "DropH2"


@pytest.mark.parametrize(
    ("criterion", "evaluation", "names"),
    [
        ("squareError", "squareerror", (["SquareError"], ["SquareError"])),
        ("crossEntropyWithSoftmax", "classificationError", (["CrossEntropyWithSoftmax"], ["EvalClassificationError"])),
        ("CrossEntropy", "SquareError", (["CrossEntropy"], ["SquareError"])),
        ("logistic", "Logistic", (["Logistic"], ["Logistic"])),
        ("SquareError", "Logistic", (["SquareError"], ["Logistic"])),
    ],
)
def test_criterion_names_of_book_and_code_in_any_case(criterion, evaluation, names):
    network = build_simple_network(
        options_of(f"layerSizes=4:3:2\ntrainingCriterion={criterion}\nevalCriterion={evaluation}")
    )
    assert (network.criteria, network.evaluations) == names


def test_cross_entropy_on_posteriors_equals_cross_entropy_with_softmax():
    rng = np.random.default_rng(5)
    matrices = {
        "features": np.asfortranarray(rng.normal(size=(4, 7))),
        "labels": np.asfortranarray(np.eye(2)[:, rng.integers(0, 2, 7)]),
    }
    values = []
    for criterion in ("CrossEntropy", "CrossEntropyWithSoftmax"):
        network = build_simple_network(SimpleNetworkOptions((4, 3, 2), training_criterion=criterion), "double")
        engine = Engine(network, [criterion])
        engine.forward(matrices)
        values.append(engine.value(criterion).item())
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_logistic_is_on_the_probability_of_each_class_alone():
    network = build_simple_network(options_of("layerSizes=4:3:2\ntrainingCriterion=Logistic\nevalCriterion=logistic"))
    assert [operand.name for operand in network["Logistic"].operands] == ["labels", "LogisticProb"]
    assert (network["LogisticProb"].type_name, network["LogisticProb"].operands[0].name) == ("Sigmoid", "HLast")


def test_lookup_table_stands_for_the_first_layer_and_is_shared_by_the_words():
    network = build_simple_network(options_of("layerSizes=12:2:5:3\nlookupTableOrder=3\nlayerTypes=Tanh"))
    assert describe(network)[:8] == [
        "features=InputValue()",
        "E0=LearnableParameter()",
        "LookupTable=LookupTable(E0,features)",
        "W1=LearnableParameter()",
        "B1=LearnableParameter()",
        "W1*LookupTable=Times(W1,LookupTable)",
        "W1*LookupTable+B1=Plus(W1*LookupTable,B1)",
        "H2=Tanh(W1*LookupTable+B1)",
    ]
    assert network["E0"].value.shape == (2, 4)
    assert network["W1"].value.shape == (5, 6)
    assert network["W2*H1"].operands[1].name == "H2"
    direct = build_simple_network(options_of("layerSizes=12:2:3\nlookupTableOrder=3"))
    assert direct["W1"].value.shape == (3, 6)
    for order in (0, 1):
        assert "E0" not in build_simple_network(options_of(f"layerSizes=12:2:3\nlookupTableOrder={order}")).nodes
        assert build_simple_network(options_of(f"layerSizes=12:3\nlookupTableOrder={order}"))["W0"].value.shape == (
            3,
            12,
        )


def test_p_norm_layers_are_normalised_and_feed_the_next():
    network = build_simple_network(options_of("layerSizes=4:3:2:5\nlayerTypes=PNorm:PNorm\npNormGroupSize=2"))
    assert describe(network)[:12] == [
        "features=InputValue()",
        "W0=LearnableParameter()",
        "B0=LearnableParameter()",
        "W0*features=Times(W0,features)",
        "W0*features+B0=Plus(W0*features,B0)",
        "PNorm1=PNorm(W0*features+B0)",
        "H1=RMSNormalization(PNorm1)",
        "W1=LearnableParameter()",
        "B1=LearnableParameter()",
        "W1*H1=Times(W1,H1)",
        "W1*H1+B1=Plus(W1*H1,B1)",
        "PNorm2=PNorm(W1*H1+B1)",
    ]
    assert [network.shapes[name].rows for name in ("W0", "H1", "W1", "H2", "HLast")] == [6, 3, 4, 2, 5]
    assert network["PNorm1"].settings == {"groupSize": 2, "p": 2.0}


def test_initial_values_by_the_fan_in_and_an_output_layer_of_zeros():
    text = "layerSizes=400:300:7\nlayerTypes=PNorm\npNormGroupSize=3\nfanInInit=true\nzeroOutputInit=true"
    network = build_simple_network(options_of(text), seed=3)
    assert network["W0"].value.std() == pytest.approx(1 / np.sqrt(400), rel=0.02)
    assert network["W0"].value.mean() == pytest.approx(0, abs=1e-3)
    assert not network["W1"].value.any()
    engine = Engine(network, ["PosteriorProb"])
    engine.forward({"features": np.ones((400, 2), np.float32, order="F")})
    np.testing.assert_allclose(engine.value("PosteriorProb"), 1 / 7, rtol=1e-6)
    assert build_simple_network(options_of(text + "\ninitValueScale=2"), seed=3)["W0"].value.std() > 0.09


def test_initial_values_follow_the_book_and_the_seed():
    uniform = build_simple_network(SimpleNetworkOptions((400, 300, 2), init_scale=2.0), seed=3)
    weights = uniform["W0"].value
    assert np.abs(weights).max() <= 0.1
    assert weights.std() == pytest.approx(0.1 / np.sqrt(3), rel=0.02)
    assert not uniform["B0"].value.any()
    gaussian = build_simple_network(SimpleNetworkOptions((400, 300, 2), uniform_init=False), seed=3)
    assert gaussian["W0"].value.std() == pytest.approx(0.2 / np.sqrt(400), rel=0.02)
    again = build_simple_network(SimpleNetworkOptions((400, 300, 2), init_scale=2.0), seed=3)
    other = build_simple_network(SimpleNetworkOptions((400, 300, 2), init_scale=2.0), seed=4)
    assert np.array_equal(weights, again["W0"].value)
    assert not np.array_equal(weights, other["W0"].value)
    assert not np.array_equal(weights[:2, :300], uniform["W1"].value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layerSizes=100", r"net\.cntk:2: B\.layerSizes is 100; expected an input and an output size"),
        ("layerSizes=4:0:2", "layerSizes is 0; expected at least 1"),
        (
            "layerSizes=4:2\nlayerTypes=Sigmod",
            r"net\.cntk:3: B\.layerTypes is Sigmod; expected one of Sigmoid",
        ),
        (
            "layerSizes=4:2\ntrainingCriterion=ClassBasedCrossEntropyWithSoftmax",
            "trainingCriterion is ClassBasedCrossEntropyWithSoftmax, which is for rnnType CLASSLM, CLASSLSTM and CLSTM",
        ),
        (
            "layerSizes=4:2\ntrainingCriterion=ErrorPrediction",
            "ErrorPrediction, which has no gradient; expected one of Cross",
        ),
        (
            "layerSizes=4:3:2\nlayerTypes=PNorm\npNormGroupSize=0",
            r"net\.cntk:4: B\.pNormGroupSize is 0; expected at least 1 unit",
        ),
        ("layerSizes=4:3:2\nlayerTypes=PNorm\npNormPower=0.5", "pNormPower is 0.5; expected at least 1"),
        ("layerSizes=4:3:2\nrnnType=LSTM\nlayerTypes=PNorm", "layerTypes is PNorm; expected one of Sigmoid"),
        (
            "layerSizes=4:3:2\nrnnType=LSTM\npNormPower=2",
            "pNormPower has no meaning for rnnType LSTM; expected rnnType",
        ),
        ("layerSizes=4:2\nevalCriterion=Accuracy", "evalCriterion is Accuracy; expected one of"),
        ("layerSizes=4:2\nrnnType=LSTN", r"net\.cntk:3: rnnType LSTN: unknown; expected one of SIMPLENET, "),
        ("layerSizes=4:2\nrnnType=DEEPRNN", "rnnType DEEPRNN: not built .deep recurrent networks"),
        (
            "layerSizes=4:2\nrecurrentLayer=1",
            "B.recurrentLayer has no meaning for rnnType SIMPLENET; expected rnnType ",
        ),
        ("layerSizes=4:2\nstreamSizes=1", "B.streamSizes belongs to several input streams, which is not built"),
        ("layerSizes=4:2\nlookupTableOrder=-1", "lookupTableOrder is -1; expected at least 0"),
        ("layerSizes=6:2\nlookupTableOrder=3", "B.lookupTableOrder is 3, layerSizes 6:2; expected layerSizes with a"),
        ("layerSizes=7:3:2\nlookupTableOrder=3", "expected layerSizes with a multiple of 3 first"),
        ("layerSizes=4:2\nneedprioor=true", r"B\.needprioor is not known here; did you mean needPrior"),
        ("needPrior=true", r"B\.layerSizes is not set"),
        ("layerSizes=4:2\noutputLayerSize=3", "outputLayerSize is 3; expected 2, the last of layerSizes"),
    ],
)
def test_faults_of_the_block(text, message):
    with pytest.raises(ConfigError, match=message):
        options_of(text)
