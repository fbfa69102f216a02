"""How a gradient changes a parameter: clipping, L2, smoothed or Nesterov steps, L1, in the tool's order.

Source: CNTK book, sections 3.3.1.2 and 3.3.1.3, and for order and scaling the 2016 tool's learner.
"""

import math
from collections.abc import Callable
from typing import Any

from acoustic.network import Network
from acoustic.node import Node
from acoustic.training.options import TrainingOptions
from readers.errors import ModelError


class Updater:
    """Changes parameters in place; called with (node, gradient), or parts of them, as soon as a gradient is complete.

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
        self._kernels = network.backend.kernels
        plain = math.isinf(options.clipping_threshold) and not options.l2_weight and not options.l1_weight
        self._plain = plain and not options.nesterov
        self._by_norm = options.clipping_threshold < math.inf and not options.clip_by_truncation
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
        if self._by_norm:
            limit = self.options.clipping_threshold * self._num_frames
            norm = float(self.xp.sqrt(self.xp.vdot(gradient, gradient)))
            if norm > limit:
                gradient *= limit / norm
        self._step(node, node.value, gradient, self.velocities[node.name])

    @property
    def part(self) -> Callable[[Node, Any, slice], None] | None:
        """Updates some columns of a parameter from their gradient; None when the rule needs the whole of it."""
        return None if self._by_norm else self._part

    def _part(self, node: Node, gradient: Any, columns: slice) -> None:
        self._step(node, node.value[:, columns], gradient, self.velocities[node.name][:, columns])

    def _step(self, node: Node, weight: Any, gradient: Any, velocity: Any) -> None:
        rate = self._rate * node.settings["learningRateMultiplier"]
        if self._plain:
            self._kernels.momentum_step(weight, gradient, velocity, rate, self._momentum)
            return
        options = self.options
        self._kernels.regularised_step(
            weight,
            gradient,
            velocity,
            rate,
            self._momentum,
            limit=math.inf if self._by_norm else options.clipping_threshold * self._num_frames,
            l2=options.l2_weight * self._num_frames,
            l1=options.l1_weight * self._num_frames,
            nesterov=options.nesterov,
        )


def _zeros(network: Network, node: Node) -> Any:
    velocity = network.backend.empty(*node.value.shape)
    velocity.fill(0)
    return velocity
