"""Stochastic gradient descent: epochs over a reader, a model and a checkpoint after each, resumed where it stopped.

Source: CNTK book, sections 3.3.1 and 5.3.  Everything random in epoch e depends on (seed, e, minibatch) alone: the
reader's order and the dropout masks.  With the checkpoint's smoothed gradients that makes a resumed training equal, bit
for bit, to one that was never interrupted, given the same data, options and number of BLAS threads.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from acoustic.engine import Engine
from acoustic.network import Network
from acoustic.nodes.convolution import limit_packing
from acoustic.training.checkpoint import Checkpoint, TrainingFiles
from acoustic.training.evaluation import Totals, check_inputs, evaluate, scalar
from acoustic.training.log import (
    append_history,
    finished_line,
    minibatch_line,
    read_history,
    starting_line,
    validation_line,
)
from acoustic.training.options import EpochOptions, TrainingOptions
from acoustic.training.plots import draw_history
from acoustic.training.precompute import precompute
from acoustic.training.update import Updater
from readers.errors import ModelError

PROGRESS_INTERVAL = 0.1  # seconds
SWEEP_COLUMNS = 4096  # frames at a time where nothing is learned in between
PLOT_INTERVAL = 60.0  # seconds between pictures while training runs; the last epoch always gives one

Log = Callable[[str], None]
Progress = Callable[..., None]


def silent(*_arguments, **_figures) -> None:
    """A log or progress display that shows nothing."""


@dataclass
class TrainingResult:
    """What training leaves.

    network: another object than the one given when training was resumed from a file; history: one row per epoch, those
    of earlier runs included (see training_log); start_epoch: epochs that an earlier run had done.
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
) -> TrainingResult:
    """Train a network.

        options = TrainingOptions(max_epochs=10, learning_rates_per_minibatch=(0.8, 3.2), minibatch_size=(256, 1024))
        result = train(network, reader, options, cv_reader, model_path="exp/dnn", log=print)

    reader, cv_reader: sources with `dims()`, `num_frames` and `minibatches(epoch, minibatch_size, epoch_size)`, such
    as readers.minibatch.Reader; cv_reader is evaluated after every epoch.  Statistics that the network wants
    (Mean, InvStdDev) are computed first.
    model_path: where models, checkpoints, history and picture go; None keeps everything in memory.
    make_mode: continue after the newest model of model_path; otherwise the models of that training are removed, as
    soon as the new one has its statistics.  description: what to write to model_path.config then.
    log takes the lines of the training log; progress(frames done, frames in the epoch, **figures) is for a display.
    Raises ModelError when a criterion or parameter is no longer finite (the models of earlier epochs stay), ShapeError
    when reader and network do not fit.
    """
    files = TrainingFiles(model_path, options.max_epochs, options.keep_checkpoints) if model_path is not None else None
    start = _start_epoch(files, make_mode)
    if start is not None:
        log(f"Starting from {files.model(start)}; the network description is not read.")
        network = files.load(start, network.backend.precision, network.backend.device)
    if start == options.max_epochs:
        log("No further training is necessary.")
        return TrainingResult(network, read_history(files.history), start)
    trainer = Trainer(network, reader, options, cv_reader, files, seed, log, progress)
    trainer.prepare(start, make_mode, description)
    for epoch in range(start or 0, options.max_epochs):
        trainer.run_epoch(epoch)
    if files is not None:
        log(f"model: {files.model_path}  history: {files.history}  picture: {files.plot}")
    return TrainingResult(network, trainer.history, start or 0)


def _start_epoch(files: TrainingFiles | None, make_mode: bool) -> int | None:
    """The epochs that an earlier run has done; None when there is no model to start from."""
    if files is None:
        return None
    files.remove_leftovers()
    return files.newest_epoch() if make_mode else None


