"""Options of the automatic control of learning rate and minibatch size (CNTK book, section 3.3.1.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from readers.config.option_check import KeyedOptions, OptionFault, option
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

    The comment at each field gives its meaning.

    Raises
    ------
    OptionFault
        If a value is out of range.
    """

    mode: str = NONE
    # Improvement, relative to the criterion before, below which the rate is reduced.
    reduce_below: float = option("reduceLearnRateIfImproveLessThan", 0.0)
    # Once reduced, reduce after every epoch, and stop at the second small improvement.
    continue_reduce: bool = option("continueReduce", False)
    interval: int = option("learnRateAdjustInterval", 1)  # epochs between two looks; the criterion is their mean
    decrease: float = option("learnRateDecreaseFactor", 0.618)
    # Improvement above which the rate is increased.
    increase_above: float = option("increaseLearnRateIfImproveMoreThan", math.inf)
    increase: float = option("learnRateIncreaseFactor", 1.382)
    load_best: bool = option("loadBestModel", True)  # return to the model before when the criterion got worse
    # Look at the criterion on the cvReader's data when there is one.
    by_validation: bool = option("useCVSetControlLRIfCVExists", True)
    # Look at the first evaluation node instead of the criterion.
    by_evaluation: bool = option("useEvalCriterionControlLR", False)
    trial_minibatches: Sequence[int] = option("numMiniBatch4LRSearch", (500,))  # of a trial; a schedule
    previous_rates: int = option("numPrevLearnRates", 5)  # learning rates of earlier epochs that a search begins above
    # Epochs that search for the best rate, not only for a sufficient one.
    best_epochs: int = option("numBestSearchEpoch", 1)
    adapt_minibatch: bool = option("autoAdjustMinibatch", False)
    # Epochs between two searches for a minibatch size.
    tuning_frequency: int = option("minibatchSizeTuningFrequency", 1)
    tuning_max: int = option("minibatchSizeTuningMax", 1048576)  # frames
    # Percent by which the criterion may grow with the minibatch.
    error_margin: float = option("minibatchSearchCriterionErrorMargin", 1.0)

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
