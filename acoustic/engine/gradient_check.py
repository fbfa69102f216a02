"""Comparison of computed gradients with numeric ones (CNTK book, eq. 2.5).

With J the criterion, w a parameter and d a random direction of its shape, the slope along d,

    (J(w + e d) - J(w - e d)) / 2 e,

is compared with the inner product of d and the computed gradient. A random direction involves every element, so that it
reveals an error in any of them; `numeric_gradient` goes element by element.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acoustic.engine.engine import Engine
from acoustic.engine.forward_mode import jacobian_vector_product
from acoustic.engine.pair_engine import AnyEngine
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from readers.errors import ModelError

EPSILON = 1e-4


@dataclass(frozen=True)
class GradientComparison:
    """The slope of the criterion along a direction of one parameter, computed in two ways.

    Attributes
    ----------
    parameter : str
        Name of the node.
    computed : float
        Slope by reverse mode.
    numeric : float
        Slope by differences, or by forward mode.
    """

    parameter: str
    computed: float
    numeric: float

    @property
    def error(self) -> float:
        """The difference relative to the larger slope, or to 1 if both are smaller."""
        return abs(self.computed - self.numeric) / max(1.0, abs(self.computed), abs(self.numeric))


class GradientChecker:
    """Evaluates a criterion of a double-precision network at changed parameters, whose values it restores.

    settings: further arguments of Engine.forward (dropout_rate, seed). Raises ModelError for a network in single
    precision, whose rounding errors are as large as the differences.
    """

    def __init__(self, engine: AnyEngine, criterion: str, matrices: Mapping[str, Any], **settings: Any) -> None:
        if engine.backend.precision != "double":
            raise ModelError("gradient check of a network in single precision; expected precision=double")
        self.engine, self.criterion, self.matrices, self.settings = engine, criterion, matrices, settings

    def criterion_value(self) -> float:
        self.engine.forward(self.matrices, training=True, criterion=self.criterion, **self.settings)
        return float(self.engine.value(self.criterion)[0, 0])

    def gradients(self) -> dict[str, np.ndarray]:
        """The computed gradients of all parameters, copied to the host."""
        self.criterion_value()
        self.engine.backward(self.criterion)
        to_host = self.engine.backend.to_host
        return {node.name: np.array(to_host(self.engine.gradient(node.name))) for node in self.learnable()}

    def learnable(self) -> list[Node]:
        """The parameters below the criterion that training changes."""
        return self.engine.learnable(self.criterion)

    def slope(self, node: Node, direction: np.ndarray, epsilon: float = EPSILON) -> float:
        """(J(w + e d) - J(w - e d)) / 2 e for a parameter w and a direction d of its shape."""
        after, before = self._values_at(node, direction, (epsilon, -epsilon))
        return (after - before) / (2 * epsilon)

    def slope_of_side(self, node: Node, direction: np.ndarray, epsilon: float) -> float:
        """The slope from the values at w, w + e d and w + 2 e d only, of the same order of accuracy as `slope`.

        epsilon may be negative, for the other side.
        """
        start, near, far = self._values_at(node, direction, (0.0, epsilon, 2 * epsilon))
        return (4 * near - far - 3 * start) / (2 * epsilon)

    def _values_at(self, node: Node, direction: np.ndarray, steps: Sequence[float]) -> list[float]:
        """The criterion at w + s d for each step s."""
        original, unit = node.value, self.engine.backend.asarray(direction)
        try:
            values = []
            for step in steps:
                node.value = self.engine.backend.asarray(original + step * unit)
                values.append(self.criterion_value())
        finally:
            node.value = original
        return values

    def numeric_gradient(self, node: Node, epsilon: float = EPSILON) -> np.ndarray:
        """Eq. 2.5 for every element of a parameter, (rows, cols)."""
        gradient = np.zeros(node.value.shape, order="F")
        for index in np.ndindex(*gradient.shape):
            direction = np.zeros_like(gradient)
            direction[index] = 1
            gradient[index] = self.slope(node, direction, epsilon)
        return gradient


def check_gradients(
    network: Network,
    criterion: str,
    matrices: Mapping[str, Any],
    *,
    rng: np.random.Generator | None = None,
    epsilon: float = EPSILON,
    engine: Engine | None = None,
    **settings: Any,
) -> Sequence[GradientComparison]:
    """Compare computed and numeric slopes of a criterion along a random direction of every parameter below it.

    Parameters
    ----------
    network : Network
        In double precision.
    criterion : str
    matrices : mapping of str to array (rows, T)
        Values of the inputs.
    rng : numpy.random.Generator, optional
        Draws the directions.
    epsilon : float
        Step size of the differences.
    engine : Engine, optional
        The engine to check; by default a new one.
    **settings
        Further arguments of Engine.forward.

    Returns
    -------
    sequence of GradientComparison
        One for each parameter.

    Raises
    ------
    ModelError
        For a network in single precision.

    References
    ----------
    CNTK book, eq. 2.5.
    """
    checker = GradientChecker(engine or Engine(network, [criterion]), criterion, matrices, **settings)
    rng = rng or np.random.default_rng(0)
    gradients = checker.gradients()
    comparisons = []
    for node in checker.learnable():
        direction = np.asfortranarray(rng.standard_normal(node.value.shape))
        computed = float(np.vdot(direction, gradients[node.name]))
        comparisons.append(GradientComparison(node.name, computed, checker.slope(node, direction, epsilon)))
    return comparisons


def compare_with_forward_mode(
    network: Network,
    criterion: str,
    matrices: Mapping[str, Any],
    *,
    rng: np.random.Generator | None = None,
    **settings: Any,
) -> Sequence[GradientComparison]:
    """Compare slopes by reverse mode with those by forward mode, which are exact but for rounding.

    In double precision the two agree to ten digits or more.

    Parameters
    ----------
    network, criterion, matrices, rng, **settings
        See check_gradients.

    Returns
    -------
    sequence of GradientComparison
        One for each parameter; `numeric` is the slope by forward mode.

    Raises
    ------
    ModelError
        If a node below the criterion has no derivative.
    """
    rng = rng or np.random.default_rng(0)
    engine = Engine(network, [criterion])
    engine.forward(matrices, training=True, criterion=criterion, **settings)
    engine.backward(criterion)
    comparisons = []
    for node in engine.graph.order:
        if node.needs_gradient:
            direction = engine.backend.asarray(rng.standard_normal(node.value.shape))
            computed = float((engine.gradient(node.name) * direction).sum())
            dual = jacobian_vector_product(network, [criterion], matrices, {node.name: direction}, **settings)
            comparisons.append(GradientComparison(node.name, computed, float(dual[criterion].tangent[0, 0])))
    return comparisons
