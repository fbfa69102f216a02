"""Stochastic gradient descent over epochs, with a model and a checkpoint after each epoch.

Source: CNTK book, sections 3.3.1 and 5.3.  The order of the data and the dropout masks of an epoch depend only on the
seed, the epoch and the minibatch.  A resumed training therefore equals an uninterrupted one bit for bit, given the same
data, options and number of BLAS threads.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from acoustic.descriptions.opening import NetworkSource, open_network
from acoustic.network.comparison import differences, fingerprint, summary
from acoustic.network.network import Network
from acoustic.training.learner import Learner
from acoustic.training.options import TrainingOptions
from acoustic.training.parallel import DataParallelLearner, ParallelLearner, ParallelOptions
from acoustic.training.parallel.files import IterationFiles
from acoustic.training.procedures.adaptation import ReferenceModel
from acoustic.training.reporting.log import read_history
from acoustic.training.state.checkpoint import TrainingFiles
from acoustic.training.trainer import Trainer, best_epoch, watched_nodes
from readers.common.report import Log, Progress, RunReport, silent
from readers.common.temporary import scratch_directory
from readers.errors import ModelError
from readers.minibatches.base import reader_report


@dataclass(frozen=True)
class EpochResult:
    """The figures of an epoch, averages per frame.

    Attributes
    ----------
    epoch : int
        Counted from 1.
    criterion : float
        The training criterion.
    error : float or None
        The first evaluation node, such as the fraction of wrong frames; None if the network has none but the criterion.
    validation_criterion, validation_error : float or None
        The same on the validation data; None without any.
    """

    epoch: int
    criterion: float
    error: float | None
    validation_criterion: float | None
    validation_error: float | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """Return the figures in a row of the history."""
        trained, validated = ([*row.get(part, {}).values(), None, None] for part in ("training", "validation"))
        return cls(row["epoch"], *trained[:2], *validated[:2])


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The outcome of a training run.

    Attributes
    ----------
    network : Network
        The trained network. It is not the object given to `train` when training was resumed from a file.
    history : list of dict
        One row per epoch, including the epochs of earlier runs; see reporting/log.py.
    start_epoch : int
        Number of epochs that earlier runs had finished.
    best_epoch : int or None
        The epoch, counted from 1, with the smallest criterion, on the validation data if there are any.
    model_path : Path or None
        The final model; None if everything stayed in memory.
    report : RunReport
        The utterances, or records, of the readers, and those that they skipped.
    """

    network: Network
    history: list[dict[str, Any]]
    start_epoch: int
    best_epoch: int | None
    model_path: Path | None
    report: RunReport

    @property
    def epochs(self) -> tuple[EpochResult, ...]:
        """Criterion and error of each epoch."""
        return tuple(map(EpochResult.of, self.history))


