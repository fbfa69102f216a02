"""Adaptive minibatch size: the largest size that learns as well as a small one (CNTK book 3.3.1.2)."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

from acoustic.training.control.base import Resumable
from readers.common.report import Log

GROWTH = math.sqrt(2.0)  # from one trial's size to the next
MULTIPLE = 64  # frames


class AdaptiveMinibatch(Resumable):
    """Searches a minibatch size for the epochs beyond the listed sizes.

    It takes the largest size, in steps of sqrt(2) rounded to multiples of 64, whose short training has a criterion at
    most error_margin percent above that of the smallest size.

    The smallest size is the listed one, divided by the square root of the change of the learning rate since the first
    epoch if the rate fell, and at least half of the previous size. The largest is tuning_max, at most twice the
    previous size and at most the size of an epoch. Epochs whose number, counted from 1, is not a multiple of
    tuning_frequency keep the previous size.

    Parameters
    ----------
    options : TrainingOptions
        Options of the training, including `auto_adjust`.
    epoch_frames : int
        Frames of an epoch, if the options have no epoch_size; 0 if unknown.
    """

    saved: ClassVar = {"previous": int, "first_rate": float}

    def __init__(self, options: Any, epoch_frames: int = 0) -> None:
        self.options = options
        self.auto = options.auto_adjust
        self.epoch_frames = options.epoch_size or epoch_frames
        self.previous = 0  # size chosen last; 0: none yet
        self.first_rate = 0.0  # learning rate of the first epoch

    def before_epoch(self, epoch: int, learning_rate: float, trial: Callable[[int], float], log: Log) -> int:
        """Return the minibatch size of an epoch, counted from 0.

        trial(size) returns the criterion per frame of a short training with that size.
        """
        self.first_rate = self.first_rate or learning_rate
        listed = self.options.minibatch_size[epoch]
        if not self.auto.adapt_minibatch or epoch < len(self.options.minibatch_size):
            return listed
        if epoch < 2:
            self.previous = 0
        if (epoch + 1) % self.auto.tuning_frequency:
            return self.previous or listed
        smallest, largest = self._range(listed, learning_rate)
        before = self.previous
        self.previous = self._search(epoch, smallest, largest, trial, log)
        if self.previous != before:
            log(f"Minibatch size adapted to {self.previous} for epoch {epoch + 1}.")
        return self.previous

    def _range(self, listed: int, learning_rate: float) -> tuple[int, int]:
        change = learning_rate / self.first_rate if self.first_rate else 1.0
        smallest = int(listed / math.sqrt(change)) if 0 < change < 1 else listed
        largest = self.auto.tuning_max
        if self.epoch_frames:
            largest = min(largest, self.epoch_frames)
        if self.previous:
            smallest = max(smallest, self.previous // 2)
            largest = min(largest, 2 * self.previous)
        return smallest, largest

    def _search(self, epoch: int, smallest: int, largest: int, trial: Callable[[int], float], log: Log) -> int:
        if smallest > largest:
            return largest
        good = 0
        base = 0.0
        size = float(smallest)
        while size <= largest * (1 + 1e-6):  # the root of two squared is a little more than two
            tried = min(max(MULTIPLE * int((size + MULTIPLE / 2) // MULTIPLE), MULTIPLE), largest)
            if tried != good:
                criterion = trial(tried)
                if self.options.trace_level > 0:
                    log(
                        f"AdaptiveMinibatchSearch Epoch[{epoch + 1}]: minibatchSize={tried} (search range: "
                        f"{smallest}..{largest}); criterion = {criterion:.8f}"
                    )
                if not good:
                    base = criterion
                elif not criterion <= base * (1 + self.auto.error_margin / 100):
                    break
                good = tried
            size *= GROWTH
        return good
