"""Epochs trained by several jobs: in each outer iteration every job learns from its share; then they are averaged.

The configured learning rate is the effective one: each job uses it times the number of jobs, because averaging divides
the change of a single job by that number. Results are therefore comparable between numbers of jobs.

Source: Povey, Zhang and Khudanpur, "Parallel training of DNNs with natural gradient and parameter averaging", sections
3.1, C.2, C.7.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from acoustic.network.network import Network
from acoustic.runtime.engine_options import engine_text
from acoustic.training.evaluation import EvaluationTotals
from acoustic.training.learner import Each, Learner
from acoustic.training.options import EpochOptions, TrainingOptions
from acoustic.training.parallel.executors import Jobs
from acoustic.training.parallel.files import Iteration, IterationFiles
from acoustic.training.parallel.job import Job, JobResult, keeps_state, load_output
from acoustic.training.parallel.options import ParallelOptions
from acoustic.training.reporting.log import append_history
from readers.common.report import Log
from readers.errors import ModelError
from readers.minibatches.base import Reader
from readers.tables.tensor_file import load_tensors

AVERAGE = "average"


class ParallelLearner(Learner):
    """A Learner whose epochs are trained by several jobs; it runs short trials itself.

    After every outer iteration a row is added to the history in `directory`: the iteration and epoch, the effective
    learning rate, the averages, frames and seconds of each job, the model taken ("average" or the number of a job), and
    the seconds of the iteration and of the averaging.

    Parameters
    ----------
    parallel : ParallelOptions
        Number of jobs, frames between two averagings, and `source`, which opens the reader in another process.
    directory : str or Path
        Where the averaged models are written; see files.py.
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
        self.network = network
        self.parallel = parallel
        self.log = log
        if parallel.source is None:
            raise ModelError("ParallelOptions without source; expected a function that opens the training reader")
        self.num_iterations, self.share_frames = parallel.plan(options.epoch_size or reader.num_frames)
        self.files = IterationFiles(directory, parallel.kept(self.num_iterations))
        self._part = 1 / self.num_iterations  # of an epoch
        smallest = max(options.minibatch_size)
        if self.share_frames < smallest:
            raise ModelError(
                f"parallelTrain: {self.share_frames} frames for each of {parallel.num_jobs} jobs in an outer iteration"
                f"; expected at least minibatchSize {smallest}; take fewer jobs, or smaller minibatches"
            )
        self.job_options = replace(options, epoch_size=self.share_frames, check_gradients=False)
        self._jobs = Jobs(parallel, log)
        self._resumes = True  # only the first epoch of a run can have been started by an earlier run

    def begin_training(self, start: int | None) -> None:
        if start is None or not self.options.make_mode:
            self.files.remove()
            self._resumes = False

    def run(self, epoch: int, values: EpochOptions, each: Each | None = None, num_frames: int = 0) -> EvaluationTotals:
        """Train an epoch, counted from 0, continuing one that an earlier run has begun; see Learner.run."""
        if num_frames:
            return super().run(epoch, values, each, num_frames)
        if epoch + 1 < self.parallel.start_epoch:
            self._resumes = False
            return super().run(epoch, values, each)
        first = epoch * self.num_iterations
        last = (epoch + 1) * self.num_iterations
        totals = EvaluationTotals(self.names)
        number = self._continue_epoch(first, last, values, totals)
        if number > first and each is not None:
            each(totals.figures, totals.num_frames)
        while number < last:
            number = self._iterate(number, epoch, values, totals, each)
        return totals

    def close(self) -> None:
        self._jobs.close()

    def _plan(self, values: EpochOptions) -> dict[str, Any]:
        """Return the values that must be equal if an epoch is to be continued."""
        figures = {"figures": list(self.names)}
        return {"jobs": self.parallel.num_jobs, "frames": self.share_frames, **figures, **asdict(values)}

    def _continue_epoch(self, first: int, last: int, values: EpochOptions, totals: EvaluationTotals) -> int:
        """Return the number of outer iterations that are done, and add the sums of those in this epoch to `totals`."""
        resumes = self._resumes
        self._resumes = False
        iteration = self.files.newest(first, last) if resumes else None
        if iteration is not None and iteration.plan != self._plan(values):
            self.log(
                f"warning: {self.files.model(iteration.number)} was made with {json.dumps(iteration.plan)}; this epoch "
                f"starts again with {json.dumps(self._plan(values))}"
            )
            iteration = None
        if iteration is None:
            self.files.discard_after(first - 1)
            self._save(first, values, EvaluationTotals(self.names))
            return first
        self.files.discard_after(iteration.number)
        self.files.remove_outputs()
        self._restore(iteration)
        start = self.files.model(iteration.number)
        done = f"{iteration.number - first} of {last - first} outer iterations of the epoch"
        self.log(f"Starting from {start}, {done}.")
        totals.add(iteration.figures, iteration.num_frames)
        return iteration.number

    def _restore(self, found: Iteration) -> None:
        tensors, _ = load_tensors(self.files.model(found.number))
        self._set_values(tensors)
        if keeps_state(self.options):
            self.updater.restore(found.tensors, found.scalars, self.files.checkpoint(found.number))

    def _save(self, number: int, values: EpochOptions, totals: EvaluationTotals) -> None:
        keeps = keeps_state(self.options)
        to_host = self.network.backend.to_host
        tensors = {name: to_host(matrix) for name, matrix in self.updater.tensors().items()} if keeps else {}
        sums = (totals.figures, totals.num_frames)
        iteration = Iteration(number, self._plan(values), *sums, tensors, self.updater.scalars if keeps else {})
        self.files.save(self.network, iteration)

    def _iterate(
        self, number: int, epoch: int, values: EpochOptions, totals: EvaluationTotals, each: Each | None
    ) -> int:
        """Run outer iteration `number`, counted from 0, with the values of its epoch; return number + 1."""
        begin = time.perf_counter()
        rate = values.learning_rate * values.decay ** ((number - epoch * self.num_iterations) * self._part)
        now = replace(values, learning_rate=rate)

        def done(result: JobResult) -> None:
            if each is not None:
                each(result.totals.figures, result.totals.num_frames)

        jobs = list(self._make_jobs(number, now))
        results = self._jobs.run(jobs, done)
        together = EvaluationTotals(self.names)
        for sums in (totals, together):
            for result in results:
                sums.add(result.totals.figures, result.totals.num_frames)
        learned = time.perf_counter()
        chosen = self._choose(number, results)
        self._combine([job.output for job in jobs] if chosen is None else [jobs[chosen].output])
        if keeps_state(self.options):
            self.updater.scalars = dict(results[chosen or 0].scalars)
        averaged = time.perf_counter()
        # The history is written first: a run killed in between repeats the iteration and writes the row again.
        row = {
            "iteration": number + 1,
            "epoch": epoch + 1,
            "learning_rate_per_sample": rate,
            "training": together.averages(),
            "jobs": [
                {
                    "training": result.totals.averages(),
                    "samples": result.totals.num_frames,
                    "seconds": round(result.seconds, 3),
                }
                for result in results
            ],
            "taken": AVERAGE if chosen is None else chosen + 1,
            "seconds": round(averaged - begin, 3),
            "averaging_seconds": round(averaged - learned, 3),
        }
        append_history(self.files.history, row, "iteration")
        self._save(number + 1, values, totals)
        return number + 1

    def _make_jobs(self, number: int, values: EpochOptions) -> Iterator[Job]:
        """Yield the jobs of an outer iteration; `values` has its learning rate and the decay of the epoch."""
        count = self.parallel.num_jobs
        backend = self.network.backend
        source = self.parallel.source
        assert source is not None  # as __init__ has checked
        values = replace(values, learning_rate=values.learning_rate * count, decay=values.decay**self._part)
        for job in range(count):
            yield Job(
                iteration=number,
                number=job,
                start=self.files.model(number),
                state=self.files.checkpoint(number) if keeps_state(self.options) else None,
                output=self.files.output(number, job),
                source=source,
                share=number * count + job,
                options=self.job_options,
                values=values,
                names=tuple(self.names),
                precision=backend.precision,
                device=backend.device,
                threads=self.parallel.threads,
                engine=engine_text(),
                directory=Path.cwd(),
            )

    def _choose(self, number: int, results: Sequence[JobResult]) -> int | None:
        """Return the job with the best criterion on its share if its model is to be used, or None for the average."""
        if len(results) == 1 or number > 0 or not self.parallel.best_first:
            return None
        means = [result.totals.averages()[self.criterion] for result in results]
        best = int(np.argmin(means))
        self.log(
            f"Outer iteration {number + 1}: uses the model of job {best + 1} with {self.criterion} {means[best]:.6g}; "
            f"the others have {', '.join(f'{mean:.6g}' for job, mean in enumerate(means) if job != best)}"
        )
        return best

    def _combine(self, outputs: Sequence[Path]) -> None:
        """Set parameters and state to the average of the results of jobs, summed in double precision in their order."""
        sums: dict[str, np.ndarray] = {}
        for path in outputs:
            tensors = load_output(path)
            if sums and {name: array.shape for name, array in tensors.items()} != {
                n: array.shape for n, array in sums.items()
            }:
                raise ModelError(f"{path}: its parameters differ from those of {outputs[0]}; expected the same")
            for name, tensor in tensors.items():
                if name in sums:
                    sums[name] += tensor
                else:
                    sums[name] = tensor.astype(np.float64, order="F")
        for tensor in sums.values():
            tensor /= len(outputs)
        self._set_values({name.partition(":")[2]: mean for name, mean in sums.items() if name.startswith("value:")})
        state_matrices = self.updater.tensors() if keeps_state(self.options) else {}
        for name, matrix in state_matrices.items():
            matrix[...] = self.network.backend.asarray(sums[f"state:{name}"])

    def _set_values(self, tensors: dict[str, np.ndarray]) -> None:
        for name in self.network.stored_values():
            self.network[name].assign(self.network.backend.asarray(tensors[name]))
