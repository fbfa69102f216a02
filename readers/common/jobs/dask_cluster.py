"""The workers of a Dask scheduler, as a place to work."""

import contextlib
import json
import logging
import pickle
import time
import uuid
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from readers.common.jobs.places import ATTEMPTS
from readers.common.jobs.worker import Answer, Function, RunSettings, SchedulerLost, WorkerLost, forget, work
from readers.common.report import Log
from readers.errors import ArgonautError, ConfigError

CONNECTION_SECONDS = 30
AHEAD = 2  # shards per thread of a worker: the next one is there when one is done
FRESH = 2.0  # seconds for which the list of workers is not asked for again
LARGE = 20_000  # bytes of arguments that are sent once, not with each shard


class DaskCluster:
    """Workers of a Dask scheduler.

    If a worker dies, the scheduler gives its shards to others; this place counts a shard as lost when several workers
    have died with it (`distributed.scheduler.allowed-failures`).

    Parameters
    ----------
    settings : RunSettings
    scheduler : str
        Address of the scheduler, or the file that contains it.
    log : callable
        Receives a line while there are no workers yet.

    Raises
    ------
    ConfigError
        If dask.distributed is not installed, or the scheduler is not reached.
    """

    attempts, is_here = ATTEMPTS, False

    def __init__(self, settings: RunSettings, scheduler: str, log: Log):
        try:
            from distributed import Client  # optional: the extra `cluster`
        except ImportError as fault:
            raise ConfigError(
                f"scheduler {scheduler}: dask.distributed is not installed; expected "
                "`pip install '.[cluster]'` in the project's directory"
            ) from fault

        class QuietClient(Client):
            def __del__(self) -> None:  # to close a client that never connected takes a minute, and prints the failure
                if getattr(self, "status", "") == "running":
                    with contextlib.suppress(Exception):
                        super().__del__()

        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # `answer` tells of a lost connection
        try:
            self.client = QuietClient(address_of(scheduler), timeout=CONNECTION_SECONDS, set_as_default=False)
        except Exception as fault:  # a wrong address can raise many types
            text = " ".join(str(fault).split()) or f"not reached ({type(fault).__name__})"
            raise ConfigError(
                f"scheduler {scheduler}: {text}; expected tcp://HOST:PORT of a running `dask scheduler`, or the file "
                "that its --scheduler-file names"
            ) from fault
        self._settings = settings
        self._scheduler = scheduler
        self._log = log
        self._workers: dict[str, Any] = {}
        self._asked = 0.0
        self._chosen: dict[str, list[str]] = {}  # by key of a shard: the workers that are to take it
        self._withdrawn: set[str] = set()  # keys of shards whose workers have gone
        self._is_deserted = False
        self._shared: tuple[Sequence[Any], Any] | None = None  # arguments, and the future that holds them
        if not self.workers():
            log(f"scheduler {scheduler} has no workers yet; waiting for the first")
            self.client.wait_for_workers(1)
            self._asked = 0.0

    def workers(self) -> dict[str, Any]:
        """The workers by address, as known to the scheduler some seconds ago."""
        now = time.monotonic()
        if now - self._asked > FRESH:
            self._asked = now
            try:
                self._workers = self.client.scheduler_info(n_workers=-1)["workers"]
            except Exception as fault:  # the connection is gone
                raise self._gone() from fault
        return self._workers

    @property
    def size(self) -> int:
        return sum(worker["nthreads"] for worker in self.workers().values())

    @property
    def capacity(self) -> int:
        return AHEAD * max(1, self.size)

    def submit(
        self,
        function: Function,
        shard: Any,
        arguments: Sequence[Any],
        done: SimpleQueue[Any],
        avoid: frozenset[str],
    ) -> Any:
        workers = self.workers()
        untried = [address for address in workers if not any(f" {address} " in name for name in avoid)]
        is_chosen = bool(untried) and len(untried) < len(workers)  # a worker that failed is still there
        elsewhere: dict[str, Any] = {"workers": untried, "allow_other_workers": True} if is_chosen else {}
        key = f"shard-{uuid.uuid4().hex}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about large arguments
            try:
                future = self.client.submit(
                    *(work, self._settings, function, shard, self._sent(arguments)),
                    key=key,
                    pure=False,
                    **elsewhere,
                )
                if is_chosen:
                    self._chosen[key] = untried
                future.add_done_callback(done.put)
            except Exception as fault:
                if self.client.status == "running":
                    raise
                raise self._gone() from fault
        return future

    def _sent(self, arguments: Sequence[Any]) -> Any:
        """Return the arguments or, if they are large, a future that holds them on the workers."""
        if self._shared is None or self._shared[0] is not arguments:
            content = pickle.dumps(tuple(arguments))
            sent: Any = tuple(arguments)
            if len(content) > LARGE:
                # A task, not scattered data: if the worker that holds the result dies, the scheduler repeats it.
                sent = self.client.submit(pickle.loads, content, key=f"arguments-{uuid.uuid4().hex}", pure=False)
            self._shared = arguments, sent
        return self._shared[1]

    def answer(self, future: Any) -> Answer:
        self._chosen.pop(future.key, None)
        answer = self._answer(future)
        if answer.is_lost:
            self._asked = 0.0  # workers may have gone
        return answer

    def _answer(self, future: Any) -> Answer:
        if future.key in self._withdrawn:
            self._withdrawn.remove(future.key)
            return Answer(fault=WorkerLost("the workers that were to take it are gone"), is_lost=True, attempts=0)
        status = future.status
        answer = None
        if status == "finished":
            answer = self._fetched(future)
        if answer is not None:
            return answer
        if self.client.status != "running":
            raise self._gone()
        if status == "error":
            return self._fault(future.exception())
        if status == "cancelled":
            return Answer(fault=WorkerLost(f"scheduler {self._scheduler}: the shard was cancelled"), is_lost=True)
        self.abandon(future)
        text = "the worker died before its result was fetched"
        return Answer(fault=WorkerLost(text), is_lost=True, is_suspected=True)

    def _fetched(self, future: Any) -> Answer | None:
        """The result of a future; None if the worker that held it is gone.

        `future.result()` would wait until the scheduler has repeated the shard, which may be never.
        """
        try:
            response = self.client.sync(self.client.scheduler.gather, keys=[future.key])
        except Exception as fault:
            if self.client.status != "running":
                raise self._gone() from fault
            return self._fault(fault)
        return response["data"][future.key] if response["status"] == "OK" else None

    def _fault(self, fault: BaseException) -> Answer:
        """The answer of a shard that ended with an exception outside the function."""
        from distributed.scheduler import KilledWorker

        if isinstance(fault, KilledWorker):
            count = fault.allowed_failures + 1
            text = f"died, as {count} workers with this shard; the system kills processes when memory is short"
            worker = f"worker {fault.last_worker.address}"
            return Answer(
                fault=WorkerLost(text), is_lost=True, worker=worker, attempts=self.attempts, is_suspected=True
            )
        if isinstance(fault, MemoryError | OSError):
            return Answer(fault=fault, is_lost=True)
        text = f"{type(fault).__name__}: {' '.join(str(fault).split())}"
        return Answer(
            fault=ArgonautError(
                f"scheduler {self._scheduler}: {text}; expected workers that have this program and see the same files"
            )
        )

    def abandon(self, future: Any) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            future.cancel()

    def worker_of(self, future: Any) -> str:
        with contextlib.suppress(Exception):
            for address, keys in self.client.processing().items():
                if future.key in keys:
                    return f"worker {address}"
        return ""

    def look_after(self, futures: Iterable[Any]) -> None:
        """Tell that there are no workers any more, and withdraw shards whose workers have gone.

        While there are no workers, the scheduler puts a shard aside.  It takes it up again only for a worker that was
        chosen for it, even if others are allowed, too; a worker that is started again has another address.
        """
        if self.client.status != "running":
            return  # the client ends the futures
        workers = self.workers()
        if not workers and not self._is_deserted:
            self._log(f"warning: scheduler {self._scheduler} has no workers any more; waiting for one")
        self._is_deserted = not workers
        for future in futures:
            if workers and workers.keys().isdisjoint(self._chosen.get(future.key, workers)):
                del self._chosen[future.key]
                self._withdrawn.add(future.key)
                future.cancel()

    def _gone(self) -> SchedulerLost:
        return SchedulerLost(f"scheduler {self._scheduler}: connection lost; expected that it runs until the end")

    def close(self) -> None:
        """Close the connection; shards that have begun go on until they end, and their results are dropped."""
        with contextlib.suppress(Exception):  # the scheduler may be gone
            if self.client.status == "running":
                self.client.run(_forget, self._settings.key, wait=False)
        with contextlib.suppress(Exception):
            self.client.close()


def address_of(scheduler: str) -> str:
    """Return the address of a scheduler from its address, or from the file that `dask scheduler` has written."""
    if not Path(scheduler).exists():
        return scheduler
    try:
        address = json.loads(Path(scheduler).read_bytes())["address"]
    except (OSError, ValueError, LookupError, TypeError):
        address = None
    if not isinstance(address, str):
        raise ConfigError("no address in this file")
    return address


async def _forget(key: str) -> None:
    forget(key)  # in the event loop of the worker, while its thread may be busy
