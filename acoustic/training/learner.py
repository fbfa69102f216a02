"""One pass of updates: minibatch after minibatch forward, backward and into the parameters (CNTK book, 5.3.4)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from acoustic.engine.pair_engine import make_engine
from acoustic.network.network import Network
from acoustic.runtime.engine_options import EngineOptions
from acoustic.training.evaluation import Totals, scalar
from acoustic.training.natural_gradient import make_updater
from acoustic.training.options import ASYNCHRONOUS, EpochOptions, TrainingOptions
from readers.errors import ModelError

Matrices = Mapping[str, Any]
Each = Callable[[dict[str, float], int], None]


class Diverged(ModelError):
    """A criterion that is no longer finite."""


def require_finite(network: Network, title: str) -> None:
    """Raise Diverged for a parameter that is not finite any more: the last update shows in no criterion."""
    xp = network.backend.xp
    for node in network.parameters():
        if node.needs_gradient and not bool(xp.isfinite(node.value).all()):
            raise Diverged(
                f"{title}, last minibatch: parameter {node.name!r} is not finite; expected finite numbers; "
                "try a smaller learning rate"
            )


class Learner:
    """Teaches a network what a reader gives.

    criterion: the node to train by; names: it and the evaluation nodes whose values are wanted.  seed: with epoch and
    minibatch, what dropout and noise are drawn from.  transform: applied to matrices and layout of every minibatch;
    before_updates: called with those of a whole epoch's first minibatch and the arguments of its forward pass.
    """

    def __init__(
        self, network: Network, reader: Any, options: TrainingOptions, criterion: str, names: list[str], seed: int
    ) -> None:
        self.reader, self.options, self.seed = reader, options, seed
        self.criterion, self.names = criterion, names
        branches = options.execution_engine == ASYNCHRONOUS
        self.engine = make_engine(network, names, options=replace(EngineOptions.default(), branches=branches))
        self.updater = make_updater(network, options)
        self.transform: Callable[..., Matrices] | None = None
        self.before_updates: Callable[..., None] | None = None
        self._done = 0.0  # how much of the epoch
        self.place = ""  # what messages call the pass; "": the epoch

    def begin_training(self, start: int | None, make_mode: bool) -> None:
        """Before the first epoch: how many an earlier run has done, None: none; whether it is continued."""

    def close(self) -> None:
        """Give back what belongs to no single epoch."""

    def run(self, epoch: int, values: EpochOptions, each: Each | None = None, num_frames: int = 0) -> Totals:
        """Learn from the minibatches of an epoch, counted from 0; num_frames: a trial that stops after as many, 0: all.

        each(figures, frames) gets every minibatch's sums.  Raises Diverged, and ModelError when there is no minibatch.
        """
        totals = Totals(self.names)
        size = self.options.epoch_size or self.reader.num_frames
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # looked for below, with a place to name
            for index, minibatch in enumerate(self._minibatches(epoch, values)):
                self._done = min(1.0, totals.num_frames / max(1, size))
                figures = self._learn(epoch, index, minibatch, values, first=index == 0 and not num_frames)
                totals.add(figures, minibatch.num_frames)
                if each is not None:
                    each(figures, minibatch.num_frames)
                if 0 < num_frames <= totals.num_frames:
                    break
        self._require_frames(totals, epoch, values)
        return totals

    def _require_frames(self, totals: Totals, epoch: int, values: EpochOptions) -> None:
        """Raise ModelError for an epoch without a minibatch."""
        if totals.num_frames:
            return
        expected, size = "at least one", self.options.epoch_size
        if not getattr(self.reader, "partial", True):
            expected = f"a whole one of minibatchSize {values.minibatch_size}, or minibatchMode=partial"
        elif size and getattr(self.reader, "in_sequence", False):
            expected = f"an utterance to begin among the epochSize of {size} frames: a larger epochSize"
        raise ModelError(f"{self._title(epoch)}: the reader gave no minibatch; expected {expected}")

    def _title(self, epoch: int) -> str:
        return self.place or f"epoch {epoch + 1}"

    def _minibatches(self, epoch: int, values: EpochOptions) -> Any:
        """Of an epoch; where the reader has minibatchMode=full, whole ones."""
        size = values.minibatch_size
        given = self.reader.minibatches(epoch=epoch, minibatch_size=size, epoch_size=self.options.epoch_size)
        return given if getattr(self.reader, "partial", True) else (one for one in given if one.num_frames == size)

    def _learn(self, epoch: int, index: int, minibatch: Any, values: EpochOptions, first: bool) -> dict[str, float]:
        seed = (self.seed, epoch, index)
        layout = getattr(minibatch, "layout", None)
        matrices = minibatch.matrices if self.transform is None else self.transform(minibatch.matrices, layout)
        settings = {"dropout_rate": values.dropout_rate, "seed": seed, "layout": layout}
        learns = values.learning_rate > 0.01 * self.options.min_learning_rate
        if learns and first and self.before_updates is not None:
            self.before_updates(matrices, **settings)
        self.engine.forward(matrices, training=True, criterion=self.criterion, **settings)
        figures = {name: scalar(self.engine, name) for name in self.names}
        if not math.isfinite(figures[self.criterion]):
            raise Diverged(
                f"{self._title(epoch)}, minibatch {index + 1}: {self.criterion} is {figures[self.criterion]}; "
                "expected a finite number; try a smaller learning rate or look for damaged features"
            )
        if learns:
            frames = minibatch.num_frames
            self.updater.begin(values.rate_at(self._done), values.momentum_of(frames), frames, seed)
            self.engine.backward(self.criterion, self.updater)
        return figures
