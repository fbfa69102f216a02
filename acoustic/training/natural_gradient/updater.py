"""Updater of the natural gradient: selects the layers, and updates all other parameters by plain gradient descent."""

from collections.abc import Callable, Sequence
from typing import Any

from acoustic.engine.planning.node_table import traits
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.training.natural_gradient.compiled import CompiledLayer
from acoustic.training.natural_gradient.layers import ArrayLayer, Step, find_layers
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient
from acoustic.training.update import Updater


class NaturalGradientUpdater(Updater):
    """Updates layers by the natural gradient and all other parameters by plain gradient descent.

    A layer is a weight matrix and the bias added to its product. The Frobenius norm of the change of a layer, and of
    any other parameter, is limited to max_change times the frames of the minibatch. L2 is applied to the weights first.
    """

    rule: NaturalGradient

    def __init__(self, network: Network, options: TrainingOptions) -> None:
        super().__init__(network, options)
        self.takes_parts = False
        self.takes_touched = not options.l2_weight
        backend = network.backend
        self._plans = find_layers(network)
        self.layers = {
            name: ArrayLayer(backend.xp, backend.dtype, plan, self.rule) for name, plan in self._plans.items()
        }
        self._compiled = {
            name: CompiledLayer(layer, turn)
            for turn, (name, layer) in enumerate(self.layers.items())
            if CompiledLayer.fits(layer, backend)
        }

    def tensors(self) -> dict[str, Any]:
        for layer in self._compiled.values():
            layer.settle()
        return {
            f"{kind}:{name}": matrix for name, layer in self.layers.items() for kind, matrix in layer.tensors().items()
        }

    def begin(self, learning_rate: float, momentum: float, num_frames: int, seed: Sequence[int] = ()) -> None:
        super().begin(learning_rate, 0.0, num_frames, seed)

    def layer(self, parameter: Node, node: Node, k: int) -> ArrayLayer | CompiledLayer | None:
        """Return the layer of a parameter whose gradient comes from operand k of `node`, or None if it has none."""
        layer = self.layers.get(parameter.name)
        if layer is None or k not in traits(node).layer_inputs:
            return None
        step = self._step_of(parameter)
        compiled = self._compiled.get(parameter.name)
        if compiled is not None and compiled.is_ready and step.rate:
            compiled.begin(step)
            return compiled
        layer.step = step
        return layer

    def _step_of(self, parameter: Node) -> Step:
        rate = self._rate * parameter.settings["learningRateMultiplier"]
        frames = self._num_frames
        return Step(rate, 1 - rate * self.options.l2_weight * frames, self.rule.max_change * frames)

    def __call__(self, node: Node, gradient: Any) -> None:
        step = self._step_of(node)
        if step.rate:
            gradient *= self._scaled_rate(step, gradient)
            node.value *= step.keep
            node.value -= gradient

    def _scaled_rate(self, step: Step, gradient: Any) -> float:
        return step.scaled_rate(float(self.xp.sqrt(self.xp.vdot(gradient, gradient))))

    def touched(self, node: Node, columns: Any, fill: Callable[[slice], Any]) -> None:
        step = self._step_of(node)
        if step.rate and len(columns):
            gradient = fill(slice(0, len(columns)))
            gradient *= self._scaled_rate(step, gradient)
            node.value[:, columns] -= gradient
