"""AdamW: Adam with decoupled weight decay (Loshchilov and Hutter, 2019, Algorithm 2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from acoustic.training.rules.arrays import AdamSettings
from acoustic.training.rules.base import Rule, Step
from readers.config.option_check import not_negative, option, positive


@dataclass(frozen=True)
class AdamW(Rule):
    """AdamW on h = g / n, the mean of the gradient over the n frames of the minibatch.

        p <- b1 p + (1 - b1) h;  q <- b2 q + (1 - b2) h^2
        w <- w - n l (p' / (sqrt(q') + eps) + decay w)

    with p' = p / (1 - b1^k) and q' = q / (1 - b2^k) after k updates. For a full minibatch n l equals
    learningRatesPerMB, which is therefore the learning rate of Adam in other toolkits. b1 replaces momentum.

    Parameters
    ----------
    beta1, beta2 : float
        Decay of the averages of the gradient and of its square.
    epsilon : float
        Added to the root of the averaged square.
    decay : float
        Weight decay.
    """

    names: ClassVar = ("AdamW",)
    state: ClassVar = {"mean": 0.0, "squares": 0.0}

    beta1: float = option("adamBeta1", 0.9, lambda v: 0 <= v < 1, "0 <= beta < 1")
    beta2: float = option("adamBeta2", 0.999, lambda v: 0 <= v < 1, "0 <= beta < 1")
    epsilon: float = option("adamEpsilon", 1e-8, positive, "a small number > 0")
    decay: float = option("adamWeightDecay", 0.01, not_negative, "a weight >= 0")

    def update(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], scalars: dict[str, float], step: Step
    ) -> None:
        count = scalars["updates"]
        rate = step.rate * step.num_frames
        first, second = 1 - self.beta1**count, 1 - self.beta2**count
        # p' / (sqrt(q') + eps) = (p / first) / (sqrt(q) / sqrt(second) + eps)
        settings = AdamSettings(
            beta1=self.beta1,
            new1=1 - self.beta1,
            beta2=self.beta2,
            new2=1 - self.beta2,
            rate=rate / first * math.sqrt(second),
            epsilon=self.epsilon * math.sqrt(second),
            decay=rate * self.decay,
        )
        kernels.adamw(weight, gradient, *state, step, settings)
