"""Epochs in which several jobs share every minibatch: the sum of their gradients is the gradient of the minibatch.

The training process reads the data, adds the gradients up in the order of the jobs, and applies the update rule, so the
result equals that of one process except for rounding, and checkpoints are those of any training. Only criteria that are
sums over frames can be divided; see `check_divisible`.
"""

import contextlib
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from acoustic.network.traversal import forward_order
from acoustic.nodes.properties import RANDOM
from acoustic.nodes.sequence_state import SequenceState
from acoustic.runtime.engine_options import engine_text
from acoustic.training.evaluation import EvaluationTotals
from acoustic.training.learner import Each, Learner
from acoustic.training.options import EpochOptions, TrainingOptions
from acoustic.training.parallel.executors import Jobs
from acoustic.training.parallel.files import IterationFiles
from acoustic.training.parallel.gradient_job import GradientJob, GradientResult
from acoustic.training.parallel.options import ParallelOptions
from acoustic.training.parallel.shares import check_divisible, split
from readers.common.report import Log
from readers.errors import ModelError
from readers.minibatches.base import Reader


class DataParallelLearner(Learner):
    """A Learner that distributes the frames, or the sequences, of every minibatch to several jobs.

    Parameters
    ----------
    parallel : ParallelOptions
        Number of jobs, their threads, and where they run.
    directory : str or Path
        Where the network is written for the jobs.
    log : callable
        Receives warnings.
    """

    def __init__(
        self,
        network: Network,
        reader: Reader,
        options: TrainingOptions,
        names: list[str],
        *,
        parallel: ParallelOptions,
        directory: str | Path,
        log: Log,
    ) -> None:
        super().__init__(network, reader, options, names)
        check_divisible(network, names, options)
        self.network = network
        self.parallel = parallel
        self._draws = any(node.has(RANDOM) for node in forward_order([network[name] for name in names]))
        self._file = IterationFiles(directory, 1).network
        self._jobs = Jobs(parallel, log)
        self._key = ""  # of the network that the jobs know; empty before the first minibatch
        self._alone = False  # whether this process trains the current epoch
        self._results: list[GradientResult] = []
        self._states: dict[int, SequenceState | None] = {}  # of sequences that continue, by first slot of a share
        self._num_slots = 0

    def run(self, epoch: int, values: EpochOptions, each: Each | None = None, num_frames: int = 0) -> EvaluationTotals:
        """Train on the minibatches of one epoch; see Learner.run."""
        self._alone = epoch + 1 < self.parallel.start_epoch
        return super().run(epoch, values, each, num_frames)

    def close(self) -> None:
        self._jobs.close()
        if self._key:
            self._file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # other files are there
                self._file.parent.rmdir()

    def _forward(self, title: str, matrices: Any, settings: dict[str, Any], learns: bool) -> dict[str, float]:
        if self._alone:
            return super()._forward(title, matrices, settings, learns)
        jobs = list(self._make_jobs(title, matrices, dict(settings), learns))
        self._results = self._jobs.run(jobs, lambda result: None)
        self._states = {job.share.first_slot: result.state for job, result in zip(jobs, self._results)}
        return {name: sum(result.figures[name] for result in self._results) for name in self.names}

    def _make_jobs(self, title: str, matrices: Any, settings: dict[str, Any], learns: bool) -> Sequence[GradientJob]:
        layout = settings.pop("layout")
        if layout is not None and settings["dropout_rate"] and self._draws:
            raise ModelError(f"{title}: dropout of sequences with DataParallelSGD is not built; expected dropoutRate=0")
        if not self._key:
            self._key = uuid.uuid4().hex
            save_model(self.network, self._file)
        slots = 0 if layout is None else layout.num_sequences
        if slots != self._num_slots:
            self._states = {}
            self._num_slots = slots
        backend = self.network.backend
        values = {node.name: backend.to_host(node.value) for node in self.engine.learnable(self.criterion)}
        needed = {name: matrices[name] for name in self.engine.inputs}
        return [
            GradientJob(
                number=number,
                place=title,
                network=self._file,
                key=self._key,
                values=values,
                share=share,
                state=self._states.get(share.first_slot),
                settings=settings,
                names=tuple(self.names),
                learns=learns,
                by_columns=self.updater.takes_touched,
                precision=backend.precision,
                device=backend.device,
                threads=self.parallel.threads,
                engine=engine_text(),
                directory=Path.cwd(),
            )
            for number, share in enumerate(split(needed, layout, self.parallel.num_jobs))
        ]

    def _backward(self) -> None:
        if self._alone:
            super()._backward()
            return
        backend = self.network.backend
        updater = self.updater
        for node in self.engine.learnable(self.criterion):
            column_gradients = [result.columns[node.name] for result in self._results if node.name in result.columns]
            node.touch()
            if len(column_gradients) == len(self._results):
                columns, total = _sum_of_columns(column_gradients)
                updater.touched(node, backend.xp.asarray(columns), partial(_columns, backend.asarray(total)))
            else:
                updater(node, backend.asarray(self._sum(node.name)))
        self._results = []

    def _sum(self, name: str) -> np.ndarray:
        """Return the sum of the gradients of a parameter, in the order of the jobs."""
        total = np.zeros(self.network[name].value.shape, self.network.backend.dtype, order="F")
        for result in self._results:
            if name in result.columns:
                columns, gradient = result.columns[name]
                total[:, columns] += gradient
            elif name in result.whole:
                total += result.whole[name]
        return total


def _sum_of_columns(found: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Add up gradients of which only some columns are given; return the columns that occur, and their sums."""
    columns = np.unique(np.concatenate([touched for touched, _ in found]))
    total = np.zeros((found[0][1].shape[0], len(columns)), found[0][1].dtype, order="F")
    for touched, gradient in found:
        total[:, np.searchsorted(columns, touched)] += gradient
    return columns, total


def _columns(gradient: Any, part: slice) -> Any:
    return gradient[:, part]
