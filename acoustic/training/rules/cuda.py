"""Update rules on a GPU, each in one launch; see ArrayRules for what they compute."""

from typing import Any

import numpy as np

from acoustic.kernels.cuda.module import CudaModule
from acoustic.kernels.cuda.source import source
from acoustic.training.rules.arrays import AdamSettings, ArrayRules
from acoustic.training.rules.base import Step

PREPARED = """
        real w = weight[i], g = gradient[i];
        g = (g > limit ? limit : g < -limit ? -limit : g) + l2 * w;
"""
CHANGED = "weight[i] = w - (w > shrink ? shrink : w < -shrink ? -shrink : w);"
STEP = "real *weight, const real *gradient, real limit, real l2, real shrink, "
RULES = {
    "momentum": (
        f"{STEP}real *velocity, real keep, real rate, bool nesterov",
        f"""{PREPARED}
        real v = keep * velocity[i] + rate * g;
        velocity[i] = v;
        w -= nesterov ? keep * v + rate * g : v;
        {CHANGED}""",
    ),
    "adagrad": (
        f"{STEP}real *squares, real rate",
        f"""{PREPARED}
        squares[i] += g * g;
        w -= rate * g / sqrt(squares[i] + real(1e-16));
        {CHANGED}""",
    ),
    "fsadagrad": (
        f"{STEP}real *squares, real *velocity, real keep, real added, real frames, real momentum, real share, "
        "real rate",
        f"""{PREPARED}
        real a = keep * squares[i] + added * g * g;
        real multiplier = sqrt(frames / (a > 0 ? a : frames));
        squares[i] = a;
        velocity[i] = momentum * velocity[i] + share * g * (multiplier < 10 ? multiplier : 10);
        w -= rate * velocity[i];
        {CHANGED}""",
    ),
    "adamw": (
        f"{STEP}real *mean, real *squares, real num_frames, real beta1, real new1, real beta2, real new2, real rate, "
        "real epsilon, real decay",
        f"""{PREPARED}
        g /= num_frames;
        mean[i] = beta1 * mean[i] + new1 * g;
        squares[i] = beta2 * squares[i] + new2 * g * g;
        w -= decay * w + rate * mean[i] / (sqrt(squares[i]) + epsilon);
        {CHANGED}""",
    ),
}


class CudaRules(ArrayRules):
    """Update rules on arrays of cupy. xp: cupy; dtype: numpy.float32 or numpy.float64."""

    def __init__(self, xp: Any, dtype: type) -> None:
        super().__init__(xp)
        self.module = CudaModule(xp, dtype, source(dtype, RULES, {}))

    def _launch(self, name: str, weight: Any, gradient: Any, step: Step, *state: Any) -> None:
        """Launch a rule; state: matrices, numbers and flags."""
        real = self.module.real
        numbers = [real(number) if isinstance(number, float) else number for number in state]
        limits = real(step.limit), real(step.l2), real(step.shrink)
        self.module.elementwise(name, weight, weight, gradient, *limits, *numbers)

    def momentum(self, weight: Any, gradient: Any, velocity: Any, step: Step, nesterov: bool = False) -> None:
        if not self.module.takes(weight, gradient, velocity):
            super().momentum(weight, gradient, velocity, step, nesterov)
            return
        rate = (1 - step.momentum) * step.rate
        self._launch(
            "momentum", weight, gradient, step, velocity, float(step.momentum), float(rate), np.bool_(nesterov)
        )

    def adagrad(self, weight: Any, gradient: Any, squares: Any, step: Step) -> None:
        if self.module.takes(weight, gradient, squares):
            self._launch("adagrad", weight, gradient, step, squares, float(step.rate))
        else:
            super().adagrad(weight, gradient, squares, step)

    def fsadagrad(
        self, weight: Any, gradient: Any, squares: Any, velocity: Any, step: Step, keep: float, frames: float
    ) -> None:
        if not self.module.takes(weight, gradient, squares, velocity):
            super().fsadagrad(weight, gradient, squares, velocity, step, keep, frames)
            return
        numbers = keep, 1 - keep, frames, step.momentum, 1 - step.momentum, step.rate
        self._launch("fsadagrad", weight, gradient, step, squares, velocity, *map(float, numbers))

    def adamw(self, weight: Any, gradient: Any, mean: Any, squares: Any, step: Step, settings: AdamSettings) -> None:
        if self.module.takes(weight, gradient, mean, squares):
            self._launch("adamw", weight, gradient, step, mean, squares, float(step.num_frames), *map(float, settings))
        else:
            super().adamw(weight, gradient, mean, squares, step, settings)
