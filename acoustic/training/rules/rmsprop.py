"""RmsProp of the 2016 tool: moving average of squares, steps that grow while the sign stays (CNTK book 3.3.1.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from acoustic.training.rules.arrays import RmsSettings
from acoustic.training.rules.base import Rule, Step
from readers.config.options import option


@dataclass(frozen=True)
class RmsProp(Rule):
    """RmsProp with a step size per weight.

        r <- gamma r + (1 - gamma) g^2
        s <- min(s increase, largest) if g keeps its sign, else max(s decrease, smallest)
        u = s / sqrt(r + 1e-6);  w <- w - l u g / c

    The first r is the first g^2, s starts at 0.02, and a zero gradient has no sign. c is the mean of u over the
    elements that have had a gradient, or 1 without `normalise`. Momentum is not applied.
    """

    names: ClassVar = ("RmsProp",)
    state: ClassVar = {"squares": 0.0, "step": 0.02, "sign": 0.0}

    gamma: float = option(0.99, "decay of the moving average of squares", least=0, below=1, cntk="rms_gamma")
    increase: float = option(1.2, "factor that increases the step size", least=1, cntk="rms_wgt_inc")
    decrease: float = option(0.75, "factor that decreases the step size", above=0, most=1, cntk="rms_wgt_dec")
    largest: float = option(10.0, "largest step size", cntk="rms_wgt_max")
    smallest: float = option(0.1, "smallest step size", above=0, cntk="rms_wgt_min")
    normalise: bool = option(True, "divide by the mean c", cntk="normWithAveMultiplier")

    def __post_init__(self) -> None:
        super().__post_init__()
        expected = f"is {self.largest:g}; expected at least rms_wgt_min {self.smallest:g}"
        self.require("largest", self.smallest <= self.largest, expected)

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
