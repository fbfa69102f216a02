"""Options of natural-gradient descent; acoustic/training/natural_gradient implements it."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from acoustic.training.rules.base import Rule
from readers.config.options import option

ONLINE, SIMPLE = "online", "simple"
FIRST_UPDATES = 10  # minibatches that all update the estimates


@dataclass(frozen=True)
class NaturalGradient(Rule):
    """Natural-gradient descent: w <- w - l A^-1 g B^-1 for a weight matrix with its bias as last column.

    A is the Fisher factor of the derivatives with respect to the layer's outputs, B that of its inputs. Parameters that
    are not weights of a layer are updated by plain gradient descent.

    References
    ----------
    Povey, Zhang and Khudanpur (2015), section 4, appendices A, B and C.3.
    """

    names: ClassVar = ("NaturalGradient",)
    refuses: ClassVar = ("clippingThresholdPerSample", "L1RegWeight", "gaussianNoiseInjectStd")

    method: Literal["online", "simple", "plain"] = option(
        ONLINE,
        "what estimates A and B: online, all previous minibatches; simple, the other frames of the minibatch; plain, "
        "nothing",
        cntk="naturalGradientMethod",
    )
    alpha: float = option(4.0, "smoothing with the unit matrix", above=0, cntk="naturalGradientAlpha")
    rank_in: int = option(20, "rank of B, of a layer's inputs", least=0, cntk="naturalGradientRankIn")
    rank_out: int = option(80, "rank of A, of the derivatives of its outputs", least=0, cntk="naturalGradientRankOut")
    history: float = option(
        2000.0, "frames that the estimates remember", unit="frames", above=0, cntk="naturalGradientHistory"
    )
    period: int = option(
        4, "interval of updates of the estimates", unit="minibatches", least=1, cntk="naturalGradientUpdatePeriod"
    )
    max_change: float = option(
        0.075,
        "limit of the change of a layer's parameters per frame of the minibatch (Frobenius norm)",
        above=0,
        most=math.inf,
        cntk="maxChangePerSample",
    )

    @property
    def by_parts(self) -> bool:
        return False

    def forgetting(self, num_frames: int) -> float:
        """Return eta, the weight of a minibatch in the estimates. [eq. 74]"""
        return -math.expm1(-num_frames / self.history)

    def updates(self, count: int) -> bool:
        """Return whether minibatch `count`, counted from 0, updates the estimates."""
        return count < FIRST_UPDATES or count % self.period == 0
