"""Update rules by their names in `gradUpdateType` (CNTK book, section 3.3.1.3).

Open base.py first, then adagrad.py as a model for a rule.
"""

from acoustic.training.rules.adagrad import AdaGrad
from acoustic.training.rules.adamw import AdamW
from acoustic.training.rules.base import Rule, Step
from acoustic.training.rules.fsadagrad import FsAdaGrad
from acoustic.training.rules.kernels import rule_kernels
from acoustic.training.rules.momentum import Momentum
from acoustic.training.rules.natural_gradient import NaturalGradient
from acoustic.training.rules.rmsprop import RmsProp

__all__ = [
    "RULES",
    "AdaGrad",
    "AdamW",
    "FsAdaGrad",
    "Momentum",
    "NaturalGradient",
    "RmsProp",
    "Rule",
    "Step",
    "rule_kernels",
]

# Name in lower case: rule.
RULES: dict[str, type[Rule]] = {
    name.lower(): rule
    for rule in (Momentum, AdaGrad, RmsProp, FsAdaGrad, AdamW, NaturalGradient)
    for name in rule.names
}
