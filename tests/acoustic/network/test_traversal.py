"""The orders of book Algorithms 2.2, 2.4 and 2.5 on graphs small enough to order by hand."""

import pytest

from acoustic.engine.gradient_check import check_gradients
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order, gradient_order, need_gradient
from readers.errors import ModelError


def names(nodes):
    return [node.name for node in nodes]


def test_forward_order_visits_operands_first_and_once():
    """A diamond: d uses c and b, which both use a.  Depth first, in the order of the operands (Algorithm 2.2)."""
    network = Network("double", threads=1)
    network.add("Parameter", "a", rows=1)
    network.add("Sigmoid", "b", "a")
    network.add("Tanh", "c", "a")
    network.add("Plus", "d", "c", "b")
    assert names(forward_order([network["d"]])) == ["a", "c", "b", "d"]
    assert names(forward_order([network["b"], network["d"], network["b"]])) == ["a", "b", "c", "d"]


def test_order_of_a_very_deep_network_needs_no_recursion():
    network = Network("double", threads=1)
    top = network.add("Parameter", "x", rows=1)
    for k in range(3000):
        top = network.add("Negate", f"n{k}", top)
    criterion = network.add("SumElements", "J", top)
    order = forward_order([criterion])
    assert len(order) == 3002
    assert len(gradient_order(criterion, need_gradient(order))) == 3001


def test_a_loop_is_reported_as_a_path():
    network = Network("double", threads=1)
    network.add("Parameter", "x", rows=2)
    network.add("Sigmoid", "a", "x")
    network.add("Tanh", "b", "a")
    network.add("Negate", "c", "b")
    network["a"].operands[0] = network["c"]
    with pytest.raises(ModelError, match="node 'a': is its own operand: a <- c <- b <- a; expected no loop"):
        network.validate()


def test_operands_of_a_computed_statistic_are_not_visited():
    network = Network("double", threads=1)
    network.add("Input", "x", rows=2)
    network.add("Mean", "m", network.add("Exp", "e", "x"))
    network.add("Log", "l", "m")
    assert names(forward_order([network["l"]])) == ["m", "l"]
    assert names(forward_order([network["l"]], children=lambda node: node.operands)) == ["x", "e", "m", "l"]


def test_gradient_order_takes_a_node_after_all_its_users():
    """J = sum(a*b + b): b's gradient waits for both of its users (Algorithm 2.4)."""
    network = Network("double", threads=1)
    network.add("Parameter", "x", rows=2)
    network.add("Sigmoid", "b", "x")
    network.add("ElementTimes", "product", "x", "b")
    network.add("Plus", "total", "product", "b")
    criterion = network.add("SumElements", "J", "total")
    order = names(gradient_order(criterion, need_gradient(forward_order([criterion]))))
    assert order == ["J", "total", "product", "b"]
    assert max(c.error for c in check_gradients(network, "J", {})) < 1e-6


def test_need_gradient_stops_at_inputs_and_frozen_parameters():
    """Algorithm 2.5: needed upwards from a parameter that learns, nowhere else."""
    network = Network("double", threads=1)
    network.add("Input", "x", rows=3)
    network.add("Parameter", "W0", rows=2, cols=3, needGradient=False)
    network.add("Times", "h", "W0", "x")
    network.add("Parameter", "W1", rows=2, cols=2)
    network.add("Times", "y", "W1", "h")
    order = forward_order([network["y"]])
    assert need_gradient(order) == {"W1", "y"}
    assert names(gradient_order(network["y"], need_gradient(order))) == ["y"]
    assert gradient_order(network["h"], need_gradient(order)) == []
