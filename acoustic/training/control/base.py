"""Base class of learning rate controls, which follows the schedule."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from readers.common.report import Log

# trial(learning rate per frame): the criterion per frame of a short training from here; not finite when it diverged.
Trial = Callable[[float], float]


@dataclass(frozen=True)
class Decision:
    """What follows an epoch.

    Attributes
    ----------
    roll_back : bool
        Return to the model at the end of the last interval.
    change : str
        "reduced", "increased" or "": the change of the learning rate.
    """

    roll_back: bool = False
    change: str = ""


class Resumable:
    """An object whose state is saved in checkpoints.

    Attributes
    ----------
    saved : dict
        Names of the attributes to save, with functions that convert the saved values.
    """

    saved: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}

    def state(self) -> dict[str, Any]:
        """Return the state as values that JSON can hold; None stands for a number that is not finite."""
        values = {name: getattr(self, name) for name in self.saved}
        odd = [name for name, value in values.items() if isinstance(value, float) and not math.isfinite(value)]
        return values | dict.fromkeys(odd)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state; missing entries keep their initial values."""
        for name, convert in self.saved.items():
            if name in state:
                setattr(self, name, convert(state[name]))


def or_infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)


class Control(Resumable):
    """Follows the learning rate schedule unchanged: `autoAdjustLR=none`.

    Parameters
    ----------
    options : TrainingOptions
        Options of the training, including `auto_adjust`.

    Attributes
    ----------
    num_listed : int
        Number of epochs with a learning rate of their own in the schedule.
    finished : bool
        Whether the current model is the final one.
    """

    interval = 1  # epochs between two points that can be returned to
    rolls_back = False
    factor = 1.0  # of the schedule's last rate, after the epochs that it lists

    def __init__(self, options: Any) -> None:
        self.options = options
        self.auto = options.auto_adjust
        self.finished = False  # the model there is now is the final one
        self.num_listed = len(options.learning_rates_per_minibatch or options.learning_rates_per_sample)

    def before_epoch(self, epoch: int, trial: Trial, log: Log) -> float:
        """Return the learning rate per frame of an epoch, counted from 0."""
        return self.options.epoch(epoch).learning_rate

    def stops(self, learning_rate: float) -> bool:
        """Return whether this learning rate ends the training."""
        return False

    def survives(self, epoch: int) -> bool:
        """Return whether training goes on if the criterion of this epoch is not finite."""
        return False

    def after_epoch(self, epoch: int, criterion: float) -> Decision:
        """Decide what follows an epoch; `criterion` is its value per frame, NaN if it was not finite."""
        return Decision()
