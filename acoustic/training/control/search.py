"""SearchBeforeEpoch: the learning rate is found by short trials (CNTK book 3.3.1.2; 2016 tool)."""

import math
from typing import Any, ClassVar

from acoustic.training.control.base import Control, Decision, Trial, or_infinite
from readers.common.report import Log
from readers.errors import ModelError

STEP = 0.618  # from one trial's learning rate to the next
SHARE = 0.3  # of the criterion of the epoch before, in what a trial has to reach, when the epoch's size is not known
CLOSE = 1.2  # learning rates whose quotient is no larger are not told apart


class SearchBeforeEpoch(Control):
    """Searches the learning rate of every epoch beyond the listed rates by short trainings from the current model.

    Let b be the criterion of a trial with learning rate 0, p that of the previous epoch, and r the square root of the
    trial's share of an epoch. The rate starts well above those of the last epochs and falls by the factor 0.618 until a
    trial's criterion is at most max(r p + (1 - r) b, b). The first `best_epochs` epochs then refine it: of this rate
    and 0.01 / minibatch size, the one with the worse criterion moves towards the other by 0.618 until they are close.
    """

    saved: ClassVar = {"previous": or_infinite, "rates": lambda rates: [float(rate) for rate in rates]}

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.previous = math.inf
        self.rates: list[float] = []  # of the last epochs, the newest last

    def before_epoch(self, epoch: int, trial: Trial, log: Log) -> float:
        if epoch < self.num_listed:
            return self._remember(super().before_epoch(epoch, trial, log))
        if self.options.trace_level > 0:
            trial = _logged(trial, log)
        unchanged = trial(0.0)
        if not math.isfinite(unchanged):
            raise ModelError(
                f"epoch {epoch + 1}: the criterion of a trial without learning is {unchanged}; expected a finite "
                "number; look for damaged features"
            )
        base = self._base(epoch, unchanged)
        rate, criterion = self._sufficient(epoch, trial, base)
        if epoch < self.auto.best_epochs:
            rate = self._best(epoch, trial, rate, criterion)
        log(f"Best Learn Rate Per Sample for Epoch[{epoch + 1}] = {rate:.10g}  baseCriterion={base:.10g}")
        return self._remember(rate)

    def stops(self, learning_rate: float) -> bool:
        return learning_rate < self.options.min_learning_rate

    def after_epoch(self, epoch: int, criterion: float) -> Decision:
        self.previous = criterion
        return Decision()

    def _remember(self, rate: float) -> float:
        self.rates = [*self.rates, rate][-self.auto.previous_rates :]
        return rate

    def _base(self, epoch: int, unchanged: float) -> float:
        """Return the criterion that a trial must reach; `unchanged` is that of the trial with learning rate 0."""
        previous = self.previous if math.isfinite(self.previous) else unchanged
        size = self.options.epoch_size
        share = math.sqrt(trial_frames(self.options, epoch) / size) if size else SHARE
        return max(share * previous + (1 - share) * unchanged, unchanged)

    def _sufficient(self, epoch: int, trial: Trial, base: float) -> tuple[float, float]:
        """Return (learning rate, criterion) of the first trial that reaches the base criterion."""
        size = self.options.epoch(epoch).minibatch_size
        rate = max(self.rates) / STEP / STEP if self.rates and max(self.rates) > 0 else 1 / 8 / STEP / math.sqrt(size)
        lowest = 0.3 * self.options.min_learning_rate
        while True:
            rate *= STEP
            criterion = trial(rate)
            if criterion <= base:
                return rate, criterion
            if rate <= lowest:
                if math.isfinite(criterion):
                    return rate, criterion
                raise ModelError(
                    f"epoch {epoch + 1}: no learning rate down to {rate:.3g} per sample gives a finite criterion; "
                    "expected one; look for damaged features or start from another model"
                )

    def _best(self, epoch: int, trial: Trial, right: float, right_criterion: float) -> float:
        left = 0.01 / self.options.epoch(epoch).minibatch_size
        left_criterion = trial(left)
        while right > CLOSE * left:
            # A criterion that is not finite is the worse one.
            if not right_criterion <= left_criterion:
                right *= STEP
                right_criterion = trial(right)
            else:
                left /= STEP
                left_criterion = trial(left)
        return left if left_criterion < right_criterion else right


def trial_frames(options: Any, epoch: int) -> int:
    """Return the number of frames of a trial: a number of minibatches, limited to the size of an epoch."""
    frames = options.auto_adjust.trial_minibatches[epoch] * options.minibatch_size[epoch]
    return min(frames, options.epoch_size) if options.epoch_size else frames


def _logged(trial: Trial, log: Log) -> Trial:
    def shown(rate: float) -> float:
        criterion = trial(rate)
        log(f"AdaptiveLearnRateSearch: learning rate per sample = {rate:.10g}; criterion = {criterion:.8f}")
        return criterion

    return shown
