"""AdamW: both moments of the gradient averaged, weight decay apart from them (Loshchilov and Hutter, 2019, Alg. 2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from acoustic.training.rules.base import Rule, Step


@dataclass(frozen=True)
class AdamW(Rule):
    """p <- b1 p + (1 - b1) h;  q <- b2 q + (1 - b2) h^2;  with h = g / n, the gradient's mean over the frames;

    w <- w - n l (p' / (sqrt(q') + eps) + decay w),  p' = p / (1 - b1^k),  q' = q / (1 - b2^k),  k updates so far.
    n l of a full minibatch is learningRatesPerMB, which is thus what others call the learning rate of Adam.
    b1 takes the place of momentum.
    """

    names: ClassVar = ("AdamW",)
    keys: ClassVar = {
        "beta1": ("adamBeta1", "float"),
        "beta2": ("adamBeta2", "float"),
        "epsilon": ("adamEpsilon", "float"),
        "decay": ("adamWeightDecay", "float"),
    }
    state: ClassVar = {"mean": 0.0, "squares": 0.0}

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.01

    def __post_init__(self) -> None:
        self.require("beta1", 0 <= self.beta1 < 1, "0 <= beta < 1")
        self.require("beta2", 0 <= self.beta2 < 1, "0 <= beta < 1")
        self.require("epsilon", 0 < self.epsilon < math.inf, "a small number > 0")
        self.require("decay", 0 <= self.decay < math.inf, "a weight >= 0")

    def update(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], scalars: dict[str, float], step: Step
    ) -> None:
        count = scalars["updates"]
        rate = step.rate * step.num_frames
        first, second = 1 - self.beta1**count, 1 - self.beta2**count
        # p' / (sqrt(q') + eps) = (p / first) / (sqrt(q) / sqrt(second) + eps)
        settings = (
            self.beta1,
            self.beta2,
            rate / first * math.sqrt(second),
            self.epsilon * math.sqrt(second),
            rate * self.decay,
        )
        kernels.adamw(weight, gradient, *state, step, settings)
