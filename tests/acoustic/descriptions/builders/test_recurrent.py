"""SimpleNetworkBuilder, rnnType SIMPLERNN and LSTM: the tool's names, the book's formulas, options and faults."""

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import build_simple_network, simple_network_options
from acoustic.network.editing import rename
from readers.config.config import Config
from readers.errors import ConfigError
from tests.acoustic.recurrence.recurrent_networks import (
    check_numerically,
    check_parallel_is_the_sum,
    data,
    randomise,
    values,
    whole,
)


def build(text, precision="double"):
    options = simple_network_options(Config.from_text(f"B=[\n{text}\n]", "net.cntk").block("B"))
    return build_simple_network(options, precision)


def shapes(network):
    return {node.name: node.value.shape for node in network.parameters()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def outputs(network, xs):
    """The node `outputs` for one sequence."""
    matrices, layout = whole([xs], [np.zeros((3, xs.shape[1]))])
    return values(network, "outputs", [({"features": matrices["x"]}, layout)])


def test_lstm_has_the_tools_names():
    network = build(
        "layerSizes=4:5:6:7:3\nrnnType=LSTM\nrecurrentLayer=1:3\nneedPrior=true\nevalCriterion=ErrorPrediction"
    )
    lstm = {f"{kind}{gate}": (5, 4 if kind == "WX" else 5) for kind in ("WX", "WH") for gate in "IFOC"}
    expected = {f"{name}0": shape for name, shape in lstm.items()}
    expected |= {f"{name}0": (5, 1) for name in ("WCI", "WCF", "WCO", "bi", "bf", "bc", "bo")}
    expected |= {"U1": (6, 5), "B1": (6, 1), "WXI2": (7, 6), "WHO2": (7, 7), "WCF2": (7, 1), "W3": (3, 7)}
    found = shapes(network)
    assert {name: found.get(name) for name in expected} == expected
    assert len(found) == 15 + 2 + 15 + 1
    random = [name for name in found if name.endswith("0") and name[0] == "W"]
    order = ("WXO", "WXI", "WXF", "WXC", "WHI", "WCI", "WHF", "WCF", "WHO", "WCO", "WHC")
    assert random == [f"{name}0" for name in order]  # the order in which values are drawn
    assert network.special() == {
        "features": ["features"],
        "labels": ["labels"],
        "criteria": ["CrossEntropyWithSoftmax"],
        "evaluations": ["EvalErrorPrediction"],
        "outputs": ["ScaledLogLikelihood"],
    }
    assert {"LogOfPrior", "PosteriorProb", "outputs"} <= set(network.nodes)


def test_lstm_is_its_formula():
    network = build("layerSizes=4:5:3\nrnnType=LSTM\ndefaultHiddenActivity=0.2\nrecurrentLayer=1")
    assert (network["bf0"].value == -1).all()
    assert (network["bc0"].value == 0).all()
    randomise(network)
    xs = data((6,))[0][0]
    p = {name: network[name].value for name in shapes(network)}
    h, c, expected = np.full((5, 1), 0.2), np.full((5, 1), 0.2), []
    for t in range(6):
        x = xs[:, t : t + 1]
        total = {g: p[f"WX{g.upper()}0"] @ x + p[f"b{g}0"] + p[f"WH{g.upper()}0"] @ h for g in "ifco"}
        i, f = (sigmoid(total[g] + p[f"WC{g.upper()}0"] * c) for g in "if")
        c = f * c + i * np.tanh(total["c"])
        h = sigmoid(total["o"] + p["WCO0"] * c) * np.tanh(c)
        expected.append(p["W1"] @ h)
    np.testing.assert_allclose(outputs(network, xs), np.hstack(expected), rtol=1e-12)


@pytest.mark.parametrize("gate", ["Input", "Forget", "Output"])
def test_a_constant_gate_is_one(gate):
    letter = gate[0].upper()
    settings = "layerSizes=4:5:3\nrnnType=LSTM\nlayerTypes=Tanh\n"
    with_gate, without = randomise(build(settings)), build(f"{settings}const{gate}GateValue=true")
    gone = {f"WX{letter}0", f"WH{letter}0", f"WC{letter}0", f"b{letter.lower()}0"}
    assert set(shapes(with_gate)) - set(shapes(without)) == gone
    for name in shapes(without):
        without.set_value(name, with_gate[name].value)
    for name in gone:  # tanh of something large is one
        with_gate.set_value(name, np.zeros_like(with_gate[name].value) + 100 * name.startswith("b"))
    xs = data((6,))[0][0]
    np.testing.assert_allclose(outputs(without, xs), outputs(with_gate, xs), rtol=1e-12)


def test_gates_start_where_they_are_told():
    network = build("layerSizes=4:5:3\nrnnType=LSTM\nforgetGateInitVal=2\ninputGateInitVal=-3\noutputGateInitVal=0.5")
    assert [network[name].value[0, 0] for name in ("bf0", "bi0", "bo0", "bc0")] == [2, -3, 0.5, 0]


def test_simple_rnn_has_the_tools_names_and_is_its_formula():
    network = build(
        "layerSizes=4:5:6:3\nrnnType=SIMPLERNN\nrecurrentLayer=2\nlayerTypes=Sigmoid:Tanh\nevalCriterion=ErrorPrediction"
    )
    assert shapes(network) == {"U0": (5, 4), "B0": (5, 1), "U1": (6, 5), "W1": (6, 6), "W2": (3, 6)}
    assert network.criteria == ["criterion"]
    assert network.evaluations == ["eval"]
    assert network.outputs == ["outputs"]
    randomise(network)
    xs = data((6,))[0][0]
    p = {name: network[name].value for name in shapes(network)}
    h, expected = np.full((6, 1), 0.1), []
    for t in range(6):
        h = np.tanh(p["U1"] @ sigmoid(p["U0"] @ xs[:, t : t + 1] + p["B0"]) + p["W1"] @ h)
        expected.append(p["W2"] @ h)
    np.testing.assert_allclose(outputs(network, xs), np.hstack(expected), rtol=1e-12)


def test_words_are_looked_up_below_an_lstm():
    """As the book's example of section 7.4, smaller."""
    network = build("layerSizes=12:5:6:3\nrnnType=LSTM\nrecurrentLayer=2\nlookupTableOrder=3")
    found = shapes(network)
    assert found["E0"] == (5, 4)
    assert found["WXI0"] == (6, 15)
    assert found["W2"] == (3, 6)
    assert "WXI1" not in found
    assert [one.name for one in network["LookupTable"].operands] == ["E0", "features"]


def test_the_table_s_number_may_stand_for_the_lstm_above_it():
    """As in the tool's example for class-based LSTMs, where it has no effect either."""
    text = "layerSizes=12:5:6:3\nrnnType=%s\nlookupTableOrder=3\n"
    assert shapes(build(text % "LSTM" + "recurrentLayer=1")) == shapes(build(text % "LSTM"))
    with pytest.raises(ConfigError, match="layer 1 is the lookup table; expected a hidden layer, 2 to 2"):
        build(text % "SIMPLERNN" + "recurrentLayer=1")


@pytest.mark.parametrize(
    "text",
    [
        "layerSizes=4:3:5:3\nrnnType=LSTM\nrecurrentLayer=1:2",
        "layerSizes=4:3:5:3\nrnnType=SIMPLERNN\nrecurrentLayer=1:2\nlayerTypes=Tanh",
        "layerSizes=4:3:5:3\nrnnType=LSTM\nlookupTableOrder=2",
    ],
)
def test_gradients(text):
    network = build(text)
    rename(network, {"features": "x", network.criteria[0]: "J"})  # the names of the shared helpers
    randomise(network)
    check_numerically(network, *whole(*data((5, 7, 2))))
    check_parallel_is_the_sum(network)


def test_normalisation_and_dropout_have_their_places():
    network = build(
        "layerSizes=4:5:6:3\nrnnType=LSTM\nrecurrentLayer=2\napplyMeanVarNorm=true\naddDropoutNodes=true\nsparseinput=true"
    )
    assert network["XI1"].operands[1].name == "MVNormalizedFeatures"
    assert network["XI2"].operands[1].name == "DropH1"
    assert network["outputs"].operands[1].name == "DropH2"
    assert network["RI2"].operands[1].name == "PastH2"
    assert network["PastH2"].operands[0].name == "H2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recurrentLayer=3", r"net\.cntk:3: B\.recurrentLayer is 3, layerSizes 4:3:2; expected a hidden layer, 1 to 1"),
        ("recurrentLayer=0", r"recurrentLayer is 0, .*expected a hidden layer, 1 to 1"),
        ("lookupTableOrder=2\nrecurrentLayer=1", "layer 1 is the lookup table; expected none, there is no such"),
        (
            "lookupTableOrder=3",
            "lookupTableOrder is 3, layerSizes 4:3:2; expected layerSizes with a multiple of 3 first",
        ),
        ("defaultHiddenActivity=1#INF", "defaultHiddenActivity is inf; expected a finite number"),
        ("outputGateInitVal=1#INF", "outputGateInitVal is inf; expected a finite number"),
        ("forgetGateInitVal=x", "forgetGateInitVal is 'x'"),
        (
            "trainingCriterion=classCrossEntropyWithSoftmax",
            "is for rnnType CLASSLM, CLASSLSTM and CLSTM; expected one of",
        ),
        ("streamSizes=2", "streamSizes belongs to several input streams, which is not built"),
        ("recurentLayer=1", "recurentLayer is not known here; did you mean recurrentLayer"),
    ],
)
def test_faults(text, message):
    with pytest.raises(ConfigError, match=message):
        build(f"layerSizes=4:3:2\n{text}\nrnnType=LSTM")


def test_gates_are_for_lstms():
    with pytest.raises(
        ConfigError, match="forgetGateInitVal has no meaning for rnnType SIMPLERNN; expected rnnType LSTM"
    ):
        build("layerSizes=4:3:2\nrnnType=SIMPLERNN\nforgetGateInitVal=1")
