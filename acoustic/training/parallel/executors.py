"""Runs the jobs of a training in processes of this machine, or on the workers of a Dask cluster.

A job whose worker died is run again.
"""

from collections.abc import Callable, Sequence
from typing import Any

from acoustic.training.parallel.job import AnyJob, attempt
from acoustic.training.parallel.options import ParallelOptions
from readers.common.environment import available_cores
from readers.common.jobs.dask_cluster import DaskCluster
from readers.common.jobs.places import LocalProcesses, Place
from readers.common.jobs.runner import Runner, ShardLost, run_settings
from readers.common.report import Log
from readers.errors import ArgonautError, ModelError

Done = Callable[[Any], None]


class Jobs:
    """Runs jobs, those of an outer iteration or of a minibatch at a time.

    Processes start, or the cluster is contacted, with the first of them. `log` receives a line for every job that was
    lost and runs again.
    """

    def __init__(self, options: ParallelOptions, log: Log):
        self.options = options
        self.log = log
        self._runner: Runner | None = None

    def run(self, jobs: Sequence[AnyJob], done: Done) -> list[Any]:
        """Run jobs and return their results in order; done(result) is called as each one comes in.

        Raises the error of the first job that failed, with the job's name. A job that was lost more often than it may
        be run again raises OSError if that was the cause, else ModelError.
        """
        results: dict[int, Any] = {}
        try:
            for job, result in self._opened().arrivals(attempt, jobs):
                if isinstance(result, ArgonautError):
                    raise result if str(result).startswith(job.title) else type(result)(f"{job.title}: {result}")
                if isinstance(result, Exception):
                    raise result
                results[job.number] = result
                done(result)
        except ShardLost as fault:
            if isinstance(fault.cause, OSError):
                raise fault.cause from fault
            raise ModelError(f"{fault}; expected a result; jobRetries sets how often a job is run again") from fault
        return [results[job.number] for job in jobs]

    def _opened(self) -> Runner:
        if self._runner is None:
            workers = self._place()
            workers.attempts = self.options.retries + 1
            self._runner = Runner(workers, self.log, lambda job: job.title)
        return self._runner

    def _place(self) -> Place:
        options = self.options
        settings = run_settings()
        if options.scheduler:
            return DaskCluster(settings, options.scheduler, self.log)
        return LocalProcesses(settings, min(options.num_jobs, options.processes or available_cores()))

    def close(self) -> None:
        """Terminate the processes, including busy ones, or close the connection to the cluster."""
        runner = self._runner
        self._runner = None
        if runner is not None:
            runner.close()