class Trainer:
    """The epochs of one training; see `train`."""

    def __init__(
        self,
        network: Network,
        reader,
        options: TrainingOptions,
        cv_reader=None,
        files: TrainingFiles | None = None,
        seed: int = 0,
        log: Log = silent,
        progress: Progress = silent,
    ):
        self.network, self.reader, self.cv_reader = network, reader, cv_reader
        self.options, self.files, self.seed, self.log, self.progress = options, files, seed, log, progress
        self.criterion, self.names = _criteria(network, options)
        if options.packed_samples:
            limit_packing(network, options.packed_samples)
        self.engine = Engine(network, self.names)
        check_inputs(self.engine, reader, "reader")
        if cv_reader is not None:
            check_inputs(self.engine, cv_reader, "cvReader")
        if any(options.dropout_rate) and not any(node.type_name == "Dropout" for node in network.nodes.values()):
            log("warning: dropoutRate is set and the network has no Dropout node; addDropoutNodes=true adds them")
        self.updater = Updater(network, options)
        self.total_samples = 0
        self.history: list[dict] = []
        self._last_plot = time.monotonic()

    def prepare(self, start: int | None, make_mode: bool = True, description: str = "") -> None:
        """Take up an earlier run's state, or compute the statistics and save the initial model; see `train`.

        Nothing is written or removed before the statistics are there: computing them looks at all the data.
        """
        if start:
            self.history = [row for row in read_history(self.files.history) if row["epoch"] <= start]
            checkpoint = self.files.load_checkpoint(start)
            if checkpoint is None:
                self.log(f"warning: {self.files.checkpoint(start)} is missing; smoothed gradients start at zero")
            else:
                self.updater.restore(checkpoint.tensors, checkpoint.state["update"], self.files.checkpoint(start))
                self.total_samples = checkpoint.total_samples
        computed = self._precompute()
        if self.files is None:
            return
        if not make_mode and (removed := self.files.remove()):
            self.log(f"makeMode=false: removed {removed} model and checkpoint files of an earlier training")
        if description:
            self.files.save_description(description)
        if start is None or (start == 0 and computed):
            self.files.save_initial(self.network)

    def _precompute(self) -> int:
        """Fill the statistics that have no value yet; how many."""
        waiting = [node for node in self.network.precomputed() if node.value is None]
        if not waiting:
            return 0
        size = 0 if self.options.precompute_all_data else self.options.epoch_size
        total = size or self.reader.num_frames
        self.log(f"Precomputing --> {len(waiting)} PreCompute nodes found.")
        for node in waiting:
            self.log(f"\t{node.name} = {node.type_name}({', '.join(operand.name for operand in node.operands)})")

        def sweep() -> Iterator[dict]:
            for minibatch in self.reader.minibatches(epoch=0, minibatch_size=SWEEP_COLUMNS, epoch_size=size):
                yield minibatch.matrices

        precompute(self.network, sweep, lambda done: self.progress(done, total, epoch="statistics"))
        self.log("Precomputing --> Completed.")
        return len(waiting)

    # ---- one epoch

    def run_epoch(self, epoch: int) -> dict:
        """Train one epoch (counted from 0), validate, save; returns its history row."""
        values = self.options.epoch(epoch)
        if self.options.trace_level > 0:
            momentum = values.momentum_of(values.minibatch_size)
            self.log(starting_line(epoch + 1, values.learning_rate, momentum, values.time_constant))
        begin = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below, with a place in the message
            totals = self._train_epoch(epoch, values)
        seconds = time.perf_counter() - begin
        self.total_samples += totals.num_frames
        self._check_parameters(epoch)
        self.log(
            finished_line(
                epoch + 1,
                self.options.max_epochs,
                totals.figures,
                totals.num_frames,
                self.total_samples,
                values.learning_rate,
                seconds,
            )
        )
        row = {
            "epoch": epoch + 1,
            "learning_rate_per_sample": values.learning_rate,
            "momentum_per_sample": values.momentum,
            "minibatch_size": values.minibatch_size,
            "dropout_rate": values.dropout_rate,
            "samples": totals.num_frames,
            "total_samples": self.total_samples,
            "seconds": round(seconds, 3),
            "training": totals.averages(),
        }
        if self.cv_reader is not None:
            row["validation"] = self._validate(epoch, values)
        self.history.append(row)
        self._save(epoch, row)
        return row

    def _train_epoch(self, epoch: int, values: EpochOptions) -> Totals:
        display = _Display(self, epoch)
        learns = values.learning_rate > 0.01 * self.options.min_learning_rate
        momentum = values.momentum_of(values.minibatch_size)
        minibatches = self.reader.minibatches(
            epoch=epoch, minibatch_size=values.minibatch_size, epoch_size=self.options.epoch_size
        )
        for index, minibatch in enumerate(minibatches):
            seed = (self.seed, epoch, index)
            self.engine.forward(
                minibatch.matrices,
                training=True,
                criterion=self.criterion,
                dropout_rate=values.dropout_rate,
                seed=seed,
            )
            figures = {name: scalar(self.engine, name) for name in self.names}
            if not math.isfinite(figures[self.criterion]):
                raise ModelError(
                    f"epoch {epoch + 1}, minibatch {index + 1}: {self.criterion} is {figures[self.criterion]}; "
                    "expected a finite number; try a smaller learning rate or look for damaged features"
                )
            if learns:
                frames = minibatch.num_frames
                own = momentum if frames == values.minibatch_size else values.momentum_of(frames)
                self.updater.begin(values.learning_rate, own, frames, seed)
                self.engine.backward(self.criterion, self.updater)
            display.add(figures, minibatch.num_frames)
        if not display.totals.num_frames:
            raise ModelError(f"epoch {epoch + 1}: the reader gave no minibatch; expected at least one")
        display.finish()
        return display.totals

    def _validate(self, epoch: int, values: EpochOptions) -> dict[str, float]:
        # Order does not matter to sums, so every epoch validates in the order of epoch 0.
        minibatches = self.cv_reader.minibatches(epoch=0, minibatch_size=values.minibatch_size, epoch_size=0)
        totals = evaluate(self.engine, minibatches, self.names)
        self.log(validation_line(epoch + 1, self.options.max_epochs, totals.figures, totals.num_frames))
        return totals.averages()

    # ---- after an epoch

    def _check_parameters(self, epoch: int) -> None:
        """The last update of an epoch shows in no criterion: look at the parameters before they are saved."""
        xp = self.network.backend.xp
        for node in self.network.parameters():
            if node.needs_gradient and not bool(xp.isfinite(node.value).all()):
                raise ModelError(
                    f"epoch {epoch + 1}, last minibatch: parameter {node.name!r} is not finite; expected finite "
                    "numbers; try a smaller learning rate"
                )

    def _save(self, epoch: int, row: dict) -> None:
        if self.files is None:
            return
        tensors = {name: self.network.backend.to_host(matrix) for name, matrix in self.updater.tensors().items()}
        # History before model: a run killed in between repeats the epoch and writes the row again.
        append_history(self.files.history, row)
        self.files.save(
            self.network, Checkpoint(epoch + 1, self.total_samples, tensors, {"update": self.updater.scalars})
        )
        last = epoch + 1 == self.options.max_epochs
        if last or time.monotonic() - self._last_plot > PLOT_INTERVAL:
            draw_history(self.history, self.files.plot)
            self._last_plot = time.monotonic()


