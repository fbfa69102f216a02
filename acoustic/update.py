"""How a gradient changes a parameter: clipping, L2, smoothed or Nesterov steps, L1, in the tool's order.

Source: CNTK book, sections 3.3.1.2 and 3.3.1.3, and for order and scaling the 2016 tool's learner.
"""

import math
from typing import Any

from readers.errors import ModelError

from .network import Network
from .node import Node
from .training_options import TrainingOptions


class Updater:
    """Changes parameters in place; called with (node, gradient) as soon as a gradient is complete.

    A gradient is the sum over the frames of a minibatch, not their mean.  With learning rate l per frame, n frames
    and momentum m of this minibatch, in this order:

        g <- g clipped at c n           element by element, or scaled down when its Frobenius norm exceeds c n
        g <- g + L2 n w
        v <- m v + (1 - m) l g          the step is v; with Nesterov's rule it is m v + (1 - m) l g with the new v
        w <- w - step
        w <- sign(w) max(|w| - L1 l n, 0)

    l is the parameter's own rate: the epoch's times its learningRateMultiplier.
    velocities: v of each parameter, (rows, cols), starting at 0.
    """

    def __init__(self, network: Network, options: TrainingOptions):
        self.options = options
        self.xp = network.backend.xp
        learnable = [node for node in network.parameters() if node.needs_gradient]
        self.velocities = {node.name: _zeros(network, node) for node in learnable}
        self._momentum_step = network.backend.kernels.momentum_step
        plain = math.isinf(options.clipping_threshold) and not options.l2_weight and not options.l1_weight
        self._plain = plain and not options.nesterov
        largest = 0 if self._plain else max((velocity.size for velocity in self.velocities.values()), default=0)
        self._scratch = network.backend.empty(largest, 1).reshape(-1)
        self._rate = self._momentum = 0.0
        self._num_frames = 0

    def restore(self, velocities: dict[str, Any], where: Any) -> None:
        """Take up smoothed gradients of a checkpoint; `where` names it.  Raises ModelError when they do not fit."""
        shapes = {name: velocity.shape for name, velocity in self.velocities.items()}
        found = {name: velocity.shape for name, velocity in velocities.items()}
        if found != shapes:
            odd = sorted(name for name in shapes | found if shapes.get(name) != found.get(name))
            raise ModelError(
                f"{where}: smoothed gradients of {', '.join(odd)} do not fit the model; expected those of its training"
            )
        for name, velocity in velocities.items():
            self.velocities[name][...] = self.xp.asarray(velocity)

    def begin(self, learning_rate: float, momentum: float, num_frames: int) -> None:
        """What holds for the next minibatch: learning rate per frame, momentum of the minibatch, its frames."""
        self._rate, self._momentum, self._num_frames = learning_rate, momentum, num_frames

    def __call__(self, node: Node, gradient: Any) -> None:
        """Update one parameter; the gradient's memory is used up."""
        rate = self._rate * node.settings["learningRateMultiplier"]
        if not self._plain:
            self._regularise(node.value, gradient)
        if self.options.nesterov:
            self._nesterov_step(node.value, gradient, self.velocities[node.name], rate)
        else:
            self._momentum_step(node.value, gradient, self.velocities[node.name], rate, self._momentum)
        if self.options.l1_weight:
            self._shrink(node.value, rate * self.options.l1_weight * self._num_frames)

    def _regularise(self, weight: Any, gradient: Any) -> None:
        limit = self.options.clipping_threshold * self._num_frames
        if limit < math.inf:
            if self.options.clip_by_truncation:
                self.xp.clip(gradient, -limit, limit, out=gradient)
            else:
                norm = float(self.xp.sqrt(self.xp.vdot(gradient, gradient)))
                if norm > limit:
                    gradient *= limit / norm
        if self.options.l2_weight:
            scratch = self._like(weight)
            self.xp.multiply(weight, self.options.l2_weight * self._num_frames, out=scratch)
            gradient += scratch

    def _nesterov_step(self, weight: Any, gradient: Any, velocity: Any, rate: float) -> None:
        gradient *= (1 - self._momentum) * rate
        velocity *= self._momentum
        velocity += gradient
        scratch = self._like(weight)
        self.xp.multiply(velocity, self._momentum, out=scratch)
        weight -= scratch
        weight -= gradient

    def _shrink(self, weight: Any, threshold: float) -> None:
        # w - clip(w) moves every element towards 0 by the threshold, and to 0 those within it.
        scratch = self._like(weight)
        self.xp.clip(weight, -threshold, threshold, out=scratch)
        weight -= scratch

    def _like(self, matrix: Any) -> Any:
        """Memory of a matrix's shape for a moment; one piece serves every parameter."""
        return self._scratch[: matrix.size].reshape(matrix.shape, order="F")


def _zeros(network: Network, node: Node) -> Any:
    velocity = network.backend.empty(*node.value.shape)
    velocity.fill(0)
    return velocity
