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

    Parameters
    ----------
    mode : {"none", "adjustAfterEpoch", "searchBeforeEpoch"}
    reduce_below : float
        Improvement, relative to the criterion before, below which the learning rate is reduced.
    continue_reduce : bool
        Once reduced, reduce after every epoch, and stop at the second small improvement.
    interval : int
        Epochs between two adjustments, which use the mean of the criterion over these epochs.
    decrease : float
        Factor of a reduction.
    increase_above : float
        Relative improvement above which the learning rate is increased.
    increase : float
        Factor of an increase.
    load_best : bool
        Return to the earlier model if the criterion has become worse.
    by_validation : bool
        Use the criterion on the data of the cvReader, if there is one.
    by_evaluation : bool
        Use the first evaluation node instead of the criterion.
    trial_minibatches : schedule of int
        Minibatches of a trial.
    previous_rates : int
        Number of earlier epochs above whose learning rates a search begins.
    best_epochs : int
        Number of epochs that search for the best rate, not only for a sufficient one.
    adapt_minibatch : bool
        Whether the minibatch size is adapted.
    tuning_frequency : int
        Epochs between two searches for a minibatch size.
    tuning_max : int
        Largest minibatch size, in frames.
    error_margin : float
        Percent by which the criterion may grow with the minibatch.

    Raises
    ------
    OptionFault
        If a value is out of range.
    """

    mode: str = NONE
    reduce_below: float = option("reduceLearnRateIfImproveLessThan", 0.0, not_negative, "a relative improvement >= 0")
    continue_reduce: bool = option("continueReduce", False)
    interval: int = option("learnRateAdjustInterval", 1, positive, "a number of epochs > 0")
    decrease: float = option("learnRateDecreaseFactor", 0.618, lambda v: 0 < v < 1, "a factor between 0 and 1")
    increase_above: float = option("increaseLearnRateIfImproveMoreThan", math.inf, lambda v: v >= 0, "a number >= 0")
    increase: float = option("learnRateIncreaseFactor", 1.382, lambda v: 1 <= v < math.inf, "a factor >= 1")
    load_best: bool = option("loadBestModel", True)
    by_validation: bool = option("useCVSetControlLRIfCVExists", True)
    by_evaluation: bool = option("useEvalCriterionControlLR", False)
    trial_minibatches: Sequence[int] = option("numMiniBatch4LRSearch", (500,), positive, "a number of minibatches > 0")
    previous_rates: int = option("numPrevLearnRates", 5, positive, "a number of epochs > 0")
    best_epochs: int = option("numBestSearchEpoch", 1, not_negative, "a number of epochs >= 0")
    adapt_minibatch: bool = option("autoAdjustMinibatch", False)
    tuning_frequency: int = option("minibatchSizeTuningFrequency", 1, positive, "a number of epochs > 0")
    tuning_max: int = option("minibatchSizeTuningMax", 1048576, positive, "a number of frames > 0")
    error_margin: float = option("minibatchSearchCriterionErrorMargin", 1.0, not_negative, "a percentage >= 0")

    def __post_init__(self) -> None:
        super().__post_init__()
        known = (NONE, AFTER, BEFORE)
        if self.mode not in known:
            raise OptionFault("autoAdjustLR", f"{self.mode}; expected {', '.join(known)}")
