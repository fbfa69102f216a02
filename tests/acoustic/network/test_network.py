"""Building networks: names, types, options, initial values, special lists; statistics gathered before training."""

import contextlib

import numpy as np
import pytest

from acoustic.kernels.backend import Backend
from acoustic.network.network import Network
from acoustic.nodes.base import Node, Shape, register_node
from acoustic.nodes.registry import node_class
from acoustic.training.procedures.precompute import precompute
from readers.errors import ConfigError, ModelError, ShapeError


@pytest.mark.parametrize(
    ("given", "expected"),
    [("times", "Times"), ("INPUT", "InputValue"), ("relu", "RectifiedLinear"), ("CEWithSM", "CrossEntropyWithSoftmax")],
)
def test_names_and_aliases_in_any_case(given, expected):
    assert node_class(given).type_name == expected


def test_unknown_type_names_the_nearest():
    with pytest.raises(ModelError, match="unknown node type 'Sigmod'; did you mean Sigmoid"):
        node_class("Sigmod")
    with pytest.raises(ModelError, match=r"unknown node type 'qqqq'; known: .*InputValue, Input, .*ErrorPrediction"):
        node_class("qqqq")


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="node type 'tanh' is already Tanh"):

        @register_node("Another", "tanh")
        class Another(Node):
            pass

    with pytest.raises(ModelError, match="unknown node type 'Another'"):
        node_class("Another")


def test_shapes_follow_from_operands_and_frames():
    network = Network()
    network.add("Input", "x", rows=429)
    network.add("Parameter", "W", rows=512, cols=429)
    assert network.shapes["x"] == Shape(429, None)
    network.add("Times", "Wx", "W", "x")
    assert str(network.shapes["Wx"]) == "512x*"
    network.add("SumElements", "J", "Wx")
    assert network.shapes["J"] == (1, 1)
    assert "Wx = Times(W, x) [512x*]" in list(network.describe())


@pytest.mark.parametrize(
    ("type_name", "options", "message"),
    [
        (
            "Parameter",
            {"rows": 2, "colums": 3},
            r"node 'p' \(LearnableParameter\): unknown option 'colums'; did you mean cols",
        ),
        ("Parameter", {"rows": "two"}, "rows='two'; expected int"),
        ("Parameter", {"rows": 2.5}, r"rows=2\.5; expected int"),
        ("Parameter", {"rows": 2, "needGradient": "maybe"}, "needGradient='maybe'; expected bool"),
        (
            "Parameter",
            {"rows": 2, "init": "bilinear"},
            "init='bilinear'; expected one of uniform, gaussian, fanIn, heNormal, fixedValue, fromFile, zero",
        ),
        ("Parameter", {}, "option 'rows' is missing; expected int"),
        ("Constant", {"rows": 2}, "option 'value' is missing; expected float"),
    ],
)
def test_faults_of_options(type_name, options, message):
    with pytest.raises(ModelError, match=message):
        Network().add(type_name, "p", **options)


def test_options_as_text_and_under_other_names():
    node = Network().add("Parameter", "p", ROWS="2", cols="3", computeGradient="FALSE", init="FIXEDVALUE", value="0.5")
    assert node.settings["rows"] == 2
    assert not node.needs_gradient
    np.testing.assert_array_equal(node.value, np.full((2, 3), 0.5))


def test_names_are_found_in_any_case_unless_two_differ_in_it_only():
    network = Network()
    node = network.add("Parameter", "W0", rows=2)
    assert network["w0"] is network["W0"] is node
    other = network.add("Parameter", "w0", rows=2)
    assert (network["W0"], network["w0"]) == (node, other)
    network.add("Parameter", "Bias", rows=2)
    network.add("Parameter", "bias", rows=2)
    with pytest.raises(ModelError, match="node 'BIAS': not in the network; did you mean"):
        network["BIAS"]


def test_faults_of_names_and_operands():
    network, other = Network(), Network()
    network.add("Parameter", "W0", rows=2)
    with pytest.raises(ModelError, match=r"node 'W0' \(LearnableParameter\): already in the network"):
        network.add("Parameter", "W0", rows=2)
    with pytest.raises(ModelError, match="node 'W1': not in the network; did you mean W0"):
        network.add("Sigmoid", "s", "W1")
    with pytest.raises(ModelError, match="operand 'x' is not of this network"):
        network.add("Sigmoid", "s", other.add("Parameter", "x", rows=1))
    with pytest.raises(ShapeError, match="shape 0x1; expected at least one row"):
        network.add("Parameter", "none", rows=0)


def test_initial_values():
    network = Network("double", seed=3)
    uniform = network.add("Parameter", "u", rows=200, cols=300, init="uniform", initValueScale=2).value
    gaussian = network.add("Parameter", "g", rows=300, cols=400, init="gaussian", initValueScale=0.5).value
    assert uniform.flags.f_contiguous
    assert np.abs(uniform).max() == pytest.approx(0.1, rel=1e-3)
    assert abs(uniform.mean()) < 1e-3
    assert gaussian.std() == pytest.approx(0.2 * 0.5 / np.sqrt(400), rel=0.02)
    np.testing.assert_array_equal(network.add("Constant", "c", value=2, rows=3, cols=2).value, np.full((3, 2), 2.0))
    assert not network.add("Parameter", "b", rows=4, init="fixedValue").value.any()


def test_initial_values_follow_the_seed_and_the_order_of_random_parameters_alone():
    def values(seed, extra):
        network = Network("double", seed=seed)
        first = network.add("Parameter", "first", rows=2, cols=2).value
        if extra:
            network.add("Parameter", "b", rows=2, init="fixedValue")
        return first, network.add("Parameter", "second", rows=2, cols=2).value

    one, again, other = values(1, False), values(1, True), values(2, False)
    np.testing.assert_array_equal(one[0], again[0])
    np.testing.assert_array_equal(one[1], again[1])
    assert (one[0] != one[1]).all()
    assert (one[0] != other[0]).all()


