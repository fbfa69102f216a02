"""What the controls of the learning rate have in common, and the one that follows the schedule alone."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# trial(learning rate per frame): the criterion per frame of a short training from here; not finite when it diverged.
Trial = Callable[[float], float]
Log = Callable[[str], None]


@dataclass(frozen=True)
class Decision:
    """What follows an epoch.

    roll_back: go back to the model at the end of the last interval; change: "reduced", "increased" or "", said of the
    learning rate.
    """

    roll_back: bool = False
    change: str = ""


class Control:
    """The schedule as it was written down: `autoAdjustLR=none`.

    options: TrainingOptions.  num_listed: epochs with a learning rate of their own in the schedule.
    """

    interval = 1  # epochs between two points that can be returned to
    rolls_back = False

    def __init__(self, options: Any) -> None:
        self.options, self.auto = options, options.auto_adjust
        self.finished = False  # the model there is now is the final one
        self.num_listed = len(options.learning_rates_per_minibatch or options.learning_rates_per_sample)

    def before_epoch(self, epoch: int, trial: Trial, log: Log) -> float:
        """The learning rate per frame of an epoch, counted from 0."""
        return self.options.epoch(epoch).learning_rate

    def stops(self, learning_rate: float) -> bool:
        """Whether this learning rate ends the training."""
        return False

    def survives(self, epoch: int) -> bool:
        """Whether a criterion that is no longer finite is no error in this epoch."""
        return False

    def after_epoch(self, epoch: int, criterion: float) -> Decision:
        """criterion: per frame, of this epoch; NaN when it was not finite."""
        return Decision()

    def state(self) -> dict[str, Any]:
        """What is remembered, as values for JSON."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave; what it lacks keeps its first value."""


def finite_or_none(value: float) -> float | None:
    """JSON knows no infinity."""
    return value if math.isfinite(value) else None


def or_infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)
