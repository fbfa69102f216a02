"""How a gradient changes a parameter: clipping, L2, the update rule, noise, L1, in the tool's order.

Source: CNTK book, sections 3.3.1.2 and 3.3.1.3, and for order and scaling the 2016 tool's learner.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np

from acoustic.network.network import Network
from acoustic.nodes.base import Node
from acoustic.nodes.gradient_targets import Accumulation
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import Step, rule_kernels
from readers.errors import ModelError


class Updater:
    """Changes parameters in place; called with (node, gradient), or parts of them, as soon as a gradient is complete.

    A gradient is the sum over the frames of a minibatch, not their mean.  With learning rate l per frame and n frames,
    in this order:

        g <- g clipped at c n           element by element, or scaled down when its Frobenius norm exceeds c n
        g <- g + L2 n w
        w <- w changed by the rule      see rules/
        w <- w + noise                  normal, of mean 0 and a given deviation
        w <- sign(w) max(|w| - L1 l n, 0)

    l is the parameter's own rate: the epoch's times its learningRateMultiplier.

    Of a gradient that comes by columns (tables of words, output matrices of class-based models) only the columns that
    it touches are updated, where the rule works so: momentum of the others neither fades nor moves them until they are
    touched again, and the mean of normalised AdaGrad is over touched columns.  So did the tool.  Without momentum, and
    with AdaGrad without normalisation, that is the same as an update of the whole.
    state: of each parameter what the rule keeps, name -> {name in the rule: matrix (rows, cols)}; scalars: numbers that
    it keeps for all of them.
    """

    def __init__(self, network: Network, options: TrainingOptions):
        self.options, self.rule = options, options.rule
        self.xp = network.backend.xp
        learnable = [node for node in network.parameters() if node.needs_gradient]
        self.state = {
            node.name: {name: _filled(network, node, value) for name, value in self.rule.state.items()}
            for node in learnable
        }
        self.scalars: dict[str, float] = {}
        self._kernels = rule_kernels(network.backend)
        self._by_norm = options.clipping_threshold < math.inf and not options.clip_by_truncation
        self._plain = not (options.l1_weight or options.l2_weight or options.noise_deviation)
        self._plain = self._plain and options.clipping_threshold == math.inf
        self._rate = self._momentum = 0.0
        self._num_frames = 0
        self._seed: Sequence[int] = ()

    def tensors(self) -> dict[str, Any]:
        """The state as "name in the rule:parameter" -> matrix."""
        return {f"{kind}:{name}": matrix for name, state in self.state.items() for kind, matrix in state.items()}

    def restore(self, tensors: Mapping[str, Any], scalars: Mapping[str, float], where: Any) -> None:
        """Take up what `tensors` and `scalars` gave; `where` names it.  Raises ModelError when they do not fit."""
        mine = self.tensors()
        shapes = {name: matrix.shape for name, matrix in mine.items()}
        found = {name: matrix.shape for name, matrix in tensors.items()}
        if found != shapes:
            odd = sorted(name for name in shapes | found if shapes.get(name) != found.get(name))
            raise ModelError(
                f"{where}: smoothed gradients {', '.join(odd)} do not fit the model and gradUpdateType "
                f"{self.rule.names[0]}; expected those of its training"
            )
        if not all(isinstance(number, int | float) for number in scalars.values()):
            raise ModelError(f"{where}: numbers of the update rule are {dict(scalars)}; expected numbers")
        for name, matrix in mine.items():
            on_host = isinstance(matrix, np.ndarray)
            matrix[...] = tensors[name] if on_host else self.xp.asarray(tensors[name])
        self.scalars = dict(scalars)

    def begin(self, learning_rate: float, momentum: float, num_frames: int, seed: Sequence[int] = ()) -> None:
        """What holds for the next minibatch.

        learning_rate per frame; momentum of the minibatch; its frames; seed: whole numbers that noise is drawn from.
        """
        self._rate, self._momentum, self._num_frames, self._seed = learning_rate, momentum, num_frames, seed
        self.rule.advance(self.scalars, num_frames)

    def __call__(self, node: Node, gradient: Any) -> None:
        """Update one parameter; the gradient's memory is used up."""
        self._clip_norm(gradient)
        self._update(node, gradient, node.value, list(self.state[node.name].values()), 0)

    def _clip_norm(self, gradient: Any) -> None:
        """Scale down a gradient whose Frobenius norm is beyond the limit, where there is one."""
        if self._by_norm:
            limit = self.options.clipping_threshold * self._num_frames
            norm = float(self.xp.sqrt(self.xp.vdot(gradient, gradient)))
            if norm > limit:
                gradient *= limit / norm

    def accumulation(self, node: Node) -> Accumulation | None:
        """Where a parameter's gradient may be added up without a matrix of its own; `take` comes after.

        A product of matrices can be added to what is there, scaled, as it is made: the gradient is neither written nor
        read back.
        """
        if not self._plain:
            return None
        scales = self.rule.accumulation(self._rate * node.settings["learningRateMultiplier"], self._momentum)
        return None if scales is None else Accumulation(self._first_state(node), *scales)

    @property
    def touched(self) -> Callable[[Node, Any, Callable[[slice], Any]], None] | None:
        """Updates the columns of a parameter whose gradient is not zero, from that; None where all have to be."""
        options = self.options
        whole = options.l1_weight or options.l2_weight or options.noise_deviation or not self.rule.by_columns
        return None if whole else self._touched

    def _touched(self, node: Node, columns: Any, fill: Callable[[slice], Any]) -> None:
        """columns (n,), ascending; fill(part): the gradient of columns[part], whose memory is used up.

        Part after part, so that one stays in the cache from the gradient to the update, where the rule can do that.
        """
        step = self._step(node)
        if not step.rate:
            return
        state = list(self.state[node.name].values())
        count = CACHED // node.value.shape[0] if self.part is not None else len(columns)
        for start in range(0, len(columns), max(1, count)):
            part = slice(start, min(start + max(1, count), len(columns)))
            gradient = fill(part)
            self._clip_norm(gradient)
            self.rule.update_columns(self._kernels, node.value, gradient, state, columns[part], step)

    def _step(self, node: Node) -> Step:
        """What a rule is told of this minibatch and a parameter; nothing of L1."""
        options, frames = self.options, self._num_frames
        limit = math.inf if self._by_norm else options.clipping_threshold * frames
        rate = self._rate * node.settings["learningRateMultiplier"]
        return Step(rate, self._momentum, frames, limit=limit, l2=options.l2_weight * frames, shrink=0.0)

    def take(self, node: Node, columns: slice) -> None:
        """Update some columns of a parameter whose gradient was added up where `accumulation` said."""
        self.rule.take(self._kernels, node.value[:, columns], self._first_state(node)[:, columns])

    @property
    def key(self) -> Hashable | None:
        """What an update depends on besides gradient and state; None where that is more than stays for a while."""
        if self.options.noise_deviation or not self.rule.repeats:
            return None
        return self, self._rate, self._momentum, self._num_frames

    def _first_state(self, node: Node) -> Any:
        return next(iter(self.state[node.name].values()))

    @property
    def part(self) -> Callable[[Node, Any, slice], None] | None:
        """Updates some columns of a parameter from their gradient; None when the rule needs the whole of it."""
        return None if self._by_norm or not self.rule.by_parts else self._part

    def _part(self, node: Node, gradient: Any, columns: slice) -> None:
        state = [matrix[:, columns] for matrix in self.state[node.name].values()]
        self._update(node, gradient, node.value[:, columns], state, columns.start * gradient.shape[0])

    def _update(self, node: Node, gradient: Any, weight: Any, state: Sequence[Any], first: int) -> None:
        """weight, state: a parameter and what is kept of it, or columns of them; first: elements that stand before."""
        options, step = self.options, self._step(node)
        if not step.rate:  # else noise would move a parameter that is to stay as it is
            return
        shrink = options.l1_weight * step.num_frames * step.rate
        noisy = options.noise_deviation > 0
        step = step if noisy else replace(step, shrink=shrink)
        self.rule.update(self._kernels, weight, gradient, state, self.scalars, step)
        if noisy:
            self._kernels.add_noise(weight, self._key(node), options.noise_deviation, first)
            self._kernels.shrink(weight, shrink)

    def _key(self, node: Node) -> int:
        """The 64-bit key of the noise of this parameter in this minibatch."""
        words = np.random.SeedSequence((*self._seed, NOISE, crc32(node.name.encode()))).generate_state(2)
        return int(words[0]) << 32 | int(words[1])


CACHED = 1 << 17  # elements of a gradient that are updated at a time when it comes by columns
NOISE = 1  # keeps the noise apart from a dropout mask of the same seed and name


def _filled(network: Network, node: Node, value: float) -> Any:
    matrix = network.backend.empty(*node.value.shape)
    matrix.fill(value)
    return matrix
