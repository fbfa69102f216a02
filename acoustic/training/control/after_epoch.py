"""AdjustAfterEpoch: control of the learning rate by the improvement of the criterion (CNTK book 3.3.1.2; 2016 tool)."""

import math
from typing import Any, ClassVar

from acoustic.training.control.base import Control, Decision, Trial, or_infinite
from readers.common.report import Log


class AdjustAfterEpoch(Control):
    """Adjusts the learning rate at the end of every interval that extends beyond the listed learning rates.

    With p the criterion of the previous interval, a that of this one (means over their epochs), and e = p - a:

        a > p, or a not finite: return to the model and training state at the end of the previous interval
        e <= reduce_below p, or a not finite: multiply the rate by `decrease`
        e > increase_above p: multiply the rate by `increase`

    With continue_reduce, every interval after the first small improvement reduces the rate, and the second small
    improvement ends the training. The rate is that of the schedule (its last value beyond its end) times a factor, so
    that a repeated epoch uses the reduced rate even if the schedule lists a rate for it.
    """

    saved: ClassVar = {
        **dict.fromkeys(("factor", "total"), float),
        **dict.fromkeys(("reducing", "finished"), bool),
        "previous": or_infinite,
        "count": int,
    }

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.interval = self.auto.interval
        self.rolls_back = self.auto.load_best
        self.factor = 1.0
        self.previous = math.inf
        self.reducing = False
        # of this interval
        self.total = 0.0
        self.count = 0

    def before_epoch(self, epoch: int, trial: Trial, log: Log) -> float:
        return self.options.epoch(min(epoch, self.num_listed - 1)).learning_rate * self.factor

    def stops(self, learning_rate: float) -> bool:
        return learning_rate < self.options.min_learning_rate

    def survives(self, epoch: int) -> bool:
        return self._acts(epoch) and self.auto.load_best

    def _acts(self, epoch: int) -> bool:
        return epoch >= self.num_listed and (epoch + 1) % self.interval == 0

    def after_epoch(self, epoch: int, criterion: float) -> Decision:
        self.total += criterion
        self.count += 1
        if (epoch + 1) % self.interval:
            return Decision()
        average = self.total / self.count
        self.total = 0.0
        self.count = 0
        decision = self._decide(average) if self._acts(epoch) else Decision()
        if not decision.roll_back:
            self.previous = average
        return decision

    def _decide(self, average: float) -> Decision:
        has_previous = math.isfinite(self.previous)
        lost = math.isnan(average)
        gain = self.previous - average
        roll_back = self.auto.load_best and (lost or (has_previous and gain < 0))
        small = lost or (has_previous and gain <= self.auto.reduce_below * self.previous)
        large = has_previous and not lost and gain > self.auto.increase_above * self.previous
        if self.auto.continue_reduce:
            if small and self.reducing:
                self.finished = True
                return Decision(roll_back)
            self.reducing = self.reducing or small
            change = "reduced" if self.reducing else ""
        else:
            change = "reduced" if small else "increased" if large else ""
        self.factor *= {"": 1.0, "reduced": self.auto.decrease, "increased": self.auto.increase}[change]
        return Decision(roll_back, change=change)
