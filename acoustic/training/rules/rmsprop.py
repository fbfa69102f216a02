"""RmsProp of the 2016 tool: moving average of squares, steps that grow while the sign stays (CNTK book 3.3.1.3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from acoustic.training.rules.arrays import RmsSettings
from acoustic.training.rules.base import Rule, Step
from readers.config.option_check import option, positive


@dataclass(frozen=True)
class RmsProp(Rule):
    """RmsProp with a step size per weight.

        r <- gamma r + (1 - gamma) g^2
        s <- min(s increase, largest) if g keeps its sign, else max(s decrease, smallest)
        u = s / sqrt(r + 1e-6);  w <- w - l u g / c

    The first r is the first g^2, s starts at 0.02, and a zero gradient has no sign. c is the mean of u over the
    elements that have had a gradient, or 1 without `normalise`. Momentum is not applied.

    Parameters
    ----------
    gamma : float
        Decay of the moving average of squares.
    increase, decrease : float
        Factors of the step size.
    largest, smallest : float
        Bounds of the step size.
    normalise : bool
        Divide by the mean c.
    """

    names: ClassVar = ("RmsProp",)
    state: ClassVar = {"squares": 0.0, "step": 0.02, "sign": 0.0}

    gamma: float = option("rms_gamma", 0.99, lambda v: 0 <= v < 1, "0 <= gamma < 1")
    increase: float = option("rms_wgt_inc", 1.2, lambda v: 1 <= v < math.inf, "a factor >= 1")
    decrease: float = option("rms_wgt_dec", 0.75, lambda v: 0 < v <= 1, "a factor above 0, at most 1")
    largest: float = option("rms_wgt_max", 10.0)
    smallest: float = option("rms_wgt_min", 0.1, positive, "a scale > 0")
    normalise: bool = option("normWithAveMultiplier", True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("largest", self.smallest <= self.largest < math.inf, f"a scale >= rms_wgt_min {self.smallest:g}")

    @property
    def by_parts(self) -> bool:
        return not self.normalise

    def update(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], scalars: dict[str, float], step: Step
    ) -> None:
        gamma = self.gamma if scalars["updates"] > 1 else 0.0
        settings = RmsSettings(gamma, self.increase, self.decrease, self.largest, self.smallest)
        if self.normalise:
            average = kernels.rmsprop_scale(weight, gradient, state, step, settings)
            kernels.scaled_step(weight, gradient, step.rate / average, step.shrink)
        else:
            kernels.rmsprop(weight, gradient, state, step, settings)