def train(
    network: NetworkSource,
    reader: Any,
    options: TrainingOptions,
    validation: Any = None,
    *,
    model_path: str | Path | None = None,
    progress: Progress = silent,
    log: Log = silent,
    on_epoch: Callable[[dict[str, Any]], None] = silent,
    reference: ReferenceModel | None = None,
    parallel: ParallelOptions | None = None,
) -> TrainingResult:
    """Train a network by stochastic gradient descent.

    Statistics that the network needs (Mean, InvStdDev) are computed before the first epoch.

    Parameters
    ----------
    network : Network, BuilderOptions, NdlOptions, str or Path
        The network to train, whose parameters change in place, or what describes it; see
        `acoustic.descriptions.open_network`. Its initial values come from `options.seed`.
    reader : readers.minibatches.base.Reader
        Training data: any object with `dims()`, `num_frames` and `minibatches(epoch, minibatch_size, epoch_size)`, such
        as `readers.sources.arrays.ArrayReader`.
    options : TrainingOptions
        Learning rates, update rule, minibatch sizes and the other options of the SGD block.
    validation : readers.minibatches.base.Reader, optional
        Validation data, evaluated after every epoch.
    model_path : str or Path, optional
        Where models, checkpoints, the history and the plot are written. Without it everything stays in memory. With
        `options.make_mode` training continues after the newest model there; without, the models there are removed once
        the statistics of the new one are computed.
    progress : callable
        Called as ``progress(frames done, frames in the epoch, **figures)``.
    log : callable
        Receives the lines of the training log.
    on_epoch : callable
        Receives each epoch's row of the history before the control of the learning rate decides.
    reference : ReferenceModel, optional
        The fixed model of KL adaptation, whose posteriors get the weight `options.adaptation_weight` in the labels.
    parallel : ParallelOptions, optional
        Train with several jobs, which use files in the directory `model_path`.parallel.

    Returns
    -------
    TrainingResult

    Raises
    ------
    ModelError
        If a criterion or parameter is no longer finite (the models of earlier epochs are kept), or if another
        training is writing to `model_path`.
    ShapeError
        If the streams of a reader do not match the inputs of the network.

    Examples
    --------
    >>> network = SimpleNetworkOptions(layer_sizes=(39, 128, 40), eval_criterion="ErrorPrediction")
    >>> options = TrainingOptions(max_epochs=10, learning_rates_per_minibatch=(0.8, 3.2), minibatch_size=(256, 1024))
    >>> result = train(network, reader, options, validation, model_path="exp/dnn", log=print)
    """
    network = open_network(network, seed=options.seed)
    files = None
    if model_path is not None:
        files = TrainingFiles(model_path, options.max_epochs, options.keep_checkpoints, options.keep_models)
    with contextlib.ExitStack() as stack:
        if files is not None:
            stack.enter_context(files.reserved())
            directory = f"{model_path}.parallel"
        else:
            directory = str(stack.enter_context(scratch_directory())) if parallel is not None else ""
        start = _start_epoch(files, options)
        begun_with = fingerprint(network)
        if files is not None and start is not None:
            log(f"Starting from {files.model(start)}; the network description is not read.")
            for change in changed_description(files, start, network):
                log(f"warning: {change}")
            network = files.load(start, network.backend.precision, network.backend.device)
        readers = [source for source in (reader, validation) if source is not None]
        if files is not None and start == options.max_epochs:
            log("No further training is necessary.")
            history = read_history(files.history)
            best = best_epoch(history, watched_nodes(network, options), options.auto_adjust)
            return TrainingResult(network, history, start, best, files.model_path, reader_report(*readers))
        make_learner: Callable[..., Learner] = Learner
        if parallel is not None:
            kind = ParallelLearner if parallel.averages else DataParallelLearner
            make_learner = partial(kind, parallel=parallel, directory=directory, log=log)
        trainer = Trainer(network, reader, options, validation, files, log, progress, on_epoch, reference, make_learner)
        trainer.description = begun_with
        with contextlib.closing(trainer.learner):
            trainer.prepare(start)
            averages = parallel is not None and parallel.averages
            if not averages and start is None and files is not None:
                IterationFiles(directory, 1).remove()  # files of an earlier training by several jobs
            trainer.run(start or 0)
        best = trainer.best_epoch()
        if not options.keep_models and files is not None and best:
            log(f"best model: {files.model(best)}")
        if files is not None:
            log(f"model: {files.model_path}  history: {files.history}  picture: {files.plot}")
        path = None if files is None else files.model_path
        return TrainingResult(network, trainer.history, start or 0, best, path, reader_report(*readers))


def changed_description(files: TrainingFiles, epoch: int, described: Network) -> list[str]:
    """Return a warning if the network description differs from the one that the training was started with.

    The comparison uses the description recorded in the checkpoint, not the model, because a model may have been
    edited on purpose before training.
    """
    try:
        checkpoint = files.load_checkpoint(epoch)
    except ModelError:  # damaged; reported when it is needed
        return []
    if checkpoint is None or checkpoint.state.get("description") in (None, "", fingerprint(described)):
        return []
    changes = differences(described, files.load(epoch))
    path = files.model(epoch)
    return [f"the description has changed: {summary(changes)}; {path} is kept as trained"] if changes else []


def _start_epoch(files: TrainingFiles | None, options: TrainingOptions) -> int | None:
    """Return the number of epochs that earlier runs have finished, or None if there is no model to start from."""
    if files is None or not options.make_mode:
        return None
    if options.extend:
        files.extend()
    return files.newest_epoch()
