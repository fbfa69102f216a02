"""The epochs of a training: preparation, passes over the data, validation and saving (CNTK book, 5.3)."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from acoustic.engine.inputs import add_feature_records, add_vocabularies, check_inputs, cut_warnings
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.base import Node
from acoustic.nodes.convolution import limit_packing
from acoustic.nodes.properties import DROPOUT
from acoustic.nodes.sequence_criterion import configure_sequence_criteria
from acoustic.runtime.thread_team import default_threads
from acoustic.training.control import AdaptiveMinibatch, AdjustAfterEpoch, Control, Decision, SearchBeforeEpoch
from acoustic.training.control.options import AFTER, BEFORE, NONE, AutoAdjust
from acoustic.training.control.search import trial_frames
from acoustic.training.evaluation import sum_figures
from acoustic.training.learner import Diverged, Learner, require_finite
from acoustic.training.options import EpochOptions, TrainingOptions
from acoustic.training.procedures.adaptation import ReferenceModel
from acoustic.training.procedures.gradient_test import GradientCheck
from acoustic.training.procedures.precompute import Matrices, frames_alone, precompute
from acoustic.training.reporting.display import Display
from acoustic.training.reporting.log import (
    append_history,
    finished_line,
    read_history,
    starting_line,
    truncate_history,
    validation_line,
)
from acoustic.training.reporting.plots import draw_history
from acoustic.training.state.checkpoint import Checkpoint, TrainingFiles
from acoustic.training.state.snapshot import Snapshot
from readers.common.report import Log, Progress, silent
from readers.errors import ModelError

Row = dict[str, Any]  # of the history

SWEEP_COLUMNS = 4096  # frames at a time in passes without updates
PLOT_INTERVAL = 60.0  # seconds between two plots; the last epoch always makes one

# Mode of autoAdjustLR: control of the learning rate.
CONTROLS = {NONE: Control, AFTER: AdjustAfterEpoch, BEFORE: SearchBeforeEpoch}


class Trainer:
    """Runs the epochs of one training.

    `train` creates it and documents the parameters. `make_learner` constructs the Learner that performs the passes
    over the data: `Learner` itself, or a ParallelLearner for training by several jobs.
    """

    def __init__(
        self,
        network: Network,
        reader: Any,
        options: TrainingOptions,
        cv_reader: Any = None,
        files: TrainingFiles | None = None,
        log: Log = silent,
        progress: Progress = silent,
        on_epoch: Callable[[Row], None] = silent,
        reference: ReferenceModel | None = None,
        make_learner: Callable[..., Learner] = Learner,
    ):
        # A reader that cuts sequences counts minibatchSize per sequence, whether or not SGD can see `truncated`.
        truncated = options.truncated or getattr(reader, "cuts", False)
        options = replace(options, parallel=getattr(reader, "parallel", (1,)), truncated=truncated)
        self.network = network
        self.reader = reader
        self.cv_reader = cv_reader
        self.options = options
        self.files = files
        self.log = log
        self.progress = progress
        self.on_epoch = on_epoch
        self.names = watched_nodes(network, options)
        self.criterion = self.names[0]
        for text in configure_sequence_criteria(self._below_criteria(), options.sequence):
            log(text)
        if options.packed_samples:
            limit_packing(network, options.packed_samples)
        self.learner = make_learner(network, reader, options, self.names)
        self.engine = self.learner.engine
        self.updater = self.learner.updater
        self._prepare_learner(reference)
        check_inputs(self.engine, reader, "reader")
        add_feature_records(self.engine, reader)
        add_vocabularies(self.engine, reader)
        if cv_reader is not None:
            check_inputs(self.engine, cv_reader, "cvReader")
        for warning in cut_warnings(network, reader, min(options.minibatch_size)):
            log(f"warning: {warning}")
        self.control = CONTROLS[options.auto_adjust.mode](options)
        self.sizes = AdaptiveMinibatch(options, reader.num_frames)
        self.total_samples = 0
        self.description = ""  # fingerprint of the network description at the start of training
        self.history: list[Row] = []
        self._best: Snapshot | None = None  # state at the end of the last interval, for controls that return to it
        self._last_plot = time.monotonic()

    def _below_criteria(self) -> list[Node]:
        return forward_order([self.network[name] for name in self.names])

    def _prepare_learner(self, reference: ReferenceModel | None) -> None:
        options = self.options
        if any(options.dropout_rate) and not any(node.has(DROPOUT) for node in self.network.nodes.values()):
            self.log("warning: dropoutRate is set and the network has no Dropout node; addDropoutNodes=true adds them")
        if reference is not None:
            self.learner.transform = reference.soft_labels(self.engine, self.criterion, options.adaptation_weight)
        if not options.rule.uses_momentum and options.names_momentum:
            self.log(f"warning: {options.rule.names[0]} applies no momentum; momentum options have no effect")
        if options.check_gradients:
            self.learner.before_updates = GradientCheck(self.engine, self.criterion, options.gradient_digits, self.log)

    # ---- before the first epoch

    def prepare(self, start: int | None) -> None:
        """Restore the state of an earlier run, or compute the statistics and save the initial model.

        No file is written or removed until the statistics, which need a pass over all the data, are computed.
        """
        # A training that returned to its initial model has a checkpoint of it.
        if self.files is not None and (start or (start == 0 and self.files.checkpoint(0).exists())):
            self._resume(start, self.files)
        computed = self._precompute()
        if self.control.rolls_back and self._best is None:
            self._best = Snapshot.take(self.network, self.updater, start or 0, self.total_samples)
        if self.files is None:
            return
        if not self.options.make_mode and (removed := self.files.remove()):
            self.log(f"makeMode=false: removed {removed} model and checkpoint files of an earlier training")
        if self.options.description:
            self.files.save_description(self.options.description)
        if start is None or (start == 0 and computed):
            self.files.save_initial(self.network)
        self.learner.begin_training(start)

    def _resume(self, start: int, files: TrainingFiles) -> None:
        """Restore the state after `start` epochs of an earlier run."""
        self.history = [row for row in read_history(files.history) if row["epoch"] <= start]
        checkpoint = files.load_checkpoint(start)
        if checkpoint is None:
            if isinstance(self.control, AdjustAfterEpoch) and start >= self.control.num_listed:
                raise ModelError(
                    f"{files.checkpoint(start)}: missing; expected the learning rate of epoch {start + 1} in it, "
                    "or in the configuration"
                )
            self.log(f"warning: {files.checkpoint(start)} is missing; smoothed gradients start at zero")
            return
        self._take_state(checkpoint, files)
        threads = checkpoint.state.get("threads")
        if threads != self._threads:
            self.log(
                f"warning: {files.checkpoint(start)} was made with {threads} threads and this run has "
                f"{self._threads}; rounding will differ from that of a run that was not interrupted"
            )
        before = start - start % self.control.interval
        if self.control.rolls_back and before != start:
            self._best = Snapshot.read(files, before, self.network, self.updater)

    def _take_state(self, checkpoint: Checkpoint, files: TrainingFiles) -> None:
        where = files.checkpoint(checkpoint.epoch)
        self.updater.restore(checkpoint.tensors, checkpoint.state["update"], where)
        try:
            self.control.restore(checkpoint.state.get("control", {}))
            self.sizes.restore(checkpoint.state.get("sizes", {}))
        except (TypeError, ValueError, AttributeError, OverflowError) as fault:
            raise ModelError(f"{where}: state of the learning rate control ({fault}); expected numbers") from fault
        self.total_samples = checkpoint.total_samples
        self.description = checkpoint.state.get("description", self.description)

    @property
    def _threads(self) -> int:
        """The number of threads that determines the rounding of sums."""
        return max(self.network.backend.team.size, default_threads())

    def _precompute(self) -> int:
        """Compute the statistics that have no value yet, and return their number."""
        waiting = [node for node in self.network.precomputed() if node.value is None]
        if not waiting:
            return 0
        size = 0 if self.options.precompute_all_data else self.options.epoch_size
        total = size or self.reader.num_frames
        self.log(f"Precomputing --> {len(waiting)} PreCompute nodes found.")
        for node in waiting:
            self.log(f"\t{node.name} = {node.type_name}({', '.join(operand.name for operand in node.operands)})")

        def sweep() -> Iterator[Matrices]:
            for minibatch in self.reader.minibatches(epoch=0, minibatch_size=SWEEP_COLUMNS, epoch_size=size):
                yield frames_alone(minibatch)

        precompute(self.network, sweep, lambda done: self.progress(done, total, epoch="statistics"))
        self.log("Precomputing --> Completed.")
        return len(waiting)

    # ---- one epoch

    def run(self, start: int) -> None:
        """Train from epoch `start` (counted from 0) to the last epoch, or until the control ends the training."""
        epoch = start
        while epoch < self.options.max_epochs and not self.control.finished:
            values = self._plan(epoch)
            if self.control.stops(values.learning_rate):
                self.log(
                    f"Learn Rate Per Sample for Epoch[{epoch + 1}] = {values.learning_rate:.8g} is less than "
                    f"minLearnRate {self.options.min_learning_rate:.8g}. Training stops."
                )
                break
            decision = self.run_epoch(epoch, values)
            epoch = self._last_good().epoch if decision.roll_back else epoch + 1
        if epoch < self.options.max_epochs:
            self._finish()

    def _plan(self, epoch: int) -> EpochOptions:
        """Return the values of an epoch, after any search for the learning rate or the minibatch size."""
        values = self.options.epoch(epoch)
        frames = trial_frames(self.options, epoch)
        before: Snapshot | None = None

        def trial(values: EpochOptions) -> float:
            nonlocal before
            before = before or Snapshot.take(self.network, self.updater)
            done = 0

            def show(figures: dict[str, float], num_frames: int) -> None:
                nonlocal done
                done += num_frames
                self.progress(done, frames, epoch=f"search before {epoch + 1}/{self.options.max_epochs}")

            try:
                totals = self.learner.run(epoch, values, show, frames)
                return totals.averages()[self.criterion]
            except Diverged:
                return math.nan
            finally:
                before.restore(self.network, self.updater)

        rate = self.control.before_epoch(epoch, lambda rate: trial(replace(values, learning_rate=rate)), self.log)
        values = replace(values, learning_rate=rate)
        size = self.sizes.before_epoch(epoch, rate, lambda size: trial(replace(values, minibatch_size=size)), self.log)
        return replace(values, minibatch_size=size)

    def run_epoch(self, epoch: int, values: EpochOptions | None = None) -> Decision:
        """Train, validate and save one epoch (counted from 0), and return the decision of the control."""
        values = values or self._plan(epoch)
        if self.options.trace_level > 0:
            applied = values if self.options.rule.uses_momentum else replace(values, momentum=0.0)
            momentum = applied.momentum_of(self.options.full_minibatch(epoch, values.minibatch_size))
            self.log(starting_line(epoch + 1, values.learning_rate, momentum, applied.time_constant))
        try:
            row = self._train_and_validate(epoch, values)
            value = self._control_value(epoch, row)
        except Diverged as fault:
            if not self.control.survives(epoch):
                raise
            self.log(f"warning: {fault}")
            value = math.nan  # a control that survives this rolls back
        decision = self.control.after_epoch(epoch, value)
        if decision.change:
            rate = self.options.epoch(min(epoch, self.control.num_listed - 1)).learning_rate * self.control.factor
            self.log(f"learnRatePerSample {decision.change} to {rate:.8g}")
        if decision.roll_back:
            self._roll_back()
        else:
            self._keep(epoch, row)
        return decision

    def _train_and_validate(self, epoch: int, values: EpochOptions) -> Row:
        """Train and validate one epoch, and return its row of the history."""
        total = self.options.epoch_size or self.reader.num_frames
        display = Display(self.network, self.names, self.options, epoch, total, self.log, self.progress)
        begin = time.perf_counter()
        totals = self.learner.run(epoch, values, display.add)
        display.finish()
        seconds = time.perf_counter() - begin
        self.total_samples += totals.num_frames
        require_finite(self.network, f"epoch {epoch + 1}")
        rate = values.learning_rate
        last = self.options.max_epochs
        self.log(finished_line(epoch + 1, last, totals, self.total_samples, rate, seconds))
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
        self.on_epoch(row)
        return row

    def _validate(self, epoch: int, values: EpochOptions) -> dict[str, float]:
        # The order does not change sums, so every epoch validates in the order of epoch 0.
        minibatches = self.cv_reader.minibatches(epoch=0, minibatch_size=values.minibatch_size, epoch_size=0)
        totals = sum_figures(self.engine, minibatches, self.names)
        self.log(validation_line(epoch + 1, self.options.max_epochs, totals))
        return totals.averages()

    # ---- after an epoch

    def _control_value(self, epoch: int, row: Row) -> float:
        """Return the value that the learning rate control compares between epochs."""
        auto = self.options.auto_adjust
        part, name = compared_figure(row, self.names, auto)
        value = row[part][name]
        if auto.mode != NONE and not math.isfinite(value):
            raise Diverged(f"epoch {epoch + 1}, {part}: {name} is {value}; expected a finite number")
        return value

    def best_epoch(self) -> int | None:
        """Return the epoch with the smallest figure so far; see the function."""
        return best_epoch(self.history, self.names, self.options.auto_adjust)

    def _keep(self, epoch: int, row: Row) -> None:
        """Save history, model, checkpoint and plot of an epoch."""
        self.history.append(row)
        if self.control.rolls_back and (epoch + 1) % self.control.interval == 0:
            self._best = Snapshot.take(self.network, self.updater, epoch + 1, self.total_samples)
        if self.files is None:
            return
        # The history is written first: a run killed in between repeats the epoch and writes the row again.
        # The final model is written last, because nothing follows in a run that finds it.
        append_history(self.files.history, row)
        last = epoch + 1 == self.options.max_epochs
        if last or time.monotonic() - self._last_plot > PLOT_INTERVAL:
            self._plot(self.files)
        returning = self._best.epoch if self._best else None
        self.files.save(self.network, self._checkpoint(epoch + 1), returning, self.best_epoch())

    def _last_good(self) -> Snapshot:
        """Return the state at the end of the last interval, which a control that rolls back needs."""
        assert self._best is not None
        return self._best

    def _roll_back(self) -> None:
        """Return to the end of the last interval: model, state of the update rule, counters, files."""
        best = self._last_good()
        best.restore(self.network, self.updater)
        self.total_samples = best.total_samples
        self.history = [row for row in self.history if row["epoch"] <= best.epoch]
        where = "" if self.files is None else f", {self.files.model(best.epoch)}"
        self.log(
            f"Loading (rolling back to) previous model with best training-criterion value, of epoch {best.epoch}{where}"
        )
        if self.files is not None:
            self.files.discard_after(best.epoch)
            truncate_history(self.files.history, best.epoch)
            # Written last: a run killed before this repeats the epoch and decides the same again.
            self.files.save_checkpoint(self._checkpoint(best.epoch))

    def _checkpoint(self, epoch: int) -> Checkpoint:
        tensors = {name: self.network.backend.to_host(matrix) for name, matrix in self.updater.tensors().items()}
        state = {
            "update": self.updater.scalars,
            "control": self.control.state(),
            "sizes": self.sizes.state(),
            "threads": self._threads,
            "description": self.description,
        }
        return Checkpoint(epoch, self.total_samples, tensors, state)

    def _finish(self) -> None:
        """Save the network as the final model before the last epoch."""
        self.log("Finished training and saved final model")
        if self.files is not None:
            self._plot(self.files)
            self.files.save(self.network, self._checkpoint(self.options.max_epochs), best=self.best_epoch())

    def _plot(self, files: TrainingFiles) -> None:
        if self.history:
            draw_history(self.history, files.plot)
            self._last_plot = time.monotonic()


def watched_nodes(network: Network, options: TrainingOptions) -> list[str]:
    """Return the criterion to train by, followed by the evaluation nodes to show. Raises ModelError without one."""
    if options.train_criterion:
        criterion = network[options.train_criterion].name
    elif network.criteria:
        criterion = network.criteria[0]
    else:
        raise ModelError("the network has no training criterion; expected one, or trainCriterionNodeName")
    evaluations = [network[options.eval_criterion].name] if options.eval_criterion else network.evaluations
    return list(dict.fromkeys([criterion, *evaluations]))


def compared_figure(row: Row, names: Sequence[str], auto: AutoAdjust) -> tuple[str, str]:
    """Return the data set and the name of the figure by which epochs are compared, of a row of the history.

    names: criterion and evaluation nodes.
    """
    part = "validation" if auto.by_validation and "validation" in row else "training"
    return part, names[1] if auto.by_evaluation and len(names) > 1 else names[0]


def best_epoch(history: Sequence[Row], names: Sequence[str], auto: AutoAdjust) -> int | None:
    """Return the epoch, counted from 1, with the smallest figure; the first of equal ones, None without any."""
    figures = {}
    for row in history:
        part, name = compared_figure(row, names, auto)
        figures[row["epoch"]] = row[part].get(name, math.nan)
    finite = [epoch for epoch, figure in figures.items() if math.isfinite(figure)]
    return min(finite, key=lambda epoch: (figures[epoch], epoch), default=None)
