"""Progress of a running epoch: lines of the log, and figures for a progress display."""

import time
from collections.abc import Sequence

from acoustic.network.network import Network
from acoustic.nodes.properties import ERROR_COUNT
from acoustic.training.evaluation import EvaluationTotals
from acoustic.training.options import TrainingOptions
from acoustic.training.reporting.log import minibatch_line
from readers.common.report import Log, Progress

PROGRESS_INTERVAL = 0.1  # seconds


class Display:
    """Shows the progress of one epoch.

    The progress display says "loss" for the criterion and "error" for the only ErrorPrediction node; the log uses the
    names of the nodes.

    Parameters
    ----------
    network : Network
        The network that is trained.
    names : sequence of str
        The criterion and the evaluation nodes.
    options : TrainingOptions
        Which minibatches get a line.
    epoch : int
        Epoch, counted from 0.
    total_frames : int
        Frames that the epoch should have; 0 if unknown.
    log, progress : callable
        Receive lines and figures.
    """

    def __init__(
        self,
        network: Network,
        names: Sequence[str],
        options: TrainingOptions,
        epoch: int,
        total_frames: int,
        log: Log,
        progress: Progress,
    ):
        self.options = options
        self.log = log
        self.progress = progress
        self.epoch = epoch
        self.total_frames = total_frames
        self.labels = {name: name for name in names}
        errors = [name for name in names if network[name].has(ERROR_COUNT)]
        if len(errors) == 1:
            self.labels[errors[0]] = "error"
        self.labels[names[0]] = "loss"
        self.totals = EvaluationTotals(names)
        self.window = EvaluationTotals(names)  # since the last line
        self.began = self.window_began = self.shown = time.perf_counter()

    def add(self, figures: dict[str, float], num_frames: int) -> None:
        """Add the sums of one minibatch."""
        self.totals.add(figures, num_frames)
        self.window.add(figures, num_frames)
        count = self.totals.num_minibatches
        if count % self.options.show_every == 0 or count <= self.options.show_first:
            self._show_line()
        now = time.perf_counter()
        if now - self.shown > PROGRESS_INTERVAL:
            self._show_progress(now)

    def finish(self) -> None:
        """Show what has not been shown yet."""
        if self.window.num_minibatches:
            self._show_line()
        self._show_progress(time.perf_counter())

    def _show_line(self) -> None:
        now = time.perf_counter()
        if self.options.trace_level > 0:
            last = self.totals.num_minibatches
            shown = last - self.window.num_minibatches + 1, last
            done = self.totals.num_frames / self.total_frames if self.total_frames else None
            seconds = now - self.window_began
            self.log(minibatch_line(self.epoch + 1, self.options.max_epochs, shown, done, self.window, seconds))
        self.window = EvaluationTotals(self.totals.names)
        self.window_began = now

    def _show_progress(self, now: float) -> None:
        self.shown = now
        rate = self.totals.num_frames / max(now - self.began, 1e-9)
        epoch = f"{self.epoch + 1}/{self.options.max_epochs}"
        averages = self.totals.averages()
        figures = {"epoch": epoch, "frames/s": round(rate)}
        figures |= {self.labels[name]: averages[name] for name in self.totals.names}
        self.progress(self.totals.num_frames, self.total_frames, **figures)
