"""Options of the automatic control of learning rate and minibatch size (CNTK book, section 3.3.1.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from readers.config.options import Options, option

NONE, AFTER, BEFORE = "none", "adjustAfterEpoch", "searchBeforeEpoch"
# Spelling in lower case: mode.
MODES = (
    dict.fromkeys(("none", "false"), NONE)
    | dict.fromkeys(("after", "afterepoch", "adjustafterepoch"), AFTER)
    | dict.fromkeys(("before", "beforeepoch", "searchbeforeepoch"), BEFORE)
)


@dataclass(frozen=True)
class AutoAdjust(Options):
    """Options of the control, with the defaults of the 2016 tool.

    Raises
    ------
    OptionFault
        If a value is out of range.
    """

    mode: Literal["none", "adjustAfterEpoch", "searchBeforeEpoch"] = option(
        NONE,
        "when the learning rate is controlled",
        cntk="autoAdjustLR",
        parse=lambda text: MODES.get(text.lower(), text),
    )
    reduce_below: float = option(
        0.0,
        "relative improvement of the criterion below which the learning rate is reduced",
        least=0,
        cntk="reduceLearnRateIfImproveLessThan",
    )
    continue_reduce: bool = option(
        False, "once reduced, reduce after every epoch, and stop at the second small improvement"
    )
    interval: int = option(
        1,
        "epochs between two adjustments, which use the mean of the criterion over these epochs",
        unit="epochs",
        least=1,
        cntk="learnRateAdjustInterval",
    )
    decrease: float = option(0.618, "factor of a reduction", above=0, below=1, cntk="learnRateDecreaseFactor")
    increase_above: float = option(
        math.inf,
        "relative improvement above which the learning rate is increased",
        least=0,
        cntk="increaseLearnRateIfImproveMoreThan",
    )
    increase: float = option(1.382, "factor of an increase", least=1, cntk="learnRateIncreaseFactor")
    load_best: bool = option(
        True, "return to the earlier model if the criterion has become worse", cntk="loadBestModel"
    )
    by_validation: bool = option(
        True, "use the criterion on the data of cvReader, if there is one", cntk="useCVSetControlLRIfCVExists"
    )
    by_evaluation: bool = option(
        False, "use the first evaluation node instead of the criterion", cntk="useEvalCriterionControlLR"
    )
    trial_minibatches: Sequence[int] = option(
        (500,), "minibatches of a trial", unit="minibatches", least=1, cntk="numMiniBatch4LRSearch"
    )
    previous_rates: int = option(
        5,
        "number of earlier epochs above whose learning rates a search begins",
        unit="epochs",
        least=1,
        cntk="numPrevLearnRate numPrevLearnRates",
    )
    best_epochs: int = option(
        1,
        "epochs that search for the best rate, not only for a sufficient one",
        unit="epochs",
        least=0,
        cntk="numBestSearchEpoch",
    )
    adapt_minibatch: bool = option(False, "adapt the minibatch size", cntk="autoAdjustMinibatch")
    tuning_frequency: int = option(
        1, "interval of searches for a minibatch size", unit="epochs", least=1, cntk="minibatchSizeTuningFrequency"
    )
    tuning_max: int = option(
        1048576, "largest minibatch size of a search", unit="frames", least=1, cntk="minibatchSizeTuningMax"
    )
    error_margin: float = option(
        1.0,
        "percent by which the criterion may grow with the minibatch",
        least=0,
        cntk="minibatchSearchCriterionErrorMargin",
    )
