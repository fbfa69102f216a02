"""Where the work on shards is done: threads of this process, or the workers of a Dask cluster."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from acoustic.training.parallel.executors import DaskCluster
from decoder.gaussians import shards
from decoder.search.batch import in_order
from readers.common.report import Log
from readers.errors import ModelError

WAITING = 4  # shards per worker that are submitted ahead of the results


class Threads:
    """Works in threads of this process, one per core by default."""

    def __init__(self, threads: int | None = None):
        self.threads = threads
        self._worker = shards.ShardWorker()

    def survey(self, parts: Sequence[shards.Shard]) -> Iterator[list[shards.Survey]]:
        """The surveys of shards, in their order; see shards.survey."""
        return self.results(shards.survey, parts)

    def sums(self, parts: Sequence[shards.Shard], *arguments: Any) -> Iterator[shards.Accumulator]:
        """The sums of shards, in their order; arguments: see ShardWorker.sums."""
        return self.results(self._worker.sums, parts, *arguments)

    def align(self, parts: Sequence[shards.Shard], *arguments: Any) -> Iterator[list]:
        """The alignments of shards, in their order; arguments: see align_shard."""
        return self.results(shards.align_shard, parts, *arguments)

    def results(self, function: Callable, parts: Sequence[Any], *arguments: Any) -> Iterator[Any]:
        """Yield function(part, *arguments) for each part, in their order; raises what it raises."""
        for _, result in in_order(lambda part: function(part, *arguments), parts, self.threads):
            if isinstance(result, Exception):
                raise result
            yield result

    def close(self) -> None:
        """Nothing is left to close."""


class Cluster:
    """Works on a Dask cluster, whose workers read the feature files at the same paths.

    Parameters
    ----------
    scheduler : str
        Address of the scheduler, or the file that contains it.
    log : callable
        Receives a line while there are no workers yet.

    Raises
    ------
    ConfigError
        If dask.distributed is not installed, or the scheduler is not reached.
    """

    def __init__(self, scheduler: str, log: Log):
        self._cluster, self._scheduler = DaskCluster(scheduler, log), scheduler

    def survey(self, parts: Sequence[shards.Shard]) -> Iterator[list[shards.Survey]]:
        """As of Threads."""
        return self.results(shards.survey, parts)

    def sums(self, parts: Sequence[shards.Shard], *arguments: Any) -> Iterator[shards.Accumulator]:
        """As of Threads."""
        return self.results(shards.shard_sums, parts, *arguments)

    def align(self, parts: Sequence[shards.Shard], *arguments: Any) -> Iterator[list]:
        """As of Threads."""
        return self.results(shards.align_shard, parts, *arguments)

    def results(self, function: Callable, parts: Sequence[Any], *arguments: Any) -> Iterator[Any]:
        """As of Threads."""
        workers = self._cluster.client.scheduler_info(n_workers=-1)["workers"].values()
        most = WAITING * max(1, sum(worker["nthreads"] for worker in workers))
        waiting: deque = deque()
        try:
            for number, part in enumerate(parts, 1):
                waiting.append((number, self._cluster.executor.submit(function, part, *arguments)))
                if len(waiting) >= most:
                    yield self._first(waiting)
            while waiting:
                yield self._first(waiting)
        finally:
            for _, future in waiting:
                future.cancel()

    def _first(self, waiting: deque) -> Any:
        number, future = waiting.popleft()
        try:
            return future.result()
        except Exception as fault:  # lost workers raise errors of Dask
            text = " ".join(str(fault).split()) or type(fault).__name__
            raise ModelError(
                f"scheduler {self._scheduler}: shard {number}: {text}; expected workers that have this "
                "program and the feature files"
            ) from fault

    def close(self) -> None:
        """Close the connection."""
        self._cluster.close()


Runner = Threads | Cluster
