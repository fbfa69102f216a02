"""Options of the automatic control of learning rate and minibatch size (CNTK book, section 3.3.1.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from readers.config.option_check import KeyedOptions, OptionFault
from readers.config.values import Schedule

NONE, AFTER, BEFORE = "none", "adjustAfterEpoch", "searchBeforeEpoch"
# Spelling in lower case: mode.
MODES = (
    dict.fromkeys(("", "none", "false"), NONE)
    | dict.fromkeys(("after", "afterepoch", "adjustafterepoch"), AFTER)
    | dict.fromkeys(("before", "beforeepoch", "searchbeforeepoch"), BEFORE)
)


@dataclass(frozen=True)
class AutoAdjust(KeyedOptions):
    """Options of the control, with the defaults of the 2016 tool.

    `keys` maps the fields to their names in a configuration; the comment beside each field gives its meaning.

    Raises
    ------
    OptionFault
        If a value is out of range.
    """

    mode: str = NONE
    reduce_below: float = 0.0  # improvement, relative to the criterion before, below which the rate is reduced
    continue_reduce: bool = False  # once reduced, reduce after every epoch, and stop at the second small improvement
    interval: int = 1  # epochs between two looks; the criterion is their mean
    decrease: float = 0.618
    increase_above: float = math.inf  # improvement above which the rate is increased
    increase: float = 1.382
    load_best: bool = True  # return to the model before when the criterion got worse
    by_validation: bool = True  # look at the criterion on the cvReader's data when there is one
    by_evaluation: bool = False  # look at the first evaluation node instead of the criterion
    trial_minibatches: Sequence[int] = (500,)  # of a trial; a schedule
    previous_rates: int = 5  # learning rates of earlier epochs that a search begins above
    best_epochs: int = 1  # epochs that search for the best rate, not only for a sufficient one
    adapt_minibatch: bool = False
    tuning_frequency: int = 1  # epochs between two searches for a minibatch size
    tuning_max: int = 1048576  # frames
    error_margin: float = 1.0  # percent by which the criterion may grow with the minibatch

    keys: ClassVar = {
        "reduce_below": ("reduceLearnRateIfImproveLessThan", "float"),
        "continue_reduce": ("continueReduce", "bool"),
        "interval": ("learnRateAdjustInterval", "int"),
        "decrease": ("learnRateDecreaseFactor", "float"),
        "increase_above": ("increaseLearnRateIfImproveMoreThan", "float"),
        "increase": ("learnRateIncreaseFactor", "float"),
        "load_best": ("loadBestModel", "bool"),
        "by_validation": ("useCVSetControlLRIfCVExists", "bool"),
        "by_evaluation": ("useEvalCriterionControlLR", "bool"),
        "trial_minibatches": ("numMiniBatch4LRSearch", "ints"),
        "previous_rates": ("numPrevLearnRates", "int"),
        "best_epochs": ("numBestSearchEpoch", "int"),
        "adapt_minibatch": ("autoAdjustMinibatch", "bool"),
        "tuning_frequency": ("minibatchSizeTuningFrequency", "int"),
        "tuning_max": ("minibatchSizeTuningMax", "int"),
        "error_margin": ("minibatchSearchCriterionErrorMargin", "float"),
    }

    def __post_init__(self) -> None:
        trials = self.trial_minibatches if isinstance(self.trial_minibatches, Sequence) else (self.trial_minibatches,)
        object.__setattr__(self, "trial_minibatches", Schedule(trials))
        known = (NONE, AFTER, BEFORE)
        if self.mode not in known:
            raise OptionFault("autoAdjustLR", f"{self.mode}; expected {', '.join(known)}")
        self.require("reduce_below", 0 <= self.reduce_below < math.inf, "a relative improvement >= 0")
        self.require("interval", self.interval > 0, "a number of epochs > 0")
        self.require("decrease", 0 < self.decrease < 1, "a factor between 0 and 1")
        self.require("increase_above", self.increase_above >= 0, "a relative improvement >= 0")
        self.require("increase", 1 <= self.increase < math.inf, "a factor >= 1")
        self.require("trial_minibatches", min(trials, default=0) > 0, "a number of minibatches > 0")
        self.require("previous_rates", self.previous_rates > 0, "a number of epochs > 0")
        self.require("best_epochs", self.best_epochs >= 0, "a number of epochs >= 0")
        self.require("tuning_frequency", self.tuning_frequency > 0, "a number of epochs > 0")
        self.require("tuning_max", self.tuning_max > 0, "a number of frames > 0")
        self.require("error_margin", 0 <= self.error_margin < math.inf, "a percentage >= 0")
