"""Stochastic gradient descent: epochs over a reader, a model and a checkpoint after each, resumed where it stopped.

Source: CNTK book, sections 3.3.1 and 5.3.  Everything random in epoch e depends on (seed, e, minibatch) alone: the
reader's order and the dropout masks.  With the checkpoint's smoothed gradients that makes a resumed training equal, bit
for bit, to one that was never interrupted, given the same data, options and number of BLAS threads.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from acoustic.network.comparison import differences, fingerprint, summary
from acoustic.network.network import Network
from acoustic.training.learner import Learner
from acoustic.training.options import TrainingOptions
from acoustic.training.parallel import ParallelLearner, ParallelOptions
from acoustic.training.parallel.files import IterationFiles
from acoustic.training.procedures.adaptation import Reference
from acoustic.training.reporting.display import Log, Progress, silent
from acoustic.training.reporting.log import read_history
from acoustic.training.state.checkpoint import TrainingFiles
from acoustic.training.trainer import Trainer
from readers.errors import ModelError
from readers.minibatches.base import Reader


@dataclass
class TrainingResult:
    """What training leaves.

    network: another object than the one given when training was resumed from a file; history: one row per epoch, those
    of earlier runs included (see log.py); start_epoch: epochs that an earlier run had done.
    """

    network: Network
    history: list[dict]
    start_epoch: int


def train(
    network: Network,
    reader,
    options: TrainingOptions,
    cv_reader=None,
    *,
    model_path: str | Path | None = None,
    make_mode: bool = True,
    description: str = "",
    seed: int = 0,
    log: Log = silent,
    progress: Progress = silent,
    reference: Reference | None = None,
    on_epoch: Callable[[dict], None] = silent,
    parallel: ParallelOptions | None = None,
    source: Callable[[], Reader] | None = None,
) -> TrainingResult:
    """Train a network.

        options = TrainingOptions(max_epochs=10, learning_rates_per_minibatch=(0.8, 3.2), minibatch_size=(256, 1024))
        result = train(network, reader, options, cv_reader, model_path="exp/dnn", log=print)

    reader, cv_reader: sources with `dims()`, `num_frames` and `minibatches(epoch, minibatch_size, epoch_size)`, such
    as readers.minibatches.base.Reader; cv_reader is evaluated after every epoch.  Statistics that the network wants
    (Mean, InvStdDev) are computed first.
    model_path: where models, checkpoints, history and picture go; None keeps everything in memory.
    make_mode: continue after the newest model of model_path; otherwise the models of that training are removed, as
    soon as the new one has its statistics.  description: what to write to model_path.config then.
    reference: the fixed model of KL adaptation; it takes options.adaptation_weight of every label.
    on_epoch: called with each epoch's row of the history, before the learning rate is settled.
    parallel: train by several jobs, whose averaged models go to the directory model_path.parallel; source: opens the
    training reader in each; it is sent to other processes, as functools.partial(open_reader, block, seed) can be.
    log takes the lines of the training log; progress(frames done, frames in the epoch, **figures) is for a display.
    Raises ModelError when a criterion or parameter is no longer finite (the models of earlier epochs stay) and when
    another training of model_path is under way, ShapeError when reader and network do not fit.
    """
    files = TrainingFiles(model_path, options.max_epochs, options.keep_checkpoints) if model_path is not None else None
    with files.reserved() if files is not None else contextlib.nullcontext():
        start = _start_epoch(files, make_mode)
        begun_with = fingerprint(network)
        if start is not None:
            log(f"Starting from {files.model(start)}; the network description is not read.")
            for change in changed_description(files, start, network):
                log(f"warning: {change}")
            network = files.load(start, network.backend.precision, network.backend.device)
        if start == options.max_epochs:
            log("No further training is necessary.")
            return TrainingResult(network, read_history(files.history), start)
        make_learner: Callable[..., Learner] = Learner
        directory = Path(f"{model_path}.parallel")
        if parallel is not None:
            make_learner = partial(ParallelLearner, parallel=parallel, source=source, directory=directory, log=log)
        trainer = Trainer(
            network, reader, options, cv_reader, files, seed, log, progress, reference, on_epoch, make_learner
        )
        trainer.description = begun_with
        with contextlib.closing(trainer.learner):
            trainer.prepare(start, make_mode, description)
            if parallel is None and start is None and files is not None:
                IterationFiles(directory, 1).remove()  # of an earlier training, by several jobs
            trainer.run(start or 0)
        if files is not None:
            log(f"model: {files.model_path}  history: {files.history}  picture: {files.plot}")
        return TrainingResult(network, trainer.history, start or 0)


def changed_description(files: TrainingFiles, epoch: int, described: Network) -> list[str]:
    """A message when a training goes on, or ended, with another description than it was begun with.

    What it was begun with is asked, not the model: one that was edited beforehand is not as described, and rightly so.
    """
    try:
        checkpoint = files.load_checkpoint(epoch)
    except ModelError:  # damaged; who needs it will say so
        return []
    if checkpoint is None or checkpoint.state.get("description") in (None, "", fingerprint(described)):
        return []
    changes = differences(described, files.load(epoch))
    path = files.model(epoch)
    return [f"the description has changed: {summary(changes)}; {path} stays as it was begun"] if changes else []


def _start_epoch(files: TrainingFiles | None, make_mode: bool) -> int | None:
    """The epochs that an earlier run has done; None when there is no model to start from."""
    if files is None:
        return None
    files.remove_leftovers()
    return files.newest_epoch() if make_mode else None
