"""Runs functions on shards of a list, somewhere, and gives the results in order."""

import itertools
import os
import secrets
import statistics
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from readers.common.environment import program_version
from readers.common.extensions import VARIABLE, fingerprint
from readers.common.jobs.dask_cluster import DaskCluster
from readers.common.jobs.durations import by_seconds
from readers.common.jobs.places import LocalProcesses, Place, Threads
from readers.common.jobs.stop_signals import interrupts_held_back
from readers.common.jobs.worker import Answer, Function, RunSettings, SchedulerLost
from readers.common.report import Log
from readers.errors import ArgonautError

Item = TypeVar("Item")
Result = TypeVar("Result")
WAITING = 16  # finished shards per worker that may wait for an earlier one
TICK = 1.0  # seconds between looks at shards in progress
SLOW, SLOW_SECONDS = 4.0, 10.0  # a straggler takes so many times the median, and at least so many seconds
SHARDS_PER_WORKER = 6


@dataclass(eq=False)
class _Shard:
    """A part of a list: a number for messages, and how far the work on it is."""

    items: Any
    name: str
    attempts: int = 0
    avoid: frozenset[str] = frozenset()
    is_alone: bool = False  # begun while no other shard is worked on
    begun: float = 0.0
    answer: Answer | None = None


_Answered = tuple[_Shard, Answer]
_Running = dict[Any, _Shard]  # by future


