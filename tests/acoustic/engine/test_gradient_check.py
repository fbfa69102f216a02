"""The comparison of computed with numeric gradients: it passes what is right and catches what is wrong by a little."""

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.engine.gradient_check import GradientChecker, check_gradients
from acoustic.network.network import Network
from readers.errors import ModelError

TOLERANCE = 1e-6


class TestTheCheckItself:
    """A gradient that is wrong by a little must be caught."""

    def sigmoid_network(self):
        network = Network("double", threads=1)
        network.add("Parameter", "x", rows=3, cols=4, initValueScale=20)
        network.add("Sigmoid", "y", "x")
        network.add("SumElements", "J", "y")
        return network

    def test_a_gradient_half_a_thousandth_too_large_is_caught(self, monkeypatch):
        network = self.sigmoid_network()
        assert max(c.error for c in check_gradients(network, "J", {})) < TOLERANCE
        right = network["y"].backward

        def wrong(run, grad, inputs, value, into):
            right(run, grad * 1.0005, inputs, value, into)

        monkeypatch.setattr(network["y"], "backward", wrong)
        assert max(c.error for c in check_gradients(network, "J", {})) > TOLERANCE

    def test_one_wrong_element_is_caught(self, monkeypatch):
        network = self.sigmoid_network()
        right = network["y"].backward

        def wrong(run, grad, inputs, value, into):
            right(run, grad, inputs, value, into)
            into.targets[0][2, 3] *= 1.01

        monkeypatch.setattr(network["y"], "backward", wrong)
        assert max(c.error for c in check_gradients(network, "J", {})) > TOLERANCE

    def test_numeric_gradient_by_hand(self):
        """J = sum of sigmoid(x): dJ/dx = y (1 - y)."""
        network = self.sigmoid_network()
        checker = GradientChecker(Engine(network, ["J"]), "J", {})
        y = 1 / (1 + np.exp(-network["x"].value))
        np.testing.assert_allclose(checker.numeric_gradient(network["x"]), y * (1 - y), atol=1e-8)

    def test_single_precision_is_refused(self):
        network = Network("float", threads=1)
        network.add("Parameter", "x", rows=1)
        network.add("SumElements", "J", "x")
        with pytest.raises(ModelError, match="expected precision=double"):
            check_gradients(network, "J", {})
