"""Parameter updates from gradients: clipping, L2, the update rule, noise and L1, in the order of the 2016 tool.

Source: CNTK book, sections 3.3.1.2 and 3.3.1.3; order and scaling follow the 2016 tool's learner.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np

from acoustic.engine.execution.gradient_sink import GradientSink
from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.runtime.operations import Emitter, Operation
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import Step, rule_kernels
from acoustic.training.rules.semi_orthogonal import EVERY, constrain
from readers.common.environment import one_blas_thread
from readers.errors import ModelError


class Updater(GradientSink):
    """Updates parameters in place as soon as their gradients are complete.

    A gradient is the sum over the frames of a minibatch, not the mean. For learning rate l per frame and n frames the
    steps are, in this order::

        g <- g clipped at c n           element by element, or scaled down if its Frobenius norm exceeds c n
        g <- g + L2 n w
        w <- w changed by the rule      see rules/
        w <- w + noise                  normal, of mean 0 and a given deviation
        w <- sign(w) max(|w| - L1 l n, 0)
        w towards its constraint        after every fourth minibatch, see rules/semi_orthogonal.py

    l is the learning rate of the epoch times the parameter's learningRateMultiplier.

    If the gradient is zero in most columns (word embeddings, output matrices of class-based models), only the touched
    columns are updated when the rule supports it: momentum of the other columns neither decays nor moves them until
    they are touched again, and normalised AdaGrad averages over the touched columns, as in the 2016 tool. Without
    momentum, and for AdaGrad without normalisation, this equals an update of the whole matrix. A compiled loop updates
    whole matrices if it computes their products with words, those of vocabularies below 2048 words.

    Parameters
    ----------
    network : Network
        The network whose parameters are updated.
    options : TrainingOptions
        The update rule, clipping, regularisation and noise.

    Attributes
    ----------
    state : dict
        Parameter name -> {name in the rule: matrix (rows, cols)}.
    scalars : dict
        Numbers that the rule keeps for all parameters together.
    """

    def __init__(self, network: Network, options: TrainingOptions):
        self.options = options
        self.rule = options.rule
        self.xp = network.backend.xp
        self._learnable = [node for node in network.parameters() if node.needs_gradient]
        self._constrained = [
            node
            for node in self._learnable
            if node.settings.get("orthonormal") and node.settings["learningRateMultiplier"]
        ]
        self.state = {
            node.name: {name: _filled(network, node, value) for name, value in self.rule.state.items()}
            for node in self._learnable
        }
        self.scalars: dict[str, float] = {}
        self._kernels = rule_kernels(network.backend)
        self._by_norm = options.clipping_threshold < math.inf and not options.clip_by_truncation
        # Some columns of a parameter can be updated without the others; those whose gradient is zero may stay.
        self.takes_parts = not self._by_norm and self.rule.by_parts
        decays = options.l1_weight or options.l2_weight or options.noise_deviation
        self.takes_touched = self.rule.by_columns and not decays
        self._rate = self._momentum = 0.0
        self._num_frames = 0
        self._seed: Sequence[int] = ()

    def tensors(self) -> dict[str, Any]:
        """Return the state: "name in the rule:parameter" -> matrix."""
        return {f"{kind}:{name}": matrix for name, state in self.state.items() for kind, matrix in state.items()}

    def restore(self, tensors: Mapping[str, Any], scalars: Mapping[str, float], where: Any) -> None:
        """Restore a saved state.

        Parameters
        ----------
        tensors, scalars : mapping
            Copies of `tensors()` and `scalars`.
        where : object
            Name of the source in messages.

        Raises
        ------
        ModelError
            If the state does not fit the parameters and the update rule.
        """
        state_matrices = self.tensors()
        shapes = {name: matrix.shape for name, matrix in state_matrices.items()}
        saved_shapes = {name: matrix.shape for name, matrix in tensors.items()}
        if saved_shapes != shapes:
            odd = sorted(name for name in shapes | saved_shapes if shapes.get(name) != saved_shapes.get(name))
            raise ModelError(
                f"{where}: smoothed gradients {', '.join(odd)} do not fit the model and gradUpdateType "
                f"{self.rule.names[0]}; expected those of its training"
            )
        sound = isinstance(scalars, Mapping) and all(isinstance(number, int | float) for number in scalars.values())
        if not sound:
            raise ModelError(f"{where}: numbers of the update rule are {str(scalars)[:60]}; expected numbers")
        for name, matrix in state_matrices.items():
            on_host = isinstance(matrix, np.ndarray)
            matrix[...] = tensors[name] if on_host else self.xp.asarray(tensors[name])
        self.scalars = dict(scalars)

    def begin(self, learning_rate: float, momentum: float, num_frames: int, seed: Sequence[int] = ()) -> None:
        """Set the values for the next minibatch.

        Parameters
        ----------
        learning_rate : float
            Learning rate per frame.
        momentum : float
            Momentum of this minibatch.
        num_frames : int
            Frames in the minibatch.
        seed : sequence of int
            Seed of the noise.
        """
        self._rate = learning_rate
        self._momentum = momentum
        self._num_frames = num_frames
        self._seed = seed
        self.rule.advance(self.scalars, num_frames)

    def finish(self) -> None:
        """Move parameters with the option `orthonormal` towards its constraint, after every fourth minibatch."""
        if self._rate and self.scalars.get("updates", 0) % EVERY == 0:
            for node in self._constrained:
                with one_blas_thread:
                    constrain(self.xp, node.value, node.settings["orthonormal"])
                node.touch()

    def __call__(self, node: Node, gradient: Any) -> None:
        """Update one parameter. The gradient is used as scratch memory."""
        self._clip_norm(gradient)
        self._update(self._kernels, node, gradient, node.value, list(self.state[node.name].values()), 0)

    def _clip_norm(self, gradient: Any) -> None:
        """Scale down a gradient whose Frobenius norm exceeds the limit, if clipping is by norm."""
        if self._by_norm:
            limit = self.options.clipping_threshold * self._num_frames
            norm = float(self.xp.sqrt(self.xp.vdot(gradient, gradient)))
            if norm > limit:
                gradient *= limit / norm

    def touched(self, node: Node, columns: Any, fill: Callable[[slice], Any]) -> None:
        """Update the columns (n,), in ascending order; fill(part) computes the gradient of columns[part].

        The columns are processed in parts that stay in the cache between gradient and update, if the rule allows it.
        """
        step = self._step(node)
        if not step.rate:
            return
        state = list(self.state[node.name].values())
        count = CACHED // node.value.shape[0] if self.takes_parts else len(columns)
        for start in range(0, len(columns), max(1, count)):
            part = slice(start, min(start + max(1, count), len(columns)))
            gradient = fill(part)
            self._clip_norm(gradient)
            self.rule.update_columns(self._kernels, node.value, gradient, state, columns[part], step)

    def _step(self, node: Node) -> Step:
        """Return the Step of a parameter in this minibatch, without L1."""
        options = self.options
        frames = self._num_frames
        limit = math.inf if self._by_norm else options.clipping_threshold * frames
        rate = self._rate * node.settings["learningRateMultiplier"]
        return Step(rate, self._momentum, frames, limit=limit, l2=options.l2_weight * frames, shrink=0.0)

    @property
    def key(self) -> Hashable | None:
        """Key of what an update depends on besides gradient and state; None if that differs from pass to pass."""
        if self.options.noise_deviation or not self.rule.repeats:
            return None
        multipliers = [node.settings["learningRateMultiplier"] for node in self._learnable]
        return self, self._rate, self._momentum, self._num_frames, tuple(multipliers)

    def part(self, node: Node, gradient: Any, columns: slice) -> None:
        """Update some columns of a parameter from their gradient."""
        self._update_part(self._kernels, node, gradient, columns)

    def operations(self, node: Node, gradient: Any, columns: slice) -> list[Operation]:
        """Return the operations that `part` makes; see GradientSink."""
        emitter = Emitter(self._kernels, node.name)
        self._update_part(emitter, node, gradient, columns)
        return emitter.operations

    def _update_part(self, kernels: Any, node: Node, gradient: Any, columns: slice) -> None:
        state = [matrix[:, columns] for matrix in self.state[node.name].values()]
        self._update(kernels, node, gradient, node.value[:, columns], state, columns.start * gradient.shape[0])

    def _update(self, kernels: Any, node: Node, gradient: Any, weight: Any, state: Sequence[Any], first: int) -> None:
        """Update a parameter, or some of its columns; `first` is the number of elements before them."""
        options = self.options
        step = self._step(node)
        if not step.rate:  # noise must not change a parameter with rate 0
            return
        shrink = options.l1_weight * step.num_frames * step.rate
        noisy = options.noise_deviation > 0
        step = step if noisy else replace(step, shrink=shrink)
        self.rule.update(kernels, weight, gradient, state, self.scalars, step)
        if noisy:
            kernels.add_noise(weight, self._key(node), options.noise_deviation, first)
            kernels.shrink(weight, shrink)

    def _key(self, node: Node) -> int:
        """Return the 64-bit key of the noise of this parameter in this minibatch."""
        words = np.random.SeedSequence((*self._seed, NOISE, crc32(node.name.encode()))).generate_state(2)
        return int(words[0]) << 32 | int(words[1])


CACHED = 1 << 17  # elements of a gradient that are updated at a time, if it is computed by columns
NOISE = 1  # so that noise and a dropout mask of equal seed and name differ


def _filled(network: Network, node: Node, value: float) -> Any:
    matrix = network.backend.empty(*node.value.shape)
    matrix.fill(value)
    return matrix
