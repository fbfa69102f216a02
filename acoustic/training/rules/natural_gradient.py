"""Natural-gradient descent: what it is told; the work is done in acoustic/training/natural_gradient."""

import math
from dataclasses import dataclass
from typing import ClassVar

from acoustic.training.rules.base import Rule

ONLINE, SIMPLE, PLAIN = "online", "simple", "plain"  # methods


@dataclass(frozen=True)
class NaturalGradient(Rule):
    """w <- w - l A^-1 g B^-1, a weight matrix with its bias as a last column, A and B of the Fisher matrix's factors.

    A is that of the derivatives with respect to a layer's outputs, B that of its inputs.  method: online estimates both
    from all minibatches before, simple from the other frames of the minibatch, plain leaves them out.  alpha: smoothing
    with the unit matrix; rank_in, rank_out: ranks of B and A; history: frames that count in the estimates; period:
    minibatches from one of their updates to the next.  max_change: of a layer's parameters, per frame of a minibatch.
    Parameters that are no layer's weights change by plain descent.
    Source: Povey, Zhang and Khudanpur (2015), section 4, appendices A, B and C.3.
    """

    names: ClassVar = ("NaturalGradient",)
    keys: ClassVar = {
        "method": ("naturalGradientMethod", "text"),
        "alpha": ("naturalGradientAlpha", "float"),
        "rank_in": ("naturalGradientRankIn", "int"),
        "rank_out": ("naturalGradientRankOut", "int"),
        "history": ("naturalGradientHistory", "float"),
        "period": ("naturalGradientUpdatePeriod", "int"),
        "max_change": ("maxChangePerSample", "float"),
    }
    refuses: ClassVar = ("clippingThresholdPerSample", "L1RegWeight", "gaussianNoiseInjectStd")

    method: str = ONLINE
    alpha: float = 4.0
    rank_in: int = 20
    rank_out: int = 80
    history: float = 2000.0
    period: int = 4
    max_change: float = 0.075

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", self.method.lower())
        methods = (ONLINE, SIMPLE, PLAIN)
        self.require("method", self.method in methods, ", ".join(methods[:-1]) + f" or {PLAIN}")
        self.require("alpha", 0 < self.alpha < math.inf, "a number > 0")
        self.require("rank_in", self.rank_in >= 0, "a rank >= 0")
        self.require("rank_out", self.rank_out >= 0, "a rank >= 0")
        self.require("history", 0 < self.history < math.inf, "a number of frames > 0")
        self.require("period", self.period > 0, "a number of minibatches > 0")
        self.require("max_change", self.max_change > 0, "a number > 0; inf: no limit")

    @property
    def by_parts(self) -> bool:
        return False