class _Display:
    """Totals of an epoch, and the minibatch lines and live figures made from them."""

    def __init__(self, trainer: Trainer, epoch: int):
        self.options, self.log, self.progress = trainer.options, trainer.log, trainer.progress
        self.epoch = epoch
        # People read "loss" and "error"; the log and the history keep the nodes' own names.
        self.labels = {name: name for name in trainer.names}
        self.labels |= {n: "error" for n in trainer.names if trainer.network[n].type_name == "ErrorPrediction"}
        self.labels[trainer.criterion] = "loss"
        self.total_frames = self.options.epoch_size or trainer.reader.num_frames
        self.totals = Totals(trainer.names)
        self.window = Totals(trainer.names)  # since the last line
        self.began = self.window_began = self.shown = time.perf_counter()

    def add(self, figures: dict[str, float], num_frames: int) -> None:
        self.totals.add(figures, num_frames)
        self.window.add(figures, num_frames)
        count = self.totals.num_minibatches
        if count % self.options.show_every == 0 or count <= self.options.show_first:
            self._show_line()
        now = time.perf_counter()
        if now - self.shown > PROGRESS_INTERVAL:
            self._show_progress(now)

    def finish(self) -> None:
        if self.window.num_minibatches:
            self._show_line()
        self._show_progress(time.perf_counter())

    def _show_line(self) -> None:
        now = time.perf_counter()
        if self.options.trace_level > 0:
            last = self.totals.num_minibatches
            self.log(
                minibatch_line(
                    self.epoch + 1,
                    self.options.max_epochs,
                    (last - self.window.num_minibatches + 1, last),
                    self.totals.num_frames / self.total_frames if self.total_frames else None,
                    self.window.figures,
                    self.window.num_frames,
                    now - self.window_began,
                )
            )
        self.window = Totals(self.totals.names)
        self.window_began = now

    def _show_progress(self, now: float) -> None:
        self.shown = now
        rate = self.totals.num_frames / max(now - self.began, 1e-9)
        epoch = f"{self.epoch + 1}/{self.options.max_epochs}"
        averages = self.totals.averages()
        figures = {"epoch": epoch, "frames/s": round(rate)}
        figures |= {self.labels[name]: averages[name] for name in self.totals.names}
        self.progress(self.totals.num_frames, self.total_frames, **figures)


def _criteria(network: Network, options: TrainingOptions) -> tuple[str, list[str]]:
    """(the criterion to train by, it and the evaluation nodes to show)."""
    if options.train_criterion:
        criterion = network[options.train_criterion].name
    elif network.criteria:
        criterion = network.criteria[0]
    else:
        raise ModelError("the network has no training criterion; expected one, or trainCriterionNodeName")
    evaluations = [network[options.eval_criterion].name] if options.eval_criterion else network.evaluations
    return criterion, list(dict.fromkeys([criterion, *evaluations]))
