"""AdaGrad: the learning rate of every weight falls with the squares of its past gradients (CNTK book 3.3.1.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from acoustic.training.rules.base import Rule, Step
from readers.config.options import option


@dataclass(frozen=True)
class AdaGrad(Rule):
    """AdaGrad: a <- a + g^2;  u = 1 / sqrt(a + 1e-16);  w <- w - l u g / c.

    c is the mean of u over the elements of the parameter, which keeps the scale of the learning rate, or 1 without
    `normalise`. Elements with a = 0, which have never had a gradient, are left out of the mean because their u of 1e8
    would dominate it. Momentum is not applied.
    """

    names: ClassVar = ("AdaGrad",)
    state: ClassVar = {"squares": 0.0}
    repeats: ClassVar = True
    by_columns: ClassVar = True

    normalise: bool = option(True, "divide by the mean c", cntk="normWithAveMultiplier")

    @property
    def by_parts(self) -> bool:
        return not self.normalise

    def update(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], scalars: dict[str, float], step: Step
    ) -> None:
        if self.normalise:
            average = kernels.adagrad_scale(weight, gradient, *state, step)
            kernels.scaled_step(weight, gradient, step.rate / average, step.shrink)
        else:
            kernels.adagrad(weight, gradient, *state, step)

    def update_columns(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], columns: Any, step: Step
    ) -> None:
        kernels.adagrad_columns(weight, gradient, *state, columns, step, self.normalise)
