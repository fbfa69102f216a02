"""AdamW: Adam with decoupled weight decay (Loshchilov and Hutter, 2019, Algorithm 2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from acoustic.training.rules.arrays import AdamSettings
from acoustic.training.rules.base import Rule, Step
from readers.config.options import option


@dataclass(frozen=True)
class AdamW(Rule):
    """AdamW on h = g / n, the mean of the gradient over the n frames of the minibatch.

        p <- b1 p + (1 - b1) h;  q <- b2 q + (1 - b2) h^2
        w <- w - n l (p' / (sqrt(q') + eps) + decay w)

    with p' = p / (1 - b1^k) and q' = q / (1 - b2^k) after k updates. For a full minibatch n l equals
    learningRatesPerMB, which is therefore the learning rate of Adam in other toolkits. b1 replaces momentum.
    """

    names: ClassVar = ("AdamW",)
    state: ClassVar = {"mean": 0.0, "squares": 0.0}

    beta1: float = option(0.9, "decay of the average of the gradient", least=0, below=1, cntk="adamBeta1")
    beta2: float = option(0.999, "decay of the average of its square", least=0, below=1, cntk="adamBeta2")
    epsilon: float = option(1e-8, "added to the root of the averaged square", above=0, cntk="adamEpsilon")
    decay: float = option(0.01, "weight decay", least=0, cntk="adamWeightDecay")

    def update(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], scalars: dict[str, float], step: Step
    ) -> None:
        count = scalars["updates"]
        rate = step.rate * step.num_frames
        first = 1 - self.beta1**count
        second = 1 - self.beta2**count
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
