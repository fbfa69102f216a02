"""One pass of updates: forward, backward and parameter update for each minibatch (CNTK book, 5.3.4)."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from acoustic.engine.pair_engine import make_engine
from acoustic.network.network import Network
from acoustic.training.evaluation import EvaluationTotals, scalar
from acoustic.training.natural_gradient import make_updater
from acoustic.training.options import EpochOptions, TrainingOptions
from acoustic.training.procedures.precompute import Matrices
from readers.errors import ModelError

Each = Callable[[dict[str, float], int], None]


class Diverged(ModelError):
    """Raised when a criterion or a parameter is no longer finite."""


def require_finite(network: Network, title: str) -> None:
    """Raise Diverged if a parameter is not finite.

    This catches the last update of an epoch, which no criterion value reflects.
    """
    xp = network.backend.xp
    for node in network.parameters():
        if node.needs_gradient and not bool(xp.isfinite(node.value).all()):
            raise Diverged(
                f"{title}, last minibatch: parameter {node.name!r} is not finite; expected finite numbers; "
                "try a smaller learning rate"
            )


class Learner:
    """Trains a network on the minibatches of a reader.

    Parameters
    ----------
    network : Network
        The network to train.
    reader : readers.minibatches.base.Reader
        Source of the minibatches.
    options : TrainingOptions
        Options of the training.
    names : list of str
        Nodes whose values are accumulated. The first is the criterion to minimise.

    Attributes
    ----------
    transform : callable or None
        Applied to the matrices and the layout of every minibatch.
    before_updates : callable or None
        Called before the first update of a full epoch with the matrices and the arguments of the forward pass.
    place : str
        Name of the pass in messages; "" stands for the epoch.
    """

    def __init__(self, network: Network, reader: Any, options: TrainingOptions, names: list[str]) -> None:
        self.reader = reader
        self.options = options
        self.criterion = names[0]
        self.names = names
        self.engine = make_engine(network, names)
        self.updater = make_updater(network, options)
        self.transform: Callable[..., Matrices] | None = None
        self.before_updates: Callable[..., None] | None = None
        self._done = 0.0  # fraction of the epoch
        self.place = ""  # what messages call the pass; "": the epoch

    def begin_training(self, start: int | None) -> None:
        """Prepare for the first epoch; `start` is the number of epochs that an earlier run has finished, if any."""

    def close(self) -> None:
        """Release resources that are held across epochs."""

    def run(self, epoch: int, values: EpochOptions, each: Each | None = None, num_frames: int = 0) -> EvaluationTotals:
        """Train on the minibatches of one epoch.

        Parameters
        ----------
        epoch : int
            Epoch, counted from 0.
        values : EpochOptions
            Learning rate, momentum, minibatch size and dropout of the epoch.
        each : callable, optional
            Called as each(figures, frames) with the sums of every minibatch.
        num_frames : int
            Number of frames after which a trial stops; 0 for the whole epoch.

        Returns
        -------
        EvaluationTotals
            Sums of the criterion and the evaluation nodes.

        Raises
        ------
        Diverged
            If the criterion is not finite.
        ModelError
            If the reader gives no minibatch.
        """
        totals = EvaluationTotals(self.names)
        size = self.options.epoch_size or self.reader.num_frames
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # checked below, where the place is known
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

    def _require_frames(self, totals: EvaluationTotals, epoch: int, values: EpochOptions) -> None:
        """Raise ModelError for an epoch without a minibatch."""
        if totals.num_frames:
            return
        expected = "at least one"
        size = self.options.epoch_size
        if not getattr(self.reader, "partial", True):
            expected = f"a whole one of minibatchSize {values.minibatch_size}, or minibatchMode=partial"
        elif size and getattr(self.reader, "in_sequence", False):
            expected = f"an utterance that begins within the epochSize of {size} frames; increase epochSize"
        raise ModelError(f"{self._title(epoch)}: the reader gave no minibatch; expected {expected}")

    def _title(self, epoch: int) -> str:
        return self.place or f"epoch {epoch + 1}"

    def _minibatches(self, epoch: int, values: EpochOptions) -> Any:
        """Yield the minibatches of an epoch, only full ones if the reader has minibatchMode=full."""
        size = values.minibatch_size
        read = getattr(self.reader, "training_minibatches", self.reader.minibatches)
        minibatches = read(epoch=epoch, minibatch_size=size, epoch_size=self.options.epoch_size)
        return (
            minibatches
            if getattr(self.reader, "partial", True)
            else (minibatch for minibatch in minibatches if minibatch.num_frames == size)
        )

    def _learn(self, epoch: int, index: int, minibatch: Any, values: EpochOptions, first: bool) -> dict[str, float]:
        seed = (self.options.seed, epoch, index)
        layout = getattr(minibatch, "layout", None)
        matrices = minibatch.matrices if self.transform is None else self.transform(minibatch.matrices, layout)
        settings = {"dropout_rate": values.dropout_rate, "seed": seed, "layout": layout}
        learns = values.learning_rate > 0.01 * self.options.min_learning_rate
        if learns and first and self.before_updates is not None:
            self.before_updates(matrices, **settings)
        title = f"{self._title(epoch)}, minibatch {index + 1}"
        figures = self._forward(title, matrices, settings, learns)
        if not math.isfinite(figures[self.criterion]):
            raise Diverged(
                f"{title}: {self.criterion} is {figures[self.criterion]}; "
                "expected a finite number; try a smaller learning rate or look for damaged features"
            )
        if learns:
            frames = minibatch.num_frames
            self.updater.begin(values.rate_at(self._done), values.momentum_of(frames), frames, seed)
            self._backward()
            self.updater.finish()
        return figures

    def _forward(self, title: str, matrices: Any, settings: dict[str, Any], learns: bool) -> dict[str, float]:
        """Evaluate the nodes on a minibatch; `learns`: `_backward` follows if the criterion is finite."""
        self.engine.forward(matrices, training=True, criterion=self.criterion, **settings)
        return {name: scalar(self.engine, name) for name in self.names}

    def _backward(self) -> None:
        """Update the parameters by the gradient of the minibatch."""
        self.engine.backward(self.criterion, self.updater)