class Runner:
    """Runs functions on shards in threads, in processes of this machine, or on a Dask cluster.

    The results come in the order of the shards, so that they do not depend on the place.  A shard whose worker dies, or
    that fails for lack of memory or because of a file, is repeated, if possible by another worker.

    Parameters
    ----------
    place : Place
        Threads, LocalProcesses or DaskCluster.
    log : callable
        Receives a line for every shard that is repeated.
    name_of : callable, optional
        Returns the name of a shard for messages; default `shard N`.

    Attributes
    ----------
    place : Place
    watch : callable or None
        Called as `watch(**figures)` while the runner waits: about a shard that takes much longer than others.
    """

    def __init__(self, place: Place, log: Log, name_of: Callable[[Any], str] | None = None):
        self.place = place
        self.log = log
        self._name_of = name_of
        self.watch: Callable[..., None] | None = None
        self._times: deque[float] = deque(maxlen=200)  # seconds of finished shards

    def results(self, function: Callable[..., Result], shards: Iterable[Any], *arguments: Any) -> Iterator[Result]:
        """Yield `function(shard, *arguments)` for each shard, in their order.

        Parameters
        ----------
        function : callable
            Must be importable by name, and must not change its arguments.
        shards : iterable
            Read as needed.
        *arguments : object
            Sent to a worker of a cluster once, not with each shard.

        Raises
        ------
        Exception
            Whatever the function raises.  If a shard was lost in other processes, ArgonautError with its name and the
            worker; in threads, the MemoryError or OSError of the function.
        """
        for shard, answer in self._shards(function, shards, arguments):
            yield self._result(shard, answer)

    def arrivals(
        self, function: Callable[..., Result], shards: Iterable[Item], *arguments: Any
    ) -> Iterator[tuple[Item, Result]]:
        """Yield `(shard, function(shard, *arguments))` as results come in.  Raises what `results` raises, at once."""
        for shard, answer in self._shards(function, shards, arguments, in_order=False):
            yield shard.items, self._result(shard, answer)

    def _result(self, shard: _Shard, answer: Answer) -> Any:
        outcome = self._outcome(shard, answer)
        if answer.fault is not None:
            raise outcome
        return outcome

    def outcomes(
        self, function: Callable[..., Result], shards: Iterable[Any], *arguments: Any
    ) -> Iterator[Result | Exception]:
        """As `results`, but yield the exception of a shard that was lost in place of its result."""
        for shard, answer in self._shards(function, shards, arguments):
            yield self._outcome(shard, answer)

    def each(
        self,
        function: Callable[..., Sequence[Result]],
        items: Iterable[Item],
        *arguments: Any,
        seconds: Callable[[Item], float] | None = None,
        total: int | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Generator[tuple[Item, Result | Exception], None, None]:
        """Yield (item, result) for each item of a list, in order; the list is divided into shards by duration.

        A shard that is lost twice is divided, so that in the end only the item that is the cause is lost.

        Parameters
        ----------
        function : callable
            `function(items, *arguments)` gets a list of items and returns a list of as many results.  See `results`.
        items : iterable
            Read as needed.
        *arguments : object
        seconds : callable, optional
            Returns about how long an item is, in seconds of speech.  Default: all are equally long.
        total : int, optional
            Number of items, if they are no sequence.
        stopped : callable, optional
            When it returns True, no more shards begin; those in progress are finished, if there are workers.

        Yields
        ------
        (item, result) : tuple
            The result is an exception if the item was lost, or came after the connection to the scheduler was.

        Raises
        ------
        Exception
            Whatever else the function raises.
        """
        if total is None:
            assert isinstance(items, Sized)
            total = len(items)
        shards = by_seconds(items, seconds or (lambda item: 1.0), total, SHARDS_PER_WORKER * max(1, self.place.size))
        for shard, answer in self._shards(function, shards, arguments, True, True, stopped):
            outcome = self._outcome(shard, answer)
            if isinstance(outcome, Exception):
                yield from ((item, outcome) for item in shard.items)
            else:
                yield from zip(shard.items, outcome, strict=True)

    def _outcome(self, shard: _Shard, answer: Answer) -> Any:
        if answer.fault is None:
            return answer.result
        if not answer.is_lost:
            raise answer.fault
        if self.place.is_here or isinstance(answer.fault, SchedulerLost):
            return answer.fault
        return ShardLost(f"{shard.name}: lost {_times(shard.attempts)}, the last by {answer.reason}", answer.fault)

    def _shards(
        self,
        function: Function,
        shards: Iterable[Any],
        arguments: Sequence[Any],
        divide: bool = False,
        in_order: bool = True,
        stopped: Callable[[], bool] = lambda: False,
    ) -> Generator[_Answered, None, None]:
        """Yield the shards with their answers, in order or as they come in."""
        waiting = iter(shards)
        numbers = itertools.count(1)
        in_progress: deque[_Shard] = deque()  # in the order of the list
        again: deque[_Shard] = deque()
        alone: deque[_Shard] = deque()  # when no others can begin
        running: _Running = {}
        done: SimpleQueue[Any] = SimpleQueue()
        is_more = True
        is_inline = self.place.is_here and self.place.capacity == 1  # begins a shard when the last one has been taken
        try:
            while True:
                if is_inline and in_progress and (answer := in_progress[0].answer) is not None:
                    yield in_progress.popleft(), answer
                while self._has_room(running) and (again or alone or is_more):
                    if stopped():
                        is_more = False
                        in_progress = deque(shard for shard in in_progress if shard not in again and shard not in alone)
                        again.clear()
                        alone.clear()
                    elif again:
                        self._begin(again.popleft(), function, arguments, running, done)
                    elif is_more and len(in_progress) < WAITING * self.place.capacity:
                        try:
                            items = next(waiting)
                        except StopIteration:
                            is_more = False
                            break
                        number = next(numbers)
                        in_progress.append(_Shard(items, self._name_of(items) if self._name_of else f"shard {number}"))
                        self._begin(in_progress[-1], function, arguments, running, done)
                    else:
                        break
                if alone and not running:
                    self._begin(alone.popleft(), function, arguments, running, done)
                if not in_progress:
                    if not is_more:
                        return
                    continue
                if (answer := in_progress[0].answer) is not None:
                    yield in_progress.popleft(), answer
                    continue
                answered = self._next(done, running, stopped)
                if answered is None:
                    yield from ((shard, shard.answer) for shard in in_progress if shard.answer is not None)
                    return
                shard, answer = answered
                if answer.is_suspected and self._is_final(shard, divide) and not shard.is_alone:
                    self._repeat_alone(shard, answer, alone)
                elif answer.is_lost and not self._is_final(shard, divide):
                    self._repeat(shard, answer, divide, in_progress, again)
                elif not in_order:
                    in_progress.remove(shard)
                    yield shard, answer
        except SchedulerLost as fault:
            for shard in itertools.chain(in_progress, (_Shard(items, "") for items in waiting)):
                yield shard, shard.answer or Answer(fault=fault, is_lost=True)
        finally:
            with interrupts_held_back():
                for future in running:
                    self.place.abandon(future)

    def _has_room(self, running: _Running) -> bool:
        return len(running) < self.place.capacity and not any(shard.is_alone for shard in running.values())

    def _begin(
        self, shard: _Shard, function: Function, arguments: Sequence[Any], running: _Running, done: SimpleQueue[Any]
    ) -> None:
        shard.answer = None
        shard.begun = time.monotonic()
        running[self.place.submit(function, shard.items, arguments, done, shard.avoid)] = shard

    def _next(self, done: SimpleQueue[Any], running: _Running, stopped: Callable[[], bool]) -> _Answered | None:
        """Wait for a shard, and return it with its answer; None after a stop when there are no workers."""
        while True:
            try:
                future = done.get(timeout=TICK)
                break
            except Empty:
                self.place.look_after(list(running))
                if stopped() and not self.place.size:
                    return None
                if self.watch:
                    self.watch(**self._figures(running))
        shard = running.pop(future)
        shard.answer = answer = self.place.answer(future)
        shard.attempts += answer.attempts
        self._times.append(time.monotonic() - shard.begun)
        return shard, answer

    def _is_final(self, shard: _Shard, divide: bool) -> bool:
        return shard.attempts >= self.place.attempts and not (divide and len(shard.items) > 1)

    def _repeat(self, shard: _Shard, answer: Answer, divide: bool, inside: deque[_Shard], again: deque[_Shard]) -> None:
        """Have a lost shard repeated: as a whole, or in halves."""
        avoid = shard.avoid | {answer.worker}
        if divide and len(shard.items) > 1 and shard.attempts >= min(2, self.place.attempts) and answer.attempts:
            position = inside.index(shard)
            middle = len(shard.items) // 2
            halves = [
                _Shard(items, f"{shard.name}, of {len(items)}", min(shard.attempts, self.place.attempts - 1), avoid)
                for items in (shard.items[:middle], shard.items[middle:])
            ]
            inside.remove(shard)
            for half in reversed(halves):
                inside.insert(position, half)
                again.appendleft(half)
            how = "repeated in halves"
        else:
            shard.avoid = avoid
            again.append(shard)
            how = "repeated"
        if not self.place.is_here:
            self.log(f"warning: {shard.name}: lost ({answer.reason}); {how}")
        shard.answer = None

    def _repeat_alone(self, shard: _Shard, answer: Answer, alone: deque[_Shard]) -> None:
        """Have a shard repeated while the workers have no other, which may have killed those that had both."""
        shard.is_alone = True
        shard.attempts = self.place.attempts - 1
        alone.append(shard)
        self.log(f"warning: {shard.name}: lost ({answer.reason}); repeated alone")
        shard.answer = None

    def _figures(self, running: _Running) -> dict[str, str]:
        """What a progress display shows about a straggler; nothing if there is none."""
        future, shard = min(running.items(), key=lambda item: item[1].begun)
        seconds = time.monotonic() - shard.begun
        usual = statistics.median(self._times) if self._times else 0.0
        if seconds < max(SLOW * usual, SLOW_SECONDS):
            return {}
        worker = self.place.worker_of(future)
        return {"slow": f"{shard.name}{' on ' + worker if worker else ''}, {seconds:.0f} s"}

    def close(self) -> None:
        """End processes, or close the connection to the cluster."""
        self.place.close()


class ShardLost(ArgonautError):
    """A shard that could not be done anywhere; `cause` is the last fault."""

    def __init__(self, message: str, cause: BaseException | None = None):
        super().__init__(message)
        self.cause = cause


def _times(count: int) -> str:
    return f"{count} {'time' if count == 1 else 'times'}"


def run_settings() -> RunSettings:
    """Return the settings of a new run that is started here."""
    directory = os.getcwd()  # noqa: PTH109
    extensions = os.environ.get(VARIABLE, "")
    return RunSettings(secrets.token_hex(8), directory, extensions, program_version(), fingerprint())


def thread_runner(count: int | None = None) -> Runner:
    """Return a runner in threads of this process.

    Parameters
    ----------
    count : int, optional
        Number of threads, one per core by default; with one, the work is done by the caller's thread.

    Returns
    -------
    Runner

    Examples
    --------
    >>> runner = thread_runner(2)
    >>> list(runner.results(pow, [2, 3, 4], 2))
    [4, 9, 16]
    >>> runner.close()
    """
    return Runner(Threads(RunSettings(secrets.token_hex(8)), count), print)


def process_runner(count: int, log: Log, environment: Mapping[str, str] | None = None, patience: float = 0.0) -> Runner:
    """Return a runner in spawned processes of this machine.

    Parameters
    ----------
    count : int
        Number of processes.
    log : callable
        Receives a line for every shard that is repeated.
    environment : mapping of str to str, optional
        Variables that are set in the processes.
    patience : float
        Seconds in which shards in progress may end when the runner is closed.

    Returns
    -------
    Runner
    """
    return Runner(LocalProcesses(run_settings(), count, environment, patience), log)


def cluster_runner(scheduler: str, log: Log) -> Runner:
    """Return a runner on the workers of a Dask scheduler.

    Parameters
    ----------
    scheduler : str
        Address of the scheduler, or the file that contains it.
    log : callable
        Receives a line for every shard that is repeated, and while there are no workers yet.

    Returns
    -------
    Runner

    Raises
    ------
    ConfigError
        If dask.distributed is not installed, or the scheduler is not reached.
    """
    return Runner(DaskCluster(run_settings(), scheduler, log), log)
