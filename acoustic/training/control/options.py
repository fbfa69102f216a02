"""Options of the automatic control of learning rate and minibatch size (CNTK book, section 3.3.1.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from readers.config.option_check import KeyedOptions, OptionFault, not_negative, option, positive

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
    reduce_below: float = option("reduceLearnRateIfImproveLessThan", 0.0, not_negative, "a relative improvement >= 0")
    # Once reduced, reduce after every epoch, and stop at the second small improvement.
    continue_reduce: bool = option("continueReduce", False)
    # Epochs between two looks; the criterion is their mean.
    interval: int = option("learnRateAdjustInterval", 1, positive, "a number of epochs > 0")
    decrease: float = option("learnRateDecreaseFactor", 0.618, lambda v: 0 < v < 1, "a factor between 0 and 1")
    # Improvement above which the rate is increased.
    increase_above: float = option("increaseLearnRateIfImproveMoreThan", math.inf, lambda v: v >= 0, "a number >= 0")
    increase: float = option("learnRateIncreaseFactor", 1.382, lambda v: 1 <= v < math.inf, "a factor >= 1")
    load_best: bool = option("loadBestModel", True)  # return to the model before when the criterion got worse
    # Look at the criterion on the cvReader's data when there is one.
    by_validation: bool = option("useCVSetControlLRIfCVExists", True)
    # Look at the first evaluation node instead of the criterion.
    by_evaluation: bool = option("useEvalCriterionControlLR", False)
    # Of a trial; a schedule.
    trial_minibatches: Sequence[int] = option("numMiniBatch4LRSearch", (500,), positive, "a number of minibatches > 0")
    # Learning rates of earlier epochs that a search begins above.
    previous_rates: int = option("numPrevLearnRates", 5, positive, "a number of epochs > 0")
    # Epochs that search for the best rate, not only for a sufficient one.
    best_epochs: int = option("numBestSearchEpoch", 1, not_negative, "a number of epochs >= 0")
    adapt_minibatch: bool = option("autoAdjustMinibatch", False)
    # Epochs between two searches for a minibatch size.
    tuning_frequency: int = option("minibatchSizeTuningFrequency", 1, positive, "a number of epochs > 0")
    tuning_max: int = option("minibatchSizeTuningMax", 1048576, positive, "a number of frames > 0")  # frames
    # Percent by which the criterion may grow with the minibatch.
    error_margin: float = option("minibatchSearchCriterionErrorMargin", 1.0, not_negative, "a percentage >= 0")

    def __post_init__(self) -> None:
        super().__post_init__()
        known = (NONE, AFTER, BEFORE)
        if self.mode not in known:
            raise OptionFault("autoAdjustLR", f"{self.mode}; expected {', '.join(known)}")