def test_initial_value_from_a_file(tmp_path):
    path = tmp_path / "W.txt"
    path.write_text("1 2 3\n\n4\t5 6\n")
    node = Network().add("Parameter", "W", rows=2, cols=3, init="fromFile", initFromFilePath=path)
    np.testing.assert_array_equal(node.value, [[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ModelError, match=r"W.txt: 2x3 matrix; node 'V' \(LearnableParameter\) expects 3x2"):
        Network().add("Parameter", "V", rows=3, cols=2, init="fromFile", initFromFilePath=path)
    path.write_text("1 2 x\n")
    with pytest.raises(ModelError, match=r"W.txt: .*expected a text matrix"):
        Network().add("Parameter", "W", rows=1, cols=3, init="fromFile", initFromFilePath=path)


def test_values_that_are_set_must_fit():
    network = Network()
    network.add("Parameter", "W", rows=2, cols=3)
    network.add("Sigmoid", "s", "W")
    with pytest.raises(ShapeError, match=r"node 'W' \(LearnableParameter\): value is 3x2; expected 2x3"):
        network.set_value("W", np.zeros((3, 2)))
    with pytest.raises(ModelError, match=r"node 's' \(Sigmoid\): is computed; expected a parameter"):
        network.set_value("s", np.zeros((2, 3)))
    network.set_value("W", np.arange(6.0).reshape(2, 3))
    assert network["W"].value.dtype == np.float32
    assert network["W"].value.flags.f_contiguous


def test_tags_and_special_lists():
    network = Network()
    network.add("Input", "x", rows=2, tag="feature")
    network.add("Input", "y", rows=2, tag="Label")
    network.add("SquareError", "J", "x", "y")
    network.criteria.append("J")
    assert (network.features, network.labels) == (["x"], ["y"])
    network.validate()
    network.features.append("J")
    with pytest.raises(ModelError, match=r"node 'J' \(SquareError\): is among the features; expected an InputValue"):
        network.validate()
    network.features.remove("J")
    network.evaluations.append("x")
    with pytest.raises(ShapeError, match=r"node 'x' \(InputValue\): 2x\*, among the evaluations; expected 1x1"):
        network.validate()


def test_count_of_parameters_leaves_out_frozen_ones():
    network = Network()
    network.add("Parameter", "W", rows=2, cols=3)
    network.add("Parameter", "V", rows=5, cols=1, needGradient=False)
    network.add("Constant", "c", value=1)
    assert network.num_parameters() == 6
    assert [node.name for node in network.parameters()] == ["W", "V"]


@pytest.mark.parametrize(
    ("precision", "device"), [("half", "cpu"), ("float", "tpu"), ("float", "gpu:x"), ("float", "cpu:1")]
)
def test_unknown_precision_or_device(precision, device):
    with pytest.raises(ConfigError, match="; expected"):
        Backend(precision, device)


# ---- statistics


def normalised(rows=3):
    """Normalised features, and the deviation of these: a statistic of other statistics."""
    network = Network("double", threads=1)
    network.add("Input", "x", rows=rows)
    network.add("Mean", "m", "x")
    network.add("InvStdDev", "s", "x")
    network.add("PerDimMVNorm", "n", "x", "m", "s")
    network.add("Mean", "mean of n", "n")
    network.add("InvStdDev", "deviation of n", "n")
    return network


@pytest.mark.parametrize("seed", range(3))
def test_statistics_of_the_whole_set(seed):
    """Against numpy over all columns at once, however they are cut up; far from 0, where sums lose digits."""
    rng = np.random.default_rng(seed)
    data = 100 + rng.normal(size=(3, 500)) * [[1], [5], [0.1]]
    cuts = np.sort(rng.integers(1, 500, 7))
    passes = []

    def sweep():
        passes.append(1)
        return ({"x": np.asfortranarray(part)} for part in np.split(data, cuts, axis=1) if part.size)

    network, seen = normalised(), []
    names = precompute(network, sweep, progress=seen.append)
    assert names == ["m", "s", "mean of n", "deviation of n"]
    assert len(passes) == 2
    assert seen[-1] == 500
    np.testing.assert_allclose(network["m"].value[:, 0], data.mean(axis=1))
    np.testing.assert_allclose(network["s"].value[:, 0], 1 / data.std(axis=1), rtol=1e-9)
    np.testing.assert_allclose(network["mean of n"].value, 0, atol=1e-9)
    np.testing.assert_allclose(network["deviation of n"].value, 1, rtol=1e-9)
    assert precompute(network, lambda: pytest.fail("everything is known")) == []


def test_statistics_of_no_data():
    with pytest.raises(ModelError, match=r"node 'm' \(Mean\): the training data hold no frame"):
        precompute(normalised(), lambda: iter(()))


@pytest.mark.filterwarnings("error")
def test_values_that_the_precision_does_not_hold_are_refused():
    for precision in ("double", "float"):
        network = Network(precision)
        refused = pytest.raises(
            ModelError, match=r"'[wv]' .*: values beyond the range of float; expected smaller ones, or"
        )
        with contextlib.nullcontext() if precision == "double" else refused:
            network.add("Parameter", "w", rows=2, init="fixedValue", value=1e300)
        network.add("Parameter", "v", rows=2)
        with contextlib.nullcontext() if precision == "double" else refused:
            network.set_value("v", np.full((2, 1), -1e300))
        network.set_value("v", np.full((2, 1), np.inf))
