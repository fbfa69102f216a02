"""Options of natural-gradient descent; acoustic/training/natural_gradient implements it."""

import math
from dataclasses import dataclass
from typing import ClassVar

from acoustic.training.rules.base import Rule
from readers.config.option_check import not_negative, option, positive

METHODS = ONLINE, SIMPLE, PLAIN = "online", "simple", "plain"
FIRST_UPDATES = 10  # minibatches that all update the estimates


@dataclass(frozen=True)
class NaturalGradient(Rule):
    """Natural-gradient descent: w <- w - l A^-1 g B^-1 for a weight matrix with its bias as last column.

    A is the Fisher factor of the derivatives with respect to the layer's outputs, B that of its inputs. Parameters that
    are not weights of a layer are updated by plain gradient descent.

    Parameters
    ----------
    method : str
        "online" estimates A and B from all previous minibatches, "simple" from the other frames of the minibatch;
        "plain" uses neither.
    alpha : float
        Smoothing with the unit matrix.
    rank_in, rank_out : int
        Ranks of B and A.
    history : float
        Number of frames that the estimates remember.
    period : int
        Minibatches between two updates of the estimates.
    max_change : float
        Limit of the change of a layer's parameters per frame of the minibatch (Frobenius norm).

    References
    ----------
    Povey, Zhang and Khudanpur (2015), section 4, appendices A, B and C.3.
    """

    names: ClassVar = ("NaturalGradient",)
    refuses: ClassVar = ("clippingThresholdPerSample", "L1RegWeight", "gaussianNoiseInjectStd")

    method: str = option("naturalGradientMethod", ONLINE, METHODS.__contains__, "online, simple or plain")
    alpha: float = option("naturalGradientAlpha", 4.0, positive, "a number > 0")
    rank_in: int = option("naturalGradientRankIn", 20, not_negative, "a rank >= 0")
    rank_out: int = option("naturalGradientRankOut", 80, not_negative, "a rank >= 0")
    history: float = option("naturalGradientHistory", 2000.0, positive, "a number of frames > 0")
    period: int = option("naturalGradientUpdatePeriod", 4, positive, "a number of minibatches > 0")
    max_change: float = option("maxChangePerSample", 0.075, lambda v: v > 0, "a number > 0; inf: no limit")

    def __post_init__(self) -> None:
        object.__setattr__(self, "method", self.method.lower())
        super().__post_init__()

    @property
    def by_parts(self) -> bool:
        return False

    def forgetting(self, num_frames: int) -> float:
        """Return eta, the weight of a minibatch in the estimates. [eq. 74]"""
        return -math.expm1(-num_frames / self.history)

    def updates(self, count: int) -> bool:
        """Return whether minibatch `count`, counted from 0, updates the estimates."""
        return count < FIRST_UPDATES or count % self.period == 0
