"""Compiled update rules for float32 on the CPU.

See ArrayRules for what each method computes; the loops are in compiled_loops.py.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from acoustic.kernels.compiled.operands import flat, frames, share_rows
from acoustic.runtime.products import DIRECT, Caller
from acoustic.runtime.thread_team import ThreadTeam
from acoustic.training.rules import compiled_loops
from acoustic.training.rules.arrays import SALT, AdamSettings, ArrayRules, RmsSettings
from acoustic.training.rules.base import Step


class CompiledRules(Caller, ArrayRules):
    """Compiled counterpart of ArrayRules; `team` holds the threads that share long updates."""

    def __init__(self, team: ThreadTeam | None = None) -> None:
        super().__init__(np)
        self.team = team

    @property
    def in_numpy(self) -> ArrayRules:
        """The same rules in NumPy, to compare with."""
        return ArrayRules(np)

    def _elements(self, loop: Callable[..., Any], matrices: list[Any], *settings: Any) -> list[Any]:
        """Call a loop on the elements of matrices of one shape, divided among the team if there are many."""
        arrays = [flat(matrix) for matrix in matrices]
        if self.calls is DIRECT:
            return share_rows(self.team, loop, arrays, *settings)
        self.calls.call(loop, *arrays, numbers=settings)
        return []

    def momentum(self, weight: Any, gradient: Any, velocity: Any, step: Step, nesterov: bool = False) -> None:
        matrices = [weight, gradient, velocity]
        rates = _singles((1 - step.momentum) * step.rate, step.momentum)
        if nesterov or step.l2 or step.shrink or step.limit < np.inf:
            penalty = _singles(step.limit, step.l2, step.shrink)
            self._elements(compiled_loops.regularised_momentum, matrices, *rates, *penalty, nesterov)
        else:
            self._elements(compiled_loops.momentum, matrices, *rates)

    def momentum_columns(
        self, weight: Any, gradient: Any, velocity: Any, columns: Any, step: Step, nesterov: bool = False
    ) -> None:
        numbers = _singles((1 - step.momentum) * step.rate, step.momentum, step.limit)
        rows = (frames(gradient), columns)
        parameters = (frames(weight), frames(velocity))
        share_rows(self.team, compiled_loops.momentum_columns, rows, *parameters, *numbers, nesterov)

    def adagrad_columns(
        self, weight: Any, gradient: Any, squares: Any, columns: Any, step: Step, normalise: bool = True
    ) -> None:
        rows = (frames(gradient), columns)
        limit = np.float32(step.limit)
        sums = share_rows(self.team, compiled_loops.adagrad_columns, rows, frames(squares), limit)
        rate = np.float32(step.rate / _mean(sums) if normalise else step.rate)
        share_rows(self.team, compiled_loops.scaled_step_columns, rows, frames(weight), rate)

    def adagrad(self, weight: Any, gradient: Any, squares: Any, step: Step) -> None:
        settings = _singles(step.rate, step.limit, step.l2, step.shrink)
        self._elements(compiled_loops.adagrad, [weight, gradient, squares], *settings)

    def adagrad_scale(self, weight: Any, gradient: Any, squares: Any, step: Step) -> float:
        settings = _singles(step.limit, step.l2)
        return _mean(self._elements(compiled_loops.adagrad_scale, [weight, gradient, squares], *settings))

    def rmsprop(self, weight: Any, gradient: Any, state: Sequence[Any], step: Step, settings: RmsSettings) -> None:
        numbers = np.float32(step.rate), _penalty(step), RmsSettings(*_singles(*settings))
        self._elements(compiled_loops.rmsprop, [weight, gradient, *state], *numbers)

    def rmsprop_scale(
        self, weight: Any, gradient: Any, state: Sequence[Any], step: Step, settings: RmsSettings
    ) -> float:
        numbers = _penalty(step), RmsSettings(*_singles(*settings))
        return _mean(self._elements(compiled_loops.rmsprop_scale, [weight, gradient, *state], *numbers))

    def fsadagrad(
        self, weight: Any, gradient: Any, squares: Any, velocity: Any, step: Step, keep: float, frames: float
    ) -> None:
        numbers = *_singles(step.rate, step.momentum), _penalty(step), *_singles(keep, 1 - keep, frames)
        self._elements(compiled_loops.fsadagrad, [weight, gradient, squares, velocity], *numbers)

    def adamw(self, weight: Any, gradient: Any, mean: Any, squares: Any, step: Step, settings: AdamSettings) -> None:
        numbers = np.float32(1 / step.num_frames), _penalty(step), AdamSettings(*_singles(*settings))
        self._elements(compiled_loops.adamw, [weight, gradient, mean, squares], *numbers)

    def scaled_step(self, weight: Any, gradient: Any, rate: float, shrink: float) -> None:
        self._elements(compiled_loops.scaled_step, [weight, gradient], *_singles(rate, shrink))

    def shrink(self, weight: Any, threshold: float) -> None:
        if threshold:
            self._elements(compiled_loops.shrink_all, [weight], np.float32(threshold))

    def add_noise(self, weight: Any, key: int, deviation: float, first: int = 0) -> None:
        words = (np.uint32(word) for k in (key, key ^ SALT) for word in (k & 0xFFFFFFFF, k >> 32))
        low, high, other_low, other_high = words
        compiled_loops.add_noise(flat(weight), first, low, high, other_low, other_high, deviation)


def _singles(*numbers: float) -> list[Any]:
    """The numbers as np.float32, of which the loops are compiled."""
    return [np.float32(number) for number in numbers]


def _penalty(step: Step) -> compiled_loops.Penalty:
    return compiled_loops.Penalty(*_singles(step.limit, step.l2, step.shrink))


def _mean(parts: list[tuple[float, int]]) -> float:
    count = sum(counted for _, counted in parts)
    return sum(total for total, _ in parts) / count if count else 1.0
