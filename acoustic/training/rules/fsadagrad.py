"""FsAdaGrad of the 2016 tool: an average of squared gradients over hours of speech, with momentum."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from acoustic.training.rules.base import Rule, Step

MEMORY = 2 * 3600 * 100  # frames: two hours of speech


@dataclass(frozen=True)
class FsAdaGrad(Rule):
    """FsAdaGrad with n frames in the minibatch and d = exp(-n / 720000).

        a <- d a + (1 - d) g^2;  k <- d k + (1 - d) n;  u = min(sqrt(k / a), 10)
        v <- m v + (1 - m) u g;  w <- w - l v

    k, the number of frames that a represents, is shared by all parameters. Where a is 0, u is 1.
    """

    names: ClassVar = ("fsAdagrad",)
    state: ClassVar = {"squares": 0.0, "velocity": 0.0}
    uses_momentum: ClassVar = True

    def advance(self, scalars: dict[str, float], num_frames: int) -> None:
        super().advance(scalars, num_frames)
        keep = math.exp(-num_frames / MEMORY)
        scalars["frames"] = keep * scalars.get("frames", 0.0) + (1 - keep) * num_frames

    def update(
        self, kernels: Any, weight: Any, gradient: Any, state: Sequence[Any], scalars: dict[str, float], step: Step
    ) -> None:
        kernels.fsadagrad(weight, gradient, *state, step, math.exp(-step.num_frames / MEMORY), scalars["frames"])
