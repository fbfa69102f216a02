"""Gradient checks of single elements: what they find and what they say."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.nodes.elementwise import Tanh
from acoustic.runtime.engine_options import EngineOptions
from acoustic.training.procedures.gradient_test import GradientCheck, ParameterCheck, check_elements, report_lines
from readers.errors import ModelError


def example(precision: str = "double"):
    """(engine, criterion, matrices) of a small network with squared error."""
    network = Network(precision, seed=3)
    network.add("InputValue", "x", rows=3)
    network.add("InputValue", "t", rows=2)
    network.add("LearnableParameter", "W", rows=2, cols=3, initValueScale=10)
    network.add("LearnableParameter", "b", rows=2, initValueScale=10)
    network.add("LearnableParameter", "frozen", rows=2, needGradient=False)
    network.add("Plus", "z", network.add("Times", "Wx", "W", "x"), "b")
    network.add("Plus", "y", network.add("Tanh", "h", "z"), "frozen")
    network.add("SquareError", "error", "t", "y")
    rng = np.random.default_rng(0)
    matrices = {name: np.asfortranarray(rng.normal(size=(rows, 5))) for name, rows in (("x", 3), ("t", 2))}
    return Engine(network, ["error"]), "error", matrices


def test_every_parameter_is_compared_and_keeps_its_value():
    engine, criterion, matrices = example()
    before = {node.name: node.value.copy() for node in engine.network.parameters()}
    checks = check_elements(engine, criterion, matrices, num_samples=4)
    assert [(check.name, check.shape, check.num_samples) for check in checks] == [("W", (2, 3), 4), ("b", (2, 1), 2)]
    assert all(check.agrees(6) and check.error < 1e-7 for check in checks)
    for name, value in before.items():
        np.testing.assert_array_equal(engine.network[name].value, value)


def test_parameters_that_the_criterion_does_not_reach_are_left_alone():
    engine, criterion, matrices = example()
    network = engine.network
    network.add("SumElements", "other", network.add("Times", "Ux", network.add("Parameter", "U", rows=2, cols=3), "x"))
    checks = check_elements(Engine(network, [criterion, "other"]), criterion, matrices, num_samples=2)
    assert [check.name for check in checks] == ["W", "b"]


def test_a_wrong_gradient_is_found_and_named(monkeypatch):
    monkeypatch.setattr(Tanh, "backward", lambda self, run, grad, inputs, value, into: into.add_matrix(0, grad))
    network = example()[0].network
    engine = Engine(network, ["error"], options=EngineOptions(fusion=False))
    _, criterion, matrices = example()
    checks = check_elements(engine, criterion, matrices)
    assert not any(check.agrees(2) for check in checks)
    lines = report_lines(checks, 6)
    assert lines[0].split() == ["parameter", "size", "elements", "error", "computed", "numeric"]
    assert all(line.endswith("  differs") for line in lines[1:])
    shown = []
    with pytest.raises(ModelError, match=r"gradient check: parameter '[Wb]', element \d,\d: computed .*; expected 6"):
        GradientCheck(engine, criterion, 6, shown.append)(matrices)
    assert not shown


def test_a_derivative_that_is_no_number_does_not_agree():
    assert not ParameterCheck("w", (1, 1), 1, float("nan"), (0, 0), float("nan"), 1.0).agrees(1)
    engine, criterion, matrices = example()
    engine.network["b"].value[0, 0] = np.nan
    assert not any(check.agrees(1) for check in check_elements(engine, criterion, matrices))


def test_single_precision_is_refused():
    engine, criterion, matrices = example("float")
    with pytest.raises(ModelError, match="expected precision=double"):
        GradientCheck(engine, criterion, 6, print)
    with pytest.raises(ModelError, match="expected precision=double"):
        check_elements(engine, criterion, matrices)


def test_small_derivatives_of_a_large_criterion_are_held_to_the_digits_that_rounding_leaves():
    engine, criterion, matrices = example()
    matrices["x"] *= 1e-7
    matrices["t"] *= 1e4
    weights, biases = check_elements(engine, criterion, matrices)
    assert abs(weights.computed - weights.numeric) > 1e-6 * abs(weights.computed)
    assert weights.agrees(6)
    assert biases.agrees(6)
    assert report_lines([weights], 6)[1].endswith("  rounding")


def near_kinks():
    """J = sum of relu(x) + |x| + relu(3e-5 - x), for x of which some are nearer to a kink than the step."""
    network = Network("double", threads=1)
    x = network.add("Parameter", "x", rows=6)
    x.value[:, 0] = 2e-5, -3e-5, 7e-5, 1.5e-4, 1, -1
    network.add("RectifiedLinear", "up", "x")
    network.add("Plus", "above", network.add("Constant", "c", rows=6, value=3e-5), network.add("Negate", "minus", "x"))
    network.add("RectifiedLinear", "down", "above")
    network.add("SumElements", "sum", network.add("Plus", "both", "up", "down"))
    network.add("Plus", "J", "sum", network.add("MatrixL1Reg", "l1", "x"))
    return network


def test_kinks_are_no_errors():
    network = near_kinks()
    (check,) = check_elements(Engine(network, ["J"]), "J", {})
    assert check.num_kinks == 3
    assert check.agrees(6)
    assert report_lines([check], 6)[1].endswith("  3 at a kink")


@pytest.mark.parametrize("node", ["up", "down", "l1"])
def test_wrong_gradients_at_kinks_are_errors(node, monkeypatch):
    network = near_kinks()
    right = network[node].backward

    def wrong(run, grad, inputs, value, into):
        right(run, grad * 1.00001, inputs, value, into)

    monkeypatch.setattr(network[node], "backward", wrong)
    (check,) = check_elements(Engine(network, ["J"]), "J", {})
    assert not check.agrees(6)
