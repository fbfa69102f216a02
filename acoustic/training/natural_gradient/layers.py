"""Finds the layers of a network, and updates a layer from the factors of its gradient on any device and precision."""

import math
from dataclasses import dataclass
from typing import Any

from acoustic.engine.execution.gradient_sink import LayerUpdate
from acoustic.engine.planning.node_table import traits
from acoustic.kernels.arrays.elementwise import ArrayKernels
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.properties import SUM
from acoustic.training.natural_gradient.online import OnlineFisher
from acoustic.training.natural_gradient.simple import precondition
from acoustic.training.rules.natural_gradient import ONLINE, SIMPLE, NaturalGradient

RATE = "learningRateMultiplier"


@dataclass
class Step:
    """Values of one update of a layer.

    rate: learning rate per frame; keep: factor of the weights (L2 regularisation); limit: largest norm of the change.
    """

    rate: float = 0.0
    keep: float = 1.0
    limit: float = math.inf

    def scaled_rate(self, bound: float) -> float:
        """Return the rate, reduced if the change could exceed the limit; bound: of its norm at rate 1. [eq. 85]"""
        if not bound * self.rate > self.limit:
            return self.rate
        return self.limit / bound if math.isfinite(bound) else 0.0


@dataclass(frozen=True)
class LayerPlan:
    """A weight matrix and the bias added to its product, if there is one.

    input_axis: dimension of the weight that belongs to the inputs of the layer.
    """

    weight: Node
    bias: Node | None
    input_axis: int

    @property
    def dims(self) -> tuple[int, int]:
        """Rows of the outputs, and of the inputs including the constant 1 of a bias."""
        shape = self.weight.value.shape
        return shape[1 - self.input_axis], shape[self.input_axis] + (self.bias is not None)


def find_layers(network: Network) -> dict[str, LayerPlan]:
    """Return the layers by the names of their weights: learnable parameters that are multiplied with frames."""
    users: dict[str, list[Node]] = {}
    for node in network.nodes.values():
        for operand in node.operands:
            users.setdefault(operand.name, []).append(node)
    plans = {}
    for weight in network.parameters():
        products = [
            (node, k)
            for node in users.get(weight.name, ())
            for k in traits(node).layer_inputs
            if node.operands[k] is weight and not node.operands[1 - k].is_stored
        ]
        if weight.needs_gradient and products:
            node, k = products[0]
            bias = _bias_of(network, weight, node, users) if len(products) == 1 else None
            plans[weight.name] = LayerPlan(weight, bias, traits(node).layer_inputs[k])
    return plans


def _bias_of(network: Network, weight: Node, product: Node, users: dict[str, list[Node]]) -> Node | None:
    """Return the learnable column whose only use is to be added to the product, if the product has no other use."""
    above = users.get(product.name, ())
    roots = {*network.criteria, *network.evaluations, *network.outputs}
    if len(above) != 1 or not above[0].has(SUM) or product.name in roots:
        return None
    for bias, addend in (above[0].operands, above[0].operands[::-1]):
        if addend is not product or not bias.is_stored or not bias.needs_gradient or len(users[bias.name]) != 1:
            continue
        fits = tuple(network.shapes[bias.name]) == (network.shapes[product.name].rows, 1)
        if fits and bias.settings[RATE] == weight.settings[RATE] and bias.name not in roots:
            return bias
    return None


class ArrayLayer(LayerUpdate):
    """Update of a layer in array operations.

    fishers: the Fisher factors of the sides "output" and "input"; empty if they are not estimated over minibatches.
    """

    def __init__(self, xp: Any, dtype: Any, plan: LayerPlan, rule: NaturalGradient) -> None:
        self.xp = xp
        self.plan = plan
        self.rule = rule
        sides = zip(("output", "input"), plan.dims, (rule.rank_out, rule.rank_in))
        self.fishers = {side: OnlineFisher(xp, dtype, dim, rank, rule) for side, dim, rank in sides}
        if rule.method != ONLINE:
            self.fishers.clear()
        self.step = Step()
        self.bias = None if plan.bias is None else plan.bias.name

    def tensors(self) -> dict[str, Any]:
        """Return the matrices kept between minibatches, by name."""
        return {
            f"{side} Fisher {name}": matrix
            for side, fisher in self.fishers.items()
            for name, matrix in (("factor", fisher.w), ("scales", fisher.scales))
        }

    def update(self, a: Any, b: Any, worker: int, count: int) -> None:
        if worker == 0:
            self._update(a, b)

    def _update(self, a: Any, b: Any) -> None:
        xp = self.xp
        weight = self.plan.weight.value
        bias = self.plan.bias
        x, layer_inputs = (a, b) if self.plan.input_axis == 1 else (b, a)  # derivatives of the outputs, inputs
        if not self.step.rate:
            return
        x = x if self.plan.input_axis == 1 else x.copy(order="F")
        y = xp.empty((self.plan.dims[1], layer_inputs.shape[1]), weight.dtype, order="F")
        y[: layer_inputs.shape[0]] = layer_inputs
        y[layer_inputs.shape[0] :] = 1
        scale_x, norms_x = self._precondition(x, self.fishers.get("output"))
        scale_y, norms_y = self._precondition(y, self.fishers.get("input"))
        scale = scale_x * scale_y
        bound = scale * float(xp.sqrt(norms_x * norms_y).sum())  # [eq. 84]
        rate = self.step.scaled_rate(bound) * scale
        left_factor = x
        right_factor = y[: layer_inputs.shape[0]]
        if self.plan.input_axis == 0:
            left_factor, right_factor = right_factor, left_factor
        ArrayKernels(xp).matmul(left_factor, right_factor.T, weight, -rate, self.step.keep)
        if bias is not None:
            bias.value *= self.step.keep
            bias.value -= rate * (x @ y[-1])[:, None]

    def _precondition(self, x: Any, fisher: OnlineFisher | None) -> tuple[float, Any]:
        if fisher is not None:
            return fisher.precondition(x)
        if self.rule.method == SIMPLE:
            return precondition(self.xp, x, self.rule.alpha)
        return 1.0, self.xp.einsum("dn,dn->n", x, x)
